"""The window that nanobot itself goes by, for what it replays of a session and when it archives.

From 0.1.4.post5 on that is one number for every model: 65,536, later 200,000, unless the user sets
another. A larger model gets no more history than that, and its session is summarised by a model
call long before it is full. Here the default stands for the model's window where that is larger. It
never gets smaller: then nanobot would call a model for summaries of what the guard fits without.
"""

from __future__ import annotations

from typing import Any

from nanobot_context.guard.fuse import fused
from nanobot_context.patches.declaration import Context, Patch

NAME = "context_window_tokens"


def _following(slot: Any, context: Context) -> property:
    """Return the attribute that follows the model.

    Instances keep their own value where they always had it, so that nothing is left behind.
    """

    def read(self: Any) -> Any:
        if slot is not None:
            return slot.__get__(self)
        try:
            return vars(self)[NAME]
        except KeyError:
            raise AttributeError(NAME) from None

    def write(self: Any, value: Any) -> None:
        if slot is not None:
            slot.__set__(self, value)
        else:
            vars(self)[NAME] = value

    def follow(self: Any) -> Any:
        own = read(self)

        def larger() -> Any:
            endpoint = getattr(getattr(self, "provider", None), "api_base", None)
            where = endpoint if isinstance(endpoint, str) else ""
            return context.windows.in_place_of(own, getattr(self, "model", None), where)

        return fused("follow the model's window", larger, own) if context.active else own

    return property(follow, write)


# Where it is kept: the loop and what archives for it, and since 0.3.0 one record for both.
_OWNERS = (
    ("nanobot.agent.loop:AgentLoop", "0.1.4.post5", "0.2.2"),
    ("nanobot.agent.memory:MemoryConsolidator", "0.1.4.post5", "0.1.4.post6"),
    ("nanobot.agent.memory:Consolidator", "0.1.5", "0.2.2"),
    ("nanobot.utils.llm_runtime:LLMRuntime", "0.3.0", ""),
)

PATCHES = tuple(
    Patch(
        owner=owner,
        attribute=NAME,
        kind="value",
        parameters=("model",),
        why="nanobot's own window follows a larger model",
        wrap=_following,
        part="own window",
        since=since,
        until=until,
    )
    for owner, since, until in _OWNERS
)
