"""The types of what goes in and comes out."""

from __future__ import annotations

from enum import Enum
from typing import Any

__all__ = ["Message", "Priority"]

Message = dict[str, Any]
"""A chat message in OpenAI's form; keys that this package does not know are kept."""


class Priority(Enum):
    """How much a message matters to what comes later."""

    HIGH = "high"
    """Decisions, constraints, to-dos, standing instructions."""
    NORMAL = "normal"
    """Everything else."""
    LOW = "low"
    """Mere look-ups: listings, reads, searches."""
