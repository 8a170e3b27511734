"""The tables of recall, and what each mechanism adds to it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from evaluation import adapters, cases, planted, user_cases
from evaluation.page import Page, percent, share
from evaluation.recall import (
    NO_LEDGER,
    NO_MECHANISM,
    OUR_TOKENS,
    OURS,
    PERCENT,
    PROTECTED,
    RATIOS,
    SLIDING,
    SLIDING_OUR_TOKENS,
    Future,
    Measured,
    Source,
    ablated,
)

ENOUGH_STEPS = 40  # below, one step moves a source by more than the differences of interest
NAMES = {
    OURS: "ours",
    NO_LEDGER: "ours without the ledger",
    NO_MECHANISM: "without all of these",
    SLIDING: "sliding window",
    PROTECTED[0]: "protected window",
    PROTECTED[1]: "protected truncate window",
    SLIDING_OUR_TOKENS: "sliding window, our tokens",
    OUR_TOKENS[0]: "protected window, our tokens",
    OUR_TOKENS[1]: "protected truncate window, our tokens",
}
FUTURE_TARGET = (0.62, 0.82, 0.92)
EVIDENCE_TARGET = {
    "qmsum": (0.50, 0.70, 0.86),
    "vcsum-zh": (0.62, 0.83, 0.92),
    "bfcl-memory": (0.98, 0.99, 1.0),
}


def write_future(page: Page, measured: Measured) -> None:
    page.title("Future-reference recall")
    page.text(
        "At later steps of a recorded trajectory: the share of the strings that the assistant uses "
        "there, from earlier messages, that are still in the context after it was cut to a part of "
        "its tokens. Mean over the steps of a source. `cut` counts steps whose system messages, "
        "last user message or last round did not come out whole, `over` budgets that were "
        "exceeded, `pairs` steps with a broken pair of call and result: all three for ours, over "
        "all three budgets. `window` is `baseline:protected_window`, `truncate` is "
        "`baseline:protected_truncate_window`."
    )
    ours = measured.future(OURS)
    columns = [OURS, *PROTECTED]
    short = ["ours", "window", "truncate"]
    header = ["source", "trajectories", "steps"]
    header += [f"{name} {percent}" for name in short for percent in PERCENT]
    header += ["cut", "over", "pairs"]
    rows = []
    for name, source in ours.items():
        row = [name, str(source.trajectories), str(source.steps)]
        for spec in columns:
            row += _recalls(measured.future(spec).get(name))
        row += [
            str(sum(f.cut for f in source.future)),
            str(sum(f.violated for f in source.future)),
            str(sum(f.bad_pairs for f in source.future)),
        ]
        rows.append(row)
    total = [sum(s.trajectories for s in ours.values()), sum(s.steps for s in ours.values())]
    mean = ["**mean over sources**", *map(str, total)]
    mean += [share(value) for spec in columns for value in measured.mean(spec)]
    totals = [measured.total(OURS, of) for of in (_cut, _violated, _bad_pairs)]
    page.table(header, [*rows, [*mean, *map(str, totals)]])
    _write_means(page, measured)
    _write_below(page, measured)
    for i, wanted in enumerate(FUTURE_TARGET):
        value = measured.mean(OURS)[i]
        page.target(
            f"future-reference recall at {PERCENT[i]} at least {wanted}",
            share(value),
            value >= wanted,
        )
    for (label, of), value in zip(_PROMISES, totals, strict=True):
        page.target(label, str(value), measured.total(OURS, of) == 0)


def _cut(f: Future) -> int:
    return f.cut


def _violated(f: Future) -> int:
    return f.violated


def _bad_pairs(f: Future) -> int:
    return f.bad_pairs


def _infeasible(f: Future) -> int:
    return f.infeasible


def _errors(f: Future) -> int:
    return f.errors


_PROMISES: tuple[tuple[str, Callable[[Future], int]], ...] = (
    ("steps with something protected cut: 0", _cut),
    ("steps over the budget: 0", _violated),
    ("steps with a broken pair: 0", _bad_pairs),
)


def _write_means(page: Page, measured: Measured) -> None:
    page.title("All compressors", 3)
    header = ["", *PERCENT, *(f"over steps {p}" for p in PERCENT)]
    header += ["cut", "over", "pairs", "infeasible", "errors"]
    rows = []
    for spec in measured.by_spec:
        if spec not in NAMES or not measured.future(spec):
            continue
        row = [NAMES[spec], *map(share, measured.mean(spec))]
        row += map(share, measured.mean_over_steps(spec))
        row += [
            str(measured.total(spec, of))
            for of in (_cut, _violated, _bad_pairs, _infeasible, _errors)
        ]
        rows.append(row)
    page.table(header, rows)
    page.text(
        "The baselines count four characters a token, as the measure does, and ours counts its own "
        "tokens; `our tokens` gives the baselines our counter too. `infeasible`: steps left out "
        "because system messages, last user message and last round alone exceed the budget."
    )
    if NO_LEDGER not in measured.by_spec:
        page.text("Not measured: ours without the ledger, which this build can't switch off.")


def _write_below(page: Page, measured: Measured) -> None:
    page.title("Sources below the better protected baseline", 3)
    below = {
        "": below_baseline(measured, PROTECTED),
        ", their budget in our tokens": below_baseline(measured, OUR_TOKENS),
    }
    for label, found in below.items():
        lines = [
            f"{name} at {PERCENT[i]}: {ours.recall:.3f} against {better.recall:.3f} "
            f"({ours.steps} steps, standard error {ours.error:.3f})"
            for name, i, ours, better in found
        ]
        page.text(
            f"Of {ENOUGH_STEPS} steps or more{label}: " + ("; ".join(lines) if lines else "none.")
        )
    found = below[""]
    page.target(
        f"no source of {ENOUGH_STEPS} steps or more below the better protected baseline",
        f"{len(found)} below",
        not found,
    )


def below_baseline(
    measured: Measured, baselines: Sequence[str]
) -> list[tuple[str, int, Future, Future]]:
    """Return source, budget, ours and the better baseline, where that one keeps more.

    The better one is chosen at each budget.
    """
    below = []
    for name, source in measured.future(OURS).items():
        if source.steps < ENOUGH_STEPS:
            continue
        for i, ours in enumerate(source.future):
            others = [s.future[i] for b in baselines if (s := measured.future(b).get(name))]
            better = max(others, key=lambda f: f.recall, default=None)
            if better and better.steps and ours.recall < better.recall - 1e-9:
                below.append((name, i, ours, better))
    return below


def write_evidence(page: Page, measured: Measured) -> None:
    page.title("Evidence recall")
    page.text(
        "Conversations with annotated questions, cut with the question as last message. "
        "`verbatim`: share of the turns annotated as evidence whose text is still there unchanged; "
        "`terms`: share of their rare terms; `answer`: share of the answer's terms. Mean over "
        "questions."
    )
    specs = [s for s in (OURS, NO_LEDGER, SLIDING) if s in measured.by_spec]
    header = ["source", "questions", ""]
    header += [f"{NAMES[s]} {percent}" for s in specs for percent in PERCENT]
    rows = []
    below = []
    for name, source in measured.evidence(OURS).items():
        for label in ("verbatim", "terms", "answer"):
            row = [name, str(source.evidence[0].questions), label]
            for spec in specs:
                found = measured.evidence(spec)[name].evidence
                row += [share(getattr(e, label)) for e in found]
            rows.append(row)
        window = measured.evidence(SLIDING)[name].evidence
        for i, (ours, other) in enumerate(zip(source.evidence, window, strict=True)):
            if ours.verbatim < other.verbatim - 1e-9:
                below.append(
                    f"{name} at {PERCENT[i]} ({ours.verbatim:.3f} against {other.verbatim:.3f})"
                )
        for i, wanted in enumerate(EVIDENCE_TARGET.get(name, ())):
            value = source.evidence[i].verbatim
            page.target(
                f"evidence recall of {name} at {PERCENT[i]} at least {wanted}",
                share(value),
                value >= wanted,
            )
    page.table(header, rows)
    over = sum(e.violated for s in measured.evidence(OURS).values() for e in s.evidence)
    failed = sum(e.errors for s in measured.evidence(OURS).values() for e in s.evidence)
    page.text(f"Ours: {over} over the budget, {failed} errors.")
    page.text("Below the sliding window: " + ("; ".join(below) if below else "none."))
    page.target("evidence recall never below the sliding window", f"{len(below)} below", not below)
    page.target("questions over the budget: 0", str(over), over == 0)


def write_ablation(page: Page, measured: Measured, results: Mapping[Hashable, Any]) -> None:
    """Write what is lost without each mechanism; `results` has the planted facts too."""
    page.title("Ablation")
    if not adapters.can_ablate():
        page.text("Not measured: this build of the package can't switch mechanisms off.")
        return
    page.text(
        "Each mechanism switched off alone: mean over the sources of future-reference recall and "
        "of verbatim evidence recall, mean over the kinds of planted facts. In brackets the "
        "difference to ours: what is negative is lost without the mechanism."
    )

    def recorded(spec: str) -> list[float]:
        kept = [
            planted.kept(results["planted", spec, budget, planted.SEED])
            for budget in planted.BUDGETS
        ]
        return [*measured.mean(spec), *measured.mean_evidence(spec), *kept]

    header = [*(f"future {p}" for p in PERCENT), *(f"evidence {p}" for p in PERCENT)]
    _ablated(page, [*header, *(f"planted {budget:,}" for budget in planted.BUDGETS)], recorded)
    page.text("The same of the user cases; of `marks`, what is positive is lost.")
    _ablated(page, user_cases.HEADER, lambda spec: results["users", spec].row())
    page.text(f"The same of our own cases at {percent(cases.ABLATED)} of their tokens.")
    _ablated(page, tuple(cases.FAMILIES), lambda spec: cases.row(results, spec))


def _ablated(page: Page, header: Sequence[str], of: Callable[[str], Sequence[float]]) -> None:
    """Write a table of what ours and ours without each mechanism have."""
    base = of(OURS)
    rows = [[NAMES[OURS], *map(share, base)]]
    for spec in ablated():
        pairs = zip(of(spec), base, strict=True)
        cells = [f"{value:.3f} ({value - reference:+.3f})" for value, reference in pairs]
        name = NAMES[spec] if spec == NO_MECHANISM else spec.rpartition(":")[2].replace("_", " ")
        rows.append([name, *cells])
    page.table(["", *header], rows)


def _recalls(source: Source | None) -> list[str]:
    if source is None:
        return [""] * len(RATIOS)
    return [share(f.recall if f.steps else None) for f in source.future]
