"""The operations of a session service, written once for threads and asyncio.

Each operation is a generator that yields what has to be waited for, a call of the store or a
summary to be made, and is sent the outcome. `SessionService` waits for it in the thread,
`AsyncSessionService` in the task.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

from nanobot_context._core import SessionStoreHandle
from nanobot_context.arguments import (
    check_choice,
    check_flag,
    check_instance,
    check_whole,
    invalid,
    json_of,
    text_of,
)
from nanobot_context.errors import SessionExistsError
from nanobot_context.sessions.records import (
    SessionEvent,
    SessionHead,
    SessionSummary,
    StoredSession,
    decode_state,
    encode_state,
    milliseconds,
)
from nanobot_context.summary import Summary
from nanobot_context.types import Message

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Summarise:
    """A summary to make."""

    messages: list[Message]
    previous: Summary | None
    reason: str


Wait: TypeAlias = Callable[[], Any] | Summarise
Operation: TypeAlias = Generator[Wait, Any, Result]
# By these names, since `list` is a method here.
Events = list[SessionEvent]
Heads = list[SessionHead]
Messages = list[Message]
Summaries = list[SessionSummary]


class SessionOperations:
    """The operations on the sessions of one store, but for making summaries."""

    def __init__(self, handle: SessionStoreHandle, user_first: str) -> None:
        self.handle = handle
        self.user_first = user_first

    # Sessions ------------------------------------------------------------------------------------

    def create(
        self,
        app: str,
        user: str,
        session_id: str,
        state: Mapping[str, Any] | None,
        meta: Mapping[str, Any] | None,
        overwrite: bool,
    ) -> Operation[StoredSession]:
        if session_id is None or session_id == "":
            session_id = str(uuid.uuid4())
        _check_key(app, user, session_id)
        check_flag("overwrite", overwrite)
        stored = yield partial(
            self.handle.create,
            app,
            user,
            session_id,
            uuid.uuid4().hex,
            encode_state({} if state is None else state),
            json_of("meta", _meta({} if meta is None else meta)),
            overwrite,
        )
        return StoredSession.from_store(stored)

    def get(
        self,
        app: str,
        user: str,
        session_id: str,
        *,
        last: int | None = None,
        since: float | None = None,
        after: int = 0,
        user_first: str | None = None,
    ) -> Operation[StoredSession | None]:
        _check_key(app, user, session_id)
        check_whole("last", last, optional=True)
        check_whole("after", after)
        since_ms = None if since is None else milliseconds("since", since)
        first = self.user_first if user_first is None else user_first
        check_choice("user_first", first, USER_FIRST)
        stored = yield partial(self.handle.get, app, user, session_id, after, since_ms, last, first)
        return None if stored is None else StoredSession.from_store(stored)

    def get_or_create(
        self, app: str, user: str, session_id: str, state: Mapping[str, Any] | None
    ) -> Operation[StoredSession]:
        while True:
            session = yield from self.get(app, user, session_id)
            if session is not None:
                return session
            try:
                return (yield from self.create(app, user, session_id, state, None, False))
            except SessionExistsError:
                continue  # another writer was first

    def list(self, app: str, user: str, offset: int, limit: int | None) -> Operation[Heads]:
        _check_key(app, user)
        check_whole("offset", offset)
        check_whole("limit", limit, optional=True)
        heads = yield partial(self.handle.list, app, user, offset, limit)
        return [SessionHead(**SessionHead.fields_of(head)) for head in heads]

    def delete(self, app: str, user: str, session_id: str) -> Operation[bool]:
        _check_key(app, user, session_id)
        deleted = yield partial(self.handle.delete, app, user, session_id)
        return bool(deleted)

    def append(
        self, session: SessionHead, events: Iterable[SessionEvent], expected: int | None
    ) -> Operation[Events]:
        check_session(session)
        batch = _batch(events)
        check_whole("expected", expected, optional=True)
        appended = yield partial(
            self.handle.append,
            *session.key,
            session.generation,
            expected,
            [event.to_store() for event in batch],
        )
        if isinstance(session, StoredSession):
            return session.take(batch, appended)
        # Of an id that stands twice in the batch the first is stored.
        stored: dict[str, SessionEvent] = {}
        for event, seq in zip(batch, appended["seqs"], strict=True):
            event.seq = seq
            stored.setdefault(event.id, event)
        return [stored[event.id] for event in batch if event.seq is not None]

    def replace_tail(
        self, session: StoredSession, after: int, events: Iterable[SessionEvent]
    ) -> Operation[Events]:
        check_session(session, StoredSession)
        batch = _batch(events)
        check_whole("after", after)
        appended = yield partial(
            self.handle.replace_tail,
            *session.key,
            session.generation,
            after,
            session.seq,
            [event.to_store() for event in batch],
        )
        session.events = [event for event in session.events if (event.seq or 0) <= after]
        return session.take(batch, appended)

    def set_meta(
        self, session: SessionHead, meta: Mapping[str, Any], force: bool
    ) -> Operation[None]:
        check_session(session)
        check_flag("force", force)
        expected = None if force else json_of("session.meta", session.meta)
        text = json_of("meta", _meta(meta))
        yield partial(self.handle.set_meta, *session.key, text, expected)
        session.meta = dict(meta)

    def state(self, *owner: str) -> Operation[dict[str, Any]]:
        """Return the state of an app, of a user or of a session."""
        stored = yield partial(self.handle.state, *_owner(*owner))
        return decode_state(stored)

    def update_state(self, delta: Mapping[str, Any], *owner: str) -> Operation[None]:
        """Change the state of an app, of a user or of a session."""
        yield partial(self.handle.update_state, *_owner(*owner), encode_state(delta))

    def sweep(self) -> Operation[int]:
        freed = yield self.handle.sweep
        return int(freed)

    # Summaries -----------------------------------------------------------------------------------

    def summaries(
        self,
        session: SessionHead,
        key: str | None,
        *,
        failed: bool = False,
        links: bool = False,
        last: int | None = None,
    ) -> Operation[Summaries]:
        check_session(session)
        if key is not None:
            text_of("key", key)
        check_flag("failed", failed)
        check_flag("links", links)
        check_whole("last", last, optional=True)
        stored = yield partial(self.handle.summaries, *session.key, key, failed, links, last)
        return [SessionSummary.from_store(summary, session.key) for summary in stored]


USER_FIRST = ("prepend", "drop", "off")


def check_session(session: Any, kind: type[SessionHead] = SessionHead) -> tuple[str, str, str]:
    """Return the key of a session that a service has returned."""
    check_instance("session", session, kind)
    key: tuple[str, str, str] = session.key
    return key


def _batch(events: Any) -> Events:
    if not isinstance(events, Iterable):
        raise invalid("events", "a list of `SessionEvent`", events)
    batch = list(events)
    for index, event in enumerate(batch):
        check_instance(f"events[{index}]", event, SessionEvent)
    return batch


def _meta(meta: Any) -> dict[str, Any]:
    if not isinstance(meta, Mapping):
        raise invalid("meta", "a dict", meta)
    return dict(meta)


def _owner(*key: str) -> tuple[str, str | None, str | None]:
    """Return app, user and session, `None` where they are not given: whose a state is."""
    _check_key(*key)
    app, user, session_id, *_ = (*key, None, None)
    return str(app), user, session_id


def _check_key(*key: str) -> None:
    for name, part in zip(("app", "user", "session_id"), key, strict=False):
        text_of(name, part)
