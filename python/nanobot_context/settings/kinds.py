"""The kinds of settings: accepted values, parsing of texts, and the error for other values."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nanobot_context._core import (
    MAX_WHOLE,
    SummaryRun,
    format_value,
    mask_credentials,
    without_credentials,
)
from nanobot_context.arguments import is_number
from nanobot_context.errors import InvalidArgumentError, SettingsError


@dataclass(frozen=True, slots=True)
class Kind:
    """The values that a setting accepts, and how to read it from an environment variable."""

    expected: str
    accepts: Callable[[Any], bool]
    parse: Callable[[str], Any]


def _or_none(expected: str, accepts: Callable[[Any], bool], parse: Callable[[str], Any]) -> Kind:
    """Return a kind that accepts `None`, too; a variable says "none" or "null" for it."""
    return Kind(
        expected,
        lambda value: value is None or accepts(value),
        lambda text: None if is_none(text) else parse(text),
    )


def is_none(text: str) -> bool:
    """Return whether a variable's text says that the setting is not set."""
    return text.strip().lower() in {"none", "null"}


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value.strip() != ""


def _is_store(value: Any) -> bool:
    schemes = ("sqlite:///", "redis://", "rediss://")
    # In memory the sessions would end with the process.
    return (
        isinstance(value, str)
        and value.startswith(schemes)
        and value.partition("?")[0] != "sqlite:///:memory:"
    )


_OFF = frozenset({"0", "false", "no", "off"})


def parse_bool(text: str) -> bool:
    word = text.strip().lower()
    if word in {"1", "true", "yes", "on"}:
        return True
    if word in _OFF:
        return False
    raise ValueError(text)


def _is_prompt(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        SummaryRun([], prompt=value)
    except InvalidArgumentError:
        return False
    return True


def _is_whole(value: Any, lowest: int = 0) -> bool:
    return isinstance(value, int) and is_number(value) and lowest <= value <= MAX_WHOLE


SWITCH = Kind("`true` or `false`", lambda value: isinstance(value, bool), parse_bool)
NAME = _or_none("a model name or null", _is_text, str.strip)
COUNT = Kind("a non-negative integer up to 2^53", _is_whole, int)
POSITIVE = Kind("a positive integer up to 2^53", lambda value: _is_whole(value, 1), int)
WINDOW = _or_none("a non-negative integer up to 2^53", _is_whole, int)
WINDOWS = _or_none(
    "an object of models' names, or patterns of them, and windows in tokens",
    lambda value: (
        isinstance(value, dict)
        and all(isinstance(name, str) and _is_whole(size, 1) for name, size in value.items())
    ),
    json.loads,
)
NAMES = Kind(
    "a list of file names or patterns of them",
    lambda value: isinstance(value, list | tuple) and all(map(_is_text, value)),
    lambda text: [name.strip() for name in text.split(",") if name.strip() and not is_none(name)],
)
FORMAT = Kind("`text` or `structured`", lambda value: value in ("text", "structured"), str.strip)
PROMPT = _or_none(
    "a text with `{conversation_text}` and no unknown name in braces, or null",
    _is_prompt,
    str.strip,
)
SECONDS = Kind(
    "a positive number of seconds", lambda value: is_number(value) and 0 < value < math.inf, float
)
SHARE = Kind(
    "a number above 0 and at most 1", lambda value: is_number(value) and 0 < value <= 1, float
)
SHARE_OR_NONE = _or_none("a number above 0 and at most 1, or null", SHARE.accepts, float)
RESERVE = Kind(
    "a number from 0 to below 1", lambda value: is_number(value) and 0 <= value < 1, float
)
STORE = _or_none(
    "null or a URL that begins with `sqlite:///`, `redis://` or `rediss://`, not in memory",
    _is_store,
    str.strip,
)
PATH = _or_none(
    "a file's path or null", lambda value: _is_text(value) and "\0" not in value, str.strip
)


def check(kind: Kind, value: Any, path: str, where: str = "") -> None:
    """Raise `SettingsError` where a setting of this kind does not accept `value`."""
    if not kind.accepts(value):
        raise invalid(kind, value, path, where)


def invalid(kind: Kind, value: Any, path: str, where: str) -> SettingsError:
    """Return the error for a value that the setting at `path` does not accept."""
    place = f" (in `{where}`)" if where else ""
    shown = _show_store(value) if kind is STORE else show(value)
    return SettingsError(f"`{path}` must be {kind.expected}, got `{shown}`{place}", path=path)


def switches_off(value: Any) -> bool:
    """Return whether a value switches something off: under a name that is wrong that is meant."""
    return str(value).strip().lower() in _OFF


def show(value: Any) -> str:
    """Return a value as errors quote it: in short, and without what looks like a password."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=format_value)
    except (TypeError, ValueError, RecursionError):
        text = format_value(value)
    text = mask_credentials(text)
    return text if len(text) <= 80 else text[:77] + "..."


def _show_store(value: Any) -> str:
    # Whatever stands there may be a password, or have one.
    return without_credentials(value) if isinstance(value, str) else type(value).__name__
