"""Reads server-sent events: what the first one says, and a later usage or error."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from typing import Any

from nanobot_context.json_text import parsed

Json = dict[str, Any]

_OPEN = b"."

# Events that a server sends before it has begun to read the prompt.
_BEFORE = ("response.created", "response.queued", "response.in_progress", "message_start", "ping")

# How long that and comments, which keep a connection open, are waited through where a prompt may be
# refused: servers do that at once.
_PATIENCE_SECONDS = 5.0


class Lines:
    """The lines of a body that comes in pieces.

    Attributes:
        can_read: Whether the body's encoding is known.
    """

    def __init__(self, encoding: str | None) -> None:
        self.can_read = (encoding or "identity").lower() in ("identity", "gzip", "deflate")
        is_packed = self.can_read and (encoding or "identity").lower() != "identity"
        # 32: zlib finds out which of the two it is.
        self._packed = zlib.decompressobj(zlib.MAX_WBITS | 32) if is_packed else None
        self._rest = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the lines that end in `piece`.

        They may end in CR, too, as the standard says. CR and LF in two pieces make an empty line,
        which has no meaning.
        """
        if not self.can_read:
            return []
        try:
            text = self._packed.decompress(piece) if self._packed else piece
        except zlib.error:
            self.can_read = False
            return []
        # The last one is open, if only for the mark.
        *lines, rest = (self._rest + text + _OPEN).splitlines()
        self._rest = rest.removesuffix(_OPEN)
        return lines

    def end(self) -> bytes:
        """Return what stands behind the last line that has ended."""
        return self._rest


class Beginning:
    """The first event of a stream that says how the request went.

    Args:
        is_patient: Whether to wait for it through what says nothing.

    Attributes:
        is_over: Whether it has come, or is no longer waited for.
        event: The event; `None` if it is not a JSON object.
    """

    def __init__(self, lines: Lines, *, is_patient: bool) -> None:
        self._lines = lines
        self._until = time.monotonic() + _PATIENCE_SECONDS if is_patient else 0.0
        self.is_over = not lines.can_read
        self.event: Json | None = None
        self._body: list[bytes] = []

    def feed(self, piece: bytes) -> None:
        """Read the next piece of the body."""
        for line in self._lines.feed(piece):
            if self.is_over:
                return
            if line.startswith(b"data:"):
                event = _json(line[5:])
                if event is None or not _is_preliminary(event):
                    self.is_over, self.event = True, event
            elif self._body or line.lstrip().startswith(b"{"):
                self._body.append(line)
        self.is_over |= time.monotonic() > self._until or not self._lines.can_read

    def end(self) -> None:
        """Take the body as one event where it has ended without any: it may be a bare error."""
        if not self.is_over:
            self.event = _json(b"\n".join([*self._body, self._lines.end()]))


def _is_preliminary(event: Json) -> bool:
    """Return whether a server may say this and refuse the prompt after it."""
    if "choices" not in event:
        return event.get("type") in _BEFORE
    return not event.get("error") and not event.get("usage") and holds_roles_alone(event["choices"])


def holds_roles_alone(choices: Any) -> bool:
    """Return whether the choices of a chunk hold only roles."""
    for choice in choices if isinstance(choices, list) else ():
        delta = choice.get("delta") if isinstance(choice, dict) else choice
        said = delta.items() if isinstance(delta, dict) else ()
        if not isinstance(delta, dict) or choice.get("finish_reason"):
            return False
        if any(value for key, value in said if key != "role"):
            return False
    return True


def failure(event: Json | None) -> Json | None:
    """Return the error of an event; `None` if it reports none."""
    if event is None:
        return None
    if event.get("type") == "response.failed":
        response = event.get("response")
        event = response if isinstance(response, dict) else event
    error = event.get("error")
    if isinstance(error, str) and error:
        return {"message": error}
    if isinstance(error, dict) and error:
        return error
    # MiniMax: what went wrong stands beside the answer, which is missing; 0 is that nothing did.
    outcome = event.get("base_resp")
    if isinstance(outcome, dict) and outcome.get("status_code"):
        return outcome
    # OpenAI's Responses: an event that is the error.
    return event if event.get("type") == "error" else None


def reported(body: Json) -> Json | None:
    """Return the error that a response reports in place of an answer; `None` beside one."""
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(choice, dict):
        # OpenRouter: the error of the provider behind it, in place of a message.
        message = choice.get("message")
        has_said = isinstance(message, dict) and (
            message.get("content") or message.get("tool_calls")
        )
        return None if has_said else failure(choice)
    return None if body.get("output") or body.get("content") else failure(body)


class EndReader:
    """Reads the usage or the error in a passing stream, and reports it at the end.

    Attributes:
        usage: What was used; empty where nothing was reported.
        failure: What was said of a request that failed after all.
    """

    def __init__(self, lines: Lines, use: Callable[[EndReader], None]) -> None:
        self._lines, self._use = lines, use
        self.usage: Json = {}
        self.failure: Json | None = None

    def feed(self, piece: bytes) -> None:
        """Read a piece that is passed on to the client."""
        for line in self._lines.feed(piece):
            if line.startswith(b"data:") and (b'"usage"' in line or b'"error"' in line):
                event = _json(line[5:]) or {}
                self.usage |= usage_of(event)
                self.failure = failure(event) or self.failure

    def end(self) -> None:
        """Call `use` with the findings, once."""
        use, self._use = self._use, lambda _: None
        use(self)


def usage_of(event: Json) -> Json:
    """Return the usage that an event or a response reports; empty where it reports none."""
    for one in (event, event.get("response"), event.get("message")):
        usage = one.get("usage") if isinstance(one, dict) else None
        if isinstance(usage, dict):
            return {key: value for key, value in usage.items() if value is not None}
    return {}


def _json(text: bytes) -> Json | None:
    value = parsed(text)
    return value if isinstance(value, dict) else None
