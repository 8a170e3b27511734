"""Values that say something else than what they are, or nothing at all."""

from __future__ import annotations

from typing import Any

__all__ = ["HUGE", "Broken", "Raising", "Text", "Unprintable", "nested"]

HUGE = 10**5_000  # its repr raises


class Broken(Exception):
    """What code of a caller's own raises."""


class Text(str):
    """A string whose methods say something else than its text."""

    def __str__(self) -> str:
        return "else"

    def __len__(self) -> int:
        return 0

    def encode(self, *_: Any) -> bytes:
        raise Broken("no bytes")


class Raising(dict[str, Any]):
    """A dict that cannot be walked through."""

    def items(self) -> Any:
        raise Broken("no items")

    keys = values = items
    __iter__ = items


class Unprintable:
    """What cannot be shown."""

    def __repr__(self) -> str:
        raise Broken("no repr")


def nested(depth: int) -> Any:
    """Return dicts in dicts; the repr of very deep ones raises."""
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value
