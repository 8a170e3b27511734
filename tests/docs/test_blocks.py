"""Every code block of the README and of the documentation is followed, page by page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import nanobot_context

from .blocks import DOCS, LANGUAGES, ROOT, Block, blocks_of, fixtures_of, name_of, pages
from .reader import Reader

START = DOCS / "start-nanobot.md"  # followed by test_newcomer.py
RUN = ("python", "sh", "console", "json")
NOT_RUN = 4


def runs(page: Path) -> list[tuple[str, str, str]]:
    """Return what is run of `page`."""
    return [
        (block.language, block.title, block.text)
        for block in blocks_of(page)
        if block.language in RUN and not block.not_run
    ]


def with_code() -> list[Path]:
    """Pages that something is run of, translations with the very same code aside."""
    found = []
    for page in pages():
        original = page.with_name(page.name.replace(".zh.md", ".md"))
        if runs(page) and page != START and (page == original or runs(page) != runs(original)):
            found.append(page)
    return found


@pytest.mark.parametrize("page", with_code(), ids=name_of)
def test_a_page_can_be_followed(page: Path, reader: Reader, request: pytest.FixtureRequest) -> None:
    for fixture in fixtures_of(page):
        request.getfixturevalue(fixture)
    for block in blocks_of(page):
        reader.follow(block)


def all_blocks() -> list[Block]:
    return [block for page in pages() for block in blocks_of(page)]


def test_every_block_is_of_a_known_language() -> None:
    assert [block.place for block in all_blocks() if block.language not in LANGUAGES] == []


def test_what_is_not_run_is_known() -> None:
    places = [f"{block.place}: {block.not_run}" for block in all_blocks() if block.not_run]
    assert len(places) == NOT_RUN, "\n".join(places)


def test_examples_that_pages_show_are_run_by_their_own_tests() -> None:
    shown = {block.example for block in all_blocks() if block.example}
    assert shown == {str(path.relative_to(ROOT)) for path in (ROOT / "examples").glob("*.py")}
    assert list((ROOT / "tests" / "examples").glob("test_*.py"))


def test_a_block_that_fails_is_noticed(reader: Reader, tmp_path: Path) -> None:
    for language, text in [
        ("python", "assert False\n"),
        ("python", "print(1)  # 2\n"),
        ("sh", "false\n"),
        ("console", "$ echo one\ntwo\n"),
        ("json", "{'a': 1}\n"),
    ]:
        block = Block(ROOT / "README.md", 1, language, "", text, "")
        with pytest.raises((AssertionError, ValueError)):
            reader.follow(block)


def test_a_setting_that_does_not_exist_is_noticed(reader: Reader) -> None:
    text = '{"contextWindowOverrides": 1000}'
    block = Block(ROOT / "README.md", 1, "json", "nanobot-context.json", text, "")
    with pytest.raises(ValueError, match="contextWindowOverride"):
        reader.follow(block)


def test_docstrings_have_no_blocks_which_nothing_runs() -> None:
    sources = [*(ROOT / "python").rglob("*.py"), *(ROOT / "src" / "python").rglob("*.rs")]
    assert sources
    assert [path for path in sources if "```py" in path.read_text(encoding="utf-8")] == []


def test_what_the_readme_calls_is_there() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    called = re.findall(r"\| `(?:await )?(\w+)\(", readme)
    called += re.findall(r"nanobot_context\.(\w+)\(", readme)
    assert called
    assert [name for name in called if not hasattr(nanobot_context, name)] == []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_pages_of_the_repository_link_to_files_that_are_there(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_targets_that_contributors_are_told_of_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    told = re.findall(r"^make ([\w-]+)", text, re.MULTILINE)
    assert {"setup", "test", "check", "fuzz"} <= set(told)
    assert [target for target in told if target not in targets] == []


def test_chinese_pages_have_the_code_of_the_english_ones() -> None:
    for page in sorted(DOCS.rglob("*.zh.md")):
        english = page.with_name(page.name.replace(".zh.md", ".md"))
        kinds = [[block.language for block in blocks_of(one)] for one in (english, page)]
        assert kinds[0] == kinds[1], page.name


def test_a_command_of_ours_stands_with_what_it_prints() -> None:
    silent = [
        block.place
        for block in all_blocks()
        if block.language == "sh" and block.page.is_relative_to(DOCS) and not block.not_run
        if re.search(r"^nanobot-context ", block.text, re.MULTILINE)
    ]
    assert silent == []
