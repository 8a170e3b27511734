"""What a byte costs at 1 MB and at 8 MB, of texts made to be looked up: names, keys, rules, ids."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import nanobot_context
from measure import Report, cpu_ns

Message = dict[str, Any]

MODEL = "gpt-4o"
MEGABYTE = 1_000_000
# A megabyte of short calls is 12,000 objects, which the processor's cache holds: beyond it, reading
# them costs twice as much, whoever reads. Larger ones are compared, so that what grows is our work.
LARGER = {"calls with ids of a repair": 8}
# Of the cost of a byte at the larger size to that at the smaller: linear growth is 1.
GROWTH_TARGET = 1.3


def _join(size: int, separator: str, piece: Callable[[int, int], str]) -> str:
    """Join pieces up to `size`; `piece` has the size first, so that no two texts share any."""
    pieces: list[str] = []
    length = 0
    while length < size:
        pieces.append(piece(size, len(pieces)))
        length += len(pieces[-1]) + len(separator)
    return separator.join(pieces)


def _names(size: int) -> str:
    return "{" + _join(size, ", ", lambda n, i: f'"handle_{n}_{i:x}": "src/part_{i}.rs"') + "}"


def _keys(size: int) -> str:
    return "{" + _join(size, ", ", lambda n, i: f'"…{i or ""}": "v {n} {i}"') + "}"


def _chains(size: int) -> str:
    return _join(size, " ", lambda n, i: "a1." * 60 + f"q{n}x{i}")


def _rules(size: int) -> str:
    return _join(
        size, " ", lambda n, i: f"Never touch file_{n}_{i}.py. Always ask owner_{i} first."
    )


def _user(text: str) -> list[Message]:
    return [
        {"role": "user", "content": text},
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": "go on"},
    ]


def _result(text: str) -> list[Message]:
    function = {"name": "exec", "arguments": "{}"}
    return [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "a", "name": "exec", "content": text},
        {"role": "user", "content": "go on"},
    ]


def _calls(size: int) -> list[Message]:
    def call(identifier: str) -> Message:
        function = {"name": "f", "arguments": json.dumps({"n": size})}
        return {"id": identifier, "type": "function", "function": function}

    count = size // 250
    ids = ["" for _ in range(count)]
    ids += [f"call_1_0_{i + 2}" for i in range(count)] + [f"call_1_{i}" for i in range(count)]
    calls: Message = {"role": "assistant", "content": None, "tool_calls": [*map(call, ids)]}
    return [{"role": "user", "content": "go"}, calls, {"role": "user", "content": "go on"}]


CONVERSATIONS: dict[str, Callable[[int], list[Message]]] = {
    "distinct names, said": lambda size: _user(_names(size)),
    "distinct names, a result": lambda size: _result(_names(size)),
    "keys that marks have": lambda size: _result(_keys(size)),
    "chains of names": lambda size: _result(_chains(size)),
    "rules of the user": lambda size: _user(_rules(size)),
    "calls with ids of a repair": _calls,
}


def _fit(messages: list[Message], tokens: int) -> None:
    nanobot_context.fit_messages(messages, tokens, MODEL)


PASSES: dict[str, Callable[[list[Message], int], object]] = {
    "count": lambda messages, _: nanobot_context.count_tokens(messages, MODEL),
    "fit, 2,000": lambda messages, _: _fit(messages, 2_000),
    "fit, half": lambda messages, tokens: _fit(messages, tokens // 2),
    "compress": lambda messages, _: nanobot_context.compress_messages(messages, 8_000, MODEL),
}


def _costs(make: Callable[[int], list[Message]], size: int) -> Iterator[tuple[str, float]]:
    """Time each pass in ns a byte, on a text of its own: nothing remembered of another helps it."""
    for at, (name, run) in enumerate(PASSES.items()):
        messages = make(size + 2 * at)
        written = len(json.dumps(messages, ensure_ascii=False).encode())
        tokens = nanobot_context.count_tokens(make(size + 2 * at + 1), MODEL)
        yield name, cpu_ns(partial(run, messages, tokens)) / written
    messages = make(size - 1)
    fitted = nanobot_context.fit_messages(messages, 2_000, MODEL)
    yield "lost", cpu_ns(lambda: fitted.receipt.lost) / written


def growth(report: Report, *, sizes: tuple[int, int] = (MEGABYTE, 8 * MEGABYTE)) -> None:
    """Compare what a byte costs at two sizes."""
    report.title(f"Hostile texts: ns a byte at {sizes[0]:,} and {sizes[1]:,} bytes")
    nanobot_context.fit_messages(_result(_names(20_000)), 2_000, MODEL)
    rows = []
    worst = 0.0
    for name, make in CONVERSATIONS.items():
        times = LARGER.get(name, 1)
        costs = [dict(_costs(make, times * size)) for size in sizes]
        name += f", {times} times as large" if times > 1 else ""
        for key, small in costs[0].items():
            ratio = costs[1][key] / small
            # What costs less than reading the text is not looked at.
            worst = max(worst, ratio if costs[1][key] > 1.0 else 0.0)
            rows.append((f"{name}: {key}", f"{small:.1f}", f"{costs[1][key]:.1f}", f"{ratio:.2f}"))
    report.table(("", *(f"{size / MEGABYTE:g} MB" for size in sizes), "growth"), rows)
    report.target(
        f"a byte costs at most {GROWTH_TARGET} times as much: {worst:.2f}", worst <= GROWTH_TARGET
    )
