"""A process that says one short thing loads no vocabulary: it costs up to half a second."""

from __future__ import annotations

import pytest

from played import FULL, GOES_ON
from plays import drive, locked

RELEASES = (*FULL[:2], GOES_ON) if len(FULL) > 2 else FULL


@pytest.mark.parametrize("release", RELEASES)
def test_a_process_that_says_one_short_thing_to_a_known_model_loads_no_vocabulary(
    release: str,
) -> None:
    with locked(release):
        [result] = drive(release, ["first-words:on"])
    assert result["error"] is None
    assert [turn["answer"] for turn in result["turns"]] == ["Hello!"]
    assert result["notes"]["prompt_tokens"] > 1_000
    assert result["notes"]["loaded"] == []
    assert result["notes"]["loaded_by_counting"] == ["o200k_base"]
