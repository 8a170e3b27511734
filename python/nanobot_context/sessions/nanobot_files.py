"""Imports nanobot's session files into a store, and exports them byte for byte, without a BOM.

A file has one JSON value a line: what the session is (`_type: metadata`), since 0.3.5 what a
provider goes on from (`_type: provider_state`), and messages. Each message is an event whose
payload is the line as it stands there. The other lines stay in the session's metadata with their
positions:

    meta["nanobot"] = {"lines": [[0, '{"_type": "metadata", ...}'], ...], "end": "\\n", "file": ...}

Beside them stands the digest of the file that was imported: one that has not changed since has
nothing to say of a session that was talked in since.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from nanobot_context.arguments import check_instance, text_of
from nanobot_context.errors import ConflictError, InvalidArgumentError, SessionExistsError
from nanobot_context.files import replace_file
from nanobot_context.identity import common_length
from nanobot_context.sessions.records import SessionEvent, SessionHead, StoredSession, not_found
from nanobot_context.sessions.service import SessionService

__all__ = [
    "export_nanobot_file",
    "export_nanobot_folder",
    "import_nanobot_file",
    "import_nanobot_folder",
]

APP, USER = "nanobot", "default"
META = "nanobot"
_IMPORTED = "imported"
METADATA, PROVIDER_STATE = "metadata", "provider_state"

# The payload of a line that is not a chat message, or of an empty one: stores take neither.
_WRAPPED = "line"
# The core reads JSON with this much nesting. Source: serde_json's recursion limit.
_NESTING = 127

# Of a file at most. Source: Linux, `NAME_MAX`; macOS and Windows count otherwise, and no less.
_NAME_BYTES = 255


@dataclass(slots=True)
class SessionFile:
    """A session file of nanobot's, taken apart.

    Attributes:
        name: The file's name.
        key: nanobot's key of the session, such as `cli:direct`.
        messages: The lines that are events, without their ends.
        others: The other lines with their positions in the file, from 0.
        end: What the last line ends with: a newline or nothing.
    """

    name: str
    key: str
    messages: list[str]
    others: list[tuple[int, str]]
    end: str

    @classmethod
    def parse(cls, name: str, content: bytes) -> SessionFile:
        """Take a file apart; a byte order mark before it is left out.

        Raises:
            InvalidArgumentError: A line is not valid JSON; says which one, and where in it.
        """
        content = content.removeprefix(codecs.BOM_UTF8)
        end = "\n" if content.endswith(b"\n") else ""
        # Not `splitlines`: a line may hold U+2028 and its like.
        raw = content.removesuffix(b"\n").split(b"\n") if content else []
        file = cls(name, "", [], [], end)
        record: dict[str, Any] = {}
        for number, data in enumerate(raw):
            line, value = _parsed(name, number, data)
            type_ = value.get("_type") if isinstance(value, dict) else None
            if type_ == METADATA:
                record = value
            if type_ in (METADATA, PROVIDER_STATE) or not line.strip():
                file.others.append((number, line))
            else:
                file.messages.append(line)
        key = record.get("key")
        file.key = key if isinstance(key, str) and key else key_of_name(name)
        return file

    @classmethod
    def of(cls, session: StoredSession) -> SessionFile:
        """Return a stored session as a file, whoever wrote it."""
        kept = session.meta.get(META)
        shape: Mapping[str, Any] = (
            kept if isinstance(kept, dict) else {"lines": [[0, dumps(_new_record(session))]]}
        )
        others = [(number, line) for number, line in shape.get("lines", [])]
        name = Path(str(shape.get("file") or name_of_key(session.id))).name
        messages = [line_of(event) for event in lines_among(session.events)]
        return cls(name, session.id, messages, others, str(shape.get("end", "\n")))

    def shape(self) -> dict[str, Any]:
        """Return the part that a session's metadata keeps."""
        others = [[number, line] for number, line in self.others]
        return {"lines": others, "end": self.end, "file": self.name}

    def digest(self) -> str:
        """Return what tells whether a file has changed."""
        return hashlib.sha256(self.render()).hexdigest()[:32]

    def render(self) -> bytes:
        """Return the file's content."""
        lines = list(self.messages)
        for number, line in sorted(self.others):
            lines.insert(number, line)
        return ("\n".join(lines) + self.end).encode() if lines else b""

    def events(self, start: int) -> list[SessionEvent]:
        """Return the events of the messages from `start` on."""
        made: list[SessionEvent] = []
        for index, line in enumerate(self.messages[start:], start):
            said = f"{self.key}\0{index}\0{line}".encode()
            made.append(event_of(line, hashlib.sha256(said).hexdigest()[:32]))
        return made


def import_nanobot_file(
    service: SessionService,
    path: Path,
    *,
    app: str = APP,
    user: str = USER,
    session_id: str | None = None,
) -> StoredSession:
    """Make a stored session equal to a session file of nanobot's, and return it.

    Importing a file again changes nothing, also where the session has gone on since; lines that
    were added are appended, and what was rewritten takes the place of what is stored.

    Args:
        service: Where to; one that keeps at least as many events as the file has lines.
        path: The file; it is only read.
        app: The app.
        user: The user.
        session_id: The session; `None` for nanobot's key of it.

    Raises:
        InvalidArgumentError: A line is not valid JSON, or the service keeps fewer events; then
            nothing of the file is stored.
        OSError: The file cannot be read.
    """
    _check(service, "path", path)
    if session_id is not None:
        text_of("session_id", session_id)
    file = _read(path)
    return _import(service, file, app, user, session_id or file.key)


def import_nanobot_folder(
    service: SessionService, folder: Path, *, app: str = APP, user: str = USER
) -> list[StoredSession]:
    """Import every `*.jsonl` of a folder: see `import_nanobot_file`.

    Raises:
        InvalidArgumentError: As there, and for two files of one session; names every file that is
            not imported. All others are, before it is raised.
    """
    _check(service, "folder", folder)
    files, problems = _read_folder(folder)
    stored = []
    for file in files:
        try:
            stored.append(_import(service, file, app, user, file.key))
        except InvalidArgumentError as error:
            problems.append(str(error))
    if problems:
        raise InvalidArgumentError("\n".join(problems), argument="folder")
    return stored


def export_nanobot_file(service: SessionService, session: SessionHead, path: Path) -> None:
    """Write a stored session as a file that nanobot reads; an imported one as it was.

    The file is there whole or not at all, and the owner's only. Events that left the session by the
    service's limit are not in it.

    Args:
        service: Where from.
        session: The session; what it holds is read anew.
        path: The file; one that exists is replaced.

    Raises:
        SessionNotFoundError: There is no such session.
        OSError: The file cannot be written.
    """
    _check(service, "path", path)
    check_instance("session", session, SessionHead)
    replace_file(path, SessionFile.of(stored_anew(service, session)).render())


def export_nanobot_folder(
    service: SessionService, folder: Path, *, app: str = APP, user: str = USER
) -> list[Path]:
    """Write every session of a user into a folder, by the names of the files they came from.

    A session that came from none is named as nanobot 0.3.5 does. See `export_nanobot_file`.
    """
    _check(service, "folder", folder)
    paths = []
    for head in service.list_sessions(app, user):
        file = SessionFile.of(stored_anew(service, head))
        paths.append(folder / file.name)
        replace_file(paths[-1], file.render())
    return sorted(paths)


def _check(service: object, argument: str, path: object) -> None:
    """Raise `InvalidArgumentError` unless both have their types."""
    check_instance("service", service, SessionService)
    check_instance(argument, path, Path)


def _import(
    service: SessionService, file: SessionFile, app: str, user: str, session_id: str
) -> StoredSession:
    while True:
        session = service.get(app, user, session_id, user_first="off")
        is_new = session is None
        try:
            if session is None:
                session = service.create(app, user, session_id, meta={META: file.shape()})
            elif _has_all_of(session, file):
                return session
            _bring_up(service, session, file)
        except (ConflictError, SessionExistsError):
            continue  # another writer was first
        if len(lines_among(session.events)) == len(file.messages):
            return session
        if is_new:
            service.delete(app, user, session_id)
        raise InvalidArgumentError(
            f"`{file.name}` has {len(file.messages):,} messages, and the service keeps fewer "
            "events of a session\nhint: `event_limit=0`",
            argument="service",
        )


def _has_all_of(session: StoredSession, file: SessionFile) -> bool:
    """Return whether a session has what a file says, and perhaps more that came since.

    It is in one that was made of this very file, and goes on from it in one of which that is not
    known: an earlier release imported it.
    """
    kept = session.meta.get(META)
    imported = kept.get(_IMPORTED) if isinstance(kept, dict) else None
    if imported is not None:
        return bool(imported == file.digest())
    stored = [line_of(event) for event in lines_among(session.events)]
    return len(stored) > len(file.messages) == common_length(stored, file.messages)


def _bring_up(service: SessionService, session: StoredSession, file: SessionFile) -> None:
    stored = lines_among(session.events)
    common = common_length([line_of(event) for event in stored], file.messages)
    events = file.events(common)
    if common < len(stored):
        after = stored[common - 1].seq if common else 0
        assert after is not None
        service.replace_tail(session, after, events)
    elif events:
        service.append(session, events, expected=session.seq)
    # Last, for what was imported in part is to be imported again.
    meta = {**session.meta, META: {**file.shape(), _IMPORTED: file.digest()}}
    if meta != session.meta:
        service.set_meta(session, meta)


def stored_anew(service: SessionService, head: SessionHead) -> StoredSession:
    """Read a session anew, with all its events."""
    session = service.get(*head.key, user_first="off")
    if session is None:
        raise not_found(head)
    return session


def lines_among(events: Sequence[SessionEvent]) -> list[SessionEvent]:
    """Return the events that are lines of a file: all but the placeholders of summaries."""
    return [event for event in events if not event.is_summary]


def line_of(event: SessionEvent) -> str:
    """Return the line of a file that an event is."""
    payload = event.payload
    if isinstance(payload, dict) and payload.keys() == {_WRAPPED}:
        return str(payload[_WRAPPED])
    assert event.raw is not None
    return event.raw


def event_of(line: str, id_: str) -> SessionEvent:
    """Return the event that a line of a file is; its time is the message's, if it says one."""
    value = json.loads(line)
    is_plain = isinstance(value, dict) and "_type" not in value and value.keys() != {_WRAPPED}
    time = None
    if isinstance(value, dict) and isinstance(value.get("timestamp"), str):
        with contextlib.suppress(ValueError, OverflowError, OSError):
            time = datetime.fromisoformat(value["timestamp"]).timestamp()
    raw = line if is_plain and _is_taken(line, value) else json.dumps({_WRAPPED: line})
    return SessionEvent(raw=raw, id=id_, time=time)


def _is_taken(line: str, message: Mapping[str, Any]) -> bool:
    """Return whether stores take a message as it is: one that says something, in plain JSON."""
    if isinstance(message.get("role"), str):
        says = any(
            message.get(name) not in (None, "", [], {})
            for name in ("content", "tool_calls", "tool_call_id")
        )
        if not says and message["role"] not in ("tool", "function"):
            return False
    try:
        json.dumps(message, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return False  # NaN, or half a character
    is_flat = line.count("[") + line.count("{") <= _NESTING
    return is_flat or _depth(message) <= _NESTING


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, inner), default=0) if isinstance(value, dict | list) else 0


def dumps(value: Any) -> str:
    """Return `value` as nanobot writes it into a file; half a character is escaped."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def name_of_key(key: str) -> str:
    """Return the name of a session's file. Source: nanobot 0.3.5, `storage_key`.

    nanobot cannot have a file of a longer name than the system lets; there the name is a hash, and
    the key is in the file.
    """
    name = base64.urlsafe_b64encode(key.encode()).decode().rstrip("=") + ".jsonl"
    return name if len(name) <= _NAME_BYTES else f"{hashlib.sha256(key.encode()).hexdigest()}.jsonl"


def key_of_name(name: str) -> str:
    """Return the key that a file's name says, where the file itself says none.

    Source: nanobot 0.3.5, `session_key_from_path`; 0.1.3.post7 to 0.3.0, `list_sessions`.
    """
    stem = Path(name).stem
    try:
        key = base64.urlsafe_b64decode(stem + "=" * (-len(stem) % 4)).decode()
    except (binascii.Error, ValueError):
        key = ""
    return key if key and name_of_key(key) == f"{stem}.jsonl" else stem.replace("_", ":", 1)


def _read(path: Path) -> SessionFile:
    return SessionFile.parse(path.name, path.read_bytes())


def _read_folder(folder: Path) -> tuple[list[SessionFile], list[str]]:
    """Return the files that can be imported, and the problems of the others."""
    files: dict[str, list[SessionFile]] = {}
    problems: list[str] = []
    for path in sorted(folder.glob("*.jsonl")):
        try:
            file = _read(path)
        except InvalidArgumentError as error:
            problems.append(str(error))
        except OSError as error:
            problems.append(f"`{path.name}` cannot be read: {error.strerror or error}")
        else:
            files.setdefault(file.key, []).append(file)
    for key, same in files.items():
        if len(same) > 1:
            names = " and ".join(f"`{file.name}`" for file in same)
            problems.append(f"{names} are both of session `{key}`")
    return [same[0] for same in files.values() if len(same) == 1], problems


def _parsed(name: str, number: int, data: bytes) -> tuple[str, Any]:
    try:
        line = data.decode()
    except UnicodeDecodeError as error:
        column = len(data[: error.start].decode()) + 1
        raise _no_json(name, number, column, "it is not UTF-8") from None
    if not line.strip():
        return line, None
    try:
        return line, json.loads(line)
    except json.JSONDecodeError as error:
        raise _no_json(name, number, error.pos + 1, error.msg) from None
    except (RecursionError, ValueError) as error:
        raise _no_json(name, number, 1, str(error)) from None


def _no_json(name: str, number: int, column: int, problem: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"`{name}` is not a session file of nanobot's: "
        f"line {number + 1}, column {column}: {problem}",
        argument="path",
    )


def _new_record(session: StoredSession) -> dict[str, Any]:
    """Return the first line of a file for a session that nanobot has not written."""

    def stamp(seconds: float) -> str:
        return datetime.fromtimestamp(seconds).isoformat()  # local time, as nanobot writes it

    return {
        "_type": METADATA,
        "key": session.id,
        "created_at": stamp(session.created),
        "updated_at": stamp(session.updated),
        "metadata": {},
        "last_consolidated": 0,
    }
