"""Steps made early, where a pause left the cache cold: `python -m evaluation.pauses`.

The longest recorded trajectories, request by request, as `evaluation.replays` has them; between two
requests is a pause with a given probability, after which nothing of the next one is cached. A
request after a pause that is larger than a share of the budget is cut to a smaller share, which the
following ones begin with. Beside it what a smaller window costs and keeps. Folders are those of
`make eval`: EVAL_DATA, EVAL_TOOLS.
"""

from __future__ import annotations

import os
import random
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

import nanobot_context
from evaluation import adapters
from evaluation.replays import LONGEST, MAX_STEPS, Message, find_recall, longest
from evaluation.tools import VARIABLE, load

CACHED = 0.1  # what a cached token costs beside another
PAUSES = (1 / 2, 1 / 5, 1 / 20)


@dataclass(frozen=True)
class Way:
    """How requests are made: steps made early above `above` of the budget, to `low` of it."""

    name: str
    above: float = 2.0
    low: float = 1.0
    window: float = 1.0


WAYS = (
    Way("today's steps"),
    Way("early above 95 %, to 70 %", 0.95, 0.7),
    Way("early above 85 %, to 65 %", 0.85, 0.65),
    Way("early above 75 %, to 60 %", 0.75, 0.6),
    Way("a window of 90 %", window=0.9),
    Way("a window of 80 %", window=0.8),
)


def measure(way: Way, pauses: float, tools: Path, messages: list[Message]) -> tuple[float, float]:
    """Return what the requests cost, in tokens at the full price, and their recall."""
    counts: dict[int, tuple[Message, int]] = {}

    def count(message: Message) -> int:
        if id(message) not in counts:
            counts[id(message)] = (message, adapters.count_one(message))
        return counts[id(message)][1]

    window = int(max(8_000, sum(map(count, messages)) // 2) * way.window)
    budget = int(window * 0.85)
    drawn = random.Random(len(messages))
    compress = adapters.conversation(window)
    made: list[Message] = []  # what an early step made of the messages before `at`
    at, cost = 0, 0.0
    before: list[Message] = []
    sent: list[tuple[int, list[Message]]] = []
    answers = [i for i, one in enumerate(messages) if one["role"] == "assistant" and i > 0]
    for number, i in enumerate(answers[-MAX_STEPS:]):
        is_cold = number > 0 and drawn.random() < pauses
        given = [*made, *messages[at:i]]
        shown = compress(given)
        if is_cold and sum(map(count, shown)) > way.above * budget:
            made, at = nanobot_context.fit_messages(given, int(way.low * budget)).messages, i
            shown, compress = made, adapters.conversation(window)
        same = 0
        while not is_cold and same < min(len(shown), len(before)) and shown[same] == before[same]:
            same += 1
        cached, whole = sum(map(count, shown[:same])), sum(map(count, shown))
        cost += CACHED * cached + whole - cached
        sent.append((i, shown))
        before = shown
    measures = load(tools / "future_reference.py", "future_reference")
    return cost, find_recall(measures, messages, sent, count, budget)["recall_shortened"]


def main() -> None:
    data = Path(os.environ.get("EVAL_DATA", "../shared/data/trajectories"))
    tools = Path(os.environ.setdefault(VARIABLE, "../shared/eval"))
    talks = [item["messages"] for item in longest(data, LONGEST)]
    with ProcessPoolExecutor() as pool:
        for pauses in PAUSES:
            print(f"a pause before one in {1 / pauses:.0f} requests")
            today: list[float] = []
            for way in WAYS:
                found = list(pool.map(partial(measure, way, pauses, tools), talks))
                costs = [cost for cost, _ in found]
                today = today or costs
                cost = fmean(one / other for one, other in zip(costs, today, strict=True))
                recall = fmean(recall for _, recall in found)
                print(f"  {way.name:26} cost {cost:.3f}  recall of cut requests {recall:.4f}")


if __name__ == "__main__":
    main()
