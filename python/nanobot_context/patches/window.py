"""The window that nanobot itself goes by, for what it replays of a session and when it archives.

From 0.1.4.post5 on that is one number for every model: 65,536, later 200,000, unless somebody has
written another. What was written is a cap for the guard, too, and is read here: in code it stands
nowhere else. A default that nobody has written stands for a known model's window where that is
larger, up to 200,000. It never gets smaller: then nanobot would call a model for summaries of what
the guard fits without.
"""

from __future__ import annotations

import functools
from typing import Any

from nanobot_context.guard.fuse import fused
from nanobot_context.host.config import address_of
from nanobot_context.patches.declaration import Context, Patch, then

NAME = "context_window_tokens"


def _following(slot: Any, context: Context, *, knows: bool) -> property:
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
            provider, model = getattr(self, "provider", None), getattr(self, "model", None)
            if knows:
                context.windows.configured.remember(provider, model, own)
            return context.windows.in_place_of(own, model, address_of(provider))

        return fused("follow the model's window", larger, own) if context.active else own

    return property(follow, write)


def _know(context: Context, loop: Any, *_: Any, **__: Any) -> None:
    limits = (getattr(loop, name, None) for name in (NAME, "context_block_limit"))
    context.windows.configured.remember(loop.provider, loop.model, *limits)


# Where it is kept: the loop and what archives for it, and since 0.3.0 one record for both, of which
# a run may have one of its own.
_RUNTIME = "nanobot.utils.llm_runtime:LLMRuntime"
_OWNERS = (
    ("nanobot.agent.loop:AgentLoop", "0.1.4.post5", "0.2.2"),
    ("nanobot.agent.memory:MemoryConsolidator", "0.1.4.post5", "0.1.4.post6"),
    ("nanobot.agent.memory:Consolidator", "0.1.5", "0.2.2"),
    (_RUNTIME, "0.3.0", ""),
)

PATCHES = (
    *(
        Patch(
            owner=owner,
            attribute=NAME,
            kind="value",
            parameters=("model",),
            why="nanobot's own window follows a larger model",
            wrap=functools.partial(_following, knows=owner == _RUNTIME),
            part="own window",
            since=since,
            until=until,
        )
        for owner, since, until in _OWNERS
    ),
    # Not `__init__`: the package may be installed when the loop has been made.
    Patch(
        owner="nanobot.agent.loop:AgentLoop",
        attribute="_process_message",
        why="a window that is set in code is a cap",
        wrap=then("know the window of a loop", _know),
        part="guard",
    ),
)
