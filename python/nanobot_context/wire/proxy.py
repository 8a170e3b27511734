"""Serves a local proxy that fits each request to the model's window and repairs refusals.

Everything else goes through as it is, streams byte for byte as they come. Keys are those of the
client: they are sent on, and neither kept nor logged.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import socket
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from nanobot_context.errors import InvalidArgumentError
from nanobot_context.wire.exchange import Protection
from nanobot_context.wire.forms import endpoint_of
from nanobot_context.wire.wrapped import protected_client

TOKEN_HEADER = "x-nanobot-context-token"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
SERVER_OPTIONS: dict[str, Any] = {
    "log_level": "warning",
    "access_log": False,  # paths may hold the token
    "server_header": False,
    "date_header": False,
    "timeout_graceful_shutdown": 5,  # or one call without an answer keeps it up
}
"""How uvicorn adds nothing to what goes through it, and ends."""

# Headers of the connection, not of the message. Source: RFC 9110, section 7.6.1.
_HOP_BY_HOP = set(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    b"transfer-encoding upgrade".split()
)
_BACKLOG = 2_048
# How a body may be packed, zlib's bit for a header of either, and the most bytes that are unpacked.
_PACKED = ("gzip", "x-gzip", "deflate")
_ANY_HEADER = 32
_MOST_UNPACKED = 256 * 1024 * 1024
_VERSION = re.compile(r"/v\d+(?:beta)?")

_log = logging.getLogger("nanobot_context")


def make_app(upstream: str, protection: Protection, *, token: str | None = None) -> Starlette:
    """Return the proxy as an ASGI application.

    Args:
        upstream: The address of the model's server: `https://api.openai.com/v1`.
        token: What clients must send in the header `x-nanobot-context-token`, or as the first part
            of the path. Without one, only requests to this machine's own names are answered.

    Raises:
        InvalidArgumentError: `upstream` is the address of one call, which clients add themselves.
    """
    bare = upstream.partition("?")[0].rstrip("/")
    call = bare.removeprefix(endpoint_of(upstream))
    if call:
        raise InvalidArgumentError(
            f"`upstream` ends with `{call}`, which clients add themselves\n"
            f"hint: give the address without `{call}`",
            argument="upstream",
        )
    relay = Relay(upstream, protection, token)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with relay:
            yield
        # A process ended by a signal has no other time for it.
        protection.telemetry.counters.save()

    # Reject a browser page whose host name was rebound to this machine (DNS rebinding).
    known = [] if token else [Middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK, "[::1]"])]
    return Starlette(routes=[Mount("/", app=relay)], middleware=known, lifespan=lifespan)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket to which clients can connect from now on.

    uvicorn's own names no protocol, so that asyncio leaves Nagle's algorithm on: 40 ms a request.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


class Relay:
    """The ASGI application that sends requests on."""

    def __init__(self, upstream: str, protection: Protection, token: str | None = None) -> None:
        self._upstream = upstream.rstrip("/")
        self._token = token
        # An answer takes as long as it takes: it is the client that gives up.
        timeout = httpx.Timeout(None, connect=30.0)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        client = httpx.AsyncClient(timeout=timeout, limits=limits, follow_redirects=False)
        self._client: httpx.AsyncClient = protected_client(client, protection)

    async def __aenter__(self) -> Relay:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._client.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        path = self._path(request)
        if path is None:
            error = _error(401, "the proxy's token is missing or wrong", "unauthorized")
            await error(scope, receive, send)
            return
        try:
            body = await request.body()
        except ClientDisconnect:
            return
        outgoing = self._outgoing(request, path, body)
        await _until_gone(receive, lambda: self._relay(outgoing, scope, receive, send))

    def _path(self, request: Request) -> str | None:
        """Return the path to ask upstream for; `None` without the token that is needed."""
        path = request.url.path
        if self._token is not None:
            first, _, rest = path.lstrip("/").partition("/")
            if _is_same(first, self._token):
                path = f"/{rest}"
            elif not _is_same(request.headers.get(TOKEN_HEADER, ""), self._token):
                return None
        # Both may name the version of the API.
        version = _VERSION.match(path)
        if version and self._upstream.endswith(version[0]):
            path = path[version.end() :]
        return path

    def _outgoing(self, request: Request, path: str, body: bytes) -> httpx.Request:
        query = f"?{request.url.query}" if request.url.query else ""
        own = {b"host", b"content-length", TOKEN_HEADER.encode()}
        unpacked = _unpacked(body, request.headers.get("content-encoding", ""))
        if unpacked is not None:
            body, own = unpacked, {*own, b"content-encoding"}
        headers = _passed(request.headers.raw, own)
        url = f"{self._upstream}{path}{query}"
        has_body = bool(body) or "content-length" in request.headers
        content = body if has_body else None
        return httpx.Request(request.method, url, headers=headers, content=content)

    async def _relay(
        self, outgoing: httpx.Request, scope: Scope, receive: Receive, send: Send
    ) -> None:
        try:
            response = await self._client.send(outgoing, stream=True)
        except httpx.TimeoutException as error:
            problem = _error(504, f"upstream does not answer: {error!r}", "upstream_timeout")
            await problem(scope, receive, send)
            return
        except httpx.TransportError as error:
            problem = _error(502, f"upstream cannot be reached: {error!r}", "upstream_error")
            await problem(scope, receive, send)
            return
        try:
            await _hand_on(response, send)
        except httpx.TransportError as error:
            # The connection ends without the end of the body, as the one upstream did.
            _log.warning("upstream broke off: %r", error)
        finally:
            await response.aclose()


def _unpacked(body: bytes, encoding: str) -> bytes | None:
    """Return a body that was packed; `None` if it was not, or in no way that is known here."""
    if encoding.strip().lower() not in _PACKED:
        return None
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | _ANY_HEADER)
    try:
        unpacked = unpacking.decompress(body, _MOST_UNPACKED)
    except zlib.error:
        return None
    return unpacked if unpacking.eof else None


async def _hand_on(response: httpx.Response, send: Send) -> None:
    is_read = response.is_stream_consumed
    # What has been read has been unpacked.
    dropped = {b"content-encoding", b"content-length"} if is_read else set()
    headers = _passed(response.headers.raw, dropped)
    if is_read:
        headers.append((b"content-length", str(len(response.content)).encode()))
    start = {"type": "http.response.start", "status": response.status_code, "headers": headers}
    await send(start)
    if is_read:
        await send({"type": "http.response.body", "body": response.content})
        return
    async for piece in response.aiter_raw():
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _until_gone(receive: Receive, work: Callable[[], Awaitable[None]]) -> None:
    """Do `work` until the client goes away."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    working, waiting = asyncio.ensure_future(work()), asyncio.ensure_future(gone())
    try:
        await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
    finally:
        is_done = working.done()
        working.cancel()
        waiting.cancel()
        await asyncio.gather(working, waiting, return_exceptions=True)
    if is_done:
        working.result()


def _passed(
    headers: Iterable[tuple[bytes, bytes]], dropped: set[bytes]
) -> list[tuple[bytes, bytes]]:
    """Return the headers that are forwarded."""
    given = [(name.lower(), value) for name, value in headers]
    named = b",".join(value for name, value in given if name == b"connection")
    out = _HOP_BY_HOP | dropped | {name.strip().lower() for name in named.split(b",")}
    return [(name, value) for name, value in given if name not in out]


def _is_same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())


def _error(status: int, message: str, code: str) -> Any:
    error = {"message": f"nanobot-context: {message}", "type": code, "code": code}
    return JSONResponse({"error": error}, status_code=status)
