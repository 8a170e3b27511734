"""`SessionManager`: a saved session may need a summary; sessions may be in a shared store."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from nanobot_context.guard.fuse import fused
from nanobot_context.patches.declaration import Context, Patch, then


def _take(context: Context, manager: Any, *_: Any, **__: Any) -> None:
    if context.store is not None:
        context.store.take(manager)


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


def _wrap_stored(original: Callable[..., Any], context: Context) -> Callable[..., Any]:
    @functools.wraps(original)
    def save(self: Any, session: Any, *args: Any, **kwargs: Any) -> Any:
        if context.active and context.store is not None:
            store = context.store
            fused("store a session", lambda: store.before_save(self, session), None)
        return original(self, session, *args, **kwargs)

    return save


def _wrap_delete(original: Callable[..., Any], context: Context) -> Callable[..., Any]:
    @functools.wraps(original)
    def delete_session(self: Any, key: str) -> Any:
        if context.active and context.store is not None:
            store = context.store
            fused("delete a session", lambda: store.before_delete(self, key), None)
        return original(self, key)

    return delete_session


def _begin(context: Context, manager: Any, saved: Any, session: Any, *_: Any, **__: Any) -> None:
    if context.summaries is not None:
        context.summaries.begin_if_due(manager, session)


def _wrap_save(original: Callable[..., Any], context: Context) -> Callable[..., Any]:
    from nanobot_context.host import stored_calls, stored_rules

    @functools.wraps(original)
    def save(self: Any, session: Any, *args: Any, **kwargs: Any) -> Any:
        if context.active:
            fused("keep rules", lambda: stored_rules.gather(session), None)
            fused("keep calls", lambda: stored_calls.gather(session), None)
        return original(self, session, *args, **kwargs)

    return save


_patch = functools.partial(Patch, owner="nanobot.session.manager:SessionManager")

PATCHES = (
    Patch(
        owner="nanobot.session.manager:SessionStore",
        attribute="",
        why="nanobot keeps sessions in a store from 0.3.5 on",
        wrap=None,
        part="session store",
        needed=True,
        since="0.3.5",
    ),
    _patch(
        attribute="__init__",
        why="sessions are in the shared store",
        wrap=then("keep sessions in the shared store", _take),
        part="session store",
        needed=True,
        since="0.3.5",
    ),
    _patch(
        attribute="_cached",
        parameters=("key",),
        why="what another gateway wrote is seen",
        wrap=_wrap_cached,
        part="session store",
        needed=True,
        since="0.3.0",
    ),
    _patch(
        attribute="save",
        parameters=("session",),
        why="what is said while the store cannot be opened is stored after it",
        wrap=_wrap_stored,
        part="session store",
        since="0.3.5",
    ),
    _patch(
        attribute="delete_session",
        parameters=("key",),
        why="a session that is deleted while the store cannot be opened is deleted there after it",
        wrap=_wrap_delete,
        part="session store",
        since="0.3.5",
    ),
    _patch(
        attribute="save",
        parameters=("session",),
        why="rules and calls are saved before nanobot drops them",
        wrap=_wrap_save,
        part="rules",
    ),
    # Behind the store: it saves sessions, too.
    _patch(
        attribute="save",
        parameters=("session",),
        why="a summary begins when a long session is saved",
        wrap=then("begin a summary", _begin),
        part="summaries",
        needed=True,
    ),
)
