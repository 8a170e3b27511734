"""Fitting to half of the tokens: cold against counting once, warm, and how it grows."""

from __future__ import annotations

import gc
import json
import math
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import nanobot_context
from conversation import conversation
from measure import Report, cpu_ns, median

Message = dict[str, Any]

MODEL = "gpt-4o"
SIZES = (10_000, 100_000, 200_000, 1_000_000)
COMPARED = 200_000
COLD_TARGET = 2.0
WARM_TARGET_MS = 2.0
# Microseconds a token at the largest size against the second: linear growth is 1.
LINEAR_TARGET = 1.3

SAME = "fit, the same list"
NEXT = "Compressor, one new message at the end"
ANEW = "fit, one new message at the end"
COUNTED = "counting the same list"

# In a process of its own: nothing of this text has been counted and no string was seen before. What
# is loaded once a process (the vocabulary, tables) is loaded by another text first.
COLD = """
import gc, json, sys, time
import nanobot_context
operation, file, other, budget, model = sys.argv[1:]
def run(messages, budget):
    if operation == "count":
        return nanobot_context.count_tokens(messages, model)
    return nanobot_context.fit_messages(messages, budget, model).tokens
run(json.load(open(other, encoding="utf-8")), 4_000)
messages = json.load(open(file, encoding="utf-8"))
gc.collect()
gc.disable()
start = time.thread_time_ns()
tokens = run(messages, int(budget))
print(json.dumps([time.thread_time_ns() - start, tokens]))
"""


def fit(report: Report, *, repetitions: int, sizes: tuple[int, ...] = SIZES) -> None:
    # A process is a sample here, and one differs from the next by a quarter.
    cold(report, repetitions=3 * repetitions, sizes=sizes)
    warm(report, samples=5 * repetitions)


def cold(report: Report, *, repetitions: int, sizes: tuple[int, ...]) -> None:
    """Each call in a process of its own; the two sides take turns."""
    rows = []
    ratios: dict[int, float] = {}
    per_token: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder, "other.json")
        other.write_text(json.dumps(of_size(8_000, variant=11)), encoding="utf-8")
        for size in sizes:
            messages = of_size(size)
            tokens = nanobot_context.count_tokens(messages, MODEL)
            file = Path(folder, f"{size}.json")
            file.write_text(json.dumps(messages), encoding="utf-8")
            times: dict[str, list[int]] = {"count": [], "fit": []}
            for turn in range(repetitions):
                for operation in ("count", "fit") if turn % 2 else ("fit", "count"):
                    command = [sys.executable, "-c", COLD, operation]
                    command += [str(file), str(other), str(tokens // 2), MODEL]
                    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
                    nanoseconds, result = json.loads(done.stdout)
                    if operation == "fit" and result > tokens // 2:
                        raise AssertionError(f"{result} tokens are more than {tokens // 2}")
                    times[operation].append(nanoseconds)
            fitting, counting = median(times["fit"]), median(times["count"])
            # Of each turn: the machine's clock changes from one to the next more than within one.
            turns = zip(times["fit"], times["count"], strict=True)
            ratios[size] = median(fit / count for fit, count in turns)
            per_token[size] = fitting / tokens
            rows.append(
                [
                    f"{tokens:,} tokens, {len(messages)} messages",
                    f"{fitting / 1e6:.2f}",
                    f"{counting / 1e6:.2f}",
                    f"{ratios[size]:.2f}",
                    f"{per_token[size] / 1e3:.3f}",
                ]
            )
    report.title(
        f"Fitting to half, cold: ms, median of {repetitions} new processes each, ratio of the turns"
    )
    report.table(["", "fit", "counting once", "ratio", "fit, µs a token"], rows)
    if COMPARED in ratios:
        report.target(
            f"one cold fit of {COMPARED:,} tokens at most {COLD_TARGET:.0f} x counting it once "
            f"({ratios[COMPARED]:.2f} x)",
            ratios[COMPARED] <= COLD_TARGET,
        )
    if len(sizes) > 2:
        growth = per_token[sizes[-1]] / per_token[sizes[1]]
        exponent = 1 + math.log(growth) / math.log(sizes[-1] / sizes[1])
        report.target(
            f"a token of {sizes[-1]:,} costs at most {LINEAR_TARGET} x one of {sizes[1]:,} "
            f"({growth:.2f} x, time ~ tokens^{exponent:.2f})",
            growth <= LINEAR_TARGET,
        )


def warm(report: Report, *, samples: int) -> None:
    """The same list again, and with one message more each time, as an agent loop has it.

    A loop has a `Compressor`, which fits anew in rare steps only; `fit_messages` chooses anew for
    every list.
    """
    messages = of_size(COMPARED, variant=6)
    budget = nanobot_context.count_tokens(messages, MODEL) // 2
    compressor = nanobot_context.Compressor(int(budget / 0.85), MODEL)
    tail = [m["content"][:2_000] for m in of_size(COMPARED, variant=8) if m["role"] == "assistant"]
    texts = [text for text in tail if len(text) > 200]
    times: dict[str, list[int]] = {name: [] for name in (SAME, NEXT, ANEW, COUNTED)}
    gc.collect()
    gc.disable()
    _fit(messages, budget)
    compressor.compress(messages)
    for turn in range(samples):
        times[SAME].append(cpu_ns(partial(_fit, messages, budget)))
        times[COUNTED].append(cpu_ns(partial(nanobot_context.count_tokens, messages, MODEL)))
        role = "assistant" if messages[-1]["role"] == "user" else "user"
        messages = [*messages, {"role": role, "content": f"{turn}. {texts[turn % len(texts)]}"}]
        times[NEXT].append(cpu_ns(partial(compressor.compress, messages)))
        times[ANEW].append(cpu_ns(partial(_fit, messages, budget)))
    gc.enable()
    report.title(f"Fitting to half, warm: {2 * budget:,} tokens, ms, median of {samples}")
    report.table(
        ["", "median", "largest"],
        [
            [name, f"{median(taken) / 1e6:.3f}", f"{max(taken) / 1e6:.3f}"]
            for name, taken in times.items()
        ],
    )
    for name in (SAME, NEXT):
        milliseconds = median(times[name]) / 1e6
        report.target(
            f"warm: {name}, below {WARM_TARGET_MS:.0f} ms ({milliseconds:.2f} ms)",
            milliseconds < WARM_TARGET_MS,
        )


def of_size(tokens: int, *, variant: int = 0) -> list[Message]:
    """Return a conversation of about `tokens`: the beginning of one, or several in a row.

    All texts are different, and messages are as long in a short one as in a long one.
    """
    messages: list[Message] = []
    total = 0
    while total < tokens:
        part = conversation(variant=variant)
        for message in part if not messages else part[1:]:
            given = _renamed(message, f"v{variant}_")
            # Whole rounds: a call is only cut off together with its results.
            if total >= tokens and given["role"] != "tool":
                break
            messages.append(given)
            total += nanobot_context.count_tokens([given], MODEL)
        variant += 1
    return messages


def _renamed(message: Message, prefix: str) -> Message:
    """Return the message with call ids of its own."""
    if "tool_call_id" in message:
        return message | {"tool_call_id": prefix + message["tool_call_id"]}
    if "tool_calls" in message:
        calls = [call | {"id": prefix + call["id"]} for call in message["tool_calls"]]
        return message | {"tool_calls": calls}
    return message


def _fit(messages: list[Message], budget: int) -> None:
    nanobot_context.fit_messages(messages, budget, MODEL)
