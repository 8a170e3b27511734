"""What pages say of settings, errors and counts is what the code does."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from nanobot_context import Settings, count_tokens, detect_overflow
from nanobot_context.settings.names import camel_case, env_name

from .blocks import DOCS, ROOT, Block, blocks_of

SETTINGS_PAGES = sorted(DOCS.glob("settings*.md"))
CHINESE_PAGES = sorted(DOCS.glob("chinese*.md"))
SYMPTOMS = blocks_of(DOCS / "troubleshooting.md")


@pytest.mark.parametrize("page", SETTINGS_PAGES, ids=lambda page: page.name)
def test_every_setting_is_listed_with_its_variable_and_default(page: Path) -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| `([^`]+)` \|", page.read_text("utf-8"), re.M)
    listed = {key: (variable, json.loads(default)) for key, variable, default in rows}
    assert len(listed) == len(rows)
    assert listed == {
        camel_case(item.name): (env_name(item.name), json.loads(json.dumps(item.default)))
        for item in fields(Settings)
    }


@pytest.mark.parametrize("page", CHINESE_PAGES, ids=lambda page: page.name)
def test_the_table_of_chinese_counts_is_counted(page: Path) -> None:
    rows = re.findall(r"^\| `([\w.-]+)` \| (\d+) \|", page.read_text("utf-8"), re.M)
    sentence = re.search(r'^text = "(.+)"$', page.read_text("utf-8"), re.M)
    assert rows
    assert sentence
    message = {"role": "user", "content": sentence[1]}
    assert [(model, count_tokens([message], model)) for model, _ in rows] == [
        (model, int(tokens)) for model, tokens in rows
    ]


def lines_titled(title: str) -> list[str]:
    found = [block for block in SYMPTOMS if block.title == title]
    assert found
    return [line for block in found for line in block.text.splitlines()]


def test_refusals_that_are_said_to_be_repaired_are_recognised() -> None:
    for line in lines_titled("a provider says"):
        assert detect_overflow(line, status=400) is not None, line


def test_errors_that_are_said_to_pass_through_are_no_overflows() -> None:
    for line in lines_titled("a provider says something else"):
        assert detect_overflow(line, status=400) is None, line


def literal(node: ast.expr) -> str:
    """Return a text in the code, an f-string with a gap for each value; nothing for the rest."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
        return "".join(map(str, parts))
    return ""


def said_by_the_package() -> str:
    """Every text in its Python sources, f-strings with a gap for each value."""
    texts = []
    for path in (ROOT / "python").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
            elif isinstance(node, ast.JoinedStr):
                texts.append(literal(node))
    return re.sub(r"\{\w+\}", "…", "\n".join(texts))


@pytest.mark.parametrize("title", ["doctor says", "log"])
def test_messages_that_pages_quote_are_in_the_code(title: str) -> None:
    said = said_by_the_package()
    for line in lines_titled(title):
        for part in line.split("…"):
            assert part.strip() in said, line


def test_every_problem_that_doctor_names_is_on_the_page() -> None:
    source = (ROOT / "python/nanobot_context/doctor.py").read_text(encoding="utf-8")
    texts = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Finding":
            texts.append(literal(node.args[0]))
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "problem":
            texts.append(literal(node.value))
    problems = [text for text in texts if text]
    assert len(problems) > 8
    quoted = "\n".join(lines_titled("doctor says"))
    longest = [max(re.split("…|: ", text), key=len).strip(" (`") for text in problems]
    assert [text for text in longest if text not in quoted] == []


def test_files_of_the_repository_that_pages_name_are_there() -> None:
    folders = "src|python|tests|benches|fuzz|scripts|examples|evaluation|training|licenses|.github"
    artifacts = "fuzz/artifacts"  # made where something was found
    named = [
        (page.name, found)
        for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
        for found in re.findall(rf"`((?:{folders})/[\w./-]*)`", page.read_text("utf-8"))
        if found != artifacts
    ]
    assert named
    assert [pair for pair in named if not (ROOT / pair[1]).exists()] == []


def test_the_settings_files_of_pages_are_named() -> None:
    untitled: list[Block] = [
        block
        for page in DOCS.rglob("*.md")
        for block in blocks_of(page)
        if block.language == "json" and not block.title
    ]
    assert [block.place for block in untitled] == []


def test_each_row_of_the_documents_names_a_place_and_a_test_that_exist() -> None:
    page = (DOCS / "documents.md").read_text("utf-8")
    rows = re.findall(r"^\| [^|]+ \| [^|]+ \| `([^`]+)` \| `([^`:]+)::(\w+)` \|$", page, re.M)
    assert len(rows) == len(re.findall(r"^\| (?!section )", page, re.M)) >= 178
    for place, file, test in rows:
        assert (ROOT / place).exists(), place
        assert re.search(rf"^\s*(?:def|fn) {test}\(", (ROOT / file).read_text("utf-8"), re.M), test
