"""The session with planted facts: what survives at a budget."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any

from evaluation.page import Page, share
from evaluation.work import Job

ROOT = Path(__file__).resolve().parent.parent
BUDGETS = (30_000, 60_000)
SEED = 0  # the session that the targets are for
OTHER_SEEDS = (1, 2, 3, 4)
WHOLE = ("constraint", "first_task", "last_user", "user_fact", "log_error")
NEARLY = ("assistant_decision", "json_anomaly")
NEARLY_WHOLE = 0.9
KINDS = {
    "constraint": "first instruction",
    "first_task": "task id",
    "last_user": "last request",
    "user_fact": "user facts",
    "log_error": "error lines",
    "assistant_decision": "decisions",
    "json_anomaly": "JSON anomalies",
}


def measure(spec: str, budget: int, seed: int, tools: Path) -> dict[str, Any]:
    """Run the script, which checks the input list too, and return what it printed."""
    command = [sys.executable, str(tools / "planted.py"), "--compress", spec]
    command += ["--count", "evaluation.adapters:count", "--budget", str(budget)]
    command += ["--seed", str(seed)]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, check=True, stdout=subprocess.PIPE
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def jobs(specs: Iterable[str], tools: Path, *, seeds: Iterable[int]) -> list[Job]:
    return [
        Job(("planted", spec, budget, seed), measure, (spec, budget, seed, tools), 500_000)
        for spec in specs
        for budget in BUDGETS
        for seed in seeds
    ]


def kept(result: dict[str, Any]) -> float:
    """Return the mean over the kinds of facts, the last user message left out."""
    shares = [value for kind, value in result["kept"].items() if kind != "last_user"]
    return float(sum(shares) / len(shares))


def write(
    page: Page, results: Mapping[Hashable, Any], specs: dict[str, str], *, quick: bool
) -> None:
    """Write the table; `specs` has the name of each compressor, ours first."""
    page.title("Planted facts")
    page.text(
        "A synthetic session of about 200 messages: tool calls with JSON rows, logs with the error "
        "at the end, repeated reads, Chinese; exact strings are planted in known places. Share of "
        "them that is still there. `reuse`: mean share of a request that is an exact prefix of the "
        "next, over the last ten requests, each fitted without memory of the one before. The "
        "baselines count in our tokens here."
    )
    header = ["", "budget", "session", "tokens in", "filled", "broken pairs"]
    header += [*KINDS.values(), "reuse", "requests over"]
    rows = []
    ours = next(iter(specs))
    for spec, name in specs.items():
        for budget in BUDGETS:
            rows.append(_row(name, str(SEED), budget, results["planted", spec, budget, SEED]))
            if spec == ours and not quick:
                others = [results["planted", spec, budget, seed] for seed in OTHER_SEEDS]
                rows.append(_row(name, f"worst of {len(others)} others", budget, _worst(others)))
    page.table(header, rows)
    for budget in BUDGETS:
        _targets(page, budget, results["planted", ours, budget, SEED])


def _row(name: str, session: str, budget: int, result: dict[str, Any]) -> list[str]:
    return [
        name,
        f"{budget:,}",
        session,
        f"{result['tokens_in']:,}",
        share(result["filled"]) + ("" if result["fits"] else " (does not fit)"),
        str(result["pairing_errors"]),
        *(share(result["kept"][kind]) for kind in KINDS),
        share(result["prefix_reuse_mean"]),
        str(result["replays_over_budget"]),
    ]


def _worst(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the worst value of each column."""
    return {
        "tokens_in": max(r["tokens_in"] for r in results),
        "filled": min(r["filled"] for r in results),
        "fits": all(r["fits"] for r in results),
        "pairing_errors": max(r["pairing_errors"] for r in results),
        "kept": {kind: min(r["kept"].get(kind, 1.0) for r in results) for kind in KINDS},
        "prefix_reuse_mean": min(r["prefix_reuse_mean"] for r in results),
        "replays_over_budget": max(r["replays_over_budget"] for r in results),
    }


def _targets(page: Page, budget: int, result: dict[str, Any]) -> None:
    filled: float = result["filled"]
    page.target(
        f"planted facts, {budget:,}: fits, no broken pair, over 0.9 filled",
        f"{filled:.3f}, {result['pairing_errors']} broken",
        bool(result["fits"]) and not result["pairing_errors"] and filled > 0.9,
    )
    for kinds, wanted in ((WHOLE, 1.0), (NEARLY, NEARLY_WHOLE)):
        names = ", ".join(KINDS[kind] for kind in kinds)
        values = [result["kept"][kind] for kind in kinds]
        page.target(
            f"planted facts, {budget:,}: at least {wanted:.1f} of {names}",
            ", ".join(f"{value:.2f}" for value in values),
            min(values) >= wanted,
        )
