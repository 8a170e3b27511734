"""Prints conversations, receipts and replays as tables, or returns them as JSON values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from typing import Any

from nanobot_context import Message, Receipt, count_tokens
from nanobot_context._core import superseded
from nanobot_context.cli import output
from nanobot_context.cli.output import Column, labelled, note, number_of
from nanobot_context.conversations import Conversation
from nanobot_context.guard.record import RequestRecord, Sent, SentCut
from nanobot_context.history import SYSTEM_ROLES
from nanobot_context.message_texts import message_text, turns_of
from nanobot_context.replay import Replay, how_counted
from nanobot_context.report.places import Places, places_of
from nanobot_context.words import listed, shown

Counted = tuple[int | None, int, Message, int]
"""The place of a message in the list that was read, its turn, the message and its tokens."""

# How a cut's reason is said in a few words. Keys: `Cut.reason`.
REASONS = {
    "orphan_result": "result without a call",
    "late_result": "late result, moved to its call",
    "missing_result": "call without a result",
    "malformed_call": "broken call",
    "reasoning": "old reasoning",
    "large_result": "large result",
    "many_results": "many results",
    "long_message": "long message",
    "budget": "over budget",
    "joined": "joined with another",
}
# How a later message replaces one: see `superseded`.
_LATER = {
    "repeated": "same as",
    "again": "asked again in",
    "changed": "file written in",
    "rewritten": "newer version in",
}
# What became of a request, where its own word does not say it.
_OUTCOMES = {"interrupted": "stopped before the answer"}
# Lost names that are printed; the JSON has all of them.
_LOST_SHOWN = 20
# Of a text; in a pipe all of them.
_TEXT_CHARS = 120

# The columns of a message in every table, and its text at the end.
_MESSAGE = (
    Column("#", "right", "dim"),
    Column("turn", "right", "dim"),
    Column("role", flexible=True),
    Column("tokens", "right"),
)
_TEXT = Column("text", style="dim", flexible=True)


def print_each(each: Sequence[Counted]) -> None:
    """Print a table of messages."""
    whole = sum(tokens for *_, tokens in each) or 1
    columns = [*_MESSAGE, Column("share", "right", "dim"), _TEXT]
    rows = (
        [
            *("" if place is None else f"{place + 1:,}", f"{turn:,}", message["role"]),
            *(f"{own:,}", f"{own / whole:.1%}", message_text(message)[:_TEXT_CHARS]),
        ]
        for place, turn, message, own in each
    )
    output.print_table(columns, rows)


def print_fates(conversation: Conversation, played: Replay, *, only_cuts: bool) -> None:
    """Print a table of the fate of each message, or with `only_cuts` of those that were cut."""
    why_column = Column("cut, and why", style="yellow", flexible=True)
    columns = [*_MESSAGE, Column("sent", "right"), why_column, _TEXT]
    why = _whys(
        conversation.messages,
        {fate.index for fate in played.messages if fate.state == "left out"},
        {fate.index for fate in played.messages if fate.state != "kept"},
    )
    rows = []
    for fate in played.messages:
        if only_cuts and fate.state == "kept":
            continue
        role = f"{fate.role} {fate.tool}" if fate.tool else fate.role
        became = shown(f"{fate.state}: {why(fate.index, fate.reason)}")
        row = [f"{fate.index + 1:,}", f"{fate.turn:,}", role, f"{fate.tokens:,}"]
        text = message_text(conversation.messages[fate.index])[:_TEXT_CHARS]
        rows.append([*row, f"{fate.tokens_after:,}", "" if fate.state == "kept" else became, text])
    output.print_table(columns, rows)


def print_records(
    conversation: Conversation, records: Sequence[RequestRecord], *, only_cuts: bool
) -> None:
    """Print what was sent: a table of requests, and of what the newest cut.

    That is the newest of the session itself, where a subagent's is not all that there is.
    """
    newest = max((at for at, one in enumerate(records) if not one.is_subagent), default=-1)
    last = records[newest]
    if not only_cuts:
        _print_requests(records)
    if last.cuts:
        _print_cuts(conversation.messages, last, places_of(records, conversation.messages)[newest])
    labelled("recorded", f"{number_of(len(records), 'request')}; {conversation.name}")
    labelled("window", f"{last.window_tokens:,} tokens; {last.window_source}")
    before = output.about(last.tokens_before, last.is_before_reported)
    after = output.about(last.tokens_after, last.is_reported)
    labelled(
        "newest request",
        f"{before} → {after} tokens; {last.cut_messages:,} of "
        f"{number_of(last.messages, 'message')} cut",
    )
    if last.gone:
        more = shown(f" and {last.gone_names - len(last.gone):,} more")
        names = listed(map(output.one_line, last.gone))
        labelled("no longer said", names + more * (last.gone_names > len(last.gone)))


def _print_requests(records: Sequence[RequestRecord]) -> None:
    columns = [
        Column("time (UTC)", style="dim"),
        Column("before", "right"),
        Column("sent", "right"),
        Column("cut", "right"),
        Column("window", "right"),
        Column("what happened", style="yellow", flexible=True),
    ]
    rows = (
        [
            record.at[:19].replace("T", " "),
            output.about(record.tokens_before, record.is_before_reported),
            output.about(record.tokens_after, record.is_reported),
            f"{record.cut_messages:,}" if record.cut_messages else "",
            f"{record.window_tokens:,}",
            _happened(record),
        ]
        for record in records
    )
    output.print_table(columns, rows)
    output.line()


def _print_cuts(messages: Sequence[Message], record: RequestRecord, places: Places | None) -> None:
    """Print what a request cut, by the numbers of the session, else by those of the request."""
    why = _why_recorded(messages, record, places)
    of = places.of if places else {}
    columns = [
        Column("#", "right", "dim"),
        Column("role", flexible=True),
        Column("tokens", "right"),
        Column("sent", "right"),
        Column("why", style="yellow", flexible=True),
    ]
    rows = (
        [
            f"{of[cut.index] + 1 if cut.index in of else cut.index:,}",
            f"{cut.role} {cut.tool}" if cut.tool else cut.role,
            f"{cut.tokens_before:,}",
            f"{cut.tokens_after:,}",
            shown(why(cut)),
        ]
        for cut in record.cuts
    )
    output.print_table(columns, rows)
    output.line()


def _why_recorded(
    messages: Sequence[Message], record: RequestRecord, places: Places | None
) -> Callable[[SentCut], str]:
    """Return a function that says why a message of a recorded request was cut.

    Where the session has the message, by what stands in it; else by the record alone.
    """
    if places is None:
        return lambda cut: _reason(cut.reason)
    left_out = {
        index for first, last in places.runs(record.left_out) for index in range(first, last + 1)
    }
    cut_at = {places.of[cut.index] for cut in record.cuts if cut.index in places.of}
    why = _whys(messages[: places.stop], left_out, cut_at | left_out)
    return lambda cut: (
        why(places.of[cut.index], cut.reason) if cut.index in places.of else _reason(cut.reason)
    )


def _whys(
    messages: Sequence[Message],
    left_out: Collection[int],
    cut: Collection[int],
    place: Callable[[int], int] = lambda index: index,
) -> Callable[[int, str | None], str]:
    """Return a function that says why a message was cut, by its index and the core's reason.

    Args:
        left_out: Indexes of those that were left out.
        cut: Indexes of those that were not sent whole.
        place: Returns where another message is shown to be, by its index.
    """
    later = {index: (why, by) for index, why, by in superseded(messages)}
    turns = turns_of(messages)
    oldest = next(
        (
            index
            for index, message in enumerate(messages)
            if index not in left_out and message["role"] not in SYSTEM_ROLES
        ),
        0,
    )

    def why(index: int, reason: str | None) -> str:
        kind, by = later.get(index, ("", 0))
        # A later message that was cut itself does not repeat this one.
        if kind and not (kind == "repeated" and by in cut):
            return f"{_LATER[kind]} #{place(by) + 1:,}"
        if reason != "budget":
            return _reason(reason)
        if index < oldest:
            return "oldest rounds"
        ago = turns[-1] - turns[index]
        return f"{number_of(ago, 'round')} ago" if ago else "of the round under way"

    return why


def _happened(record: RequestRecord) -> str:
    """Return the outcome of a request in a few words."""
    said = list(map(_refusal, record.refusals))
    if record.is_retried:
        said.append("sent again")
    if said or record.outcome != "answered":
        said.append(_OUTCOMES.get(record.outcome, record.outcome))
    if record.is_subagent:
        said.append("subagent")
    return listed(said)


def _refusal(attempt: Sent) -> str:
    if attempt.refused == "silent":
        return f"cut in silence at {attempt.limit_tokens or 0:,}"
    if attempt.refused == "reasoning":
        return "refused without the model's reasoning"
    return f"refused at {output.about(attempt.tokens, attempt.is_reported)}"


def records_dict(conversation: Conversation, records: Sequence[RequestRecord]) -> dict[str, Any]:
    """Return recorded requests as JSON values."""
    last = records[-1]
    return {
        "name": conversation.name,
        "source": conversation.source,
        "recorded": True,
        "window_tokens": last.window_tokens,
        "window_source": last.window_source,
        "model": last.model,
        "requests": [record.to_dict() for record in records],
    }


def print_replay(conversation: Conversation, played: Replay, window_source: str) -> None:
    """Print the results of a replay: the window, the next request, and all requests together."""
    requests, states = played.requests, Counter(fate.state for fate in played.messages)
    counted = as_counted(played.model)
    labelled("replay", "what would be sent now, request by request; not what was sent")
    labelled("conversation", f"{conversation.name} ({conversation.source})")
    labelled(
        "window",
        f"{played.window_tokens:,} tokens ({counted}), "
        f"{played.budget_tokens:,} for messages and tools; {window_source}",
    )
    if not requests:
        labelled("requests", "none: there are no messages")
        return
    last = requests[-1]
    labelled(
        "next request",
        f"{last.tokens_before:,} → {last.tokens_after:,} tokens; "
        f"{states['shortened']:,} shortened, {states['left out']:,} left out "
        f"of {number_of(len(played.messages), 'message')}",
    )
    failed = sum(request.error is not None for request in requests)
    cutting = sum(bool(request.cuts) for request in requests)
    sent = sum(request.tokens_after for request in requests)
    reused = sum(request.reused_tokens for request in requests)
    cannot = f", {failed:,} cannot be sent" if failed else ""
    labelled("requests", f"{len(requests):,}, {cutting:,} of them cut anew{cannot}")
    if sent:
        labelled("reused", f"{reused / sent:.0%} of all that is sent begins as the request before")
    if last.error is not None:
        labelled("too large", last.error, "bold red")


def print_receipt(conversation: Conversation, made: Receipt | None) -> None:
    """Print to standard error what was cut, and the first names that are no longer said."""
    if made is None or not made.cuts:
        note("nothing was cut")
        return
    left_out = {cut.index for cut in made.cuts if not cut.tokens_after}
    cut_at = {cut.index for cut in made.cuts}
    why = _whys(conversation.messages, left_out, cut_at, conversation.place)
    for cut in made.cuts:
        role = conversation.messages[cut.index]["role"]
        place = conversation.place(cut.index) + 1
        note(
            f"{place:>6,}  {role:<10} {cut.tokens_before:>9,} → {cut.tokens_after:>7,}  "
            f"{shown(why(cut.index, cut.reason))}"
        )
    for lost in made.lost[:_LOST_SHOWN]:
        name = f"{lost.kind} {output.one_line(lost.text)}"
        place = conversation.place(lost.index) + 1
        note(f"{place:>6,}  {shown('no longer said')}: {name}")
    if len(made.lost) > _LOST_SHOWN:
        note(f"        and {len(made.lost) - _LOST_SHOWN:,} more that are no longer said")


def receipt_dict(
    conversation: Conversation, messages: list[Message], model: str | None, made: Receipt | None
) -> dict[str, Any]:
    """Return the result of a compression as JSON values."""

    def counted(some: list[Message]) -> int:
        return count_tokens(some, model, tools=conversation.tools)

    cuts, lost = (made.cuts, made.lost) if made else ([], [])
    return {
        "model": model,
        "counted": how_counted(model),
        "tokens_before": counted(conversation.messages),
        "tokens_after": counted(messages),
        "cuts": [
            {
                "index": conversation.place(cut.index),
                "role": conversation.messages[cut.index]["role"],
                "reason": cut.reason,
                "tokens_before": cut.tokens_before,
                "tokens_after": cut.tokens_after,
            }
            for cut in cuts
        ],
        "lost": [
            {"index": conversation.place(one.index), "kind": one.kind, "text": one.text}
            for one in lost
        ],
    }


def replay_dict(conversation: Conversation, played: Replay, window_source: str) -> dict[str, Any]:
    """Return a replay as JSON values; without the texts, which are the report's."""
    return {
        "name": conversation.name,
        "source": conversation.source,
        "recorded": False,
        "window_tokens": played.window_tokens,
        "window_source": window_source,
        "budget_tokens": played.budget_tokens,
        "model": played.model,
        "counted": played.counted,
        "messages": [asdict(fate) for fate in played.messages],
        "requests": [
            {
                "position": request.position,
                "turn": request.turn,
                "tokens_before": request.tokens_before,
                "tokens_after": request.tokens_after,
                "reused_tokens": request.reused_tokens,
                "cuts": [cut.index for cut in request.cuts],
                "over": request.over,
                "error": request.error,
            }
            for request in played.requests
        ],
    }


def as_counted(model: str | None) -> str:
    """Return how tokens were counted, for people."""
    return f"{model}, {how_counted(model)}" if model else "no model named, o200k vocabulary"


def _reason(reason: str | None) -> str:
    return REASONS.get(reason or "", reason or "")
