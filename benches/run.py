"""All benchmarks, or those that are named: `python benches/run.py [--quick] [SECTION ...]`."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # litellm: no look at the network

import compressing
import counters
import detecting
import fitting
import footprint
import hostile
import sessions
import summarising
from measure import Report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="all of them by default")
    parser.add_argument("--quick", action="store_true", help="little text, few repetitions")
    options = parser.parse_args()
    report = Report()
    quick: bool = options.quick
    n = 1 if quick else 5
    sections: dict[str, Callable[[], None]] = {
        "cold": lambda: counters.cold(
            report, repetitions=n, total_bytes=100_000 if quick else 1_000_000
        ),
        "crates": lambda: counters.crates(
            report, repetitions=n, total_bytes=100_000 if quick else 1_000_000
        ),
        "worst": lambda: counters.worst(report, repetitions=1 if quick else 3),
        "warm": lambda: counters.warm(report, repetitions=n),
        "growing": lambda: compressing.growing(report, passes=1 if quick else 3),
        "unchanged": lambda: compressing.unchanged(report, samples=5 if quick else 40),
        "fit": lambda: fitting.fit(
            report, repetitions=n, sizes=fitting.SIZES[:3] if quick else fitting.SIZES
        ),
        "hostile": lambda: hostile.growth(
            report, sizes=(100_000, 800_000) if quick else (1_000_000, 8_000_000)
        ),
        "summary": lambda: summarising.planning(report, repetitions=n),
        "errors": lambda: detecting.errors(report, repetitions=n),
        "sessions": lambda: sessions.sessions(
            report,
            rounds=1 if quick else 3,
            sizes=sessions.SIZES[:2] if quick else sessions.SIZES,
        ),
        "memory": lambda: footprint.memory(report),
        "import": lambda: footprint.import_time(report, processes=5 if quick else 20),
        "wheel": lambda: footprint.wheel(report),
    }
    unknown = set(options.sections) - set(sections)
    if unknown:
        parser.error(
            f"no such section: {', '.join(sorted(unknown))}; there are {', '.join(sections)}"
        )
    report.line(
        f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}"
    )
    report.line("Times are CPU time of the measuring thread; candidates take turns in one loop.")
    for name in options.sections or sections:
        sections[name]()
    if report.targets:
        report.summary()
    return 0


if __name__ == "__main__":
    sys.exit(main())
