"""What both session services are made of: their options, and the summaries that are waited for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from nanobot_context._core import SessionStoreHandle, SummaryPolicy, Trigger
from nanobot_context.arguments import (
    check_choice,
    check_flag,
    check_instance,
    check_whole,
    invalid,
    is_number,
    text_of,
)
from nanobot_context.errors import SessionStoreError
from nanobot_context.sessions.jobs import JobCounts, JobError, Jobs, Work
from nanobot_context.sessions.operations import USER_FIRST, Operation, check_session
from nanobot_context.sessions.records import SessionEvent, SessionHead
from nanobot_context.sessions.summarising import Operations
from nanobot_context.sessions.tasks import AsyncJobs
from nanobot_context.summary import Summarizer

Events = list[SessionEvent]
UserFirst = Literal["prepend", "drop", "off"]

# Events of a session at most. Source: document 002, `WithSessionEventLimit`.
EVENT_LIMIT = 1_000
# Room for a summary by rules after the model's time is over.
_JOB_GRACE_SECONDS = 15.0


class Base:
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
    _job_class: type[Jobs] | type[AsyncJobs]
    _jobs: Jobs | AsyncJobs

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
        policy = policy or SummaryPolicy()
        self._do = Operations(
            self._handle,
            summarizer,
            policy,
            trigger,
            placeholder=placeholder,
            user_first=user_first,
        )
        self._summarizer = summarizer
        self._is_auto = auto_summary and summarizer is not None
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

    def _append(
        self, session: SessionHead, events: Iterable[SessionEvent], expected: int | None
    ) -> Operation[Events]:
        stored = yield from self._do.append(session, events, expected)
        key = _ended_turn(stored) if self._is_auto else None
        if key is not None:
            self._jobs.submit_nowait(session.key, self._summary_work(session, key, False), part=key)
        return stored

    @abstractmethod
    def _wait(self, operation: Operation[Any]) -> Any:
        """Do what an operation asks for, and return what it returns, or an awaitable of that."""

    def _summary_work(self, session: SessionHead, key: str, force: bool) -> Work[Any]:
        """Return the job that summarises a branch of a session."""
        check_session(session)
        text_of("key", key)
        check_flag("force", force)

        def work(force: bool, cancelled: Callable[[], bool]) -> Any:
            return self._wait(self._do.summarize(session, key, force, lambda: not cancelled()))

        return work

    def __repr__(self) -> str:
        try:
            return f"{type(self).__name__}({self._handle.describe()})"
        except SessionStoreError:
            return f"{type(self).__name__}(closed)"


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


def _milliseconds(name: str, seconds: float) -> int:
    if not (is_number(seconds) and 0 <= seconds < 1e12):
        raise invalid(name, "a number of seconds from 0 on", seconds)
    return round(seconds * 1_000)
