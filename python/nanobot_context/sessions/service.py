"""Sessions in a store that many processes share, for threads and for asyncio.

with SessionService("sqlite:///sessions.db") as service:
    session = service.create("app", "user")
    service.append(session, [SessionEvent({"role": "user", "content": "Hello"})])
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar
from weakref import ref

from nanobot_context.errors import SessionStoreError
from nanobot_context.sessions.base import Base, UserFirst
from nanobot_context.sessions.driving import run_async, run_sync
from nanobot_context.sessions.jobs import Job, Jobs
from nanobot_context.sessions.operations import Summarise, Wait, check_session
from nanobot_context.sessions.records import (
    SessionEvent,
    SessionHead,
    SessionSummary,
    StoredSession,
)
from nanobot_context.sessions.tasks import AsyncJob, AsyncJobs
from nanobot_context.types import Message

P = ParamSpec("P")
Result = TypeVar("Result")
Events = list[SessionEvent]
Heads = list[SessionHead]
Messages = list[Message]
Summaries = list[SessionSummary]
Mode = Literal["summary", "recent"]
Style = Literal["chat", "responses"]


class SessionService(Base):
    """Sessions in a store. Every method waits for the store; threads may share a service."""

    __doc__ = f"{__doc__}\n\n{Base.__doc__}"

    _job_class = Jobs
    _jobs: Jobs

    def __enter__(self) -> SessionService:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wait(self, operation: Generator[Wait, Any, Result]) -> Result:
        result = run_sync(operation, self._outcome)
        self._sweep_later()
        return result

    def _sweep_later(self) -> None:
        if not self._sweep_seconds:
            return
        with self._lock:
            if self._sweep_timer is not None:
                return
            timer = threading.Timer(self._until_sweep(), _swept, (ref(self),))
            timer.daemon = True
            self._sweep_timer = timer
        with contextlib.suppress(RuntimeError):  # no further thread, as when the interpreter ends
            timer.start()

    def _swept(self) -> None:
        try:
            self._wait(self._sweep())
        except SessionStoreError as error:
            self._log_sweep(error)
        self._sweep_timer = None
        self._sweep_later()

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
            last: The most events to return: the newest that the other arguments select.
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
        return self._wait(self._append(session, events, expected))

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
        return self._wait(self._do.set_meta(session, meta, force))

    def app_state(self, app: str) -> dict[str, Any]:
        """Return the state of an app."""
        return self._wait(self._do.state(app))

    def user_state(self, app: str, user: str) -> dict[str, Any]:
        """Return the state of a user."""
        return self._wait(self._do.state(app, user))

    def session_state(self, session: SessionHead) -> dict[str, Any]:
        """Return the state of a session alone."""
        return self._wait(self._do.state(*check_session(session)))

    def update_app_state(self, app: str, delta: Mapping[str, Any]) -> None:
        """Change the state of an app; `None` deletes a name."""
        return self._wait(self._do.update_state(delta, app))

    def update_user_state(self, app: str, user: str, delta: Mapping[str, Any]) -> None:
        """Change the state of a user; `None` deletes a name."""
        return self._wait(self._do.update_state(delta, app, user))

    def update_session_state(self, session: SessionHead, delta: Mapping[str, Any]) -> None:
        """Change the state of a session; `None` deletes a name."""
        return self._wait(self._do.update_state(delta, *check_session(session)))

    def summarize(
        self, session: SessionHead, key: str = "", *, force: bool = False
    ) -> SessionSummary | None:
        """Summarise the new events of a session if that is due, and return the summary.

        With a filter key, all contents are summarised too; by the same call of the model where the
        session has no other branch.

        Args:
            session: The session; what it holds is read anew.
            key: The branch.
            force: Whether all that is new is summarised, due or not. Where nothing is new, the
                summary that stands is returned, whoever made it.

        Raises:
            SessionNotFoundError: There is no such session.
            SessionGoneError: It was deleted or created anew meanwhile.
        """
        return self._wait(self._do.summarize(session, key, force))

    def enqueue_summary(
        self, session: SessionHead, key: str = "", *, force: bool = False
    ) -> Job[SessionSummary | None]:
        """Do as `summarize` in the background; return the job, whose result can be waited for.

        The summaries of one session are made in order, and those that wait are merged. Where too
        many wait, this one is made here.
        """
        work = self._summary_work(session, key, force)
        return self._jobs.submit(session.key, work, part=key, force=force)

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
        """Return the messages of a session to show a model: see `assemble_history`.

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

    def call_with_summary(
        self,
        session: SessionHead,
        chat: Callable[[Messages], Any],
        *,
        key: str = "",
        current: Sequence[Message] | None = None,
    ) -> Any:
        """Return what `chat` answers to the context of a session.

        Where that is refused as too long, all that is stored is summarised, with `overflow_retry`
        as the reason, and `chat` is asked once more, unless the policy says otherwise. Nothing is
        appended.

        Args:
            session: The session.
            chat: The call of the model: `chat(messages)`; a coroutine function for asyncio.
            key: The branch.
            current: The messages of the present request, which are sent whole; without them those
                from the last message of the user on.

        Raises:
            ContextOverflowError: It is still too long; what `chat` raised is its cause.
            Exception: What `chat` raised otherwise.

        Source: document 003, section 1.4.
        """
        return self._wait(self._do.call_with_summary(session, chat, key, current))

    def cleanup(self) -> int:
        """Free expired sessions and return their number. They are invisible before that, too."""
        return self._wait(self._free())

    def close(self, timeout_seconds: float | None = None) -> None:
        """Wait for running summaries, at most `timeout_seconds`, and close the store.

        Unfinished summaries are not stored. A file that was not yet cleaned up is cleaned up now.
        """
        self._stop_sweeping()
        self._jobs.close(timeout_seconds)
        if self._owes_sweep:
            with contextlib.suppress(SessionStoreError):
                self.cleanup()
        self._handle.close()


def _swept(service: ref[SessionService]) -> None:
    """Clean a service up, in a thread of a timer that keeps none alive."""
    if (swept := service()) is not None:
        swept._swept()


def _awaited(
    method: Callable[Concatenate[SessionService, P], Result],
) -> Callable[Concatenate[AsyncSessionService, P], Coroutine[Any, Any, Result]]:
    """Return a method of `SessionService` for a service whose `_wait` returns an awaitable."""

    @functools.wraps(method)
    async def awaited(self: AsyncSessionService, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        waiting: Any = method(self, *args, **kwargs)  # type: ignore[arg-type]
        result: Result = await waiting
        return result

    return awaited


class AsyncSessionService(Base):
    """The methods of `SessionService`, for asyncio: none blocks the event loop."""

    __doc__ = f"{__doc__}\n\n{Base.__doc__}"
    _is_async = True

    _job_class = AsyncJobs
    _jobs: AsyncJobs

    create = _awaited(SessionService.create)
    get = _awaited(SessionService.get)
    get_or_create = _awaited(SessionService.get_or_create)
    list_sessions = _awaited(SessionService.list_sessions)
    delete = _awaited(SessionService.delete)
    append = _awaited(SessionService.append)
    replace_tail = _awaited(SessionService.replace_tail)
    set_meta = _awaited(SessionService.set_meta)
    app_state = _awaited(SessionService.app_state)
    user_state = _awaited(SessionService.user_state)
    session_state = _awaited(SessionService.session_state)
    update_app_state = _awaited(SessionService.update_app_state)
    update_user_state = _awaited(SessionService.update_user_state)
    update_session_state = _awaited(SessionService.update_session_state)
    summarize = _awaited(SessionService.summarize)
    summary_text = _awaited(SessionService.summary_text)
    summaries = _awaited(SessionService.summaries)
    context = _awaited(SessionService.context)
    call_with_summary = _awaited(SessionService.call_with_summary)
    cleanup = _awaited(SessionService.cleanup)

    async def __aenter__(self) -> AsyncSessionService:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _wait(self, operation: Generator[Wait, Any, Result]) -> Result:
        result = await run_async(operation, self._outcome)
        self._sweep_later()
        return result

    def _sweep_later(self) -> None:
        if not self._sweep_seconds:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # opened outside of one: with the first call
            return
        if self._sweep_timer is None or self._sweep_loop is not loop:
            self._sweep_loop = loop
            self._sweep_timer = loop.call_later(self._until_sweep(), _begin_sweep, ref(self))

    async def _swept(self) -> None:
        try:
            await self._wait(self._sweep())
        except SessionStoreError as error:
            self._log_sweep(error)
        self._sweep_timer = None
        self._sweep_later()

    async def _outcome(self, due: Wait) -> Any:
        if not isinstance(due, Summarise):
            awaitable: Awaitable[Any] = due()
            return await awaitable
        assert self._summarizer is not None
        return await self._summarizer.asummarize(
            due.messages, previous=due.previous, reason=due.reason
        )

    async def enqueue_summary(
        self, session: SessionHead, key: str = "", *, force: bool = False
    ) -> AsyncJob[SessionSummary | None]:
        """See `SessionService.enqueue_summary`; the job is to be awaited."""
        work = self._summary_work(session, key, force)
        return await self._jobs.submit(session.key, work, part=key, force=force)

    async def close(self, timeout_seconds: float | None = None) -> None:
        """See `SessionService.close`."""
        self._stop_sweeping()
        await self._jobs.close(timeout_seconds)
        if self._owes_sweep:
            with contextlib.suppress(SessionStoreError):
                await self.cleanup()
        self._handle.close()


def _begin_sweep(service: ref[AsyncSessionService]) -> None:
    if (swept := service()) is not None and swept._sweep_seconds:
        swept._sweep_timer = asyncio.get_running_loop().create_task(swept._swept())
