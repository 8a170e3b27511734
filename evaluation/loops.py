"""A talk of sixty turns through real nanobot releases: what its prompts cost and hold."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

from evaluation.page import Page, share
from evaluation.work import Job

ROOT = Path(__file__).resolve().parent.parent
RELEASES = ("0.1.4.post4", "0.1.5.post3", "0.2.2", "0.3.5")
MODES = {"off": "alone", "on": "with the package"}
TURNS = 60


def jobs() -> list[Job]:
    return [Job(("loop", release), play, (release,), 4_000_000) for release in RELEASES]


def play(release: str) -> dict[str, dict[str, Any]]:
    """Return the prices of a talk by mode, as `tests/nanobot/priced.py` has them.

    Raises:
        RuntimeError: The environment of the release is not made, or a play broke off.
    """
    python = ROOT / ".cache" / "nanobot" / release / "bin" / "python"
    if not python.exists():
        raise RuntimeError(f"no environment for nanobot {release}\nhint: run `make envs`")
    driver = ROOT / "tests" / "nanobot" / "drive.py"
    command = [str(python), str(driver), *(f"priced:{mode}" for mode in MODES)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    played = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for one in played:
        if one["error"]:
            raise RuntimeError(f"nanobot {release}: {one['error']}")
    return {one["mode"]: one["notes"]["priced"] for one in played}


def write(page: Page, results: Mapping[Hashable, Any]) -> None:
    page.title("Real loops")
    page.text(
        f"A talk of {TURNS} turns, 600 tokens from each side, with a model of 32,000 tokens whose "
        "server refuses what is longer. `cost`: the prompts that were answered, cached tokens at a "
        "tenth, in thousands of tokens at the full price, and as a share of the whole prompts, "
        "most of which would not fit. `reuse`: share of a prompt that the next one begins with; "
        "`breaks`: prompts that share less than half of it. `seen`: share of the order numbers "
        "said so far that a prompt holds. To 0.2.2 nanobot takes time and channel out of a message "
        "of the user when it saves it: no prompt begins with the whole of the one before there."
    )
    header = ["nanobot", "", "answered", "cost", "of the whole", "reuse", "breaks", "seen"]
    rows = []
    for release in RELEASES:
        for mode, name in MODES.items():
            one = results["loop", release][mode]
            rows.append(
                [
                    *(release, name, f"{one['answered']} of {TURNS}", f"{one['cost'] / 1e3:.0f}"),
                    *(share(one["cost"] / one["whole"], 2), share(one["reuse"])),
                    *(str(one["breaks"]), share(one["seen"])),
                ]
            )
    page.table(header, rows)
    ours = [results["loop", release]["on"] for release in RELEASES]
    alone = [results["loop", release]["off"] for release in RELEASES]
    answered = min(one["answered"] for one in ours)
    page.target(f"turns answered in real loops: {TURNS}", str(answered), answered == TURNS)
    cost = max(one["cost"] / one["whole"] for one in ours)
    page.target("cost in real loops at most 0.65 of the whole", share(cost, 2), cost <= 0.65)
    reuse = min(one["reuse"] for one in ours)
    page.target("prefix reuse in real loops at least 0.96", share(reuse), reuse >= 0.96)
    more = sum(
        one["cost"] <= other["cost"] and one["seen"] >= other["seen"]
        for one, other in zip(ours, alone, strict=True)
        if other["answered"] == TURNS
    )
    of = sum(other["answered"] == TURNS for other in alone)
    page.target(
        "where nanobot alone answers every turn, cost at most its own and more seen",
        f"{more} of {of}",
        more == of,
    )
