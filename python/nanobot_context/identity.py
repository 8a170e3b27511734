"""Compares lists of messages: untouched messages are returned as the same objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from nanobot_context.types import Message

Item = TypeVar("Item")


def is_same(left: list[Message], right: list[Message]) -> bool:
    """Return whether two lists hold the same objects."""
    return len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True))


def without(
    items: Iterable[Item], keys: Iterable[Hashable], key: Callable[[Item], Hashable]
) -> list[Item]:
    """Return the items whose `key` is not among `keys`, of which each stands for one item."""
    left = Counter(keys)
    found = []
    for item in items:
        if left[key(item)] > 0:
            left[key(item)] -= 1
        else:
            found.append(item)
    return found


def common_length(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Return how many items two sequences begin with alike."""
    if one == other[: len(one)]:
        return len(one)
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a is not b and a != b), min(len(one), len(other)))
