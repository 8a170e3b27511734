"""On means protected, off means nanobot as it is: in code, by config and for the console."""

from __future__ import annotations

import pytest

from played import Played, Result

COMPACT_BY_THEMSELVES = ("0.3.0", "0.3.5")
"""Releases that make room within a turn when they are told the right window."""


def sent_and_seen(result: Result) -> tuple[list[str], list[str]]:
    """Return the hashes of the request bodies, and what the user saw."""
    return (
        [request["sha256"] for request in result["requests"]],
        [turn["answer"] for turn in result["turns"]],
    )


@pytest.mark.parametrize("mode", ["disabled", "removed"])
def test_switched_off_every_request_is_byte_for_byte_that_of_nanobot(
    played: Played, release: str, mode: str
) -> None:
    plain = played.of(release, "switched-off", "off")
    reached = plain["overflows"] == (release not in COMPACT_BY_THEMSELVES)
    assert reached, "the scenario must reach the window to prove anything"
    assert sent_and_seen(played.of(release, "switched-off", mode)) == sent_and_seen(plain)


def test_a_conversation_that_fits_is_sent_byte_for_byte_as_it_is(
    played: Played, release: str
) -> None:
    plain, protected = played.of(release, "small", "off"), played.of(release, "small")
    assert sent_and_seen(protected) == sent_and_seen(plain)


def test_enable_protects_the_console_command(played: Played, release: str) -> None:
    steps = played.of(release, "console", "console")["steps"]
    assert steps["enable"]["code"] == 0, steps["enable"]["printed"]
    assert "CONSOLE-DONE" in steps["protected"]["printed"]
    assert steps["protected"]["overflows"] == 0


def test_disable_gives_the_console_command_back(played: Played, release: str) -> None:
    steps = played.of(release, "console", "console")["steps"]
    assert steps["disable"]["code"] == 0, steps["disable"]["printed"]
    assert "CONSOLE-DONE" not in steps["unprotected"]["printed"]
    assert steps["unprotected"]["overflows"] == 1


def test_disable_leaves_no_file_behind(played: Played, release: str) -> None:
    assert played.of(release, "console", "console")["left_behind"] == []
