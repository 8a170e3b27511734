"""What a small window may not make the model forget: rules, the task, and the calls that ran."""

from __future__ import annotations

import pytest

from forgetting import TOLD, WINDOWS, name_of
from played import FORGETTING, Played

RELEASES = pytest.mark.parametrize("release", FORGETTING)
SMALL = pytest.mark.parametrize("window", WINDOWS)


@RELEASES
@SMALL
@pytest.mark.parametrize("is_known", [True, False], ids=["known", "told 200,000"])
def test_rules_the_task_and_every_call_stay_and_nothing_runs_twice(
    played: Played, release: str, window: int, is_known: bool
) -> None:
    result = played.of(release, name_of(window, window if is_known else TOLD))
    answers = ["Yes, Captain.", "The work is DONE.", "pong"]
    assert [turn["answer"] for turn in result["turns"]] == answers
    assert result["notes"]["missing"] == []
    assert result["notes"]["log"] == ["one", "two"]
    assert result["malformed"] == []


@RELEASES
@SMALL
def test_a_known_window_refuses_nothing_and_another_once(
    played: Played, release: str, window: int
) -> None:
    assert played.of(release, name_of(window, window))["overflows"] == 0
    assert played.of(release, name_of(window, TOLD))["overflows"] <= 1
