"""What the user asks for of what was left out comes back, and the cached prefix stays."""

from __future__ import annotations

from played import Played, each
from recalled import TURNS


@each("recalled")
def test_what_is_asked_for_is_quoted_and_every_prompt_begins_with_the_one_before(
    played: Played, release: str, scenario: str
) -> None:
    result = played.of(release, scenario)
    assert [turn["answer"] for turn in result["turns"]] == ["The work is DONE.", *TURNS.values()]
    in_words, small_talk, by_name, later = (result["notes"][said] for said in TURNS)
    assert in_words["shown"] == small_talk["shown"] == [True, False]
    assert by_name["shown"] == later["shown"] == [True, True]
    assert all(result["notes"][said]["goes on"] for said in TURNS)
    assert result["overflows"] == 0
