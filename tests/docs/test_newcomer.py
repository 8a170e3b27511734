"""A newcomer's first five minutes: the start page, block by block, beside a clean nanobot.

The model's server is smaller than the page says, so that the request of step 4, which was made to
fit, is refused and has to be repaired.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from server import ModelServer

from .blocks import DOCS, Block, blocks_of
from .reader import Reader, make_environment, set_up_nanobot

WINDOW = 14_000
STEPS = [block for block in blocks_of(DOCS / "start-nanobot.md") if not block.not_run]
SESSION = "cli:direct"


@dataclass
class Followed:
    """What each step of the page printed, by the first words of its command."""

    said: dict[str, str]
    server: ModelServer
    home: Path
    installed: tuple[set[str], set[str]]
    """The environment's packages folder before the first step and behind the last one."""


def commands(block: Block) -> list[str]:
    """Return what a person types of `block`."""
    lines = block.text.splitlines()
    if block.language == "console":
        return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return lines if block.language == "sh" else []


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment in which nanobot is, and this package is not: its `bin`."""
    return make_environment(tmp_path_factory.mktemp("newcomer") / "venv")


@pytest.fixture(scope="module")
def followed(clean: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Followed]:
    """The page has been followed to its end."""
    home = tmp_path_factory.mktemp("home")
    reader = Reader(clean, home)
    packages = next(clean.parent.glob("lib/python*/site-packages"))
    with ModelServer(lambda _: "", window=WINDOW) as server:
        set_up_nanobot(home, server)
        before = {path.name for path in packages.iterdir()}
        said: dict[str, str] = {}
        for block in STEPS:
            printed = reader.follow(block)
            for command in commands(block):
                said[command] = said.get(command, "") + printed
        after = {path.name for path in packages.iterdir()}
        yield Followed(said, server, home, (before, after))


def said_by(followed: Followed, words: str) -> str:
    found = [said for command, said in followed.said.items() if words in command]
    assert found, words
    return found[-1]


def test_nanobot_answers_though_the_provider_refused(followed: Followed) -> None:
    about = [request.about for request in followed.server.requests]
    assert about == ["answered", "overflow", "answered"]
    assert "The last line is an error." in said_by(followed, "nanobot agent")


def test_the_last_line_of_the_file_reached_the_model(followed: Followed) -> None:
    last = followed.server.requests[-1]
    assert last.prompt_tokens <= WINDOW
    assert "disk full on node-7" in last.text
    assert "GET /orders/1000 " not in last.text


def test_status_tells_what_was_done(followed: Followed) -> None:
    said = said_by(followed, "nanobot-context status")
    assert "made smaller" in said
    assert "1 of these answered after a retry" in said
    assert re.search(r"^window +14,000 tokens \(the server said so\)$", said, re.MULTILINE)


def test_the_report_is_there_and_has_the_conversation(followed: Followed) -> None:
    page = (followed.home / "report.html").read_text(encoding="utf-8")
    assert SESSION in page
    assert "disk full on node-7" in page


def test_the_end_of_the_page_leaves_the_package_and_no_hook(followed: Followed) -> None:
    before, after = followed.installed
    added = {name for name in after - before if not name.startswith("__pycache__")}
    assert {name.partition("-")[0] for name in added} == {"nanobot_context"}


def test_the_page_asks_for_little() -> None:
    assert len([command for block in STEPS for command in commands(block)]) <= 10
