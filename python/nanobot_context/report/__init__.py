"""Writes an HTML file that shows what the model no longer saw, why, and what it cost.

The file needs no network and runs nothing but its own script: see `page`. It holds the texts of the
conversation, unless it is redacted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nanobot_context import words
from nanobot_context.arguments import check_instance, check_path, invalid
from nanobot_context.conversations import Conversation
from nanobot_context.events import TelemetryEvent
from nanobot_context.guard.record import RequestRecord
from nanobot_context.replay import Replay, replay
from nanobot_context.report.originals import originals_of
from nanobot_context.report.page import page
from nanobot_context.report.render import render
from nanobot_context.settings import Settings
from nanobot_context.words import Language

__all__ = ["Language", "report_page", "write_report"]


def write_report(
    conversation: Conversation,
    path: Path | str,
    *,
    window_tokens: int,
    model: str | None = None,
    events: Iterable[Mapping[str, Any] | TelemetryEvent] | None = None,
    learned: Mapping[str, Mapping[str, Any]] | None = None,
    records: Sequence[RequestRecord] = (),
    max_output_tokens: int | None = None,
    settings: Settings | None = None,
    on_request: Callable[[int, int], None] | None = None,
    language: Language | None = None,
    redact: bool = False,
) -> Replay | None:
    """Write the page of a conversation: of its recorded requests, or else of a replay.

    A replay costs what `replay` does. The page has each text of the conversation once.

    Args:
        conversation: The conversation; its tool schemas count where it has some.
        path: The file to write; replaced where it is there. Readable as the process's new files
            are.
        window_tokens: The window of a replay.
        model: The model that tokens are counted for; `None` is the conversation's.
        events: Events of summaries and of what was learned, as `nanobot_context.events` tells
            them: objects, or the lines of a file. Those of other sessions are left out.
        learned: What providers taught, as `status().learned` has it.
        records: The requests of the conversation that were recorded, oldest first.
        max_output_tokens: The limit for an answer of a replay: see `replay`.
        settings: Limits of a replay's compression.
        on_request: Called after each request of a replay with how many are done and how many
            there are.
        language: That of the page; `None` is that of the locale.
        redact: Whether the page is without texts and names, also the model's and its server's:
            numbers, roles and tools only.

    Returns:
        The replay; `None` where there are records.

    Raises:
        OSError: The file cannot be written.
        InvalidMessageError: A message is of a shape that no provider accepts.
        InvalidArgumentError: The window is not a positive number, or another argument is of no use.
    """
    check_instance("conversation", conversation, Conversation)
    check_path(path)
    replayed = None
    if not records:
        replayed = replay(
            conversation.messages,
            window_tokens,
            model or conversation.model,
            tools=conversation.tools,
            max_output_tokens=max_output_tokens,
            settings=settings,
            archive=originals_of(conversation.source),
            on_request=on_request,
        )
    made = report_page(
        conversation,
        replayed,
        events=events,
        learned=learned,
        records=records,
        language=language,
        redact=redact,
    )
    Path(path).write_bytes(made)
    return replayed


def report_page(
    conversation: Conversation,
    replayed: Replay | None,
    *,
    events: Iterable[Mapping[str, Any] | TelemetryEvent] | None = None,
    learned: Mapping[str, Mapping[str, Any]] | None = None,
    records: Sequence[RequestRecord] = (),
    language: Language | None = None,
    redact: bool = False,
) -> bytes:
    """Return the page of a replay, or without one of `records`, in UTF-8: see `write_report`."""
    check_instance("conversation", conversation, Conversation)
    check_instance("replayed", replayed, Replay, optional=bool(records))
    if language not in (None, "en", "zh"):
        raise invalid("language", "`en` or `zh`", language)
    data = render(conversation, replayed, events or (), learned or {}, records, redact=redact)
    spoken = language or words.language()
    if data["windowSource"]:
        data["windowSource"] = words.shown(data["windowSource"], spoken)
    return page("" if redact else conversation.name, data, spoken)
