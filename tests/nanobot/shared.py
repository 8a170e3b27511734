"""nanobot's sessions in files and in a shared store; run with a nanobot environment's interpreter.

    .cache/nanobot/0.1.4/bin/python tests/nanobot/shared.py files /tmp/home
    .cache/nanobot/0.3.5/bin/python tests/nanobot/shared.py cases sqlite:////tmp/shared.db
    .cache/nanobot/0.3.5/bin/python tests/nanobot/shared.py talk sqlite:////tmp/shared.db /tmp/a A 9

`files` has the release's own session manager write one session of each kind. `cases` runs every
function of `CASES` on an empty store. `talk` is a gateway that is told a question after the other:
it prints `ready`, waits for a line, prints each answer, and with the next line what it shows.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from drive import prepare
from server import Answer, ModelServer, Request
from stage import Stage, session_files

KEY = "cli:shared"
CALL = {"id": "c1", "type": "function", "function": {"name": "list_dir", "arguments": "{}"}}
QUESTION = re.compile(r"Question (\w)-(\d{3})")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    files = commands.add_parser("files")
    files.add_argument("home", type=Path)
    commands.add_parser("read").add_argument("file", type=Path)
    commands.add_parser("without-stores").add_argument("home", type=Path)
    cases = commands.add_parser("cases")
    cases.add_argument("url")
    talk = commands.add_parser("talk")
    talk.add_argument("url")
    talk.add_argument("home", type=Path)
    talk.add_argument("writer")
    talk.add_argument("turns", type=int)
    talk.add_argument("--start", type=int, default=0)
    options = parser.parse_args()
    if options.command == "files":
        write_files(options.home)
        return 0
    prepare()
    if options.command == "read":
        say(read(options.file))
    elif options.command == "without-stores":
        say(without_stores(options.home))
    elif options.command == "cases":
        for name, case in CASES.items():
            say({"case": name, "error": played(case, options.url)})
    else:
        asyncio.run(gateway(options.url, options.home, options.writer, options))
    return 0


def say(value: dict[str, Any]) -> None:
    print(json.dumps(value, ensure_ascii=False), flush=True)


# Files ---------------------------------------------------------------------------------------


def write_files(home: Path) -> None:
    """Have nanobot write sessions of every kind that its session class knows."""
    os.environ["HOME"] = str(home)
    manager, module = new_manager(home), import_module("nanobot.session.manager")
    for key, messages in {
        "cli:empty": [],
        "cli:plain": [("user", "Hello"), ("assistant", "Hello.")],
        "telegram:-100_42": [("user", "秤有多重? 🙂 \u2028\x85"), ("assistant", "12 kg, Größe")],
        "cli:long": [("user" if n % 2 else "assistant", f"{n} " * 200) for n in range(300)],
    }.items():
        session = module.Session(key=key)
        for role, text in messages:
            session.add_message(role, text)
        manager.save(session)
    metadata = {"title": "Tools", "nested": {"a": [1.5]}, "summary": "They look."}
    session = module.Session(key="cli:tools", metadata=metadata)
    session.add_message("user", [{"type": "text", "text": "Look."}], media=["/tmp/a.png"])
    session.add_message("assistant", None, tool_calls=[CALL], reasoning_content="I should look.")
    session.add_message("tool", "", tool_call_id="c1", name="list_dir")
    session.add_message("assistant", "", _command=True)
    session.add_message("assistant", "Nothing is there.", latency_ms=12)
    session.last_consolidated = 2
    if hasattr(session, "provider_state"):
        state = import_module("nanobot.providers.base").ProviderConversationState
        session.provider_state = state("responses", "openai", "gpt-5", 1, {"items": [{"id": "x"}]})
    manager.save(session)
    say({"files": [str(path) for path in session_files(home)]})


def new_manager(home: Path) -> Any:
    """Return a session manager of nanobot's, with a workspace in `home`."""
    workspace = home / ".nanobot" / "workspace"
    workspace.mkdir(parents=True, exist_ok=True)
    return import_module("nanobot.session.manager").SessionManager(workspace)


def read(file: Path) -> dict[str, Any]:
    """Have nanobot, without the package, read a file of the session `KEY` and save it."""
    os.environ["HOME"] = str(file.parent)
    manager = new_manager(file.parent)
    path = manager._get_session_path(KEY)
    path.write_bytes(file.read_bytes())
    session = manager.get_or_create(KEY)
    manager.save(session)
    return {"messages": said(session), "saved": path.read_text("utf-8")}


def without_stores(home: Path) -> dict[str, Any]:
    """Say what becomes of the setting with a release that knows no stores."""
    os.environ["HOME"] = str(home)
    os.environ["NANOBOT_CONTEXT_SESSION_STORE"] = "redis://me:secret@127.0.0.1:1/0"
    warnings: list[str] = []
    sink = import_module("loguru").logger.add(warnings.append, format="{message}")
    status = import_module("nanobot_context").install()
    import_module("loguru").logger.remove(sink)
    manager = new_manager(home)
    speak(manager, "Hello")
    doctor = import_module("nanobot_context.doctor")
    findings = [item.problem for item in doctor.examine().findings]
    return {
        "points": [[p.name, p.state] for p in status.points if "SessionStore" in p.name],
        "warnings": [line.strip() for line in warnings],
        "findings": [text for text in findings if "sessionStore" in text],
        "status": [repr(status), status.to_dict()],
        "files": [str(path) for path in session_files(home)],
    }


HOLD_LOCK = """
import sqlite3, sys
sqlite3.connect(sys.argv[1], isolation_level=None).execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""
"""A process that keeps all others from writing into a SQLite file, until its input ends."""

# Gateways ------------------------------------------------------------------------------------


async def gateway(url: str, home: Path, writer: str, options: argparse.Namespace) -> None:
    """Ask so many questions in the session that others talk in, too."""

    def answer(request: Request) -> Answer:
        said = [message.get("content") for message in request.messages if message["role"] == "user"]
        own = [n for w, n in QUESTION.findall(json.dumps(said)) if w == writer]
        return f"Answer {writer}-{own[-1] if own else '???'}."

    with ModelServer(answer, window=200_000) as server:
        settings = {"sessionStore": url}
        model, defaults = "openai/gpt-4o-mini", {"contextWindowOverride": 200_000}
        stage = Stage(home, server, model, defaults=defaults, package="on", settings=settings)
        stage.loop.context.skills.builtin_skills = home / "no-skills"
        say({"ready": writer})
        sys.stdin.readline()
        for number in range(options.start, options.start + options.turns):
            say({"answer": await stage.say(f"Question {writer}-{number:03}", KEY)})
        say({"done": writer})
        sys.stdin.readline()
        session = stage.loop.sessions.get_or_create(KEY)
        say({"shows": [message["content"] for message in session.messages]})
        await stage.close()


# Cases ---------------------------------------------------------------------------------------


class Gateways:
    """Session managers of several gateways on one store, each with a workspace of its own."""

    def __init__(self, url: str, root: Path) -> None:
        self.url = url
        self.root = root
        self.package = import_module("nanobot_context")
        self.sessions = import_module("nanobot_context.sessions")
        self.module = import_module("nanobot.session.manager")
        self.install()

    def install(self, url: str | None = None) -> Any:
        self.package.uninstall()
        settings = import_module("nanobot_context.settings").Settings
        return self.package.install(settings(session_store=url or self.url))

    def start(self, name: str) -> Any:
        os.environ["HOME"] = str(self.root / name)
        return new_manager(self.root / name)

    def service(self) -> Any:
        return self.sessions.SessionService(self.url, event_limit=0)

    def opened(self) -> Any:
        """Return what opens the store of this process."""
        return import_module("nanobot_context.installer")._installation.context.store

    def stored(self, key: str = KEY) -> list[str]:
        """Return what the store has of a session, as a third party reads it."""
        with self.service() as service:
            session = service.get("nanobot", "default", key, user_first="off")
            return [m["content"] for m in session.messages] if session else []


def played(case: Callable[[Gateways], None], url: str) -> str | None:
    """Run a case on an empty store; return what went wrong."""
    with tempfile.TemporaryDirectory() as root:
        gateways = Gateways(url, Path(root))
        with gateways.service() as service:
            for head in service.list_sessions("nanobot", "default"):
                service.delete(*head.key)
            marks = service.user_state("nanobot", "default")
            service.update_user_state("nanobot", "default", dict.fromkeys(marks))
        try:
            case(gateways)
        except Exception:
            return traceback.format_exc()
        finally:
            gateways.package.uninstall()
    return None


def said(session: Any) -> list[str]:
    return [message["content"] for message in session.messages]


def speak(manager: Any, text: str, key: str = KEY) -> Any:
    session = manager.get_or_create(key)
    session.add_message("user", text)
    manager.save(session)
    return session


def what_one_gateway_saved_another_one_loads(gateways: Gateways) -> None:
    one, other = gateways.start("one"), gateways.start("other")
    session = one.get_or_create(KEY)
    session.add_message("user", "秤 \u2028 🙂", media=["/tmp/a.png"])
    session.add_message("assistant", "", reasoning_content="hm")
    session.add_message("assistant", None, tool_calls=[CALL])
    session.add_message("tool", "", tool_call_id="c1")
    session.metadata["title"] = "Scales"
    one.save(session)
    loaded = other.get_or_create(KEY)
    assert loaded.messages == session.messages
    assert (loaded.metadata, loaded.key) == (session.metadata, KEY)
    assert (loaded.created_at, loaded.updated_at) == (session.created_at, session.updated_at)
    assert session_files(gateways.root) == [], "no file is written"
    assert other.read_session_file(KEY) == one._jsonl_store.session_payload(session)
    metadata = other.read_session_metadata(KEY)
    assert metadata["metadata"] == session.metadata
    assert one.get_or_create("cli:none").messages == []
    assert one.read_session_file("cli:none") is None
    assert one.read_session_metadata("cli:none") is None


def a_session_in_memory_follows_what_others_write(gateways: Gateways) -> None:
    one, other = gateways.start("one"), gateways.start("other")
    mine = speak(one, "1")
    speak(other, "2")
    assert one.get_or_create(KEY) is mine
    assert said(mine) == ["1", "2"]
    speak(one, "3")
    other.get_or_create(KEY).metadata["title"] = "New"
    other.save(other.get_or_create(KEY))
    assert one.get_or_create(KEY).metadata["title"] == "New"
    assert said(other.get_or_create(KEY)) == ["1", "2", "3"]
    # A session that nobody has saved yet, begun by both.
    fresh = one.get_or_create("cli:fresh")
    speak(other, "hello", "cli:fresh")
    assert one.get_or_create("cli:fresh") is fresh
    assert said(fresh) == ["hello"]


def what_both_wrote_at_once_is_in_the_order_of_the_store(gateways: Gateways) -> None:
    one, other = gateways.start("one"), gateways.start("other")
    speak(one, "0")
    mine, theirs = one.get_or_create(KEY), other.get_or_create(KEY)
    messages = mine.messages
    for number in range(5):
        mine.add_message("user", f"a{number}")
        theirs.add_message("user", f"b{number}")
        one.save(mine)
        other.save(theirs)
    assert said(theirs) == ["0", *(f"{w}{n}" for n in range(5) for w in "ab")]
    assert gateways.stored() == said(theirs)
    assert said(one.get_or_create(KEY)) == said(theirs)
    assert mine.messages is messages, "a turn that goes on has the same list"


def a_history_that_was_rewritten_keeps_what_others_appended(gateways: Gateways) -> None:
    one, other = gateways.start("one"), gateways.start("other")
    for number in range(6):
        speak(one, str(number))
    mine, theirs = one.get_or_create(KEY), other.get_or_create(KEY)
    theirs.add_message("user", "theirs")
    other.save(theirs)
    mine.commit_summary_checkpoint("They count.", insert_at=4)
    one.save(mine)
    assert said(mine)[:4] == ["0", "1", "2", "3"]
    assert said(mine)[5:] == ["4", "5", "theirs"]
    assert mine.last_archived == 4
    again = other.get_or_create(KEY)
    assert again is theirs
    assert (said(again), again.last_archived) == (said(mine), 4)
    assert again.metadata["_last_summary"]["text"] == "They count."
    assert [m["content"] for m in again.get_history()][1:] == ["4", "5", "theirs"]
    # And the other way round: what was appended comes behind what was rewritten.
    theirs.clear()
    mine.add_message("user", "late")
    other.save(theirs)
    one.save(mine)
    assert said(mine) == ["late"] == gateways.stored()
    assert mine.last_archived == 0
    assert "_last_summary" not in mine.metadata


def two_gateways_compact_at_once(gateways: Gateways) -> None:
    one, other = gateways.start("one"), gateways.start("other")
    for number in range(6):
        speak(one, str(number))
    mine, theirs = one.get_or_create(KEY), other.get_or_create(KEY)
    mine.commit_summary_checkpoint("Mine.", insert_at=2)
    theirs.commit_summary_checkpoint("Theirs.", insert_at=4)
    other.save(theirs)
    one.save(mine)
    # Where the replay begins, and what is said of those before, are of one compaction.
    assert (mine.last_archived, mine.metadata["_last_summary"]["text"]) == (4, "Theirs.")
    assert said(mine)[:4] == ["0", "1", "2", "3"]
    assert said(mine)[5:7] == ["4", "5"]


def a_session_that_was_deleted_elsewhere_does_not_come_back(gateways: Gateways) -> None:
    one, other = gateways.start("one"), gateways.start("other")
    mine = speak(one, "old")
    speak(other, "old, too")
    mine.add_message("user", "new")
    assert other.delete_session(KEY)
    assert other.get_or_create(KEY).messages == []
    one.save(mine)
    assert gateways.stored() == ["new"] == said(mine)
    assert not other.delete_session("cli:none")
    # Deleted and begun anew.
    other.delete_session(KEY)
    speak(other, "second")
    assert said(one.get_or_create(KEY)) == ["second"]


def two_gateways_change_metadata_at_once(gateways: Gateways) -> None:
    one, other = gateways.start("one"), gateways.start("other")
    mine = speak(one, "0")
    mine.metadata |= {"kept": {"deep": [1]}, "removed": 1, "both": 0}
    one.save(mine)
    theirs = other.get_or_create(KEY)
    mine.metadata["kept"]["deep"].append(2)
    mine.metadata["both"] = 1
    theirs.metadata |= {"theirs": 1, "both": 2}
    del theirs.metadata["removed"]
    other.save(theirs)
    one.save(mine)
    assert mine.metadata == {"kept": {"deep": [1, 2]}, "both": 1, "theirs": 1}
    assert other.get_or_create(KEY).metadata == mine.metadata
    assert one.update_session_metadata(KEY, {"title": "T"})
    assert not one.update_session_metadata("cli:none", {"title": "T"})
    assert other.read_session_metadata(KEY)["metadata"]["title"] == "T"
    speak(other, "1")
    assert one.get_or_create(KEY).metadata["title"] == "T"


def a_running_turn_is_kept_beside_the_messages(gateways: Gateways) -> None:
    one, other = gateways.start("one"), gateways.start("other")
    session = speak(one, "0")
    for step in range(3):
        session.metadata["runtime_checkpoint"] = {"step": step, "assistant_message": {"x": "y"}}
        one.save_runtime_checkpoint(session)
    with gateways.service() as service:
        stored = service.get("nanobot", "default", KEY, user_first="off")
        assert stored.seq == 1, "a checkpoint is no event"
    assert "runtime_checkpoint" not in other.get_or_create(KEY).metadata, "it is one's own turn"
    assert "runtime_checkpoint" not in other.read_session_metadata(KEY)["metadata"]
    speak(other, "1")
    again = gateways.start("one").get_or_create(KEY)
    assert again.metadata["runtime_checkpoint"]["step"] == 2, "after a restart"
    assert said(again) == ["0", "1"]
    del session.metadata["runtime_checkpoint"]
    one.save(session)
    assert "runtime_checkpoint" not in gateways.start("one").get_or_create(KEY).metadata


def a_turn_whose_end_was_stored_is_not_taken_up_again(gateways: Gateways) -> None:
    one, other = gateways.start("one"), gateways.start("other")
    session = speak(one, "question")
    session.metadata |= {"pending_user_turn": True, "pending_user_followups": [1]}
    session.metadata["runtime_checkpoint"] = {"assistant_message": {"role": "assistant"}}
    one.save(session)
    speak(other, "theirs")
    assert "runtime_checkpoint" in gateways.start("one").get_or_create(KEY).metadata
    # The process ends when the answer is stored, and that the turn is over is not.
    session.add_message("assistant", "answer")
    store = one._store
    store._sessions.write_record = lambda *_: None
    one.save(session)
    again = gateways.start("one").get_or_create(KEY)
    assert said(again) == ["question", "theirs", "answer"]
    assert again.metadata == {"pending_user_followups": [1]}


def two_gateways_of_one_workspace_have_turns_of_their_own(gateways: Gateways) -> None:
    one = gateways.start("one")
    session = speak(one, "0")
    session.metadata["pending_user_turn"] = True
    one.save(session)
    # Another process: what is installed anew takes no lock that is held.
    gateways.install()
    other = gateways.start("one")
    assert (one._store._gateway, other._store._gateway) == tuple(
        f"{one.sessions_dir.name}-{number}" for number in range(2)
    )
    assert other.get_or_create(KEY).metadata == {}


def what_a_provider_goes_on_from_is_of_these_messages_only(gateways: Gateways) -> None:
    one, other = gateways.start("one"), gateways.start("other")
    state = import_module("nanobot.providers.base").ProviderConversationState
    mine = speak(one, "0")
    mine.provider_state = state("responses", "openai", "gpt-5", 1, {"items": [1]}, [])
    one.save(mine)
    assert other.get_or_create(KEY).provider_state == mine.provider_state
    mine.add_message("user", "a")
    speak(other, "b")
    mine.provider_state = state("responses", "openai", "gpt-5", 1, {"items": [1, 2]}, [])
    one.save(mine)
    assert said(mine) == ["0", "b", "a"]
    assert mine.provider_state is None, "it knows nothing of what the other gateway was told"


def a_file_is_stored_when_it_is_first_loaded_and_stays(gateways: Gateways) -> None:
    gateways.package.uninstall()
    plain = gateways.start("one")
    speak(plain, "from the file")
    (path,) = session_files(gateways.root)
    content = path.read_bytes()
    gateways.install()
    one, other = gateways.start("one"), gateways.start("other")
    assert [item["key"] for item in one.list_sessions()] == [KEY]
    assert one.read_session_file(KEY)["messages"][0]["content"] == "from the file"
    assert other.list_sessions() == []
    assert said(one.get_or_create(KEY)) == ["from the file"] == said(other.get_or_create(KEY))
    speak(one, "from the store")
    assert path.read_bytes() == content
    assert [item["key"] for item in one.list_sessions()] == [KEY]
    # Where another machine's gateway deletes it, the file is still there, and is not read again.
    assert other.delete_session(KEY)
    assert path.exists()
    assert one.get_or_create(KEY).messages == []
    assert one.list_sessions() == []
    assert one.read_session_file(KEY) is None
    assert one.read_session_metadata(KEY) is None


def a_session_that_an_import_left_empty_is_read_from_its_file(gateways: Gateways) -> None:
    gateways.package.uninstall()
    speak(gateways.start("one"), "from the file")
    gateways.install()
    with gateways.service() as service:
        service.create("nanobot", "default", KEY)
    one = gateways.start("one")
    assert said(speak(one, "And now?")) == ["from the file", "And now?"]
    assert gateways.stored() == ["from the file", "And now?"]


def a_file_with_a_running_turn_is_stored_with_it(gateways: Gateways) -> None:
    gateways.package.uninstall()
    plain = gateways.start("one")
    session = speak(plain, "0")
    session.metadata["runtime_checkpoint"] = {"phase": "awaiting_tools"}
    plain.save_runtime_checkpoint(session)
    gateways.install()
    for name, turn in (("one", True), ("other", False), ("one", True)):
        metadata = gateways.start(name).get_or_create(KEY).metadata
        assert ("runtime_checkpoint" in metadata) == turn


def deleting_a_session_deletes_its_file(gateways: Gateways) -> None:
    gateways.package.uninstall()
    speak(gateways.start("one"), "0")
    gateways.install()
    one = gateways.start("one")
    one.get_or_create(KEY)
    assert one.delete_session(KEY)
    assert session_files(gateways.root) == []
    assert gateways.stored() == []


def stored_sessions_are_listed_as_those_in_files(gateways: Gateways) -> None:
    def write(manager: Any) -> list[dict[str, Any]]:
        now = manager.get_or_create("x").created_at
        for number in range(3):
            key = f"cli:{number}"
            session = gateways.module.Session(key=key, created_at=now, updated_at=now)
            roles = ("assistant", "user") if number else ("assistant",)
            session.messages = [
                {"role": role, "content": f"{role} <think>x</think> {number} " * 30}
                for role in roles
            ]
            session.metadata["title"] = f"<think>hm</think>title {number}"
            manager.save(session)
        rows = manager.list_sessions()
        stamps = ("path", "created_at", "updated_at")
        return [{name: row[name] for name in row if name not in stamps} for row in rows]

    shared = write(gateways.start("one"))
    gateways.package.uninstall()
    assert sorted(write(gateways.start("other")), key=str) == sorted(shared, key=str)


def an_export_is_what_nanobot_alone_would_have_written(gateways: Gateways) -> None:
    one = gateways.start("one")
    session = speak(one, "秤 \u2028 🙂")
    session.add_message("assistant", "", reasoning_content="hm")
    session.metadata |= {"title": "T", "summary": "They count.", "summary_state": {"version": 1}}
    session.last_archived = 1
    state = import_module("nanobot.providers.base").ProviderConversationState
    session.provider_state = state("responses", "openai", "gpt-5", 1, {"items": [1]}, [])
    one.save(session)
    exported = gateways.root / "exported.jsonl"
    files = import_module("nanobot_context.sessions.nanobot_files")
    with gateways.service() as service:
        (head,) = service.list_sessions("nanobot", "default")
        files.export_nanobot_file(service, head, exported)
    gateways.package.uninstall()
    plain = gateways.start("other")
    plain.save(session)
    (path,) = session_files(gateways.root)
    assert exported.read_bytes() == path.read_bytes()
    path.write_bytes(exported.read_bytes())
    loaded = gateways.start("other").get_or_create(KEY)
    for item in dataclasses.fields(loaded):
        assert getattr(loaded, item.name) == getattr(session, item.name), item.name


def sessions_that_were_imported_go_on(gateways: Gateways) -> None:
    files = import_module("nanobot_context.sessions.nanobot_files")
    path = gateways.root / "telegram_1.jsonl"
    call = {"id": "1", "type": "function", "function": {"name": "write_stdin", "arguments": "{}"}}
    lines = [
        {"_type": "metadata", "key": "telegram:1", "created_at": "2026-01-02T03:04:05"},
        {"role": "user", "content": "Größe"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "", "tool_call_id": "1", "name": "write_stdin"},
    ]
    # As 0.1.3.post7 and 0.1.4 write it: in ASCII.
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with gateways.service() as service:
        files.import_nanobot_file(service, path)
    one = gateways.start("one")
    (row,) = one.list_sessions()
    assert (row["key"], row["preview"]) == ("telegram:1", "Größe")
    session = one.get_or_create("telegram:1")
    assert session.messages[2]["name"] == "exec_session", "as nanobot reads its own files"
    assert session.created_at.isoformat() == "2026-01-02T03:04:05"
    speak(one, "And now?", "telegram:1")
    assert gateways.stored("telegram:1") == ["Größe", None, "", "And now?"]


def a_fork_is_a_session_of_its_own(gateways: Gateways) -> None:
    one, other = gateways.start("one"), gateways.start("other")
    speak(one, "0")
    speak(one, "1")
    speak(other, "2")
    one.fork_session_before_user_index(KEY, "cli:fork", 2)
    assert gateways.stored("cli:fork") == ["0", "1"] == said(other.get_or_create("cli:fork"))
    speak(other, "3", "cli:fork")
    assert gateways.stored() == ["0", "1", "2"]


def dreams_and_transient_sessions_are_not_shared(gateways: Gateways) -> None:
    one = gateways.start("one")
    for number in range(12):
        speak(one, "zzz", f"dream:{number}")
    import_module("nanobot.agent.memory").MemoryStore.prune_dream_sessions(one, keep=10)
    assert len(session_files(gateways.root)) == 10
    session = one.get_or_create_transient("web:1")
    session.add_message("user", "secret")
    one.save(session)
    assert one.get_cached("web:1") is session
    with gateways.service() as service:
        assert service.list_sessions("nanobot", "default") == []


def a_store_that_cannot_be_opened_leaves_the_sessions_in_files(gateways: Gateways) -> None:
    lines: list[str] = []
    loguru = import_module("loguru").logger
    sink = loguru.add(lines.append, format="{message}")
    folder = gateways.root / "folder"
    folder.mkdir()
    for url in (f"sqlite:///{folder}", "redis://me:secret@127.0.0.1:1/0"):
        lines.clear()
        status = gateways.install(url)
        shown = json.dumps(status.to_dict())
        manager = gateways.start("one")
        again = gateways.start("one")
        assert manager._store is manager._jsonl_store
        assert again._store is again._jsonl_store
        assert len(lines) == 1, lines
        assert "sessions stay files" in lines[0]
        assert "secret" not in lines[0] + shown + repr(status)
    loguru.remove(sink)
    speak(manager, "0")
    assert len(session_files(gateways.root)) == 1


def what_is_said_before_the_store_can_be_opened_is_stored_once_it_can(gateways: Gateways) -> None:
    if not gateways.url.startswith("redis"):
        return
    lines: list[str] = []
    loguru = import_module("loguru").logger
    old, cleared, gone = "cli:old", "cli:cleared", "cli:gone"
    gateways.package.uninstall()
    before = gateways.start("one")
    for key in (old, cleared, gone):
        speak(before, "from the file", key)
    with a_server_to_stop(gateways) as server:
        one = gateways.start("one")
        for key in (KEY, old, cleared, gone):
            speak(one, "0", key)
        assert one.delete_session(gone)
        speak(gateways.start("other"), "of another", KEY)
        server.stop()
        gateways.install()
        sink = loguru.add(lines.append, format="{message}")
        clock = [0.0]
        gateways.opened()._now = lambda: clock[0]
        down = gateways.start("one")
        assert down._store is down._jsonl_store
        for key in (KEY, old, gone, "cli:new"):
            for text in ("1", "2"):
                speak(down, text, key)
        session = down.get_or_create(cleared)
        assert said(session) == ["from the file"], "the file is not read again once it is stored"
        session.clear()
        speak(down, "1", cleared)
        server.start()
        speak(down, "3", KEY)
        assert down._store is down._jsonl_store, "it is tried again after a minute"
        clock[0] += 61
        session = speak(down, "4", KEY)
        assert down._store is not down._jsonl_store
        expected = {
            KEY: ["0", "of another", "1", "2", "3", "4"],
            old: ["from the file", "0", "1", "2"],
            cleared: ["1"],
            gone: ["1", "2"],
            "cli:new": ["1", "2"],
        }
        found = {key: gateways.stored(key) for key in expected}
        assert found == expected, found
        assert {key: said(down.get_or_create(key)) for key in expected} == expected
        assert said(session) == expected[KEY], "a turn that is going on has this list"
        assert lines[1:] == [
            "nanobot-context: 5 sessions were in files alone and are stored now\n"
        ], lines
        # Once, however often nanobot starts; and after a start, too.
        server.stop()
        gateways.install()
        speak(gateways.start("one"), "5", "cli:new")
        server.start()
        gateways.install()
        assert said(gateways.start("one").get_or_create("cli:new")) == ["1", "2", "5"]
        assert {key: gateways.stored(key) for key in expected} == {
            **expected,
            "cli:new": ["1", "2", "5"],
        }
        gateways.install()
        assert said(gateways.start("one").get_or_create("cli:new")) == ["1", "2", "5"]
        loguru.remove(sink)


def what_could_not_be_saved_does_not_stop_nanobot_and_is_saved_later(gateways: Gateways) -> None:
    if not gateways.url.startswith("sqlite:///"):
        return
    one = gateways.start("one")
    session = speak(one, "0")
    session.add_message("user", "1")
    with a_locked_database(gateways):
        one.save(session)
        assert one.get_or_create(KEY) is session
    assert gateways.stored() == ["0"]
    assert said(session) == ["0", "1"]
    one.save(session)
    assert gateways.stored() == ["0", "1"]


@contextmanager
def a_locked_database(gateways: Gateways) -> Iterator[None]:
    """Keep the gateways from writing into their SQLite file."""
    # By another process: within one, locks of two SQLite libraries do not hold each other off.
    command = [sys.executable, "-c", HOLD_LOCK, gateways.url.removeprefix("sqlite:///")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as locker:
        assert locker.stdout is not None
        assert locker.stdout.readline() == b"locked\n"
        yield


@contextmanager
def an_outage(gateways: Gateways) -> Iterator[Any]:
    """Have the gateways a store for this case; yields what takes it away for a while."""
    path = Path(gateways.url.removeprefix("sqlite:///"))
    away = path.with_name("away")

    @contextmanager
    def without_file() -> Iterator[None]:
        path.rename(away)
        yield
        away.rename(path)

    @contextmanager
    def stopped(server: Any) -> Iterator[None]:
        server.stop()
        yield
        server.start()

    if gateways.url.startswith("sqlite:"):
        yield without_file
    else:
        with a_server_to_stop(gateways) as server:
            yield partial(stopped, server)


@contextmanager
def a_server_to_stop(gateways: Gateways) -> Iterator[Any]:
    """Have the gateways keep their sessions in a Redis of their own, on disk."""
    sys.path.append(str(Path(__file__).parents[1] / "python" / "support"))
    with import_module("redis_server").running("", "--appendonly", "yes") as server:
        gateways.url = server.url
        gateways.install()
        yield server


def a_store_that_is_down_stops_nothing_and_loses_nothing(gateways: Gateways) -> None:
    if not gateways.url.startswith("redis"):
        return
    lines: list[str] = []
    loguru = import_module("loguru").logger
    in_file, down = "cli:in-file", ("cli:shared", "cli:new", "cli:in-file")
    gateways.package.uninstall()
    speak(gateways.start("one"), "from the file", in_file)
    with a_server_to_stop(gateways) as server:
        other = gateways.start("other")
        speak(other, "0")
        speak(other, "1")
        one = gateways.start("one")
        known = one.get_or_create("cli:known")
        speak(one, "0", "cli:known")
        sink = loguru.add(lines.append, format="{message}")
        server.stop()
        # Nothing raises: what is in memory goes on, the rest begins anew.
        for key in (*down, "cli:known"):
            session = one.get_or_create(key)
            assert said(session) == (["0"] if key == "cli:known" else [])
            speak(one, "meanwhile", key)
            assert one.get_or_create(key) is session
        assert one.read_session_file(KEY) is None
        assert one.read_session_metadata(KEY) is None
        assert said(one.read_session_snapshot(KEY)) == ["meanwhile"]
        assert one.read_session_snapshot(KEY) is not one.get_or_create(KEY)
        assert not one.update_session_metadata(KEY, {"title": "T"})
        assert [row["key"] for row in one.list_sessions()] == [in_file]
        assert len(lines) == 1, lines
        assert "nanobot goes on" in lines[0]
        fuses = {failure.what: failure.times for failure in gateways.package.status().fuses}
        assert fuses["store a session"] == 4
        assert fuses["load a session from the store"] == 3
        server.start()
        # One by taking it up, one by a save that comes first, one that only a file had.
        assert said(one.get_or_create(KEY)) == ["0", "1", "meanwhile"]
        session = one._cache["cli:in-file"]
        session.add_message("user", "after")
        one.save(session)
        assert said(session) == ["from the file", "meanwhile", "after"]
        speak(one, "after", "cli:new")
        one.save(known)
        one.flush_all()
        assert gateways.stored() == ["0", "1", "meanwhile"]
        assert gateways.stored(in_file) == ["from the file", "meanwhile", "after"]
        assert gateways.stored("cli:new") == ["meanwhile", "after"]
        assert gateways.stored("cli:known") == ["0", "meanwhile"]
        assert said(gateways.start("other").get_or_create(KEY)) == ["0", "1", "meanwhile"]
        # The first call stores all that is held, and later ones say nothing more.
        assert len(lines) == 3, lines
        assert "answers again" in lines[1]
        assert "4 messages of 4 sessions were in memory alone and are stored now" in lines[2]
        counters = gateways.package.status().counters
        assert (counters.messages_held, counters.messages_stored_late) == (4, 4)
        loguru.remove(sink)


def what_nanobot_drops_during_an_outage_is_stored_after_it(gateways: Gateways) -> None:
    if not gateways.url.startswith("redis"):
        return
    cleared, unread, dropped = "cli:cleared", "cli:unread", "cli:dropped"
    in_file = "cli:cleared-file"
    gateways.package.uninstall()
    speak(gateways.start("one"), "from the file", in_file)
    with a_server_to_stop(gateways) as server:
        other = gateways.start("other")
        for key in (cleared, unread):
            speak(other, "old", key)
        speak(other, "old", unread).metadata["title"] = "Scales"
        other.save(other.get_or_create(unread))
        one = gateways.start("one")
        assert said(one.get_or_create(cleared)) == ["old"]
        speak(one, "0", "cli:other")
        server.stop()
        speak(one, "dropped", dropped)
        speak(one, "said before /new", unread)
        # `/new`, as nanobot 0.3.5 does it.
        for key in (cleared, unread, in_file):
            session = one.get_or_create(key)
            session.clear()
            one.save(session)
            one.invalidate(key)
            assert said(one.get_or_create(key)) == []
        speak(one, "new", unread)
        one.invalidate(dropped)
        assert said(one.get_or_create(dropped)) == ["dropped"]
        one.invalidate(dropped)
        server.start()
        speak(other, "theirs", unread)
        one.save(one.get_or_create("cli:other"))
        assert gateways.stored(cleared) == []
        assert gateways.stored(in_file) == []
        assert gateways.stored(dropped) == ["dropped"]
        assert sorted(gateways.stored(unread)) == ["new", "theirs"]
        assert one.get_or_create(unread).metadata["title"] == "Scales"
        for key in (cleared, in_file):
            assert said(one.get_or_create(key)) == []
        assert gateways.stored("cli:other") == ["0"]


def what_is_deleted_during_an_outage_is_deleted_after_it(gateways: Gateways) -> None:
    with an_outage(gateways) as outage:
        never, again, begun = "cli:never", "cli:again", "cli:begun"
        other = gateways.start("other")
        for key in (KEY, never, again, begun):
            speak(other, "old", key)
        one = gateways.start("one")
        running = one.get_or_create(KEY)
        with outage():
            speak(one, "held", never)
            for key in (KEY, never, again, begun):
                assert one.delete_session(key)
                assert said(one.get_or_create(key)) == []
                assert one.read_session_file(key) is None
                assert one.read_session_metadata(key) is None
            assert one.list_sessions() == []
            speak(one, "new", again)
            # A turn that was going on when its session was deleted.
            running.add_message("user", "later")
            one.save(running)
            notes = list((one.sessions_dir / ".not-stored").iterdir())
            assert len(notes) == 4
        # Another one deletes one of them, too, and has it begun anew before this one looks.
        assert other.delete_session(begun)
        speak(other, "theirs", begun)
        listed = {row["key"] for row in one.list_sessions()}
        assert listed == {begun}, listed
        speak(one, "0", "cli:any")
        assert gateways.stored(KEY) == ["later"]
        assert gateways.stored(never) == []
        assert gateways.stored(again) == ["new"]
        assert gateways.stored(begun) == ["theirs"]
        assert said(one.get_or_create(begun)) == ["theirs"]
        assert said(other.get_or_create(never)) == []
        assert list((one.sessions_dir / ".not-stored").iterdir()) == []
        counters = gateways.package.status().counters
        assert counters.messages_held - counters.messages_stored_late == 1  # of a deleted one


def what_was_to_be_deleted_is_deleted_by_the_next_process(gateways: Gateways) -> None:
    if not gateways.url.startswith("redis"):
        return
    again, gone = "cli:again", "cli:gone"
    with a_server_to_stop(gateways) as server:
        one = gateways.start("one")
        for key in (KEY, again, gone):
            speak(one, "old", key)
        server.stop()
        assert one.delete_session(KEY)
        # One that begins before the store is there has files alone.
        gateways.install()
        clock = [0.0]
        gateways.opened()._now = lambda: clock[0]
        files = gateways.start("one")
        assert files._store is files._jsonl_store
        for key in (again, gone):
            speak(files, "meanwhile", key)
            assert files.delete_session(key)
        speak(files, "new", again)
        (files.sessions_dir / ".not-stored" / "0.json").write_text("damaged")
        server.start()
        clock[0] += 61
        assert said(files.get_or_create(again)) == ["new"]
        speak(files, "newer", again)
        for key, texts in {KEY: [], again: ["new", "newer"], gone: []}.items():
            assert gateways.stored(key) == texts, key
            assert said(gateways.start("other").get_or_create(key)) == texts
        notes = list((files.sessions_dir / ".not-stored").iterdir())
        assert [path.name for path in notes] == ["0.json"]


def what_is_held_at_the_end_of_a_process_is_stored_or_said_to_be_lost(gateways: Gateways) -> None:
    if not gateways.url.startswith("redis"):
        return
    lines: list[str] = []
    sink = import_module("loguru").logger.add(lines.append, format="{message}")
    with a_server_to_stop(gateways) as server:
        one = gateways.start("one")
        speak(one, "0")
        server.stop()
        speak(one, "1")
        one._store._end()
        assert "1 messages of 1 sessions are lost" in lines[-1]
        server.start()
        one._store._end()
        assert "1 messages of 1 sessions were in memory alone and are stored now" in lines[-1]
        assert gateways.stored() == ["0", "1"]
    import_module("loguru").logger.remove(sink)


def without_the_package_nanobot_has_its_files_again(gateways: Gateways) -> None:
    one = gateways.start("one")
    speak(one, "0")
    before = dict(vars(gateways.module.SessionManager))
    gateways.package.uninstall()
    plain = gateways.start("one")
    assert plain._store is plain._jsonl_store
    assert vars(gateways.module.SessionManager)["__init__"] is not before["__init__"]
    speak(one, "1")
    assert gateways.stored() == ["0", "1"], "a manager that had the store keeps it"
    gateways.install()
    own = object()
    workspace = gateways.root / "two"
    workspace.mkdir()
    assert gateways.module.SessionManager(workspace, store=own)._store is own


def every_save_is_as_cheap_as_what_is_new(gateways: Gateways) -> None:
    one = gateways.start("one")
    session = one.get_or_create(KEY)
    for number in range(2_000):
        session.add_message("user", f"{number} " * 100)
    one.save(session)
    with gateways.service() as service:
        before = service.get("nanobot", "default", KEY, last=1, user_first="off")
    start = time.perf_counter()
    for number in range(10):
        speak(one, str(number))
    seconds = (time.perf_counter() - start) / 10
    with gateways.service() as service:
        after = service.get("nanobot", "default", KEY, user_first="off")
    assert after.seq == before.seq + 10, "nothing that was stored is stored again"
    assert seconds < 0.2, "nanobot's file takes longer with each message"


CASES = {
    case.__name__: case
    for case in (
        what_one_gateway_saved_another_one_loads,
        a_session_in_memory_follows_what_others_write,
        what_both_wrote_at_once_is_in_the_order_of_the_store,
        a_history_that_was_rewritten_keeps_what_others_appended,
        two_gateways_compact_at_once,
        a_session_that_was_deleted_elsewhere_does_not_come_back,
        two_gateways_change_metadata_at_once,
        a_running_turn_is_kept_beside_the_messages,
        a_turn_whose_end_was_stored_is_not_taken_up_again,
        two_gateways_of_one_workspace_have_turns_of_their_own,
        what_a_provider_goes_on_from_is_of_these_messages_only,
        a_file_is_stored_when_it_is_first_loaded_and_stays,
        a_session_that_an_import_left_empty_is_read_from_its_file,
        a_file_with_a_running_turn_is_stored_with_it,
        deleting_a_session_deletes_its_file,
        stored_sessions_are_listed_as_those_in_files,
        an_export_is_what_nanobot_alone_would_have_written,
        sessions_that_were_imported_go_on,
        a_fork_is_a_session_of_its_own,
        dreams_and_transient_sessions_are_not_shared,
        a_store_that_cannot_be_opened_leaves_the_sessions_in_files,
        what_could_not_be_saved_does_not_stop_nanobot_and_is_saved_later,
        what_is_said_before_the_store_can_be_opened_is_stored_once_it_can,
        a_store_that_is_down_stops_nothing_and_loses_nothing,
        what_nanobot_drops_during_an_outage_is_stored_after_it,
        what_is_deleted_during_an_outage_is_deleted_after_it,
        what_was_to_be_deleted_is_deleted_by_the_next_process,
        what_is_held_at_the_end_of_a_process_is_stored_or_said_to_be_lost,
        without_the_package_nanobot_has_its_files_again,
        every_save_is_as_cheap_as_what_is_new,
    )
}


if __name__ == "__main__":
    sys.exit(main())
