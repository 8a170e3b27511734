"""Stored sessions in document 003's tables: every column, and how its server reads them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nanobot_context.errors import InvalidArgumentError, SessionNotFoundError
from nanobot_context.sessions import (
    SessionEvent,
    SessionService,
    StoredSession,
)
from nanobot_context.sessions.chat_app import export_chat_app
from nanobot_context.summary import Summarizer, SummaryPolicy

if TYPE_CHECKING:
    from session_cases import Store

pytest_plugins = ("session_fixtures",)

TABLES = ("sessions", "messages", "session_summaries", "session_summary_messages")
CALL = {"id": "c1", "type": "function", "function": {"name": "weigh", "arguments": "{}"}}

# Source: spec/sessions-and-summaries.md, 2.7, with both orders put right: the newest summaries, and
# the newest messages behind them.
SUMMARIES = """
    SELECT * FROM session_summaries WHERE session_id = ? ORDER BY created_at DESC LIMIT 2"""
MESSAGES = """
    SELECT * FROM messages WHERE session_id = ? AND created_at > ? ORDER BY created_at DESC LIMIT ?
"""


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA foreign_keys = ON")
        yield connection


def rows(connection: sqlite3.Connection, sql: str, *values: Any) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(sql, values)]


def counts(connection: sqlite3.Connection) -> list[int]:
    return [len(rows(connection, f"SELECT id FROM {table}")) for table in TABLES]


def summarised_service(store: Store) -> SessionService:
    summarizer = Summarizer(
        lambda request: f"They weigh things, part {request.depth}.",
        prompt="Summarise: {conversation_text}",
        model="gpt-4o",
        policy=SummaryPolicy(temperature=0.4, target_tokens=500),
    )
    policy = SummaryPolicy(message_limit=6, max_context_tokens=0, keep_last=2)
    return store.open(summarizer=summarizer, policy=policy, placeholder=True, auto_summary=False)


def talk(service: SessionService, user: str = "me", id_: str = "s1") -> StoredSession:
    """A session of 14 messages, all at one time, with two summaries."""
    meta = {"title": "Weights", "description": "What things weigh", "project_id": "p7"}
    session = service.create("app", user, id_, meta=meta)
    payloads: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "How heavy is it?"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [CALL],
            "reasoning_content": "I should weigh it.",
        },
        {"role": "tool", "content": "12 kg", "tool_call_id": "c1", "name": "weigh"},
        {"role": "assistant", "content": "12 kg \ud83d", "metadata": {"response_id": "r1"}},
    ]
    for number in range(5):
        payloads.append({"role": "user", "content": f"And number {number}?"})
        payloads.append({"role": "assistant", "content": f"{number} kg"})
    for at, payload in enumerate(payloads):
        event = SessionEvent(payload, id=f"e{at}", author="scales" if at == 2 else "", time=1_000.0)
        service.append(session, [event])
        if at in (7, 12):
            assert service.summarize(session) is not None
    return session


@pytest.fixture
def exported(plain_store: Store, tmp_path: Path) -> tuple[SessionService, StoredSession, Path]:
    service = summarised_service(plain_store)
    session = talk(service)
    path = tmp_path / "chat.db"
    # By another service, which does not know how the summaries were made: what is stored tells.
    is_memory = plain_store.name == "memory"
    export_chat_app(service if is_memory else plain_store.open(), [session], path)
    return service, session, path


Exported = tuple[SessionService, StoredSession, Path]


def test_the_session_has_every_column(exported: Exported) -> None:
    _, session, path = exported
    with opened(path) as connection:
        (row,) = rows(connection, "SELECT * FROM sessions")
    assert row.pop("created_at") <= row.pop("updated_at")
    assert json.loads(row.pop("metadata")) == session.meta
    assert row == {
        "id": "s1",
        "title": "Weights",
        "description": "What things weigh",
        "user_id": "me",
        "project_id": "p7",
    }


def test_the_messages_have_every_column(exported: Exported) -> None:
    _, _, path = exported
    with opened(path) as connection:
        messages = rows(connection, "SELECT * FROM messages ORDER BY created_at")
    assert {row["session_id"] for row in messages} == {"s1"}
    assert [row["id"] for row in messages if row["summary"] is None] == [
        f"e{at}" for at in range(14)
    ]
    assert messages[0]["created_at"] == "1970-01-01T00:16:40.000000+00:00"
    assert messages[1]["created_at"] == "1970-01-01T00:16:40.000001+00:00"
    asked, called, result, answered = messages[:4]
    assert json.loads(asked["content"]) == [{"type": "text", "text": "How heavy is it?"}]
    assert asked["role"] == "user"
    assert [asked[name] for name in ("summary", "tool_calls", "tool_call_id", "metadata")] == [
        None
    ] * 4
    assert (called["content"], json.loads(called["tool_calls"])) == ("", [CALL])
    assert called["reasoning"] == "I should weigh it."
    assert (result["role"], result["tool_call_id"]) == ("tool", "c1")
    assert json.loads(result["metadata"]) == {"name": "weigh", "author": "scales"}
    assert answered["content"] == "12 kg \\ud83d"
    assert json.loads(answered["metadata"]) == {"response_id": "r1"}


def test_a_placeholder_stands_where_each_summary_was_made(exported: Exported) -> None:
    service, session, path = exported
    second, first = service.summaries(session)
    with opened(path) as connection:
        placeholders = rows(
            connection, "SELECT * FROM messages WHERE summary IS NOT NULL ORDER BY created_at"
        )
        order = [
            row["id"] for row in rows(connection, "SELECT * FROM messages ORDER BY created_at")
        ]
    assert [row["summary"] for row in placeholders] == [first.text, second.text]
    assert {(row["role"], row["content"]) for row in placeholders} == {
        ("assistant", "Context summarised.")
    }
    assert [order.index(row["id"]) for row in placeholders] == [8, 14]
    metadata = json.loads(placeholders[0]["metadata"])
    assert metadata.pop("summary_timestamp") > 1_700_000_000_000
    assert metadata == {
        "type": "session_summary",
        "summary_id": first.id,
        "keepLastN": 2,
        "trigger": "proactive",
        "chunk_count": 1,
        "max_depth": 0,
        "truncated": False,
    }


def test_the_summaries_have_every_column(exported: Exported) -> None:
    service, session, path = exported
    second, first = service.summaries(session, links=True)
    with opened(path) as connection:
        found = rows(connection, "SELECT * FROM session_summaries ORDER BY created_at")
        stamps = {
            row["id"]: row["created_at"] for row in rows(connection, "SELECT * FROM messages")
        }
    for row, summary, covered in ((found[0], first, (0, 5)), (found[1], second, (6, 10))):
        ids = [id_ for _, id_ in summary.events]
        assert (ids[0], ids[-1]) == (f"e{covered[0]}", f"e{covered[1]}")
        metadata = json.loads(row.pop("metadata"))
        assert row.pop("created_at") == row.pop("updated_at")
        record = summary.record
        assert row == {
            "id": summary.id,
            "session_id": "s1",
            "summary_text": summary.text,
            "summary_prompt": "Summarise: {conversation_text}",
            "model": "gpt-4o",
            "temperature": 0.4,
            "target_summary_tokens": 500,
            "keep_last_n": 2,
            "message_count": len(ids),
            "approx_tokens": record["input_tokens"],
            "first_message_id": ids[0],
            "last_message_id": ids[-1],
            "first_message_created_at": stamps[ids[0]],
            "last_message_created_at": stamps[ids[-1]],
        }
        assert metadata == {
            "algorithm": "bisect_v1",
            "trigger": "proactive",
            "reason": "message_limit",
            "chunk_count": 1,
            "max_depth": 0,
            "truncated": False,
            "compression_ratio": record["output_tokens"] / record["input_tokens"],
            "input_tokens": record["input_tokens"],
            "output_tokens": record["output_tokens"],
            "version": summary.version,
            "made_by": "model",
        }


def test_each_summary_is_linked_to_the_messages_that_it_was_made_of(exported: Exported) -> None:
    service, session, path = exported
    second, first = service.summaries(session, links=True)
    with opened(path) as connection:
        links = rows(connection, "SELECT * FROM session_summary_messages")
        created = {row["id"]: row["created_at"] for row in rows(connection, SUMMARIES, "s1")}
    assert len({link["id"] for link in links}) == len(links) == 11
    for summary in (first, second):
        own = [link for link in links if link["summary_id"] == summary.id]
        assert [link["message_id"] for link in own] == [id_ for _, id_ in summary.events]
        assert {link["session_id"] for link in own} == {"s1"}
        assert {link["created_at"] for link in own} == {created[summary.id]}


def test_what_the_server_would_load_is_the_newest_summary_and_all_behind_it(
    exported: Exported,
) -> None:
    service, session, path = exported
    with opened(path) as connection:
        summaries = rows(connection, SUMMARIES, "s1")[::-1]
        cutoff = summaries[-1]["last_message_created_at"]
        behind = rows(connection, MESSAGES, "s1", cutoff, 20)[::-1]
    assert len(summaries) == 2
    assert summaries[-1]["summary_text"] == service.summary_text(session)
    shown = [row for row in behind if row["summary"] is None]
    assert [row["id"] for row in shown] == ["e11", "e12", "e13"]
    # The same as the service itself shows behind its summary.
    contents = [message["content"] for message in service.context(session)[1:]]
    assert [row["content"] for row in shown] == contents


def test_deleting_a_session_deletes_its_messages_summaries_and_links(
    plain_store: Store, tmp_path: Path
) -> None:
    service = summarised_service(plain_store)
    sessions = [talk(service, id_=id_) for id_ in ("s1", "s2")]
    path = tmp_path / "chat.db"
    export_chat_app(service, sessions, path)
    with opened(path) as connection:
        assert counts(connection) == [2, 32, 4, 22]
        connection.execute("DELETE FROM sessions WHERE id = 's1'")
        assert counts(connection) == [1, 16, 2, 11]
        connection.execute("DELETE FROM messages WHERE session_id = 's2' AND content = '12 kg'")
        assert counts(connection) == [1, 15, 2, 10]
        connection.execute("DELETE FROM session_summaries")
        assert counts(connection) == [1, 15, 0, 0]


def test_events_of_one_id_in_two_sessions_are_two_messages(
    plain_store: Store, tmp_path: Path
) -> None:
    service = summarised_service(plain_store)
    path = tmp_path / "chat.db"
    export_chat_app(service, [talk(service, id_=id_) for id_ in ("s1", "s2")], path)
    with opened(path) as connection:
        ids = [row["id"] for row in rows(connection, "SELECT id FROM messages ORDER BY rowid")]
        wrong = """
            SELECT l.id FROM session_summary_messages l JOIN messages m ON m.id = l.message_id
            WHERE m.session_id <> l.session_id"""
        assert rows(connection, wrong) == []
    assert {"e0", "s2:e0"} <= set(ids)


def test_sessions_of_two_users_under_one_id_are_refused(plain_store: Store, tmp_path: Path) -> None:
    service = plain_store.open()
    sessions = [service.create("app", user, "s") for user in ("me", "you")]
    with pytest.raises(InvalidArgumentError, match="two sessions have the id `s`"):
        export_chat_app(service, sessions, tmp_path / "chat.db")
    service.delete("app", "me", "s")
    with pytest.raises(SessionNotFoundError):
        export_chat_app(service, sessions[:1], tmp_path / "chat.db")
    assert not (tmp_path / "chat.db").exists()


def test_events_that_have_left_by_the_limit_leave_no_broken_links(
    plain_store: Store, tmp_path: Path
) -> None:
    service = plain_store.open(summarizer=Summarizer(), event_limit=4, auto_summary=False)
    session = service.create("app", "me", "s")
    said = [SessionEvent({"role": "user", "content": str(n)}, id=str(n)) for n in range(6)]
    service.append(session, said)
    assert service.summarize(session, force=True) is not None
    service.append(session, [SessionEvent({"role": "user", "content": "new"}, id="new")])
    path = tmp_path / "chat.db"
    export_chat_app(service, [session], path)
    with opened(path) as connection:
        (summary,) = rows(connection, "SELECT * FROM session_summaries")
        links = rows(connection, "SELECT message_id FROM session_summary_messages")
        kept = rows(connection, "SELECT id FROM messages WHERE id <> 'new'")
    assert (summary["message_count"], summary["keep_last_n"]) == (6, 0)
    assert [link["message_id"] for link in links] == [row["id"] for row in kept]
    assert 0 < len(links) < 6


def test_the_file_is_the_owners_only_and_takes_the_place_of_another(
    plain_store: Store, tmp_path: Path
) -> None:
    service = plain_store.open()
    session = service.create("app", "me", "s")
    path = tmp_path / "chat.db"
    for _ in range(2):
        export_chat_app(service, [session], path)
        with opened(path) as connection:
            assert counts(connection) == [1, 0, 0, 0]
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.glob("chat*")] == ["chat.db"]
