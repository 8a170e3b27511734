"""Servers that want their models' thoughts back refuse nothing of what is sent."""

from __future__ import annotations

import pytest

from played import REASONED, Played


@pytest.mark.parametrize(("release", "family"), REASONED)
def test_nothing_is_refused_for_its_reasoning(played: Played, release: str, family: str) -> None:
    result = played.of(release, REASONED[release, family])
    assert {request["about"] for request in result["requests"]} == {"answered", "overflow"}
    assert {turn["answer"] for turn in result["turns"]} == {"They are read."}
    assert result["overflows"] == 1
    assert result["malformed"] == []
