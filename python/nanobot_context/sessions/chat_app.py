"""Exports stored sessions to a SQLite file with a chat application's four tables.

Source: chatos_rs at 1a14d1e6, `chat_app_server_rs`: names and keys of the tables. There, rows are
ordered by `created_at` alone; here, the store's order decides, so rows of a session whose times are
equal, or run backwards, are a microsecond apart.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nanobot_context.errors import InvalidArgumentError
from nanobot_context.files import replace_file
from nanobot_context.sessions.nanobot_files import stored_anew
from nanobot_context.sessions.records import (
    SessionEvent,
    SessionHead,
    SessionSummary,
    StoredSession,
)
from nanobot_context.sessions.service import SessionService

__all__ = ["SCHEMA", "export_chat_app"]

SCHEMA = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, title TEXT NOT NULL, description TEXT, metadata TEXT, user_id TEXT,
    project_id TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
CREATE TABLE messages (
    id TEXT PRIMARY KEY, session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    role TEXT NOT NULL, content TEXT NOT NULL, summary TEXT, tool_calls TEXT, tool_call_id TEXT,
    reasoning TEXT, metadata TEXT, created_at TEXT NOT NULL);
CREATE TABLE session_summaries (
    id TEXT PRIMARY KEY, session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    summary_text TEXT NOT NULL, summary_prompt TEXT, model TEXT, temperature REAL,
    target_summary_tokens INTEGER, keep_last_n INTEGER, message_count INTEGER,
    approx_tokens INTEGER, first_message_id TEXT, last_message_id TEXT,
    first_message_created_at TEXT, last_message_created_at TEXT, metadata TEXT,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
CREATE TABLE session_summary_messages (
    id TEXT PRIMARY KEY,
    summary_id TEXT NOT NULL REFERENCES session_summaries (id) ON DELETE CASCADE,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE, created_at TEXT NOT NULL);
CREATE INDEX idx_messages_session_id ON messages (session_id);
CREATE INDEX idx_messages_created_at ON messages (created_at);
CREATE INDEX idx_session_summaries_session_id ON session_summaries (session_id);
CREATE INDEX idx_session_summaries_last ON session_summaries (session_id, last_message_created_at);
CREATE INDEX idx_summary_messages_session_id ON session_summary_messages (session_id);
CREATE INDEX idx_summary_messages_summary_id ON session_summary_messages (summary_id);
CREATE INDEX idx_summary_messages_message_id ON session_summary_messages (message_id);
"""
"""The tables. Cascades work in a connection with `PRAGMA foreign_keys = ON`."""

# The keys of a message that have a column of their own.
_COLUMNS = (
    *("role", "content", "summary", "tool_calls", "tool_call_id", "reasoning_content"),
    *("reasoning", "metadata"),
)
# Fields of an event besides its payload.
_OF_EVENTS = ("author", "filter_key")
# Links have no id in a store; theirs is made of the summary's and the message's.
_LINKS = uuid.UUID("8f2b6c5e-7d1a-4f7e-9f0b-3a5d2c1e4b60")


def export_chat_app(service: SessionService, sessions: Iterable[SessionHead], path: Path) -> None:
    """Write sessions into a SQLite file with the tables of `SCHEMA`.

    Chat messages and placeholders of summaries become messages; other events are left out. The
    summaries are those of all contents, each with links to the messages that it was made of and
    that are still stored. The file is there whole or not at all, and the owner's only.

    Args:
        service: Where from.
        sessions: The sessions; what they hold is read anew.
        path: The file; one that exists is replaced.

    Raises:
        SessionNotFoundError: There is no such session.
        InvalidArgumentError: Two sessions of different users have one id, which is the key there.
        OSError: The file cannot be written.
    """
    tables = _Tables()
    for head in sessions:
        session = stored_anew(service, head)
        tables.take(session, service.summaries(session, "", links=True)[::-1])
    _write(tables, path)


@dataclass(slots=True)
class _Tables:
    """Rows by table, and the ids that are taken."""

    sessions: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    messages: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    summaries: list[tuple[Any, ...]] = field(default_factory=list)
    links: list[tuple[Any, ...]] = field(default_factory=list)

    def take(self, session: StoredSession, summaries: list[SessionSummary]) -> None:
        """Add the rows of a session; `summaries` oldest first."""
        if session.id in self.sessions:
            raise InvalidArgumentError(
                f"two sessions have the id `{session.id}`, which is the key of a table\n"
                "hint: export the sessions of each user into a file of their own",
                argument="sessions",
            )
        self.sessions[session.id] = _session_row(session)
        records = {summary.id: summary.record for summary in summaries}
        shown = [event for event in session.events if event.is_message or event.is_summary]
        stamps = _increasing(event.time or 0.0 for event in shown)
        rows: dict[str, tuple[str, str]] = {}
        for event, stamp in zip(shown, stamps, strict=True):
            # An event's id is its own within its session only.
            id_ = f"{session.id}:{event.id}" if event.id in self.messages else event.id
            rows[event.id] = id_, stamp
            self.messages[id_] = (id_, session.id, *_message_columns(event, records), stamp)
        stamps = _increasing(summary.created for summary in summaries)
        for summary, stamp in zip(summaries, stamps, strict=True):
            covered = [rows[id_] for _, id_ in summary.events if id_ in rows]
            columns = _summary_columns(summary, records[summary.id], covered)
            self.summaries.append((summary.id, session.id, *columns, stamp, stamp))
            for message_id, _ in covered:
                id_ = str(uuid.uuid5(_LINKS, f"{summary.id}:{message_id}"))
                self.links.append((id_, summary.id, session.id, message_id, stamp))


def _session_row(session: StoredSession) -> tuple[Any, ...]:
    meta = session.meta
    return (
        session.id,
        _text(meta.get("title")) or session.id,
        _text(meta.get("description")),
        _json(meta),
        session.user,
        _text(meta.get("project_id")) or session.app,
        _stamp(session.created),
        _stamp(session.updated),
    )


def _message_columns(
    event: SessionEvent, records: Mapping[str, Mapping[str, Any]]
) -> tuple[Any, ...]:
    message = event.payload
    metadata = {name: value for name, value in message.items() if name not in _COLUMNS}
    metadata |= {name: value for name in _OF_EVENTS if (value := getattr(event, name))}
    own = message.get("metadata")
    metadata |= own if isinstance(own, dict) else {"metadata": own} if own else {}
    if event.is_summary and (record := records.get(metadata.get("summary_id", ""))):
        metadata["keepLastN"] = _keep_last(record)
    return (
        _text(message["role"]),
        _text(message.get("content")) or "",
        _text(message.get("summary")),
        _json(message["tool_calls"]) if message.get("tool_calls") else None,
        _text(message.get("tool_call_id")),
        _text(message.get("reasoning_content", message.get("reasoning"))),
        _json(metadata) if metadata else None,
    )


def _summary_columns(
    summary: SessionSummary, record: Mapping[str, Any], covered: list[tuple[str, str]]
) -> tuple[Any, ...]:
    tokens, written = record.get("input_tokens", 0), record.get("output_tokens", 0)
    reason = record.get("reason")
    metadata = {
        "algorithm": "bisect_v1",
        "trigger": "overflow_retry" if reason == "overflow_retry" else "proactive",
        "reason": reason,
        "chunk_count": record.get("chunks"),
        "max_depth": record.get("max_depth"),
        "truncated": record.get("truncated"),
        "compression_ratio": written / tokens if tokens else None,
        "input_tokens": tokens,
        "output_tokens": written,
        "version": summary.version,
        "made_by": record.get("made_by"),
    }
    first, last = (covered[0], covered[-1]) if covered else ((None, None), (None, None))
    return (
        *(summary.text, record.get("prompt"), record.get("model"), record.get("temperature")),
        *(record.get("target_tokens"), _keep_last(record), len(summary.events), tokens),
        *(first[0], last[0], first[1], last[1], _json(metadata)),
    )


def _keep_last(record: Mapping[str, Any]) -> int | None:
    """Return how many of the newest messages a summary left out; 0 if it was to cover all."""
    return 0 if record.get("reason") in ("overflow_retry", "force") else record.get("keep_last")


def _increasing(times: Iterable[float]) -> Iterator[str]:
    """Yield each time as a stamp, later than the one before."""
    last = -1
    for seconds in times:
        last = max(round(seconds * 1_000_000), last + 1)
        yield _stamp(last / 1_000_000)


def _stamp(seconds: float) -> str:
    """Return a time by RFC 3339, in UTC, always as long, so that stamps compare as text."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else _json(value)


def _unicode(value: Any) -> Any:
    """Return `value`; of text with half a character one that says so."""
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


def _write(tables: _Tables, path: Path) -> None:
    filled: dict[str, Iterable[tuple[Any, ...]]] = {
        "sessions": tables.sessions.values(),
        "messages": tables.messages.values(),
        "session_summaries": tables.summaries,
        "session_summary_messages": tables.links,
    }
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        file = Path(folder) / path.name
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.executescript(SCHEMA)
            for table, rows in filled.items():
                for row in rows:
                    places = ", ".join("?" * len(row))
                    connection.execute(
                        f"INSERT INTO {table} VALUES ({places})", list(map(_unicode, row))
                    )
        replace_file(path, file.read_bytes())
