"""Compares lists of messages: untouched messages are returned as the same objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nanobot_context.types import Message


def is_same(left: list[Message], right: list[Message]) -> bool:
    """Return whether two lists hold the same objects."""
    return len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True))


def common_length(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Return how many items two sequences begin with alike."""
    if one == other[: len(one)]:
        return len(one)
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a is not b and a != b), min(len(one), len(other)))
