"""`Session.get_history`: nanobot's own without `max_tokens`, whole rounds with it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from nanobot_context import InvalidArgumentError, InvalidMessageError, Session, count_tokens

Message = dict[str, Any]


def conversation(rounds: int) -> list[Message]:
    """Messages as nanobot stores them: with a timestamp and more beside what is sent."""
    session = Session(key="cli:direct")
    for n in range(rounds):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        session.add_message("user", f"question {n}", timestamp="2026-05-01T12:00:00")
        session.add_message("assistant", None, tool_calls=[call], reasoning_content="hm")
        session.add_message("tool", "result " * 20, tool_call_id=f"c{n}", name="f", took_ms=3)
        session.add_message("assistant", f"answer {n}", tools_used=["f"])
    return session.messages


def test_an_empty_session_has_an_empty_history() -> None:
    assert Session().get_history() == []
    assert Session().get_history(0, 100) == []
    assert Session(messages=conversation(1)).get_history(max_tokens=0) == []


def test_a_history_holds_what_a_request_holds() -> None:
    history = Session(messages=conversation(1)).get_history()
    assert [list(message) for message in history] == [
        ["role", "content"],
        ["role", "content", "tool_calls", "reasoning_content"],
        ["role", "content", "tool_call_id", "name"],
        ["role", "content"],
    ]


def test_a_message_without_content_has_an_empty_one() -> None:
    assert Session(messages=[{"role": "user"}]).get_history() == [{"role": "user", "content": ""}]


def test_without_arguments_the_newest_50_come_from_the_first_user_on() -> None:
    messages = conversation(20)
    history = Session(messages=messages).get_history()
    assert len(history) == 48
    assert history[0]["content"] == "question 8"
    assert history[-1]["content"] == "answer 19"
    assert Session(messages=messages).get_history(3) == [
        {key: message[key] for key in message if key not in ("took_ms", "tools_used")}
        for message in messages[-3:]
    ], "no user among them: all of them"
    assert len(Session(messages=messages).get_history(0)) == 80


@pytest.mark.parametrize("max_tokens", range(0, 600, 37))
@pytest.mark.parametrize("model", [None, "claude-opus-4-5"])
def test_with_max_tokens_whole_rounds_come_back(max_tokens: int, model: str | None) -> None:
    history = Session(messages=conversation(8), model=model).get_history(50, max_tokens)
    assert len(history) % 4 == 0
    assert not history or count_tokens(history, model) <= max_tokens
    roles = [message["role"] for message in history]
    assert roles == ["user", "assistant", "tool", "assistant"] * (len(roles) // 4)
    assert not history or history[-1]["content"] == "answer 7"


def test_orphans_do_not_come_back() -> None:
    messages = conversation(3)
    del messages[6], messages[1]
    history = Session(messages=messages).get_history(0, 10_000)
    assert [message["role"] for message in history] == [
        *("user", "assistant"),
        *("user", "assistant"),
        *("user", "assistant", "tool", "assistant"),
    ]
    assert all(message.get("tool_call_id") in (None, "c2") for message in history)


def test_the_session_is_not_changed() -> None:
    session = Session(messages=conversation(3))
    before = copy.deepcopy(session.messages)
    for message in session.get_history(50, 10_000) + session.get_history():
        message["content"] = "changed"
    assert session.messages == before


def test_sessions_do_not_share_their_messages() -> None:
    Session().add_message("user", "hi")
    assert Session().messages == []


@pytest.mark.parametrize("max_tokens", [-1, 1.5, "5", True, float("nan"), 2**70])
def test_tokens_that_are_no_number_are_refused(max_tokens: Any) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        Session(messages=conversation(1)).get_history(50, max_tokens)
    assert caught.value.argument == "max_tokens"


@pytest.mark.parametrize("max_tokens", [None, 100])
def test_a_message_without_a_role_is_named(max_tokens: int | None) -> None:
    with pytest.raises(InvalidMessageError) as caught:
        Session(messages=[{"content": "x"}, {"role": "user"}]).get_history(50, max_tokens)
    assert (caught.value.index, caught.value.field) == (0, "")
