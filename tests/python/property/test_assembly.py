"""What holds of histories put together and of items made of them, for every conversation."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanobot_context.history import assemble_history, ensure_tool_responses
from nanobot_context.responses import from_response_items, to_response_items

from .checks import assert_paired
from .histories import Message, histories, prose

# A failing case is long, and is wanted all the same.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


@given(histories(), st.sampled_from(["max_messages", "rounds"]), st.integers(1, 12))
def test_a_cut_takes_no_call_from_a_result_that_follows_it(
    messages: list[Message], limit: str, most: int
) -> None:
    before = copy.deepcopy(messages)
    whole = ensure_tool_responses(messages)
    answering = {id(message) for message in whole if message["role"] == "tool"}
    history = assemble_history(messages, **{limit: most})  # type: ignore[arg-type]
    front = next(
        (n for n, m in enumerate(messages) if m["role"] not in ("system", "developer")),
        len(messages),
    )
    rest = history[front:]
    assert [m["n"] for m in history[:front]] == list(range(front))
    assert [m["n"] for m in rest] == list(range(len(messages) - len(rest), len(messages)))
    assert limit == "rounds" or len(rest) <= most
    if len(rest) < len(messages) - front:
        here = {id(message) for message in ensure_tool_responses(rest)}
        results = {id(message) for message in rest if message["role"] == "tool"}
        assert results & answering == results & here
    assert messages == before


@given(histories())
def test_each_call_with_an_id_is_answered_once_right_behind_it(messages: list[Message]) -> None:
    before = copy.deepcopy(messages)
    made = ensure_tool_responses(messages)
    waiting: set[object] = set()
    for message in made:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
        else:
            assert waiting == set()
            ids = {call.get("id") for call in message.get("tool_calls") or []}
            waiting = {id_ for id_ in ids if isinstance(id_, str) and id_}
    assert waiting == set()
    others = [id(message) for message in messages if message["role"] != "tool"]
    assert [id(message) for message in made if message["role"] != "tool"] == others
    again = ensure_tool_responses(made)
    assert [id(message) for message in again] == [id(message) for message in made]
    assert messages == before


@given(histories())
def test_items_pair_each_call_with_its_output(messages: list[Message]) -> None:
    before = copy.deepcopy(messages)
    items = to_response_items(messages)
    open_calls: list[object] = []
    for item in items:
        if item["type"] in ("function_call", "custom_tool_call"):
            open_calls.append(item["call_id"])
            assert isinstance(item.get("arguments", item.get("input")), str)
        elif item["type"] != "message":
            open_calls.remove(item["call_id"])
        else:
            assert item["content"]
            for part in item["content"]:
                is_output = part["type"] in ("output_text", "refusal")
                assert is_output == (item["role"] == "assistant")
    assert open_calls == []
    assert messages == before
    back = from_response_items(items)
    assert to_response_items(back) == items, "chat messages hold all that items do"


@given(prose())
def test_sound_messages_come_back_from_items(messages: list[Message]) -> None:
    back = from_response_items(to_response_items(messages))
    assert_paired(back)
    told = [(m["role"], m["content"]) for m in messages if m["content"]]
    assert [(m["role"], m["content"]) for m in back if m["content"]] == told
