"""A server of three APIs with a small window: it refuses what is longer, and says what it saw."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from refusing_server import in_thread

WINDOW = 16_384
_CHARS_PER_TOKEN = 2.1


@dataclass
class Asked:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    content: bytes
    refused: bool = False

    @property
    def body(self) -> dict[str, Any]:
        return dict(json.loads(self.content))

    @property
    def tokens(self) -> int:
        """What the server counts of it."""
        names = ("messages", "input", "instructions", "system", "tools")
        said = [self.body[name] for name in names if name in self.body]
        return int(len(json.dumps(said, ensure_ascii=False)) / _CHARS_PER_TOKEN)


class ModelServer(ThreadingHTTPServer):
    """Answers each request with the last ticket in it; `instead` may reply in its place."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.window = WINDOW
        self.asked: list[Asked] = []
        self.instead: Callable[[_Handler, Asked], bool] = lambda handler, asked: False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def refusals(self) -> int:
        return sum(asked.refused for asked in self.asked)


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        asked = Asked(self.path, dict(self.headers), self.rfile.read(length))
        self.server.asked.append(asked)
        if self.server.instead(self, asked):
            return
        answer = asked.body.get("max_tokens") or 0
        if asked.tokens + answer > self.server.window:
            asked.refused = True
            self.reply(400, _refusal(asked, answer, self.server.window))
        elif asked.body.get("stream"):
            self.stream(_events(asked))
        else:
            self.reply(200, _answer(asked))

    def reply(self, status: int, body: Any) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def stream(self, events: list[str], pause: float = 0.0, *, end: bool = True) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            self.piece(event)
            time.sleep(pause)
        if end:
            self.wfile.write(b"0\r\n\r\n")

    def piece(self, event: str) -> None:
        data = event.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def handle(self) -> None:
        """Take no offence where a client goes away."""
        with suppress(ConnectionError):
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def _refusal(asked: Asked, answer: int, window: int) -> Any:
    if asked.path.endswith("/messages"):
        text = f"prompt is too long: {asked.tokens + answer} tokens > {window} maximum"
        return {"type": "error", "error": {"type": "invalid_request_error", "message": text}}
    text = (
        f"This model's maximum context length is {window} tokens. However, your messages resulted "
        f"in {asked.tokens + answer} tokens. Please reduce the length of the messages."
    )
    kind = {"type": "invalid_request_error", "code": "context_length_exceeded"}
    return {"error": {"message": text, **kind}}


def _said(asked: Asked) -> str:
    """Return the ticket that was named last."""
    tickets = re.findall(r"OPS-\d+", asked.content.decode())
    return f"It was {tickets[-1]}." if tickets else "It was nothing."


def _answer(asked: Asked) -> Any:
    body, text = asked.body, _said(asked)
    if asked.path.endswith("/messages"):
        return {
            **{"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"]},
            "content": [
                {"type": "thinking", "thinking": "Let me see.", "signature": "c2lnbmVk"},
                {"type": "text", "text": text},
            ],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": asked.tokens, "output_tokens": 8},
        }
    if asked.path.endswith("/responses"):
        return _response(asked)
    return {
        **{"id": "c1", "object": "chat.completion", "created": 1, "model": body["model"]},
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        ],
        "usage": {
            "prompt_tokens": asked.tokens,
            "completion_tokens": 8,
            "total_tokens": asked.tokens + 8,
        },
    }


def _response(asked: Asked) -> Any:
    part = {"type": "output_text", "text": _said(asked), "annotations": []}
    message = {
        **{"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"},
        "content": [part],
    }
    thoughts = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "c2VhbGVk"}
    return {
        **{"id": "r1", "object": "response", "created_at": 1, "model": asked.body["model"]},
        **{"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "status": "completed"},
        "output": [thoughts, message],
        "usage": {
            "input_tokens": asked.tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 8,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": asked.tokens + 8,
        },
    }


def _events(asked: Asked) -> list[str]:
    if asked.path.endswith("/messages"):
        return _anthropic_events(asked)
    if asked.path.endswith("/responses"):
        return _response_events(asked)
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1}
    head["model"] = asked.body["model"]
    chunks: list[Any] = [
        {**head, "choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]}
        for word in re.split(r"(?= )", _said(asked))
    ]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    usage = {"prompt_tokens": asked.tokens, "completion_tokens": 8, "total_tokens": 8}
    chunks.append({**head, "choices": [], "usage": usage})
    return [*(f"data: {json.dumps(one)}\n\n" for one in chunks), "data: [DONE]\n\n"]


def _named(events: list[dict[str, Any]]) -> list[str]:
    return [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events]


def _response_events(asked: Asked) -> list[str]:
    done = _response(asked)
    begun = {**done, "status": "in_progress", "output": [], "usage": None}
    message = done["output"][1]
    part = message["content"][0]
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**message, "content": []},
        },
        {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
        {"type": "response.output_text.delta", **at, "delta": part["text"], "logprobs": []},
        {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []},
        {"type": "response.output_item.done", "output_index": 0, "item": message},
        {"type": "response.completed", "response": {**done, "output": [message]}},
    ]
    return _named([{**event, "sequence_number": at} for at, event in enumerate(events)])


def _anthropic_events(asked: Asked) -> list[str]:
    message = {**_answer(asked), "content": [], "stop_reason": None}
    done = {"stop_reason": "end_turn", "stop_sequence": None}
    return _named(
        [
            {"type": "message_start", "message": message},
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "text", "text": ""},
            },
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": _said(asked)},
            },
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": done, "usage": {"output_tokens": 8}},
            {"type": "message_stop"},
        ]
    )


def serving() -> AbstractContextManager[ModelServer]:
    """Run a server until the end of the block."""
    return in_thread(ModelServer())
