"""Checks arguments; each check raises `InvalidArgumentError` with the argument's name."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from nanobot_context._core import check_whole as check_whole
from nanobot_context._core import format_value as format_value
from nanobot_context.errors import InvalidArgumentError, InvalidMessageError


def invalid(argument: str, expected: str, value: Any) -> InvalidArgumentError:
    """Return the error for an argument that is something else than expected."""
    return InvalidArgumentError(
        f"`{argument}` must be {expected}, got {format_value(value)}", argument=argument
    )


def is_number(value: Any) -> TypeGuard[int | float]:
    """Return whether `value` is a number; `True` and `False` are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_callable(argument: str, value: Any) -> None:
    """Raise unless the value can be called or is `None`."""
    if value is not None and not callable(value):
        raise invalid(argument, "callable", value)


def check_choice(argument: str, value: Any, known: tuple[str, ...]) -> None:
    """Raise unless the value is one of the words `known`."""
    if not (isinstance(value, str) and value in known):
        raise invalid(argument, f"one of {', '.join(known)}", value)


def check_flag(argument: str, value: Any) -> None:
    """Raise unless the value is `True` or `False`."""
    if not isinstance(value, bool):
        raise invalid(argument, "True or False", value)


def check_instance(argument: str, value: Any, kind: type, *, optional: bool = False) -> None:
    """Raise unless the value is a `kind`, or `None` where that is `optional`."""
    if not (isinstance(value, kind) or (optional and value is None)):
        raise invalid(argument, f"a `{kind.__name__}`" + " or None" * optional, value)


def check_timeout(timeout_seconds: Any) -> None:
    """Raise unless `timeout_seconds` is a number above 0, or `None`."""
    if timeout_seconds is not None and not (is_number(timeout_seconds) and timeout_seconds > 0):
        raise invalid("timeout_seconds", "above 0 or None", timeout_seconds)


def check_path(path: Any) -> None:
    """Raise unless `path` can name a file on some system."""
    if not isinstance(path, str | os.PathLike):
        raise invalid("path", "a path", path)
    text = text_of("path", os.fspath(path), errors="surrogateescape")
    if str.__contains__(text, "\0"):
        raise invalid("path", "a path without NUL", text)


def not_a_dict(argument: str, index: int, message: Any) -> InvalidMessageError:
    """Return the error for a message of a list that is not a dict."""
    return InvalidMessageError(
        f"`{argument}[{index}]` must be a dict, got {format_value(message)}", index=index, field=""
    )


def check_messages(argument: str, value: Any) -> list[Any]:
    """Return a sequence of messages as a list of dicts, itself where it is one; else raise."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise invalid(argument, "a list of messages", value)
    for index, message in enumerate(value):
        if not isinstance(message, Mapping):
            raise not_a_dict(argument, index, message)
    if isinstance(value, list) and all(isinstance(one, dict) for one in value):
        return value
    return [one if isinstance(one, dict) else dict(one) for one in value]


def check_mappings(argument: str, value: Any) -> None:
    """Raise unless the value is a sequence of mappings."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise invalid(argument, "a list of dicts", value)
    for index, one in enumerate(value):
        if not isinstance(one, Mapping):
            raise invalid(f"{argument}[{index}]", "a dict", one)


def as_json(argument: str, value: Any, *, ensure_ascii: bool = False) -> str:
    """Return a value as JSON text, lone surrogates allowed; raise if it is not JSON."""
    import json  # only here: importing the package brings in next to nothing

    try:
        return json.dumps(value, ensure_ascii=ensure_ascii, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(
            f"`{argument}` cannot be written as JSON: {error}", argument=argument
        ) from None


def json_of(argument: str, value: Any) -> str:
    """Return a value as JSON text that can be stored; raise if it is not JSON."""
    text = as_json(argument, value)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # half a character, which JSON can write as an escape
        return as_json(argument, value, ensure_ascii=True)
    return text


def text_of(argument: str, value: Any, *, errors: str = "strict") -> str:
    """Return `value`; raise where it is not a text that can be stored or sent.

    `errors` is "surrogateescape" for paths, which need not be text everywhere.
    """
    if not isinstance(value, str):
        raise InvalidArgumentError(
            f"`{argument}` must be a string, got {type(value).__name__}", argument=argument
        )
    try:
        str.encode(value, "utf-8", errors)
    except UnicodeEncodeError:
        raise InvalidArgumentError(
            f"`{argument}` must not have half a character (a lone surrogate)", argument=argument
        ) from None
    return value
