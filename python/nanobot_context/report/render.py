"""What the page is given: numbers in columns, and each text once."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from nanobot_context._core import __version__
from nanobot_context.arguments import is_number
from nanobot_context.message_texts import message_text
from nanobot_context.replay import Replay, Request

if TYPE_CHECKING:
    from nanobot_context.conversations import Conversation
    from nanobot_context.events import TelemetryEvent
    from nanobot_context.guard.record import RequestRecord

# Longest text on the page: a browser still shows one at once, and a session with one tool result
# of 50 MB still has a page. The whole text is in the session.
_MAX_TEXT = 200_000

# The order of the stacks, from the bottom.
_PARTS = ("system", "schemas", "user", "assistant", "tool")
_SCHEMAS = ("tools", "framing")

# What nanobot makes `_` of in the name of a session's file.
_NOT_IN_FILES = re.compile(r'[<>:"/\\|?*]')


@dataclass(slots=True)
class _Texts:
    """Texts by number."""

    all: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        if text not in self.numbers:
            self.numbers[text] = len(self.all)
            gone = len(text) - _MAX_TEXT
            note = f"\n\n[{gone:,} more characters are in the session]" if gone > 0 else ""
            self.all.append(text[:_MAX_TEXT] + note)
        return self.numbers[text]


def render(
    conversation: Conversation,
    replayed: Replay,
    events: Iterable[Mapping[str, Any] | TelemetryEvent],
    learned: Mapping[str, Mapping[str, Any]],
    records: Sequence[RequestRecord] = (),
) -> dict[str, Any]:
    """Return the page's data as JSON values; `page.js` names the columns again."""
    texts = _Texts()
    happened = list(_of_session(events, conversation))
    messages = [
        [
            fate.turn,
            fate.role,
            fate.tool,
            fate.tokens,
            fate.state,
            fate.reason,
            fate.tokens_after,
            fate.first_request,
            texts.number(message_text(message)),
        ]
        for fate, message in zip(replayed.messages, conversation.messages, strict=True)
    ]
    cuts = [
        [
            number,
            cut.index,
            cut.reason,
            cut.tokens_before,
            cut.tokens_after,
            texts.number(_gone(message_text(conversation.messages[cut.index]), cut.kept)),
            cut.kept_in,
        ]
        for number, request in enumerate(replayed.requests)
        for cut in request.cuts
    ]
    return {
        "version": __version__,
        "name": conversation.name,
        "source": conversation.source,
        "model": replayed.model,
        "counted": replayed.counted,
        "window": replayed.window_tokens,
        "budget": replayed.budget_tokens,
        "parts": _PARTS,
        "requests": [_request(request) for request in replayed.requests],
        "messages": messages,
        "cuts": cuts,
        "recorded": [_recorded(record) for record in records],
        "summaries": list(_summaries(conversation, happened)),
        "learned": list(_learned(learned, happened)),
        "answers": list(_answers(happened)),
        "events": list(_events(happened)),
        "texts": texts.all,
    }


def _gone(text: str, kept: Sequence[int]) -> str:
    """Return what of a text is not sent, its pieces apart by an empty line."""
    ends = [0, *kept, len(text)]
    gone = (text[a:b].strip("\n") for a, b in zip(ends[::2], ends[1::2], strict=True))
    return "\n\n".join(piece for piece in gone if piece.strip())


def _recorded(record: RequestRecord) -> list[Any]:
    return [
        record.at,
        record.tokens_before,
        record.tokens_after,
        [one.tokens for one in record.refusals],
        record.window_tokens,
        record.window_source,
        record.cut_messages,
        record.gone_names,
        record.prompt_tokens,
        record.cached_tokens,
        record.outcome,
        record.is_subagent,
    ]


def _request(request: Request) -> list[Any]:
    return [
        request.position,
        request.turn,
        _stack(request.before),
        _stack(request.after),
        request.reused_tokens,
        request.over,
        request.error,
    ]


def _stack(tokens: Mapping[str, int]) -> list[int]:
    schemas = sum(tokens.get(name, 0) for name in _SCHEMAS)
    return [schemas if part == "schemas" else tokens.get(part, 0) for part in _PARTS]


def _of_session(
    events: Iterable[Mapping[str, Any] | TelemetryEvent], conversation: Conversation
) -> Iterator[dict[str, Any]]:
    """Yield the events of the conversation; of one that no session is named for, too."""
    names = {conversation.name, conversation.metadata.get("key")}
    files = {_NOT_IN_FILES.sub("_", name.removesuffix(".jsonl")) for name in names if name}
    for event in events:
        known = dict(event) if isinstance(event, Mapping) else event.to_dict()
        session = known.get("session")
        if session is None or _NOT_IN_FILES.sub("_", str(session)) in files:
            yield known


def _summaries(
    conversation: Conversation, events: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield what happened to summaries, the oldest first, and the one that holds now."""
    for event in events:
        if event.get("kind") == "summary":
            content = event.get("content") or {}
            yield {
                "at": _text(event.get("at")),
                "version": _number(event.get("version")),
                "covers": _number(event.get("covers")),
                "made_by": _text(event.get("made_by")),
                "status": _text(event.get("status")) or "stored",
                "text": _text(content.get("text")) if isinstance(content, dict) else None,
                "error": _text(content.get("error")) if isinstance(content, dict) else None,
            }
    for at, (stored, covers) in enumerate(conversation.summaries, start=1):
        yield {
            "at": datetime.fromtimestamp(stored.created, UTC).isoformat(timespec="seconds"),
            "version": stored.version,
            "covers": covers,
            "made_by": _text(stored.record.get("made_by")),
            "status": "in use" if at == len(conversation.summaries) else "stored",
            "text": stored.text,
            "error": _text(stored.record.get("error")),
        }
    # Brings in what knows nanobot, which a conversation without a summary does not need.
    metadata = conversation.metadata.get("metadata", conversation.metadata)
    if not (isinstance(metadata, dict) and "summary" in metadata):
        return
    from nanobot_context.host.stored_summary import read

    summary = read(SimpleNamespace(metadata=metadata, messages=conversation.messages))
    if summary is not None:
        yield {
            "at": None,
            "version": summary.version,
            "covers": summary.covers,
            "made_by": summary.made_by,
            "status": "in use",
            "text": summary.text,
            "error": summary.error,
        }


def _learned(
    learned: Mapping[str, Mapping[str, Any]], events: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield what is known of each model, then what the events say, with their time."""
    for model, lesson in learned.items():
        for what in ("window_tokens", "output_tokens"):
            if lesson.get(what) is not None:
                yield {"at": None, "model": model, "what": what, "value": _number(lesson[what])}
        for script, ratio in (lesson.get("ratios") or {}).items():
            value = _number(ratio)
            yield {"at": None, "model": model, "what": "ratio", "script": script, "value": value}
    for event in events:
        if event.get("kind") == "learned":
            yield {
                "at": _text(event.get("at")),
                "model": _text(event.get("model")),
                "what": _text(event.get("what")) or "",
                "script": _text(event.get("script")),
                "value": _number(event.get("value")),
            }


def _answers(events: list[dict[str, Any]]) -> Iterator[list[Any]]:
    """Yield time, prompt and cached tokens of each answer whose prompt the provider counted."""
    for event in events:
        prompt = _number(event.get("prompt_tokens"))
        if event.get("kind") == "answered" and prompt:
            yield [_text(event.get("at")), prompt, _number(event.get("cached_tokens"))]


def _events(events: list[dict[str, Any]]) -> Iterator[list[Any]]:
    """Yield time, kind, model and numbers of what else happened, but for what the replay shows."""
    for event in events:
        kind = _text(event.get("kind"))
        if kind and kind not in ("answered", "compressed", "summary", "learned"):
            facts = {
                name: value
                for name, value in event.items()
                if name not in ("at", "kind", "session", "model", "content")
                and (isinstance(value, str) or _number(value) is not None)
            }
            yield [_text(event.get("at")), kind, _text(event.get("model")), facts]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> int | float | None:
    return value if is_number(value) and math.isfinite(value) else None
