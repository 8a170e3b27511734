"""Long talks whose old turns are summarised in the background, by nanobot's own loop."""

from __future__ import annotations

import pytest

from played import BASELINE, COMPACT_IDLE, GOES_ON, LATER, Played, like
from summarised import LATE_TURNS, TURNS

LONG = ((BASELINE, "talk-troubled"), (GOES_ON, "talk-troubled"), (GOES_ON, "talk-late"))
STRICT = (*LONG, (GOES_ON, "talk-thinking"))
LOSES_ANSWERS = "0.1.4.post2"
"""The release that saves what the user says, and no answer."""
FORKS = ("0.2.2", "0.3.0", "0.3.5", *LATER)
"""The releases that make a new session of the start of another."""

long_talks = pytest.mark.parametrize(("played_release", "name"), LONG)
strict_talks = pytest.mark.parametrize(("played_release", "name"), STRICT)


@strict_talks
def test_each_message_is_covered_by_the_summary_or_shown_and_no_summary_goes_back(
    played: Played, played_release: str, name: str
) -> None:
    notes = played.of(played_release, name)["notes"]
    assert notes["faults"] == []
    assert -1 not in notes["injected"], "the text of no summary that the session has had"
    assert max(notes["injected"]) >= 2


@long_talks
def test_the_summaries_follow_each_other_and_the_last_is_shown_after_a_restart(
    played: Played, played_release: str, name: str
) -> None:
    notes = played.of(played_release, name)["notes"]
    assert notes["asked"] == TURNS + 2
    versions = [one["version"] for one in notes["summaries"]]
    assert versions == list(range(1, len(versions) + 1))
    covers = [one["covers"] for one in notes["summaries"]]
    assert covers == sorted(set(covers))
    assert notes["injected"][-1] >= versions[-1] - 1 >= 1


@long_talks
def test_the_session_file_keeps_every_message_and_nanobot_alone_goes_on_with_it(
    played: Played, played_release: str, name: str
) -> None:
    result = played.of(played_release, name)
    notes = result["notes"]
    before, after = notes["in_file"], notes["afterwards"]["in_file"]
    assert before["questions"] == before["answers"] == notes["asked"]
    assert before["root"] == []
    assert before["has_text"]
    assert before["version"] == notes["summaries"][-1]["version"]
    assert result["turns"][-1]["answer"] == "pong"
    assert notes["afterwards"]["injected"] == 0
    assert after == before
    assert result["session_faults"] == []
    assert result["lists_changed"] == 0


@pytest.mark.parametrize("played_release", [BASELINE, GOES_ON])
def test_no_reply_waits_for_summaries_that_fail(played: Played, played_release: str) -> None:
    late = played.of(played_release, "talk-troubled")["notes"]["turns_late"]
    assert len(late) > 10
    assert min(late) == 1, "the next turn could not begin before the answer"


def test_no_reply_waits_for_a_summary_that_takes_long(played: Played) -> None:
    notes = played.of(GOES_ON, "talk-late")["notes"]
    assert max(notes["turns_late"]) == LATE_TURNS
    # All the while the one before was shown, and then the late one.
    assert notes["injected"].count(1) > TURNS / 2
    assert 2 in notes["injected"]


@pytest.mark.parametrize("played_release", [BASELINE, GOES_ON])
def test_nothing_is_summarised_unasked(played: Played, played_release: str) -> None:
    assert played.of(played_release, "talk-plain")["notes"]["summaries"] == []


@pytest.mark.parametrize("played_release", [BASELINE, GOES_ON])
def test_a_model_that_fails_refuses_or_says_nothing_is_replaced_by_rules(
    played: Played, played_release: str
) -> None:
    summaries = played.of(played_release, "talk-troubled")["notes"]["summaries"]
    failed, refused, empty, call, nonsense, flood, good = summaries[:7]
    assert [one["made_by"] for one in (failed, empty, call)] == ["local"] * 3
    assert "The server had an error" in failed["error"]
    assert (refused["made_by"], refused["chunks"]) == ("model", 2)
    assert [one["made_by"] for one in (nonsense, flood, good)] == ["model"] * 3


@pytest.mark.parametrize("played_release", [BASELINE, GOES_ON])
def test_chinese_is_summarised_in_chinese_although_tools_speak_english(
    played: Played, played_release: str
) -> None:
    notes = played.of(played_release, "talk-chinese")["notes"]
    assert any(notes["english"])
    assert set(notes["prompts"]) == {
        "请将以下对话历史压缩为简洁的摘要，保留关键信息、用户偏好和重要决策。"
    }


@pytest.mark.parametrize("played_release", [BASELINE, GOES_ON])
def test_older_rounds_are_summarised_after_the_interval(
    played: Played, played_release: str
) -> None:
    notes = played.of(played_release, "talk-rolling")["notes"]
    assert notes["reasons"] == ["rolling"] * 2
    # Ten rounds each, and the newest two stay: a round with a tool has four messages.
    assert [one["covers"] for one in notes["summaries"]] == [22, 44]
    assert notes["faults"] == []


@pytest.mark.parametrize("played_release", [BASELINE, GOES_ON])
def test_a_summary_takes_the_place_of_what_a_small_window_would_cut(
    played: Played, played_release: str
) -> None:
    notes = played.of(played_release, "talk-window")["notes"]
    assert set(notes["reasons"]) == {"token_limit"}
    assert len(notes["reasons"]) >= 3
    # Nothing is left out, before there is a summary and after it.
    assert not any(notes["marked"])
    assert notes["faults"] == []
    assert min(notes["injected"][notes["injected"].index(1) :]) >= 1


def test_what_a_provider_goes_on_from_is_left_when_a_summary_covers_it(played: Played) -> None:
    result = played.of(GOES_ON, "talk-thinking")
    injected = result["notes"]["injected"]
    thoughts = [request["thoughts"] for request in result["requests"] if request["kind"] == "main"]
    assert max(thoughts) > 2, "nanobot sent no state: the talk proves nothing"
    first_shown = {version: injected.index(version) for version in set(injected) - {0}}
    assert {thoughts[number] for number in first_shown.values()} == {0}


def test_nanobots_own_consolidation_goes_on_beside_the_summaries(played: Played) -> None:
    result = played.of(BASELINE, "talk-both")
    notes = result["notes"]
    assert result["consolidated"]
    assert len(notes["summaries"]) >= 3
    assert [fault for fault in notes["faults"] if "neither" not in fault] == []
    assert notes["in_file"]["questions"] == notes["in_file"]["answers"] == notes["asked"]


def test_every_release_makes_keeps_and_shows_summaries(played: Played, release: str) -> None:
    notes = played.of(release, "talk-short")["notes"]
    assert len(notes["summaries"]) >= 2
    assert {one["made_by"] for one in notes["summaries"]} == {"model"}
    assert max(notes["injected"]) >= len(notes["summaries"]) - 1
    assert notes["in_file"]["version"] == len(notes["summaries"])
    if release != LOSES_ANSWERS:
        assert notes["faults"] == []


def test_a_summary_of_messages_that_nanobot_dropped_of_an_idle_session_is_not_shown(
    played: Played, release: str
) -> None:
    notes = played.of(release, "talk-short")["notes"]
    if release in COMPACT_IDLE:
        # 0.3.5 puts a mark into the session and drops nothing.
        assert (notes["after_idle"] > 0) == (like(release) == GOES_ON)
    else:
        assert "after_idle" not in notes


def test_a_new_session_has_no_summary_of_the_one_before(played: Played, release: str) -> None:
    assert played.of(release, "talk-short")["notes"]["after_new"] == {"injected": 0, "metadata": []}


def test_a_fork_has_the_summary_only_where_all_that_it_covers_is_in_it(
    played: Played, release: str
) -> None:
    shown = played.of(release, "talk-short")["notes"]["fork"]
    if release not in FORKS:
        assert shown is None
        return
    (early,), (late,) = shown
    assert early.startswith("Question 000")
    assert late.startswith("Question 02")
