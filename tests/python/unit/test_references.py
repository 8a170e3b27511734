"""Items of Responses that name what the server has: what answers them stays."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nanobot_context import compress_messages, fit_messages

COMPACTION = {"type": "compaction", "id": "cmp_1", "encrypted_content": "Z" * 200}


def asked(text: str = "Go on.") -> dict[str, Any]:
    return {"role": "user", "content": text}


def reference(name: str) -> dict[str, Any]:
    return {"type": "item_reference", "id": name}


def called(name: str) -> dict[str, Any]:
    function = {"name": "read", "arguments": "{}"}
    return {"type": "function_call", "id": f"fc_{name}", "call_id": name, **function}


def output(name: str, text: str = "The port is 8080.", kind: str = "function") -> dict[str, Any]:
    return {"type": f"{kind}_call_output", "call_id": name, "output": text}


@pytest.mark.parametrize(
    "items",
    [
        [asked(), reference("fc_a"), output("a"), asked()],
        [
            asked(),
            reference("rs_1"),
            reference("fc_a"),
            reference("fc_b"),
            output("a"),
            output("b"),
        ],
        [asked(), {"id": "fc_a"}, output("a"), asked()],
        [asked(), reference("ctc_a"), output("a", kind="custom_tool"), asked()],
        [asked(), called("a"), COMPACTION, output("a"), asked()],
        [asked(), COMPACTION, output("a"), asked()],
    ],
    ids=["one", "some", "no type", "custom tool", "behind a compaction", "compacted away"],
)
def test_what_answers_a_call_that_the_server_has_is_not_left_out(items: list[Any]) -> None:
    assert compress_messages(items, 100_000, "gpt-5") == items


def test_a_reference_and_what_answers_it_stay_or_go_together() -> None:
    items: list[Any] = []
    for number in range(60):
        text = f"FACT-{number} " + "and words behind it " * 60
        items += [asked(f"Question {number}"), reference(f"rs_{number}"), reference(f"fc_{number}")]
        items.append(output(f"c{number}", text))
    fitted = fit_messages([*items, asked()], 6_000, "gpt-5").messages
    kinds = [item.get("type", "message") for item in fitted]
    assert kinds.count("function_call_output") > 3
    for place, kind in enumerate(kinds):
        if kind == "function_call_output":
            name = fitted[place]["call_id"].removeprefix("c")
            assert [one.get("id") for one in fitted[place - 2 : place]] == [
                f"rs_{name}",
                f"fc_{name}",
            ]
    assert kinds.count("item_reference") == 2 * kinds.count("function_call_output"), json.dumps(
        kinds
    )
