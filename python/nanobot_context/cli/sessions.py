"""`sessions`: list, show, import, export, delete and prune; in a store or in nanobot's files."""

from __future__ import annotations

import functools
import json
import re
import time
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from nanobot_context import count_tokens
from nanobot_context._core import mask_credentials
from nanobot_context.cli import output
from nanobot_context.cli.options import Json, Model, Store, Workspace, Yes, session_keys
from nanobot_context.cli.output import Column, labelled, line, prose
from nanobot_context.cli.render import as_counted
from nanobot_context.cli.session_sources import Entry, SessionSource, Stored, source_of
from nanobot_context.conversations import (
    Conversation,
    find_conversation,
    model_of,
    nanobot_session_files,
    read_conversation,
)
from nanobot_context.errors import ConversationFileError, InvalidArgumentError, InvalidInputError
from nanobot_context.replay import message_text
from nanobot_context.words import shown

HELP = "List, show, import, export, delete sessions."

Key = Annotated[
    str,
    typer.Argument(metavar="SESSION", show_default=False, autocompletion=session_keys),
]
App = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="In a store: whose app; by default nanobot's."),
]
User = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="In a store: which user; by default nanobot's."),
]

_AGE = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
# What `show` prints of a message without `--full`.
_SHOWN_CHARS = 600


def list_(
    store: Store = None,
    workspace: Workspace = None,
    app: App = None,
    user: User = None,
    as_json: Json = False,
) -> None:
    """List sessions, the one written last first.

    \b
    Examples:
      nanobot-context sessions list
      nanobot-context sessions list --store sqlite:///sessions.db --json
    """
    source = source_of(store, workspace, app, user)
    entries = source.entries()
    if as_json:
        output.print_json([_entry_dict(entry, source) for entry in entries])
        return
    if not entries:
        output.note(f"there are no sessions in {source.shown}")
        return
    columns = [Column("session", flexible=True), Column(source.items, "right"), Column("updated")]
    rows = [[entry.key, f"{entry.items:,}", _time(entry.updated)] for entry in entries]
    if not isinstance(source, Stored):
        columns.insert(2, Column("kB", "right"))
        for row, entry in zip(rows, entries, strict=True):
            row.insert(2, f"{-(-(entry.bytes or 0) // 1000):,}")
    output.print_table(columns, rows)


def show(
    session: Key,
    last: Annotated[int, typer.Option(metavar="N", min=0, help="The newest messages only.")] = 10,
    full: Annotated[bool, typer.Option("--full", help="All messages, uncut.")] = False,
    model: Model = None,
    store: Store = None,
    workspace: Workspace = None,
    app: App = None,
    user: User = None,
    as_json: Json = False,
) -> None:
    """Show a session: how large it is, and what was said last.

    With `--json` all of it, as `count`, `compress`, `inspect` and `report` read it.

    \b
    Examples:
      nanobot-context sessions show cli:direct --last 4
      nanobot-context sessions show cli:direct --json > session.json
    """
    if app or user:
        from nanobot_context.sessions.nanobot_files import APP, USER

        session = f"{app or APP}/{user or USER}/{session}"
    conversation = find_conversation(session, workspace=workspace, store=store)
    if as_json:
        output.print_json(
            {
                "name": conversation.name,
                "source": conversation.source,
                "metadata": conversation.metadata,
                "messages": conversation.messages,
            }
        )
        return
    _print_head(conversation, model)
    messages = conversation.messages
    start = 0 if full else max(0, len(messages) - last)
    for index, message in enumerate(messages[start:], start):
        text = message_text(message)
        if not full and len(text) > _SHOWN_CHARS:
            more = len(text) - _SHOWN_CHARS
            text = f"{text[:_SHOWN_CHARS]} … {shown(f'and {more:,} more characters')}"
        line()
        line(f"#{index + 1:,} {message['role']}", "bold")
        prose(text)


def import_(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", help="Session files of nanobot's, or folders of them."),
    ],
    store: Store = None,
    app: App = None,
    user: User = None,
    as_json: Json = False,
) -> None:
    """Bring nanobot's session files into a store.

    The files are only read. Importing one again changes nothing, or appends what is new. A file
    that cannot be imported is named, and the others are.

    \b
    Examples:
      nanobot-context sessions import session.jsonl
      nanobot-context sessions import old/sessions --store sqlite:///new.db
    """
    from nanobot_context.sessions.nanobot_files import import_nanobot_file

    # Only once there is something to import: a SQLite file would be made for nothing.
    opened = functools.cache(lambda: _store_of(source_of(store, None, app, user, create=True)))
    files = [file for path in paths for file in _files_of(path)]
    done: list[dict[str, Any]] = []
    problems: list[str] = []
    places: dict[str, Path] = {}
    for file in files:
        other = places.setdefault(file.name, file)
        if other.parent != file.parent:
            output.fail(
                f"`{other}` and `{file}` would be one session\n"
                "hint: import one folder, or each with an `--app` of its own"
            )
    with output.progress("importing") as on_file:
        for number, file in enumerate(files, 1):
            try:
                _refuse_other_forms(file)
                source = opened()
                stored = import_nanobot_file(source.service, file, app=source.app, user=source.user)
            except (InvalidInputError, ConversationFileError) as error:
                problems.append(str(error))
            except OSError as error:
                problems.append(output.reason_of(error))
            else:
                done.append({"key": stored.id, "messages": len(stored.messages), "file": str(file)})
            on_file(number, len(files))
    for problem in problems:
        output.show_error(problem)
    if as_json:
        output.print_json(done)
    else:
        for one in done:
            line(f"imported: {one['key']} ({one['messages']:,} messages)")
        if not files:
            looked = ", ".join(f"`{path}`" for path in paths)
            output.note(
                f"there was nothing to import: no `*.jsonl` in {looked}, nor one level below"
            )
    if problems:
        raise typer.Exit(output.CANNOT)
    if not files:
        raise typer.Exit(output.NEGATIVE)


def export(
    session: Annotated[
        str | None,
        typer.Argument(metavar="SESSION", help="One session; without it all.", show_default=False),
    ] = None,
    out: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="PATH", help="The file; of all sessions the folder."
        ),
    ] = output.STDOUT,
    yes: Yes = False,
    store: Store = None,
    app: App = None,
    user: User = None,
    as_json: Json = False,
) -> None:
    """Write sessions of a store as nanobot's files.

    Those that were imported come out as they were.

    \b
    Examples:
      nanobot-context sessions export cli:direct > session.jsonl
      nanobot-context sessions export -o backup --store sqlite:///sessions.db
    """
    from nanobot_context.sessions.nanobot_files import SessionFile

    source = _store_of(source_of(store, None, app, user))
    if session is not None:
        stored = source.service.get(source.app, source.user, session, user_first="off")
        if stored is None:
            output.fail(f"there is no session `{mask_credentials(session)}` in {source.shown}")
        output.write(out, SessionFile.of(stored).render())
        return
    if out == output.STDOUT:
        output.fail("all sessions are a folder of files\nhint: `--output FOLDER`, or name one")
    folder = Path(out)
    heads = source.heads()
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.glob("*.jsonl")):
        output.ask(f"`{folder}` has session files; those of the same name are replaced", yes=yes)
    done: list[dict[str, str]] = []
    with output.progress("exporting") as on_file:
        for head in heads:
            stored = source.service.get(*head.key, user_first="off")
            if stored is not None:  # else it was deleted meanwhile
                file = SessionFile.of(stored)
                output.write(str(folder / file.name), file.render())
                done.append({"key": head.id, "file": str(folder / file.name)})
            on_file(len(done), len(heads))
    if as_json:
        output.print_json(done)
        return
    for one in done:
        line(f"exported: {one['key']} to {one['file']}")
    if not done:
        output.note(f"there are no sessions in {source.shown}")


def delete(
    sessions: Annotated[
        list[str],
        typer.Argument(metavar="SESSION", show_default=False, autocompletion=session_keys),
    ],
    yes: Yes = False,
    store: Store = None,
    workspace: Workspace = None,
    app: App = None,
    user: User = None,
    as_json: Json = False,
) -> None:
    """Delete sessions; asks first.

    With all that belongs to them. A nanobot that is running may still have one in memory, and
    write it again.

    \b
    Examples:
      nanobot-context sessions delete cli:direct
      nanobot-context sessions delete telegram:7345 telegram:7346 --yes
    """
    source = source_of(store, workspace, app, user)
    entries = {entry.key: entry for entry in source.entries()}
    missing = [key for key in sessions if key not in entries]
    if missing:
        named = ", ".join(f"`{mask_credentials(key)}`" for key in missing)
        output.fail(f"there is no session {named} in {source.shown}")
    _delete(source, [entries[key] for key in dict.fromkeys(sessions)], yes=yes, as_json=as_json)


def prune(
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="Delete what was not written for so long: `12h`, `30d`, `8w`.",
            show_default=False,
        ),
    ] = None,
    yes: Yes = False,
    store: Store = None,
    workspace: Workspace = None,
    app: App = None,
    user: User = None,
    as_json: Json = False,
) -> None:
    """Free what has expired; delete what is old.

    What has expired is invisible already; before old sessions are deleted you are asked.

    \b
    Examples:
      nanobot-context sessions prune --store sqlite:///sessions.db
      nanobot-context sessions prune --older-than 90d
    """
    source = source_of(store, workspace, app, user)
    if older_than is None and not isinstance(source, Stored):
        output.fail("nothing expires in files\nhint: `--older-than 90d`")
    before = time.time() - _seconds(older_than) if older_than else None
    freed = source.sweep()
    old = [entry for entry in source.entries() if before is not None and entry.updated < before]
    if old:
        _delete(source, old, yes=yes, as_json=as_json)
    elif as_json:
        output.print_json([])
    if isinstance(source, Stored):
        output.note(f"expired, and freed: {freed:,}")
    elif not old:
        output.note("no session is that old")


def _delete(source: SessionSource, entries: list[Entry], *, yes: bool, as_json: bool) -> None:
    for entry in entries:
        output.note(f"{entry.key}  {entry.items:,} {source.items}, {_time(entry.updated)}")
    what = "this session" if len(entries) == 1 else f"these {len(entries):,} sessions"
    output.ask(f"delete {what} from {source.shown}?", yes=yes)
    gone = [entry.key for entry in entries if source.delete(entry.key)]
    # nanobot may have begun with files, which stay when it goes over to a store.
    left = nanobot_session_files() if isinstance(source, Stored) else {}
    if as_json:
        output.print_json(gone)
        return
    for key in gone:
        line(f"deleted: {key}")
        for path in left.get(key, []):
            output.note(f"nanobot's file of it is still there: {path}")


def _store_of(source: SessionSource) -> Stored:
    if not isinstance(source, Stored):
        output.fail("no store is named\nhint: `--store sqlite:///sessions.db`, or `sessionStore`")
    return source


def _files_of(path: Path) -> list[Path]:
    """Return the session files at a path: a folder's own, else those of its folders.

    nanobot 0.3.5 has a folder for each workspace in `~/.nanobot/sessions`.
    """
    if not path.is_dir():
        return [path]
    return sorted(path.glob("*.jsonl")) or sorted(path.glob("*/*.jsonl"))


def _refuse_other_forms(path: Path) -> None:
    """Raise `InvalidArgumentError` unless the file has one message a line."""
    from nanobot_context.sessions.nanobot_files import SessionFile

    conversation = read_conversation(path)
    file = SessionFile.parse(path.name, path.read_bytes())
    values = map(json.loads, file.messages)
    said = [one for one in values if not (isinstance(one, dict) and "_type" in one)]
    if said != conversation.messages:
        raise InvalidArgumentError(
            f"`{path}` is not a session file of nanobot's: expected one message a line",
            argument="path",
        )


def _print_head(conversation: Conversation, model: str | None) -> None:
    messages = conversation.messages
    roles = Counter(message["role"] for message in messages)
    labelled("session", f"{conversation.name} ({conversation.source})")
    said = ", ".join(f"{number:,} {role}" for role, number in roles.most_common())
    labelled("messages", f"{len(messages):,}{f': {said}' if said else ''}")
    model = model_of(conversation, model)
    tokens = count_tokens(messages, model, tools=conversation.tools)
    labelled("tokens", f"{tokens:,} ({as_counted(model)})")
    for name in ("created_at", "updated_at"):
        if isinstance(conversation.metadata.get(name), str):
            labelled(name.removesuffix("_at"), conversation.metadata[name].replace("T", " "))


def _entry_dict(entry: Entry, source: SessionSource) -> dict[str, Any]:
    stamp = datetime.fromtimestamp(entry.updated).astimezone().isoformat(timespec="seconds")
    found: dict[str, Any] = {"key": entry.key, source.items: entry.items, "updated": stamp}
    if entry.where:
        found |= {"bytes": entry.bytes, "files": list(entry.where)}
    return found


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")


def _seconds(age: str) -> float:
    match = _AGE.fullmatch(age.strip().lower())
    if match is None:
        given = mask_credentials(age)
        output.fail(f"`--older-than` must be a number and s, m, h, d or w, got `{given}`")
    return float(match[1]) * _SECONDS[match[2]]
