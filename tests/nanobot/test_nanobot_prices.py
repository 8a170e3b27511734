"""What a provider has cached of a long talk stays what it was until the next step."""

from __future__ import annotations

import pytest

from played import BASELINE, CONSOLIDATING, GOES_ON, PRICED, Played
from priced import TURNS


@pytest.mark.parametrize("release", PRICED)
def test_a_prompt_begins_with_the_one_before_but_for_rare_steps(
    played: Played, release: str
) -> None:
    priced = played.of(release, "priced")["notes"]["priced"]
    assert priced["answered"] == TURNS
    # Steps, and what nanobot consolidates itself: nothing else.
    assert priced["breaks"] <= 6
    assert priced["reuse"] > 0.85
    assert priced["cost"] < priced["whole"]


@pytest.mark.parametrize("release", [BASELINE, GOES_ON])
def test_a_step_keeps_what_was_named(played: Played, release: str) -> None:
    assert played.of(release, "priced")["notes"]["priced"]["seen"] > 0.6


@pytest.mark.parametrize("release", CONSOLIDATING)
def test_a_turn_that_nanobot_consolidates_before_is_no_step_as_well(
    played: Played, release: str
) -> None:
    # Seven, when the message to come was counted as the few words of nanobot's probe.
    assert played.of(release, "priced")["notes"]["priced"]["breaks"] == 4
