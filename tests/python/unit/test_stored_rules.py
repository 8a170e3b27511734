"""Rules of the user in the metadata of a session, whatever becomes of its messages."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from nanobot_context.guard.state_file import set_aside
from nanobot_context.host.stored_rules import MAX_BYTES, read
from nanobot_context.plugins.rules import Forgotten, rules_section

Messages = list[dict[str, Any]]


def said(*texts: str, start: int = 0) -> Messages:
    return [
        {"role": "user", "content": text, "timestamp": f"2026-01-01T00:{minute:02}:00"}
        for minute, text in enumerate(texts, start)
    ]


def test_rules_stay_when_their_messages_are_dropped_and_go_when_the_talk_ends_earlier() -> None:
    metadata: dict[str, Any] = {}
    messages = said("Never push to main.", "How are you?", "Always use tabs.", "Go on.")
    both = ["Never push to main.", "Always use tabs."]
    assert list(read(messages, metadata, {})) == both
    assert list(read(messages[2:], metadata, {})) == both
    assert list(read(messages[:2], metadata, {})) == both[:1]


def test_a_session_without_rules_keeps_its_metadata() -> None:
    metadata: dict[str, Any] = {"title": "Talk"}
    notes: dict[str, Any] = {}
    assert read(said("How are you?"), metadata, notes) == {}
    assert metadata == {"title": "Talk"}
    assert list(read(said("How are you?", "Never push to main."), metadata, notes)) == [
        "Never push to main."
    ]


def test_only_the_user_states_rules_and_the_newest_are_kept() -> None:
    others: Messages = [
        {"role": "assistant", "content": "Never push to main."},
        {"role": "user", "content": "Never push to main.", "injected_event": "subagent_result"},
        {"role": "user", "content": "Never push to main.", "_command": True},
        {"role": "user", "content": [{"type": "text", "text": "Never use tabs."}]},
        {"role": "user"},
    ]
    assert list(read(others, {}, {})) == ["Never use tabs."]
    bans = [f"Never touch file {number:04}." for number in range(MAX_BYTES // 20)]
    kept = list(read(said("I am allergic to nuts.", *bans), {}, {}))
    assert kept == bans[-len(kept) :]
    assert MAX_BYTES - 30 < sum(map(len, kept)) <= MAX_BYTES


def test_what_holds_for_good_outlives_newer_orders() -> None:
    orders = [f"Only list the files of part {number:04}." for number in range(MAX_BYTES // 30)]
    kept = list(read(said("I am allergic to nuts.", *orders), {}, {}))
    assert kept[0] == "I am allergic to nuts."
    assert kept[1:] == orders[-len(kept) + 1 :]


@pytest.mark.parametrize(
    "metadata",
    [
        {"rules": 3, "rules_state": 4},
        {"rules": ["a"], "rules_state": {"covers": "1"}},
        {"rules": {"a": 1}, "rules_state": {"covers": -1}},
        {"rules": None, "rules_state": {"covers": 10**30, "digest": 7}},
    ],
)
def test_metadata_that_somebody_else_wrote_costs_nothing(metadata: dict[str, Any]) -> None:
    assert list(read(said("Never push to main."), metadata, {})) == ["Never push to main."]


def test_what_was_taken_back_is_in_force_again_when_it_is_said_again(tmp_path: Path) -> None:
    forgotten = Forgotten(tmp_path / "state" / "rules.json")
    rules = {"Never push to main.": "2026-01-01T00:00:00", "Use tabs.": "2026-01-01T00:00:00"}
    assert forgotten.without("cli:direct", rules) == rules
    forgotten.add("cli:direct", ["Use tabs."])
    other = Forgotten(forgotten.file)
    assert list(other.without("cli:direct", rules)) == ["Never push to main."]
    assert other.without("cli:other", rules) == rules
    again = {**rules, "Use tabs.": "9999-01-01T00:00:00"}
    assert other.without("cli:direct", again) == again
    assert forgotten.file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "[]", "{", '{"cli:direct": 3}', json.dumps({"a": ["b"]})])
def test_a_damaged_file_takes_nothing_back(tmp_path: Path, text: str) -> None:
    file = tmp_path / "rules.json"
    file.write_text(text)
    rules = {"Use tabs.": ""}
    assert Forgotten(file).without("cli:direct", rules) == rules
    for _ in range(2):
        Forgotten(file).add("cli:direct", ["Use tabs."])
    assert Forgotten(file).without("cli:direct", rules) == {}
    assert set_aside(file).read_text() == text


def test_a_file_that_cannot_be_read_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "state").write_text("no folder")
    forgotten = Forgotten(tmp_path / "state" / "rules.json")
    for _ in range(3):
        assert forgotten.without("cli:direct", {"Use tabs.": ""}) == {"Use tabs.": ""}
    assert [record.getMessage().split("`")[2] for record in caplog.records] == [
        f" cannot be read and counts as empty: [Errno 20] Not a directory: '{forgotten.file}'"
    ]
    with pytest.raises(OSError, match="state"):
        forgotten.add("cli:direct", ["Use tabs."])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    os.mkfifo(file)
    assert Forgotten(file).without("cli:direct", {"Use tabs.": ""}) == {"Use tabs.": ""}
    Forgotten(file).add("cli:direct", ["Use tabs."])
    assert file.is_file()


def test_a_section_is_in_the_language_of_its_rules() -> None:
    assert rules_section(["Never push\nto main."]).endswith("\n\n- Never push to main.")
    assert "仍然有效" in rules_section(["以后都用中文回答。"])
