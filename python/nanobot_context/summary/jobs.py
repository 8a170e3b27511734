"""Summaries in the background, in threads."""

from __future__ import annotations

import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Hashable, Iterable
from types import TracebackType
from typing import Any, Generic, Literal, TypeVar

from nanobot_context.forks import ThreadLock, begin_in_children
from nanobot_context.summary.job_line import (
    GRACE_SECONDS,
    QUEUE,
    TIMEOUT_SECONDS,
    WORKERS,
    JobCounts,
    JobError,
    JobLine,
    Runner,
    State,
    Ticket,
    check_options,
    format_error,
    too_late,
)

__all__ = ["Job", "SummaryJobs"]

T = TypeVar("T")


class Job(Ticket, Generic[T]):
    """A job of `SummaryJobs`."""

    def __init__(
        self,
        jobs: SummaryJobs,
        key: Hashable,
        work: Callable[[bool, Callable[[], bool]], T],
        store: Callable[[T], object] | None,
        force: bool,
    ) -> None:
        super().__init__(key, work, store, force)
        self._jobs = jobs
        self._future: concurrent.futures.Future[T] = concurrent.futures.Future()
        self._outcome: tuple[T] | BaseException | None = None
        begin_in_children(self)

    def result(self, timeout: float | None = None) -> T:
        """Wait for the job, at most `timeout` seconds, and return what `work` returned.

        Raises:
            concurrent.futures.CancelledError: It was cancelled or dropped.
            TimeoutError: It, or the wait for it, took too long.
            Exception: What `work` or `store` raised.
        """
        return self._future.result(timeout)

    def cancel(self) -> bool:
        """Cancel the job for everybody who waits; `False` where it has ended or is being stored.

        A thread cannot be ended: `work` goes on until it returns or asks `cancelled`, and its
        result is thrown away.
        """
        return self._jobs._abandon(self, "cancelled")

    def begin_in_child(self) -> None:
        """Cancel the job in a forked child, unless it has ended: the parent runs it."""
        # Another one: a thread of the parent may have held the lock of the one before.
        self._future = concurrent.futures.Future()
        if self._outcome is None:
            self.state = "cancelled"
        self._resolve(self._outcome)

    def _resolve(self, outcome: tuple[T] | BaseException | None) -> None:
        """Tell those that wait what `work` returned, or what went wrong; `None` is cancelled."""
        self._outcome = outcome
        if outcome is None:
            self._future.cancel()
            self._future.set_running_or_notify_cancel()  # tells those that wait
        elif isinstance(outcome, tuple):
            self._future.set_result(*outcome)
        else:
            self._future.set_exception(outcome)


class SummaryJobs:
    """Runs jobs in threads, which exist only while there is something to do.

    What takes longer than `timeout_seconds` is given up, and the next job of its key may run; its
    thread remains busy until `work` returns, so give the call of the model a timeout of its own.
    The threads are daemons: a process that ends waits for none of them, see `close`.
    """

    def __init__(
        self,
        *,
        workers: int = WORKERS,
        queue: int = QUEUE,
        timeout_seconds: float | None = TIMEOUT_SECONDS,
        on_full: Literal["run", "drop"] = "run",
    ) -> None:
        """Start nothing yet.

        Args:
            workers: Threads at most; with 0 every job runs in the caller.
            queue: Jobs that wait at most.
            timeout_seconds: How long a job may run, not counting its wait; `None` for any time. A
                `Summarizer` has its own, after which it makes a summary by rules: a job needs more.
            on_full: Whether a job for which there is no room runs in the caller or not at all.

        Raises:
            InvalidArgumentError: One of them cannot be used.
        """
        self._line: JobLine[Job[Any]] = JobLine(workers, queue)
        self._timeout = check_options(timeout_seconds, on_full)
        self._on_full = on_full
        self._lock = ThreadLock()
        begin_in_children(self)

    @property
    def counts(self) -> JobCounts:
        """How many jobs there are and were."""
        with self._lock:
            return self._line.counts

    @property
    def errors(self) -> tuple[JobError, ...]:
        """The last 100 failures, oldest first."""
        with self._lock:
            return tuple(self._line.errors)

    def submit(
        self,
        key: Hashable,
        work: Callable[[bool, Callable[[], bool]], T],
        store: Callable[[T], object] | None = None,
        *,
        force: bool = False,
    ) -> Job[T]:
        """Hand in a job, and return it; whatever `work` raises, this does not.

        Args:
            key: What it belongs to, such as a session's key.
            work: `work(force, cancelled)` returns the result. `cancelled()` says whether nobody
                wants it any more. It is called in any thread, with no lock held.
            store: `store(result)` keeps the result; one at a time for a key.
            force: Handed on to `work`; a job that waits and is merged with one that has it gets it.
        """
        new = Job(self, key, work, store, force)
        with self._lock:
            job, runner = self._line.admit(new, self._on_full)
        if runner == "worker":
            self._start_worker(job)
        elif runner == "caller":
            self._run_here(job)
        elif runner == "nobody":
            job._resolve(None)
        return job

    def submit_nowait(
        self,
        key: Hashable,
        work: Callable[[bool, Callable[[], bool]], T],
        store: Callable[[T], object] | None = None,
        *,
        force: bool = False,
    ) -> bool:
        """Hand in a job as `submit` does; `False` where it would have to run in the caller."""
        with self._lock:
            job, runner = self._line.admit(Job(self, key, work, store, force), "refuse")
        if runner == "worker":
            self._start_worker(job)
        return runner != "nobody"

    def close(self, deadline: float | None = None) -> None:
        """Cancel what waits and let what runs end; afterwards every job runs in its caller.

        Args:
            deadline: Seconds until what still runs is cancelled, too; `None` to wait for it. What
                is being stored then gets a second more. Not to be called by a job.
        """
        with self._lock:
            self._line.close()
            queued, running = self._line.queued(), self._line.running()
        self._cancel(queued)
        concurrent.futures.wait([job._future for job in running], deadline)
        if deadline is None:
            return
        with self._lock:
            queued, running = self._line.queued(), self._line.running()
        self._cancel([*queued, *running])
        concurrent.futures.wait([job._future for job in running], GRACE_SECONDS)

    def __enter__(self) -> SummaryJobs:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close(None if error is None else 0)

    def begin_in_child(self) -> None:
        """Be as new in a forked child: the threads that work, and their jobs, are the parent's."""
        self._line = self._line.emptied()

    def _cancel(self, jobs: Iterable[Job[Any]]) -> None:
        for job in jobs:
            self._abandon(job, "cancelled")

    def _start_worker(self, job: Job[Any]) -> None:
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
            with self._lock:
                job = self._line.next()

    def _run_here(self, job: Job[Any]) -> None:
        runner: Runner = "caller"
        error = None
        while runner == "caller":
            error = self._run(job) or error
            with self._lock:
                job, runner = self._line.wake(here=True) or (job, "nobody")
        if runner == "worker":
            self._start_worker(job)
        if error is not None:
            raise error

    def _run(self, job: Job[Any]) -> BaseException | None:
        """Run a job, and return what was raised in it that no job may keep from its caller."""
        clock = self._start_clock(job)
        try:
            value = job.work(job.force, job.cancelled)
            with self._lock:
                is_wanted = self._line.begin_store(job)
            if is_wanted and job.store is not None:
                job.store(value)
            with self._lock:
                has_ended = self._line.end(job, "done")
            if has_ended:
                job._resolve((value,))
        except BaseException as error:
            with self._lock:
                has_ended = self._line.end(job, "failed", format_error(error))
            if has_ended:
                job._resolve(error)
            return None if isinstance(error, Exception) else error
        finally:
            clock.cancel()
        return None

    def _start_clock(self, job: Job[Any]) -> threading.Timer:
        clock = threading.Timer(self._timeout or 0, self._abandon, (job, "timed_out"))
        clock.daemon = True
        if self._timeout is not None:
            with contextlib.suppress(RuntimeError):  # no further thread: it has to end by itself
                clock.start()
        return clock

    def _abandon(self, job: Job[Any], state: State) -> bool:
        late = too_late(self._timeout) if state == "timed_out" else None
        with self._lock:
            if not self._line.abandon(job, state, format_error(late) if late else ""):
                return False
            woken = self._line.wake(here=False)
        job._resolve(late)
        if woken is not None:
            self._start_worker(woken[0])
        return True
