"""Counting against Python tiktoken: cold over ten kinds of text, the slowest strings, warm."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import nanobot_context
from conversation import conversation
from corpora import CLASSES, corpus, package_dir, worst_cases
from measure import Report, alternate, cpu_ns, median

os.environ["TIKTOKEN_CACHE_DIR"] = str(package_dir("litellm") / "litellm_core_utils" / "tokenizers")

import tiktoken

MODELS = {"o200k_base": "gpt-4o", "cl100k_base": "gpt-4"}
GEOMETRIC_MEAN_TARGET = {"o200k_base": 2.3, "cl100k_base": 3.5}
WORST_CLASS_TARGET = 0.9
WORST_CASE_TARGET_US = 0.5
WORST_CASES_IN_TARGET = ("one letter", "spaces", "'='", "zh, no punctuation")
FRAMING = 4  # of one message, without the reply's 3: <|start|>, role, <|message|>, <|end|>


def as_messages(texts: list[str]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text} for text in texts]


def count_ours(messages: list[dict[str, Any]], model: str) -> int:
    return nanobot_context.count_tokens(messages, model)


def count_theirs(texts: list[str], encoding: tiktoken.Encoding) -> int:
    return sum(len(encoding.encode_ordinary(text)) for text in texts)


def _both(
    ours: Callable[[], int], theirs: Callable[[], int], *, ours_first: int
) -> tuple[int, int, int, int]:
    """Return the CPU times of both, then their results."""
    results: dict[Callable[[], int], int] = {}
    times: dict[Callable[[], int], int] = {}
    for run in (ours, theirs) if ours_first else (theirs, ours):
        start = time.thread_time_ns()
        results[run] = run()
        times[run] = time.thread_time_ns() - start
    return times[ours], times[theirs], results[ours], results[theirs]


def cold(report: Report, *, repetitions: int, total_bytes: int) -> None:
    """Each text is counted once and is new to both; the vocabularies are loaded before."""
    encodings = {name: tiktoken.get_encoding(name) for name in MODELS}
    speeds: dict[str, dict[str, list[tuple[float, float]]]] = {name: {} for name in MODELS}
    for kind in CLASSES:
        parts = corpus(kind, repetitions=repetitions + 1, total_bytes=total_bytes)
        for name, model in MODELS.items():
            encoding = encodings[name]
            speeds[name][kind] = []
            for turn, part in enumerate(parts):
                megabytes = sum(map(len, part)) / 1e6
                ours_texts = as_messages([text.decode() for text in part])
                their_texts = [text.decode() for text in part]
                ours = partial(count_ours, ours_texts, model)
                theirs = partial(count_theirs, their_texts, encoding)
                ours_ns, theirs_ns, counted, expected = _both(ours, theirs, ours_first=turn % 2)
                expected += FRAMING * len(part) + 3
                if counted != expected:
                    raise AssertionError(f"{name} {kind}: {counted} tokens, not {expected}")
                if turn:  # the first one warms
                    speeds[name][kind].append(
                        (megabytes / ours_ns * 1e9, megabytes / theirs_ns * 1e9)
                    )
    for name in MODELS:
        report.title(f"Counting, cold, {name}: MB/s, median of {repetitions} (4 KB messages, new)")
        rows = []
        ratios: dict[str, float] = {}
        for kind, samples in speeds[name].items():
            each = [ours_speed / their_speed for ours_speed, their_speed in samples]
            ratios[kind] = median(each)
            rows.append(
                [
                    kind,
                    f"{median(sample[0] for sample in samples):.1f}",
                    f"{median(sample[1] for sample in samples):.1f}",
                    f"{ratios[kind]:.2f}",
                    f"{min(each):.2f}-{max(each):.2f}",
                ]
            )
        mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
        rows.append(["geometric mean", "", "", f"{mean:.2f}", ""])
        report.table(["class", "ours", "tiktoken", "ratio", "spread"], rows)
        wanted = GEOMETRIC_MEAN_TARGET[name]
        report.target(f"{name} cold at least {wanted} x tiktoken ({mean:.2f} x)", mean >= wanted)
        worst = min(ratios, key=lambda kind: ratios[kind])
        report.target(
            f"{name} every class at least {WORST_CLASS_TARGET} x ({worst}: {ratios[worst]:.2f} x)",
            ratios[worst] >= WORST_CLASS_TARGET,
        )


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
