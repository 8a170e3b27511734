"""What a provider has cached of a long talk stays what it was until the next step."""

from __future__ import annotations

import pytest

from played import PRICED, Played
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
    assert priced["seen"] > 0.6
