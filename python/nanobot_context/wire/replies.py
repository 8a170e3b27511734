"""Reads replies of a model server, as the clients httpx and httpx2 hand them over."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache
from typing import Any

from nanobot_context.guard.fuse import fused
from nanobot_context.json_text import parsed
from nanobot_context.wire.streams import Beginning, EndReader, Json, Lines

_EVENTS = "text/event-stream"
_REFUSED = 400


class Reply:
    """One response, of a client that is async or not.

    Nothing here waits but for the server: without asyncio, a coroutine of these ends at once.

    Attributes:
        response: The response itself, which is handed on.
    """

    def __init__(self, response: Any, *, is_async: bool) -> None:
        self.response = response
        self._is_async = is_async

    @property
    def status(self) -> int:
        """The HTTP status."""
        return int(self.response.status_code)

    @property
    def is_stream(self) -> bool:
        """Whether the body is a stream of events."""
        return str(self.response.headers.get("content-type", "")).startswith(_EVENTS)

    def refuse(self) -> None:
        """Let the client raise what the body says, where it came with the status of a success."""
        if not self.is_stream:
            as_refusal(self.response)

    async def text(self) -> str:
        """Return the whole body."""
        if self._is_async:
            await self.response.aread()
        else:
            self.response.read()
        return str(self.response.text)

    async def json(self) -> Json:
        """Return the whole body as a JSON object; empty if it is not one."""
        body = parsed(await self.text())
        return body if isinstance(body, dict) else {}

    async def beginning(self, use: Callable[[EndReader], None], *, is_patient: bool) -> Json | None:
        """Return the first event that tells how the request went; the stream still has it.

        Args:
            is_patient: Whether to wait for it through what says nothing.
            use: Called with what was found when the stream has been read to its end, or is closed
                before that.
        """
        given, encoding = self.response.stream, self.response.headers.get("content-encoding")
        pieces = given.__aiter__() if self._is_async else given.__iter__()
        begun = Beginning(Lines(encoding), is_patient=is_patient)
        read: list[bytes] = []
        failed: Exception | None = None
        while not begun.is_over:
            try:
                piece = await anext(pieces) if self._is_async else next(pieces)
            except (StopIteration, StopAsyncIteration):
                begun.end()
                break
            except Exception as error:
                # It is the client's to see, behind what came before it.
                failed = error
                break
            read.append(piece)
            begun.feed(piece)
        end = EndReader(Lines(encoding), use)
        again = _stream_class(type(self.response).__module__.partition(".")[0], self._is_async)
        self.response.stream = again(given, read, pieces, failed, end)
        return begun.event

    async def close(self) -> None:
        """Close the response."""
        if self._is_async:
            await self.response.aclose()
        else:
            self.response.close()


def as_refusal(response: Any) -> None:
    """Give a response whose body is a refusal the status of one."""
    if response.is_success:
        response.status_code = _REFUSED


class _Again:
    """A stream that is read from its beginning, though that has been read."""

    def __init__(
        self,
        given: Any,
        read: list[bytes],
        pieces: Any,
        failed: Exception | None,
        end: EndReader,
    ) -> None:
        self._given, self._read, self._pieces = given, read, pieces
        self._failed, self._reader = failed, end

    def _seen(self, piece: bytes) -> bytes:
        fused("read a stream", lambda: self._reader.feed(piece), None)
        return piece

    def _begin(self) -> Iterator[bytes]:
        read, self._read = self._read, []
        for piece in read:
            yield self._seen(piece)
        if self._failed is not None:
            raise self._failed

    def _end(self) -> None:
        fused("learn from a stream", self._reader.end, None)


class _Pieces(_Again):
    def __iter__(self) -> Iterator[bytes]:
        yield from self._begin()
        for piece in self._pieces:
            yield self._seen(piece)
        self._end()

    def close(self) -> None:
        self._end()
        self._given.close()


class _AsyncPieces(_Again):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._begin():
            yield piece
        async for piece in self._pieces:
            yield self._seen(piece)
        self._end()

    async def aclose(self) -> None:
        self._end()
        await self._given.aclose()


@cache
def _stream_class(package: str, is_async: bool) -> type[_Again]:
    """Return a stream class that a client of `package`, httpx or httpx2, accepts."""
    client = importlib.import_module(package)
    own = _AsyncPieces if is_async else _Pieces
    base = client.AsyncByteStream if is_async else client.SyncByteStream
    return type(own.__name__, (own, base), {})
