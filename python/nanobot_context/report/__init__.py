"""One HTML file that shows what becomes of a conversation at a window.

The file needs no network and runs nothing but its own script: see `page`. It holds the texts of the
conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nanobot_context.arguments import check_instance, invalid
from nanobot_context.conversations import Conversation
from nanobot_context.replay import Replay, replay
from nanobot_context.report.originals import originals_of
from nanobot_context.report.page import page
from nanobot_context.report.render import render

if TYPE_CHECKING:
    from nanobot_context.events import TelemetryEvent
    from nanobot_context.guard.record import RequestRecord
    from nanobot_context.settings import Settings

__all__ = ["report_page", "write_report"]


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
) -> Replay:
    """Replay `conversation` at a window and write the page that shows it; return the replay.

    Costs what `replay` does. The page has each text of the conversation once, and each text that
    was cut out of one.

    Args:
        conversation: The conversation; its tool schemas count where it has some.
        path: The file to write; replaced where it is there. Readable as the process's new files
            are.
        window_tokens: The window.
        model: The model that tokens are counted for; `None` is the conversation's.
        events: What really happened, as `nanobot_context.events` tells it: objects, or the lines
            of a file of events. Those of other sessions are left out.
        learned: What providers taught, as `status().learned` has it.
        records: The requests of the conversation that were recorded, oldest first; the page says
            what was sent by them, and that the rest is a replay.
        max_output_tokens: The limit for an answer: see `replay`.
        settings: Limits of the compression.
        on_request: Called after each request with how many are done and how many there are.

    Raises:
        OSError: The file cannot be written.
        InvalidMessageError: A message is of a shape that no provider accepts.
        InvalidArgumentError: The window is not a positive number, or another argument is of no use.
    """
    check_instance("conversation", conversation, Conversation)
    if not isinstance(path, str | Path):
        raise invalid("path", "a path", path)
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
    Path(path).write_bytes(
        report_page(conversation, replayed, events=events, learned=learned, records=records)
    )
    return replayed


def report_page(
    conversation: Conversation,
    replayed: Replay,
    *,
    events: Iterable[Mapping[str, Any] | TelemetryEvent] | None = None,
    learned: Mapping[str, Mapping[str, Any]] | None = None,
    records: Sequence[RequestRecord] = (),
) -> bytes:
    """Return the page of a replay, in UTF-8: see `write_report`."""
    check_instance("conversation", conversation, Conversation)
    check_instance("replayed", replayed, Replay)
    return page(
        conversation.name, render(conversation, replayed, events or (), learned or {}, records)
    )
