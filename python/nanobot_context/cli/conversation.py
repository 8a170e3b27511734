"""The commands that read one conversation: `count`, `compress`, `inspect` and `report`."""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from nanobot_context import Receipt, count_tokens, get_context_window
from nanobot_context._core import Compressor, fit_messages
from nanobot_context.cli import output
from nanobot_context.cli.options import File, Json, Model, SessionName, Store, Window, Workspace
from nanobot_context.cli.output import line, note, number_of, prose
from nanobot_context.cli.render import (
    Counted,
    as_counted,
    print_each,
    print_fates,
    print_receipt,
    print_records,
    print_replay,
    receipt_dict,
    records_dict,
    replay_dict,
)
from nanobot_context.conversations import (
    Conversation,
    find_conversation,
    model_of,
    read_conversation,
    read_objects,
)
from nanobot_context.errors import SessionNotFoundError
from nanobot_context.message_texts import turns_of
from nanobot_context.replay import how_counted, replay
from nanobot_context.words import language, shown


def _conversation(name: str) -> Conversation:
    """Return what a file holds, or the session of that name where there is no such file."""
    try:
        return read_conversation(name)
    except FileNotFoundError:
        with suppress(SessionNotFoundError):
            return find_conversation(name)
        raise


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
      nanobot-context count cli:direct
      curl -s … | nanobot-context count - --json
    """
    from nanobot_context.cli.in_force import in_force

    conversation = _conversation(file)
    # Where nobody names a model it is nanobot's, with the window that nanobot has for it.
    is_nanobots = model is None and conversation.model is None
    model = model_of(conversation, model)
    known = in_force(conversation, model, None) if is_nanobots else None
    window = known.window_tokens if known else get_context_window(model)
    tokens = count_tokens(conversation.messages, model, tools=conversation.tools)
    if as_json:
        found: dict[str, Any] = {
            "source": conversation.source,
            "model": model,
            "counted": how_counted(model),
            "tokens": tokens,
            "messages": _count(conversation),
            "window_tokens": window,
        }
        if by_message:
            found["by_message"] = [
                {"index": index, "turn": turn, "role": message["role"], "tokens": own}
                for index, turn, message, own in _each(conversation, model)
            ]
        output.print_json(found)
        return
    if by_message:
        print_each(_each(conversation, model))
        line()
    prose(
        shown(
            f"{tokens:,} tokens in {number_of(_count(conversation), 'message')} "
            f"({as_counted(model)}); {tokens / window:.1%} of a window of {window:,}"
        )
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
    above: Annotated[
        int | None,
        typer.Option(
            metavar="MESSAGE",
            min=0,
            help="With `--max-tokens`: cut only what is before this one, counted from 0.",
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

    It is written as a JSON list of messages, in the form that it had. Room for the answer is kept
    free: 15 % of the window.
    Ends with 1 where what must stay (system messages, tools, the last message of the user) is too
    large by itself.

    \b
    Examples:
      nanobot-context compress chat.json --model gpt-4o -o small.json --receipt
      nanobot-context compress chat.jsonl --window 32000 | head
      nanobot-context compress chat.json --max-tokens 8000 --json > small.json
      nanobot-context compress chat.json --max-tokens 8000 --above 40 > small.json
    """
    conversation = _conversation(file)
    model = model or conversation.model
    form = conversation.form
    given = form.messages if form else conversation.messages
    made: Receipt | None
    with output.progress("compressing"):
        if max_tokens is not None:
            if window is not None or emergency:
                output.fail("`--max-tokens` goes with neither `--window` nor `--emergency`")
            if above is not None and form is not None:
                above = form.read_before(above)
            fitted = fit_messages(given, max_tokens, model, above=above, tools=conversation.tools)
            messages, made = fitted.messages, fitted.receipt
        else:
            if above is not None:
                output.fail("`--above` goes with `--max-tokens`")
            if window is None and model is None:
                output.fail("nothing says how large the window is\nhint: `--window` or `--model`")
            compressor = Compressor(
                window or get_context_window(model), model, tools=conversation.tools
            )
            work = compressor.emergency if emergency else compressor.compress
            messages, made = work(given), compressor.receipt
    written = form.written(messages) if form else messages
    if as_json:
        made_of = receipt_dict(conversation, messages, model, made)
        content = output.json_bytes({"messages": written, "receipt": made_of})
    else:
        content = output.json_bytes(written)
    output.write(out, content)
    if receipt:
        print_receipt(conversation, made)
    if receipt or out != output.STDOUT:
        before, after = (
            count_tokens(some, model, tools=conversation.tools)
            for some in (conversation.messages, messages)
        )
        note(
            f"{before:,} → {after:,} tokens ({as_counted(model)}), "
            f"{_count(conversation):,} → {number_of(len(written), 'message')}"
        )


def inspect(
    session: SessionName,
    window: Window = None,
    model: Model = None,
    cuts: Annotated[bool, typer.Option("--cuts", help="Only what is cut.")] = False,
    what_if: Annotated[
        bool, typer.Option("--replay", help="What would be sent now, not what was sent.")
    ] = False,
    workspace: Workspace = None,
    store: Store = None,
    as_json: Json = False,
) -> None:
    """Show what was sent, what was cut, and why.

    Of a session of nanobot's: its recorded requests, and the cuts of the newest; so of `wrap`,
    `serve` and `call_with_recovery`, beside an installed nanobot, and of a file that
    `serve --record` wrote. Of anything else, and with `--window`, `--model` or `--replay`: a
    replay. The conversation is sent again, request by request, as nanobot with this package sends
    it, with the settings in force; no model is called. The table is of the last request.

    \b
    Examples:
      nanobot-context inspect cli:direct
      nanobot-context inspect cli:direct --window 32000
      nanobot-context inspect chat.json --model deepseek-chat --cuts
      nanobot-context inspect telegram:7345 --json | jq .requests
      nanobot-context inspect record.jsonl
    """
    from nanobot_context.cli.in_force import in_force, own_records

    is_replay = what_if or window is not None or model is not None
    conversation, records = own_records(session)
    if records and is_replay:
        output.fail(
            "a record of requests has no texts to replay\n"
            "hint: leave out `--window`, `--model` and `--replay`"
        )
    if not records or is_replay:
        conversation = find_conversation(session, workspace=workspace, store=store)
        known = in_force(conversation, model, window)
        records = [] if is_replay else known.records(conversation)
    if records:
        if as_json:
            output.print_json(records_dict(conversation, records))
        else:
            print_records(conversation, records, only_cuts=cuts)
        return
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
        output.print_json(replay_dict(conversation, played, known.window_source))
    else:
        print_fates(conversation, played, only_cuts=cuts)
        line()
        print_replay(conversation, played, known.window_source)


def report(
    session: SessionName,
    out: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The page, `-` is stdout; by default the session's name and `.report.html`.",
            show_default=False,
        ),
    ] = None,
    window: Window = None,
    model: Model = None,
    events: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Events of summaries and lessons (JSONL); by default those of the settings.",
            show_default=False,
        ),
    ] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="No texts, no names, no model: a page to hand on.")
    ] = False,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    workspace: Workspace = None,
    store: Store = None,
    as_json: Json = False,
) -> None:
    """Write a page: what was sent, and what was not.

    What the model no longer saw, why, and what it cost: of the recorded requests of a session of
    nanobot's; of anything else, and with `--window` or `--model`, of a replay. One HTML file that
    loads nothing from anywhere.

    \b
    Examples:
      nanobot-context report cli:direct -o page.html --open
      nanobot-context report chat.json --window 32000 --lang zh
      nanobot-context report cli:direct --redact -o - > page.html
    """
    from nanobot_context.cli.in_force import in_force
    from nanobot_context.report import report_page
    from nanobot_context.report.originals import originals_of

    if out == output.STDOUT and (as_json or show):
        output.fail("a page on standard output goes with neither `--json` nor `--open`")
    conversation = find_conversation(session, workspace=workspace, store=store)
    known = in_force(conversation, model, window)
    happened = read_objects(events) if events is not None else known.events()
    path = Path(out or f"{_file_name(conversation.name)}.report.html")
    if out != output.STDOUT and path.exists() and not path.is_file():
        output.fail(f"`{path}` is not a regular file")
    records = [] if window is not None or model is not None else known.records(conversation)
    replayed, learned = None, known.learned
    if records:
        # The model may be another one now.
        places = {record.place for record in records}
        learned = {name: one for name, one in known.lessons.items() if name in places}
    else:
        with output.progress("replaying") as on_request:
            replayed = replay(
                conversation.messages,
                known.window_tokens,
                known.model,
                tools=conversation.tools,
                settings=known.settings,
                archive=originals_of(conversation.source),
                on_request=on_request,
            )
    page = report_page(
        conversation,
        replayed,
        events=happened,
        learned=learned,
        records=records,
        language=language(),
        redact=redact,
    )
    if out == output.STDOUT:
        output.write(out, page)
        return
    path.write_bytes(page)
    if as_json:
        output.print_json({"path": str(path), "bytes": path.stat().st_size})
    else:
        line(f"written: {path} ({path.stat().st_size:,} bytes)")
    if show:
        webbrowser.open(path.resolve().as_uri())


def _count(conversation: Conversation) -> int:
    """Return how many messages, or items, the list has that was read."""
    form = conversation.form
    return len(form.body[form.messages_name] if form else conversation.messages)


def _each(conversation: Conversation, model: str | None) -> list[Counted]:
    """Return each message with its place, its turn and its tokens: what it adds to a prompt."""
    messages = conversation.messages
    start = count_tokens([], model)
    each = []
    with output.progress("counting") as done:
        for message in messages:
            each.append(count_tokens([message], model) - start)
            done(len(each), len(messages))
    form = conversation.form
    places = form.places() if form else range(len(messages))
    rows = zip(places, turns_of(messages), messages, each, strict=True)
    # A result is read with its call, wherever it stands.
    return sorted(rows, key=lambda row: -1 if row[0] is None else row[0])


def _file_name(name: str) -> str:
    """Return a session's key, or a file's name without its ending, as a file may be called."""
    stem = Path(name).stem if ":" not in name else name
    kept = "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in stem)
    return kept.strip(".") or "conversation"
