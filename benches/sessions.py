"""Appending to a session and reading its last messages, against other packages' session stores."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import peers
from measure import Report, median

SIZES = (100, 1_000, 20_000)
# An append may cost so much more in the longest session than in the shortest: noise, and depth of
# a tree of pages.
FLAT = 1.5

HERE = Path(__file__).parent
SUPPORT = HERE.parent / "tests" / "python" / "support"


@dataclass(frozen=True)
class Rival:
    """A store, and the one of ours that it is compared with.

    Attributes:
        name: Its name in `session_store.py`.
        place: Where it keeps its sessions; `{folder}` and `{redis}` are filled in.
        ours: Our store with the same promise; empty for one of ours.
    """

    name: str
    place: str
    ours: str = ""


FILE = "sqlite:///{folder}/ours.db"
SYNCED = "sqlite:///{folder}/synced.db?durability=full"
REDIS = "redis://{redis}/0"

# A file that is not waited for is compared with one that is not, and the other way round: SQLite as
# both of the others open it waits for the disk with every write, and nanobot does not.
RIVALS = {
    "ours, SQLite": Rival("ours", FILE),
    "nanobot 0.3.5, JSONL": Rival("nanobot", "{folder}", "ours, SQLite"),
    "ours, SQLite, durability=full": Rival("ours", SYNCED),
    "openai-agents 0.24.0, SQLite": Rival(
        "openai-agents", "{folder}/openai.db", "ours, SQLite, durability=full"
    ),
    "trpc-agent-py 1.1.15, SQLite": Rival(
        "trpc-agent-py", "sqlite:///{folder}/trpc.db", "ours, SQLite, durability=full"
    ),
    "ours, SQLite, at most 1,000 events": Rival("ours-limited", "sqlite:///{folder}/limited.db"),
    "ours, Redis": Rival("ours", REDIS),
    "openai-agents 0.24.0, Redis": Rival("openai-agents", "redis://{redis}/1", "ours, Redis"),
    "trpc-agent-py 1.1.15, Redis": Rival("trpc-agent-py", "redis://{redis}/2", "ours, Redis"),
    "ours, Redis, at most 1,000 events": Rival("ours-limited", "redis://{redis}/3"),
}


class Worker:
    """A process with one store."""

    def __init__(self, rival: Rival, folder: str, redis: str) -> None:
        environment = peers.NANOBOT if rival.name == "nanobot" else peers.ENVIRONMENT
        is_ours = rival.name.startswith("ours")
        python = Path(sys.executable) if is_ours else environment / "bin" / "python"
        place = rival.place.format(folder=folder, redis=redis)
        self.process = subprocess.Popen(
            [python, HERE / "session_store.py", rival.name, place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )
        self.answer()

    def answer(self) -> list[float]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args!r} ended")
        seconds: list[float] = json.loads(line)
        return seconds

    def ask(self, what: str) -> list[float]:
        assert self.process.stdin is not None
        print(what, file=self.process.stdin, flush=True)
        return self.answer()

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@contextmanager
def workers() -> Iterator[dict[str, Worker]]:
    """Start every store, in a folder that is deleted afterwards, and one Redis for those on it."""
    sys.path.append(str(SUPPORT))
    from redis_server import running

    with running() as server, tempfile.TemporaryDirectory(dir=HERE.parent / ".cache") as folder:
        started = {
            title: Worker(rival, folder, f"127.0.0.1:{server.port}")
            for title, rival in RIVALS.items()
        }
        try:
            yield started
        finally:
            for worker in started.values():
                worker.end()


def sessions(report: Report, *, rounds: int, sizes: tuple[int, ...] = SIZES) -> None:
    """One append, and the last 50 messages, in sessions of growing length."""
    report.title("Sessions: events of 1 KB, wall time of a call, median")
    if not (peers.is_installed() and peers.NANOBOT.exists()):
        report.line("Left out: `python benches/peers.py` and `make envs` install the peers.")
        return
    with workers() as started:
        medians: dict[tuple[str, int, str], float] = {}
        for size in sizes:
            samples: dict[tuple[str, str], list[float]] = {}
            for worker in started.values():
                worker.ask(f"fill {size}")
            for _ in range(rounds):
                for title, worker in started.items():
                    for what in ("append", "read"):
                        seconds = worker.ask(f"{what} {size} 40")
                        samples.setdefault((title, what), []).extend(seconds)
            medians |= {(t, size, what): median(found) for (t, what), found in samples.items()}
    for what, head in (("append", "append one"), ("read", "read the last 50")):
        rows = [[title, *(_told(title, what, size, medians) for size in sizes)] for title in RIVALS]
        report.table((head, *(f"{size:,} events" for size in sizes)), rows)
    for title, rival in RIVALS.items():
        if not rival.ours:
            ratio = medians[title, sizes[-1], "append"] / medians[title, sizes[0], "append"]
            report.target(
                f"append of {title}: flat from {sizes[0]:,} to {sizes[-1]:,} ({ratio:.2f} x)",
                ratio <= FLAT,
            )
            continue
        for what in ("append", "read"):
            ratios = [
                medians[title, size, what] / medians[rival.ours, size, what] for size in sizes
            ]
            told = ", ".join(f"{ratio:.1f}" for ratio in ratios)
            report.target(f"{what} ahead of {title} ({told} x)", min(ratios) > 1)


def _told(title: str, what: str, size: int, medians: dict[tuple[str, int, str], float]) -> str:
    seconds = medians[title, size, what]
    ours = RIVALS[title].ours
    ratio = f" ({seconds / medians[ours, size, what]:.1f} x)" if ours else ""
    return f"{seconds * 1_000:.2f} ms{ratio}"
