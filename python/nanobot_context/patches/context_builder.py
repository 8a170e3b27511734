"""`ContextBuilder`: the summary of a session stands at the end of its system prompt."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from nanobot_context.guard.fuse import fused
from nanobot_context.patches.declaration import Context, Patch
from nanobot_context.types import Message


def _wrap_build(original: Callable[..., list[Message]], context: Context) -> Callable[..., Any]:
    from nanobot_context.plugins.summaries import show

    @functools.wraps(original)
    def build(self: Any, *args: Any, **kwargs: Any) -> list[Message]:
        messages = original(self, *args, **kwargs)
        if context.active:
            named = kwargs.get("transcript", kwargs.get("history"))
            given: Any = args[0] if args else named
            fused("show a summary", lambda: show(messages, given), None)
        return messages

    return build


PATCHES = (
    Patch(
        owner="nanobot.agent.context:ContextBuilder",
        attribute="build_transcript",
        parameters=("transcript",),
        formerly="build_messages",
        former_parameters=("history",),
        why="the summary stands in the system prompt",
        wrap=_wrap_build,
        part="summaries",
        needed=True,
    ),
)
