"""`ContextBuilder`: a session's summary and rules stand at the end of its system prompt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nanobot_context.patches.declaration import Context, Part, Patch, then
from nanobot_context.types import Message


def _given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    named = kwargs.get("transcript", kwargs.get("history"))
    return args[0] if args else named


def _show(_: Context, builder: Any, messages: list[Message], *args: Any, **kwargs: Any) -> None:
    from nanobot_context.plugins.summaries import show

    show(messages, _given(args, kwargs))


def _show_rules(
    _: Context, builder: Any, messages: list[Message], *args: Any, **kwargs: Any
) -> None:
    from nanobot_context.plugins.rules import show

    show(messages, _given(args, kwargs))


def _patch(part: Part, why: str, act: Callable[..., None]) -> Patch:
    return Patch(
        owner="nanobot.agent.context:ContextBuilder",
        attribute="build_transcript",
        parameters=("transcript",),
        formerly="build_messages",
        former_parameters=("history",),
        why=why,
        wrap=then(f"show {part}", act),
        part=part,
        needed=True,
    )


PATCHES = (
    _patch("summaries", "the summary stands in the system prompt", _show),
    _patch("rules", "rules that nanobot leaves out stand in the system prompt", _show_rules),
)
