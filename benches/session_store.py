"""One session store in a process of its own, for `sessions.py`.

`python session_store.py NAME PLACE` reads lines `fill SIZE`, `append SIZE COUNT` and `read SIZE
COUNT`; it answers each with a line of JSON: the seconds of every call. A session of SIZE events of
1 KB is called by its size. Runs in the environment of the store that it is about, so it imports no
other.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Any

LAST = 50
BATCH = 500
# A store whose calls are slow makes fewer of them.
MAX_SECONDS = 5.0

Message = dict[str, Any]


def message(number: int) -> Message:
    """Return a message of about 1 KB, by the user and the assistant in turns."""
    role = "user" if number % 2 == 0 else "assistant"
    return {"role": role, "content": f"{number} " + "lorem ipsum " * 83}


class Ours:
    """`SessionService`, as it comes but for the limit of events, which the others do not have."""

    event_limit = 0

    def __init__(self, url: str) -> None:
        sessions = import_module("nanobot_context.sessions")
        self.event = sessions.SessionEvent
        self.service = sessions.SessionService(url, event_limit=self.event_limit)
        self.sessions: dict[int, Any] = {}

    async def fill(self, size: int) -> None:
        session = self.service.create("bench", "me", str(size), overwrite=True)
        for start in range(0, size, BATCH):
            numbers = range(start, min(start + BATCH, size))
            self.service.append(session, [self.event(message(at)) for at in numbers])
        self.sessions[size] = session

    async def append(self, size: int, number: int) -> None:
        self.service.append(self.sessions[size], [self.event(message(number))])

    async def read(self, size: int) -> int:
        session = self.service.get("bench", "me", str(size), last=LAST)
        assert session is not None
        return len(session.messages)


class OursLimited(Ours):
    """With the limit that it comes with: from then on, one event leaves with each that comes."""

    event_limit = 1_000


class Nanobot:
    """nanobot's file of lines. What it has read it keeps; another process has to read the file."""

    def __init__(self, place: str) -> None:
        manager = import_module("nanobot.session.manager")
        self.session = manager.Session
        self.store = manager.JsonlSessionStore(
            Path(place) / "workspace", sessions_root=Path(place) / "sessions"
        )
        self.sessions: dict[int, Any] = {}

    async def fill(self, size: int) -> None:
        session = self.session(key=f"bench:{size}")
        session.messages = [message(at) for at in range(size)]
        self.store.save(session)
        self.sessions[size] = session

    async def append(self, size: int, number: int) -> None:
        said = message(number)
        self.sessions[size].add_message(said["role"], said["content"])
        self.store.save(self.sessions[size])

    async def read(self, size: int) -> int:
        return len(self.store.load(f"bench:{size}").messages[-LAST:])


class OpenAIAgents:
    """The sessions of OpenAI's Agents SDK."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.sessions: dict[int, Any] = {}

    def opened(self, name: str) -> Any:
        if self.place.startswith("redis://"):
            memory = import_module("agents.extensions.memory")
            return memory.RedisSession.from_url(name, url=self.place)
        return import_module("agents").SQLiteSession(name, self.place)

    async def fill(self, size: int) -> None:
        session = self.opened(f"bench-{size}")
        for start in range(0, size, BATCH):
            numbers = range(start, min(start + BATCH, size))
            await session.add_items([message(at) for at in numbers])
        self.sessions[size] = session

    async def append(self, size: int, number: int) -> None:
        await self.sessions[size].add_items([message(number)])

    async def read(self, size: int) -> int:
        return len(await self.sessions[size].get_items(limit=LAST))


class Trpc:
    """The session services of tRPC-Agent-Python: one writes, one reads the last events."""

    def __init__(self, place: str) -> None:
        sessions = import_module("trpc_agent_sdk.sessions")
        is_redis = place.startswith("redis://")
        service = sessions.RedisSessionService if is_redis else sessions.SqlSessionService
        self.is_redis = is_redis
        self.writer, self.reader = (
            service(db_url=place, session_config=self.config(last)) for last in (0, LAST)
        )
        self.sessions: dict[int, Any] = {}

    @staticmethod
    def config(last: int) -> Any:
        sessions = import_module("trpc_agent_sdk.sessions")
        config = sessions.SessionServiceConfig(num_recent_events=last)
        config.clean_ttl_config()
        return config

    @staticmethod
    def event(number: int) -> Any:
        types = import_module("trpc_agent_sdk.types")
        said = message(number)
        role = "user" if said["role"] == "user" else "model"
        content = types.Content(role=role, parts=[types.Part.from_text(text=said["content"])])
        event = import_module("trpc_agent_sdk.events").Event
        return event(invocation_id="bench", author=said["role"], content=content)

    async def fill(self, size: int) -> None:
        session = await self.writer.create_session(
            app_name="bench", user_id="me", session_id=str(size)
        )
        if self.is_redis:
            # One by one, each of them would write all the others again.
            session.events = [self.event(number) for number in range(size)]
            await self.writer.update_session(session)
        else:
            for number in range(size):
                await self.writer.append_event(session, self.event(number))
        self.sessions[size] = session

    async def append(self, size: int, number: int) -> None:
        await self.writer.append_event(self.sessions[size], self.event(number))

    async def read(self, size: int) -> int:
        session = await self.reader.get_session(
            app_name="bench", user_id="me", session_id=str(size)
        )
        return len(session.events)


STORES: dict[str, Callable[[str], Any]] = {
    "ours": Ours,
    "ours-limited": OursLimited,
    "nanobot": Nanobot,
    "openai-agents": OpenAIAgents,
    "trpc-agent-py": Trpc,
}


async def timed(count: int, call: Callable[[int], Awaitable[Any]]) -> list[float]:
    """Return the seconds of each of `count` calls, or of those that `MAX_SECONDS` allow."""
    seconds: list[float] = []
    end = time.perf_counter() + MAX_SECONDS
    for number in range(count):
        start = time.perf_counter()
        await call(number)
        now = time.perf_counter()
        seconds.append(now - start)
        if now > end:
            break
    return seconds


async def main(name: str, place: str) -> None:
    # What a store prints must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    store = STORES[name](place)
    print("{}", file=answers, flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        what, size, *count = line.split()
        seconds: list[float] = []
        if what == "fill":
            await store.fill(int(size))
        elif what == "append":
            seconds = await timed(int(count[0]), lambda at: store.append(int(size), at))  # noqa: B023
        else:
            found = await store.read(int(size))
            # Some begin with the user, whatever the window begins with.
            assert LAST - 1 <= found <= LAST, f"{name} read {found} events"
            seconds = await timed(int(count[0]), lambda at: store.read(int(size)))  # noqa: B023
        print(json.dumps(seconds), file=answers, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
