"""`ContextBuilder`: the summary of a session stands at the end of its system prompt."""

from __future__ import annotations

from typing import Any

from nanobot_context.patches.declaration import Context, Patch, then
from nanobot_context.types import Message


def _show(_: Context, builder: Any, messages: list[Message], *args: Any, **kwargs: Any) -> None:
    from nanobot_context.plugins.summaries import show

    named = kwargs.get("transcript", kwargs.get("history"))
    show(messages, args[0] if args else named)


PATCHES = (
    Patch(
        owner="nanobot.agent.context:ContextBuilder",
        attribute="build_transcript",
        parameters=("transcript",),
        formerly="build_messages",
        former_parameters=("history",),
        why="the summary stands in the system prompt",
        wrap=then("show a summary", _show),
        part="summaries",
        needed=True,
    ),
)
