"""Divides a window between the messages of a request and its answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nanobot_context._core import MIN_OUTPUT_TOKENS, answer_reserve, count_tokens, fits
from nanobot_context.history import system_messages
from nanobot_context.types import Message

_FIXED_STEPS = 64


@dataclass(slots=True)
class Room:
    """The room of one request: its window, divided between messages and answer.

    Attributes:
        max_output_tokens: The limit for the answer that is asked for; `None` for none.
        overhead_tokens: What the provider takes for each message beside our count.
    """

    messages: list[Message]
    window_tokens: int
    model: str | None
    tools: list[dict[str, Any]] | None
    max_output_tokens: int | None
    overhead_tokens: int = 0
    _leaves_all: bool = field(init=False)

    def __post_init__(self) -> None:
        self._leaves_all = self._fits(self.messages)

    def _fits(self, messages: list[Message]) -> bool:
        """Return whether the longest answer fits beside `messages`."""
        taken = (self.max_output_tokens or 0) + self.overhead_tokens * len(messages)
        budget = max(self.window_tokens - taken, 0)
        return self.max_output_tokens is None or fits(
            messages, budget, self.model, tools=self.tools
        )

    def reserve(self) -> int | None:
        """Return the tokens to keep free for the answer: its limit, or a share of the unfixed rest.

        The share is of the window less the system's messages and tool schemas, in steps, so that a
        clock in the system prompt moves no cut.
        """
        if self.max_output_tokens is None or self._leaves_all:
            return self.max_output_tokens
        system = system_messages(self.messages)
        step = max(self.window_tokens // _FIXED_STEPS, 1)
        fixed = in_steps(count_tokens(system, self.model, tools=self.tools), step)
        return answer_reserve(max(self.window_tokens - fixed, 0), self.max_output_tokens)

    def limit(self, sent: list[Message]) -> int | None:
        """Return the limit for the answer, lowered to what the messages `sent` leave.

        A shorter answer than `MIN_OUTPUT_TOKENS` is of no use: where less is free, the window is
        not what it is thought to be.
        """
        fits_beside = self._leaves_all if sent is self.messages else self._fits(sent)
        if self.max_output_tokens is None or fits_beside:
            return self.max_output_tokens
        overhead = self.overhead_tokens * len(sent)
        free = self.window_tokens - overhead - count_tokens(sent, self.model, tools=self.tools)
        return (
            min(self.max_output_tokens, free)
            if free >= MIN_OUTPUT_TOKENS
            else self.max_output_tokens
        )


def in_steps(tokens: int, step: int) -> int:
    """Return `tokens` rounded up to whole steps, so that what changes a little moves no cut."""
    return -(-tokens // step) * step
