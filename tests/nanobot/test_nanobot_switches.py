"""On means protected, off means nanobot as it is: in code, by config and for the console."""

from __future__ import annotations

import json

import pytest

from played import LITELLM, RELEASES, SWITCHES, Played, jobs, like
from plays import Result
from saves import SETTINGS

WEB_UI = {"plain", "web UI", "MCP preset"}
WAYS = {
    "0.2.2": WEB_UI,
    "0.3.0": {*WEB_UI, "Feishu login"},
    "0.3.5": {*WEB_UI, "Feishu login", "Weixin login"},
}
"""How nanobot saves its config itself, by release; the others in one way."""


def sent_and_seen(result: Result) -> dict[str, object]:
    """Return the hashes of the request bodies, what the user saw, and what was saved."""
    return {
        "sent": [request["sha256"] for request in result["requests"]],
        "answered": [request["about"] for request in result["requests"]],
        "seen": [(turn["answer"], turn["shown"]) for turn in result["turns"]],
        "saved": result["saved"],
    }


@pytest.mark.parametrize(
    ("release", "mode"),
    [
        (release, mode)
        for release in RELEASES
        for mode in SWITCHES
        if f"switched-off:{mode}" in jobs(release)
    ],
)
def test_switched_off_every_byte_is_that_of_nanobot(
    played: Played, release: str, mode: str
) -> None:
    plain = played.of(release, "switched-off", "off")
    assert sent_and_seen(played.of(release, "switched-off", mode)) == sent_and_seen(plain)


def test_after_disable_every_byte_is_that_of_nanobot(played: Played, release: str) -> None:
    plain = played.of(release, "switched-off", "off")
    after = played.of(release, "console", "console")["switched_off"]
    assert after["error"] is None
    assert sent_and_seen(after) == sent_and_seen(plain)


def test_what_is_switched_off_would_be_noticed(played: Played, release: str) -> None:
    plain = played.of(release, "switched-off", "off")
    assert plain["overflows"] > 0
    assert plain["consolidated"]
    assert any(turn["shown"] for turn in plain["turns"]) == (release not in LITELLM)
    assert sent_and_seen(played.of(release, "switched-off")) != sent_and_seen(plain)


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


def test_settings_in_nanobots_file_outlive_each_of_its_saves(played: Played, release: str) -> None:
    seen = played.of(release, "console", "console")["steps"]["saves"]
    assert seen["code"] == 0, seen["printed"]
    saves = json.loads(seen["printed"].splitlines()[-1])
    assert saves["kept"] == SETTINGS
    assert set(saves["dropped"].values()) == {True}
    assert WAYS.get(like(release), {"plain"}) <= saves["dropped"].keys()


def test_disable_gives_the_console_command_back(played: Played, release: str) -> None:
    steps = played.of(release, "console", "console")["steps"]
    assert steps["disable"]["code"] == 0, steps["disable"]["printed"]
    assert "CONSOLE-DONE" not in steps["unprotected"]["printed"]
    assert steps["unprotected"]["overflows"] == 1


def test_disable_leaves_no_file_behind(played: Played, release: str) -> None:
    assert played.of(release, "console", "console")["left_behind"] == []
