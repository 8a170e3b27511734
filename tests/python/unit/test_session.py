"""`Session.get_history`: nanobot's own without `max_tokens`, whole rounds with it.

With a summary: the static buffer of document 000. Here otherwise, on purpose: nothing is removed
from the messages, and while a summary is being made what it is to cover is still shown.
"""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import threading
from typing import Any

import pytest

from nanobot_context import InvalidArgumentError, InvalidMessageError, Session, count_tokens
from nanobot_context.summary import Summary

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


def test_a_history_holds_every_field_that_a_provider_reads() -> None:
    fields = {
        "reasoning": "hm",
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}],
        "extra_content": {"google": {"thought_signature": "x"}},
        "provider_specific_fields": {"signature": "x"},
        "refusal": "no",
        "function_call": {"name": "f", "arguments": "{}"},
        "audio": {"id": "audio_1"},
    }
    session = Session()
    session.add_message("user", "question")
    session.add_message("assistant", None, **fields, timestamp="2026-05-01T12:00:00")
    answer = session.get_history()[1]
    assert {key: answer[key] for key in fields} == fields
    assert "timestamp" not in answer


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


# --- with a summary -----------------------------------------------------------------------------


def contents(messages: list[Message]) -> list[Any]:
    return [message["content"] or "" for message in messages]


def trimmed(count: int = 13) -> tuple[Session, list[Message]]:
    session = Session(messages=conversation(count))
    evicted, is_due = session.trim_if_needed()
    assert is_due
    return session, evicted


def test_a_short_conversation_is_not_trimmed() -> None:
    session = Session(messages=conversation(12) + [{"role": "user", "content": "x"}] * 2)
    assert session.trim_if_needed() == ([], False)
    assert not session.summary_in_progress
    assert Session().trim_if_needed() == ([], False)


def test_a_long_one_hands_out_all_but_the_last_ten_up_to_a_user_message() -> None:
    session, evicted = trimmed()
    assert [id(m) for m in evicted] == [id(m) for m in session.messages[:40]]
    assert session.messages[40]["content"] == "question 10"
    assert session.messages == conversation(13), "nothing is removed"
    assert session.summary_in_progress


def test_while_a_summary_is_made_everything_is_shown_and_no_other_is_begun() -> None:
    session, _ = trimmed()
    session.add_message("user", "now")
    assert contents(session.get_history()) == contents(session.messages)
    assert session.trim_if_needed() == ([], False)
    assert session.trim_if_needed(1, 0) == ([], False)


def test_a_text_covers_what_was_handed_out() -> None:
    session, _ = trimmed()
    session.add_message("user", "now")
    assert session.update_summary("so far")
    assert session.summary == Summary("so far", 40, 1, reason="buffer")
    assert not session.summary_in_progress
    assert contents(session.get_history()) == contents(session.messages[40:])
    assert session.trim_if_needed() == ([], False), "12 messages are behind it"
    session.messages += conversation(12)
    evicted, is_due = session.trim_if_needed()
    assert is_due
    assert [id(m) for m in evicted] == [id(m) for m in session.messages[40:89]]
    assert contents(session.get_history()) == contents(session.messages[40:]), "the old one is used"
    assert session.update_summary("so much")
    assert session.summary == Summary("so much", 89, 2, reason="buffer")
    assert len(session.messages) == 101


def test_a_text_that_comes_too_late_is_refused() -> None:
    session, _ = trimmed()
    session.summary_failed()
    assert not session.update_summary("late")
    assert session.summary is None
    session.trim_if_needed()
    assert session.update_summary("in time")
    assert not session.update_summary("late")
    assert session.summary is not None
    assert session.summary.text == "in time"


def test_after_a_failure_the_same_is_handed_out_again() -> None:
    session, evicted = trimmed()
    session.summary_failed()
    assert session.summary is None
    assert not session.summary_in_progress
    assert session.trim_if_needed() == (evicted, True)


@pytest.mark.parametrize(
    ("summary", "is_taken"),
    [
        (Summary("newer", 20, 3), True),
        (Summary("newer", 24, 9), True),
        (Summary("newer, covers less", 16, 3), False),
        (Summary("as old", 24, 2), False),
        (Summary("older", 24, 1), False),
        (Summary("of another conversation", 53, 3), False),
        (Summary("all of it", 52, 3), True),
        (Summary(" \n", 24, 3), False),
        ("", False),
    ],
)
def test_only_a_newer_summary_takes_the_place_of_one(summary: Any, is_taken: bool) -> None:
    session = Session(messages=conversation(13), summary=Summary("old", 20, 2))
    session.trim_if_needed(5, 2)
    assert session.update_summary(summary) is is_taken
    assert not session.summary_in_progress
    assert session.summary == (summary if is_taken else Summary("old", 20, 2))


def test_behind_a_summary_a_limit_cuts_at_a_user_message() -> None:
    session = Session(messages=conversation(5), summary=Summary("so far", 3))
    assert contents(session.get_history()) == contents(session.messages[3:])
    assert contents(session.get_history(0)) == contents(session.messages[3:])
    assert contents(session.get_history(17)) == contents(session.messages[3:])
    assert contents(session.get_history(10)) == contents(session.messages[12:])
    assert session.get_history(10, 0) == []
    within = session.get_history(0, 10_000)
    assert contents(within) == contents(session.messages[4:]), "whole rounds only"
    session.messages += [session.messages[1], session.messages[2]] * 3
    session.summary = Summary("so far", 17)
    assert [m["role"] for m in session.get_history(4)] == ["assistant", "tool"] * 2
    assert [m["role"] for m in session.get_history(3)] == ["assistant", "tool"]


def test_a_summary_that_covers_everything_leaves_an_empty_history() -> None:
    session = Session(messages=conversation(1), summary=Summary("all of it", 4))
    assert session.get_history() == session.get_history(10, 1_000) == []


def test_messages_that_were_cleared_and_a_summary_that_was_not_are_refused() -> None:
    session = Session(messages=conversation(1), summary=Summary("so far", 40))
    for call in (session.get_history, session.trim_if_needed):
        with pytest.raises(InvalidArgumentError, match="covers 40 messages, but there are 4"):
            call()


def test_a_message_behind_a_summary_is_named_by_its_place_in_the_conversation() -> None:
    session = Session(messages=[*conversation(1), {"content": "x"}], summary=Summary("so far", 4))
    with pytest.raises(InvalidMessageError) as caught:
        session.get_history()
    assert caught.value.index == 4


def test_a_session_can_be_copied_and_pickled() -> None:
    session, _ = trimmed()
    for other in (copy.deepcopy(session), pickle.loads(pickle.dumps(session))):
        assert other == session
        assert other.update_summary("so far")
        assert other.summary == Summary("so far", 40, reason="buffer")
    assert session.summary is None


def test_of_two_summaries_at_once_the_newer_one_stays() -> None:
    for _ in range(200):
        session = Session(messages=conversation(2))
        barrier = threading.Barrier(4)

        def update(version: int, session: Session = session, barrier: Any = barrier) -> None:
            barrier.wait()
            session.update_summary(Summary(f"version {version}", version, version))

        threads = [threading.Thread(target=update, args=(version,)) for version in (1, 2, 3, 4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert session.summary == Summary("version 4", 4, 4)


def test_a_session_without_summaries_loads_nothing_of_them() -> None:
    script = """
import sys
from nanobot_context import Session
session = Session(messages=[{"role": "user", "content": "hi"}])
session.get_history()
session.summary_failed()
assert not any(name.startswith("nanobot_context.summary") for name in sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
