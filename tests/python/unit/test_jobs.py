"""Summaries in the background: order, bounds, and nothing half-made.

These are the behaviours that the session service of document 002 checks of its workers
(spec/sessions-and-summaries.md, 1.8): a full queue runs the job in the caller, jobs run side by
side, a timeout cancels and stores nothing, after `close` a job runs in its caller, and without
`force` nothing is forced. Here otherwise, on purpose:

- there, workers have a queue each and a key its worker; here any free worker takes the next job,
  and only jobs of the same key wait for each other;
- there, each job runs; here one that still waits is merged with the next of its key;
- there, errors are logged; here they are recorded and reach whoever waits for the job;
- there, closed channels panic inside and are recovered; here closing is a state.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import itertools
import sys
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from nanobot_context import InvalidArgumentError
from nanobot_context.sessions.jobs import Job, JobCounts, Jobs
from nanobot_context.sessions.tasks import AsyncJob, AsyncJobs
from pace import unhurried

pytestmark = pytest.mark.timeout(60)

Cancelled = Callable[[], bool]


class SummaryJobs(Jobs):
    """`Jobs` with the options of a session service, closed at the end of a block."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"workers": 2, "queue": 100, "timeout_seconds": 30.0, **options})

    def __enter__(self) -> SummaryJobs:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close(None if error is None else 0)


class AsyncSummaryJobs(AsyncJobs):
    """The same for tasks."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"workers": 2, "queue": 100, "timeout_seconds": 30.0, **options})

    async def __aenter__(self) -> AsyncSummaryJobs:
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        await self.close(None if error is None else 0)


def our_threads() -> list[threading.Thread]:
    return [
        thread
        for thread in threading.enumerate()
        if thread.name.startswith("nanobot-context") or isinstance(thread, threading.Timer)
    ]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    # A test of another file may have left one: a service that sweeps.
    before = our_threads()
    yield
    for thread in our_threads():
        if thread not in before:
            thread.join(5)
    assert [thread for thread in our_threads() if thread not in before] == []


class Gate:
    """Work that says when it began and ends when it is told to."""

    def __init__(self, result: Any = "summary") -> None:
        self.began = threading.Event()
        self.may_end = threading.Event()
        self.result = result
        self.saw_cancel = False

    def __call__(self, force: bool, cancelled: Cancelled) -> Any:
        self.began.set()
        assert self.may_end.wait(10)
        self.saw_cancel = cancelled()
        return self.result


def told(value: Any) -> Callable[[bool, Cancelled], Any]:
    return lambda force, cancelled: value


def stores(
    stored: list[Any], work: Callable[[bool, Cancelled], Any]
) -> Callable[[bool, Cancelled], Any]:
    """Return work that keeps its result, unless it is not wanted any more."""

    def run(force: bool, cancelled: Cancelled) -> Any:
        value = work(force, cancelled)
        if not cancelled():
            stored.append(value)
        return value

    return run


def held(jobs: SummaryJobs, *keys: str) -> list[Gate]:
    """Occupy as many workers as there are keys."""
    gates = [Gate() for _ in keys]
    for key, gate in zip(keys, gates, strict=True):
        jobs.submit(key, gate)
        assert gate.began.wait(10)
    return gates


def free(gates: list[Gate]) -> None:
    for gate in gates:
        gate.may_end.set()


# --- which job runs when ------------------------------------------------------------------------


def test_the_line_is_full_for_new_keys_only() -> None:
    jobs = SummaryJobs(workers=1, queue=1)
    gates = held(jobs, "a")
    assert jobs.submit_nowait("b", told(1))
    assert jobs.submit_nowait("b", told(2)), "merged"
    assert jobs.submit_nowait("a", told(3)), "its own key runs: it must wait"
    assert not jobs.submit_nowait("c", told(4))
    assert jobs.submit("c", told(5)).result(0) == 5
    assert jobs.counts == JobCounts(queued=2, running=1, done=1, coalesced=1, ran_in_caller=1)
    free(gates)
    jobs.close()


def test_what_is_woken_by_a_cancelled_job_has_a_worker_of_its_own() -> None:
    with SummaryJobs(workers=2) as jobs:
        gate, behind, late = Gate(), Gate(), Gate()
        running = jobs.submit("a", gate)
        assert gate.began.wait(10)
        jobs.submit("a", behind)
        assert running.cancel(), "its thread may be busy with it for long"
        assert behind.began.wait(10)
        jobs.submit("b", late)
        assert not late.began.wait(0.02), "two are busy"
        free([gate, behind, late])


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *(("workers", value) for value in (-1, 1.5, True, None)),
        *(("queue", value) for value in (-1, "5")),
        *(("timeout_seconds", value) for value in (0, -1, float("nan"))),
    ],
)
@pytest.mark.parametrize("kind", [SummaryJobs, AsyncSummaryJobs])
def test_options_that_cannot_be_used_are_named(kind: Any, argument: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        kind(**{argument: value})
    assert caught.value.argument == argument


# --- threads ------------------------------------------------------------------------------------


def test_a_job_runs_in_another_thread() -> None:
    with SummaryJobs() as jobs:
        job = jobs.submit("a", lambda *_: threading.current_thread().daemon)
        assert job.result(10) is True
        assert jobs.submit("a", told(1)).result(10) == 1
    assert jobs.counts == JobCounts(done=2)


def test_jobs_of_one_key_run_one_at_a_time_in_order() -> None:
    stored: list[str] = []
    gates = [Gate(name) for name in "abcd"]
    with SummaryJobs(workers=4) as jobs:
        job = jobs.submit("key", stores(stored, gates[0]))
        for before, after in itertools.pairwise(gates):
            assert before.began.wait(10)
            job = jobs.submit("key", stores(stored, after))
            assert not after.began.wait(0.01)
            before.may_end.set()
        gates[-1].may_end.set()
        assert job.result(10) == "d"
    assert stored == ["a", "b", "c", "d"]


def test_different_keys_run_side_by_side() -> None:
    both = threading.Barrier(2)
    with SummaryJobs(workers=2) as jobs:
        one = jobs.submit("a", lambda *_: both.wait(10))
        other = jobs.submit("b", lambda *_: both.wait(10))
        assert {one.result(10), other.result(10)} == {0, 1}


def test_a_job_of_another_key_does_not_wait_for_a_key_that_runs() -> None:
    with SummaryJobs(workers=2) as jobs:
        gates = held(jobs, "slow")
        behind = jobs.submit("slow", told("behind"))
        assert jobs.submit("quick", told("quick")).result(10) == "quick"
        assert not behind.done()
        free(gates)
        assert behind.result(10) == "behind"


def test_what_waits_is_merged_and_everybody_gets_the_newest() -> None:
    stored: list[Any] = []
    with SummaryJobs(workers=1) as jobs:
        gates = held(jobs, "busy")
        first = jobs.submit("a", stores(stored, told("old")))
        second = jobs.submit("a", stores(stored, told("new")))
        assert second is first
        free(gates)
        assert first.result(10) == "new"
    assert stored == ["new"]
    assert jobs.counts == JobCounts(done=2, coalesced=1)


def test_what_waits_of_one_key_is_merged_by_its_parts_and_force_is_not_taken_back() -> None:
    def forced(force: bool, cancelled: Cancelled) -> bool:
        return force

    with SummaryJobs(workers=1, queue=0) as jobs:
        gates = held(jobs, "a")
        one = jobs.submit("a", forced, part="one", force=True)
        other = jobs.submit("a", forced, part="other")
        assert jobs.submit("a", forced, part="one") is one
        free(gates)
        assert (one.result(10), other.result(10)) == (True, False)
    assert jobs.counts == JobCounts(done=3, coalesced=1)


def test_a_full_queue_runs_the_job_in_the_caller() -> None:
    with SummaryJobs(workers=2, queue=1) as jobs:
        gates = held(jobs, "a", "b")
        waits = jobs.submit("c", told("waits"))
        here = jobs.submit("d", lambda *_: threading.get_ident())
        assert here.done()
        assert here.result() == threading.get_ident()
        assert not waits.done()
        free(gates)
        assert waits.result(10) == "waits"
    assert jobs.counts == JobCounts(done=4, ran_in_caller=1)


def test_a_queue_of_none_still_uses_free_workers() -> None:
    with SummaryJobs(workers=1, queue=0) as jobs:
        assert jobs.submit("a", lambda *_: threading.get_ident()).result(10) != (
            threading.get_ident()
        )


def test_without_workers_every_job_runs_in_the_caller() -> None:
    stored: list[Any] = []
    jobs = SummaryJobs(workers=0)
    for name in "ab":
        assert jobs.submit(name, stores(stored, told(name))).done()
    assert stored == ["a", "b"]
    assert jobs.counts == JobCounts(done=2, ran_in_caller=2)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_job_may_hand_in_the_next_one_of_its_own_key(workers: int) -> None:
    jobs = SummaryJobs(workers=workers, queue=0)
    second: list[Job[Any]] = []

    def first(force: bool, cancelled: Cancelled) -> None:
        second.append(jobs.submit("a", told("second")))
        assert not second[0].done()

    jobs.submit("a", first).result(10)
    assert second[0].result(10) == "second"


def test_a_timeout_tells_who_waits_and_stores_nothing() -> None:
    def story(slower: float) -> None:
        timeout = 0.05 * slower
        stored: list[Any] = []
        gate = Gate()
        jobs = SummaryJobs(timeout_seconds=timeout)
        job = jobs.submit("a", stores(stored, gate))
        with pytest.raises(TimeoutError, match=f"longer than {timeout} s"):
            job.result(10)
        assert (job.state, job.done(), job.cancelled()) == ("timed_out", True, True)
        assert jobs.submit("a", told("next")).result(10) == "next", "its key is free"
        gate.may_end.set()
        for thread in our_threads():
            thread.join(10)
        assert stored == []
        assert jobs.counts == JobCounts(done=1, timed_out=1)
        assert [error.error for error in jobs.errors] == [
            f"TimeoutError: the job took longer than {timeout} s"
        ]

    unhurried(story)


def test_work_can_ask_whether_it_is_still_wanted() -> None:
    asked = threading.Event()

    def work(force: bool, cancelled: Cancelled) -> None:
        while not cancelled():
            time.sleep(0.005)
        asked.set()

    with SummaryJobs() as jobs:
        job = jobs.submit("a", work)
        while job.state != "running":
            time.sleep(0.001)
        assert job.cancel()
        assert asked.wait(10)
        assert not job.cancel(), "once is enough"


def test_a_cancelled_job_stores_nothing_whether_it_waits_or_runs() -> None:
    stored: list[Any] = []
    jobs = SummaryJobs(workers=1)
    gate = Gate()
    running = jobs.submit("a", stores(stored, gate))
    assert gate.began.wait(10)
    waiting = jobs.submit("b", stores(stored, told("b")))
    assert waiting.cancel()
    assert running.cancel()
    gate.may_end.set()
    for job in (running, waiting):
        with pytest.raises(concurrent.futures.CancelledError):
            job.result(10)
    for thread in our_threads():
        thread.join(10)
    assert gate.saw_cancel
    assert stored == []
    assert jobs.counts == JobCounts(cancelled=2)


def test_what_waits_for_a_job_that_is_cancelled_begins_at_once() -> None:
    with SummaryJobs(workers=2) as jobs:
        gate = Gate()
        running = jobs.submit("a", gate)
        behind = jobs.submit("a", told("behind"))
        assert running.cancel()
        assert behind.result(10) == "behind"
        gate.may_end.set()


def test_close_lets_what_runs_end() -> None:
    def slow(force: bool, cancelled: Cancelled) -> str:
        time.sleep(0.05)
        return "late"

    stored: list[Any] = []
    jobs = SummaryJobs(workers=1)
    job = jobs.submit("a", stores(stored, slow))
    waiting = jobs.submit("b", stores(stored, told("b")))
    jobs.close()
    assert job.result() == "late"
    assert stored == ["late"]
    assert waiting.state == "cancelled"


def test_close_during_a_job_stores_nothing_after_its_deadline() -> None:
    stored: list[Any] = []
    jobs = SummaryJobs(workers=1)
    gate = Gate()
    job = jobs.submit("a", stores(stored, gate))
    assert gate.began.wait(10)
    jobs.close(0.05)
    assert job.state == "cancelled", "it did not wait for what nobody ends"
    gate.may_end.set()
    for thread in our_threads():
        thread.join(10)
    assert gate.saw_cancel
    assert stored == []


def test_after_close_a_job_runs_in_its_caller() -> None:
    jobs = SummaryJobs()
    jobs.close()
    job = jobs.submit("a", lambda *_: threading.get_ident())
    assert job.done()
    assert job.result() == threading.get_ident()
    assert jobs.counts == JobCounts(done=1, ran_in_caller=1)


def test_exceptions_are_recorded_and_reach_who_waits() -> None:
    def fail(force: bool, cancelled: Cancelled) -> None:
        raise ConnectionError("no route to the model")

    with SummaryJobs() as jobs:
        with pytest.raises(ConnectionError, match="no route"):
            jobs.submit("a", fail).result(10)
        assert jobs.submit("a", told(2)).result(10) == 2, "the key goes on"
    assert [(error.key, error.state, error.error) for error in jobs.errors] == [
        ("a", "failed", "ConnectionError: no route to the model"),
    ]
    assert jobs.counts == JobCounts(done=1, failed=1)


def test_the_newest_errors_are_kept() -> None:
    jobs = SummaryJobs(workers=0)
    for n in range(150):
        with pytest.raises(ZeroDivisionError):
            jobs.submit(n, lambda *_: 1 // 0).result()
    assert [error.key for error in jobs.errors] == list(range(50, 150))
    assert jobs.counts.failed == 150


def test_what_ends_a_program_ends_the_caller_but_no_worker() -> None:
    def interrupt(force: bool, cancelled: Cancelled) -> None:
        raise KeyboardInterrupt

    def leave(force: bool, cancelled: Cancelled) -> None:
        sys.exit(1)

    jobs = SummaryJobs(workers=0)
    with pytest.raises(KeyboardInterrupt):
        jobs.submit("a", interrupt)
    assert jobs.submit("a", told(1)).result(10) == 1
    with SummaryJobs(workers=1) as jobs:
        with pytest.raises(SystemExit):
            jobs.submit("a", leave).result(10)
        assert jobs.submit("a", told(1)).result(10) == 1


def test_a_job_without_a_thread_to_be_had_runs_in_the_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    jobs = SummaryJobs()
    assert jobs.submit("a", lambda *_: threading.get_ident()).result() == threading.get_ident()
    assert jobs.submit("a", told(2)).done()


@pytest.mark.parametrize("cancels", [False, True])
def test_racing_submitters_lose_no_job_and_store_in_order(cancels: bool) -> None:
    """What is stored for a key rises: one at a time, and none out of order."""
    threads, each, keys = 8, 150, 5
    jobs = SummaryJobs(workers=3, queue=3)
    stored: dict[int, list[int]] = {key: [] for key in range(keys)}
    active = [0] * keys
    overlaps: list[int] = []
    numbers = threading.Lock()
    handed_in = [0] * keys
    submitted: list[Job[Any]] = []

    def working(key: int, number: int) -> Callable[[bool, Cancelled], int]:
        def work(force: bool, cancelled: Cancelled) -> int:
            active[key] += 1
            if active[key] > 1:
                overlaps.append(key)
            if number % 10 == 0:
                time.sleep(0.001)
            active[key] -= 1
            if number % 11 == 0:
                raise ValueError(number)
            return number

        return work

    def submit(thread: int) -> None:
        for n in range(each):
            key = (thread + n) % keys
            # Numbered and handed in at once, or else the order would be that of this lock.
            with numbers:
                handed_in[key] += 1
                job = jobs.submit(key, stores(stored[key], working(key, handed_in[key])))
                submitted.append(job)
            if cancels and n % 7 == 0:
                job.cancel()

    racing = [threading.Thread(target=submit, args=(n,)) for n in range(threads)]
    for thread in racing:
        thread.start()
    for thread in racing:
        thread.join(30)
    jobs.close(20)
    counts = jobs.counts
    assert (counts.queued, counts.running, counts.timed_out) == (0, 0, 0)
    ended = counts.done + counts.failed + counts.cancelled + counts.coalesced
    assert ended == threads * each
    assert sum(map(len, stored.values())) == counts.done
    assert all(numbers == sorted(set(numbers)) for numbers in stored.values())
    assert all(job.done() for job in submitted)
    # The thread of a job that was cancelled goes on beside the next one.
    assert cancels or not overlaps


# --- asyncio ------------------------------------------------------------------------------------


def run(main: Callable[[], Awaitable[None]], *, eager: bool = False) -> None:
    """Run `main` in a loop of its own, in which no task may be left and nothing be complained."""
    complaints: list[Any] = []

    async def watched() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        if eager:
            loop.set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined,unused-ignore]
        await main()
        for _ in range(3):
            await asyncio.sleep(0)
        gc.collect()  # asyncio complains of exceptions that nobody asked for
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(watched())
    assert complaints == []


def atold(value: Any) -> Callable[[bool, Cancelled], Awaitable[Any]]:
    async def work(force: bool, cancelled: Cancelled) -> Any:
        await asyncio.sleep(0)
        return value

    return work


def astores(
    stored: list[Any], work: Callable[[bool, Cancelled], Awaitable[Any]]
) -> Callable[[bool, Cancelled], Awaitable[Any]]:
    """Return work that keeps its result, unless it is not wanted any more."""

    async def run(force: bool, cancelled: Cancelled) -> Any:
        value = await work(force, cancelled)
        if not cancelled():
            stored.append(value)
        return value

    return run


class AsyncGate:
    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()
        self.was_cancelled = False

    async def __call__(self, force: bool, cancelled: Cancelled) -> str:
        self.began.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return "summary"


async def aheld(jobs: AsyncSummaryJobs, *keys: str) -> list[AsyncGate]:
    gates = [AsyncGate() for _ in keys]
    for key, gate in zip(keys, gates, strict=True):
        await jobs.submit(key, gate)
        await gate.began.wait()
    return gates


def afree(gates: list[AsyncGate]) -> None:
    for gate in gates:
        gate.may_end.set()


def test_a_task_is_awaited_for_its_result_and_stores_it() -> None:
    async def main() -> None:
        stored: list[Any] = []

        async with AsyncSummaryJobs() as jobs:
            job = await jobs.submit("a", astores(stored, atold(1)))
            assert not job.done(), "handed in, not awaited"
            assert await job == 1
        assert stored == [1]
        assert jobs.counts == JobCounts(done=1)

    run(main)


if sys.version_info >= (3, 12):  # eager tasks are new there

    def test_tasks_that_begin_at_once_are_handled_the_same() -> None:
        async def main() -> None:
            stored: list[Any] = []

            async def at_once(force: bool, cancelled: Cancelled) -> str:
                return "at once"

            async with AsyncSummaryJobs(workers=1, queue=1) as jobs:
                assert await (await jobs.submit("a", astores(stored, at_once))) == "at once"
                gates = await aheld(jobs, "b")
                waiting = await jobs.submit("c", astores(stored, at_once))
                await jobs.submit("d", astores(stored, at_once))
                gates[0].may_end.set()
                await waiting
            assert stored == ["at once"] * 3
            assert jobs.counts == JobCounts(done=4, ran_in_caller=1)

        run(main, eager=True)


def test_tasks_of_one_key_run_in_order_and_of_others_side_by_side() -> None:
    async def main() -> None:
        order: list[str] = []

        def work(name: str) -> Callable[[bool, Cancelled], Awaitable[None]]:
            async def run(force: bool, cancelled: Cancelled) -> None:
                order.append(f"{name} begins")
                await asyncio.sleep(0.01)
                order.append(f"{name} ends")

            return run

        async with AsyncSummaryJobs() as jobs:
            await jobs.submit("a", work("a1"))
            await jobs.submit("a", work("a2"))
            last = await jobs.submit("b", work("b"))
            await last
            await (await jobs.submit("a", work("a3")))
        assert order[:2] == ["a1 begins", "b begins"]
        assert [step for step in order if step.startswith("a")] == [
            *("a1 begins", "a1 ends"),
            *("a2 begins", "a2 ends"),
            *("a3 begins", "a3 ends"),
        ]

    run(main)


def test_tasks_that_wait_are_merged() -> None:
    async def main() -> None:
        stored: list[Any] = []
        async with AsyncSummaryJobs(workers=1) as jobs:
            gates = await aheld(jobs, "busy")
            first = await jobs.submit("a", astores(stored, atold("old")))
            assert await jobs.submit("a", astores(stored, atold("new"))) is first
            afree(gates)
            assert await first == "new"
        assert stored == ["new"]
        assert jobs.counts == JobCounts(done=2, coalesced=1)

    run(main)


def test_a_full_queue_is_awaited_in_the_caller_or_refused() -> None:
    async def main() -> None:
        jobs = AsyncSummaryJobs(workers=1, queue=1)
        gates = await aheld(jobs, "a")
        assert jobs.submit_nowait("b", atold("b"))
        assert not jobs.submit_nowait("c", atold("c"))
        assert jobs.submit_nowait("b", atold("b2")), "merged: needs no room"
        here = await jobs.submit("d", atold("d"))
        assert here.done()
        assert await here == "d"
        assert jobs.counts == JobCounts(queued=1, running=1, done=1, coalesced=1, ran_in_caller=1)
        afree(gates)
        await jobs.close(10)

    run(main)


def test_without_workers_a_task_is_awaited_in_the_caller() -> None:
    async def main() -> None:
        jobs = AsyncSummaryJobs(workers=0)
        assert (await jobs.submit("a", atold(1))).state == "done"
        assert not jobs.submit_nowait("a", atold(2))
        assert jobs.counts == JobCounts(done=1, ran_in_caller=1)

    run(main)


def test_a_task_may_hand_in_the_next_one_of_its_own_key() -> None:
    async def main() -> None:
        jobs = AsyncSummaryJobs(workers=0)
        second: list[AsyncJob[Any]] = []

        async def first(force: bool, cancelled: Cancelled) -> None:
            second.append(await jobs.submit("a", atold("second")))

        await (await jobs.submit("a", first))
        assert await second[0] == "second"

    run(main)


def test_a_timeout_cancels_the_task_and_stores_nothing() -> None:
    def story(slower: float) -> None:
        timeout = 0.02 * slower

        async def main() -> None:
            stored: list[Any] = []
            jobs = AsyncSummaryJobs(timeout_seconds=timeout)
            gate = AsyncGate()
            job = await jobs.submit("a", astores(stored, gate))
            with pytest.raises(TimeoutError, match=f"longer than {timeout} s"):
                await job
            assert gate.was_cancelled
            assert await (await jobs.submit("a", atold("next"))) == "next"
            assert stored == []
            assert jobs.counts == JobCounts(done=1, timed_out=1)
            assert jobs.errors[0].state == "timed_out"
            await jobs.close()

        run(main)

    unhurried(story)


def test_a_task_that_will_not_be_cancelled_keeps_nobody_waiting_and_stores_nothing() -> None:
    def story(slower: float) -> None:
        timeout = 0.02 * slower

        async def main() -> None:
            stored: list[Any] = []
            may_end = asyncio.Event()

            async def stubborn(force: bool, cancelled: Cancelled) -> str:
                for _ in range(3):
                    try:
                        await may_end.wait()
                    except asyncio.CancelledError:
                        continue
                    break
                return "too late"

            jobs = AsyncSummaryJobs(timeout_seconds=timeout)
            job = await jobs.submit("a", astores(stored, stubborn))
            behind = await jobs.submit("a", astores(stored, atold("behind")))
            with pytest.raises(TimeoutError):
                await job
            assert await asyncio.wait_for(behind, 5) == "behind"
            may_end.set()
            await jobs.close(0)
            assert stored == ["behind"]

        run(main)

    unhurried(story)


def test_who_stops_waiting_does_not_cancel_the_job() -> None:
    async def main() -> None:
        stored: list[Any] = []
        async with AsyncSummaryJobs() as jobs:
            gate = AsyncGate()
            job = await jobs.submit("a", astores(stored, gate))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(job, 0.01)
            assert job.state == "running"
            gate.may_end.set()
            assert await job == "summary"
        assert stored == ["summary"]

    run(main)


def test_a_cancelled_task_stores_nothing_whether_it_waits_or_runs_or_has_not_begun() -> None:
    async def main() -> None:
        stored: list[Any] = []
        jobs = AsyncSummaryJobs(workers=1)
        unbegun = await jobs.submit("a", astores(stored, atold("a")))
        assert unbegun.cancel()
        gate = AsyncGate()
        running = await jobs.submit("b", astores(stored, gate))
        await gate.began.wait()
        waiting = await jobs.submit("c", astores(stored, atold("c")))
        assert waiting.cancel()
        assert running.cancel()
        for job in (unbegun, waiting, running):
            with pytest.raises(asyncio.CancelledError):
                await job
            assert not job.cancel()
        assert await (await jobs.submit("b", atold("next"))) == "next"
        await jobs.close()
        assert gate.was_cancelled
        assert stored == []
        assert jobs.counts == JobCounts(done=1, cancelled=3)

    run(main)


def test_a_caller_that_is_cancelled_cancels_what_runs_in_it() -> None:
    async def main() -> None:
        stored: list[Any] = []
        jobs = AsyncSummaryJobs(workers=0)
        gate = AsyncGate()
        caller = asyncio.create_task(jobs.submit("a", astores(stored, gate)))
        await gate.began.wait()
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        await asyncio.sleep(0)
        assert gate.was_cancelled
        assert stored == []
        assert jobs.counts == JobCounts(cancelled=1, ran_in_caller=1)

    run(main)


def test_closing_lets_tasks_end_and_then_cancels_them() -> None:
    async def main() -> None:
        stored: list[Any] = []

        async def short(force: bool, cancelled: Cancelled) -> str:
            await asyncio.sleep(0.02)
            return "short"

        jobs = AsyncSummaryJobs(workers=2)
        await jobs.submit("a", astores(stored, short))
        gate = AsyncGate()
        endless = await jobs.submit("b", astores(stored, gate))
        waiting = await jobs.submit("c", astores(stored, atold("c")))
        await jobs.close(0.1)
        assert stored == ["short"]
        assert gate.was_cancelled
        assert (endless.state, waiting.state) == ("cancelled", "cancelled")
        assert asyncio.all_tasks() == {asyncio.current_task()}
        after = await jobs.submit("d", atold("d"))
        assert after.done()
        assert jobs.counts == JobCounts(done=2, cancelled=2, ran_in_caller=1)

    run(main)


def test_a_loop_that_ends_stores_nothing_and_leaves_the_jobs_usable() -> None:
    stored: list[Any] = []
    jobs = AsyncSummaryJobs(workers=1)
    gates: list[AsyncGate] = []

    async def leave() -> None:
        gates.extend(await aheld(jobs, "a"))
        await jobs.submit("a", astores(stored, atold("behind")))
        await jobs.submit("b", astores(stored, atold("waits")))

    asyncio.run(leave())
    assert gates[0].was_cancelled
    assert stored == []
    assert jobs.counts == JobCounts(cancelled=3)

    async def again() -> None:
        assert await (await jobs.submit("a", astores(stored, atold("again")))) == "again"

    asyncio.run(again())
    assert stored == ["again"]


def test_exceptions_of_tasks_are_recorded_and_reach_who_waits_and_no_one_else() -> None:
    async def main() -> None:
        async def fail(force: bool, cancelled: Cancelled) -> None:
            raise ConnectionError("no route to the model")

        async def gives_up(force: bool, cancelled: Cancelled) -> None:
            raise asyncio.CancelledError

        def at_end(force: bool, cancelled: Cancelled) -> Awaitable[None]:
            raise StopIteration

        async with AsyncSummaryJobs() as jobs:
            await jobs.submit("nobody waits", fail)
            with pytest.raises(ConnectionError):
                await (await jobs.submit("a", fail))
            with pytest.raises(asyncio.CancelledError):
                await (await jobs.submit("b", gives_up))
            with pytest.raises(RuntimeError, match="StopIteration"):
                await (await jobs.submit("c", at_end))
            assert await (await jobs.submit("b", atold(2))) == 2
        assert [error.key for error in jobs.errors] == ["nobody waits", "a", "c"]
        assert jobs.counts == JobCounts(done=1, failed=3, cancelled=1)

    run(main)


def test_nothing_is_kept_of_a_job_that_has_ended() -> None:
    class Conversation:
        pass

    async def main() -> None:
        def work_on(conversation: Conversation) -> Callable[[bool, Cancelled], Awaitable[None]]:
            async def fail(force: bool, cancelled: Cancelled) -> None:
                raise ValueError(conversation)

            return fail

        conversation = Conversation()
        kept = weakref.ref(conversation)
        jobs = AsyncSummaryJobs()
        await jobs.submit("a", work_on(conversation))
        await jobs.close()
        del conversation
        gc.collect()
        assert jobs.counts.failed == 1
        assert kept() is None

    run(main)


def test_racing_tasks_lose_no_job_and_store_in_order() -> None:
    async def main() -> None:
        callers, each, keys = 20, 60, 7
        jobs = AsyncSummaryJobs(workers=3, queue=4)
        stored: dict[int, list[int]] = {key: [] for key in range(keys)}
        active = [0] * keys
        handed_in = [0] * keys
        refused = 0

        def working(key: int, number: int) -> Callable[[bool, Cancelled], Awaitable[int]]:
            async def work(force: bool, cancelled: Cancelled) -> int:
                active[key] += 1
                assert active[key] == 1
                try:
                    await asyncio.sleep(0.0005 * (number % 3))
                finally:
                    active[key] -= 1
                if number % 11 == 0:
                    raise ValueError(number)
                return number

            return work

        async def submit(caller: int) -> None:
            nonlocal refused
            for n in range(each):
                key = (caller + n) % keys
                handed_in[key] += 1
                work = working(key, handed_in[key])
                if n % 3 == 0:
                    refused += not jobs.submit_nowait(key, astores(stored[key], work))
                    await asyncio.sleep(0)
                else:
                    await jobs.submit(key, astores(stored[key], work))

        async with asyncio.timeout(50):
            await asyncio.gather(*(submit(caller) for caller in range(callers)))
            await jobs.close(20)
        counts = jobs.counts
        assert (counts.queued, counts.running, counts.timed_out) == (0, 0, 0)
        ended = counts.done + counts.failed + counts.cancelled + counts.coalesced
        assert ended + refused == callers * each
        assert sum(map(len, stored.values())) == counts.done
        assert all(numbers == sorted(set(numbers)) for numbers in stored.values())

    run(main)
