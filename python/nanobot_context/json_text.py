"""Parses JSON that anybody may have written; strictly, it reports the place of a mistake."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from json import JSONDecodeError
from typing import Any

_BLANK = re.compile(r"[ \t\n\r]*")

# What the values are does not matter to it: it finds where they end, and takes numbers of any size.
_ANY = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


def parsed(text: str | bytes, otherwise: Any = None) -> Any:
    """Return the JSON value that `text` is; `otherwise` if it is not valid JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return otherwise


def json_text(value: Any) -> str:
    """Return `value` as JSON text; what JSON does not have is in it as a text."""
    return json.dumps(value, ensure_ascii=False, default=str)


def load_strictly(text: str) -> Any:
    """Return the JSON value that `text` is.

    Beyond what `json.loads` refuses: a key that stands twice in an object, `NaN` and `Infinity`,
    and numbers that would not come out of a file as they went in.

    Raises:
        JSONDecodeError: It is not valid; `lineno` and `colno` say where.
    """
    try:
        return _STRICT.decode(text)
    except JSONDecodeError:
        raise
    except ValueError as error:
        raise _located(text, skip_blank(text, 0)) or JSONDecodeError(str(error), text, 0) from None
    except RecursionError:
        raise JSONDecodeError("nested too deeply", text, skip_blank(text, 0)) from None


def position_of(text: str, at: int, *path: str | int) -> int:
    """Return where the value at `path` begins in the JSON value at `at`, which must be valid."""
    at = skip_blank(text, at)
    for wanted in path:
        at = next(value_at for key, _, value_at in _items(text, at) if key == wanted)
    return at


def skip_blank(text: str, at: int) -> int:
    """Return where the next thing begins that is not white space."""
    match = _BLANK.match(text, at)
    assert match is not None
    return match.end()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key stands twice")
    return made


def refuse_constant(name: str) -> Any:
    """Raise `ValueError`: JSON has no `NaN` and no `Infinity`."""
    raise ValueError(f"`{name}` is not valid JSON")


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text:.30} is too large")
    return number


def _int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"a number of {len(text):,} digits is too long") from None


_STRICT = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=refuse_constant, parse_float=_float, parse_int=_int
)


def _located(text: str, at: int) -> JSONDecodeError | None:
    """Return the strict decoder's error for the value at `at`, at its place in the whole text.

    Costs as much again for each level of nesting; only for text that was refused.
    """
    try:
        _STRICT.raw_decode(text, at)
    except ValueError as error:
        problem = str(error)
    else:
        return None
    if text[at] in "[{":
        seen: set[str | int] = set()
        for key, key_at, value_at in _items(text, at):
            if key in seen:
                return JSONDecodeError(f"the key `{key}` stands twice", text, key_at)
            seen.add(key)
            if found := _located(text, value_at):
                return found
    return JSONDecodeError(problem, text, at)


def _items(text: str, at: int) -> Iterator[tuple[str | int, int, int]]:
    """Yield the key or index of each item of an object or list, where that is, and its value."""
    is_object = text[at] == "{"
    at = skip_blank(text, at + 1)
    index = 0
    while text[at] not in "]}":
        key: str | int = index
        key_at = at
        if is_object:
            key, at = _ANY.raw_decode(text, at)
            at = skip_blank(text, skip_blank(text, at) + 1)  # behind the colon
        yield key, key_at, at
        _, at = _ANY.raw_decode(text, at)
        at = skip_blank(text, at)
        if text[at] == ",":
            at = skip_blank(text, at + 1)
        index += 1
