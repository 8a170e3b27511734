"""Counting against others: cold over ten kinds of text, the slowest strings, warm."""

from __future__ import annotations

import json
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import nanobot_context
from conversation import conversation
from corpora import CLASSES, corpus, package_dir, worst_cases
from measure import Report, alternate, cpu_ns, median

os.environ["TIKTOKEN_CACHE_DIR"] = str(package_dir("litellm") / "litellm_core_utils" / "tokenizers")

import fastokens
import tiktoken

ROOT = Path(__file__).resolve().parent.parent
MODELS = {"o200k_base": "gpt-4o", "cl100k_base": "gpt-4"}
# The names of tiktoken's cache: SHA-1 of where it loads them from.
FILES = {
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
}
GEOMETRIC_MEAN_TARGET = {"o200k_base": 8, "cl100k_base": 10}
WORST_CLASS_TARGET = 5
WORST_CASE_TARGET_US = 0.5
WORST_CASES_IN_TARGET = ("one letter", "spaces", "'='", "zh, no punctuation")
FRAMING = 4  # of one message, without the reply's 3: <|start|>, role, <|message|>, <|end|>


def as_messages(texts: list[str]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text} for text in texts]


def count_ours(messages: list[dict[str, Any]], model: str) -> int:
    return nanobot_context.count_tokens(messages, model)


def count_texts(texts: list[str], model: str) -> int:
    return count_ours(as_messages(texts), model) - FRAMING * len(texts) - 3


def count_fast(texts: list[str], tokenizer: fastokens.Tokenizer) -> int:
    return sum(len(tokenizer.encode_ordinary(text).ids) for text in texts)


def count_theirs(texts: list[str], encoding: tiktoken.Encoding) -> int:
    return sum(len(encoding.encode_ordinary(text)) for text in texts)


def cold(report: Report, *, repetitions: int, total_bytes: int) -> None:
    """Each text is counted once and is new to all; the vocabularies are loaded before."""
    for name, model in MODELS.items():
        encoding = tiktoken.get_encoding(name)
        file = Path(os.environ["TIKTOKEN_CACHE_DIR"], FILES[name])
        fast = fastokens.Tokenizer.from_tiktoken(str(file), encoding=name)
        counts: dict[str, Callable[[list[str]], int]] = {
            "ours": partial(count_texts, model=model),
            "tiktoken": partial(count_theirs, encoding=encoding),
            "fastokens": partial(count_fast, tokenizer=fast),
        }
        _cold(report, name, counts, repetitions, total_bytes)


def _cold(
    report: Report,
    vocabulary: str,
    counts: dict[str, Callable[[list[str]], int]],
    repetitions: int,
    total_bytes: int,
) -> None:
    others = [name for name in counts if name != "ours"]
    rows = []
    ratios: dict[str, list[float]] = {name: [] for name in others}
    for kind in CLASSES:
        speeds: list[dict[str, float]] = []
        for turn, part in enumerate(
            corpus(kind, repetitions=repetitions + 1, total_bytes=total_bytes)
        ):
            megabytes = sum(map(len, part)) / 1e6
            names = list(counts)
            speeds.append({})
            counted: dict[str, int] = {}
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                texts = [text.decode() for text in part]
                start = time.thread_time_ns()
                counted[name] = counts[name](texts)
                speeds[-1][name] = megabytes / (time.thread_time_ns() - start) * 1e9
            if len(set(counted.values())) > 1:
                raise AssertionError(f"{vocabulary} {kind}: {counted}")
        del speeds[0]  # it warms
        row = [kind, *(f"{median(turn[name] for turn in speeds):.1f}" for name in counts)]
        for name in others:
            each = [turn["ours"] / turn[name] for turn in speeds]
            ratios[name].append(median(each))
            row += [f"{ratios[name][-1]:.2f}", f"{min(each):.2f}-{max(each):.2f}"]
        rows.append(row)
    means = {name: math.exp(sum(map(math.log, ratios[name])) / len(CLASSES)) for name in others}
    rows.append(
        ["geometric mean", *("" for _ in counts)]
        + [cell for name in others for cell in (f"{means[name]:.2f}", "")]
    )
    report.title(
        f"Counting, cold, {vocabulary}: MB/s, median of {repetitions} (4 KB messages, new)"
    )
    header = ["class", *counts]
    for name in others:
        header += [f"to {name}", "spread"]
    report.table(header, rows)
    wanted, mean = GEOMETRIC_MEAN_TARGET[vocabulary], means["tiktoken"]
    report.target(f"{vocabulary} cold at least {wanted} x tiktoken ({mean:.2f} x)", mean >= wanted)
    least = min(ratios["tiktoken"])
    report.target(
        f"{vocabulary} every class at least {WORST_CLASS_TARGET} x tiktoken ({least:.2f} x)",
        least >= WORST_CLASS_TARGET,
    )


def crates(report: Report, *, repetitions: int, total_bytes: int) -> None:
    """The core alone, beside the two crates that it counted with before."""
    with tempfile.TemporaryDirectory() as folder:
        for kind in CLASSES:
            parts = corpus(kind, repetitions=repetitions + 1, total_bytes=total_bytes)
            texts = [[text.decode() for text in part] for part in parts]
            Path(folder, f"{kind}.json").write_text(json.dumps(texts), encoding="utf-8")
        command = ["cargo", "run", "--quiet", "--release", "--locked", "--example", "crates"]
        done = subprocess.run(
            [*command, folder], check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
    ratios: dict[str, dict[str, tuple[float, ...]]] = {}
    for line in done.stdout.splitlines():
        name, kind, *numbers = line.split("\t")
        ratios.setdefault(name, {})[kind] = tuple(map(float, numbers))
    report.title(f"Counting, cold, to the crates before: ratio, median of {repetitions}")
    rows = []
    slowest = 9.0
    for name, classes in ratios.items():
        mean = math.exp(sum(math.log(ratio) for ratio, *_ in classes.values()) / len(classes))
        kind = min(classes, key=lambda kind: classes[kind][0])
        ratio, least, most, speed = classes[kind]
        slowest = min(slowest, ratio)
        rows.append(
            [name, f"{mean:.2f}", kind, f"{ratio:.2f}", f"{least:.2f}-{most:.2f}", f"{speed:.0f}"]
        )
    report.table(
        ["vocabulary", "geometric mean", "least", "ratio", "spread", "MB/s"],
        rows,
    )
    report.target(f"no class slower than before ({slowest:.2f} x)", slowest >= 1)


def worst(report: Report, *, repetitions: int) -> None:
    """Strings of 1 MB, in microseconds a byte."""
    for name, model in MODELS.items():
        encoding = tiktoken.get_encoding(name)
        samples: dict[str, list[tuple[float, float | None]]] = {}
        for turn in range(repetitions):
            for kind, text in worst_cases(turn).items():
                size = len(text.encode())
                messages = as_messages([text[:1] + text[1:]])
                ours = cpu_ns(partial(count_ours, messages, model))
                # tiktoken 0.14 panics on 1 MB of spaces, with an exception that is no `Exception`.
                theirs = None
                if kind != "spaces":
                    theirs = cpu_ns(partial(count_theirs, [text], encoding))
                samples.setdefault(kind, []).append(
                    (ours / size / 1e3, theirs / size / 1e3 if theirs is not None else None)
                )
        report.title(f"Counting, 1 MB strings, {name}: µs a byte, median of {repetitions}")
        rows = []
        slowest = 0.0
        for kind, values in samples.items():
            mine = median(value[0] for value in values)
            other = [value[1] for value in values if value[1] is not None]
            shown = f"{median(other):.3f}" if other else "panics"
            ratio = f"{median(other) / mine:.1f}" if other else ""
            rows.append([kind, f"{mine:.3f}", shown, ratio])
            if kind in WORST_CASES_IN_TARGET:
                slowest = max(slowest, mine)
        report.table(["string", "ours", "tiktoken", "ratio"], rows)
        report.target(
            f"{name} 1 MB strings below {WORST_CASE_TARGET_US} µs a byte ({slowest:.3f})",
            slowest < WORST_CASE_TARGET_US,
        )


def warm(report: Report, *, repetitions: int) -> None:
    """The same 400 messages again: as the same objects, and decoded from JSON."""
    messages = conversation()
    encoding = tiktoken.get_encoding("o200k_base")
    source = json.dumps(messages)
    tokens = nanobot_context.count_tokens(messages, "gpt-4o")
    same, theirs = alternate(
        [
            lambda: nanobot_context.count_tokens(messages, "gpt-4o"),
            lambda: [encoding.encode_ordinary(message["content"]) for message in messages],
        ],
        repetitions,
    )
    fresh = []
    for _ in range(repetitions):
        decoded = json.loads(source)
        fresh.append(cpu_ns(partial(count_ours, decoded, "gpt-4o")))
    report.title(
        f"Counting, warm: {len(messages)} messages, {tokens:,} tokens, median of {repetitions}"
    )
    base = median(theirs)
    report.table(
        ["", "µs", "ratio"],
        [
            ["ours, same objects", f"{median(same) / 1e3:.0f}", f"{base / median(same):,.0f}"],
            [
                "ours, decoded from JSON",
                f"{median(fresh) / 1e3:.0f}",
                f"{base / median(fresh):,.0f}",
            ],
            ["tiktoken", f"{base / 1e3:.0f}", "1"],
        ],
    )
