"""Plays each release once and keeps what its driver reports, until what that depends on changes.

python tests/nanobot/plays.py            # all that `make test` reads, two releases at a time
python tests/nanobot/plays.py 0.1.4      # one release
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ENVIRONMENTS = ROOT / ".cache" / "nanobot"
PLAYS = ROOT / ".cache" / "plays"
HOOK = "lib/python*/site-packages/nanobot_context_autoload.pth"
PROCESS_SECONDS = 7_200

Result = dict[str, Any]
Results = dict[tuple[str, str], Result]


def main(releases: Sequence[str]) -> None:
    """Play `releases`, or all that the tests read."""
    import played  # which imports this module

    if list(releases) == ["--list"]:
        print(*played.RELEASES)
        return
    start = time.perf_counter()

    def play(release: str) -> None:
        begun = time.perf_counter()
        results = plays(release, played.jobs(release), again=True)
        broken = [f"{name}:{mode}" for (name, mode), one in results.items() if one["error"]]
        seconds = time.perf_counter() - begun
        print(f"{release:12} {len(results):3} plays {seconds:5.0f} s", *broken, flush=True)

    # Those with the most to play first.
    order = sorted(reversed(played.RELEASES), key=lambda release: -len(played.jobs(release)))
    with ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(play, releases or order))
    print(f"plays        {time.perf_counter() - start:9.0f} s")


def plays(release: str, jobs: Sequence[str], *, again: bool = False) -> Results:
    """Return the results of `jobs` by scenario and mode; played now if they were not yet.

    `again` plays also what broke off or failed a test the last time.
    """
    kept, doubt = PLAYS / f"{release}.json", failure(release)
    key = fingerprint(release, jobs)
    with locked(release):
        found: dict[str, Any] = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
        broken = doubt.exists() or any(one["error"] for one in found.get("results", ()))
        if found.get("key") != key or (again and broken):
            kept.unlink(missing_ok=True)
            doubt.unlink(missing_ok=True)
            found = {"key": key, "results": drive(release, jobs)}
            kept.write_text(json.dumps(found), "utf-8")
    return {(one["scenario"], one["mode"]): one for one in found["results"]}


def failure(release: str) -> Path:
    """Return the file that says that a test of this release failed, and its plays are doubted."""
    PLAYS.mkdir(parents=True, exist_ok=True)
    return PLAYS / f"{release}.failed"


def fingerprint(release: str, jobs: Sequence[str]) -> str:
    """Return a hash of what results depend on: nanobot, the package, Python, the driver, `jobs`."""
    reading = {HERE / f"{name}.py" for name in ("conftest", "played", "plays", "shared")}
    driver = sorted(set(HERE.glob("*.py")) - set(HERE.glob("test_*.py")) - reading)
    parts = [stamp(release), *jobs, *(path.read_text("utf-8") for path in driver)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def stamp(release: str) -> str:
    """Return what the environment of `release` holds: hashes of lock and package, and the Python.

    Raises:
        RuntimeError: The environment is not made, or has no package in it.
    """
    path = ENVIRONMENTS / release / "nanobot-context.stamp.json"
    if not path.exists():
        raise RuntimeError(f"no environment for nanobot {release}\nhint: run `make envs`")
    text = path.read_text("utf-8")
    if json.loads(text)["package"] == "none":
        raise RuntimeError(
            f"the environment of nanobot {release} holds no nanobot-context\nhint: run `make envs`"
        )
    return text


@contextmanager
def locked(release: str) -> Iterator[None]:
    """Have the environment of `release` alone: a play writes a start-up hook into it."""
    with (PLAYS / f"{release}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def drive(release: str, jobs: Sequence[str]) -> list[Result]:
    """Run the driver of `release` and return what it reports."""
    home = ENVIRONMENTS / release
    for hook in home.glob(HOOK):
        hook.unlink()  # of a run that was killed
    done = subprocess.run(
        [str(home / "bin" / "python"), str(HERE / "drive.py"), *jobs],
        capture_output=True,
        text=True,
        timeout=PROCESS_SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the driver of nanobot {release} failed\n{done.stderr[-4000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


if __name__ == "__main__":
    main(sys.argv[1:])
