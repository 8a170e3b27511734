"""Sessions in a store that many processes share, for threads and for asyncio.

with SessionService("sqlite:///sessions.db") as service:
    session = service.create("app", "user")
    service.append(session, [SessionEvent({"role": "user", "content": "Hello"})])
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, TypeVar

from nanobot_context._core import SessionStoreHandle, SummaryPolicy, Trigger
from nanobot_context.arguments import (
    check_choice,
    check_flag,
    check_instance,
    check_whole,
    invalid,
    text_of,
)
from nanobot_context.errors import SessionStoreError
from nanobot_context.forks import ThreadLock, begin_in_children
from nanobot_context.sessions.driving import run_async, run_sync
from nanobot_context.sessions.operations import (
    USER_FIRST,
    Operations,
    Summarise,
    SummaryRules,
    Wait,
    check_session,
)
from nanobot_context.sessions.records import (
    SessionEvent,
    SessionHead,
    SessionSummary,
    StoredSession,
)
from nanobot_context.summary import (
    AsyncSummaryJobs,
    JobCounts,
    JobError,
    Summarizer,
    SummaryJobs,
)
from nanobot_context.types import Message

__all__ = ["AsyncSessionService", "SessionService"]

Result = TypeVar("Result")
Events = list[SessionEvent]
Heads = list[SessionHead]
Messages = list[Message]
Summaries = list[SessionSummary]
UserFirst = Literal["prepend", "drop", "off"]
Mode = Literal["summary", "recent"]
Style = Literal["chat", "responses"]

# Events of a session at most. Source: document 002, `WithSessionEventLimit`.
EVENT_LIMIT = 1_000
# Room for a summary by rules after the model's time is over.
_JOB_GRACE_SECONDS = 15.0


class _Base:
    """What both services are made of.

    Args:
        url: `memory:`, `sqlite:///path`, `redis://…` or `rediss://…`. Of SQLite, `?durability=full`
            waits for the disk with each write.
        event_limit: Events of a session at most; 0 for no limit. The oldest leave in the same
            write, tool calls together with their results. With a `summarizer` those stay that no
            summary of all contents covers, up to twice as many.
        session_ttl_seconds: Seconds that a session lives after it was written; 0 for ever.
        app_state_ttl_seconds: The same for the state of an app.
        user_state_ttl_seconds: The same for the state of a user.
        refresh: "write", or "read_write" for reads to let a session live longer, too.
        routing: "scoped": state named `app:…` and `user:…` goes to the app and the user, `temp:…`
            nowhere. "raw": all of it is the session's.
        user_first: What a session shows first: "off" whatever is first; "drop" a message of the
            user, without the events before it, if there are only such, none; "prepend" the same,
            with the newest one before the window where there is none in it.
        summarizer: Makes summaries.
        policy: When, and how many messages stay; document 003's limits by default.
        trigger: A check in place of the policy's limits, such as `Trigger.messages(gt=20)`.
        placeholder: Whether an event is stored where a summary was made, as in document 003.
        auto_summary: Whether `append` has the session summarised in the background, if that is due,
            when a turn has ended: with a message of the assistant that calls no tool. Where too
            many sessions wait, the next turn does it.
        summary_workers: Summaries that are made at once in the background.
        summary_queue: Sessions that wait for one; further ones are summarised in the caller.

    Raises:
        InvalidArgumentError: An argument cannot be used.
        SessionStoreError: The store cannot be opened; its classes say why.
    """

    _is_async = False
    _job_class: type[SummaryJobs] | type[AsyncSummaryJobs]
    _jobs: SummaryJobs | AsyncSummaryJobs

    def __init__(
        self,
        url: str = "memory:",
        *,
        event_limit: int = EVENT_LIMIT,
        session_ttl_seconds: float = 0,
        app_state_ttl_seconds: float = 0,
        user_state_ttl_seconds: float = 0,
        refresh: Literal["write", "read_write"] = "write",
        routing: Literal["scoped", "raw"] = "scoped",
        user_first: UserFirst = "off",
        summarizer: Summarizer | None = None,
        policy: SummaryPolicy | None = None,
        trigger: Trigger | None = None,
        placeholder: bool = False,
        auto_summary: bool = True,
        summary_workers: int = 2,
        summary_queue: int = 100,
    ) -> None:
        text_of("url", url)
        check_choice("refresh", refresh, ("write", "read_write"))
        check_choice("routing", routing, ("scoped", "raw"))
        check_choice("user_first", user_first, USER_FIRST)
        check_whole("event_limit", event_limit)
        check_flag("placeholder", placeholder)
        check_flag("auto_summary", auto_summary)
        check_whole("summary_workers", summary_workers)
        check_whole("summary_queue", summary_queue)
        for name, value, kind in (
            ("summarizer", summarizer, Summarizer),
            ("policy", policy, SummaryPolicy),
            ("trigger", trigger, Trigger),
        ):
            check_instance(name, value, kind, optional=True)
        self._handle = SessionStoreHandle(
            url,
            asynchronous=self._is_async,
            event_limit=event_limit,
            protect_unsummarized=summarizer is not None,
            session_ttl_ms=_milliseconds("session_ttl_seconds", session_ttl_seconds),
            user_state_ttl_ms=_milliseconds("user_state_ttl_seconds", user_state_ttl_seconds),
            app_state_ttl_ms=_milliseconds("app_state_ttl_seconds", app_state_ttl_seconds),
            refresh_on_read=refresh == "read_write",
            raw_routing=routing == "raw",
        )
        rules = SummaryRules(policy or SummaryPolicy(), trigger, placeholder)
        self._do = Operations(self._handle, summarizer, rules, user_first)
        self._summarizer = summarizer
        self._is_auto = auto_summary and summarizer is not None
        self._waiting = _Waiting()
        limit = summarizer.timeout_seconds if summarizer else None
        self._jobs = self._job_class(
            workers=summary_workers,
            queue=summary_queue,
            timeout_seconds=None if limit is None else limit + _JOB_GRACE_SECONDS,
        )

    @property
    def summary_errors(self) -> Sequence[JobError]:
        """What went wrong with summaries in the background, the newest hundred."""
        return self._jobs.errors

    @property
    def summary_counts(self) -> JobCounts:
        """What became of the summaries in the background."""
        return self._jobs.counts

    def __repr__(self) -> str:
        try:
            return f"{type(self).__name__}({self._handle.describe()})"
        except SessionStoreError:
            return f"{type(self).__name__}(closed)"


class _Waiting:
    """The branches of each session that a job in the background is to summarise.

    Jobs of one session that wait are merged: what is merged must not be forgotten.
    """

    def __init__(self) -> None:
        self._lock = ThreadLock()
        self._keys: dict[tuple[str, str, str], dict[str, bool]] = {}
        begin_in_children(self)

    def add(self, session: SessionHead, key: str, force: bool) -> None:
        with self._lock:
            keys = self._keys.setdefault(session.key, {})
            keys[key] = force or keys.get(key, False)

    def take(self, session: SessionHead) -> dict[str, bool]:
        with self._lock:
            return self._keys.pop(session.key, {})

    def begin_in_child(self) -> None:
        """Forget all: the jobs are the parent's."""
        self._keys.clear()


def _ended_turn(events: Events) -> str | None:
    """Return the filter key of the newest event that ends a turn; `None` without one."""
    ending = (
        event.filter_key
        for event in reversed(events)
        if event.is_message
        and event.payload["role"] == "assistant"
        and not event.payload.get("tool_calls")
    )
    return next(ending, None)


class SessionService(_Base):
    """Sessions in a store. Every method waits for the store; threads may share a service."""

    __doc__ = f"{__doc__}\n\n{_Base.__doc__}"

    _job_class = SummaryJobs
    _jobs: SummaryJobs

    def __enter__(self) -> SessionService:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _wait(self, operation: Generator[Wait, Any, Result]) -> Result:
        return run_sync(operation, self._outcome)

    def _outcome(self, due: Wait) -> Any:
        if not isinstance(due, Summarise):
            return due()
        assert self._summarizer is not None
        return self._summarizer.summarize(due.messages, previous=due.previous, reason=due.reason)

    def create(
        self,
        app: str,
        user: str,
        session_id: str = "",
        *,
        state: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        overwrite: bool = False,
    ) -> StoredSession:
        """Create a session and return it; its id is made where none is given.

        `overwrite` deletes one that exists, with all that belongs to it.

        Raises:
            SessionExistsError: There is one, and `overwrite` is not set.
        """
        return self._wait(self._do.create(app, user, session_id, state, meta, overwrite))

    def get(
        self,
        app: str,
        user: str,
        session_id: str,
        *,
        last: int | None = None,
        since: float | None = None,
        after: int = 0,
        user_first: UserFirst | None = None,
    ) -> StoredSession | None:
        """Return a session; `None` where there is none or it has expired.

        Args:
            app: The app.
            user: The user.
            session_id: The session.
            last: The newest events only, of those that the others let in.
            since: Events of this time and later only, in seconds since 1970.
            after: Events behind this position only: those that came since a session was read.
            user_first: In place of the service's own.
        """
        return self._wait(
            self._do.get(
                app, user, session_id, last=last, since=since, after=after, user_first=user_first
            )
        )

    def get_or_create(
        self, app: str, user: str, session_id: str, *, state: Mapping[str, Any] | None = None
    ) -> StoredSession:
        """Return a session, created with `state` where there is none."""
        return self._wait(self._do.get_or_create(app, user, session_id, state))

    def list_sessions(
        self, app: str, user: str, *, offset: int = 0, limit: int | None = None
    ) -> Heads:
        """Return a user's sessions without their events, the one written last first."""
        return self._wait(self._do.list(app, user, offset, limit))

    def delete(self, app: str, user: str, session_id: str) -> bool:
        """Delete a session with all that belongs to it; return whether there was one."""
        return self._wait(self._do.delete(app, user, session_id))

    def append(
        self, session: SessionHead, events: Iterable[SessionEvent], *, expected: int | None = None
    ) -> Events:
        """Append events in one write; return those that are stored, with their positions.

        Events that were taken before are not taken again. `session` is brought up to date after
        the store has taken them. With `expected`, the last position that the caller knows of,
        nothing is written where another writer was first.

        Raises:
            SessionNotFoundError: There is no such session.
            SessionGoneError: It was created anew since it was read.
            ConflictError: The last position is another one than `expected`.
        """
        stored = self._wait(self._do.append(session, events, expected))
        key = _ended_turn(stored) if self._is_auto else None
        if key is not None:
            self._waiting.add(session, key, False)
            self._jobs.submit_nowait(session.key, self._summary_work(session, key))
        return stored

    def replace_tail(
        self, session: StoredSession, after: int, events: Iterable[SessionEvent]
    ) -> Events:
        """Put events in the place of all behind the position `after`.

        Raises:
            ConflictError: Another writer has appended since `session` was read.
        """
        return self._wait(self._do.replace_tail(session, after, events))

    def set_meta(
        self, session: SessionHead, meta: Mapping[str, Any], *, force: bool = False
    ) -> None:
        """Replace a session's metadata.

        Raises:
            ConflictError: It is not what `session` says, and `force` is not set.
        """
        self._wait(self._do.set_meta(session, meta, force))

    def app_state(self, app: str) -> dict[str, Any]:
        """Return the state of an app."""
        return self._wait(self._do.state(app))

    def user_state(self, app: str, user: str) -> dict[str, Any]:
        """Return the state of a user."""
        return self._wait(self._do.state(app, user))

    def session_state(self, session: SessionHead) -> dict[str, Any]:
        """Return the state of a session alone."""
        return self._wait(self._do.session_state(session))

    def update_app_state(self, app: str, delta: Mapping[str, Any]) -> None:
        """Change the state of an app; `None` deletes a name."""
        self._wait(self._do.update_state(delta, app))

    def update_user_state(self, app: str, user: str, delta: Mapping[str, Any]) -> None:
        """Change the state of a user; `None` deletes a name."""
        self._wait(self._do.update_state(delta, app, user))

    def update_session_state(self, session: SessionHead, delta: Mapping[str, Any]) -> None:
        """Change the state of a session; `None` deletes a name."""
        self._wait(self._do.update_session_state(session, delta))

    def summarize(
        self, session: SessionHead, key: str = "", *, force: bool = False
    ) -> SessionSummary | None:
        """Summarise what is new of a session if that is due, and return the summary.

        With a filter key, all contents are summarised too; by the same call of the model where the
        session has no other branch.

        Args:
            session: The session; what it holds is read anew.
            key: The branch.
            force: Whether all that is new is summarised, due or not.

        Raises:
            SessionNotFoundError: There is no such session.
            SessionGoneError: It was deleted or created anew meanwhile.
        """
        return self._wait(self._do.summarize(session, key, force))

    def enqueue_summary(self, session: SessionHead, key: str = "", *, force: bool = False) -> Any:
        """Do as `summarize` in the background; return the job, whose result can be waited for.

        The summaries of one session are made in order, and those that wait are merged. Where too
        many wait, this one is made here.
        """
        check_session(session)
        self._waiting.add(session, text_of("key", key), force)
        return self._jobs.submit(session.key, self._summary_work(session, key))

    def _summary_work(
        self, session: SessionHead, key: str
    ) -> Callable[[bool, Callable[[], bool]], SessionSummary | None]:
        def work(_: bool, cancelled: Callable[[], bool]) -> SessionSummary | None:
            waiting = self._waiting.take(session)
            made = {
                one: self._wait(self._do.summarize(session, one, force, lambda: not cancelled()))
                for one, force in waiting.items()
                if not cancelled()
            }
            return made.get(key)

        return work

    def summary_text(self, session: SessionHead, key: str = "") -> str | None:
        """Return the newest summary of a branch, else of all contents; `None` without one."""
        return self._wait(self._do.summary_text(session, key))

    def summaries(
        self,
        session: SessionHead,
        key: str | None = None,
        *,
        failed: bool = False,
        links: bool = False,
        last: int | None = None,
    ) -> Summaries:
        """Return the summaries of a session, newest first; those that failed with `failed`."""
        return self._wait(self._do.summaries(session, key, failed=failed, links=links, last=last))

    def context(
        self,
        session: SessionHead,
        *,
        mode: Mode = "summary",
        key: str = "",
        style: Style = "chat",
        max_messages: int | None = None,
        rounds: int | None = None,
        current: Sequence[Message] | None = None,
    ) -> Messages:
        """Return what a model is to be shown of a session: see `assemble_history`.

        The newest summary of the branch and all events behind it, or the newest events; as chat
        messages or Responses items.
        """
        return self._wait(
            self._do.context(
                session,
                mode=mode,
                key=key,
                style=style,
                max_messages=max_messages,
                rounds=rounds,
                current=current,
            )
        )

    def cleanup(self) -> int:
        """Free what has expired; return how many sessions that were. They are invisible before."""
        freed: int = self._handle.sweep()
        return freed

    def close(self, deadline: float | None = None) -> None:
        """Wait for summaries that are being made, `deadline` seconds at most, and let go.

        What was not finished stores nothing.
        """
        self._jobs.close(deadline)
        self._handle.close()


class AsyncSessionService(_Base):
    """As `SessionService`, for asyncio: no method blocks the event loop."""

    __doc__ = f"{__doc__}\n\n{_Base.__doc__}"
    _is_async = True

    _job_class = AsyncSummaryJobs
    _jobs: AsyncSummaryJobs

    async def __aenter__(self) -> AsyncSessionService:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _wait(self, operation: Generator[Wait, Any, Result]) -> Result:
        return await run_async(operation, self._outcome)

    async def _outcome(self, due: Wait) -> Any:
        if not isinstance(due, Summarise):
            awaitable: Awaitable[Any] = due()
            return await awaitable
        assert self._summarizer is not None
        return await self._summarizer.asummarize(
            due.messages, previous=due.previous, reason=due.reason
        )

    async def create(
        self,
        app: str,
        user: str,
        session_id: str = "",
        *,
        state: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        overwrite: bool = False,
    ) -> StoredSession:
        """See `SessionService.create`."""
        return await self._wait(self._do.create(app, user, session_id, state, meta, overwrite))

    async def get(
        self,
        app: str,
        user: str,
        session_id: str,
        *,
        last: int | None = None,
        since: float | None = None,
        after: int = 0,
        user_first: UserFirst | None = None,
    ) -> StoredSession | None:
        """See `SessionService.get`."""
        return await self._wait(
            self._do.get(
                app, user, session_id, last=last, since=since, after=after, user_first=user_first
            )
        )

    async def get_or_create(
        self, app: str, user: str, session_id: str, *, state: Mapping[str, Any] | None = None
    ) -> StoredSession:
        """See `SessionService.get_or_create`."""
        return await self._wait(self._do.get_or_create(app, user, session_id, state))

    async def list_sessions(
        self, app: str, user: str, *, offset: int = 0, limit: int | None = None
    ) -> Heads:
        """See `SessionService.list`."""
        return await self._wait(self._do.list(app, user, offset, limit))

    async def delete(self, app: str, user: str, session_id: str) -> bool:
        """See `SessionService.delete`."""
        return await self._wait(self._do.delete(app, user, session_id))

    async def append(
        self, session: SessionHead, events: Iterable[SessionEvent], *, expected: int | None = None
    ) -> Events:
        """See `SessionService.append`."""
        stored = await self._wait(self._do.append(session, events, expected))
        key = _ended_turn(stored) if self._is_auto else None
        if key is not None:
            self._waiting.add(session, key, False)
            self._jobs.submit_nowait(session.key, self._summary_work(session, key))
        return stored

    async def replace_tail(
        self, session: StoredSession, after: int, events: Iterable[SessionEvent]
    ) -> Events:
        """See `SessionService.replace_tail`."""
        return await self._wait(self._do.replace_tail(session, after, events))

    async def set_meta(
        self, session: SessionHead, meta: Mapping[str, Any], *, force: bool = False
    ) -> None:
        """See `SessionService.set_meta`."""
        await self._wait(self._do.set_meta(session, meta, force))

    async def app_state(self, app: str) -> dict[str, Any]:
        """See `SessionService.app_state`."""
        return await self._wait(self._do.state(app))

    async def user_state(self, app: str, user: str) -> dict[str, Any]:
        """See `SessionService.user_state`."""
        return await self._wait(self._do.state(app, user))

    async def session_state(self, session: SessionHead) -> dict[str, Any]:
        """See `SessionService.session_state`."""
        return await self._wait(self._do.session_state(session))

    async def update_app_state(self, app: str, delta: Mapping[str, Any]) -> None:
        """See `SessionService.update_app_state`."""
        await self._wait(self._do.update_state(delta, app))

    async def update_user_state(self, app: str, user: str, delta: Mapping[str, Any]) -> None:
        """See `SessionService.update_user_state`."""
        await self._wait(self._do.update_state(delta, app, user))

    async def update_session_state(self, session: SessionHead, delta: Mapping[str, Any]) -> None:
        """See `SessionService.update_session_state`."""
        await self._wait(self._do.update_session_state(session, delta))

    async def summarize(
        self, session: SessionHead, key: str = "", *, force: bool = False
    ) -> SessionSummary | None:
        """See `SessionService.summarize`."""
        return await self._wait(self._do.summarize(session, key, force))

    async def enqueue_summary(
        self, session: SessionHead, key: str = "", *, force: bool = False
    ) -> Any:
        """See `SessionService.enqueue_summary`."""
        check_session(session)
        self._waiting.add(session, text_of("key", key), force)
        return await self._jobs.submit(session.key, self._summary_work(session, key))

    def _summary_work(
        self, session: SessionHead, key: str
    ) -> Callable[[bool], Awaitable[SessionSummary | None]]:
        async def work(_: bool) -> SessionSummary | None:
            waiting = self._waiting.take(session)
            made = {
                one: await self.summarize(session, one, force=force)
                for one, force in waiting.items()
            }
            return made.get(key)

        return work

    async def summary_text(self, session: SessionHead, key: str = "") -> str | None:
        """See `SessionService.summary_text`."""
        return await self._wait(self._do.summary_text(session, key))

    async def summaries(
        self,
        session: SessionHead,
        key: str | None = None,
        *,
        failed: bool = False,
        links: bool = False,
        last: int | None = None,
    ) -> Summaries:
        """See `SessionService.summaries`."""
        return await self._wait(
            self._do.summaries(session, key, failed=failed, links=links, last=last)
        )

    async def context(
        self,
        session: SessionHead,
        *,
        mode: Mode = "summary",
        key: str = "",
        style: Style = "chat",
        max_messages: int | None = None,
        rounds: int | None = None,
        current: Sequence[Message] | None = None,
    ) -> Messages:
        """See `SessionService.context`."""
        return await self._wait(
            self._do.context(
                session,
                mode=mode,
                key=key,
                style=style,
                max_messages=max_messages,
                rounds=rounds,
                current=current,
            )
        )

    async def cleanup(self) -> int:
        """See `SessionService.cleanup`."""
        freed: int = await self._handle.sweep()
        return freed

    async def close(self, deadline: float | None = None) -> None:
        """See `SessionService.close`."""
        await self._jobs.close(deadline)
        self._handle.close()


def _milliseconds(name: str, seconds: float) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < 1e12:
        raise invalid(name, "a number of seconds from 0 on", seconds)
    return round(seconds * 1_000)
