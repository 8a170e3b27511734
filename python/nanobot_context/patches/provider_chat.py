"""Generation "provider-chat": nanobot 0.1.3.post7, 0.1.4 and 0.1.4.post2 to post4.

The loop, the subagents, the memory consolidation and the heartbeat all call `provider.chat(...)`
directly, and each provider class has its own `chat` with its own `except Exception`. So the choke
point is the `chat` of every concrete class: of those that are loaded, and through
`__init_subclass__` of those that will be (`CustomProvider` is imported only when the
configuration names it).
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any

from nanobot_context.guard.fuse import fused
from nanobot_context.guard.guard import Guard, in_flight
from nanobot_context.guard.request import Call, positional_names
from nanobot_context.host.detect import subclasses
from nanobot_context.patches.patching import PatchSet

__all__ = ["CLEAR_COMMAND", "patch"]

CLEAR_COMMAND = "/new"

Chat = Callable[..., Awaitable[Any]]


def patch(provider: type, guard: Guard, patches: PatchSet) -> None:
    """Protect `chat` of every concrete subclass of `provider`, loaded now or later."""

    def protect(cls: type) -> None:
        chat = cls.__dict__.get("chat")
        if chat is None or getattr(chat, "__isabstractmethod__", False):
            return
        patches.replace(cls, "chat", lambda original: _wrap(original, guard, patches))

    def wrap_init_subclass(original: Any) -> classmethod[Any, Any, None]:
        own = original if isinstance(original, classmethod) else None

        def init_subclass(cls: type[Any], /, **kwargs: Any) -> None:
            if own is not None:
                own.__get__(None, cls)(**kwargs)
            else:
                # What `super().__init_subclass__` in `provider` itself would call.
                super(provider, cls).__init_subclass__(**kwargs)  # type: ignore[arg-type]
            if patches.active:
                protect(cls)

        return classmethod(init_subclass)

    patches.replace(provider, "__init_subclass__", wrap_init_subclass)
    for cls in subclasses(provider):
        protect(cls)


def _wrap(original: Chat, guard: Guard, patches: PatchSet) -> Chat:
    names, defaults = positional_names(original)

    @functools.wraps(original)
    async def chat(self: Any, *args: Any, **kwargs: Any) -> Any:
        if patches.active and not in_flight():
            call = Call(names, defaults, args, kwargs)
            send = functools.partial(original, self)
            request = fused("read a request", lambda: call.request(send, provider=self), None)
            if request is not None:
                return await guard.run(request)
        return await original(self, *args, **kwargs)

    return chat
