"""Fits the weights of `src/select/scoring.tsv` to recorded conversations: `make train`.

README.md beside this file tells what is learned, from what, and how well.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import struct
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation import tools, work
from evaluation.page import aligned, markdown
from nanobot_context import _core, count_tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
WEIGHTS = ROOT / "src" / "select" / "scoring.tsv"
README = Path(__file__).resolve().parent / "README.md"

# `TermKind` in src/text/terms.rs: its number, and its name in the table.
KINDS = {2: "long_word", 3: "ident", 4: "joined", 5: "path", 6: "number", 7: "pair"}
# In the order of `features()` in src/select/usage_model.rs. The first is always 1.
FEATURES = (
    *("bias", "messages", "age", "uses", "by_user", "by_assistant", "by_call", "company"),
    *("relevance", "asked", "error", "header", "noise", "mentions"),
)
AGE = FEATURES.index("age")
COLUMNS = 1 + len(FEATURES) + 1  # kind, features, used

STEPS = 12  # of a recording, at most
MIN_PREFIX_TOKENS = 1500
MIN_PREFIX_MESSAGES = 4
FULL_STEPS = 40  # of a source; with fewer it weighs less, in proportion
MIN_USED = 20  # examples of a kind; with fewer it is not learned
REGULARISATION = 1.0  # scikit-learn's C, over standardised features and weights of 1 on average
DATE = "2026-11-22"  # when the recordings were collected
BEGIN, END = "<!-- written by make train -->", "<!-- end -->"


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    files = tools.recordings(options.data) if options.data.is_dir() else []
    if not files:
        print(f"error: EVAL_DATA: no `*.jsonl.gz` in `{options.data}`", file=sys.stderr)
        print("hint: make train EVAL_DATA=<folder>", file=sys.stderr)
        return 2
    jobs = [work.Job(file.name, steps_of, (file,), file.stat().st_size) for file in files]
    done = work.run(jobs, options.processes)
    steps = [step for file in files for step in done[file.name]]
    if not steps:
        print("error: no step of these recordings uses anything of an earlier one", file=sys.stderr)
        return 1
    examples = Examples.of(steps)
    halves = [fit_kinds(examples, examples.half == half) for half in (0, 1)]
    quality = quality_table(examples, halves)
    print(aligned(*quality))
    weights = fit_kinds(examples)
    checksum = tools.checksum(files)
    options.output.write_text(weights_text(weights, about(options.date, checksum)), "utf-8")
    report = "\n\n".join(
        [
            f"Recordings of {options.date}, SHA-256 `{checksum}`.",
            markdown(*source_table(steps, examples)),
            markdown(*quality),
        ]
    )
    options.readme.write_text(inserted(options.readme.read_text("utf-8"), report), "utf-8")
    print(f"written: {options.output} and {options.readme}", file=sys.stderr)
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m training.salience", description=__doc__)
    parser.add_argument("data", type=Path, help="folder of recordings, `*.jsonl.gz`")
    parser.add_argument("--date", default=DATE, help="day of the recordings (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=WEIGHTS, help="file of the weights")
    parser.add_argument("--readme", type=Path, default=README, help="page for the tables")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    return parser.parse_args(arguments)


# Examples #########################################################################################


@dataclass(frozen=True)
class Step:
    """What an assistant's step could have used of the messages before it, and what it did use."""

    source: str
    session: str
    licence: str
    rows: bytes  # little-endian f32: `COLUMNS` an example


def steps_of(file: Path) -> list[Step]:
    """Return the steps of one file of recordings that use something. Conversations without tools
    are left out: there, it is the relevance to the question that decides, and not these weights.
    """
    source = tools.source_of(file)
    steps = []
    for item in tools.items(file):
        messages = item["messages"]
        if not any(message["role"] == "tool" for message in messages):
            continue
        for index in chosen(messages):
            rows = _core.salience_examples(messages[:index], [named(messages[index])])
            step = Step(source, session_of(item["id"]), licence_of(item["license"]), rows)
            if any(used for *_, used in numbers_of(rows)):
                steps.append(step)
    return steps


def chosen(messages: list[dict[str, Any]]) -> list[int]:
    """Return the steps to learn from: they have something before them, and are spread evenly."""
    steps, tokens = [], 0
    for index, message in enumerate(messages):
        is_late = index >= MIN_PREFIX_MESSAGES and tokens >= MIN_PREFIX_TOKENS
        if message["role"] == "assistant" and is_late:
            steps.append(index)
        tokens += count_tokens([message])
    return spread(steps, STEPS)


def spread(items: Sequence[int], most: int) -> list[int]:
    """Return at most so many of `items`, from the middles of equal stretches."""
    if len(items) <= most:
        return list(items)
    return [items[(2 * place + 1) * len(items) // (2 * most)] for place in range(most)]


def named(message: dict[str, Any]) -> str:
    """Return what a message says, and the values of its calls' arguments as they are meant."""
    content = message.get("content") or ""
    texts = [content] if isinstance(content, str) else [part.get("text") or "" for part in content]
    for call in message.get("tool_calls") or []:
        texts.extend(values(call["function"]["arguments"]))
    return "\n".join(texts)


def values(arguments: str) -> list[str]:
    """Return the texts and numbers in a call's arguments; what is no JSON, as it is."""
    try:
        return list(_leaves(json.loads(arguments, parse_int=str, parse_float=str)))
    except ValueError:
        return [arguments]


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)


def numbers_of(rows: bytes) -> Iterable[tuple[float, ...]]:
    return struct.iter_unpack(f"<{COLUMNS}f", rows)


def session_of(item: str) -> str:
    """Return what the parts of one session share: the id before `#`."""
    return item.split("#")[0]


def licence_of(text: str) -> str:
    """Return the licence's name without where it was found: `MIT (README)`."""
    return text.split(" (")[0]


def half_of(source: str, session: str) -> int:
    """Return the half that a session belongs to, 0 or 1: the same one on every machine."""
    return hashlib.sha1(f"{source}{session}".encode(), usedforsecurity=False).digest()[0] % 2


@dataclass(frozen=True)
class Examples:
    """All examples, in the order of the files."""

    kind: NDArray[np.int64]
    features: NDArray[np.float64]
    used: NDArray[np.bool_]
    weight: NDArray[np.float64]
    half: NDArray[np.int64]
    source: NDArray[np.str_]

    @classmethod
    def of(cls, steps: Sequence[Step]) -> Examples:
        """Weigh the steps of a source alike, whatever they use, and sources of some size alike."""
        import numpy as np

        tables = [np.frombuffer(step.rows, "<f4").reshape(-1, COLUMNS) for step in steps]
        counts = [len(table) for table in tables]
        table = np.concatenate(tables)
        source = np.repeat([step.source for step in steps], counts)
        weight = np.repeat([1.0 / table[:, -1].sum() for table in tables], counts).astype("f8")
        for name, count in sorted(Counter(step.source for step in steps).items()):
            here = source == name
            weight[here] *= min(1.0, count / FULL_STEPS) / weight[here].sum()
        return cls(
            kind=table[:, 0].astype("i8"),
            features=table[:, 1:-1],
            used=table[:, -1] > 0,
            weight=weight,
            half=np.repeat([half_of(step.source, step.session) for step in steps], counts),
            source=source,
        )


# Weights ##########################################################################################


def fit_kinds(examples: Examples, among: Any = True) -> dict[int, list[float]]:
    """Return the weights of each kind of term, fitted to the examples that `among` selects."""
    weights = {}
    for kind in KINDS:
        here = (examples.kind == kind) & among
        if examples.used[here].sum() < MIN_USED:
            raise SystemExit(f"error: fewer than {MIN_USED} used terms of kind `{KINDS[kind]}`")
        weights[kind] = fit(examples.features[here], examples.used[here], examples.weight[here])
    return weights


def fit(features: Any, used: Any, weight: Any) -> list[float]:
    """Return the weights of a logistic regression, for features as they come."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    columns = features[:, 1:].astype(np.float64)  # without the 1, which becomes the intercept
    mean, deviation = columns.mean(axis=0), columns.std(axis=0)
    deviation[deviation == 0] = 1  # the same in all examples: its weight becomes 0
    # Newton's method converges to far more digits than are written, and one thread always adds in
    # the same order, so that the same data give the same file.
    model = LogisticRegression(C=REGULARISATION, solver="newton-cholesky", tol=1e-9, max_iter=200)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit((columns - mean) / deviation, used, sample_weight=weight / weight.mean())
    slopes = model.coef_[0] / deviation
    return [float(model.intercept_[0] - (slopes * mean).sum()), *map(float, slopes)]


def quality_table(
    examples: Examples, halves: Sequence[dict[int, list[float]]]
) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: how well each half's weights order the terms of the other half.

    AUC is the chance that a term which was used is rated higher than one which was not.
    """
    import numpy as np
    from sklearn.metrics import roc_auc_score

    score = np.zeros(len(examples.kind))
    for kind in KINDS:
        for half, weights in enumerate(halves):
            other = (examples.kind == kind) & (examples.half != half)
            score[other] = examples.features[other] @ np.array(weights[kind])

    def auc(rating: Any, among: Any) -> str:
        weight = examples.weight[among]
        return f"{roc_auc_score(examples.used[among], rating[among], sample_weight=weight):.3f}"

    header = ["kind", "examples", "used", "AUC, first half", "second half", "by age alone"]
    rows = []
    for name, here in [
        *((name, examples.kind == kind) for kind, name in KINDS.items()),
        ("all", examples.kind > 0),
    ]:
        aucs = [auc(score, here & (examples.half == half)) for half in (0, 1)]
        by_age = auc(-examples.features[:, AGE], here)
        used = int(examples.used[here].sum())
        rows.append([name, f"{int(here.sum()):,}", f"{used:,}", *aucs, by_age])
    return header, rows


def source_table(steps: Sequence[Step], examples: Examples) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: what each source gives."""
    sources = sorted({step.source for step in steps})
    counts = Counter(step.source for step in steps)
    rows = []
    for source in sources:
        own = [step for step in steps if step.source == source]
        sessions = {step.session for step in own}
        halves = [sum(half_of(source, session) == half for session in sessions) for half in (0, 1)]
        here = examples.source == source
        licence = ", ".join(sorted({step.licence for step in own}))
        total, used = int(here.sum()), int(examples.used[here].sum())
        split = f"{halves[0]} + {halves[1]}"
        rows.append([source, licence, split, f"{counts[source]:,}", f"{total:,}", f"{used:,}"])
    sums = [sum(int(row[column].replace(",", "")) for row in rows) for column in (3, 4, 5)]
    sessions_of_all = len({(step.source, step.session) for step in steps})
    rows.append(["all", "", f"{sessions_of_all}", *(f"{total:,}" for total in sums)])
    return ["source", "licence", "sessions", "steps", "examples", "used"], rows


# Files ############################################################################################


def about(date: str, checksum: str) -> list[str]:
    return [
        "How likely the next step of an agent uses a term, by the kind of the term: the weights of",
        "a logistic regression, in the order of `features()` in chances.rs. Not edited by hand.",
        f"Fitted to recordings of {date} (SHA-256 {checksum}): make train EVAL_DATA=<folder>",
        "The recordings are public, under MIT and Apache-2.0, and are not part of this repository;",
        "the weights hold nothing of their text. See training/README.md.",
    ]


def weights_text(weights: dict[int, list[float]], comments: Sequence[str]) -> str:
    """Return the file: comments, a header, one row for each kind."""
    lines = [f"# {comment}" for comment in comments]
    lines.append("\t".join(["kind", *FEATURES]))
    for kind, name in KINDS.items():
        if len(weights[kind]) != len(FEATURES):
            raise ValueError(f"`{name}`: {len(weights[kind])} weights, {len(FEATURES)} features")
        lines.append("\t".join([name, *map(rounded, weights[kind])]))
    return "\n".join(lines) + "\n"


def rounded(weight: float) -> str:
    """Return a weight with four decimals, and no minus before a zero."""
    return f"{weight:z.4f}"


def inserted(page: str, report: str) -> str:
    """Return `page` with `report` between its two marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page has no `{BEGIN}` with `{END}` behind it")
    return f"{before}{BEGIN}\n\n{report}\n\n{END}{after}"


if __name__ == "__main__":
    sys.exit(main())
