"""Calls that changed something in the metadata of a session, whatever becomes of its messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nanobot_context.host.stored_calls import MAX_CALLS, Calls, read
from nanobot_context.plugins.rules import calls_section

Messages = list[dict[str, Any]]


def made(*commands: str, start: int = 0, ids: str = "call", tool: str = "exec") -> Messages:
    """Return a call for each command, with its result, a minute apart."""
    messages: Messages = []
    for nth, command in enumerate(commands, start):
        stamp = f"2026-01-01T{nth // 60:02}:{nth % 60:02}:00"
        function = {"name": tool, "arguments": json.dumps({"command": command})}
        call = {"id": f"{ids}-{nth}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call], "timestamp": stamp},
            {"role": "tool", "tool_call_id": call["id"], "content": "ok", "timestamp": stamp},
        ]
    return messages


def lines(calls: Calls) -> list[str]:
    return [call.line for call in calls.newest]


def test_calls_stay_when_their_messages_are_dropped_and_go_when_the_talk_ends_earlier() -> None:
    metadata: dict[str, Any] = {}
    messages = made("pay 1", "pay 2", "pay 3")
    all_three = ["exec pay 1", "exec pay 2", "exec pay 3"]
    assert lines(read(messages, metadata, {})) == all_three
    assert lines(read(messages[4:], metadata, {})) == all_three
    more = [*messages[4:], *made("pay 4", start=3)]
    assert lines(read(more, metadata, {})) == [*all_three, "exec pay 4"]
    assert lines(read(messages[:4], metadata, {})) == all_three[:2]


def test_what_a_history_makes_is_not_left_out_of_it() -> None:
    messages = made("pay 1", "pay 2", "pay 3")
    calls = read(messages, {}, {})
    assert lines(calls.left_out_of(messages)) == []
    assert lines(calls.left_out_of(messages[2:])) == ["exec pay 1"]
    assert lines(calls.left_out_of([])) == lines(calls)


def test_ids_that_begin_anew_in_each_turn_are_told_apart_by_their_order() -> None:
    turns = [made(f"pay {turn}", ids="call") for turn in range(3)]
    messages = [message for turn in turns for message in turn]
    calls = read(messages, {}, {})
    assert lines(calls.left_out_of(turns[2])) == ["exec pay 0", "exec pay 1"]


def test_a_call_is_kept_once_it_is_answered() -> None:
    metadata: dict[str, Any] = {}
    messages = made("pay 1", "pay 2")
    messages[3]["content"] = "no money\n\nExit code: 1"
    assert lines(read(messages[:3], metadata, {})) == ["exec pay 1"]
    assert lines(read(messages, metadata, {})) == ["exec pay 1", "exec pay 2 (Exit code: 1)"]


def test_a_call_whose_result_nobody_kept_says_so() -> None:
    messages = made("pay 1", "pay 2")
    del messages[1]
    assert lines(read(messages, {}, {})) == ["exec pay 1 (no result)", "exec pay 2"]


def test_a_session_in_which_nothing_was_changed_keeps_its_metadata() -> None:
    metadata: dict[str, Any] = {"title": "Talk"}
    notes: dict[str, Any] = {}
    looked = made("notes.txt", tool="read_file")
    assert read(looked, metadata, notes) == Calls([])
    assert metadata == {"title": "Talk"}
    assert lines(read([*looked, *made("pay", start=1)], metadata, notes)) == ["exec pay"]


def test_commands_that_only_look_take_no_room() -> None:
    messages = made("ls -la", "cat notes.txt | sort", "rm notes.txt", "ls && rm a")
    assert lines(read(messages, {}, {})) == ["exec rm notes.txt", "exec ls && rm a"]


def test_the_newest_are_kept_and_the_others_counted() -> None:
    metadata: dict[str, Any] = {}
    messages = made(*(f"pay {nth}" for nth in range(MAX_CALLS + 5)))
    calls = read(messages, metadata, {})
    assert (len(calls.newest), calls.before) == (MAX_CALLS, 5)
    again = read([*messages, *made("pay", start=200)], json.loads(json.dumps(metadata)), {})
    assert (len(again.newest), again.before) == (MAX_CALLS, 6)


@pytest.mark.parametrize(
    "metadata",
    [
        {"calls": 3, "calls_state": 4},
        {"calls": [3, ["a"], ["a", "b", 1]], "calls_state": {"covers": "1", "before": "2"}},
        {"calls": {"a": 1}, "calls_state": {"covers": -1, "before": -1}},
        {"calls": None, "calls_state": {"covers": 10**30, "digest": 7}},
    ],
)
def test_metadata_that_somebody_else_wrote_costs_nothing(metadata: dict[str, Any]) -> None:
    calls = read(made("pay 1"), metadata, {})
    assert (lines(calls), calls.before) == (["exec pay 1"], 0)


def test_a_section_names_the_newest_and_counts_the_others() -> None:
    messages = made("pay", "pay", *(f"pay {nth} {'x' * 60}" for nth in range(60)))
    calls = read(messages, {}, {})
    section = calls_section(calls, [{"role": "user", "content": "Go on."}])
    head, _, listed = section.strip().split("\n\n")
    assert head == "## Done Earlier"
    first, *named = listed.splitlines()
    assert first == f"- ({62 - len(named)} before these)"
    assert named[-1] == f"- exec pay 59 {'x' * 60}"
    assert 20 < len(named) < 40

    few = calls_section(read(messages[:6], {}, {}), [{"role": "user", "content": "继续。"}])
    assert few.startswith("\n\n## 已经做过的操作\n\n")
    assert few.endswith(f"\n\n- exec pay ×2\n- exec pay 0 {'x' * 60}")
    assert calls_section(Calls([]), []) == ""
