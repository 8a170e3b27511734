"""The examples in docstrings and documents run."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import nanobot_context
from nanobot_context import _core, errors, overflow, session, settings, types

ROOT = Path(__file__).parents[3]
FENCE = re.compile(r"^( *)```(?:python|py)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
MODULES = [nanobot_context, _core, errors, overflow, session, settings, types]


def docstrings(module: ModuleType) -> list[tuple[str, str]]:
    found = [(module.__name__, inspect.getdoc(module) or "")]
    for name, value in vars(module).items():
        if not name.startswith("_") and (inspect.isclass(value) or callable(value)):
            found.append((f"{module.__name__}.{name}", inspect.getdoc(value) or ""))
            members = vars(value) if inspect.isclass(value) else {}
            for member, function in members.items():
                if not member.startswith("_") and callable(function):
                    place = f"{module.__name__}.{name}.{member}"
                    found.append((place, inspect.getdoc(function) or ""))
    return found


def examples() -> list[Any]:
    """Every block of Python, as (id, source); nanobot's own examples need nanobot."""
    texts = [pair for module in MODULES for pair in docstrings(module)]
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    texts += [
        (str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
        for path in documents
        if path.exists()
    ]
    found = []
    for place, text in texts:
        for number, match in enumerate(FENCE.finditer(text)):
            source = inspect.cleandoc(match[2])
            if not re.search(r"^\s*(import|from) nanobot(\.| )", source, re.MULTILINE):
                found.append(pytest.param(source, id=f"{place}-{number}"))
    return found


@pytest.mark.parametrize("source", examples())
def test_an_example_runs(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(source, "<example>", "exec"), {"__name__": "__example__"})
    # `print(...)  # text` promises what is printed.
    promised = re.findall(r"^print\(.*\)  # (.+)$", source, re.MULTILINE)
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in printed if line in promised] == promised


def test_the_readme_has_an_example() -> None:
    assert any(str(example.id).startswith("README.md") for example in examples())


def test_what_the_readme_calls_is_there() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = re.findall(r"\| `(?:await )?(\w+)\(", readme)
    attributes = re.findall(r"nanobot_context\.(\w+)\(", readme)
    assert table
    missing = {name for name in table + attributes if not hasattr(nanobot_context, name)}
    assert not missing
