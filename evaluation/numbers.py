"""Do numbers come out of compression as they went in, or not at all?"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable
from typing import Any

from evaluation import adapters
from evaluation.page import Page, percent, share

Message = dict[str, Any]

RATIOS = (0.1, 0.25, 0.5, 0.75)
NUMBER = re.compile(r"-?\d[\d.eE+-]*")
FIELD = re.compile(r'"(?:account|price|drift|delta)":\s*(-?\d[^\s,}\]]*)')
# What a mark of ours may count: lines, rows, characters. The rows hold no such number.
LARGEST_IN_A_MARK = 10_000_000


def session(seed: int = 0) -> list[Message]:
    """Return tool results of JSON rows whose numbers any parser would spell differently."""
    rng = random.Random(seed)
    messages: list[Message] = [
        {"role": "system", "content": "You keep the books."},
        {"role": "user", "content": "Compare all accounts."},
    ]
    for page in range(30):
        rows = ",\n".join(_row(rng) for _ in range(40))
        call = {
            "id": f"c{page}",
            "type": "function",
            "function": {"name": "accounts", "arguments": json.dumps({"page": page})},
        }
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append(
            {
                "role": "tool",
                "tool_call_id": f"c{page}",
                "name": "accounts",
                "content": f"[\n{rows}\n]",
            }
        )
    messages.append({"role": "assistant", "content": "I have them all."})
    messages.append({"role": "user", "content": "Which account differs?"})
    return messages


def written(text: str) -> set[str]:
    """Return the numbers of `text` as they are written."""
    return set(NUMBER.findall(text))


def changed(source: set[str], text: str) -> list[str]:
    """Return the numbers in `text` that do not stand literally in `source`.

    A plain whole number may also be what a mark of ours counts, unless a number of `source` starts
    or ends with it: then it is a piece of that one. No mark counts in a field of the rows.
    """
    wrong = [number for number in FIELD.findall(text) if number not in source]
    for number in NUMBER.findall(text):
        if number in source:
            continue
        bare = number.rstrip(".-+")
        count = bare.isdigit() and int(bare) < LARGEST_IN_A_MARK
        piece = len(bare) > 5 and any(n.startswith(bare) or n.endswith(bare) for n in source)
        if not count or piece:
            wrong.append(number)
    return wrong


def write(page: Page) -> None:
    page.title("Numbers")
    page.text(
        "1,200 JSON rows with integers of 24 digits and numbers like 31.10, 1.50e-7 and -0.0, cut "
        "to parts of their tokens: does every number of the results stand literally in the input? "
        "A number cut in two does not. `valid`: results with rows that are still JSON."
    )
    messages = session()
    source = written(_texts(messages))
    total = adapters.count(messages)
    rows = []
    wrong = 0
    for ratio in RATIOS:
        out = adapters.ours(messages, int(total * ratio))
        text = _texts(out)
        bad = changed(source, text)
        wrong += len(bad)
        contents = (message["content"] for message in out if message["role"] == "tool")
        results = [content for content in contents if FIELD.search(content)]
        rows.append(
            [
                percent(ratio),
                f"{len(NUMBER.findall(text)):,}",
                str(len(bad)),
                ", ".join(sorted(set(bad))[:3]),
                f"{sum(map(_is_json, results))} of {len(results)}",
                share(adapters.count(out) / int(total * ratio)),
            ]
        )
    page.table(["budget", "numbers", "changed", "such as", "valid", "filled"], rows)
    page.target("numbers that are not as they went in: 0", str(wrong), wrong == 0)


def _texts(messages: Iterable[Message]) -> str:
    return "\n".join(m["content"] for m in messages if m["role"] == "tool" and m["content"])


def _row(rng: random.Random) -> str:
    account = rng.randint(10**23, 10**24 - 1)
    price = f"{rng.randint(11, 99)}.{rng.randint(1, 9)}0"
    drift = f"{rng.randint(1, 9)}.{rng.randint(1, 9)}0e-{rng.randint(5, 9)}"
    state = rng.choice(["ok", "ok", "ok", "late"])
    return (
        f'{{"account": {account}, "price": {price}, "drift": {drift}, "delta": -0.0, '
        f'"state": "{state}"}}'
    )


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
