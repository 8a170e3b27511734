"""Timing, and how results are printed."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field


def cpu_ns(run: Callable[[], object]) -> int:
    """Return the CPU time of `run` on this thread: other processes do not disturb it much."""
    start = time.thread_time_ns()
    run()
    return time.thread_time_ns() - start


def alternate(candidates: Sequence[Callable[[], object]], times: int) -> list[list[int]]:
    """Time each candidate `times` times in one loop; who goes first changes every time."""
    samples: list[list[int]] = [[] for _ in candidates]
    for turn in range(times):
        for offset in range(len(candidates)):
            index = (turn + offset) % len(candidates)
            samples[index].append(cpu_ns(candidates[index]))
    return samples


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def percentile_99(values: Sequence[float]) -> float:
    return sorted(values)[min(len(values) - 1, round(0.99 * (len(values) - 1)))]


@dataclass
class Report:
    """Prints while it runs, and all targets once more at the end."""

    targets: list[tuple[str, bool]] = field(default_factory=list)

    def title(self, text: str) -> None:
        print(f"\n{text}\n{'-' * len(text)}", flush=True)

    def line(self, text: str = "") -> None:
        print(text, flush=True)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print left-aligned names and right-aligned numbers."""
        widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
        for row in [header, *rows]:
            cells = [row[0].ljust(widths[0])]
            cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            self.line("  ".join(cells).rstrip())

    def target(self, text: str, met: bool) -> None:
        self.targets.append((text, met))
        self.line(f"target: {text}: {'ok' if met else 'MISSED'}")

    def summary(self) -> None:
        self.title("Targets")
        for text, met in self.targets:
            self.line(f"{'ok    ' if met else 'MISSED'}  {text}")
        missed = sum(not met for _, met in self.targets)
        self.line(f"{len(self.targets) - missed} met, {missed} missed")
        sys.stdout.flush()
