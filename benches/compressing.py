"""Compressing a growing conversation, call after call, against plan V3.1 in plain Python."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import nanobot_context
import v31
from conversation import VARIANTS, conversation, model_calls
from measure import Report, cpu_ns, median, percentile_99

Message = dict[str, Any]
Compress = Callable[[list[Message], int], list[Message]]

MODEL = "gpt-4o"
WINDOWS = {"nothing to cut": 400_000, "must cut": 128_000}
NO_CHANGE_TARGET = 2.0


def ours(messages: list[Message], window: int) -> list[Message]:
    return nanobot_context.compress_messages(messages, window, MODEL)


def plan(messages: list[Message], window: int) -> list[Message]:
    return v31.compress_messages(messages, window, MODEL)


def plan_counted(messages: list[Message], window: int) -> list[Message]:
    """V3.1, and then what it takes to know whether the result fits."""
    result = v31.compress_messages(messages, window, MODEL)
    v31.count_tokens(result, MODEL)
    return result


def growing(report: Report, *, passes: int) -> None:
    """Every model call of a loop over 400 messages.

    New text in every pass, and text of its own for the second of our candidates: what one of them
    has counted, a cache by content would know when the other comes. V3.1 keeps nothing.
    """
    candidates: dict[str, Callable[[], Compress]] = {
        "ours": lambda: ours,
        "V3.1": lambda: plan,
        "V3.1 and its count": lambda: plan_counted,
    }
    if hasattr(nanobot_context, "Compressor"):
        candidates["ours, Compressor"] = _compressor
    nanobot_context.count_tokens([{"role": "user", "content": "load the vocabulary"}], MODEL)
    v31.count_tokens([{"role": "user", "content": "load the vocabulary"}], MODEL)
    variants = iter(range(VARIANTS))
    for label, window in WINDOWS.items():
        calls: dict[str, list[int]] = {name: [] for name in candidates}
        totals: dict[str, list[int]] = {name: [] for name in candidates}
        over: dict[str, int] = {}
        left: dict[str, int] = {}
        tokens = 0
        for turn in range(passes):
            source = json.dumps(conversation(variant=next(variants)))
            other = json.dumps(conversation(variant=next(variants)))
            results: dict[str, list[list[Message]]] = {name: [] for name in candidates}
            for name in _rotated(list(candidates), turn):
                messages: list[Message] = json.loads(other if "Compressor" in name else source)
                compress = candidates[name]()
                times: list[int] = []
                for given in model_calls(messages):
                    start = time.thread_time_ns()
                    result = compress(given, window)
                    times.append(time.thread_time_ns() - start)
                    results[name].append(result)
                calls[name] += times
                totals[name].append(sum(times))
            for name in candidates:
                counts = [nanobot_context.count_tokens(result, MODEL) for result in results[name]]
                over[name] = sum(count > window for count in counts)
                left[name] = counts[-1]
            tokens = nanobot_context.count_tokens(json.loads(source), MODEL)
        report.title(
            f"Compressing, {label}: window {window:,}, {tokens:,} tokens at the end, "
            f"{len(calls['ours']) // passes} calls, {passes} passes"
        )
        base = median(totals["ours"])
        rows = [
            [
                name,
                f"{median(calls[name]) / 1e6:.3f}",
                f"{percentile_99(calls[name]) / 1e6:.3f}",
                f"{median(totals[name]) / 1e6:,.1f}",
                f"{median(totals[name]) / base:,.1f}",
                f"{over[name]}",
                f"{left[name]:,}",
            ]
            for name in candidates
        ]
        header = ["", "median ms", "p99 ms", "all ms", "x ours", "calls too long", "tokens left"]
        report.table(header, rows)


def _compressor() -> Compress:
    made: dict[int, Any] = {}

    def compress(messages: list[Message], window: int) -> list[Message]:
        if window not in made:
            made[window] = nanobot_context.Compressor(window, MODEL)
        result: list[Message] = made[window].compress(messages)
        return result

    return compress


def _rotated(names: list[str], turn: int) -> Iterator[str]:
    yield from names[turn % len(names) :]
    yield from names[: turn % len(names)]


def unchanged(report: Report, *, samples: int) -> None:
    """A warm call that changes nothing, against a bare loop over the contents."""
    rows = []
    worst = 0.0
    for scale, window in ((0.25, 400_000), (1.0, 400_000), (4.0, 2_000_000)):
        messages = conversation(scale=scale)
        tokens = nanobot_context.count_tokens(messages, MODEL)
        same = nanobot_context.compress_messages(messages, window, MODEL)
        if same != messages:
            raise AssertionError(f"{tokens} tokens were changed in a window of {window}")
        for label, lists in (
            ("same objects", None),
            ("decoded from JSON", json.dumps(messages)),
        ):
            loops: list[float] = []
            ours_times: list[float] = []
            for turn in range(samples):
                inner = 20 if lists is None else 1
                given = messages if lists is None else json.loads(lists)
                again = messages if lists is None else json.loads(lists)
                pair = [
                    (loops, partial(_bare_loop, given, inner)),
                    (ours_times, partial(_no_change, again, window, inner)),
                ]
                gc.disable()
                for times, run in pair if turn % 2 else reversed(pair):
                    times.append(cpu_ns(run) / inner)
                gc.enable()
            ratio = median(ours_times) / median(loops)
            if lists is None:
                worst = max(worst, ratio)
            rows.append(
                [
                    f"{tokens:,} tokens, {label}",
                    f"{median(ours_times) / 1e3:.1f}",
                    f"{median(loops) / 1e3:.1f}",
                    f"{ratio:.2f}",
                ]
            )
    report.title(f"Compressing, nothing to change: 400 messages, µs a call, median of {samples}")
    report.table(["", "ours", "bare loop", "ratio"], rows)
    report.target(
        f"a warm call without changes at most {NO_CHANGE_TARGET:.0f} x a bare loop ({worst:.2f} x)",
        worst <= NO_CHANGE_TARGET,
    )


def _bare_loop(messages: list[Message], times: int) -> None:
    for _ in range(times):
        n = 0
        for message in messages:
            n += len(message["content"])


def _no_change(messages: list[Message], window: int, times: int) -> None:
    for _ in range(times):
        nanobot_context.compress_messages(messages, window, MODEL)
