"""Forms of messages that are neither OpenAI's nor broken."""

from __future__ import annotations

from typing import Any

import pytest

from nanobot_context import (
    InvalidMessageError,
    compress_messages,
    count_tokens,
    emergency_compress,
    fit_messages,
)

Message = dict[str, Any]
FUNCTION = {"name": "f", "arguments": "{}"}


def calling(*ids: Any) -> Message:
    calls = [{"id": id_, "type": "function", "function": FUNCTION} for id_ in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(id_: Any, content: str = "ok") -> Message:
    return {"role": "tool", "tool_call_id": id_, "content": content}


USER: Message = {"role": "user", "content": "go"}


# Ids with lone surrogates ------------------------------------------------------------------------


def test_an_id_with_a_lone_surrogate_is_answered_by_the_same_id() -> None:
    out = fit_messages([USER, calling("id\ud800"), USER], 3_000).messages
    assert out[1]["tool_calls"][0]["id"] == out[2]["tool_call_id"] == "id\ud800"


def test_ids_that_differ_by_a_lone_surrogate_are_told_apart() -> None:
    messages = [
        USER,
        calling("\ud800", "\udc01"),
        result("\udc01", "b"),
        result("\ud800", "a"),
        USER,
    ]
    out = fit_messages(messages, 3_000).messages
    assert all(new is old for new, old in zip(out, messages, strict=True))


def test_the_unanswered_one_of_two_such_ids_gets_a_result() -> None:
    messages = [USER, calling("\ud800", "\udc01"), result("\udc01", "b"), USER]
    out = fit_messages(messages, 3_000).messages
    assert [message.get("tool_call_id") for message in out[2:4]] == ["\udc01", "\ud800"]


def test_such_an_id_used_twice_is_made_new_with_its_result() -> None:
    messages = [USER, calling("\ud800", "\ud800"), result("\ud800"), result("\ud800"), USER]
    out = fit_messages(messages, 3_000).messages
    ids = [call["id"] for call in out[1]["tool_calls"]]
    assert ids == [message["tool_call_id"] for message in out[2:4]]
    assert len(set(ids)) == 2


# Anthropic's blocks ------------------------------------------------------------------------------


def blocks(rounds: int) -> list[Message]:
    messages: list[Message] = []
    for n in range(rounds):
        call = {"type": "tool_use", "id": f"t{n}", "name": "f", "input": {"path": f"src/{n}.py"}}
        thought = {"type": "thinking", "thinking": f"think {n} " * 40, "signature": "s"}
        answer = {"type": "tool_result", "tool_use_id": f"t{n}", "content": f"line {n}\n" * 200}
        said = {"type": "text", "text": f"I look at file {n}. " * 20}
        messages += [
            {"role": "user", "content": f"question {n}"},
            {"role": "assistant", "content": [thought, said, call]},
            {"role": "user", "content": [answer]},
            {"role": "assistant", "content": f"answer {n} " * 100},
        ]
    return [*messages, USER]


def test_blocks_are_counted_and_a_request_that_fits_is_left_alone() -> None:
    messages = blocks(3)
    tokens = count_tokens(messages, "gpt-4o")
    assert tokens > 3 * 400
    out = fit_messages(messages, tokens, "gpt-4o").messages
    assert all(new is old for new, old in zip(out, messages, strict=True))


def mixed(rounds: int) -> list[Message]:
    """Return messages with calls of both forms, which no provider takes in one request."""
    return [USER, calling("c"), result("c"), *blocks(rounds)]


@pytest.mark.parametrize("share", [0.95, 0.8, 0.5, 0.2])
def test_blocks_beside_calls_of_openais_form_stay_whole_or_are_refused_by_name(
    share: float,
) -> None:
    messages = mixed(6)
    budget = int(count_tokens(messages, "gpt-4o") * share)
    try:
        out = fit_messages(messages, budget, "gpt-4o").messages
    except InvalidMessageError as error:
        block = messages[error.index]["content"][int(error.field[len(".content[") : -1])]
        assert block["type"] in ("tool_use", "tool_result")
        return
    assert count_tokens(out, "gpt-4o") <= budget
    kept = [part for m in out if isinstance(m["content"], list) for part in m["content"]]
    whole = [p for m in messages if isinstance(m["content"], list) for p in m["content"]]
    calls = [part for part in whole if part["type"] in ("tool_use", "tool_result")]
    assert all(any(call is part for part in kept) for call in calls)
    assert all(part in whole for part in kept if part["type"] == "thinking")


@pytest.mark.parametrize("function", [compress_messages, emergency_compress])
def test_every_function_refuses_to_leave_out_half_of_such_a_call(function: Any) -> None:
    messages = mixed(6)
    window = count_tokens(messages, "gpt-4o") // 4
    with pytest.raises(InvalidMessageError, match=r"messages\[\d+\].content\[\d\]` is a call or"):
        function(messages, window, "gpt-4o")


# Parts with texts of their own --------------------------------------------------------------------


def test_a_part_that_only_looks_like_a_text_costs_what_is_written_in_its_place() -> None:
    parts = [{"text": "word " * 400}, {"type": "hologram", "text": "word " * 400}]
    messages = [USER, {"role": "assistant", "content": parts}, USER]
    for budget in range(40, 500, 3):
        fitted = fit_messages(messages, budget, "gpt-4o")
        assert count_tokens(fitted.messages, "gpt-4o") == fitted.tokens <= budget
