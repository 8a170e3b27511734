"""Connections break and servers fail: nanobot does then what it does without the package."""

from __future__ import annotations

import pytest

from faults import FAULTS
from played import Played, full
from plays import Result

faults = pytest.mark.parametrize("fault", FAULTS)
DOES_NOT_RETRY = ("0.1.3.post7", "0.1.4", "0.1.4.post2", "0.1.4.post3", "0.1.4.post4")
"""The releases in which only OpenAI's client repeats a request, twice."""


def met(result: Result, fault: str, *fields: str) -> list[tuple[str, str, list[str], list[Result]]]:
    """Return each turn of the sessions with `fault`: what the user said and saw, and `fields` of
    the requests."""
    return [
        (
            turn["said"],
            turn["answer"],
            turn["shown"],
            [
                {name: request[name] for name in ("kind", "about", "status", *fields)}
                for request in result["requests"]
                if request["turn"] == number
            ],
        )
        for number, turn in enumerate(result["turns"], start=1)
        if f"{fault}-" in turn["said"]
    ]


@full
@faults
def test_the_server_gets_the_same_bytes_and_the_user_sees_the_same(
    played: Played, release: str, fault: str
) -> None:
    plain = met(played.of(release, "faults", "off"), fault, "sha256")
    assert any(request["about"] == fault for *_, requests in plain for request in requests)
    assert met(played.of(release, "faults"), fault, "sha256") == plain


@full
def test_the_same_is_saved(played: Played, release: str) -> None:
    plain = played.of(release, "faults", "off")["saved"]
    assert plain
    assert played.of(release, "faults")["saved"] == plain


@full
@faults
def test_shortened_requests_are_as_many_and_the_user_sees_the_same(
    played: Played, release: str, fault: str
) -> None:
    plain, protected = (played.of(release, "faults-pressed", mode) for mode in ("off", "on"))
    assert met(protected, fault) == met(plain, fault)
    assert protected["foreign_prompts"] == protected["requests_without_the_goal"] == 0
    pairs = zip(protected["requests"], plain["requests"], strict=True)
    assert all(short["prompt_tokens"] < whole["prompt_tokens"] for short, whole in pairs)


@full
def test_the_same_messages_are_saved_although_requests_were_shortened(
    played: Played, release: str
) -> None:
    plain, protected = (
        {
            # 0.3.5 writes the tokens of the last prompt beside them.
            name: [line for line in lines if "_type" not in line]
            for name, lines in played.of(release, "faults-pressed", mode)["saved"].items()
        }
        for mode in ("off", "on")
    )
    assert protected == plain


@full
def test_the_fault_lasts_as_long_as_nanobot_repeats(played: Played, release: str) -> None:
    turns = played.of(release, "faults")["turns"]
    answers = {turn["answer"] for turn in turns if turn["said"].startswith("[429-thrice]")}
    assert (answers == {"It is answered."}) == (release not in DOES_NOT_RETRY)
    assert {turn["answer"] for turn in turns if "[ping]" in turn["said"]} == {"pong"}


@full
def test_a_fault_behind_a_repaired_overflow_is_reported_as_nanobot_does(
    played: Played, release: str
) -> None:
    result = played.of(release, "refused-then-500")
    assert result["overflows"] == 1
    plain = played.of(release, "faults", "off")["turns"]
    fault = next(turn["answer"] for turn in plain if turn["said"].startswith("[500-ever]"))
    assert [turn["answer"] for turn in result["turns"]] == [fault, "pong"]
