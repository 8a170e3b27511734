"""Stores and services for tests of sessions; `session_fixtures` hands them to tests.

Redis is left out while this build of the core does not know it, and where no server is installed:
`HAS_REDIS`.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from nanobot_context import InvalidArgumentError, SessionStoreError
from nanobot_context.sessions import (
    AsyncSessionService,
    SessionEvent,
    SessionService,
    StoredSession,
)
from nanobot_context.sessions.tasks import AsyncJob
from redis_server import EXECUTABLE, RedisServer

WAIT_SECONDS = 60


def knows_redis() -> bool:
    """Return whether this build of the core opens `redis://` URLs."""
    try:
        SessionService("redis://127.0.0.1:1/0").close()
    except InvalidArgumentError:
        return False
    except SessionStoreError:
        return True  # nobody listens there
    return True


HAS_REDIS = EXECUTABLE is not None and knows_redis()
STORES = ("memory", "sqlite", "redis") if HAS_REDIS else ("memory", "sqlite")


class Waiting:
    """An `AsyncSessionService` whose methods wait for their result.

    Its loop runs in another thread, so that summaries go on in the background.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, service: AsyncSessionService) -> None:
        self._loop = loop
        self._service = service

    def __repr__(self) -> str:
        return repr(self._service)

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._service, name)
        return self._waiting(member) if inspect.iscoroutinefunction(member) else member

    def _waiting(self, member: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            done = self._wait(member(*args, **kwargs))
            return WaitingJob(self, done) if isinstance(done, AsyncJob) else done

        return call

    def _wait(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(WAIT_SECONDS)


class WaitingJob:
    """An `AsyncJob` that is asked as a `Job`."""

    def __init__(self, waiting: Waiting, job: AsyncJob[Any]) -> None:
        self._waiting = waiting
        self._job = job

    def cancel(self) -> bool:
        async def cancel() -> bool:
            return self._job.cancel()

        return bool(self._waiting._wait(cancel()))

    def result(self, timeout: float | None = None) -> Any:
        async def wait() -> Any:
            return await asyncio.wait_for(self._job, timeout)

        return self._waiting._wait(wait())


class Store:
    """A store that is empty, and services that open it.

    Attributes:
        name: "memory", "sqlite" or "redis".
        path: The file, of SQLite.
        server: The server, of Redis.
    """

    def __init__(
        self,
        name: str,
        path: Path,
        server: RedisServer | None,
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        self.name = name
        self.path = path
        self.server = server
        self._loop = loop
        self._opened: list[SessionService] = []

    @property
    def is_async(self) -> bool:
        """Whether what it opens is an `AsyncSessionService`."""
        return self._loop is not None

    @property
    def is_shared(self) -> bool:
        """Whether a second service sees what the first one wrote."""
        return self.name != "memory"

    @property
    def url(self) -> str:
        """The URL of the store."""
        if self.server is not None:
            return self.server.url
        return f"sqlite:///{self.path}" if self.name == "sqlite" else "memory:"

    def open(self, **options: Any) -> SessionService:
        """Return a service for the store; it is closed with the test."""
        service: Any
        if self._loop is None:
            service = SessionService(self.url, **options)
        else:
            service = Waiting(self._loop, AsyncSessionService(self.url, **options))
        self._opened.append(service)
        return cast(SessionService, service)

    def open_again(self, first: SessionService, **options: Any) -> SessionService:
        """Return a second service for the same sessions, as another process has it."""
        return self.open(**options) if self.is_shared else first

    def content(self) -> Any:
        """Return all that is stored, to be compared; nothing of memory."""
        if self.server is not None:
            return self.server.dump()
        return rows(self.path) if self.name == "sqlite" else None

    def close(self) -> None:
        """Close every service."""
        for service in self._opened:
            service.close(5)


_READER = """
import sqlite3, sys
connection = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
print({name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for (name,) in names})
"""


def rows(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of every table of an SQLite file.

    Another process reads them: in one process, a second copy of SQLite (Python's own) and the
    core's do not see each other's locks.
    """
    read = subprocess.run(
        [sys.executable, "-c", _READER, path], capture_output=True, check=True, encoding="utf-8"
    )
    found: dict[str, list[tuple[Any, ...]]] = ast.literal_eval(read.stdout)
    return found


def said(text: str, role: str = "user", **more: Any) -> SessionEvent:
    """Return an event with a chat message, whose id is its text."""
    return SessionEvent({"role": role, "content": text}, **{"id": text, **more})


def answered(text: str, **more: Any) -> SessionEvent:
    """Return an event with a message of the assistant."""
    return said(text, "assistant", **more)


def ids(session: StoredSession | None) -> list[str]:
    """Return the ids of a session's events."""
    assert session is not None
    return [event.id for event in session.events]


def read(service: SessionService, session: StoredSession, **window: Any) -> StoredSession:
    """Return the session as it is stored by now."""
    found = service.get(*session.key, **window)
    assert found is not None
    return found


def at_once(works: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run functions in threads at the same time; return their results or what they raised."""
    outcomes: list[Any] = [None] * len(works)
    start = threading.Barrier(len(works))

    def run(at: int) -> None:
        start.wait(10)
        try:
            outcomes[at] = works[at]()
        except Exception as error:
            outcomes[at] = error

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return outcomes
