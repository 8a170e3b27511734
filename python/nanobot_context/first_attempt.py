"""Builds the first attempt: fits the messages to the window, keeps rules and the newest call."""

from __future__ import annotations

from typing import Any, TypedDict, Unpack

from nanobot_context._core import (
    ESSENTIAL_TOKENS,
    MIN_OUTPUT_TOKENS,
    Receipt,
    compress_with_receipt,
    count_tokens,
    find_last_user_index,
    fit_messages,
    reserve_tokens,
)
from nanobot_context.archive import Archive
from nanobot_context.errors import ContextOverflowError
from nanobot_context.history import SYSTEM_ROLES
from nanobot_context.settings import Settings
from nanobot_context.types import Message

# The count of a prompt may be too low by a few tokens.
_LEAST_ANSWER = MIN_OUTPUT_TOKENS + 64
# The newest call in a line: a model that does not see it makes it again and again.
_LEAST_ESSENTIAL = 96


def never_cut(messages: list[Message]) -> list[Message]:
    """Return those of `messages` that are never cut: of the system, and the last of the user."""
    last = find_last_user_index(messages)
    return [m for i, m in enumerate(messages) if i == last or m.get("role") in SYSTEM_ROLES]


class Options(TypedDict):
    """Arguments of a request besides messages, window and model."""

    tools: list[dict[str, Any]] | None
    max_output_tokens: int | None
    settings: Settings
    archive: Archive | None


def compress(
    messages: list[Message], window_tokens: int, model: str | None, **options: Unpack[Options]
) -> tuple[list[Message], Receipt | None]:
    """Return messages for a first attempt, and the receipt where something was cut.

    What must stay, and the essentials beside it, may take from the answer's reserve.

    Raises:
        ContextOverflowError: What must stay is larger than the window.
    """
    tools, settings = options["tools"], options["settings"]
    try:
        short, receipt = compress_with_receipt(messages, window_tokens, model, **options)
    except ContextOverflowError as error:
        budget = _with_essential(error, window_tokens)
    else:
        if receipt is None:
            return short, None
        fixed = never_cut(messages)
        needed = count_tokens(fixed, model, tools=tools)
        needed += settings.message_overhead_tokens * len(fixed)
        budget = needed + min(ESSENTIAL_TOKENS, window_tokens - needed - _LEAST_ANSWER)
        output, ratio = options["max_output_tokens"], settings.context_reserve_ratio
        if budget <= window_tokens - reserve_tokens(window_tokens, output, ratio):
            return short, receipt
    archive = options["archive"]
    fitted = fit_messages(messages, budget, model, tools=tools, settings=settings, archive=archive)
    return fitted.messages, fitted.receipt


def _with_essential(error: ContextOverflowError, window_tokens: int) -> int:
    """Return the budget where only room for the answer is missing.

    The answer gets half of what is left, or less for the essentials, but the least that is of use
    beside a line for the newest call.
    """
    left = window_tokens - error.needed_tokens
    if left < 0:
        raise error
    beside = min(max(left // 2, ESSENTIAL_TOKENS), left - _LEAST_ANSWER)
    return error.needed_tokens + max(beside, min(_LEAST_ESSENTIAL, left // 2))
