"""Recorded trajectories request by request: steadiness, cost, and what each request still holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from itertools import islice
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any

from evaluation import adapters
from evaluation.page import Page, share
from evaluation.tools import items, load, recordings
from evaluation.work import Job

Message = dict[str, Any]
Compress = Callable[[list[Message]], list[Message]]

LONGEST = 10
MAX_STEPS = 150
MIN_PREFIX = 2_000  # as in `future_reference.py`
UNCOMPRESSED = "uncompressed"
SLIDING = "sliding window"
PROTECTED = "protected window"
OURS = "ours, one `Compressor` a conversation"
ANEW = "ours, `fit_messages` for each request"
CANDIDATES = (UNCOMPRESSED, SLIDING, PROTECTED, OURS, ANEW)


def longest(data: Path, number: int) -> list[dict[str, Any]]:
    """Return the recordings with calls that are longest as JSON, as `replay.py` chooses them."""
    found = [
        item
        for file in recordings(data)
        for item in items(file)
        if any(message.get("tool_calls") for message in item["messages"])
    ]
    return sorted(found, key=lambda item: -len(json.dumps(item["messages"])))[:number]


def measure(
    candidate: str, messages: list[Message], tools: Path, max_steps: int
) -> dict[str, float]:
    """Replay one trajectory and look for the strings that each answer then uses."""
    script = load(tools / "replay.py", "replay")
    counts: dict[int, tuple[Message, int]] = {}

    def count(message: Message) -> int:
        if id(message) not in counts:  # the message is kept too, so that its id stays its own
            counts[id(message)] = (message, adapters.count_one(message))
        return counts[id(message)][1]

    window = max(8_000, sum(map(count, messages)) // 2)
    compress = _make(candidate, window, count, tools)
    sent: list[tuple[int, list[Message]]] = []

    def recorded(given: list[Message]) -> list[Message]:
        result = compress(given)
        sent.append((len(given), result))
        return result

    result: dict[str, float] = script.replay(messages, recorded, count, window, max_steps)
    budget = int(window * 0.85)
    measures = load(tools / "future_reference.py", "future_reference")
    return {**result, "requests": len(sent), **find_recall(measures, messages, sent, count, budget)}


def _make(candidate: str, window: int, count: Callable[[Message], int], tools: Path) -> Compress:
    if candidate == UNCOMPRESSED:
        return lambda messages: messages
    if candidate == SLIDING:
        made: Compress = load(tools / "replay.py", "replay").sliding_window(window, count)
        return made
    if candidate == PROTECTED:
        return adapters.window_of_each_request(window)
    if candidate == OURS:
        return adapters.conversation(window)
    return adapters.each_request_anew(window)


def find_recall(
    measures: ModuleType,
    messages: list[Message],
    sent: list[tuple[int, list[Message]]],
    count: Callable[[Message], int],
    budget: int,
) -> dict[str, float]:
    """Return the mean recall over all requests, and over those that had to be cut.

    `step_targets` is that of `future_reference.py`, and so are the conditions on a step; all
    requests of the replay are taken, not a sample.
    """
    texts = [measures.message_text(message) for message in messages]
    before = [0]
    for message in messages:
        before.append(before[-1] + count(message))
    shown: dict[int, str] = {}  # by identity: `sent` keeps the messages
    everything: list[float] = []
    shortened: list[float] = []
    cut = 0
    for i, result in sent:
        for message in result:
            if id(message) not in shown:
                shown[id(message)] = measures.message_text(message)
        out = [shown[id(message)] for message in result]
        targets, tail = measures.step_targets(texts, messages, i)
        user = max((k for k in range(i) if messages[k]["role"] == "user"), default=-1)
        whole = [k for k in range(i) if messages[k]["role"] == "system" or k == user or k >= tail]
        if sum(count(messages[k]) for k in whole) <= budget:
            present = set(out)
            cut += any(texts[k] not in present for k in whole)
        if i < 4 or before[i] < MIN_PREFIX or not targets:
            continue
        text = "\x00".join(out)
        recall = sum(measures.occurs(string, text) for string, *_ in targets) / len(targets)
        everything.append(recall)
        if before[i] > budget:
            shortened.append(recall)
    return {
        "recall": fmean(everything) if everything else 1.0,
        "recall_shortened": fmean(shortened) if shortened else 1.0,
        "recall_steps": len(shortened),
        "cut": cut,
    }


def jobs(data: Path, tools: Path, *, quick: bool) -> list[Job]:
    steps = 40 if quick else MAX_STEPS
    chosen = longest(data, 2 if quick else LONGEST)
    return [
        Job(
            ("replay", candidate, number),
            measure,
            (candidate, item["messages"], tools, steps),
            3_000_000,
        )
        for candidate in CANDIDATES
        for number, item in enumerate(chosen)
    ]


def write(page: Page, results: Mapping[Hashable, Any]) -> None:
    page.title("Replays")
    numbers = sorted(k[2] for k in results if isinstance(k, tuple) and k[:2] == ("replay", OURS))
    page.text(
        f"The {len(numbers)} longest trajectories, one request before each answer (the last "
        f"{MAX_STEPS}), window half of the trajectory, budget 85 % of it. `reuse`: share of "
        "a request that is an exact prefix of the next; `busts`: requests that share less than "
        "half; `cost`: cached tokens at a tenth, relative to the uncompressed requests, most of "
        "which would not fit. `recall`: future-reference recall of the requests as they were sent, "
        "of all and of those that had to be cut. Means over trajectories; `requests`, `over`, "
        "`pairs` and `cut` are sums."
    )
    header = ["", "requests", "reuse", "busts", "cost", "over", "pairs", "cut"]
    header += ["recall", "recall, cut requests", "ms, median"]
    rows = []
    means: dict[str, dict[str, float]] = {}
    for candidate in CANDIDATES:
        found = [results["replay", candidate, number] for number in numbers]
        mean = {name: fmean(result[name] for result in found) for name in found[0]}
        for name in ("steps", "over", "pairs", "cut"):
            mean[name] = sum(result[name] for result in found)
        means[candidate] = mean
        rows.append(
            [
                candidate,
                f"{mean['steps']:.0f}",
                share(mean["reuse"]),
                f"{mean['busts']:.1f}",
                share(mean["cost_vs_uncompressed"], 2),
                *(f"{mean[name]:.0f}" for name in ("over", "pairs", "cut")),
                share(mean["recall"]),
                share(mean["recall_shortened"]),
                f"{mean['ms_p50']:.2f}",
            ]
        )
    page.table(header, rows)
    ours = means[OURS]
    for label, name in (("over the window's budget", "over"), ("with a broken pair", "pairs")):
        page.target(f"replayed requests {label}: 0", f"{ours[name]:.0f}", ours[name] == 0)
    page.target("prefix reuse at least 0.96", share(ours["reuse"]), ours["reuse"] >= 0.96)
    cost = ours["cost_vs_uncompressed"]
    page.target("cost at most 0.65 of the uncompressed prompts", share(cost, 2), cost <= 0.65)
    page.title("Each trajectory, ours", 3)
    header = ["trajectory", "requests", "reuse", "busts", "cost", "recall, cut requests"]
    each = [results["replay", OURS, number] for number in numbers]
    page.table(
        header,
        [
            [
                f"{number + 1}",
                str(result["steps"]),
                share(result["reuse"]),
                str(result["busts"]),
                share(result["cost_vs_uncompressed"], 2),
                share(result["recall_shortened"]) if result["recall_steps"] else "",
            ]
            for number, result in islice(enumerate(each), LONGEST)
        ],
    )
