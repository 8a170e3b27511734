"""`SessionManager`: a saved session may need a summary; sessions may be in a shared store."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from nanobot_context.guard.fuse import fused
from nanobot_context.patches.declaration import Context, Patch

_MANAGER = "nanobot.session.manager:SessionManager"
_STORE = "nanobot.session.manager:SessionStore"


def _wrap_init(original: Callable[..., None], context: Context) -> Callable[..., None]:
    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        store = context.store
        if context.active and store is not None:
            fused("keep sessions in the shared store", lambda: store.take(self), None)

    return init


def _wrap_cached(original: Callable[..., Any], context: Context) -> Callable[..., Any]:
    from nanobot_context.plugins.session_store import SharedSessions

    @functools.wraps(original)
    def cached(self: Any, key: str) -> Any:
        session = original(self, key)
        store = self._store
        if session is None or not isinstance(store, SharedSessions):
            return session
        if fused("look for news of a session", lambda: store.bring_up(session), True):
            return session
        self.invalidate(key)
        return None

    return cached


def _wrap_save(original: Callable[..., Any], context: Context) -> Callable[..., Any]:
    @functools.wraps(original)
    def save(self: Any, session: Any, *args: Any, **kwargs: Any) -> Any:
        saved = original(self, session, *args, **kwargs)
        jobs = context.summaries
        if context.active and jobs is not None:
            fused("begin a summary", lambda: jobs.begin_if_due(self, session), None)
        return saved

    return save


PATCHES = (
    Patch(
        owner=_STORE,
        attribute="",
        why="nanobot keeps sessions in a store from 0.3.5 on",
        wrap=None,
        part="session store",
        needed=True,
        since="0.3.5",
    ),
    Patch(
        owner=_MANAGER,
        attribute="__init__",
        why="sessions are in the shared store",
        wrap=_wrap_init,
        part="session store",
        needed=True,
        since="0.3.5",
    ),
    Patch(
        owner=_MANAGER,
        attribute="_cached",
        parameters=("key",),
        why="what another gateway wrote is seen",
        wrap=_wrap_cached,
        part="session store",
        needed=True,
        since="0.3.0",
    ),
    # Behind the store: it saves sessions, too.
    Patch(
        owner=_MANAGER,
        attribute="save",
        parameters=("session",),
        why="a summary begins when a long session is saved",
        wrap=_wrap_save,
        part="summaries",
        needed=True,
    ),
)
