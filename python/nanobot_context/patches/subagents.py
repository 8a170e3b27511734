"""`SubagentManager._run_subagent`: an overflow that cannot be repaired ends the subagent as failed.

nanobot announces an error *response* as "completed successfully"; only an exception reaches its
own `except`, which announces the task as failed. So the guard must know that it runs inside a
subagent.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any

from nanobot_context.guard.guard import subagent
from nanobot_context.patches.patching import PatchSet

__all__ = ["wrap_run_subagent"]


def wrap_run_subagent(
    original: Callable[..., Awaitable[Any]], patches: PatchSet
) -> Callable[..., Awaitable[Any]]:
    """Return `_run_subagent` that marks its task while it runs."""

    @functools.wraps(original)
    async def run_subagent(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not patches.active:
            return await original(self, *args, **kwargs)
        with subagent():
            return await original(self, *args, **kwargs)

    return run_subagent
