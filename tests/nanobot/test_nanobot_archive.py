"""Originals of shortened tool results are read back with nanobot's own `read_file`."""

from __future__ import annotations

import re
import sys
from pathlib import PurePosixPath
from typing import Any

import pytest

from played import Played

FROM_ANYWHERE = {"0.1.3.post7", "0.1.4"}
"""The releases whose `read_file` does not start from the workspace."""


@pytest.fixture
def notes(played: Played, release: str) -> dict[str, Any]:
    result = played.of(release, "readback")
    assert "DONE" in result["turns"][0]["answer"], result["turns"][0]["answer"]
    assert [r for r in result["requests"] if r["status"] != 200] == []
    noted: dict[str, Any] = result["notes"]
    return noted


def test_read_file_opens_the_path_in_the_mark(notes: dict[str, Any]) -> None:
    # 0.1.4.post5 numbers the lines of whatever it reads.
    read = re.sub(r"^\d+\| ", "", notes["read"], flags=re.MULTILINE)
    original = re.sub(r"^\d+\| ", "", notes["original"], flags=re.MULTILINE)
    read = re.sub(r"^\d+\| ", "", read, flags=re.MULTILINE)
    assert len(original) > 10_000
    assert read.startswith(original)


def test_the_file_holds_the_result_as_the_model_first_saw_it(notes: dict[str, Any]) -> None:
    name = PurePosixPath(notes["path"]).name
    assert notes["kept"][name] == notes["original"]
    if sys.platform != "win32":
        assert notes["modes"] == [0o600]


def test_the_path_is_as_short_as_the_release_allows(notes: dict[str, Any], release: str) -> None:
    start = "~/.nanobot/workspace/" if release in FROM_ANYWHERE else ""
    assert re.fullmatch(rf"{start}\.nanobot-context/results/[0-9a-f]{{16}}\.txt", notes["path"])


def test_what_was_read_back_names_the_same_file_and_is_not_kept_again(
    notes: dict[str, Any],
) -> None:
    again = notes["shortened_again"]
    assert len(again) < len(notes["read"]) / 2
    assert notes["path"] in again
    head = notes["original"].splitlines()[0]
    assert [name for name, text in notes["kept"].items() if head in text] == [
        PurePosixPath(notes["path"]).name
    ]
