"""`AsyncSessionService` beside other tasks: the loop goes on, and a call may be cancelled.

What it does is tested with the same cases as `SessionService`: see `test_sessions`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from nanobot_context import ConflictError, SessionNotFoundError
from nanobot_context.sessions import AsyncSessionService, SessionEvent
from nanobot_context.summary import Summarizer, SummaryPolicy, SummaryRequest
from session_cases import answered, ids, said

if TYPE_CHECKING:
    from session_cases import Store

pytest_plugins = ("session_fixtures",)
pytestmark = pytest.mark.timeout(120)


class Ticking:
    """A task that counts how often the loop gives it a turn."""

    def __init__(self) -> None:
        self.turns = 0
        self.often = asyncio.Event()

    async def __aenter__(self) -> Ticking:
        self._task = asyncio.create_task(self._tick())
        await asyncio.sleep(0.02)
        self.turns = 0
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(0.001)
            self.turns += 1
            if self.turns > 50:
                self.often.set()


async def filled(service: AsyncSessionService, count: int) -> None:
    """Create the session "s" with so many events."""
    await service.create("app", "me", "s")
    [head] = await service.list_sessions("app", "me")
    for start in range(0, count, 1_000):
        await service.append(head, [said(str(at)) for at in range(start, start + 1_000)])


def test_the_loop_goes_on_while_much_is_read(plain_store: Store) -> None:
    async def run() -> None:
        async with AsyncSessionService(plain_store.url, event_limit=0) as service:
            await filled(service, 100_000)
            async with Ticking() as ticking:
                session = await service.get("app", "me", "s")
            assert session is not None
            assert len(session.events) == 100_000
            assert ticking.turns >= 20

    asyncio.run(run())


def test_the_loop_goes_on_while_much_is_written(plain_store: Store) -> None:
    async def run() -> None:
        async with AsyncSessionService(plain_store.url, event_limit=0) as service:
            session = await service.create("app", "me", "s")
            events = [SessionEvent({"role": "user", "content": "x" * 1_000}) for _ in range(20_000)]
            async with Ticking() as ticking:
                await service.append(session, events)
            assert session.seq == 20_000
            assert ticking.turns >= 10

    asyncio.run(run())


def test_the_loop_goes_on_while_another_process_holds_the_lock(plain_store: Store) -> None:
    if plain_store.name != "sqlite":
        pytest.skip("only a file is locked")
    holder = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
connection.execute("COMMIT")
"""

    async def run() -> None:
        async with AsyncSessionService(plain_store.url) as service:
            session = await service.create("app", "me")
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", holder, plain_store.path),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            assert process.stdin is not None
            assert process.stdout is not None
            await process.stdout.readline()
            appending = asyncio.create_task(service.append(session, [said("hello")]))
            async with Ticking() as ticking:
                await ticking.often.wait()
                assert not appending.done()
                process.stdin.close()
                await appending
            assert await process.wait() == 0
            # Readers wait for nobody.
            assert (await service.get(*session.key)) is not None

    asyncio.run(run())


def test_two_hundred_appends_at_once_are_all_taken(plain_store: Store) -> None:
    async def run() -> None:
        async with AsyncSessionService(plain_store.url) as service:
            session = await service.create("app", "me")
            await asyncio.gather(
                *(
                    service.append(session, [said(str(at), state={str(at): at})])
                    for at in range(200)
                )
            )
            found = await service.get(*session.key)
            assert found is not None
            assert [event.seq for event in found.events] == list(range(1, 201))
            assert sorted(ids(found), key=int) == [str(at) for at in range(200)]
            assert len(found.state) == 200

    asyncio.run(run())


def test_a_session_that_many_tasks_append_to_is_as_it_is_stored(plain_store: Store) -> None:
    async def run() -> None:
        async with AsyncSessionService(plain_store.url, event_limit=50) as service:
            session = await service.create("app", "me")
            await asyncio.gather(
                *(service.append(session, [said(str(at), state={"n": at})]) for at in range(200))
            )
            found = await service.get(*session.key, user_first="off")
            assert found is not None
            assert (session.seq, session.first_seq) == (found.seq, found.first_seq)
            assert ids(session) == ids(found)

    asyncio.run(run())


def test_of_tasks_that_expect_the_same_position_one_succeeds(plain_store: Store) -> None:
    async def run() -> None:
        async with AsyncSessionService(plain_store.url) as service:
            session = await service.create("app", "me")
            outcomes = await asyncio.gather(
                *(service.append(session, [said(str(at))], expected=0) for at in range(20)),
                return_exceptions=True,
            )
            assert sum(isinstance(outcome, list) for outcome in outcomes) == 1
            assert sum(isinstance(outcome, ConflictError) for outcome in outcomes) == 19

    asyncio.run(run())


def test_a_call_that_is_cancelled_was_done_whole_or_not_at_all(plain_store: Store) -> None:
    async def run() -> None:
        async with AsyncSessionService(plain_store.url, event_limit=0) as service:
            session = await service.create("app", "me")
            for turn in range(60):
                batch = [said(f"{turn}-{at}", state={f"{turn}-{at}": 1}) for at in range(20)]
                task = asyncio.create_task(service.append(session, batch))
                await asyncio.sleep(0.0002 * (turn % 10))
                task.cancel()
                try:
                    await task
                except asyncio.CancelledError:
                    # Nobody knows whether it was taken; to send it again doubles nothing.
                    if turn % 2:
                        await service.append(session, batch)
            await asyncio.sleep(0.2)
            found = await service.get(*session.key, user_first="off")
            assert found is not None
            assert [event.seq for event in found.events] == list(range(1, found.seq + 1))
            turns = [id_.split("-")[0] for id_ in ids(found)]
            assert all(turns.count(turn) == 20 for turn in set(turns))
            assert {str(turn) for turn in range(1, 60, 2)} <= set(turns)
            assert set(found.state) == set(ids(found))

    asyncio.run(run())


def test_a_summary_that_is_cancelled_stores_nothing(plain_store: Store) -> None:
    began = asyncio.Event()

    async def call(request: SummaryRequest) -> str:
        began.set()
        await asyncio.sleep(60)
        return "late"

    async def run() -> None:
        summarizer = Summarizer(call, policy=SummaryPolicy(keep_last=0))
        async with AsyncSessionService(plain_store.url, summarizer=summarizer) as service:
            session = await service.create("app", "me")
            await service.append(session, [said("a"), answered("b")])
            task = asyncio.create_task(service.summarize(session, force=True))
            await began.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await service.summaries(session) == []
            assert await service.summaries(session, failed=True) == []
            found = await service.get(*session.key)
            assert ids(found) == ["a", "b"]

    asyncio.run(run())


def test_a_service_serves_one_loop_after_the_other(plain_store: Store) -> None:
    service = AsyncSessionService(plain_store.url)
    session = asyncio.run(service.create("app", "me"))
    asyncio.run(service.append(session, [said("a")]))
    found = asyncio.run(service.get(*session.key))
    assert ids(found) == ["a"]
    asyncio.run(service.close())


def test_errors_reach_the_task_that_made_the_call(plain_store: Store) -> None:
    async def run() -> None:
        async with AsyncSessionService(plain_store.url) as service:
            session = await service.create("app", "me")
            calls: list[Callable[[], Awaitable[Any]]] = [
                lambda: service.get(*session.key),
                lambda: service.append(session, [said("a")]),
            ]
            await service.delete(*session.key)
            assert await calls[0]() is None
            with pytest.raises(SessionNotFoundError):
                await calls[1]()

    asyncio.run(run())
