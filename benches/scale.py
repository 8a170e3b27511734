"""What the stores hold and how fast they are, for docs/scale.md: `python benches/scale.py`.

Every figure is measured through `SessionService`, on this machine, in files and servers that are
deleted afterwards. About ten minutes, 2 GB of memory and 2 GB of disk; `--sessions 1000` is a look.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from measure import Report, median, percentile_99
from nanobot_context.sessions import SessionEvent, SessionService

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "tests" / "python" / "support"))

from redis_server import RedisServer, running  # noqa: E402

# A short chat message, its JSON included. Long ones cost their length, as the table of sizes shows.
TEXT = "x" * 250
EVENTS = 10
SESSIONS_OF_A_USER = 10
SAMPLES = 500
WRITE_SECONDS = 4.0


@dataclass(frozen=True)
class Place:
    """A store that is empty at first.

    Attributes:
        title: What a reader calls it.
        url: Its URL.
        bytes_held: Returns what it takes: bytes of files, or of the server's memory.
    """

    title: str
    url: str
    bytes_held: Callable[[], int]


@contextmanager
def file(options: str = "") -> Iterator[Place]:
    """Give an SQLite file on the disk of the checkout."""
    with tempfile.TemporaryDirectory(dir=HERE.parent / ".cache") as folder:
        path = Path(folder) / "sessions.db"

        def bytes_held() -> int:
            return sum(
                one.stat().st_size for one in Path(folder).iterdir() if one.suffix != ".db-reserve"
            )

        title = f"SQLite, {options}" if options else "SQLite"
        yield Place(title, f"sqlite:///{path}{'?' if options else ''}{options}", bytes_held)


@contextmanager
def server(*options: str, title: str = "Redis") -> Iterator[Place]:
    """Give a Redis server."""
    with running("", *options) as redis:
        yield Place(title, redis.url, lambda: _used(redis))


def _used(redis: RedisServer) -> int:
    told = redis.command("INFO", "memory")
    assert isinstance(told, bytes)
    [line] = [line for line in told.decode().splitlines() if line.startswith("used_memory:")]
    return int(line.partition(":")[2])


def message(number: int, text: str = TEXT) -> SessionEvent:
    role = "user" if number % 2 == 0 else "assistant"
    return SessionEvent({"role": role, "content": f"{number} {text}"})


def timed(work: Callable[[], object], count: int = SAMPLES) -> str:
    """Time calls; return their median and their 99th percentile, in milliseconds."""
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return _told(seconds)


def owner(number: int) -> tuple[str, str, str]:
    """Return app, user and id of a session."""
    return "scale", f"user-{number // SESSIONS_OF_A_USER}", f"session-{number}"


def many_sessions(report: Report, place: Place, sizes: list[int]) -> None:
    """Fill a store with sessions, and time calls on random ones at each size."""
    report.title(f"{place.title}: sessions of {EVENTS} events of {len(TEXT) + 40} bytes")
    rows = []
    chance = random.Random(0)
    with SessionService(place.url) as service:
        empty = place.bytes_held()
        filled = 0
        for size in sizes:
            start = time.perf_counter()
            for number in range(filled, size):
                session = service.create(*owner(number))
                service.append(session, [message(at) for at in range(EVENTS)])
            rate = (size - filled) / (time.perf_counter() - start)
            filled = size
            held = place.bytes_held() - empty

            def any_session(size: int = size) -> tuple[str, str, str]:
                return owner(chance.randrange(size))

            appends = []
            for _ in range(SAMPLES):
                found = service.get(*any_session(), last=0)
                assert found is not None
                start = time.perf_counter()
                service.append(found, [message(found.seq)])
                appends.append(time.perf_counter() - start)
            rows.append(
                (
                    f"{size:,}",
                    f"{rate:,.0f}",
                    f"{held / size / EVENTS:,.0f}",
                    _told(appends),
                    timed(lambda: service.get(*any_session(), last=50)),
                    timed(lambda: service.list_sessions(*any_session()[:2], limit=20)),
                )
            )
    header = ("sessions", "created a second", "bytes an event", "append", "read", "list")
    report.table(header, rows)


def one_session(report: Report, place: Place, sizes: list[int]) -> None:
    """Let one session grow, and time calls at each size."""
    report.title(f"{place.title}: one session, no limit of events")
    rows = []
    numbers = itertools.count()
    with SessionService(place.url, event_limit=0) as service:
        service.create("scale", "me", "long")
        [head] = service.list_sessions("scale", "me")
        filled = 0
        for size in sizes:
            for start in range(filled, size, 500):
                service.append(head, [message(at) for at in range(start, min(start + 500, size))])
            filled = size
            whole = timed(lambda: service.get("scale", "me", "long"), count=5)
            rows.append(
                (
                    f"{size:,}",
                    timed(lambda: service.append(head, [message(next(numbers))])),
                    timed(lambda: service.get("scale", "me", "long", last=50)),
                    whole.partition(" ")[0],
                )
            )
    report.table(("events", "append", "read the last 50", "read all"), rows)


def _write(url: str, writer: int, begin: float, answers: multiprocessing.Queue[int]) -> None:
    with SessionService(url) as service:
        session = service.create("scale", f"writer-{writer}")
        time.sleep(max(begin - time.time(), 0))
        count = 0
        while time.time() < begin + WRITE_SECONDS:
            service.append(session, [message(count)])
            count += 1
        answers.put(count)


def writers(report: Report, places: list[Place]) -> None:
    """Count what processes write at the same time, each to a session of its own."""
    report.title("Events a second, one a write, by processes that write at once")
    context = multiprocessing.get_context("spawn")
    rows = []
    for place in places:
        rates = []
        for count in (1, 2, 4):
            answers: multiprocessing.Queue[int] = context.Queue()
            begin = time.time() + 2.0
            processes = [
                context.Process(target=_write, args=(place.url, at, begin, answers))
                for at in range(count)
            ]
            for process in processes:
                process.start()
            written = sum(answers.get(timeout=60) for _ in processes)
            for process in processes:
                process.join()
            rates.append(f"{written / WRITE_SECONDS:,.0f}")
        rows.append((place.title, *rates))
    report.table(("", "1 process", "2 processes", "4 processes"), rows)


def sizes_of_events(report: Report) -> None:
    """Show what an event costs by its length, in sessions of 100."""
    report.title("Bytes that an event takes, by the length of its text")
    rows = []
    for length in (100, 500, 1_000, 2_000, 8_000):
        cells = [f"{length:,}"]
        for opened in (file(), server()):
            with opened as place, SessionService(place.url) as service:
                empty = place.bytes_held()
                for number in range(50):
                    session = service.create("scale", "me", str(number))
                    service.append(session, [message(at, "x" * length) for at in range(100)])
                service.close()
                cells.append(f"{(place.bytes_held() - empty) / 5_000:,.0f}")
        rows.append(tuple(cells))
    report.table(("characters", "SQLite", "Redis"), rows)


def _told(seconds: list[float]) -> str:
    return f"{median(seconds) * 1_000:.2f} / {percentile_99(seconds) * 1_000:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", nargs="+", type=int, default=[1_000, 10_000, 100_000])
    parser.add_argument("--events", nargs="+", type=int, default=[1_000, 10_000, 100_000])
    options = parser.parse_args()
    report = Report()
    report.line("Times are wall time of a call in ms: median / 99th percentile.")
    for opened in (file, server):
        with opened() as place:
            many_sessions(report, place, options.sessions)
        with opened() as place:
            one_session(report, place, options.events)
    always = ("--appendonly", "yes", "--appendfsync")
    with (
        file() as plain,
        file("durability=full") as full,
        server() as volatile,
        server(*always, "everysec", title="Redis, appendfsync everysec") as everysec,
        server(*always, "always", title="Redis, appendfsync always") as every,
    ):
        writers(report, [plain, full, volatile, everysec, every])
    sizes_of_events(report)


if __name__ == "__main__":
    main()
