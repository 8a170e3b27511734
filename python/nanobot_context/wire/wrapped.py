"""Wraps OpenAI's and Anthropic's own clients: each request fits, and is repaired.

What sends a client's requests is replaced in a copy of it. So the client is as it was: its methods,
its types, its retries, its streams.
"""

from __future__ import annotations

import copy
import inspect
from functools import cache
from typing import Any, TypeVar

from nanobot_context.arguments import check_instance, check_whole, invalid
from nanobot_context.recovery import run_unawaited
from nanobot_context.settings import Settings
from nanobot_context.wire.exchange import Protection
from nanobot_context.wire.replies import Reply

Client = TypeVar("Client")


def wrap(
    client: Client,
    *,
    context_window: int | None = None,
    settings: Settings | None = None,
    cache_breakpoints: bool = False,
) -> Client:
    """Return a copy of `client` whose requests fit the model's window, and get through.

    `OpenAI`, `AsyncOpenAI`, `AzureOpenAI`, `Anthropic`, `AsyncAnthropic`: what they send to
    `chat.completions`, `responses` and `messages`, by whichever method, streams included. A
    request that fits goes out as it is. One that does not is compressed as `compress_messages`
    does; where the server refuses it all the same, it is sent again to the limit that the server
    states, and that limit holds for the requests that follow, by model and address. Where nothing
    smaller is accepted, the client raises what the server said. Requests that name an earlier
    response or a conversation of the server's are left alone, and so is everything else.

    Args:
        client: The client. It is not changed, and sends for its copy: closing either closes both.
        context_window: The window of every model in tokens; `None` is what is known of each: see
            `get_context_window`. What a server has stated counts where it is smaller.
        settings: Limits of the compression.
        cache_breakpoints: Whether requests that have no breakpoints for the provider's cache get
            them: `cache_control` for Claude, without which Anthropic caches nothing, and
            `prompt_cache_breakpoint` for OpenAI, of which older models know nothing.

    Raises:
        InvalidArgumentError: `client` is something else.
    """
    check_whole("context_window", context_window, optional=True)
    check_instance("settings", settings, Settings, optional=True)
    http = getattr(client, "_client", None)
    if not (callable(getattr(client, "copy", None)) and callable(getattr(http, "send", None))):
        raise invalid("client", "a client of OpenAI's or Anthropic's", client)
    check_instance("cache_breakpoints", cache_breakpoints, bool)
    protection = Protection.by(
        settings or Settings(), context_window, cache_breakpoints=cache_breakpoints
    )
    wrapped: Client = client.copy(http_client=protected_client(http, protection))  # type: ignore[attr-defined]
    return wrapped


def protected_client(http: Any, protection: Protection) -> Any:
    """Return a copy of an httpx client that protects requests; `http` sends them."""
    given = getattr(http, "nanobot_context_given", http)
    protected = copy.copy(given)
    kind: Any = type(given)
    protected.__class__ = _protected_class(kind)
    protected.nanobot_context_given = given
    protected.nanobot_context_protection = protection
    return protected


@cache
def _protected_class(base: Any) -> type[Any]:
    is_async = inspect.iscoroutinefunction(base.send)
    own = _SendsAsync if is_async else _Sends
    return type(base.__name__, (own, base), {})


class _Protected:
    nanobot_context_given: Any
    nanobot_context_protection: Protection

    def __del__(self) -> None:
        """Close nothing: the connections are those of the client that was given."""

    @property
    def is_closed(self) -> bool:
        return bool(self.nanobot_context_given.is_closed)


class _Sends(_Protected):
    def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
        given = self.nanobot_context_given

        async def send(content: bytes | None) -> Reply:
            response = given.send(_with(request, content), stream=True, **options)
            return Reply(response, is_async=False)

        body = request.read()
        url = str(request.url)
        response = run_unawaited(
            self.nanobot_context_protection.run(request.method, url, body, send)
        )
        if not stream:
            response.read()
        return response

    def close(self) -> None:
        self.nanobot_context_given.close()


class _SendsAsync(_Protected):
    async def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
        given = self.nanobot_context_given

        async def send(content: bytes | None) -> Reply:
            response = await given.send(_with(request, content), stream=True, **options)
            return Reply(response, is_async=True)

        body = await request.aread()
        url = str(request.url)
        response = await self.nanobot_context_protection.run(request.method, url, body, send)
        if not stream:
            await response.aread()
        return response

    async def aclose(self) -> None:
        await self.nanobot_context_given.aclose()


def _with(request: Any, content: bytes | None) -> Any:
    """Return `request` with another body."""
    if content is None:
        return request
    headers = [
        (name, value)
        for name, value in request.headers.raw
        if name.lower() not in (b"content-length", b"transfer-encoding")
    ]
    return type(request)(
        request.method,
        request.url,
        headers=headers,
        content=content,
        extensions=request.extensions,
    )
