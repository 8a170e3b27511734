"""Identity comparison of message lists: untouched messages are returned as the same objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nanobot_context.types import Message


def is_same(left: list[Message], right: list[Message]) -> bool:
    """Return whether two lists hold the same objects."""
    return len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True))
