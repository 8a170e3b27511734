"""The window that a request is fitted to, as somebody has written it or a server has said it."""

from __future__ import annotations

from played import Played, each, full

ANSWERS = ["The work is DONE.", "pong"]


@each("told-more", "told-unsaid")
def test_a_window_that_was_told_too_large_costs_one_refusal(
    played: Played, release: str, scenario: str
) -> None:
    result = played.of(release, scenario)
    assert [turn["answer"] for turn in result["turns"]] == ANSWERS
    assert result["overflows"] == 1
    assert result["malformed"] == []


def test_no_prompt_is_cut_by_a_server_whose_window_was_told(played: Played, release: str) -> None:
    result = played.of(release, "told-65536")
    assert [turn["answer"] for turn in result["turns"]] == ANSWERS
    assert [request["about"] for request in result["requests"]].count("cut") == 0
    assert result["accepted"] > 20


@each("told-preset")
def test_the_window_of_the_active_preset_is_kept_to(
    played: Played, release: str, scenario: str
) -> None:
    result = played.of(release, scenario)
    assert [turn["answer"] for turn in result["turns"]] == ANSWERS
    assert result["overflows"] == 0
    assert result["max_prompt_tokens"] > 20_000


def test_a_block_limit_caps_prompts(played: Played, release: str) -> None:
    result = played.of(release, "told-block")
    assert [turn["answer"] for turn in result["turns"]] == ANSWERS
    assert 10_000 < result["max_prompt_tokens"] <= 15_000


@full
def test_a_server_that_cuts_less_than_half_of_a_prompt_is_noticed_at_once(
    played: Played, release: str
) -> None:
    result = played.of(release, "told-cut")
    assert [turn["answer"] for turn in result["turns"]] == ANSWERS
    assert [request["about"] for request in result["requests"]].count("cut") == 1
    assert result["malformed"] == []


@full
def test_a_server_that_counts_fewer_tokens_is_sent_more(played: Played, release: str) -> None:
    result = played.of(release, "counts-less")
    assert [turn["answer"] for turn in result["turns"]] == ANSWERS
    assert result["overflows"] == 0
    assert result["max_prompt_tokens"] > 0.65 * result["window"]


@full
def test_a_server_that_takes_more_framing_refuses_nothing(played: Played, release: str) -> None:
    result = played.of(release, "frames-more")
    assert [turn["answer"] for turn in result["turns"]] == ANSWERS
    assert result["overflows"] == 0
    assert result["max_prompt_tokens"] > 0.65 * result["window"]
