"""The types of arguments and results."""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal

Message = dict[str, Any]
"""A chat message in OpenAI's form; keys that this package does not know are kept."""

CountSource = Literal["exact", "estimated"]
"""How tokens were counted."""

CutReason = Literal[
    "orphan_result",
    "late_result",
    "missing_result",
    "malformed_call",
    "reasoning",
    "large_result",
    "many_results",
    "long_message",
    "budget",
    "joined",
]
"""Why a message was shortened, left out, put in, moved or joined with others."""

LostKind = Literal["path", "url", "id", "number", "error"]
"""What kind of name is no longer in the context."""

OverflowKind = Literal[
    "input", "output_cap", "request_bytes", "messages", "rate_ceiling", "silent", "reasoning"
]
"""What a provider refused: the prompt, the answer's limit, its bytes, the number of its messages, a
rate; or it said nothing."""


RepairAction = Literal["send", "compress", "restore", "give_up"]
"""What to do after a refusal: `restore` puts the model's reasoning back."""

GiveUpReason = Literal["unrelated", "floor", "refused", "useless"]
"""Why nothing more is sent: a smaller request is no help, what must stay is as large as what was
refused, smaller requests were refused too, or compressing freed next to nothing."""

Retry = Literal["later", "after_reading", "never"]
"""What helps after an error of a session store."""


class Priority(Enum):
    """How much a message matters to what comes later."""

    HIGH = "high"
    """Decisions, constraints, to-dos, standing instructions."""
    NORMAL = "normal"
    """Everything else."""
    LOW = "low"
    """Mere look-ups: listings, reads, searches."""
