"""The table of all replacements on nanobot's classes. Only the installer reads it."""

from __future__ import annotations

from nanobot_context.patches import (
    config,
    context_builder,
    governor,
    loop,
    provider,
    session,
    session_manager,
    subagents,
    window,
)
from nanobot_context.patches.declaration import Patch

TABLE: tuple[Patch, ...] = (
    *config.PATCHES,
    *provider.PATCHES,
    *subagents.PATCHES,
    *session.PATCHES,
    *governor.PATCHES,
    *window.PATCHES,
    *loop.PATCHES,
    *session_manager.PATCHES,
    *context_builder.PATCHES,
)
"""Every patch, in the order in which they are applied."""
