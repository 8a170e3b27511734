"""JSON results that are cut: still JSON, the small members beside a long one, at every budget."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nanobot_context import count_tokens, fit_messages


def asked(result: str, question: str | None) -> list[dict[str, Any]]:
    function = {"name": "exec", "arguments": '{"command": "list"}'}
    call = {"id": "c", "type": "function", "function": function}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "List them, please."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": result},
    ]
    if question:
        messages += [
            {"role": "assistant", "content": "I have read it."},
            {"role": "user", "content": question},
        ]
    return messages


def rows(count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": i,
            "name": f"user{i}",
            "address": {"city": "Rome", "zip": 10_000 + i},
            "score": i / 7,
        }
        for i in range(count)
    ]


@pytest.mark.parametrize("question", ["What is odd?", None])
@pytest.mark.parametrize(
    "value",
    [
        rows(100),
        {"data": {"users": rows(60)}, "total": 60},
        {"url": "https://ex.org", "text": "one long line of words " * 300, "status": 200},
        {f"svc-{i}": {"status": "ok", "mem": i * 37 % 991} for i in range(200)},
    ],
    ids=["rows", "nested", "one line", "map"],
)
def test_json_stays_json_at_every_budget(value: Any, question: str | None) -> None:
    messages = asked(json.dumps(value), question)
    for budget in range(220, 1_600, 20):
        fitted = fit_messages(messages, budget).messages
        for result in (str(m["content"]) for m in fitted if m["role"] == "tool"):
            if not result.startswith("[exec result left out"):
                json.loads(result)


@pytest.mark.parametrize("member", ["total", "status", "next_cursor", "truncated"])
def test_what_stands_behind_a_long_value_stays(member: str) -> None:
    messages = asked(json.dumps({"rows": rows(300), member: 300}), "Are there more pages?")
    for share in (0.1, 0.3, 0.5, 0.8):
        fitted = fit_messages(messages, int(count_tokens(messages) * share)).messages
        assert f'"{member}": 300' in str(fitted[3]["content"]), share


def test_of_many_pages_stay_what_is_odd_and_where_the_newest_goes_on() -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Prepare the report."}]

    def page(tool: str, number: int, odd: int | None = None) -> None:
        call = {"name": f"list_{tool}", "arguments": f'{{"page": {number}}}'}
        listed = [{"id": 900 + n, "state": "lost" if n == odd else "paid"} for n in range(20)]
        result = {"items": listed, "next_cursor": f"go-on-{tool}-{number}-0123456789abcdef"}
        id = f"{tool}-{number}"
        messages.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": id, "type": "function", "function": call}],
            }
        )
        messages.append({"role": "tool", "tool_call_id": id, "content": json.dumps(result)})

    page("orders", 0, odd=7)
    for number in range(10):
        for tool in ("deals", "mails", "tasks", "files", "rooms"):
            page(tool, number)
    page("orders", 1)
    page("notes", 0)
    fitted = str(fit_messages(messages, count_tokens(messages) // 8).messages)
    assert '"state": "lost"' in fitted
    assert "go-on-orders-1-" in fitted
