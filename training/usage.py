"""Fits the trees of `src/select/usage_trees.txt` to recorded conversations: `make train`.

README.md beside this file tells what is learned, from what, and how well.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
TREES = ROOT / "src" / "select" / "usage_trees.txt"
README = Path(__file__).resolve().parent / "README.md"

# `TermKind` in src/text/terms.rs: its number, and its name in the table.
KINDS = {2: "long_word", 3: "ident", 4: "joined", 5: "path", 6: "number", 7: "pair"}
# In the order of `NAMES` in src/select/usage_model.rs.
FEATURES = (
    *("kind", "mentions", "uses", "reuses", "age", "use_age", "company", "relevance", "asked"),
    *("part_terms", "source_age", "source_names", "source_parts", "source_kind", "source_effect"),
    *("source_relevance", "quoted_terms", "quoted_age", "quoted_gap", "newest_effect"),
    "is_in_turn",
)
AGE = FEATURES.index("age")
COLUMNS = len(FEATURES) + 1  # and used

STEPS = 12  # of a recording, at most
MIN_PREFIX_TOKENS = 1500
MIN_PREFIX_MESSAGES = 4
FULL_STEPS = 40  # of a source; with fewer it weighs less, in proportion
FOLDS = 5
LEAF_SCALE = 1000  # `LEAF_SCALE` in src/select/usage_model.rs
ROUNDS = 60
PARAMETERS: Mapping[str, Any] = {
    "objective": "binary",
    "num_leaves": 15,
    "learning_rate": 0.15,
    "min_data_in_leaf": 1000,
    "min_sum_hessian_in_leaf": 10,
    "lambda_l2": 200,
    "feature_fraction": 0.7,
    "min_data_in_bin": 20,
    # The same data, core and packages give the same trees.
    "seed": 1,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "boost_from_average": True,
    "verbosity": -1,
}
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
    quality = quality_table(examples)
    print(aligned(*quality))
    trees = fit(examples)
    checksum = tools.checksum(files)
    options.output.write_text(trees_text(trees, about(options.date, checksum)), "utf-8")
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
    parser = argparse.ArgumentParser(prog="python -m training.usage", description=__doc__)
    parser.add_argument("data", type=Path, help="folder of recordings, `*.jsonl.gz`")
    parser.add_argument("--date", default=DATE, help="day of the recordings (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=TREES, help="file of the trees")
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
    rows: NDArray[np.uint16]  # `COLUMNS` an example


def steps_of(file: Path) -> list[Step]:
    """Return the steps of one file of recordings that use something. Conversations without tools
    are left out: there, it is the relevance to the question that decides, and not these trees.
    """
    import numpy as np

    source = tools.source_of(file)
    steps = []
    for item in tools.items(file):
        messages = item["messages"]
        if not any(message["role"] == "tool" for message in messages):
            continue
        for index in chosen(messages):
            found = _examples(messages[:index], [named(messages[index])])
            rows = np.frombuffer(found, "<u2").reshape(-1, COLUMNS)
            step = Step(source, session_of(item["id"]), licence_of(item["license"]), rows)
            if rows[:, -1].any():
                steps.append(step)
    return steps


def _examples(messages: list[dict[str, Any]], used: list[str]) -> bytes:
    """Ask the core, which knows this in builds with the feature `evaluation`: `make build`."""
    examples: bytes = vars(_core)["_usage_examples"](messages, used)
    return examples


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


def session_of(item: str) -> str:
    """Return what the parts of one session share: the id before `#`."""
    return item.split("#")[0]


def licence_of(text: str) -> str:
    """Return the licence's name without where it was found: `MIT (README)`."""
    return text.split(" (")[0]


def folds_of(steps: Mapping[str, int]) -> dict[str, int]:
    """Return the fold of each source, given its steps: the largest first, each to the emptiest."""
    folds, sizes = {}, [0] * FOLDS
    for source in sorted(steps, key=lambda source: (-steps[source], source)):
        fold = sizes.index(min(sizes))
        folds[source] = fold
        sizes[fold] += steps[source]
    return folds


@dataclass(frozen=True)
class Examples:
    """All examples, in the order of the files."""

    features: NDArray[np.uint16]
    used: NDArray[np.bool_]
    weight: NDArray[np.float64]
    source: NDArray[np.str_]

    @classmethod
    def of(cls, steps: Sequence[Step]) -> Examples:
        """Weigh the steps of a source alike, whatever they use, and sources of some size alike."""
        import numpy as np

        tables = [step.rows for step in steps]
        counts = [len(table) for table in tables]
        table = np.concatenate(tables)
        source = np.repeat([step.source for step in steps], counts)
        weight = np.repeat([1.0 / table[:, -1].sum() for table in tables], counts)
        for name, count in sorted(Counter(step.source for step in steps).items()):
            here = source == name
            weight[here] *= min(1.0, count / FULL_STEPS) / weight[here].sum()
        return cls(table[:, :-1], table[:, -1] > 0, weight / weight.mean(), source)


# Trees ############################################################################################


def fit(examples: Examples, among: Any = slice(None)) -> Any:
    """Return LightGBM's model, fitted to the examples that `among` selects."""
    import lightgbm

    found = lightgbm.Dataset(
        examples.features[among],
        examples.used[among],
        weight=examples.weight[among],
        feature_name=list(FEATURES),
        params=dict(PARAMETERS),
    )
    return lightgbm.train(dict(PARAMETERS), found, ROUNDS)


def quality_table(examples: Examples) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: how well the trees order the terms of sources they have not seen.

    AUC is the chance that a term which was used is rated higher than one which was not.
    """
    import numpy as np
    from sklearn.metrics import roc_auc_score

    sources, counts = np.unique(examples.source, return_counts=True)
    folds = folds_of(dict(zip(map(str, sources), map(int, counts), strict=True)))
    fold = np.array([folds[str(source)] for source in sources])[
        np.searchsorted(sources, examples.source)
    ]
    score = np.zeros(len(examples.used))
    for number in range(FOLDS):
        out = fold == number
        if out.any():
            score[out] = fit(examples, ~out).predict(examples.features[out], raw_score=True)
    by_age = -examples.features[:, AGE].astype("i4")

    def auc(rating: Any, among: Any) -> str:
        weight = examples.weight[among]
        return f"{roc_auc_score(examples.used[among], rating[among], sample_weight=weight):.3f}"

    kind = examples.features[:, 0]
    header = ["terms", "examples", "used", "AUC", "by age alone"]
    rows = []
    for name, here in [
        *((name, kind == number) for number, name in KINDS.items()),
        *((str(source), examples.source == source) for source in sources),
        ("all", kind > 0),
    ]:
        total, used = int(here.sum()), int(examples.used[here].sum())
        rows.append([name, f"{total:,}", f"{used:,}", auc(score, here), auc(by_age, here)])
    return header, rows


def source_table(steps: Sequence[Step], examples: Examples) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: what each source gives."""
    sources = sorted({step.source for step in steps})
    counts = Counter(step.source for step in steps)
    rows = []
    for source in sources:
        own = [step for step in steps if step.source == source]
        sessions = {step.session for step in own}
        here = examples.source == source
        licence = ", ".join(sorted({step.licence for step in own}))
        total, used = int(here.sum()), int(examples.used[here].sum())
        rows.append(
            [source, licence, f"{len(sessions)}", f"{counts[source]:,}", f"{total:,}", f"{used:,}"]
        )
    sums = [sum(int(row[column].replace(",", "")) for row in rows) for column in (3, 4, 5)]
    sessions_of_all = len({(step.source, step.session) for step in steps})
    rows.append(["all", "", f"{sessions_of_all}", *(f"{total:,}" for total in sums)])
    return ["source", "licence", "sessions", "steps", "examples", "used"], rows


# Files ############################################################################################


def about(date: str, checksum: str) -> list[str]:
    return [
        "How likely the next step of an agent uses a term: boosted trees over the features in",
        "usage_model.rs. One node a line; below a split, first what it holds for, then the rest.",
        "The leaves that a term reaches add up to its log odds in thousandths. Not edited by hand.",
        f"Fitted to recordings of {date} (SHA-256 {checksum}): make train EVAL_DATA=<folder>",
        "The recordings are public, under MIT and Apache-2.0, and are not part of this repository;",
        "the trees hold nothing of their text. See training/README.md.",
    ]


def trees_text(model: Any, comments: Sequence[str]) -> str:
    """Return the file: comments, then every tree in preorder, a node a line."""
    lines = [f"# {comment}" for comment in comments]
    for tree in model.dump_model()["tree_info"]:
        lines.extend(nodes(tree["tree_structure"]))
    return "\n".join(lines) + "\n"


def nodes(node: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """Yield the lines of a node of LightGBM's and of those below it. Features are whole numbers, so
    that at most 3.5 is below 4.
    """
    if "leaf_value" in node:
        yield "\t" * depth + str(round(node["leaf_value"] * LEAF_SCALE))
        return
    if node["decision_type"] != "<=":
        raise ValueError(f"a split by `{node['decision_type']}`, not by `<=`")
    feature, threshold = FEATURES[node["split_feature"]], math.floor(node["threshold"]) + 1
    yield "\t" * depth + f"{feature} < {threshold}"
    yield from nodes(node["left_child"], depth + 1)
    yield from nodes(node["right_child"], depth + 1)


def inserted(page: str, report: str) -> str:
    """Return `page` with `report` between its two marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page has no `{BEGIN}` with `{END}` behind it")
    return f"{before}{BEGIN}\n\n{report}\n\n{END}{after}"


if __name__ == "__main__":
    sys.exit(main())
