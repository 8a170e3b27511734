"""What compression keeps, on recorded conversations: `make eval`, or `python -m evaluation.run`."""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Hashable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nanobot_context
from evaluation import (
    adapters,
    cases,
    loops,
    numbers,
    planted,
    recall,
    recall_tables,
    replays,
    tools,
    user_cases,
    work,
)
from evaluation.page import Page

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "evaluation.md"
PARTS = (
    "future",
    "evidence",
    "planted",
    "users",
    "cases",
    "replay",
    "loops",
    "ablation",
    "numbers",
    "speed",
)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    try:
        tools.check(options.data, options.tools)
    except tools.MissingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    os.environ[tools.VARIABLE] = str(options.tools.resolve())
    started = time.monotonic()
    page = Page()
    page.parts.append("# Evaluation")
    _write_about(page, options)
    if not adapters.can_ablate() and {"future", "ablation"} & set(options.only):
        print("skipped: ablations and the score without the ledger; this build has no such switch")
    results = work.run(_jobs(options), options.processes)
    failed = _write_results(page, options, results)
    if "speed" in options.only:
        _write_speed(page, quick=options.quick)
    page.summary()
    print(f"\n{time.monotonic() - started:.0f} s", file=sys.stderr)
    output: Path | None = options.output
    if output is None and not options.quick and set(options.only) == set(PARTS):
        output = PAGE
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(page.markdown(), encoding="utf-8")
        print(f"written: {output}", file=sys.stderr)
    if failed:
        print(f"error: {failed} calls of ours raised, see above", file=sys.stderr)
    return 1 if failed else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evaluation.run", description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=Path("../shared/data/trajectories"), help="EVAL_DATA"
    )
    parser.add_argument("--tools", type=Path, default=Path("../shared/eval"), help="EVAL_TOOLS")
    parser.add_argument(
        "--only",
        type=_parts,
        default=PARTS,
        metavar="PART[,PART...]",
        help=f"of {', '.join(PARTS)}; writes no page unless --output is given",
    )
    parser.add_argument("--quick", action="store_true", help="a look: a few items of each source")
    parser.add_argument("--processes", type=int, default=_cores(), help="default: the cores")
    parser.add_argument("--output", type=Path, help="the page; default: docs/evaluation.md")
    return parser.parse_args(arguments)


def _parts(text: str) -> tuple[str, ...]:
    named = text.split(",")
    for name in named:
        if name not in PARTS:
            raise argparse.ArgumentTypeError(f"no part `{name}`; there are {', '.join(PARTS)}")
    return tuple(part for part in PARTS if part in named)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _jobs(options: argparse.Namespace) -> list[work.Job]:
    parts, quick = options.only, options.quick
    jobs: list[work.Job] = []
    if {"future", "evidence", "ablation"} & set(parts):
        jobs += recall.jobs(options.data, options.tools, parts, quick=quick)
    if "planted" in parts:
        seeds = [planted.SEED, *([] if quick else planted.OTHER_SEEDS)]
        jobs += planted.jobs([recall.OURS], options.tools, seeds=seeds)
        jobs += planted.jobs(_planted_specs(), options.tools, seeds=[planted.SEED])
    if "ablation" in parts and adapters.can_ablate():
        specs = [recall.OURS, *recall.ablated()]
        jobs += planted.jobs(specs, options.tools, seeds=[planted.SEED])
        jobs += user_cases.jobs(specs, options.tools)
        jobs += cases.jobs(specs)
    if "users" in parts:
        jobs += user_cases.jobs([recall.OURS, user_cases.ONCE], options.tools)
    if "cases" in parts:
        jobs += cases.jobs([recall.OURS, cases.STEPS, cases.WINDOW])
    if "replay" in parts:
        jobs += replays.jobs(options.data, options.tools, quick=quick)
    if "loops" in parts:
        jobs += loops.jobs()
    return jobs


def _planted_specs() -> dict[str, str]:
    """Return the compressors of the planted session and their names, ours first."""
    specs = [recall.OURS, *([recall.NO_LEDGER] if adapters.can_ablate() else [])]
    specs += [recall.SLIDING_OUR_TOKENS, *recall.OUR_TOKENS]
    return {spec: recall_tables.NAMES[spec] for spec in specs}


def _write_results(page: Page, options: argparse.Namespace, results: Mapping[Hashable, Any]) -> int:
    """Write the tables and return how many calls of ours failed."""
    parts = options.only
    failed = 0
    if {"future", "evidence", "ablation"} & set(parts):
        measured = recall.Measured(results, options.data, parts)
        failed = recall.errors(measured)
        if "future" in parts:
            recall_tables.write_future(page, measured)
        if "evidence" in parts:
            recall_tables.write_evidence(page, measured)
    if "planted" in parts:
        planted.write(page, results, _planted_specs(), quick=options.quick)
    if "users" in parts:
        user_cases.write(page, results)
    if "cases" in parts:
        cases.write(page, results)
    if "replay" in parts:
        replays.write(page, results)
    if "loops" in parts:
        loops.write(page, results)
    if "ablation" in parts:
        recall_tables.write_ablation(page, measured, results)
    if "numbers" in parts:
        numbers.write(page)
    return failed


def _write_speed(page: Page, *, quick: bool) -> None:
    """Run the benchmark of fitting, alone, and show what it prints."""
    command = [sys.executable, str(ROOT / "benches" / "run.py"), "fit"]
    done = subprocess.run(
        [*command, *(["--quick"] if quick else [])],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    page.title("Speed")
    page.text("`make bench`, section `fit`, see [benches/README.md](../benches/README.md).")
    shown, _, summary = done.stdout.partition("\nTargets\n")
    page.block(shown.strip())
    for line in summary.splitlines():
        for mark in ("ok    ", "MISSED"):
            if line.startswith(mark):
                wanted, _, measured = line.removeprefix(mark).strip().rpartition(" (")
                page.target(wanted, measured.rstrip(")"), mark != "MISSED")


# What was measured --------------------------------------------------------------------------------


def _write_about(page: Page, options: argparse.Namespace) -> None:
    page.text(
        f"Measured on {datetime.now(UTC):%Y-%m-%d} with nanobot-context "
        f"{nanobot_context.__version__}, commit {_commit()}, CPython {platform.python_version()}, "
        f"{_machine()}, by"
    )
    command = [
        "make eval",
        f"EVAL_DATA={shlex.quote(str(options.data))}",
        f"EVAL_TOOLS={shlex.quote(str(options.tools))}",
    ]
    page.parts.append(f"```sh\n{' '.join(command)}\n```")
    if options.quick or set(options.only) != set(PARTS):
        page.text(f"Parts: {', '.join(options.only)}{'; a few items only' * options.quick}.")
    scripts = [options.tools / name for name in tools.SCRIPTS]
    page.text(
        "Ours is `fit_messages(messages, budget, None)`: budgets and results are counted as for a "
        "model that is not named, and no model is called. The measures are four scripts outside "
        "of this repository, whose docstrings define them: "
        f"{', '.join(f'`{name}`' for name in tools.SCRIPTS)} (together SHA-256 "
        f"{tools.checksum(scripts)}…). Scores are the same in every run; times are not."
    )
    _write_data(page, options.data)


def _write_data(page: Page, data: Path) -> None:
    page.title("Data")
    files = tools.recordings(data)
    page.text(
        "Recorded agent runs and long conversations from public repositories, under MIT, "
        "Apache-2.0 or CC0, with names, keys and addresses replaced. They are not part of this "
        f"repository (SHA-256 of the files together: {tools.checksum(files)}…). What was tuned or "
        "trained here was tuned or trained on these same recordings; half of each source is kept "
        "back elsewhere and was not seen."
    )
    rows = []
    for file in files:
        found = list(tools.items(file))
        messages = [message for item in found for message in item["messages"]]
        numbers_of = (
            len(found),
            len(messages),
            sum(len(message.get("tool_calls") or []) for message in messages),
            sum(len(item.get("qa") or []) for item in found),
            sum(len(message.get("content") or "") for message in messages) // 1_000,
        )
        rows.append(
            [
                tools.source_of(file),
                ", ".join(dict.fromkeys(_origin(item["origin"]) for item in found)),
                ", ".join(dict.fromkeys(item["license"] for item in found)),
                ", ".join(dict.fromkeys(item["lang"] for item in found)),
                *(f"{n:,}" for n in numbers_of),
            ]
        )
    header = ["source", "from", "licence", "language", "items", "messages", "calls", "questions"]
    page.table([*header, "1,000 characters"], rows)


def _origin(text: str) -> str:
    """Return the repository or package of an item, without the place in it."""
    words = text.split(" ")
    return " ".join(words[:3] if words[0] == "PyPI" else words[:1])


def _commit() -> str:
    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    try:
        changed = " with local changes" if git("status", "--porcelain", "src", "python") else ""
        return git("rev-parse", "--short=10", "HEAD") + changed
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _machine() -> str:
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    return f"{_cores()} cores of {name}"


if __name__ == "__main__":
    sys.exit(main())
