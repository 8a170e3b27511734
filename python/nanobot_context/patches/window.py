"""The window that nanobot itself goes by, for what it replays of a session and when it archives.

From 0.1.4.post5 on that is one number for every model: 65,536, later 200,000, unless the user sets
another. A larger model gets no more history than that, and its session is summarised by a model
call long before it is full. Here the default stands for the model's window where that is larger. It
never gets smaller: then nanobot would call a model for summaries of what the guard fits without.
"""

from __future__ import annotations

import inspect
from typing import Any

from nanobot_context.guard.fuse import fused
from nanobot_context.guard.windows import NANOBOT_DEFAULT_WINDOWS, Windows
from nanobot_context.patches.patching import PatchSet, find

__all__ = ["patch"]

NAME = "context_window_tokens"
# Where it is kept: the loop and what archives for it, and since 0.3.0 one record for both.
_OWNERS = (
    ("nanobot.agent.loop", "AgentLoop"),
    ("nanobot.agent.memory", "MemoryConsolidator"),
    ("nanobot.agent.memory", "Consolidator"),
    ("nanobot.utils.llm_runtime", "LLMRuntime"),
)


def patch(windows: Windows, patches: PatchSet) -> None:
    """Let the window of nanobot's own parts follow the model."""
    defaults = {window: window for window in NANOBOT_DEFAULT_WINDOWS}
    for owner in _owners():
        patches.replace(owner, NAME, lambda slot: _following(slot, windows, defaults, patches))


def _owners() -> list[type]:
    """Return the classes of this release that are made with a window and a model."""
    found = []
    for module, name in _OWNERS:
        owner = find(module, name)
        if owner is None:
            continue
        own = owner.__dict__.get(NAME)
        is_kept_there = own is None or inspect.ismemberdescriptor(own)
        if is_kept_there and {NAME, "model"} <= set(inspect.signature(owner).parameters):
            found.append(owner)
    return found


def _following(
    slot: Any, windows: Windows, defaults: dict[int, int], patches: PatchSet
) -> property:
    """Return the attribute that follows the model.

    Instances keep their own value where they always had it, so that nothing is left behind.
    nanobot copies what it reads into new records: `defaults` knows which default a number was.
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
        default = defaults.get(own) if patches.active else None
        if default is None:
            return own
        return fused("follow the model's window", lambda: larger(self, default), default)

    def larger(self: Any, default: int) -> int:
        endpoint = getattr(getattr(self, "provider", None), "api_base", None)
        model = getattr(self, "model", None)
        window = windows.of(model, endpoint if isinstance(endpoint, str) else "")
        if window.tokens <= default:
            return default
        defaults.setdefault(window.tokens, default)
        return window.tokens

    return property(follow, write)
