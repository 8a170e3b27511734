"""Rules of the user, and what was done, outlive nanobot's own consolidation, in its own loop."""

from __future__ import annotations

from played import CONSOLIDATES, Played
from ruled import FACT, RULE, TURNS


def test_what_nanobot_leaves_out_is_still_said_once(played: Played, release: str) -> None:
    notes = played.of(release, "ruled")["notes"]
    assert notes["in the history"] == {RULE: [1, 0], FACT: [1, 0]}
    # Not every release leaves out what it has consolidated.
    assert {times for times, _ in notes["left out"].values()} == {1}
    assert notes["dropped"] == {RULE: [1, 1], FACT: [1, 1]}


def test_what_was_done_in_messages_that_are_left_out_is_said_once(
    played: Played, release: str
) -> None:
    notes = played.of(release, "ruled")["notes"]
    said = {when: notes[f"done, {when}"] for when in ("in the history", "left out", "dropped")}
    times = int(notes["calls are kept"])
    assert said == {"in the history": 0, "left out": times, "dropped": times}
    assert notes["done, cleared"] == 0


def test_rules_are_listed_and_taken_back(played: Played, release: str) -> None:
    notes = played.of(release, "ruled")["notes"]
    listed = [line.split(maxsplit=1)[1] for line in notes["listed"]]
    assert listed == [RULE, FACT, f"As I said: {RULE.lower()}"]
    # What was said again is in the history now.
    assert notes["taken back"] == {RULE: [1, 0], FACT: [0, 0]}


def test_a_cleared_session_has_no_rules(played: Played, release: str) -> None:
    assert played.of(release, "ruled")["notes"]["cleared"] == {RULE: [0, 0], FACT: [0, 0]}


def test_a_rule_of_the_first_of_sixty_turns_is_in_every_prompt(played: Played) -> None:
    assert played.of(CONSOLIDATES, "sixty")["notes"]["ruled"] == [True] * TURNS
    assert sum(played.of(CONSOLIDATES, "sixty", "off")["notes"]["ruled"]) < TURNS / 3
