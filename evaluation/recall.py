"""Future-reference recall and evidence recall of each compressor."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from evaluation import adapters
from evaluation.page import percent
from evaluation.tools import load, recordings, source_of
from evaluation.work import Job

RATIOS = (0.25, 0.5, 0.75)
PERCENT = tuple(map(percent, RATIOS))

OURS = "evaluation.adapters:ours"
NO_LEDGER = "evaluation.adapters:without_ledger"
NO_MECHANISM = "evaluation.adapters:without_all"
SLIDING = "baseline:sliding_window"
PROTECTED = ("baseline:protected_window", "baseline:protected_truncate_window")
# The same baselines, with budgets and messages in our tokens instead of four characters each.
SLIDING_OUR_TOKENS = "evaluation.adapters:sliding_window"
OUR_TOKENS = tuple(name.replace("baseline:", "evaluation.adapters:") for name in PROTECTED)


@dataclass
class Future:
    """Future-reference recall of one source at one budget."""

    steps: int
    recall: float
    error: float
    violated: int
    bad_pairs: int
    cut: int
    infeasible: int
    errors: int


@dataclass
class Evidence:
    """Evidence recall of one source at one budget."""

    questions: int
    verbatim: float
    terms: float
    answer: float
    violated: int
    errors: int


@dataclass
class Source:
    """One source with one compressor; the values stand in the order of `RATIOS`."""

    name: str
    trajectories: int
    future: list[Future] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)

    @property
    def steps(self) -> int:
        """The steps at the largest budget, as the measure's own table has them."""
        return self.future[-1].steps


def measure(file: Path, spec: str, tools: Path, options: dict[str, Any]) -> Source:
    """Measure one compressor on one file, in this process."""
    measures = load(tools / "future_reference.py", "future_reference")
    name, trajectories, future, _, evidence = measures.run_file((str(file), spec, options))
    source = Source(name, trajectories)
    for ratio in RATIOS:
        found = future[ratio]
        if any(bucket["steps"] for bucket in future.values()):
            source.future.append(
                Future(
                    steps=found["steps"],
                    recall=found["recall_sum"] / max(1, found["steps"]),
                    error=measures.cluster_se(found),
                    violated=found["violated"],
                    bad_pairs=found["bad_pairs"],
                    cut=found["cut"],
                    infeasible=found["infeasible"],
                    errors=found["errors"],
                )
            )
        if evidence:
            asked = evidence[ratio]
            source.evidence.append(
                Evidence(
                    questions=asked["n"],
                    verbatim=asked["verbatim"] / max(1, asked["n"]),
                    terms=asked["terms"] / max(1, asked["n"]),
                    answer=asked["answer"] / max(1, asked["answer_n"]),
                    violated=asked["violated"],
                    errors=asked["errors"],
                )
            )
    return source


def compressors(parts: Iterable[str]) -> list[str]:
    """Return the compressors that `parts` compare."""
    wanted = [OURS]
    if "future" in parts:
        wanted += [SLIDING, *PROTECTED, *OUR_TOKENS]
    if "evidence" in parts:
        wanted += [SLIDING]
    if adapters.can_ablate():
        wanted += [NO_LEDGER]
        if "ablation" in parts:
            wanted += [without(name) for name in adapters.MECHANISMS] + [NO_MECHANISM]
    return list(dict.fromkeys(wanted))


def jobs(data: Path, tools: Path, parts: Sequence[str], *, quick: bool) -> list[Job]:
    what = "future" if "future" in parts else "evidence"
    if "ablation" in parts or {"future", "evidence"} <= set(parts):
        what = "both"
    options = {  # the defaults of the measure's command line
        "ratios": list(RATIOS),
        "steps": 4 if quick else 10,
        "min_prefix": 2000,
        "tail": "round",
        "max_traj": 3 if quick else 0,
        "max_q": 5 if quick else 30,
        "ask": True,
        "what": what,
        "min_strings": 1,
    }
    found = []
    for spec in compressors(parts):
        only_future = spec in (*PROTECTED, *OUR_TOKENS)  # shown nowhere else
        given = options | {"what": "future"} if only_future else options
        for file in recordings(data):
            arguments = (file, spec, tools, given)
            found.append(Job(("recall", spec, file), measure, arguments, file.stat().st_size))
    return found


class Measured:
    """The results of all compressors on all sources."""

    def __init__(self, results: Mapping[Hashable, Any], data: Path, parts: Sequence[str]) -> None:
        self.by_spec: dict[str, dict[str, Source]] = {
            spec: {
                source_of(file): results["recall", spec, file]
                for file in recordings(data)
                if ("recall", spec, file) in results
            }
            for spec in compressors(parts)
        }

    def future(self, spec: str) -> dict[str, Source]:
        return {name: s for name, s in self.by_spec[spec].items() if s.future}

    def evidence(self, spec: str) -> dict[str, Source]:
        return {name: s for name, s in self.by_spec[spec].items() if s.evidence}

    def mean(self, spec: str) -> list[float]:
        """Recall at each budget, mean over the sources that have steps there."""
        return _means(
            [s.future[i].recall for s in self.future(spec).values() if s.future[i].steps]
            for i in range(len(RATIOS))
        )

    def mean_over_steps(self, spec: str) -> list[float]:
        means = []
        for i in range(len(RATIOS)):
            found = [s.future[i] for s in self.future(spec).values()]
            steps = sum(f.steps for f in found)
            means.append(sum(f.recall * f.steps for f in found) / max(1, steps))
        return means

    def mean_evidence(self, spec: str) -> list[float]:
        return _means(
            [s.evidence[i].verbatim for s in self.evidence(spec).values()]
            for i in range(len(RATIOS))
        )

    def total(self, spec: str, of: Callable[[Future], int]) -> int:
        return sum(of(f) for s in self.future(spec).values() for f in s.future)


def ablated() -> list[str]:
    """Return the compressors of the ablation table."""
    if not adapters.can_ablate():
        return []
    return [*(without(name) for name in adapters.MECHANISMS), NO_MECHANISM]


def errors(measured: Measured) -> int:
    """Return how many calls raised, of any compressor of ours."""
    number = 0
    for spec, sources in measured.by_spec.items():
        if spec.startswith("evaluation."):
            for source in sources.values():
                number += sum(found.errors for found in source.future)
                number += sum(found.errors for found in source.evidence)
    return number


def without(mechanism: str) -> str:
    return f"evaluation.adapters:without_{mechanism}"


def _means(columns: Iterable[list[float]]) -> list[float]:
    return [fmean(values) if values else 0.0 for values in columns]
