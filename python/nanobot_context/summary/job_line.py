"""Which summary is made when: the rules for jobs in the background, without I/O.

A job is a function that makes a summary and one that stores it. `SummaryJobs` runs them in threads,
`AsyncSummaryJobs` as tasks of asyncio; both go by `JobLine`:

- jobs of one key run in the order in which they came, one at a time;
- a job that is handed in while one of its key still waits is merged into that one;
- where the queue is full, or there are no workers, a job runs in the caller;
- `store` is called only for a job that ended, in time and not cancelled, and nothing cancels it
  from then on.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields
from typing import Any, Generic, Literal, TypeVar

from nanobot_context.arguments import check_choice, check_timeout, check_whole

__all__ = [
    "GRACE_SECONDS",
    "QUEUE",
    "TIMEOUT_SECONDS",
    "WORKERS",
    "JobCounts",
    "JobError",
    "JobLine",
    "Runner",
    "State",
    "Ticket",
    "check_options",
    "format_error",
    "too_late",
]

# Document 002: `WithAsyncSummaryNum`, `WithSummaryQueueSize` and the timeout of a summary.
WORKERS = 2
QUEUE = 100
TIMEOUT_SECONDS = 30.0

# Errors that are remembered: enough to see a pattern.
_ERRORS = 100
# How long `close` waits at the end for what stores its result or was cancelled just now.
GRACE_SECONDS = 1.0

State = Literal[
    "queued", "running", "storing", "done", "failed", "timed_out", "cancelled", "dropped"
]
_FINAL = ("done", "failed", "timed_out", "cancelled", "dropped")
# Who runs a job that was handed in: a new worker, the caller, nobody, or whoever gets to it.
Runner = Literal["worker", "caller", "nobody", "line"]


@dataclass(frozen=True, slots=True)
class JobError:
    """A job that failed.

    Attributes:
        key: Its key.
        state: `failed` or `timed_out`.
        error: The exception's class and text; not the exception, which would keep the messages of
            a conversation alive.
    """

    key: Hashable
    state: State
    error: str


@dataclass(frozen=True, slots=True)
class JobCounts:
    """How many jobs there are, and what became of those before.

    Each `submit` is counted once in `queued`, `running`, `done`, `failed`, `timed_out`,
    `cancelled`, `dropped` or `coalesced`; `ran_in_caller` says how many of them had no worker.
    """

    queued: int = 0
    running: int = 0
    done: int = 0
    failed: int = 0
    timed_out: int = 0
    cancelled: int = 0
    dropped: int = 0
    coalesced: int = 0
    ran_in_caller: int = 0


class Ticket:
    """What `JobLine` knows of a job.

    Attributes:
        key: Jobs of one key never run at the same time.
        force: Whether a summary is wanted although none is due.
        state: `queued`, `running`, `storing` its result, or how it ended.
    """

    def __init__(
        self,
        key: Hashable,
        work: Callable[..., Any],
        store: Callable[[Any], Any] | None,
        force: bool,
    ) -> None:
        self.key = key
        self.work = work
        self.store = store
        self.force = force
        self.state: State = "queued"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(key={self.key!r}, state={self.state!r})"

    def done(self) -> bool:
        """Return whether the job has ended, one way or another."""
        return self.state in _FINAL

    def cancelled(self) -> bool:
        """Return whether the result is not wanted any more: cancelled, or too late."""
        return self.state in ("cancelled", "timed_out")


TicketT = TypeVar("TicketT", bound=Ticket)


class JobLine(Generic[TicketT]):
    """Which job runs when; no I/O, no clock and no lock of its own.

    At most one job of a key runs and at most one waits. One that waits for its own key is taken
    in even where the queue is full: the caller must not run it beside the other, and could wait
    for itself. That is one more for each that runs. O(jobs that wait) for each call.
    """

    def __init__(self, workers: int, capacity: int) -> None:
        for argument, number in (("workers", workers), ("queue", capacity)):
            check_whole(argument, number)
        self._workers = workers
        self._capacity = capacity
        self._busy = 0
        self._queued: dict[Hashable, TicketT] = {}
        self._running: dict[Hashable, TicketT] = {}
        self._ended: Counter[str] = Counter()
        self.errors: deque[JobError] = deque(maxlen=_ERRORS)

    @property
    def counts(self) -> JobCounts:
        """The counts at this moment."""
        held = {"queued": len(self._queued), "running": len(self._running)}
        ended = {field.name: self._ended[field.name] for field in fields(JobCounts)}
        return JobCounts(**(ended | held))

    def queued(self) -> list[TicketT]:
        """Return the jobs that wait."""
        return list(self._queued.values())

    def running(self) -> list[TicketT]:
        """Return the jobs that run or store their result."""
        return list(self._running.values())

    def admit(
        self, new: TicketT, if_full: Literal["run", "drop", "refuse"]
    ) -> tuple[TicketT, Runner]:
        """Take a job in; return the one that stands for it, and who is to run it.

        `refuse` changes nothing where there is no room and no worker.
        """
        if waiting := self._queued.get(new.key):
            waiting.work, waiting.store = new.work, new.store
            waiting.force = waiting.force or new.force
            self._ended["coalesced"] += 1
            return waiting, "line"
        if new.key in self._running:
            self._queued[new.key] = new
            return new, "line"
        if self._busy < self._workers:
            self._busy += 1
            self._start(new)
            return new, "worker"
        if self._workers and len(self._queued) < self._capacity:
            self._queued[new.key] = new
            return new, "line"
        if if_full == "refuse":
            return new, "nobody"
        if self._workers and if_full == "drop":
            new.state = "dropped"
            self._ended["dropped"] += 1
            return new, "nobody"
        self._start(new)
        self._ended["ran_in_caller"] += 1
        return new, "caller"

    def next(self) -> TicketT | None:
        """Start and return what a worker does next, which is free; `None` lets it go."""
        job = self._start_next()
        if job is None:
            self._busy -= 1
        return job

    def wake(self, *, here: bool) -> tuple[TicketT, Runner] | None:
        """Start what waited for a key that is free now, and say who is to run it.

        With `here` that is the caller where there are no workers.
        """
        if not self._workers:
            job = self._start_next() if here else None
            self._ended["ran_in_caller"] += job is not None
            return (job, "caller") if job else None
        job = self._start_next() if self._busy < self._workers else None
        if job is None:
            return None
        self._busy += 1
        return job, "worker"

    def begin_store(self, job: TicketT) -> bool:
        """Return whether the result of a job is to be stored; from then on it is not cancelled."""
        if job.state != "running":
            return False
        job.state = "storing"
        return True

    def end(self, job: TicketT, state: State, error: str = "") -> bool:
        """Say how a job ended, and free its key; `False` where that was said before."""
        if job.state in _FINAL:
            return False
        for jobs in (self._queued, self._running):
            if jobs.get(job.key) is job:
                del jobs[job.key]
        job.state = state
        self._ended[state] += 1
        if error:
            self.errors.append(JobError(job.key, state, error))
        return True

    def abandon(self, job: TicketT, state: State, error: str = "") -> bool:
        """End a job from outside; `False` where it has ended or stores its result."""
        return job.state != "storing" and self.end(job, state, error)

    def emptied(self) -> JobLine[TicketT]:
        """Return such a line as it was before the first job."""
        return JobLine(self._workers, self._capacity)

    def close(self) -> None:
        """Do without workers from now on; those that are busy end with their job."""
        self._workers = 0

    def _start_next(self) -> TicketT | None:
        free = (job for key, job in self._queued.items() if key not in self._running)
        job = next(free, None)
        if job is not None:
            del self._queued[job.key]
            self._start(job)
        return job

    def _start(self, job: TicketT) -> None:
        job.state = "running"
        self._running[job.key] = job


def check_options(timeout_seconds: float | None, on_full: str) -> float | None:
    """Return `timeout_seconds`; raise `InvalidArgumentError` for options that cannot be used."""
    check_timeout("timeout_seconds", timeout_seconds)
    check_choice("on_full", on_full, ("run", "drop"))
    return timeout_seconds


def too_late(timeout: float | None) -> TimeoutError:
    """Return what those get who wait for a job that was given up."""
    return TimeoutError(f"the job took longer than {timeout:g} s")


def format_error(error: BaseException) -> str:
    """Return an error as it is recorded."""
    return f"{type(error).__name__}: {error}"
