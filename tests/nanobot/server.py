"""A model server that plays a script: OpenAI's two interfaces over loopback, with a real window.

Chat completions are its own, Responses are read and written as such (`responses.py`).

It counts every prompt with its own tokenizer (`counting.py`), refuses what is too long in the
words of a chosen provider and what is malformed in OpenAI's (`refusals.py`), answers the rest as
its script says, and remembers every request. One server serves one conversation of one nanobot; it
answers one request at a time, of which those that are to be late are sent when others may be done.

With the form `silent` it refuses nothing: it reads the end of a prompt that is too long, says how
much it has read, and answers what comes of that, as a local server does that cuts to its context.

A request that asks for a stream is answered by one, as OpenAI sends it; a refusal is plain JSON.
An answer may be spoilt on its way (`faults.py`).
"""

from __future__ import annotations

import functools
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import responses
from counting import message_tokens, tool_tokens
from faults import Fault
from refusals import COUNTS_OUTPUT, OVERFLOW, TOLD_IN_STREAM, Refusal, Size, malformed
from responses import halves


@dataclass(frozen=True)
class Call:
    """A tool call that the model makes."""

    name: str
    arguments: dict[str, Any]


@dataclass
class Request:
    """One request as the server saw it, and what came of it."""

    kind: str
    """`main`, `sub` (a subagent), `memory` (nanobot's consolidation), `summary` (the package's)."""
    index: int
    """How many requests of this kind were accepted before."""
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    prompt_tokens: int
    max_tokens: int
    body: bytes
    turn: int
    """The exchange with the user that caused it, from 1."""
    model: str
    status: int = 200
    about: str = "answered"
    turns_late: int = 0
    answered_in: int = 0
    """The exchange with the user in which the answer was sent: `turn`, unless it was late."""
    text: str = field(init=False, default="")
    """All content of the prompt, joined."""

    def __post_init__(self) -> None:
        self.text = "\n".join(content_text(message) for message in self.messages)

    @property
    def accepted(self) -> bool:
        return self.about == "answered"

    @property
    def system(self) -> str:
        return next((content_text(m) for m in self.messages if m["role"] == "system"), "")

    @property
    def last_user(self) -> str:
        users = [content_text(m) for m in self.messages if m["role"] == "user"]
        return users[-1] if users else ""

    def summary(self) -> dict[str, Any]:
        """Return what a test asserts on."""
        return {
            "kind": self.kind,
            "turn": self.turn,
            "prompt_tokens": self.prompt_tokens,
            "max_tokens": self.max_tokens,
            "status": self.status,
            "about": self.about,
            "model": self.model,
            "messages": len(self.messages),
            "thoughts": sum("reasoning_content" in message for message in self.messages),
            "sha256": hashlib.sha256(self.body).hexdigest(),
        }


SILENT = "silent"
FORGOTTEN = "What was I to do?"
RESPONSES = "/responses"
"""What the path of a request ends with that is none for chat completions."""

SUMMARIES = "house-summary"
"""The model that a scenario has summaries made by."""


LATEST_SECONDS = 600.0
"""How long a late answer is kept back at most: somebody waits for it who should not."""


@dataclass(frozen=True)
class Thought:
    """An answer with what the model thought before it, in plain text or as a signature."""

    answer: str | list[Call]
    text: str = ""
    signature: str = ""


@dataclass(frozen=True)
class Late:
    """An answer that is kept back until the user has said `turns` things more or waits for it.

    The server answers others meanwhile.
    """

    turns: int
    answer: str | list[Call] | Thought | Refusal | Fault


Answer = str | list[Call] | Thought | Refusal | Fault | Late
Script = Callable[[Request], Answer]


class ModelServer:
    """An OpenAI-compatible endpoint on a free loopback port; use as a context manager.

    `form` chooses whose words an overflow is refused in; `say_prompt` changes the number of prompt
    tokens that the text states, never what is enforced; `factor` and `framing` make the server
    count like a vocabulary and a template of its own; `windows` are those of models that have
    another than the others.
    """

    def __init__(
        self,
        script: Script,
        *,
        window: int,
        form: str = "openai",
        encoding: str = "o200k_base",
        say_prompt: Callable[[int], int] = int,
        factor: float = 1.0,
        framing: int = 0,
        windows: Mapping[str, int] | None = None,
    ) -> None:
        self.script = script
        self.window = window
        self.form = form
        self.encoding = encoding
        self.say_prompt = say_prompt
        self.factor = factor
        self.framing = framing
        self.windows = windows or {}
        self.requests: list[Request] = []
        self.turn = 0
        self.is_awaited = threading.Event()
        """Set when nobody goes on talking: late answers come at once."""
        self._accepted = {"main": 0, "sub": 0, "memory": 0, "summary": 0}
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True

    @property
    def base(self) -> str:
        """The value for `api_base`."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> ModelServer:
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self.close()

    def close(self) -> None:
        """Give the port back."""
        self._http.server_close()

    def answer(self, body: bytes, path: str = "") -> tuple[int, dict[str, Any], Fault | None]:
        """Return status, JSON and what spoils them for one body, and remember the request."""
        with self._lock:
            request, status, answer, fault = self._answer(body, path)
        self._keep_back(request)
        return status, answer, fault

    def _answer(self, body: bytes, path: str) -> tuple[Request, int, dict[str, Any], Fault | None]:
        given = json.loads(body)
        written: Callable[..., dict[str, Any]] = dict
        if path.endswith(RESPONSES):
            request = self._read(responses.chat_form(given), body)
            refusal = responses.malformed(given)
            written = functools.partial(responses.response, asked=given)
        else:
            request, refusal = self._read(given, body), malformed(given.get("messages"))
        self.requests.append(request)
        refusal = refusal or self._too_long(request)
        if self.form == SILENT and request.prompt_tokens > self.window:
            request.about, request.prompt_tokens = "cut", self.window
            return request, 200, written(self._completion(request, FORGOTTEN)), None
        reply: Answer = refusal or self.script(request)
        if isinstance(reply, Late):
            request.turns_late, reply = reply.turns, reply.answer
        if isinstance(reply, Refusal):
            request.status, request.about = reply.status, reply.about
            return request, reply.status, reply.body, None
        fault = reply if isinstance(reply, Fault) else None
        if isinstance(reply, Fault):
            request.status, request.about = reply.status, reply.about
            reply = "This never arrives whole."
        else:
            self._accepted[request.kind] += 1
        return request, request.status, written(self._completion(request, reply)), fault

    def _keep_back(self, request: Request) -> None:
        """Wait until the answer to `request` is due."""
        due, latest = request.turn + request.turns_late, time.monotonic() + LATEST_SECONDS
        while self.turn < due and time.monotonic() < latest and not self.is_awaited.wait(0.002):
            pass
        request.answered_in = self.turn

    def _read(self, asked: dict[str, Any], body: bytes) -> Request:
        messages = [m for m in asked.get("messages") or [] if isinstance(m, dict)]
        tools = asked.get("tools") or []
        model = str(asked.get("model"))
        kind = "summary" if model.endswith(SUMMARIES) else kind_of(messages)
        tokens = message_tokens(messages, self.encoding) + tool_tokens(tools, self.encoding)
        tokens = int(tokens * self.factor) + self.framing * len(messages)
        limit = int(asked.get("max_tokens") or asked.get("max_completion_tokens") or 0)
        index = self._accepted[kind]
        return Request(kind, index, messages, tools, tokens, limit, body, self.turn, model)

    def _too_long(self, request: Request) -> Refusal | None:
        output = request.max_tokens if self.form in COUNTS_OUTPUT else 0
        window = self.windows.get(request.model, self.window)
        if request.prompt_tokens + output <= window or self.form == SILENT:
            return None
        tools = tool_tokens(request.tools, self.encoding)
        messages = self.say_prompt(request.prompt_tokens) - tools
        return OVERFLOW[self.form](Size(window, messages, tools, request.max_tokens))

    def _completion(self, request: Request, reply: str | list[Call] | Thought) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": None}
        thought = reply if isinstance(reply, Thought) else Thought(reply)
        reply = thought.answer
        if thought.text:
            message["reasoning_content"] = thought.text
        if isinstance(reply, str):
            message["content"] = reply
        else:
            message["tool_calls"] = [
                {
                    "id": f"call_{request.kind}_{request.index:03}_{number:02}",
                    "type": "function",
                    "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
                }
                for number, call in enumerate(reply)
            ]
            if thought.signature:
                # Google's, of the first of calls that are made at once.
                signed = {"google": {"thought_signature": thought.signature}}
                message["tool_calls"][0]["extra_content"] = signed
        written = message_tokens([message], self.encoding)
        return {
            "id": f"chatcmpl-{len(self.requests)}",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": request.model,
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "finish_reason": "stop" if isinstance(reply, str) else "tool_calls",
                }
            ],
            "usage": {
                "prompt_tokens": request.prompt_tokens,
                "completion_tokens": written,
                "total_tokens": request.prompt_tokens + written,
            },
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Head and body are written apart: without this the body waits 40 ms for the client.
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, answer, fault = server.answer(body, self.path)
                kind, text = "application/json", json.dumps(answer)
                asked = json.loads(body)
                is_responses = self.path.endswith(RESPONSES)
                if is_responses and server.form in TOLD_IN_STREAM and asked.get("stream"):
                    status = 200
                if asked.get("stream") and status == 200:
                    options = asked.get("stream_options") or {}
                    kind = "text/event-stream"
                    told = responses.streamed(answer) if is_responses else None
                    text = told or streamed(answer, **options)
                meant = text.encode()
                sent = fault.spoil(meant) if fault else meant
                length = len(meant if fault and fault.breaks_off else sent or b"")
                self.close_connection = sent is None or len(sent) < length
                if sent is None:
                    return
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(length))
                if not fault:
                    # OpenAI's client would repeat 429 and 5xx with growing pauses; the tests are
                    # about nanobot's own behaviour, and the header is OpenAI's way to say so.
                    self.send_header("x-should-retry", "false")
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def streamed(completion: dict[str, Any], *, include_usage: bool = False) -> str:
    """Return `completion` as the server-sent events of a stream."""
    events = [json.dumps(chunk) for chunk in chunks(completion)]
    if not include_usage:
        events.pop()
    return "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"])


def chunks(completion: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield `completion` in OpenAI's chunk form: text and arguments in halves, usage at the end."""
    base = {**completion, "object": "chat.completion.chunk", "usage": None}
    choice = completion["choices"][0]
    message = choice["message"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [
        {key: half}
        for key in ("reasoning_content", "content")
        for half in halves(message.get(key) or "")
    ]
    for index, call in enumerate(message.get("tool_calls") or []):
        first, second = halves(call["function"]["arguments"])
        named = {**call, "function": {**call["function"], "arguments": first}}
        deltas.append({"tool_calls": [{"index": index, **named}]})
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": second}}]})
    for delta in deltas:
        yield {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    end = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    yield {**base, "choices": [end]}
    yield {**base, "choices": [], "usage": completion["usage"]}


CONSOLIDATES = (
    # Until 0.1.4.post6 in the middle, then at the start of the system prompt …
    "memory consolidation agent",
    "Extract key facts from this conversation",
    # … and from 0.3.5 at the start of a user message behind the conversation itself.
    "Create a compact replacement checkpoint",
)
"""What nanobot's requests for a summary say of themselves."""


def kind_of(messages: list[dict[str, Any]]) -> str:
    """Tell nanobot's three kinds of request apart by the prompts that it writes."""
    system = next((content_text(m) for m in messages if m.get("role") == "system"), "")
    if system.lstrip().startswith("# Subagent"):
        return "sub"
    users = [content_text(m) for m in messages if m.get("role") == "user"]
    own, other, newest = CONSOLIDATES
    if own in system or system.startswith(other) or (users and users[-1].startswith(newest)):
        return "memory"
    return "main"


def content_text(message: dict[str, Any]) -> str:
    """Return a message's content as text, parts joined."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
