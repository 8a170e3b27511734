"""Generations "safe-chat" (nanobot 0.1.4.post5) and "safe-chat-stream" (0.1.4.post6 and later).

Every model call goes through `LLMProvider._safe_chat(**kwargs)` or, from 0.1.4.post6 on, its twin
`_safe_chat_stream(**kwargs)`, which no provider overrides. They stand inside `chat_with_retry`,
whose check for transient errors looks for "429", "503" and the like anywhere in an error's text: a
refusal of "70503 tokens" was sent four times. Seen from there a recovered request has never failed,
and the friendly text of a request that was given up has no digits.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any

from nanobot_context.guard.fuse import fused
from nanobot_context.guard.guard import Guard, in_flight
from nanobot_context.guard.request import Call
from nanobot_context.patches.patching import PatchSet

__all__ = ["CLEAR_COMMAND", "METHODS", "patch"]

CLEAR_COMMAND = "/new"

SafeChat = Callable[..., Awaitable[Any]]


METHODS = ("_safe_chat", "_safe_chat_stream")


def patch(provider: type, guard: Guard, patches: PatchSet) -> None:
    """Protect those of `METHODS` that this release has, which serve every subclass."""
    for name in METHODS:
        if name in provider.__dict__:
            patches.replace(provider, name, lambda original: _wrap(original, guard, patches))


def _wrap(original: SafeChat, guard: Guard, patches: PatchSet) -> SafeChat:
    @functools.wraps(original)
    async def safe_chat(self: Any, **kwargs: Any) -> Any:
        if patches.active and not in_flight():
            call = Call((), {}, (), kwargs)
            send = functools.partial(original, self)
            request = fused("read a request", lambda: call.request(send, provider=self), None)
            if request is not None:
                return await guard.run(request)
        return await original(self, **kwargs)

    return safe_chat
