"""What a user would miss: odd lines, rules, names, and the user's own words."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from evaluation import adapters
from evaluation.page import Page, share
from evaluation.recall import OURS
from evaluation.tools import load
from evaluation.work import Job

ONCE = "evaluation.adapters:compressed_once"
PLACES = ("short", "long", "many")
HEADER = ("odd line", "rules", "names unasked", "names asked", "own words", "marks")


@dataclass
class Kept:
    """The shares that one compressor keeps."""

    odd_line: float
    numbered: float  # the odd line, in the worst numbering
    rules: float
    rules_in_little: float  # at 10 % of the tokens
    unasked: float
    asked: float
    own_words: float
    below_users_first: float  # the most that own words are below the script's baseline
    marks: float  # of the result, the most
    failed: int  # results over the budget, and calls that raised

    def row(self) -> tuple[float, ...]:
        """Return the shares in the order of `HEADER`."""
        names = (self.unasked, self.asked)
        return (self.odd_line, self.rules, *names, self.own_words, self.marks)


def measure(spec: str, tools: Path) -> Kept:
    """Run the script's measure on its own cases, in this process."""
    script = load(tools / "user_cases.py", "user_cases")
    cases = json.loads((tools / "user_cases.json").read_text(encoding="utf-8"))
    compress = getattr(adapters, spec.rpartition(":")[2])
    found: dict[str, Any] = script.measure(compress, cases, adapters.count)
    odd, rules, names = found["odd_line"], found["rules"], found["identifiers"]
    own = [
        cell
        for shape in ("brief", "wordy")
        for by_ratio in found["own_words"][shape].values()
        for cell in by_ratio.values()
    ]
    return Kept(
        odd_line=odd["share"],
        numbered=min(odd["by_numbering"].values()),
        rules=rules["share"],
        rules_in_little=min(rules[place][min(rules[place])] for place in PLACES),
        unasked=names["unasked"],
        asked=names["asked"],
        own_words=fmean(cell["kept"] for cell in own),
        below_users_first=max(cell["users_first"] - cell["kept"] for cell in own),
        marks=max(cell["marks"] for cell in found["marks"].values()),
        failed=found["over_budget"] + len(found["raised"]),
    )


def jobs(specs: Iterable[str], tools: Path) -> list[Job]:
    return [Job(("users", spec), measure, (spec, tools), 2_000_000) for spec in specs]


def write(page: Page, results: Mapping[Hashable, Any]) -> None:
    page.title("User cases")
    page.text(
        "Conversations made for what a user would be angry about, at 6 to 50 % of their tokens: "
        "the one line of a result that matters, rules, names, what the user said; `marks` is the "
        "most of a result that stands for what was left out. `compress_messages` makes one step "
        "of the whole conversation, deeper than its budget, so that the next is far."
    )
    ours: Kept = results["users", OURS]
    once: Kept = results["users", ONCE]
    rows = [["ours", *map(share, ours.row())], ["`compress_messages`", *map(share, once.row())]]
    page.table(["", *HEADER], rows)
    for name, measured, wanted in (
        ("odd line", ours.odd_line, 0.95),
        ("odd line in each numbering", ours.numbered, 0.85),
        ("rules", ours.rules, 0.95),
        ("rules at 10 %", ours.rules_in_little, 0.9),
        ("names unasked", ours.unasked, 0.8),
        ("names asked", ours.asked, 1.0),
    ):
        page.target(f"user cases, {name}: at least {wanted}", share(measured), measured >= wanted)
    below = ours.below_users_first
    page.target("user cases, own words: at most 0.02 below", share(below), below <= 0.02)
    page.target("user cases, marks: at most 0.05", share(ours.marks), ours.marks <= 0.05)
    page.target("user cases over the budget or raised: 0", str(ours.failed), not ours.failed)
