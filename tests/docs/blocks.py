"""The code blocks of the README and of `docs/`, and what they need.

A block says by its language what is done with it: `python` and `sh` are run, of `console` the
lines behind `$ ` are run and the rest is what they print (`…` stands for anything), `json` with a
settings file's name as its title is read as that file. `text` is no code. Two comments, which no
page shows:

    <!-- with: provider nanobot -->    fixtures that the page needs
    <!-- not run: REASON -->           right above a block: it is only looked at
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LANGUAGES = {"python", "sh", "console", "json", "text"}

_FENCE = re.compile(r"^( *)```(\w*)(.*)$")
_TITLE = re.compile(r'title="([^"]+)"')
_NOT_RUN = re.compile(r"^ *<!-- not run: (.+) -->$")
_WITH = re.compile(r"^<!-- with: (.+) -->$", re.MULTILINE)
_OWN_COMMAND = re.compile(r"(?:make ([\w-]+)|(?:\.venv/bin/)?python ([\w/]+\.py))(?: .*)?")
_EXAMPLE = re.compile(r"--8<--\n(examples/\w+\.py)\n--8<--\n")


@dataclass(frozen=True)
class Block:
    """One code block. `line` is where its first line stands."""

    page: Path
    line: int
    language: str
    title: str
    text: str
    not_run: str
    example: str = ""
    """The file of `examples/` that the block shows whole: tests/examples runs those."""

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def own_commands(self) -> list[tuple[str, str]]:
        """What the repository itself runs, where the block has nothing else: (target, script).

        Benchmarks, evaluations and the tests take from minutes to hours.
        """
        found = [_OWN_COMMAND.fullmatch(line) for line in self.text.splitlines()]
        return [(match[1] or "", match[2] or "") for match in found if match] if all(found) else []


def pages() -> list[Path]:
    """Every page, the README first."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    """Return a page's name as test ids have it."""
    return str(page.relative_to(ROOT))


def fixtures_of(page: Path) -> list[str]:
    """Return the names of the fixtures that `page` asks for."""
    return " ".join(_WITH.findall(page.read_text(encoding="utf-8"))).split()


def blocks_of(page: Path) -> list[Block]:
    """Return the code blocks of `page` in their order."""
    return list(_blocks(page))


def _blocks(page: Path) -> Iterator[Block]:
    lines = page.read_text(encoding="utf-8").splitlines()
    reason, number = "", 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if found := _NOT_RUN.match(line):
            reason = found[1]
        opening = _FENCE.match(line)
        if opening is None:
            reason = reason if found or not line.strip() else ""
            continue
        start, close = number, f"{opening[1]}```"
        while lines[number] != close:
            number += 1
        text = textwrap.dedent("\n".join(lines[start:number])) + "\n"
        title = _TITLE.search(opening[3])
        number += 1
        yield Block(
            page=page,
            line=start + 1,
            language=opening[2],
            title=title[1] if title else "",
            text=text,
            not_run=reason,
            example=example[1] if (example := _EXAMPLE.fullmatch(text)) else "",
        )
        reason = ""
