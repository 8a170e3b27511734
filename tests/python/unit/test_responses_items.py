"""Chat messages as items of the Responses API, and back.

The rules are those of document 003's stateless items. Here otherwise, on purpose: the last message
of the user goes only where it is the current one (there, always); calls of one message come back as
one message (there, each became one); a call is answered once, by the first result behind it.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from nanobot_context.errors import InvalidArgumentError
from nanobot_context.responses import from_response_items, to_response_items
from nanobot_context.summary import Summary, wrap_summary

Message = dict[str, Any]
Item = dict[str, Any]


def text(role: str, words: str) -> Item:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": words}]}


def function_call(id_: str) -> Item:
    return {"type": "function_call", "call_id": id_, "name": "f", "arguments": '{"a": 1}'}


def output(id_: str, words: str = "result") -> Item:
    return {"type": "function_call_output", "call_id": id_, "output": words}


def call(id_: str) -> Message:
    return {"id": id_, "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}


def result(id_: str, words: str = "result") -> Message:
    return {"role": "tool", "tool_call_id": id_, "content": words}


TURN: list[Message] = [
    {"role": "system", "content": "You help."},
    {"role": "user", "content": "read it"},
    {"role": "assistant", "content": "I will.", "tool_calls": [call("a"), call("b")]},
    result("a"),
    result("b"),
    {"role": "assistant", "content": "Done."},
]
ITEMS: list[Item] = [
    text("system", "You help."),
    text("user", "read it"),
    text("assistant", "I will."),
    function_call("a"),
    function_call("b"),
    output("a"),
    output("b"),
    text("assistant", "Done."),
]


def test_a_turn_becomes_items_and_the_same_turn_again() -> None:
    before = copy.deepcopy(TURN)
    assert to_response_items(TURN) == ITEMS
    assert from_response_items(ITEMS) == TURN == before


def test_each_role_has_its_kind_of_text() -> None:
    for role in ("system", "developer", "user", "assistant"):
        assert to_response_items([{"role": role, "content": "x"}]) == [text(role, "x")]


def test_a_call_without_an_output_and_an_output_without_a_call_are_left_out() -> None:
    messages = [
        result("before"),
        {"role": "assistant", "content": "x", "tool_calls": [call("a"), call("open")]},
        result("a"),
        result("a", "again"),
        result("of nobody"),
        {"role": "user", "content": "wait"},
        {"role": "assistant", "content": None, "tool_calls": [call("late")]},
        {"role": "user", "content": "well?"},
        result("late"),
    ]
    assert to_response_items(messages) == [
        text("assistant", "x"),
        function_call("a"),
        output("a"),
        text("user", "wait"),
        function_call("late"),
        text("user", "well?"),
        output("late"),
    ]


def test_an_id_that_is_used_again_pairs_with_the_call_before() -> None:
    again: list[Message] = [
        {"role": "assistant", "content": "", "tool_calls": [call("a")]},
        {"role": "assistant", "content": "", "tool_calls": [call("a")]},
        result("a", "second"),
    ]
    assert to_response_items(again) == [function_call("a"), output("a", "second")]


@pytest.mark.parametrize(
    "kept",
    [
        {"tool_calls": [call("a")]},
        {"tool_calls": json.dumps([call("a")])},
        {"metadata": {"toolCalls": [call("a")]}},
        {"metadata": {"toolCalls": json.dumps([call("a")])}, "tool_calls": [call("old")]},
        {"tool_calls": [{"call_id": "a", "name": "f", "arguments": {"a": 1}}]},
    ],
)
def test_calls_are_found_wherever_they_are_kept(kept: dict[str, Any]) -> None:
    messages = [{"role": "assistant", "content": None, **kept}, result("a")]
    assert to_response_items(messages) == [function_call("a"), output("a")]


def test_images_and_files_keep_what_they_say() -> None:
    parts = [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "file", "file": {"file_id": "file-1"}},
    ]
    messages: list[Message] = [{"role": "user", "content": parts}]
    items = to_response_items(messages)
    assert items[0]["content"] == [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "low"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        {"type": "input_file", "file_id": "file-1"},
    ]
    assert from_response_items(items) == messages


def test_an_assistants_parts_are_texts_and_what_is_none_says_so() -> None:
    parts = [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "refusal", "refusal": "I can't"},
    ]
    assert to_response_items([{"role": "assistant", "content": parts}])[0]["content"] == [
        {"type": "output_text", "text": "see"},
        {"type": "output_text", "text": "[image_url left out]"},
        {"type": "refusal", "refusal": "I can't"},
    ]


def test_a_result_in_parts_is_one_text_where_it_can_be() -> None:
    call_message: Message = {"role": "assistant", "content": None, "tool_calls": [call("a")]}
    texts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert to_response_items([call_message, result("a") | {"content": texts}])[1] == output(
        "a", "one\ntwo"
    )
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    made = to_response_items([call_message, result("a") | {"content": [image]}])[1]["output"]
    assert made == [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]
    assert to_response_items([call_message, result("a") | {"content": None}])[1]["output"] == ""


def test_parts_that_nothing_is_known_of_are_shown_as_text() -> None:
    content = [{"type": "hologram", "blob": [1, None]}, "bare"]
    assert to_response_items([{"role": "user", "content": content}])[0]["content"] == [
        {"type": "input_text", "text": '{"type": "hologram", "blob": [1, null]}'},
        {"type": "input_text", "text": "bare"},
    ]


def test_what_contains_itself_or_is_nested_too_deeply_is_refused() -> None:
    inside: list[Any] = []
    inside.append(inside)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (inside, deep):
        for content in (value, [{"type": "other", "value": value}]):
            with pytest.raises(InvalidArgumentError, match="`messages` cannot be written as JSON"):
                to_response_items([{"role": "user", "content": content}])


def test_custom_tools_keep_their_input() -> None:
    custom = {"id": "a", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
    messages = [{"role": "assistant", "content": None, "tool_calls": [custom]}, result("a")]
    items = to_response_items(messages)
    assert items == [
        {"type": "custom_tool_call", "call_id": "a", "name": "patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "a", "output": "result"},
    ]
    assert from_response_items(items) == messages


def test_messages_without_content_and_thoughts_are_left_out() -> None:
    messages: list[Message] = [
        {"role": "user", "content": ""},
        {"role": "user"},
        {"role": "assistant", "content": [], "reasoning_content": "hm"},
        {"role": "user", "content": "x"},
    ]
    assert to_response_items(messages) == [text("user", "x")]


def test_summaries_stand_behind_the_instructions() -> None:
    summaries: list[Summary | str] = [Summary("first", 2), " \n", "second"]
    items = to_response_items(TURN, summaries=summaries)
    assert items == [
        ITEMS[0],
        text("system", wrap_summary("first")),
        text("system", wrap_summary("second")),
        *ITEMS[1:],
    ]


def test_the_current_message_is_not_doubled_and_no_other_is_dropped() -> None:
    now: Message = {"role": "user", "content": "now"}
    parts = {"role": "user", "content": [{"type": "text", "text": "now"}]}
    assert to_response_items([*TURN, now], current=[parts]) == [*ITEMS, text("user", "now")]
    other: Message = {"role": "user", "content": "unanswered"}
    assert to_response_items([*TURN, other], current=[now]) == [
        *ITEMS,
        text("user", "unanswered"),
        text("user", "now"),
    ]


def test_a_result_of_the_current_messages_keeps_its_call() -> None:
    waiting: Message = {"role": "assistant", "content": None, "tool_calls": [call("c")]}
    items = to_response_items([*TURN, waiting], current=[result("c")])
    assert items == [*ITEMS, function_call("c"), output("c")]


def test_items_in_short_form_are_messages() -> None:
    assert from_response_items([{"role": "user", "content": "x"}]) == [
        {"role": "user", "content": "x"}
    ]


def test_calls_one_after_the_other_stay_two_messages() -> None:
    items = [function_call("a"), output("a"), function_call("b"), output("b")]
    roles = [message["role"] for message in from_response_items(items)]
    assert roles == ["assistant", "tool", "assistant", "tool"]
    assert to_response_items(from_response_items(items)) == items


def test_what_chat_messages_have_no_form_for_is_left_out() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    reference = {"type": "item_reference", "id": "msg_1"}
    items = [ITEMS[2], thought, *ITEMS[3:5], search, *ITEMS[5:], reference]
    assert from_response_items(items) == TURN[2:]
