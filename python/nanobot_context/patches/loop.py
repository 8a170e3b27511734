"""`AgentLoop._process_message`: whose turn it is, and which loop a session belongs to."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nanobot_context.events import current_session
from nanobot_context.guard.fuse import fused
from nanobot_context.guard.trace import current_workspace
from nanobot_context.patches.declaration import Context, Patch, then


def _wrap_named(original: Callable[..., Any], context: Context) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    async def process_message(*args: Any, **kwargs: Any) -> Any:
        if not context.active:
            return await original(*args, **kwargs)

        def key() -> str | None:
            given = signature.bind(*args, **kwargs).arguments
            return _key(given.get("msg"), given.get("session_key"))

        token = current_session.set(fused("name the session", key, None))
        of = current_workspace.set(fused("name the workspace", lambda: _workspace(args[0]), None))
        try:
            return await original(*args, **kwargs)
        finally:
            current_session.reset(token)
            current_workspace.reset(of)

    return process_message


def _workspace(loop: Any) -> str:
    """Return the folder of a loop's workspace, in which its session keys are unique."""
    return str(Path(loop.sessions.workspace).resolve())


def _key(message: Any, session_key: str | None) -> str | None:
    """Return the session that a message is for, as nanobot itself finds it.

    Source: `AgentLoop._process_message` of 0.1.3.post7 to 0.3.5. A message of nanobot's own, such
    as a subagent's report, has the session as the place where it goes to.
    """
    channel = getattr(message, "channel", None)
    chat = getattr(message, "chat_id", None)
    if session_key:
        return session_key
    if getattr(message, "is_user_input", channel != "system"):
        key = getattr(message, "session_key", None)
        return key if isinstance(key, str) else None
    if override := getattr(message, "session_key_override", None):
        return str(override)
    return None if chat is None else chat if ":" in chat else f"cli:{chat}"


# Not `__init__`: the package may be installed when the loop has been made.
def _know(context: Context, loop: Any, *_: Any, **__: Any) -> None:
    if context.summaries is not None:
        context.summaries.remember(loop)


_patch = functools.partial(
    Patch, owner="nanobot.agent.loop:AgentLoop", attribute="_process_message"
)

PATCHES = (
    _patch(
        kind="async",
        parameters=("msg",),
        why="events name the session",
        wrap=_wrap_named,
        part="events",
    ),
    _patch(
        why="summaries ask the session's own model",
        wrap=then("know the loop of a session", _know),
        part="summaries",
        needed=True,
    ),
)
