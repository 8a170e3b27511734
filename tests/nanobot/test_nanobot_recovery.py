"""The provider refuses all the same: one repair, or a message that a person can read."""

from __future__ import annotations

import re

import pytest

from played import (
    BASELINE,
    COMPACT_IDLE,
    FALL_BACK,
    KEEP_NAMES,
    LOSES_REPORTS,
    OTHER_PROVIDERS,
    REFUSED,
    RETRIES_DIGITS,
    Played,
    each,
    full,
)
from plays import Result
from refusals import MISCOUNTED, WRONG

REPAIRED = [*(f"wrong-{form}" for form in WRONG), "digits"]
STATES_NO_NUMBER = ("llamacpp_500", "minimax")


def overflow_chains(result: Result) -> list[list[int]]:
    """Return the sizes of each run of requests from a refusal to its turn's next answer.

    A size is that of the prompt with the answer that is asked for: either may become smaller.
    """
    chains: list[list[int]] = []
    refused = None
    for request in result["requests"]:
        call = request["turn"], request["kind"]
        size = request["prompt_tokens"] + request["max_tokens"]
        if refused == call:
            chains[-1].append(size)
        elif request["about"] == "overflow":
            chains.append([size])
        refused = call if request["about"] == "overflow" else None
    return chains


@each(*REPAIRED)
def test_an_overflow_is_repaired_and_answered(played: Played, release: str, scenario: str) -> None:
    result = played.of(release, scenario)
    assert [turn["answer"] for turn in result["turns"]] == ["The work is DONE.", "pong"]
    assert result["malformed"] == []
    assert result["foreign_prompts"] == 0
    assert result["lists_changed"] == 0
    assert result["session_faults"] == []


@each(*REPAIRED)
def test_one_smaller_request_is_enough(played: Played, release: str, scenario: str) -> None:
    chains = overflow_chains(played.of(release, scenario))
    assert chains, "the server refused nothing: the scenario proves nothing"
    for chain in chains:
        assert len(chain) == 2
        assert chain[1] < chain[0]


@full
def test_a_provider_that_counts_more_tokens_is_known_by_its_counts(
    played: Played, release: str
) -> None:
    result = played.of(release, "miscounted")
    assert [turn["answer"] for turn in result["turns"]] == ["The work is DONE.", "pong"]
    assert result["overflows"] == 0
    assert result["max_prompt_tokens"] > 0.7 * result["window"]
    assert result["malformed"] == []


@each(*(f"miscounted-{form}" for form in MISCOUNTED))
def test_after_the_first_refusal_of_a_provider_that_counts_half_as_much_again_none_follows(
    played: Played, release: str, scenario: str
) -> None:
    result = played.of(release, scenario)
    assert [turn["answer"] for turn in result["turns"]] == ["The work is DONE.", "pong"]
    assert result["overflows"] == 1
    assert result["malformed"] == []


def test_a_prompt_that_the_server_cut_is_sent_again_and_the_next_are_smaller(
    played: Played, release: str
) -> None:
    result = played.of(release, "cut")
    answers = [turn["answer"] for turn in result["turns"]]
    assert answers == ["The work is DONE.", "pong", "The work is DONE."]
    assert [request["about"] for request in result["requests"]].count("cut") == 1
    assert result["malformed"] == []
    assert result["session_faults"] == []


@each(*(f"wrong-{form}" for form in WRONG if form not in STATES_NO_NUMBER))
def test_a_limit_that_was_stated_is_remembered(played: Played, release: str, scenario: str) -> None:
    assert played.of(release, scenario)["overflows"] == 1


@each("twice", "mute")
@pytest.mark.parametrize("chinese", [False, True], ids=["english", "chinese"])
def test_when_nothing_helps_the_user_is_told_in_his_language(
    played: Played, release: str, scenario: str, chinese: bool
) -> None:
    turns = played.of(release, scenario)["turns"]
    told, next_turn = turns[2:] if chinese else turns[:2]
    assert told["answer"].strip()
    assert not re.search(r"litellm|Error calling|Exception|2013|\b400\b", told["answer"])
    assert bool(re.search(r"[\u4e00-\u9fff]", told["answer"])) == chinese
    assert next_turn["answer"] == "pong", "the session is poisoned"


@each("twice", "mute", "sub-refused")
def test_attempts_are_few_and_each_is_smaller(played: Played, release: str, scenario: str) -> None:
    result = played.of(release, scenario)
    assert result["malformed"] == []
    assert result["session_faults"] == []
    # Where no limit is stated, one of them may have a shorter answer alone.
    most = 5 if scenario == "mute" else 4
    for chain in overflow_chains(result):
        assert len(chain) <= most
        assert chain == sorted(set(chain), reverse=True)


@full
def test_a_refused_max_tokens_is_lowered_once_and_no_prompt_is_cut(
    played: Played, release: str
) -> None:
    result = played.of(release, "capped")
    answers = [turn["answer"] for turn in result["turns"]]
    assert answers == ["One.", "Two.", "Three.", "pong"]
    refused, *others = result["requests"]
    assert [request["about"] for request in result["requests"]].count("cap") == 1
    assert refused["about"] == "cap"
    assert others[0]["messages"] == refused["messages"]
    assert others[0]["prompt_tokens"] == refused["prompt_tokens"] > 12_000
    sizes = [request["prompt_tokens"] for request in others[:3]]
    assert sizes == sorted(sizes), "a later prompt was cut"


@pytest.mark.parametrize("release", KEEP_NAMES)
def test_an_answer_to_messages_that_cannot_be_counted_is_the_answer(
    played: Played, release: str
) -> None:
    without, protected = (played.of(release, "uncountable", mode) for mode in ("off", "on"))
    assert [turn["answer"] for turn in protected["turns"]] == ["One.", "Two."]
    assert without["notes"]["names"] == [5, 5], "it does not reach the provider"
    assert bodies(without) == bodies(protected)
    assert protected["saved"] == without["saved"]


def test_digits_in_an_overflow_are_not_taken_for_a_transient_error(played: Played) -> None:
    assert played.of(RETRIES_DIGITS, "digits", "off")["overflows"] == 4
    assert played.of(RETRIES_DIGITS, "digits")["overflows"] == 1


@pytest.mark.parametrize(
    ("scenario", "release"),
    [
        (scenario, release)
        for name, releases in OTHER_PROVIDERS.items()
        for scenario in REFUSED[name]
        for release in releases
    ],
)
def test_an_overflow_past_litellm_is_repaired(played: Played, scenario: str, release: str) -> None:
    result = played.of(release, scenario)
    assert [turn["answer"] for turn in result["turns"]] == ["The work is DONE.", "pong"]
    (chain,) = overflow_chains(result)
    assert len(chain) == 2
    assert chain[1] < chain[0]
    assert result["malformed"] == []
    assert result["foreign_prompts"] == 0
    assert result["session_faults"] == []


@pytest.mark.parametrize("release", COMPACT_IDLE)
def test_a_session_that_was_idle_is_compacted_and_goes_on(played: Played, release: str) -> None:
    result = played.of(release, "idle")
    assert [turn["answer"] for turn in result["turns"]] == ["Hello.", "The work is DONE.", "pong"]
    assert result["overflows"] == 0
    assert result["malformed"] == []
    kinds = [request["kind"] for request in result["requests"]]
    assert kinds[1] == "memory", "it was compacted before the next turn"
    assert result["consolidated"]


@pytest.mark.parametrize("release", FALL_BACK)
def test_what_another_model_takes_over_fits_its_window(played: Played, release: str) -> None:
    result = played.of(release, "fallback")
    assert [turn["answer"] for turn in result["turns"]] == ["The work is DONE.", "pong"]
    assert result["overflows"] == 0
    assert result["malformed"] == []
    assert result["requests_without_the_goal"] == 0
    assert {request["model"] for request in result["requests"]} == {"gpt-4o-mini", "gpt-3.5-turbo"}


def test_a_subagent_that_cannot_go_on_reports(played: Played, release: str) -> None:
    result = played.of(release, "sub-refused")
    *earlier, told, next_turn = result["turns"]
    # The subagent is quick: its report may still join the turn that started it.
    late = bool(earlier)
    assert ("[Subagent 'doer'" in told["answer"]) != (late and release in LOSES_REPORTS)
    assert "litellm" not in told["answer"]
    assert next_turn["answer"] == "pong"


def test_other_errors_reach_the_user_unchanged(played: Played, release: str) -> None:
    without, protected = played.of(release, "errors", "off"), played.of(release, "errors")
    answers = [[turn["answer"] for turn in result["turns"]] for result in (without, protected)]
    assert answers[0] == answers[1]
    assert bodies(without) == bodies(protected)


def bodies(result: Result) -> list[str]:
    """Return the hashes of the bodies that the server received."""
    return [request["sha256"] for request in result["requests"]]


@pytest.mark.parametrize("scenario", [*(f"wrong-{form}" for form in WRONG), "twice", "mute"])
def test_without_the_package_the_user_sees_the_raw_error(played: Played, scenario: str) -> None:
    result = played.of(BASELINE, scenario, "off")
    assert result["turns"][0]["answer"].startswith("Error calling LLM")
