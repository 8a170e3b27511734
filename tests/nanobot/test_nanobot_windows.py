"""The window that a request is fitted to, as somebody has written it or a server has said it."""

from __future__ import annotations

import re

from played import GOES_ON, LATER, RESOLVERS, Played, each, full

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


@each("told-preset", "told-code")
def test_the_window_of_the_active_preset_or_of_the_code_is_kept_to(
    played: Played, release: str, scenario: str
) -> None:
    result = played.of(release, scenario)
    assert [turn["answer"] for turn in result["turns"]] == ANSWERS
    assert result["overflows"] == 0
    assert result["max_prompt_tokens"] > 18_000


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
    # Less 15 % and a fifth by our count it would have 0.6 at most.
    assert result["max_prompt_tokens"] > 0.62 * result["window"]


@full
def test_a_server_that_takes_more_framing_refuses_nothing(played: Played, release: str) -> None:
    result = played.of(release, "frames-more")
    assert [turn["answer"] for turn in result["turns"]] == ANSWERS
    assert result["overflows"] == 0
    assert result["max_prompt_tokens"] > 0.6 * result["window"]


@each("own-window")
def test_nanobot_shows_the_window_that_was_set_in_code(
    played: Played, release: str, scenario: str
) -> None:
    turns = played.of(release, scenario)["turns"]
    # 0.1.4.post6 counts by 1,024.
    shown = "/64k (" if release == "0.1.4.post6" else "/65k ("
    assert all(shown in turns[number]["answer"] for number in (0, 2))


@each("long-session")
def test_nanobot_shows_no_more_of_a_long_session_than_is_sent(
    played: Played, release: str, scenario: str
) -> None:
    if release in (GOES_ON, *LATER):
        shown = played.of(release, scenario)["turns"][-1]["answer"]
        [tokens] = re.findall(r"Context: (\d+)k/16k ", shown)
        assert 8 <= int(tokens) < 16


@each("own-window")
def test_nanobots_resolver_changes_only_its_default_selection(
    played: Played, release: str, scenario: str
) -> None:
    notes = played.of(release, scenario)["notes"]
    if release not in RESOLVERS:
        assert notes == {}
        return
    assert notes["resolver"] == {
        "models": ["base-model", "openai/gpt-4.1", "openai/gpt-4.1"],
        "windows": [10_000, 10_000, 65_536],
        "is_selected": True,
    }


@each("own-window")
def test_a_provider_that_is_not_guarded_has_nanobots_own_cut(
    played: Played, release: str, scenario: str
) -> None:
    if release in RESOLVERS:
        sent, alone = (
            played.of(release, scenario, mode)["notes"]["replayed"] for mode in ("on", "off")
        )
        assert sent == alone
        # 0.3.5 gives such a request up.
        assert ("new question" in sent) is (release == "0.3.0")
        assert "long older turn" not in sent
