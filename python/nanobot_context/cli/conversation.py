"""`count`, `compress`, `inspect` and `report`: what a conversation costs, and what would be cut."""

from __future__ import annotations

import webbrowser
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from nanobot_context import (
    Compressor,
    Message,
    Receipt,
    count_tokens,
    fit_messages,
    get_context_window,
)
from nanobot_context.cli import output
from nanobot_context.cli.options import File, Json, Model, SessionName, Store, Window, Workspace
from nanobot_context.cli.output import Column, labelled, line, note, prose
from nanobot_context.conversations import (
    Conversation,
    find_conversation,
    read_conversation,
    read_objects,
)
from nanobot_context.replay import Replay, message_text, replay

__all__ = ["compress", "count", "inspect", "report"]

# How a cut's reason is said in a few words. Keys: `Cut.reason`.
REASONS = {
    "orphan_result": "result without a call",
    "missing_result": "call without a result",
    "malformed_call": "broken call",
    "reasoning": "old reasoning",
    "large_result": "large result",
    "many_results": "many results",
    "long_message": "long message",
    "budget": "over budget",
}
# Names that a request no longer says: so many are printed; all of them are in the JSON.
_LOST_SHOWN = 20
# Terminals narrower than that have no column for the text.
_WIDE = 100
# Enough for any terminal.
_TEXT_CHARS = 300


def count(
    file: File,
    model: Model = None,
    by_message: Annotated[
        bool, typer.Option("--by-message", help="Print a table of the messages, too.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Count the tokens of a conversation.

    \b
    Examples:
      nanobot-context count chat.json --model gpt-4o
      nanobot-context count chat.jsonl --by-message
      curl -s … | nanobot-context count - --json
    """
    conversation = read_conversation(file)
    model = model or conversation.model
    each = _tokens_of_each(conversation.messages, model)
    tokens = count_tokens(conversation.messages, model, tools=conversation.tools)
    counted, window = _how_counted(model), get_context_window(model)
    if as_json:
        found: dict[str, Any] = {
            "source": conversation.source,
            "model": model,
            "counted": counted,
            "tokens": tokens,
            "messages": len(each),
            "window_tokens": window,
        }
        if by_message:
            turns = _turns(conversation.messages)
            found["by_message"] = [
                {"index": index, "turn": turn, "role": message["role"], "tokens": own}
                for index, (message, turn, own) in enumerate(
                    zip(conversation.messages, turns, each, strict=True)
                )
            ]
        output.print_json(found)
        return
    if by_message:
        _print_each(conversation.messages, each)
        line()
    prose(
        f"{tokens:,} tokens in {_number(len(each), 'message')} ({_as_counted(model, counted)}); "
        f"{tokens / window:.1%} of a window of {window:,}"
    )


def compress(
    file: File,
    window: Window = None,
    model: Model = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            metavar="TOKENS",
            min=1,
            help="Fit into exactly so many tokens, with no room for an answer.",
            show_default=False,
        ),
    ] = None,
    emergency: Annotated[
        bool, typer.Option("--emergency", help="Below 60 % of the window: what helps at once.")
    ] = False,
    out: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to; `-` is stdout.")
    ] = output.STDOUT,
    receipt: Annotated[
        bool, typer.Option("--receipt", help="Say on stderr what was cut, and why.")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="An object with messages and receipt instead of the messages."),
    ] = False,
) -> None:
    """Make a conversation fit the model's window.

    It is written as a JSON list of messages. Room for the answer is kept free: 15 % of the window.
    Ends with 1 where what must stay (system messages, tools, the last message of the user) is too
    large by itself.

    \b
    Examples:
      nanobot-context compress chat.json --model gpt-4o -o small.json --receipt
      nanobot-context compress chat.jsonl --window 32000 | head
      nanobot-context compress chat.json --max-tokens 8000 --json > small.json
    """
    conversation = read_conversation(file)
    model = model or conversation.model
    made: Receipt | None
    with output.progress("compressing"):
        if max_tokens is not None:
            if window is not None or emergency:
                output.fail("`--max-tokens` goes with neither `--window` nor `--emergency`")
            fitted = fit_messages(
                conversation.messages, max_tokens, model, tools=conversation.tools
            )
            messages, made = fitted.messages, fitted.receipt
        else:
            if window is None and model is None:
                output.fail("nothing says how large the window is\nhint: `--window` or `--model`")
            compressor = Compressor(
                window or get_context_window(model), model, tools=conversation.tools
            )
            work = compressor.emergency if emergency else compressor.compress
            messages, made = work(conversation.messages), compressor.receipt
    if as_json:
        made_of = _receipt_dict(conversation, messages, model, made)
        content = output.json_bytes({"messages": messages, "receipt": made_of})
    else:
        content = output.json_bytes(messages)
    output.write(out, content)
    if receipt:
        _print_receipt(conversation, made)
    if receipt or out != output.STDOUT:
        before, after = (
            count_tokens(some, model, tools=conversation.tools)
            for some in (conversation.messages, messages)
        )
        note(
            f"{before:,} → {after:,} tokens ({_as_counted(model, _how_counted(model))}), "
            f"{len(conversation.messages):,} → {_number(len(messages), 'message')}"
        )


def inspect(
    session: SessionName,
    window: Window = None,
    model: Model = None,
    cuts: Annotated[bool, typer.Option("--cuts", help="Only what would be cut.")] = False,
    workspace: Workspace = None,
    store: Store = None,
    as_json: Json = False,
) -> None:
    """Show what would be cut at a given window, and why.

    The conversation is sent again, request by request, as nanobot with this package sends it, with
    the settings in force. No model is called. The table is of the last request.

    \b
    Examples:
      nanobot-context inspect cli:direct --window 32000
      nanobot-context inspect chat.json --model deepseek-chat --cuts
      nanobot-context inspect telegram:7345 --json | jq .requests
    """
    from nanobot_context.cli.in_force import in_force

    conversation = find_conversation(session, workspace=workspace, store=store)
    known = in_force(conversation, model, window)
    with output.progress("replaying") as on_request:
        played = replay(
            conversation.messages,
            known.window_tokens,
            known.model,
            tools=conversation.tools,
            settings=known.settings,
            on_request=on_request,
        )
    if as_json:
        output.print_json(_replay_dict(conversation, played))
    else:
        _print_fates(conversation, played, only_cuts=cuts)
        line()
        _print_replay(conversation, played)


def report(
    session: SessionName,
    out: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The page; by default the session's name and `.report.html`.",
            show_default=False,
        ),
    ] = None,
    window: Window = None,
    model: Model = None,
    events: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Events to show with it (JSONL); by default those of the setting `events`.",
            show_default=False,
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    workspace: Workspace = None,
    store: Store = None,
    as_json: Json = False,
) -> None:
    """Write a page that shows every request and cut.

    One HTML file that loads nothing from anywhere.

    \b
    Examples:
      nanobot-context report cli:direct -o page.html --open
      nanobot-context report chat.json --window 32000 --events events.jsonl
    """
    from nanobot_context.cli.in_force import in_force
    from nanobot_context.report import write_report

    conversation = find_conversation(session, workspace=workspace, store=store)
    known = in_force(conversation, model, window)
    happened = read_objects(events) if events is not None else known.events()
    path = Path(out or f"{_file_name(conversation.name)}.report.html")
    if path.exists() and not path.is_file():
        output.fail(f"`{path}` is no file")
    with output.progress("replaying") as on_request:
        write_report(
            conversation,
            path,
            window_tokens=known.window_tokens,
            model=known.model,
            events=happened,
            learned=known.learned,
            settings=known.settings,
            on_request=on_request,
        )
    if as_json:
        output.print_json({"path": str(path), "bytes": path.stat().st_size})
    else:
        line(f"written: {path} ({path.stat().st_size:,} bytes)")
    if show:
        webbrowser.open(path.resolve().as_uri())


# What is printed ----------------------------------------------------------------------------------


def _print_each(messages: Sequence[Message], each: Sequence[int]) -> None:
    whole = sum(each) or 1
    columns = [
        Column("#", "right", "dim"),
        Column("turn", "right", "dim"),
        Column("role", flexible=True),
        Column("tokens", "right"),
        Column("share", "right", "dim"),
        Column("text", style="dim", flexible=True),
    ]
    rows = (
        [
            *(f"{index:,}", f"{turn:,}", message["role"], f"{own:,}", f"{own / whole:.1%}"),
            message_text(message)[:_TEXT_CHARS],
        ]
        for index, (message, turn, own) in enumerate(
            zip(messages, _turns(messages), each, strict=True)
        )
    )
    output.print_table(columns, rows)


def _print_fates(conversation: Conversation, played: Replay, *, only_cuts: bool) -> None:
    columns = [
        Column("#", "right", "dim"),
        Column("turn", "right", "dim"),
        Column("role", flexible=True),
        Column("tokens", "right"),
        Column("sent", "right"),
        Column("what would be cut, and why", style="yellow", flexible=True),
    ]
    has_text = output.width() >= _WIDE
    if has_text:
        columns.append(Column("text", style="dim", flexible=True))
    rows = []
    for fate in played.messages:
        if only_cuts and fate.state == "kept":
            continue
        role = f"{fate.role} {fate.tool}" if fate.tool else fate.role
        why = "" if fate.state == "kept" else f"{fate.state}: {_reason(fate.reason)}"
        row = [f"{fate.index:,}", f"{fate.turn:,}", role, f"{fate.tokens:,}"]
        row += [f"{fate.tokens_after:,}", why]
        if has_text:
            row.append(message_text(conversation.messages[fate.index])[:_TEXT_CHARS])
        rows.append(row)
    output.print_table(columns, rows)


def _print_replay(conversation: Conversation, played: Replay) -> None:
    requests, states = played.requests, Counter(fate.state for fate in played.messages)
    counted = _as_counted(played.model, played.counted)
    labelled("conversation", f"{conversation.name} ({conversation.source})")
    labelled(
        "window",
        f"{played.window_tokens:,} tokens ({counted}), "
        f"{played.budget_tokens:,} for messages and tools",
    )
    if not requests:
        labelled("requests", "none: there are no messages")
        return
    last = requests[-1]
    labelled(
        "next request",
        f"{last.tokens_before:,} → {last.tokens_after:,} tokens; "
        f"{states['shortened']:,} shortened, {states['left out']:,} left out "
        f"of {_number(len(played.messages), 'message')}",
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


def _print_receipt(conversation: Conversation, made: Receipt | None) -> None:
    if made is None or not made.cuts:
        note("nothing was cut")
        return
    for cut in made.cuts:
        role = conversation.messages[cut.index]["role"]
        note(
            f"{cut.index:>6,}  {role:<10} {cut.tokens_before:>9,} → {cut.tokens_after:>7,}  "
            f"{_reason(cut.reason)}"
        )
    for lost in made.lost[:_LOST_SHOWN]:
        note(f"{lost.index:>6,}  no longer said: {lost.kind} {output.one_line(lost.text)}")
    if len(made.lost) > _LOST_SHOWN:
        note(f"        and {len(made.lost) - _LOST_SHOWN:,} more that are no longer said")


def _receipt_dict(
    conversation: Conversation, messages: list[Message], model: str | None, made: Receipt | None
) -> dict[str, Any]:
    def counted(some: list[Message]) -> int:
        return count_tokens(some, model, tools=conversation.tools)

    cuts, lost = (made.cuts, made.lost) if made else ([], [])
    return {
        "model": model,
        "counted": _how_counted(model),
        "tokens_before": counted(conversation.messages),
        "tokens_after": counted(messages),
        "cuts": [
            {
                "index": cut.index,
                "role": conversation.messages[cut.index]["role"],
                "reason": cut.reason,
                "tokens_before": cut.tokens_before,
                "tokens_after": cut.tokens_after,
            }
            for cut in cuts
        ],
        "lost": [{"index": one.index, "kind": one.kind, "text": one.text} for one in lost],
    }


def _replay_dict(conversation: Conversation, played: Replay) -> dict[str, Any]:
    """Return a replay as JSON values; without the texts, which are the report's."""
    return {
        "name": conversation.name,
        "source": conversation.source,
        "window_tokens": played.window_tokens,
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


# What is known ------------------------------------------------------------------------------------


def _tokens_of_each(messages: Sequence[Message], model: str | None) -> list[int]:
    """Return the tokens of each message: what it adds to a prompt."""
    start = count_tokens([], model)
    each = []
    with output.progress("counting") as done:
        for message in messages:
            each.append(count_tokens([message], model) - start)
            done(len(each), len(messages))
    return each


def _turns(messages: Sequence[Message]) -> list[int]:
    """Return for each message how many messages of the user there are up to it."""
    turn = 0
    return [turn := turn + (message["role"] == "user") for message in messages]


def _how_counted(model: str | None) -> str:
    """Return whether counts for a model are `exact` or `estimated`."""
    return fit_messages([], 1 << 40, model).receipt.source or "exact"


def _as_counted(model: str | None, counted: str) -> str:
    return f"{model}, {counted}" if model else "no model named, o200k vocabulary"


def _file_name(name: str) -> str:
    """Return a session's key, or a file's name without its ending, as a file may be called."""
    stem = Path(name).stem if ":" not in name else name
    kept = "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in stem)
    return kept.strip(".") or "conversation"


def _reason(reason: str | None) -> str:
    return REASONS.get(reason or "", reason or "")


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
