"""Shared by both session services: options, summaries in the background, clean-ups."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
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
from nanobot_context.forks import ThreadLock, begin_in_children
from nanobot_context.sessions.jobs import JobCounts, JobError, Jobs, Work
from nanobot_context.sessions.operations import USER_FIRST, Operation, check_session
from nanobot_context.sessions.records import SessionEvent, SessionHead, StoredSession
from nanobot_context.sessions.store_url import RedisClient, store_url
from nanobot_context.sessions.summarising import Operations, begins_turn, ends_turn
from nanobot_context.sessions.tasks import AsyncJobs
from nanobot_context.summary import Limits, Observed, Summarizer, When

logger = logging.getLogger("nanobot_context")

Events = list[SessionEvent]
UserFirst = Literal["prepend", "drop", "off"]

# Events of a session at most. Source: document 002, `WithSessionEventLimit`.
EVENT_LIMIT = 1_000
# Room for a summary by rules after the model's time is over.
_JOB_GRACE_SECONDS = 15.0
# Source: document 002, `WithCleanupInterval`.
_CLEANUP_SECONDS = 300.0
# A file holds what expired while no process was there: the first clean-up does not wait.
_FIRST_CLEANUP_SECONDS = 1.0
# How long, and of how many sessions, it is remembered that they may fall silent.
_WATCHED_SECONDS = 86_400.0
_WATCHED_SESSIONS = 1_000


class Base:
    """Common base of both services.

    Args:
        url: `memory:`, `sqlite:///path`, `redis://…` or `rediss://…`. Of SQLite, `?durability=full`
            waits for the disk with each write. A client of redis-py stands for its server: where it
            is and how to log in are taken from it, its connections are not.
        store_options: What may stand behind the `?` of a URL, such as `{"replicas": 1}`.
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
        policy: When, and how many messages stay; by default those of `SummaryPolicy`, and none
            with a check of your own.
        trigger: A check in place of the policy's limits: `Trigger.messages(gt=20)`, a function of
            `Observed`, or one that says how much is covered, too, such as `Rolling()`. Silence is
            looked at when a turn begins, and with each clean-up.
        placeholder: Whether an event is stored where a summary was made.
        auto_summary: Whether `append` has the session summarised in the background, if that is due,
            when a turn has ended: with a message of the assistant that calls no tool. Where too
            many sessions wait, the next turn does it.
        summary_workers: Summaries that are made at once in the background.
        summary_queue: Sessions that wait for one; further ones are summarised in the caller.
        cleanup_interval_seconds: Seconds from one clean-up in the background to the next; 0 for
            none. It frees what has expired, in memory and in a file (Redis does so by itself), and
            looks which sessions have fallen silent. A file is cleaned up a second after it was
            opened, too, and by a process that ends before.

    Raises:
        InvalidArgumentError: An argument cannot be used.
        SessionStoreError: The store cannot be opened; its classes say why.
    """

    _is_async = False
    _job_class: type[Jobs] | type[AsyncJobs]
    _jobs: Jobs | AsyncJobs

    def __init__(
        self,
        url: str | RedisClient = "memory:",
        *,
        store_options: Mapping[str, Any] | None = None,
        event_limit: int = EVENT_LIMIT,
        session_ttl_seconds: float = 0,
        app_state_ttl_seconds: float = 0,
        user_state_ttl_seconds: float = 0,
        refresh: Literal["write", "read_write"] = "write",
        routing: Literal["scoped", "raw"] = "scoped",
        user_first: UserFirst = "off",
        summarizer: Summarizer | None = None,
        policy: SummaryPolicy | None = None,
        trigger: Trigger | Callable[[Observed], bool | str | None] | When | None = None,
        placeholder: bool = False,
        auto_summary: bool = True,
        summary_workers: int = 2,
        summary_queue: int = 100,
        cleanup_interval_seconds: float = _CLEANUP_SECONDS,
    ) -> None:
        url = store_url(url, store_options)
        check_choice("refresh", refresh, ("write", "read_write"))
        check_choice("routing", routing, ("scoped", "raw"))
        check_choice("user_first", user_first, USER_FIRST)
        check_whole("event_limit", event_limit)
        check_flag("placeholder", placeholder)
        check_flag("auto_summary", auto_summary)
        check_whole("summary_workers", summary_workers)
        check_whole("summary_queue", summary_queue)
        check_instance("summarizer", summarizer, Summarizer, optional=True)
        check_instance("policy", policy, SummaryPolicy, optional=True)
        _milliseconds("cleanup_interval_seconds", cleanup_interval_seconds)
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
        policy = policy or _default_policy(trigger)
        when = _when(policy, trigger, summarizer.model if summarizer else None)
        self._do = Operations(
            self._handle,
            summarizer,
            policy,
            when,
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
        self._watches_silence = self._is_auto and isinstance(when, Limits) and when.watches_silence
        self._watched: dict[Hashable, tuple[SessionHead, str, float]] = {}
        expires = (session_ttl_seconds, app_state_ttl_seconds, user_state_ttl_seconds)
        # In a file may be what others have left.
        self._frees = any(expires) if url.startswith("memory") else not url.startswith("redis")
        has_sweeps = self._frees or self._watches_silence
        self._sweep_seconds = float(cleanup_interval_seconds) if has_sweeps else 0.0
        self._lock = ThreadLock()
        self.begin_in_child()
        begin_in_children(self)
        is_file = self._frees and not url.startswith("memory")
        self._owes_sweep = is_file and self._sweep_seconds > 0
        self._sweep_later()

    def begin_in_child(self) -> None:
        """Reset in a forked child: the clean-up and its timer are the parent's."""
        self._owes_sweep = False
        self._sweep_timer: threading.Timer | asyncio.Handle | asyncio.Task[None] | None = None
        self._sweep_loop: asyncio.AbstractEventLoop | None = None

    @property
    def summary_errors(self) -> Sequence[JobError]:
        """Errors of summaries in the background that left none behind, the newest hundred.

        A model that failed is not among them: see `summaries(failed=True)`.
        """
        return self._jobs.errors

    @property
    def summary_counts(self) -> JobCounts:
        """How many background summaries wait, run, are done, failed, timed out or were merged."""
        return self._jobs.counts

    def _append(
        self, session: SessionHead, events: Iterable[SessionEvent], expected: int | None
    ) -> Operation[Events]:
        stored = yield from self._do.append(session, events, expected)
        key = _turn(stored, self._watches_silence) if self._is_auto else None
        if key is not None:
            self._summarize_later(session, key)
            if self._watches_silence:
                self._watch(session, key, time.monotonic())
        return stored

    def _summarize_later(self, session: SessionHead, key: str) -> None:
        self._jobs.submit_nowait(session.key, self._summary_work(session, key, False), part=key)

    def _watch(self, session: SessionHead, key: str, since: float) -> None:
        head = session.head if isinstance(session, StoredSession) else session
        with self._lock:
            self._watched.pop((head.key, key), None)
            self._watched[head.key, key] = head, key, since
            if len(self._watched) > _WATCHED_SESSIONS:
                del self._watched[next(iter(self._watched))]

    def _sweep(self) -> Operation[None]:
        """Free what has expired, and enqueue summaries of sessions that fell silent."""
        with self._lock:
            begun = time.monotonic() - _WATCHED_SECONDS
            self._watched = {name: one for name, one in self._watched.items() if one[2] > begun}
            watched = list(self._watched.values())
        for head, key, _ in watched:
            self._summarize_later(head, key)
        if self._frees:
            yield from self._free()

    def _free(self) -> Operation[int]:
        self._owes_sweep = False
        return (yield from self._do.sweep())

    def _until_sweep(self) -> float:
        if self._owes_sweep:
            return min(_FIRST_CLEANUP_SECONDS, self._sweep_seconds)
        return self._sweep_seconds

    @abstractmethod
    def _sweep_later(self) -> None:
        """Schedule the next clean-up, unless one is scheduled."""

    def _stop_sweeping(self) -> None:
        self._sweep_seconds = 0.0
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()

    def _log_sweep(self, error: SessionStoreError) -> None:
        if self._sweep_seconds:  # else it was closed meanwhile
            logger.warning("could not clean up %r: %s", self, error)

    @abstractmethod
    def _wait(self, operation: Operation[Any]) -> Any:
        """Run an operation; return its result, or an awaitable of it."""

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


def _default_policy(trigger: Any) -> SummaryPolicy:
    """Return the policy for a trigger; with a check of the caller's own no message stays.

    Source: document 002, where a check that fires has no message left out of the summary.
    """
    check = trigger.trigger if isinstance(trigger, Limits) else trigger
    is_check = isinstance(check, Trigger) or (callable(check) and not hasattr(check, "due"))
    return SummaryPolicy(keep_last=0) if is_check else SummaryPolicy()


def _when(policy: SummaryPolicy, trigger: Any, model: str | None) -> When:
    if isinstance(trigger, Limits):
        return replace(trigger, policy=trigger.policy or policy, model=trigger.model or model)
    if hasattr(trigger, "due"):
        when: When = trigger
        return when
    if not (trigger is None or isinstance(trigger, Trigger) or callable(trigger)):
        raise invalid("trigger", "a `Trigger`, a function or a policy such as `Rolling()`", trigger)
    return Limits(policy, trigger, model=model)


def _turn(events: Events, with_begin: bool) -> str | None:
    """Return the filter key of the newest event that ends a turn, or begins one; `None` without."""
    found = (
        event.filter_key
        for event in reversed(events)
        if ends_turn(event) or (with_begin and begins_turn(event))
    )
    return next(found, None)


def _milliseconds(name: str, seconds: float) -> int:
    if not (is_number(seconds) and 0 <= seconds < 1e12):
        raise invalid(name, "a number of seconds from 0 on", seconds)
    return round(seconds * 1_000)
