"""Translates texts for people into their language.

Errors, findings, reasons and JSON are English data, the same on every machine. Where a person reads
them, on the command line and in nanobot's log, `shown` says them in the language of the locale or
of `--lang`. `zh.json` has a Chinese sentence for each English one, with `{0}`, `{1}` where a value
stands; the report's page has its own phrases.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple, TypeAlias

Language: TypeAlias = Literal["en", "zh"]
"""English or Chinese."""

# Joints between sentences: each sentence is translated by itself, then joined in Chinese.
_JOINTS = (("; ", "；"), (": ", "："), (", ", "，"))
# At the end of a text, with what stands between brackets in them: "model table (`gpt-4o`)".
_BRACKETED = re.compile(r"(.*\S) ?\(((?:[^()]|\([^()]*\))*)\)", re.DOTALL)
# Longer or deeper texts quote somebody else's, which could be made to take long.
_MAX_CHARS = 2_000
_MAX_DEPTH = 6
_HOLE = re.compile(r"\{(\d)\}")

_chosen: Language | None = None


class _Sentence(NamedTuple):
    """An English sentence with values in it.

    Attributes:
        pattern: What it looks like with its values.
        fixed: Its own words between the values.
        chinese: The same sentence in Chinese.
        quoted: The values that stand between backticks: names, which stay as they are.
    """

    pattern: re.Pattern[str]
    fixed: tuple[str, ...]
    chinese: str
    quoted: frozenset[str]


def language() -> Language:
    """Return the language that people are spoken to in: the chosen one, else the locale's."""
    if _chosen is not None:
        return _chosen
    names = (os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return "zh" if next(filter(None, names), "").startswith("zh") else "en"


def choose(chosen: Language | None) -> None:
    """Speak `chosen` in this process from now on; `None` for the language of the locale."""
    global _chosen
    _chosen = chosen


def shown(text: str, spoken: Language | None = None) -> str:
    """Return an English text of the package's as people read it who speak `spoken`, else this one.

    A text that the table does not know stays English.
    """
    if (spoken or language()) == "en":
        return text
    return "\n".join(_line(line, 0) for line in text.split("\n"))


def listed(parts: Iterable[str]) -> str:
    """Return English texts of the package's as a list that people read, as `shown` has each."""
    return ("，" if language() == "zh" else ", ").join(map(shown, parts))


def _line(line: str, depth: int) -> str:
    said = line.strip()
    if not said or len(said) > _MAX_CHARS or depth > _MAX_DEPTH:
        return line
    start = line.index(said)
    return line[:start] + _chinese(said, depth + 1) + line[start + len(said) :]


def _chinese(text: str, depth: int) -> str:
    """Return a line in Chinese: as a whole, else each part of it that is a sentence."""
    plain, sentences = _table()
    if (known := plain.get(text)) is not None:
        return known
    for sentence in sentences:
        if all(part in text for part in sentence.fixed) and (
            found := sentence.pattern.fullmatch(text)
        ):
            values = {
                hole[1:]: value if hole[1:] in sentence.quoted else _line(value, depth)
                for hole, value in found.groupdict().items()
            }
            return _filled(sentence.chinese, values)
    for joint, chinese_joint in _JOINTS:
        parts = text.split(joint)
        if len(parts) == 1:
            continue
        said = [_line(part, depth) for part in parts]
        if said != parts:
            return chinese_joint.join(said)
    if found := _BRACKETED.fullmatch(text):
        head, inside = found.groups()
        said = [_line(head, depth), _line(inside, depth)]
        if said != [head, inside]:
            return "{}（{}）".format(*said)
    return text


def _filled(chinese: str, values: dict[str, str]) -> str:
    return _HOLE.sub(lambda hole: values[hole[1]], chinese)


@cache
def _table() -> tuple[dict[str, str], list[_Sentence]]:
    """Return sentences without a value in them, and those with one, the most definite first."""
    known: dict[str, str] = json.loads(files(__package__).joinpath("zh.json").read_text("utf-8"))
    plain, sentences = {}, []
    for english, chinese in known.items():
        if not _HOLE.search(english):
            plain[english] = chinese
            continue
        # Fixed words and numbers of values by turns.
        parts = _HOLE.split(english)
        pattern = "".join(
            f"(?P<_{part}>.*?)" if at % 2 else re.escape(part) for at, part in enumerate(parts)
        )
        quoted = frozenset(re.findall(r"`\{(\d)\}`", english))
        fixed = tuple(filter(None, parts[::2]))
        sentences.append(_Sentence(re.compile(pattern, re.DOTALL), fixed, chinese, quoted))
    sentences.sort(key=lambda sentence: sum(map(len, sentence.fixed)), reverse=True)
    return plain, sentences
