"""Fixtures for tests of sessions, so that every case is written once: `pytest_plugins` names it.

A test that takes `store` runs on each store with `SessionService`, and with `AsyncSessionService`
behind the same methods; one that takes `plain_store` on each store.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from redis_server import RedisServer, running
from session_cases import HAS_REDIS, STORES, WAIT_SECONDS, Store


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer | None]:
    """One server for all tests of a process; each finds it empty."""
    if not HAS_REDIS:
        yield None
        return
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def other_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that runs in another thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="loop", daemon=True)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join(WAIT_SECONDS)
    loop.close()


def _store(
    name: str,
    tmp_path: Path,
    server: RedisServer | None,
    loop: asyncio.AbstractEventLoop | None = None,
) -> Iterator[Store]:
    if name == "redis":
        assert server is not None
        server.command("FLUSHALL")
    store = Store(name, tmp_path / "sessions.db", server if name == "redis" else None, loop)
    yield store
    store.close()


@pytest.fixture(params=[f"{name}-{how}" for name in STORES for how in ("sync", "asyncio")])
def store(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    redis_server: RedisServer | None,
    other_loop: asyncio.AbstractEventLoop,
) -> Iterator[Store]:
    """Each store, by each of the two services."""
    name, how = request.param.split("-")
    yield from _store(name, tmp_path, redis_server, other_loop if how == "asyncio" else None)


@pytest.fixture(params=STORES)
def plain_store(
    request: pytest.FixtureRequest, tmp_path: Path, redis_server: RedisServer | None
) -> Iterator[Store]:
    """Each store, by `SessionService` alone: for what does not depend on the service."""
    yield from _store(request.param, tmp_path, redis_server)
