"""Ten recorded sessions, replayed on every store: events, state, memory and summaries as expected.

After tRPC-Agent-Python's replay suite (see tests/data/README.md). Its fault injections change what
is stored behind the service's back: a replay that did not notice would prove nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nanobot_context import ConflictError
from nanobot_context.sessions import SessionEvent, SessionService, StoredSession
from nanobot_context.summary import Summarizer, SummaryRequest

if TYPE_CHECKING:
    from session_cases import Store

pytest_plugins = ("session_fixtures",)
pytestmark = pytest.mark.timeout(60)

DATA = Path(__file__).parents[2] / "data" / "session_replay.jsonl"
CASES: dict[str, dict[str, Any]] = {
    case["case"]: case for case in map(json.loads, DATA.read_text(encoding="utf-8").splitlines())
}


def told(request: SummaryRequest) -> str:
    """Answer for the model: with what it was told."""
    return str(request.messages[-1]["content"])


class Replay:
    """Does the steps of a case with a session service, and says what is stored afterwards."""

    def __init__(self, store: Store) -> None:
        self.store = store
        summarizer = Summarizer(told, prompt="{previous_summary}\n{conversation_text}")
        self.service: SessionService = store.open(
            summarizer=summarizer, user_first="off", auto_summary=False
        )
        self.found: dict[str, list[str]] = {}

    def run(self, case: dict[str, Any]) -> StoredSession:
        """Do the steps; return the session as the caller has it at the end."""
        for number, step in enumerate(case["steps"]):
            getattr(self, f"do_{step['do']}")(step, f"event-{number}")
        return self.session

    def do_create(self, step: dict[str, Any], id_: str) -> None:
        self.session = self.service.create("replay", "u1", step["session"])

    def do_say(self, step: dict[str, Any], id_: str) -> None:
        self.service.append(self.session, [self.event(step, id_)])

    def do_call(self, step: dict[str, Any], id_: str) -> None:
        arguments = json.dumps(step["arguments"], ensure_ascii=False)
        function = {"name": step["name"], "arguments": arguments}
        calls = [{"id": step["id"], "type": "function", "function": function}]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
        self.service.append(self.session, [SessionEvent(message, id=id_, author=step["author"])])

    def do_result(self, step: dict[str, Any], id_: str) -> None:
        content = json.dumps(step["result"], ensure_ascii=False)
        message = {"role": "tool", "tool_call_id": step["id"], "content": content}
        self.service.append(self.session, [SessionEvent(message, id=id_, author=step["author"])])

    def do_remember(self, step: dict[str, Any], id_: str) -> None:
        """Nothing to do: what is stored can be searched."""

    def do_search(self, step: dict[str, Any], id_: str) -> None:
        heads = self.service.list_sessions("replay", "u1")
        stored = [self.service.get(*head.key) for head in heads]
        lines = [line(event) for session in stored if session for event in session.events]
        self.found[step["query"]] = [one for one in lines if step["query"] in one]

    def do_summarise(self, step: dict[str, Any], id_: str) -> None:
        assert self.service.summarize(self.session, force=True) is not None

    def do_fail(self, step: dict[str, Any], id_: str) -> None:
        """The write is refused: its maker did not know the last position."""
        self.failed = self.event(step, id_)
        with pytest.raises(ConflictError):
            self.service.append(self.session, [self.failed], expected=self.session.seq + 1)

    def do_retry(self, step: dict[str, Any], id_: str) -> None:
        """The second answer counts: as if the first was lost."""
        for _ in range(2):
            self.service.append(self.session, [self.failed])

    @staticmethod
    def event(step: dict[str, Any], id_: str) -> SessionEvent:
        role = "user" if step["author"] == "user" else "assistant"
        message = {"role": role, "content": step["text"]}
        return SessionEvent(message, id=id_, author=step["author"], state=step.get("state", {}))

    def snapshot(self, key: tuple[str, str, str]) -> dict[str, Any]:
        """Return what another process finds in the store."""
        service = self.store.open_again(self.service, user_first="off")
        session = service.get(*key)
        assert session is not None
        summaries = service.summaries(session, links=True)[::-1]
        shown = service.context(session)
        return {
            "events": [line(event) for event in session.events],
            "positions": [(event.seq, event.id) for event in session.events],
            "state": session.state,
            "summaries": [(one.version, one.last_seq, one.text, one.events) for one in summaries],
            "context": [message["content"] for message in shown[len(summaries) > 0 :]],
        }


def line(event: SessionEvent) -> str:
    """Return an event as the data file writes it."""
    message = event.payload
    if calls := message.get("tool_calls"):
        function = calls[0]["function"]
        return f"{event.author} calls {function['name']} {function['arguments']}"
    verb = " got" if message["role"] == "tool" else ":"
    return f"{event.author}{verb} {message['content']}"


@pytest.mark.parametrize("name", CASES)
def test_a_replayed_session_is_stored_as_expected(store: Store, name: str) -> None:
    expected = CASES[name]["expect"]
    replay = Replay(store)
    session = replay.run(CASES[name])
    stored = replay.snapshot(session.key)

    assert stored["events"] == expected["events"]
    assert [line(event) for event in session.events] == expected["events"], "the caller's own"
    assert [seq for seq, _ in stored["positions"]] == list(range(1, len(expected["events"]) + 1))
    assert stored["state"] == session.state == expected["state"]
    assert replay.found == expected.get("memory", {})
    if "context" in expected:
        assert stored["context"] == expected["context"]

    summaries = expected.get("summaries", [])
    assert len(stored["summaries"]) == len(summaries)
    start = 0
    for wanted, (version, last_seq, text, links) in zip(
        summaries, stored["summaries"], strict=True
    ):
        assert (version, last_seq) == (wanted["version"], wanted["last_seq"])
        assert all(word in text for word in wanted["has"])
        assert [tuple(link) for link in links] == stored["positions"][start:last_seq]
        start = last_seq


# What is done to the tables, and where it must be seen.
INJECTIONS = {
    "event_author": (
        "single_turn",
        "UPDATE event SET author = 'X' WHERE place & 0xFFFFFFFF = 1",
        "events",
    ),
    "event_text": (
        "multi_turn",
        "UPDATE event SET payload = json_set(payload, '$.content', 'X')"
        " WHERE place & 0xFFFFFFFF = 1",
        "events",
    ),
    "extra_event": (
        "retry_recovery",
        "INSERT INTO event SELECT place + 9, 'X', time_ms, author, filter_key, kind, payload"
        " FROM event WHERE place & 0xFFFFFFFF = 1",
        "events",
    ),
    "event_order": (
        "tool_round_trip",
        "UPDATE event SET place = place + 8 WHERE place & 0xFFFFFFFF = 1",
        "events",
    ),
    "state_value": ("state_overwrite", "UPDATE state SET value = CAST('7' AS BLOB)", "state"),
    "memory_content": (
        "memory_fact_update",
        "UPDATE event SET payload = json_set(payload, '$.content', 'X')"
        " WHERE place & 0xFFFFFFFF = 2",
        "events",
    ),
    "summary_loss": ("summary_create", "DELETE FROM summary", "summaries"),
    "summary_overwrite": ("summary_update", "DELETE FROM summary WHERE version = 2", "summaries"),
    "summary_affiliation": (
        "summary_truncation",
        "UPDATE summary SET sid = (SELECT max(sid) FROM session)",
        "context",
    ),
}


@pytest.mark.parametrize("kind", INJECTIONS)
def test_what_is_changed_behind_the_service_is_seen(plain_store: Store, kind: str) -> None:
    if plain_store.name != "sqlite":
        pytest.skip("the tables of a file are changed")
    name, sql, where = INJECTIONS[kind]
    replay = Replay(plain_store)
    session = replay.run(CASES[name])
    replay.service.create("replay", "u2", "another")
    before = replay.snapshot(session.key)
    change = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()"
    )
    subprocess.run([sys.executable, "-c", change, plain_store.path, sql], check=True)
    after = replay.snapshot(session.key)
    assert after[where] != before[where]
    # What the service itself knew before is not shown in its place.
    again = replay.service.get(*session.key)
    assert again is not None
    assert [line(event) for event in again.events] == after["events"]
    assert again.state == after["state"]


def test_state_that_is_changed_on_the_server_is_seen(plain_store: Store) -> None:
    if plain_store.server is None:
        pytest.skip("the keys of a server are changed")
    replay = Replay(plain_store)
    session = replay.run(CASES["state_overwrite"])
    [key] = [key for key in plain_store.server.key_names() if key.endswith(b":state")]
    plain_store.server.command("HSET", key, "counter", "7")
    assert replay.snapshot(session.key)["state"] == {"counter": 7, "flag": True}
