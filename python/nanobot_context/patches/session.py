"""`Session.get_history` with a token budget, for releases that have none of their own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from nanobot_context._core import select_history
from nanobot_context.guard.fuse import fused
from nanobot_context.patches.patching import PatchSet

__all__ = ["wrap_get_history"]

GetHistory = Callable[..., list[dict[str, Any]]]


def wrap_get_history(original: GetHistory, patches: PatchSet) -> GetHistory:
    """Return `get_history` that takes `max_tokens` too.

    Without it, or with `None` or 0 as later releases of nanobot mean "no limit", the result is
    nanobot's own. With it, the newest whole rounds of that result which fit into `max_tokens`.
    """
    default = inspect.signature(original).parameters["max_messages"].default

    # Not the annotations and not `__wrapped__`: `inspect` is to show the signature with
    # `max_tokens`.
    @functools.wraps(original, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def get_history(
        self: Any, max_messages: int = default, max_tokens: int | None = None
    ) -> list[dict[str, Any]]:
        history = original(self, max_messages)
        if not patches.active or not max_tokens:
            return history
        return fused("choose history", lambda: select_history(history, max_tokens), history)

    del get_history.__dict__["__wrapped__"]
    return get_history
