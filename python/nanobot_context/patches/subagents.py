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
from nanobot_context.host.detect import SUBAGENTS
from nanobot_context.patches.declaration import Context, Patch


def _wrap_run_subagent(
    original: Callable[..., Awaitable[Any]], context: Context
) -> Callable[..., Awaitable[Any]]:
    """Return `_run_subagent` that marks its task while it runs."""

    @functools.wraps(original)
    async def run_subagent(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not context.active:
            return await original(self, *args, **kwargs)
        with subagent():
            return await original(self, *args, **kwargs)

    return run_subagent


PATCHES = (
    Patch(
        owner=SUBAGENTS,
        attribute="_run_subagent",
        kind="async",
        why="a subagent's overflow is a failure",
        wrap=_wrap_run_subagent,
    ),
)
