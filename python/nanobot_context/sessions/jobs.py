"""Runs jobs, such as summaries, in background threads; `tasks` runs them in asyncio.

- Jobs of one key run in the order in which they came, one at a time.
- A job that is handed in while one of its key and part still waits is merged into that one.
- Where the queue is full, or there are no workers, a job runs in the caller.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import threading
from abc import abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from nanobot_context.arguments import check_timeout, check_whole
from nanobot_context.forks import ThreadLock, begin_in_children

T = TypeVar("T")

# Errors that are remembered: enough to see a pattern.
_ERRORS = 100

State = Literal["queued", "running", "done", "failed", "timed_out", "cancelled"]
# Who runs a submitted job: a new worker, the caller, nobody, or the next free worker.
Runner = Literal["worker", "caller", "nobody", "line"]
# The result in a tuple, or the exception; `None` for a cancelled job.
Outcome: TypeAlias = tuple[Any] | BaseException | None
Work: TypeAlias = Callable[[bool, Callable[[], bool]], T]


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
    """The number of jobs by state.

    Each job that was handed in is counted once in `queued`, `running`, `done`, `failed`,
    `timed_out`, `cancelled` or `coalesced`; `ran_in_caller` says how many of them had no worker.
    """

    queued: int = 0
    running: int = 0
    done: int = 0
    failed: int = 0
    timed_out: int = 0
    cancelled: int = 0
    coalesced: int = 0
    ran_in_caller: int = 0


class AnyJob:
    def __init__(
        self, jobs: JobLine[Any], key: Hashable, work: Callable[..., Any], part: str, force: bool
    ) -> None:
        self._jobs = jobs
        self.key = key
        self.work = work
        self.part = part
        self.force = force
        self.state: State = "queued"

    def done(self) -> bool:
        """Return whether the job has ended, one way or another."""
        return self.state not in ("queued", "running")

    def cancelled(self) -> bool:
        """Return whether the result is not wanted any more: cancelled, or too late."""
        return self.state in ("cancelled", "timed_out")

    def cancel(self) -> bool:
        """Cancel the job for everybody who waits; `False` where it has ended.

        A thread cannot be ended: `work` goes on until it returns or asks `cancelled`.
        """
        return self._jobs._abandon(self, "cancelled")

    @abstractmethod
    def _resolve(self, outcome: Outcome) -> None:
        """Tell those that wait how the job ended."""


class Job(AnyJob, Generic[T]):
    """A job of `Jobs`."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._future: concurrent.futures.Future[T] = concurrent.futures.Future()
        self._outcome: Outcome = None
        begin_in_children(self)

    def result(self, timeout_seconds: float | None = None) -> T:
        """Wait for the job, at most `timeout_seconds`, and return what `work` returned.

        Raises:
            concurrent.futures.CancelledError: It was cancelled.
            TimeoutError: It, or the wait for it, took too long.
            Exception: What `work` raised.
        """
        return self._future.result(timeout_seconds)

    def begin_in_child(self) -> None:
        """Cancel the job in a forked child, unless it has ended: the parent runs it."""
        # Another one: a thread of the parent may have held the lock of the one before.
        self._future = concurrent.futures.Future()
        if self._outcome is None:
            self.state = "cancelled"
        self._resolve(self._outcome)

    def _resolve(self, outcome: Outcome) -> None:
        self._outcome = outcome
        if outcome is None:
            self._future.cancel()
            self._future.set_running_or_notify_cancel()  # tells those that wait
        elif isinstance(outcome, tuple):
            self._future.set_result(*outcome)
        else:
            self._future.set_exception(outcome)


JobT = TypeVar("JobT", bound=AnyJob)


class JobLine(Generic[JobT]):
    """Which job runs when.

    At most one job of a key runs, and at most one waits of each of its parts. One that waits for
    its own key is taken in even where the queue is full: the caller must not run it beside the
    other, and could wait for itself. O(jobs that wait) for each call.

    Args:
        workers: Jobs that run at once; with 0 each runs in its caller.
        queue: Jobs that wait at most.
        timeout_seconds: How long a job may run, not counting its wait; `None` for any time.

    Raises:
        InvalidArgumentError: One of them cannot be used.
    """

    _kind: Callable[..., JobT]

    def __init__(self, *, workers: int, queue: int, timeout_seconds: float | None) -> None:
        check_whole("workers", workers)
        check_whole("queue", queue)
        check_timeout(timeout_seconds)
        self._workers = workers
        self._capacity = queue
        self._timeout = timeout_seconds
        self._lock = ThreadLock()
        self.begin_in_child()
        begin_in_children(self)

    def begin_in_child(self) -> None:
        """Start without jobs: in a forked child threads and jobs are the parent's."""
        self._busy = 0
        self._queued: dict[tuple[Hashable, str], JobT] = {}
        self._running: dict[Hashable, JobT] = {}
        self._ended: Counter[str] = Counter()
        self._errors: deque[JobError] = deque(maxlen=_ERRORS)

    @property
    def counts(self) -> JobCounts:
        """How many jobs there are and were."""
        with self._lock:
            held = {"queued": len(self._queued), "running": len(self._running)}
            ended = {field.name: self._ended[field.name] for field in fields(JobCounts)}
            return JobCounts(**(ended | held))

    @property
    def errors(self) -> tuple[JobError, ...]:
        """The last 100 failures, oldest first."""
        with self._lock:
            return tuple(self._errors)

    def submit_nowait(self, key: Hashable, work: Callable[..., Any], *, part: str = "") -> bool:
        """Hand in a job as `submit` does; `False` where it would have to run in the caller."""
        new = self._kind(self, key, work, part, False)
        return self._admit(new, may_run_here=False)[1] != "nobody"

    @abstractmethod
    def _start(self, job: JobT, runner: Runner) -> None:
        """Begin to run a job where no caller waits for it."""

    def _stop(self, job: JobT) -> None:
        """End a job that was given up, if that can be done."""

    def _admit(self, new: JobT, *, may_run_here: bool) -> tuple[JobT, Runner]:
        """Admit a job; return it, or the one it was merged into, and who is to run it.

        Changes nothing if there is no room, no worker, and the caller is not to run it.
        """
        with self._lock:
            job, runner = self._place(new, may_run_here)
        if runner == "worker":
            self._start(job, runner)
        return job, runner

    def _place(self, new: JobT, may_run_here: bool) -> tuple[JobT, Runner]:
        if waiting := self._queued.get((new.key, new.part)):
            waiting.work, waiting.force = new.work, waiting.force or new.force
            self._ended["coalesced"] += 1
            return waiting, "line"
        is_running = new.key in self._running
        if not is_running and self._busy < self._workers:
            self._busy += 1
            self._begin(new)
            return new, "worker"
        if is_running or (self._workers and len(self._queued) < self._capacity):
            self._queued[new.key, new.part] = new
            return new, "line"
        if not may_run_here:
            return new, "nobody"
        self._begin(new)
        self._ended["ran_in_caller"] += 1
        return new, "caller"

    def _next(self) -> JobT | None:
        """Begin and return the next job of a free worker; `None` ends the worker."""
        with self._lock:
            job = self._begin_next()
            self._busy -= job is None
            return job

    def _wake(self, *, here: bool) -> tuple[JobT, Runner] | None:
        """Begin a job that waited for a key that is now free; return it and who is to run it.

        With `here` that is the caller where there are no workers.
        """
        with self._lock:
            if not self._workers:
                job = self._begin_next() if here else None
                self._ended["ran_in_caller"] += job is not None
                return (job, "caller") if job else None
            job = self._begin_next() if self._busy < self._workers else None
            self._busy += job is not None
            return (job, "worker") if job else None

    def _begin_next(self) -> JobT | None:
        free = (job for job in self._queued.values() if job.key not in self._running)
        job = next(free, None)
        if job is not None:
            del self._queued[job.key, job.part]
            self._begin(job)
        return job

    def _begin(self, job: JobT) -> None:
        job.state = "running"
        self._running[job.key] = job

    def _end(self, job: JobT, state: State, outcome: Outcome = None) -> bool:
        """Record how a job ended, and free its key; `False` if it had ended before."""
        with self._lock:
            if job.done():
                return False
            if self._queued.get((job.key, job.part)) is job:
                del self._queued[job.key, job.part]
            if self._running.get(job.key) is job:
                del self._running[job.key]
            job.state = state
            self._ended[state] += 1
            if isinstance(outcome, BaseException):
                self._errors.append(JobError(job.key, state, format_error(outcome)))
        job._resolve(outcome)
        return True

    def _abandon(self, job: JobT, state: Literal["cancelled", "timed_out"]) -> bool:
        """End a job from outside; `False` where it has ended."""
        is_late = state == "timed_out"
        late = TimeoutError(f"the job took longer than {self._timeout:g} s") if is_late else None
        if not self._end(job, state, late):
            return False
        self._stop(job)
        if woken := self._wake(here=False):
            self._start(*woken)
        return True

    def _cancel_all(self, *, running: bool = False) -> None:
        with self._lock:
            jobs = [*self._queued.values(), *(self._running.values() if running else ())]
        for job in jobs:
            self._abandon(job, "cancelled")

    def _begin_close(self) -> list[JobT]:
        """Cancel what waits, have every later job run in its caller, and return what runs."""
        with self._lock:
            self._workers = 0
        self._cancel_all()
        with self._lock:
            return list(self._running.values())


class Jobs(JobLine[Job[Any]]):
    """Runs jobs in threads, which exist only while there is something to do.

    What takes longer than the timeout is given up, and the next job of its key may run; its thread
    remains busy until `work` returns, so give the call of the model a timeout of its own. The
    threads are daemons: a process that ends waits for none of them, see `close`.
    """

    _kind = Job

    def submit(
        self, key: Hashable, work: Work[T], *, part: str = "", force: bool = False
    ) -> Job[T]:
        """Submit a job and return it. Never raises what `work` raises.

        Args:
            key: What it belongs to, such as a session's key.
            work: `work(force, cancelled)` returns the result. `cancelled()` says whether nobody
                wants it any more. It is called in any thread, with no lock held.
            part: What of the key it is about.
            force: Handed on to `work`; a job that waits and is merged with one that has it gets it.
        """
        job, runner = self._admit(Job(self, key, work, part, force), may_run_here=True)
        if runner == "caller":
            self._run_here(job)
        return job

    def close(self, timeout_seconds: float | None = None) -> None:
        """Cancel waiting jobs and let running ones end; later jobs run in their caller.

        Args:
            timeout_seconds: After these what still runs is cancelled, too; `None` to wait for it.
                Not to be called by a job.
        """
        running = [job._future for job in self._begin_close()]
        concurrent.futures.wait(running, timeout_seconds)
        if timeout_seconds is not None:
            self._cancel_all(running=True)

    def _start(self, job: Job[Any], runner: Runner) -> None:
        thread = threading.Thread(
            target=self._work, args=(job,), name="nanobot-context-summary", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:  # no further thread, as when the interpreter ends
            self._work(job)

    def _work(self, job: Job[Any] | None) -> None:
        while job is not None:
            self._run(job)
            job = self._next()

    def _run_here(self, job: Job[Any]) -> None:
        runner: Runner = "caller"
        error = None
        while runner == "caller":
            error = self._run(job) or error
            job, runner = self._wake(here=True) or (job, "nobody")
        if runner == "worker":
            self._start(job, runner)
        if error is not None:
            raise error

    def _run(self, job: Job[Any]) -> BaseException | None:
        """Run a job; return what it raised if that is not an `Exception`."""
        clock = threading.Timer(self._timeout or 0, self._abandon, (job, "timed_out"))
        clock.daemon = True
        if self._timeout is not None:
            with contextlib.suppress(RuntimeError):  # no further thread: it has to end by itself
                clock.start()
        try:
            self._end(job, "done", (job.work(job.force, job.cancelled),))
        except BaseException as error:
            self._end(job, "failed", error)
            return None if isinstance(error, Exception) else error
        finally:
            clock.cancel()
        return None


def format_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
