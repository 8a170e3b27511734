"""`ContextBuilder`: puts a session's summary and rules at the end of its system prompt."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from nanobot_context.patches.declaration import Context, Part, Patch, then
from nanobot_context.types import Message


def _patch(part: Part, why: str) -> Patch:
    """Return the patch through which the plug-in named `part` shows its section."""

    def show(_: Context, builder: Any, messages: list[Message], *args: Any, **kwargs: Any) -> None:
        named = kwargs.get("transcript", kwargs.get("history"))
        plugin = import_module(f"nanobot_context.plugins.{part}")
        plugin.show(messages, args[0] if args else named)

    return Patch(
        owner="nanobot.agent.context:ContextBuilder",
        attribute="build_transcript",
        parameters=("transcript",),
        formerly="build_messages",
        former_parameters=("history",),
        why=why,
        wrap=then(f"show {part}", show),
        part=part,
        needed=True,
    )


PATCHES = (
    _patch("summaries", "the summary stands in the system prompt"),
    _patch("rules", "rules and calls that nanobot leaves out stand in the system prompt"),
)
