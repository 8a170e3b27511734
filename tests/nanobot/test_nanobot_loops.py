"""nanobot's own loop, provider and litellm against a server with a window: nothing may overflow."""

from __future__ import annotations

from itertools import pairwise

import pytest

from played import (
    BASELINE,
    FITTING,
    GOES_ON,
    LATER,
    LOSES_REPORTS,
    OTHER_PROVIDERS,
    Played,
    each,
    like,
)
from plays import Result

scenarios = each(*FITTING)
PREVIEWS = ("0.1.5", "0.1.5.post1", "0.1.5.post2", "0.1.5.post3", "0.2.0", "0.2.1")
READS_IN_FULL = ("0.2.2", "0.3.0", "0.3.5", *LATER)
PREVIEWED = {
    *((release, scenario) for release in PREVIEWS for scenario in ("A", "C", "E2")),
    *((release, "E2") for release in READS_IN_FULL),
}
"""Where nanobot itself puts results of more than 16,000 characters into files, and their start into
the conversation."""
NEVER_PRESSED = "0.3.5"
"""The release that consolidates only what does not fit: with the package everything does."""


def unanswered(result: Result) -> list[str]:
    """Return what the user saw in the turns that the model did not answer."""
    return [
        turn["answer"][:200]
        for turn in result["turns"]
        if "DONE" not in turn["answer"] and turn["answer"] != "pong"
    ]


@scenarios
def test_every_turn_is_answered(played: Played, release: str, scenario: str) -> None:
    lost = []
    if scenario == "C" and release in LOSES_REPORTS:
        # Previews let the subagent's files fit: nothing is refused without the package, and yet …
        plain = played.of(release, "C", "off")
        assert plain["overflows"] == 0
        lost = unanswered(plain)
        assert lost == ["The subagent has FAILED."]
    assert unanswered(played.of(release, scenario)) == lost


@scenarios
def test_no_request_is_refused(played: Played, release: str, scenario: str) -> None:
    result = played.of(release, scenario)
    assert [r for r in result["requests"] if r["status"] != 200] == []
    assert result["max_prompt_tokens"] <= result["window"]


@scenarios
def test_system_prompt_and_last_user_message_are_sent_as_they_are(
    played: Played, release: str, scenario: str
) -> None:
    result = played.of(release, scenario)
    assert result["foreign_prompts"] == 0
    assert result["rules_kept"]


@scenarios
def test_what_the_user_asked_stays_in_every_prompt_of_the_turn(
    played: Played, release: str, scenario: str
) -> None:
    assert played.of(release, scenario)["requests_without_the_goal"] == 0


@scenarios
def test_the_list_that_nanobot_keeps_is_not_touched(
    played: Played, release: str, scenario: str
) -> None:
    result = played.of(release, scenario)
    assert result["calls"] > 0
    assert result["lists_changed"] == 0
    assert result["session_faults"] == []


@each("A", "A2", "A-deepseek", "A-table", "A-gateway", "C", "E2", "F")
def test_the_model_sees_head_middle_and_tail_of_every_result(
    played: Played, release: str, scenario: str
) -> None:
    missing = played.of(release, scenario)["facts_missing"]
    if (release, scenario) in PREVIEWED:
        missing = [fact for fact in missing if " head " in fact]
    assert missing == []


def test_the_model_sees_something_of_each_parallel_result(played: Played, release: str) -> None:
    missing = played.of(release, "G")["facts_missing"]
    assert [fact for fact in missing if " head " in fact] == []


def test_memory_is_consolidated_although_the_past_is_larger_than_the_window(
    played: Played, release: str
) -> None:
    assert played.of(release, "memory")["consolidated"] == (like(release) != NEVER_PRESSED)


@pytest.mark.parametrize(
    ("provider", "release"),
    [(name, release) for name, releases in OTHER_PROVIDERS.items() for release in releases],
)
def test_providers_past_litellm_are_protected_too(
    played: Played, provider: str, release: str
) -> None:
    result = played.of(release, provider)
    assert unanswered(result) == []
    assert [r for r in result["requests"] if r["status"] != 200] == []
    assert result["max_prompt_tokens"] <= result["window"]
    assert result["facts_missing"] == []
    assert result["foreign_prompts"] == 0
    assert result["session_faults"] == []


@pytest.mark.parametrize("scenario", ["azure", "thinking"])
def test_a_compressed_request_does_not_go_on_from_what_was_left_out(
    played: Played, scenario: str
) -> None:
    thoughts = [request["thoughts"] for request in played.of(GOES_ON, scenario)["requests"]]
    assert 0 in thoughts[2:], "nothing was compressed: the scenario proves nothing"
    assert max(thoughts) > 2, "nanobot sent no state: the scenario proves nothing"
    for before, now in pairwise(thoughts):
        assert now in (0, before + 1)


def test_thoughts_that_are_in_no_message_are_kept_within_the_window(played: Played) -> None:
    result = played.of(GOES_ON, "thinking")
    assert unanswered(result) == []
    assert [r for r in result["requests"] if r["status"] != 200] == []
    assert result["max_prompt_tokens"] > 0.8 * result["window"]
    assert result["facts_missing"] == []
    assert result["requests_without_the_goal"] == 0


@pytest.mark.parametrize("scenario", FITTING)
def test_without_the_package_the_scenario_fails(played: Played, scenario: str) -> None:
    result = played.of(BASELINE, scenario, "off")
    assert unanswered(result) != []
    assert result["overflows"] > 0
    assert result["malformed"] == []
