"""Summaries in the background, as tasks of asyncio."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Generator, Hashable, Iterable
from types import TracebackType
from typing import Any, Generic, Literal, TypeVar

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

__all__ = ["AsyncJob", "AsyncSummaryJobs"]

T = TypeVar("T")


class AsyncJob(Ticket, Generic[T]):
    """A job of `AsyncSummaryJobs`; `await` it for its result.

    Whoever waits gets what `work` returned or what it or `store` raised, `TimeoutError` when it
    took too long and `asyncio.CancelledError` when it was cancelled or dropped. To stop waiting
    does not cancel the job.
    """

    def __init__(
        self,
        jobs: AsyncSummaryJobs,
        key: Hashable,
        work: Callable[[bool], Awaitable[T]],
        store: Callable[[T], object] | None,
        force: bool,
    ) -> None:
        super().__init__(key, work, store, force)
        self._jobs = jobs
        self._future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None

    def __await__(self) -> Generator[Any, None, T]:
        return asyncio.shield(self._future).__await__()

    def cancel(self) -> bool:
        """Cancel the job for everybody who waits; `False` where it has ended or is being stored."""
        return self._jobs._abandon(self, "cancelled")


class AsyncSummaryJobs:
    """Runs jobs as tasks of the loop that `submit` is called in; not for several threads.

    What takes longer than `timeout_seconds` is cancelled. When the loop ends and cancels its tasks,
    nothing of them is stored, and what waits is cancelled, too: see `close`.
    """

    def __init__(
        self,
        *,
        workers: int = WORKERS,
        queue: int = QUEUE,
        timeout_seconds: float | None = TIMEOUT_SECONDS,
        on_full: Literal["run", "drop"] = "run",
    ) -> None:
        """Start nothing yet; needs no loop. The arguments are those of `SummaryJobs`."""
        self._line: JobLine[AsyncJob[Any]] = JobLine(workers, queue)
        self._timeout = check_options(timeout_seconds, on_full)
        self._on_full = on_full
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def counts(self) -> JobCounts:
        """How many jobs there are and were."""
        return self._line.counts

    @property
    def errors(self) -> tuple[JobError, ...]:
        """The last 100 failures, oldest first."""
        return tuple(self._line.errors)

    async def submit(
        self,
        key: Hashable,
        work: Callable[[bool], Awaitable[T]],
        store: Callable[[T], object] | None = None,
        *,
        force: bool = False,
    ) -> AsyncJob[T]:
        """Hand in a job, and return it; whatever `work` raises, this does not.

        Returns at once, unless the job has to run in the caller: then it is awaited here, and
        cancelled if the caller is.

        Args:
            key: What it belongs to, such as a session's key.
            work: `await work(force)` returns the result.
            store: `store(result)` keeps the result; may be `async`. One at a time for a key.
            force: Handed on to `work`; a job that waits and is merged with one that has it gets it.
        """
        job, runner = self._admit(AsyncJob(self, key, work, store, force), self._on_full)
        if runner == "caller":
            try:
                await asyncio.wait({job._future})
            except asyncio.CancelledError:
                if not job.cancel():
                    await asyncio.wait({job._future})
                raise
        return job

    def submit_nowait(
        self,
        key: Hashable,
        work: Callable[[bool], Awaitable[T]],
        store: Callable[[T], object] | None = None,
        *,
        force: bool = False,
    ) -> bool:
        """Hand in a job as `submit` does; return `False` where it would have to run in the caller.

        Raises:
            RuntimeError: There is no running loop.
        """
        job = AsyncJob(self, key, work, store, force)
        return self._admit(job, "refuse")[1] != "nobody"

    async def close(self, deadline: float | None = None) -> None:
        """Cancel what waits and let what runs end; afterwards every job runs in its caller.

        Args:
            deadline: Seconds until what still runs is cancelled, too; `None` to wait for it. Not
                to be called by a job.
        """
        self._line.close()
        self._cancel(self._line.queued())
        try:
            await _wait((job._future for job in self._line.running()), deadline)
        except asyncio.CancelledError:
            deadline = 0
            raise
        finally:
            if deadline is not None:
                self._cancel([*self._line.queued(), *self._line.running()])
        await _wait(self._tasks, GRACE_SECONDS)

    async def __aenter__(self) -> AsyncSummaryJobs:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close(None if error is None else 0)

    def _cancel(self, jobs: Iterable[AsyncJob[Any]]) -> None:
        for job in jobs:
            self._abandon(job, "cancelled")

    def _admit(
        self, new: AsyncJob[T], if_full: Literal["run", "drop", "refuse"]
    ) -> tuple[AsyncJob[T], Runner]:
        job, runner = self._line.admit(new, if_full)
        if runner in ("worker", "caller"):
            self._start(job, runner)
        elif runner == "nobody":
            job._future.cancel()
        return job, runner

    def _start(self, job: AsyncJob[Any], runner: Runner) -> None:
        task = asyncio.get_running_loop().create_task(self._run(job))
        job._task = task
        self._tasks.add(task)
        # A task that is cancelled before it began never runs: only this is sure to be called.
        task.add_done_callback(lambda task: self._go_on(job, runner, task))

    async def _run(self, job: AsyncJob[Any]) -> None:
        clock = None
        if self._timeout is not None:
            loop = asyncio.get_running_loop()
            clock = loop.call_later(self._timeout, self._abandon, job, "timed_out")
        try:
            value = await job.work(job.force)
            if self._line.begin_store(job):
                stored = job.store(value) if job.store is not None else None
                if inspect.isawaitable(stored):
                    await stored
            if self._line.end(job, "done"):
                job._future.set_result(value)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            if self._line.end(job, "failed", format_error(error)):
                self._fail(job, error)
            if not isinstance(error, Exception):
                raise
        finally:
            if clock is not None:
                clock.cancel()

    def _go_on(self, job: AsyncJob[Any], runner: Runner, task: asyncio.Task[None]) -> None:
        """Start what comes after a job, whose task has ended."""
        self._tasks.discard(task)
        if self._line.end(job, "cancelled"):
            job._future.cancel()
            if task.cancelling():  # nobody else knows the task: its loop ends
                self._cancel(self._line.queued())
        if runner == "worker":
            following = self._line.next()
            if following is not None:
                self._start(following, runner)
        elif woken := self._line.wake(here=True):
            self._start(*woken)

    def _abandon(self, job: AsyncJob[Any], state: State) -> bool:
        late = too_late(self._timeout) if state == "timed_out" else None
        if not self._line.abandon(job, state, format_error(late) if late else ""):
            return False
        if late is None:
            job._future.cancel()
        else:
            self._fail(job, late)
        if job._task is not None:
            job._task.cancel()
        if woken := self._line.wake(here=False):
            self._start(*woken)
        return True

    def _fail(self, job: AsyncJob[Any], error: BaseException) -> None:
        if isinstance(error, StopIteration):  # no future takes it
            error = RuntimeError(format_error(error))
        job._future.set_exception(error)
        job._future.exception()  # it is in `errors`: not for asyncio to complain that nobody asked


async def _wait(futures: Iterable[asyncio.Future[Any]], seconds: float | None) -> None:
    waiting = set(futures)
    if waiting:
        await asyncio.wait(waiting, timeout=seconds)
