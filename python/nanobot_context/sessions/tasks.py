"""Runs background jobs as tasks of asyncio, by the rules of `jobs`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator, Hashable
from typing import Any, Generic, TypeVar

from nanobot_context.sessions.jobs import AnyJob, JobLine, Outcome, Runner, Work, format_error

T = TypeVar("T")

# How long `close` waits at the end for what was cancelled just now.
_GRACE_SECONDS = 1.0


class AsyncJob(AnyJob, Generic[T]):
    """A job of `AsyncJobs`; `await` it for its result.

    Awaiting it returns or raises what `work` did, `TimeoutError` if that took too long, and
    `asyncio.CancelledError` if it was cancelled. To stop waiting does not cancel the job.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None

    def __await__(self) -> Generator[Any, None, T]:
        return asyncio.shield(self._future).__await__()

    def _resolve(self, outcome: Outcome) -> None:
        if outcome is None:
            self._future.cancel()
        elif isinstance(outcome, tuple):
            self._future.set_result(*outcome)
        else:
            if isinstance(outcome, StopIteration):  # no future takes it
                outcome = RuntimeError(format_error(outcome))
            self._future.set_exception(outcome)
            self._future.exception()  # it is in `errors`: not for asyncio to complain


class AsyncJobs(JobLine[AsyncJob[Any]]):
    """Runs jobs as tasks of the loop that `submit` is called in; not for several threads.

    What takes longer than the timeout is cancelled. When the loop ends and cancels its tasks, what
    waits is cancelled, too: see `close`.
    """

    _kind = AsyncJob

    def begin_in_child(self) -> None:
        super().begin_in_child()
        self._tasks: set[asyncio.Task[None]] = set()

    async def submit(
        self, key: Hashable, work: Work[Awaitable[T]], *, part: str = "", force: bool = False
    ) -> AsyncJob[T]:
        """Submit a job and return it. Never raises what `work` raises.

        Returns at once, unless the job has to run in the caller: then it is awaited here, and
        cancelled if the caller is.
        """
        job, runner = self._admit(AsyncJob(self, key, work, part, force), may_run_here=True)
        if runner == "caller":
            self._start(job, runner)
            try:
                await asyncio.wait({job._future})
            except asyncio.CancelledError:
                job.cancel()
                raise
        return job

    async def close(self, timeout_seconds: float | None = None) -> None:
        """See `Jobs.close`."""
        running = {job._future for job in self._begin_close()}
        try:
            if running:
                await asyncio.wait(running, timeout=timeout_seconds)
        except asyncio.CancelledError:
            timeout_seconds = 0
            raise
        finally:
            if timeout_seconds is not None:
                self._cancel_all(running=True)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_GRACE_SECONDS)

    def _start(self, job: AsyncJob[Any], runner: Runner) -> None:
        task = asyncio.get_running_loop().create_task(self._run(job))
        job._task = task
        self._tasks.add(task)
        # A task that is cancelled before it began never runs: only this is sure to be called.
        task.add_done_callback(lambda task: self._go_on(job, runner, task))

    def _stop(self, job: AsyncJob[Any]) -> None:
        if job._task is not None:
            job._task.cancel()

    async def _run(self, job: AsyncJob[Any]) -> None:
        loop = asyncio.get_running_loop()
        clock = None
        if self._timeout is not None:
            clock = loop.call_later(self._timeout, self._abandon, job, "timed_out")
        try:
            self._end(job, "done", (await job.work(job.force, job.cancelled),))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._end(job, "failed", error)
            if not isinstance(error, Exception):
                raise
        finally:
            if clock is not None:
                clock.cancel()

    def _go_on(self, job: AsyncJob[Any], runner: Runner, task: asyncio.Task[None]) -> None:
        """Start what comes after a job, whose task has ended."""
        self._tasks.discard(task)
        # A task that somebody else cancels is one that its loop ends with.
        if self._end(job, "cancelled") and task.cancelling():
            self._cancel_all()
        if runner == "worker":
            following = self._next()
            if following is not None:
                self._start(following, runner)
        elif woken := self._wake(here=True):
            self._start(*woken)
