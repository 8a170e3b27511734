"""Summaries of conversations: what they cover, when they are due, how they are made and shown.

    session = Session()                                   # appended to, turn by turn
    maybe_summarize(session, Summarizer(call), StaticBuffer())
    shown = assemble_history(session.messages, summary=session.summary)

A summary covers the first so many messages; everything behind is shown. It removes no message, it
never covers less than the one before, and while it is being made the one before is shown.
"""

from __future__ import annotations

import json
from typing import Any

from nanobot_context._core import (
    SummaryPolicy,
    Trigger,
    format_structured,
    keep_last_cut,
    merge_structured,
    parse_structured,
    rolling_cut,
    static_buffer_cut,
    summary_due,
)
from nanobot_context._core import summary_section as _summary_section
from nanobot_context._core import wrap_summary as _wrap_summary
from nanobot_context.arguments import as_json, check_instance
from nanobot_context.summary.policies import (
    Limits,
    Observed,
    Rolling,
    StaticBuffer,
    When,
    amaybe_summarize,
    call_with_summary,
    maybe_summarize,
)
from nanobot_context.summary.record import Summary, SummaryEvent, SummaryRequest
from nanobot_context.summary.summarizer import Summarizer

__all__ = [
    "Limits",
    "Observed",
    "Rolling",
    "StaticBuffer",
    "Summarizer",
    "Summary",
    "SummaryEvent",
    "SummaryPolicy",
    "SummaryRequest",
    "Trigger",
    "When",
    "amaybe_summarize",
    "call_with_summary",
    "format_summary_for_context",
    "keep_last_cut",
    "maybe_summarize",
    "merge_structured_summaries",
    "parse_structured_summary",
    "rolling_cut",
    "static_buffer_cut",
    "summary_due",
    "summary_section",
    "wrap_summary",
]


def parse_structured_summary(raw: str) -> dict[str, Any]:
    """Return the fields of a summary that a model wrote.

    JSON alone, in a fence or in prose, cut off at its end, with trailing commas, or with a text
    where a list belongs. Anything else is free text: `{"context": raw}`.
    """
    check_instance("raw", raw, str)
    fields: dict[str, Any] = json.loads(parse_structured(raw))
    return fields


def merge_structured_summaries(
    older: dict[str, Any], newer: dict[str, Any], *, max_tokens: int | None = None
) -> dict[str, Any]:
    """Return two summaries as one: what both say stands once, in the newer one's words.

    With `max_tokens` its text has no more than that: the oldest entries of the longest lists go
    first, the user's rules last, and of the last of these the beginning stays.

    Raises:
        InvalidArgumentError: One of them holds something else.
    """
    texts = [as_json("older", older), as_json("newer", newer)]
    merged: dict[str, Any] = json.loads(merge_structured(*texts, max_tokens=max_tokens))
    return merged


def format_summary_for_context(summary: dict[str, Any]) -> str:
    """Return the fields of a summary as text for a model.

    Raises:
        InvalidArgumentError: It holds something else.
    """
    return format_structured(as_json("summary", summary))


def wrap_summary(text: str) -> str:
    """Return a summary's text as the content of a system message, behind the system prompt.

    Raises:
        InvalidArgumentError: It is not a text.
    """
    check_instance("text", text, str)
    return _wrap_summary(text)


def summary_section(text: str) -> str:
    """Return a summary's text as the section for the end of a system prompt.

    Raises:
        InvalidArgumentError: It is not a text.
    """
    check_instance("text", text, str)
    return _summary_section(text)
