"""Server-sent events: what the first one says, and the usage that the last ones report."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]

# What a server says before it has begun to read the prompt.
_BEFORE = ("response.created", "response.queued", "response.in_progress", "message_start")


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
        """Return the lines that end in `piece`."""
        if not self.can_read:
            return []
        try:
            text = self._packed.decompress(piece) if self._packed else piece
        except zlib.error:
            self.can_read = False
            return []
        *lines, self._rest = (self._rest + text).split(b"\n")
        return lines


class Beginning:
    """The first event of a stream that says how the request went.

    Attributes:
        is_over: Whether it has come, or will not be waited for.
        event: What it says; `None` where it is no JSON object.
    """

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self.is_over = not lines.can_read
        self.event: Json | None = None

    def feed(self, piece: bytes) -> None:
        """Take in the next piece of the body."""
        for line in self._lines.feed(piece):
            if self.is_over:
                return
            if line.startswith(b":"):
                # It keeps a connection open, which must not wait for more.
                self.is_over = True
            elif line.startswith(b"data:"):
                event = _json(line[5:])
                if event is None or event.get("type") not in _BEFORE:
                    self.is_over, self.event = True, event
        self.is_over |= not self._lines.can_read


def failure(event: Json | None) -> Json | None:
    """Return what an event says of a request that failed; `None` for any other."""
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
    # OpenAI's Responses: an event that is the error.
    return event if event.get("type") == "error" else None


class UsageReader:
    """Reads from the pieces that pass what was used, and hands it on when the stream has ended."""

    def __init__(self, lines: Lines, use: Callable[[Json], None]) -> None:
        self._lines, self._use = lines, use
        self._usage: Json = {}

    def feed(self, piece: bytes) -> None:
        """Take in a piece that goes on to the client."""
        for line in self._lines.feed(piece):
            if line.startswith(b"data:") and b'"usage"' in line:
                self._usage |= usage_of(_json(line[5:]) or {})

    def end(self) -> None:
        """Say what was found, once."""
        use, self._use = self._use, lambda _: None
        use(self._usage)


def usage_of(event: Json) -> Json:
    """Return the usage that an event or a response reports; empty where it reports none."""
    for one in (event, event.get("response"), event.get("message")):
        usage = one.get("usage") if isinstance(one, dict) else None
        if isinstance(usage, dict):
            return {key: value for key, value in usage.items() if value is not None}
    return {}


def _json(text: bytes) -> Json | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
