"""One request on the wire: made to fit, sent, and where it is refused repaired and sent again."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from nanobot_context._core import token_bound
from nanobot_context.guard.exchange import Answer, Exchange, protected
from nanobot_context.guard.fitting import Fitter
from nanobot_context.guard.fuse import fused
from nanobot_context.guard.request import Request
from nanobot_context.guard.shared import shared_telemetry, shared_windows
from nanobot_context.guard.telemetry import Telemetry
from nanobot_context.identity import is_same
from nanobot_context.recovery import Attempt, GaveUp
from nanobot_context.settings import Settings
from nanobot_context.types import Message
from nanobot_context.wire.breakpoints import with_breakpoints
from nanobot_context.wire.forms import endpoint_of, form_of
from nanobot_context.wire.forms.form import Form
from nanobot_context.wire.replies import Reply
from nanobot_context.wire.streams import EndReader, Json, failure, reported, usage_of

Send = Callable[[bytes | None], Awaitable[Reply]]
"""Sends a body, or the one that came where there is none."""

_FIRST_ERROR = 400

# A request that is surely this part of the window is not refused as too long.
_SMALL = 4


class Fault(Exception):
    """The server replied with an error.

    Attributes:
        reply: The reply.
        status_code: Its status, or that which a stream says.
        body: What it says.
    """

    def __init__(self, reply: Reply, status: int | None, text: str) -> None:
        super().__init__(text)
        self.reply, self.status_code, self.body = reply, status, text


@dataclass(frozen=True, slots=True)
class Protection:
    """Protects requests with one set of settings.

    Attributes:
        way: What records name in place of a session.
    """

    fitter: Fitter
    way: str
    telemetry: Telemetry = field(default_factory=shared_telemetry)
    cache_breakpoints: bool = False

    @classmethod
    def by(
        cls,
        settings: Settings,
        window_tokens: int | None = None,
        *,
        way: str = "wrap",
        cache_breakpoints: bool = False,
    ) -> Protection:
        """Return what `settings` ask for, with the window that the caller gives.

        Args:
            way: Who asks: `wrap` or `serve`.
            cache_breakpoints: Whether requests say where their steady prefix ends.
        """
        windows = shared_windows(settings, window_tokens, is_server=way == "serve")
        return cls(Fitter(settings, windows), way, cache_breakpoints=cache_breakpoints)

    async def run(self, method: str, url: str, content: bytes, send: Send) -> Any:
        """Return the response to a request, which goes out as it is where nothing has to be cut.

        What the server replies is handed on as it is, but for refusals that a shorter request
        repairs. `send` raises what it raises.
        """
        form = fused("read a request", lambda: _form(method, url, content), None)
        if form is None:
            return (await send(None)).response
        wire = _Wire(self, form, endpoint_of(url), send)
        request = wire.exchange.request
        request.trace.session = self.way
        try:
            answer = await protected(wire.exchange)
        except Fault as fault:
            return fault.reply.response
        except GaveUp as gave_up:
            self.telemetry.gave_up(request, gave_up.overflow_error(request.model))
            answer = gave_up.refused.refusal
            if isinstance(answer, Fault):
                answer.reply.refuse()
        finally:
            if not wire.is_streaming:
                self.telemetry.ended(request, self.fitter)
        return answer.reply.response


def request_of(
    form: Form, send: Callable[[list[Message], int | None], Awaitable[Any]], endpoint: str
) -> Request:
    """Return what a body asks for, as a request that `send` sends to the address `endpoint`."""
    return Request(
        form.messages,
        form.tools,
        form.model,
        form.max_tokens,
        send,
        endpoint=endpoint,
        is_shown=form.is_streamed,
    )


def _form(method: str, url: str, content: bytes) -> Form | None:
    path = url.partition("?")[0].rstrip("/")
    if method != "POST" or not path.endswith(("/chat/completions", "/responses", "/messages")):
        return None
    try:
        return form_of(path, json.loads(content))
    except (ValueError, RecursionError):
        return None


class _Wire:
    """Sends the requests of an exchange and reads the responses."""

    def __init__(self, protection: Protection, form: Form, endpoint: str, send: Send) -> None:
        self._form, self._send = form, send
        self._cache_breakpoints = protection.cache_breakpoints
        self._last: Reply | None = None
        self._shown: Reply | None = None
        request = request_of(form, self._sent, endpoint)
        fitter = protection.fitter
        request = fused("shorten tool schemas", lambda: self._offered(fitter, request), request)
        self.exchange = Exchange(fitter, protection.telemetry, request)

    @property
    def is_streaming(self) -> bool:
        """Whether the response is a stream that is handed on, and ends later."""
        return self._shown is not None

    def _offered(self, fitter: Fitter, request: Request) -> Request:
        form = self._form
        form.shown_tools = fitter.shown_tools(request, form.given_tools, form.tool_choice)
        return request if form.shown_tools is None else replace(request, tools=form.tools)

    async def _sent(self, messages: list[Message], max_tokens: int | None) -> Answer:
        if self._last is not None:
            await self._last.close()
        content = fused("write a request", lambda: self._content(messages, max_tokens), None)
        self._last = reply = await self._send(content)
        if reply.status >= _FIRST_ERROR:
            raise Fault(reply, reply.status, await reply.text())
        if not reply.is_stream:
            body = await reply.json()
            # OpenRouter and other relays hand on a refusal with the status of their own success.
            if (error := reported(body)) is not None:
                raise _fault(reply, error)
            return _answer(reply, body)
        attempt = Attempt(messages, max_tokens)
        event = await reply.beginning(
            lambda end: self._learn(reply, attempt, end), is_patient=self._may_be_refused()
        )
        error = failure(event)
        if error is not None:
            raise _fault(reply, error)
        # Something has been shown, though nobody knows what.
        self._shown = reply
        return Answer(reply, content="…", is_complete=False)

    def _may_be_refused(self) -> bool:
        """Return whether the request is of a size that was refused before, or may be."""
        if self.exchange.last is not None:
            return True
        request = self.exchange.request
        window = self.exchange.fitter.stated(request).tokens
        bound = token_bound(request.messages, request.model, tools=request.tools)
        return bound is None or bound > window // _SMALL

    def _content(self, messages: list[Message], max_tokens: int | None) -> bytes | None:
        """Return the body; `None` where it is the one that came."""
        form, body = self._form, self._form.body
        is_changed = max_tokens != form.max_tokens or form.shown_tools is not None
        if is_changed or not is_same(messages, form.messages):
            body = form.replaced(messages, max_tokens)
        if self._cache_breakpoints:
            body = with_breakpoints(form, body)
        if body is form.body:
            return None
        try:
            return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:  # half a character, which JSON can only hold as an escape
            return json.dumps(body, separators=(",", ":")).encode()

    def _learn(self, reply: Reply, attempt: Attempt, end: EndReader) -> None:
        if reply is not self._shown:
            return  # refused in its first event: `recover` has heard of it
        exchange = self.exchange
        answer = Answer(reply, content="…", usage=end.usage)
        if end.failure is not None:
            # Too late to be sent again, not to be known the next time.
            exchange.failed(attempt, _fault(reply, end.failure))
        else:
            if end.usage:
                exchange.learn(attempt, answer)
            exchange.telemetry.answered(exchange.request, answer)
        exchange.telemetry.ended(exchange.request, exchange.fitter)


def _fault(reply: Reply, error: Json) -> Fault:
    """Return what a stream says of a request that failed."""
    status = error.get("code") or error.get("status")
    text = json.dumps(error, ensure_ascii=False)
    return Fault(reply, status if isinstance(status, int) else None, text)


def _answer(reply: Reply, body: Json) -> Answer:
    """Return what the body of any of the three APIs says."""
    usage = usage_of(body)
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(choice, dict):
        message = choice.get("message")
        said: Json = message if isinstance(message, dict) else {}
        reason = choice.get("finish_reason")
        return Answer(reply, said.get("content"), said.get("tool_calls"), reason, usage)
    output = body.get("output", body.get("content"))
    return Answer(reply, output, None, body.get("stop_reason"), usage)
