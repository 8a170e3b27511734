"""Collects the data of the report page: numbers in columns, and each text once."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from nanobot_context._core import __version__, count_tokens, superseded
from nanobot_context.arguments import is_number
from nanobot_context.conversations import Conversation
from nanobot_context.events import TelemetryEvent
from nanobot_context.guard.record import RequestRecord, SentCut
from nanobot_context.message_texts import message_text, tool_names, turns_of
from nanobot_context.replay import Replay, Request
from nanobot_context.report.places import Places, places_of
from nanobot_context.tools import largest_tools
from nanobot_context.types import Message

# Longest text on the page: a browser still shows one at once, and a session with one tool result
# of 50 MB still has a page. The whole text is in the session.
_MAX_TEXT = 200_000

# The order of the stacks, from the bottom.
_PARTS: tuple[str, ...] = ("system", "schemas", "user", "assistant", "tool")
_RECORDED_PARTS: tuple[str, ...] = ("fixed", "conversation")
_TOOLS_SHOWN = 3
_SCHEMAS = ("tools", "framing")
_LOST_SHOWN = 20

# What nanobot makes `_` of in the name of a session's file.
_NOT_IN_FILES = re.compile(r'[<>:"/\\|?*]')


@dataclass(slots=True)
class _Texts:
    """Texts by number; none of them where they are redacted."""

    is_redacted: bool
    all: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        if self.is_redacted:
            text = ""
        if text not in self.numbers:
            self.numbers[text] = len(self.all)
            gone = len(text) - _MAX_TEXT
            note = f"\n\n[{gone:,} more characters are in the session]" if gone > 0 else ""
            self.all.append(text[:_MAX_TEXT] + note)
        return self.numbers[text]


def render(
    conversation: Conversation,
    replayed: Replay | None,
    events: Iterable[Mapping[str, Any] | TelemetryEvent],
    learned: Mapping[str, Mapping[str, Any]],
    records: Sequence[RequestRecord] = (),
    *,
    redact: bool = False,
) -> dict[str, Any]:
    """Return the page's data as JSON values; `basics.js` names the columns again.

    Without a replay the page is of `records`.
    """
    texts = _Texts(redact)
    happened = list(_of_session(events, conversation))
    messages = conversation.messages
    if replayed is not None:
        model, counted, window = replayed.model, replayed.counted, replayed.window_tokens
        requests = [_request(request, redact) for request in replayed.requests]
        cuts = list(_cuts(replayed, messages, redact))
        each = [fate.tokens for fate in replayed.messages]
        parts = _PARTS
        tools = largest_tools(conversation.tools or [], model)
    else:
        model, window, counted = records[-1].model, records[-1].window_tokens, "reported"
        places = places_of(records, messages)
        requests = [
            _recorded(record, place, messages, redact)
            for record, place in zip(records, places, strict=True)
        ]
        sent_cuts = list(_sent_cuts(records, places, messages))
        each = _recorded_tokens(messages, model, sent_cuts, records, places)
        cuts = [
            _recorded_cut(number, index, cut, messages, each) for number, index, cut in sent_cuts
        ]
        parts = _RECORDED_PARTS
        tools = list(records[-1].tools)
    return {
        "version": __version__,
        "isRecord": replayed is None,
        "isRedacted": redact,
        "name": "" if redact else conversation.name,
        "source": "" if redact else conversation.source,
        "model": None if redact else model,
        "counted": counted,
        "window": window,
        # It may name a model, or where one is.
        "windowSource": None if redact or replayed is not None else records[-1].window_source,
        "tools": tools[:_TOOLS_SHOWN],
        "parts": parts,
        "requests": requests,
        "messages": list(_messages(messages, each, texts)),
        "cuts": cuts,
        "replaced": superseded(messages),
        "summaries": [] if redact else list(_summaries(conversation, happened)),
        "learned": list(_learned(learned, happened, redact)),
        "texts": texts.all,
    }


def _messages(
    messages: Sequence[Message], each: Sequence[int], texts: _Texts
) -> Iterator[list[Any]]:
    tools, turns = tool_names(messages), turns_of(messages)
    for index, message in enumerate(messages):
        text = message_text(message)
        yield [
            turns[index],
            message["role"],
            tools[index],
            each[index],
            texts.number(text),
            len(text),
        ]


def _recorded_tokens(
    messages: Sequence[Mapping[str, Any]],
    model: str | None,
    cuts: Sequence[tuple[int, int, SentCut]],
    records: Sequence[RequestRecord],
    places: Sequence[Places | None],
) -> list[int]:
    """Return the tokens of each message, uncut, as the newest request says that cut it.

    Of the others as counted here, times what the provider counts for one of these: of those that
    were cut, or else of all that the newest request had of them.
    """
    start = count_tokens([], model)
    ours = [count_tokens([message], model) - start for message in messages]
    newest = {index: cut for _, index, cut in cuts}
    same = [at for at, cut in newest.items() if cut.chars == len(message_text(messages[at]))]
    ratio = sum(newest[at].tokens_before for at in same) / max(sum(ours[at] for at in same), 1)
    for record, place in zip(records, places, strict=True):
        if not same and place is not None and record.prompt_tokens is not None:
            conversation = sum(ours[at] for at in place.of.values())
            ratio = (record.tokens_before - record.fixed_tokens) / max(conversation, 1)
    return [
        newest[at].tokens_before if at in newest else round(own * (ratio or 1.0))
        for at, own in enumerate(ours)
    ]


def _request(request: Request, redact: bool) -> list[Any]:
    return _columns(
        turn=request.turn,
        first=0,
        stop=request.position,
        before=_stack(request.before),
        after=_stack(request.after),
        reused=request.reused_tokens,
        outcome="too large" if request.error else "over" if request.over else "",
        error=None if redact else request.error,
        lost=() if redact else request.lost[:_LOST_SHOWN],
        lost_names=len(request.lost),
        cut_messages=len(request.cuts),
        restored=request.restored,
    )


def _recorded(
    record: RequestRecord,
    places: Places | None,
    messages: Sequence[Mapping[str, Any]],
    redact: bool,
) -> list[Any]:
    names = zip(record.gone_from or [0] * len(record.gone), record.gone, strict=True)
    before, after = (
        [min(record.fixed_tokens, tokens), max(tokens - record.fixed_tokens, 0)]
        for tokens in (record.tokens_before, record.tokens_after)
    )
    others = [cut for cut in record.cuts if _index_of(cut, places, messages) is None]
    return _columns(
        at=record.at,
        first=places.first if places else None,
        stop=places.stop if places else None,
        before=before,
        after=after,
        window=record.window_tokens,
        reused=record.cached_tokens,
        answer=record.completion_tokens,
        refusals=[
            (one.tokens, one.refused, one.limit_tokens, one.is_reported) for one in record.refusals
        ],
        outcome=record.outcome,
        is_subagent=record.is_subagent,
        lost=()
        if redact
        else [(places.of.get(at) if places else None, name) for at, name in names],
        lost_names=record.gone_names,
        cut_messages=record.cut_messages,
        left_out=places.runs(record.left_out) if places else (),
        is_retried=record.is_retried,
        is_reported=record.is_reported,
        is_before_reported=record.is_before_reported,
        other_cuts=[
            (
                *(one.index, one.role, None if redact else one.tool),
                *(one.reason, one.tokens_before, one.tokens_after),
            )
            for one in others
        ],
    )


# The columns of a request, in the order of `basics.js`, with what they hold where nothing is known.
_COLUMNS: dict[str, Any] = {
    **dict.fromkeys(("at", "turn", "first", "stop", "before", "after", "window")),
    **{"reused": None, "answer": None, "refusals": (), "outcome": "", "is_subagent": False},
    **{"error": None, "lost": (), "lost_names": 0, "cut_messages": 0, "restored": ()},
    **{"left_out": (), "is_retried": False, "is_reported": True, "is_before_reported": True},
    "other_cuts": (),
}


def _columns(**known: Any) -> list[Any]:
    return list((_COLUMNS | known).values())


def _cuts(
    replayed: Replay, messages: Sequence[Mapping[str, Any]], redact: bool
) -> Iterator[list[Any]]:
    for number, request in enumerate(replayed.requests):
        for cut in request.cuts:
            kept = _utf16(message_text(messages[cut.index]), cut.kept)
            kept_in = None if redact else cut.kept_in
            yield [number, cut.index, cut.reason, cut.tokens_after, kept, kept_in]


def _sent_cuts(
    records: Sequence[RequestRecord],
    places: Sequence[Places | None],
    messages: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[int, int, SentCut]]:
    """Yield each cut of a message of the session, behind its request's number and its index."""
    for number, (record, place) in enumerate(zip(records, places, strict=True)):
        for cut in record.cuts:
            index = _index_of(cut, place, messages)
            if index is not None:
                yield number, index, cut


def _index_of(
    cut: SentCut, places: Places | None, messages: Sequence[Mapping[str, Any]]
) -> int | None:
    """Return which message of the session was cut; `None` for one that it does not have."""
    index = places.of.get(cut.index) if places else None
    return index if index is not None and messages[index]["role"] == cut.role else None


def _recorded_cut(
    number: int,
    index: int,
    cut: SentCut,
    messages: Sequence[Mapping[str, Any]],
    each: Sequence[int],
) -> list[Any]:
    text = message_text(messages[index])
    # Of a text that was saved otherwise nothing is known but how much was sent.
    kept = _utf16(text, cut.kept) if len(text) == cut.chars else []
    return [number, index, cut.reason, min(cut.tokens_after, each[index]), kept, None]


def _utf16(text: str, positions: Sequence[int]) -> list[int]:
    """Return positions in a text as JavaScript counts them."""
    if not positions or text.isascii():
        return list(positions)
    found, at, wide = [], 0, 0
    for position in positions:
        wide += sum(char > "\uffff" for char in text[at:position])
        found.append(position + wide)
        at = position
    return found


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
    """Yield the summaries, the oldest first, and the one in use."""
    for event in events:
        if event.get("kind") == "summary":
            content = event.get("content")
            texts = content if isinstance(content, dict) else {}
            yield _summary({"status": "stored", **texts, **event})
    for at, (stored, covers) in enumerate(conversation.summaries, start=1):
        yield _summary(
            stored.record,
            at=datetime.fromtimestamp(stored.created, UTC).isoformat(timespec="seconds"),
            version=stored.version,
            covers=covers,
            status="in use" if at == len(conversation.summaries) else "stored",
            text=stored.text,
        )
    # Brings in what knows nanobot, which a conversation without a summary does not need.
    metadata = conversation.metadata.get("metadata", conversation.metadata)
    if not (isinstance(metadata, dict) and "summary" in metadata):
        return
    from nanobot_context.host.stored_summary import read

    summary = read(SimpleNamespace(metadata=metadata, messages=conversation.messages))
    if summary is not None:
        yield _summary(summary.to_dict(), status="in use")


def _summary(said: Mapping[str, Any], **known: Any) -> dict[str, Any]:
    texts = ("at", "made_by", "status", "text", "error")
    return {
        **{name: _text(said.get(name)) for name in texts},
        **{name: _number(said.get(name)) for name in ("version", "covers")},
        **known,
    }


def _learned(
    learned: Mapping[str, Mapping[str, Any]], events: list[dict[str, Any]], redact: bool
) -> Iterator[dict[str, Any]]:
    """Yield the lessons of each model, then those of the events, with their time."""
    for model, lesson in learned.items():
        known = {"at": None, "model": None if redact else model}
        for what, when in (("window_tokens", "window_at"), ("output_tokens", "output_at")):
            if lesson.get(what) is not None:
                at = _text(lesson.get(when))
                yield {**known, "at": at, "what": what, "value": _number(lesson[what])}
        for script, ratio in (lesson.get("ratios") or {}).items():
            yield {**known, "what": "ratio", "script": script, "value": _number(ratio)}
    for event in events:
        if event.get("kind") == "learned":
            yield {
                "at": _text(event.get("at")),
                "model": None if redact else _text(event.get("model")),
                "what": _text(event.get("what")) or "",
                "script": _text(event.get("script")),
                "value": _number(event.get("value")),
            }


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> int | float | None:
    return value if is_number(value) and math.isfinite(value) else None
