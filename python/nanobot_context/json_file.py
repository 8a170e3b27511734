"""Reads a JSON file; errors name the line and column."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from json import JSONDecodeError
from typing import Any, NoReturn

from nanobot_context.errors import ConversationFileError
from nanobot_context.json_text import load_strictly, skip_blank


class JsonFile:
    """A JSON value, or one object a line.

    Attributes:
        shown: What errors call the file.
        text: What it says.
    """

    def __init__(self, shown: str, data: bytes) -> None:
        self.shown = shown
        data = data.removeprefix(codecs.BOM_UTF8)
        try:
            self.text = data.decode()
        except UnicodeDecodeError as error:
            self.text = data[: error.start].decode()
            self._refuse_bytes(data, error)

    def objects(self, expected: str) -> Iterator[tuple[dict[str, Any], int]]:
        """Yield the object of each line, and its place; blank lines have none."""
        place = 0
        for line in self.text.split("\n"):
            if line.strip():
                value, start = self.load(line, place), place + skip_blank(line, 0)
                if not isinstance(value, dict):
                    self.refuse(start, f"expected {expected} on each line; found {kind_of(value)}")
                yield value, start
            place += len(line) + 1

    def load(self, text: str, place: int = 0) -> Any:
        """Parse `text`, which begins at `place` of the file."""
        try:
            return load_strictly(text)
        except JSONDecodeError as error:
            problem = error.msg[:1].lower() + error.msg[1:]
            is_last = place + len(text) >= len(self.text.rstrip())
            if is_last and (error.pos >= len(text.rstrip()) or error.msg.startswith("Unterm")):
                problem += "; it looks cut off"
            self.refuse(place + error.pos, f"not valid JSON: {problem}")

    def refuse(self, place: int, problem: str) -> NoReturn:
        """Raise `ConversationFileError` for the character at `place`."""
        line = self.text.count("\n", 0, place) + 1
        column = place - self.text.rfind("\n", 0, place)
        raise ConversationFileError(
            f"`{self.shown}`, line {line:,}, column {column:,}: {problem}",
            path=self.shown,
            line=line,
            column=column,
        )

    def _refuse_bytes(self, data: bytes, error: UnicodeDecodeError) -> NoReturn:
        problem = f"byte 0x{data[error.start]:02x} is not UTF-8"
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            problem += "\nhint: it looks like UTF-16; save it as UTF-8"
        self.refuse(len(self.text), problem)


def load_or_none(text: str) -> Any:
    """Return the value that `text` is; `None` where it is not valid JSON."""
    try:
        return load_strictly(text)
    except JSONDecodeError:
        return None


def kind_of(value: Any) -> str:
    """Return the name of a JSON value's type for errors."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a truth value"}
    if value is None:
        return "null"
    return names.get(type(value), "a number")
