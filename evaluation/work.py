"""Measurements, spread over processes."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Job:
    """One measurement. `run` is a function of a module, so that another process can call it."""

    key: Hashable
    run: Callable[..., Any]
    arguments: tuple[Any, ...]
    size: float  # what takes long goes first, so that no process waits for another at the end


def run(jobs: Sequence[Job], processes: int) -> dict[Hashable, Any]:
    """Return each job's result by its key. A key that occurs twice is measured once."""
    wanted = {job.key: job for job in jobs}
    ordered = sorted(wanted.values(), key=lambda job: -job.size)
    results: dict[Hashable, Any] = {}
    started = time.monotonic()
    if processes == 1:
        for job in ordered:
            results[job.key] = job.run(*job.arguments)
        return results
    # New interpreters: a fork of a process with threads may hang.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context) as pool:
        running = {pool.submit(job.run, *job.arguments): job.key for job in ordered}
        for number, future in enumerate(as_completed(running), start=1):
            results[running[future]] = future.result()
            if number % 20 == 0 or number == len(running):
                seconds = time.monotonic() - started
                print(f"{number} of {len(running)} done, {seconds:.0f} s", file=sys.stderr)
    return results
