"""Conversations read from files of every form, from nanobot's folders and from stores."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nanobot_context import (
    ConversationFileError,
    SessionEvent,
    SessionNotFoundError,
    SessionService,
    SettingsError,
    Summarizer,
)
from nanobot_context.conversations import (
    find_conversation,
    nanobot_session_files,
    read_conversation,
    read_objects,
)
from nanobot_context.replay import replay
from nanobot_context.report.render import render as render_report
from nanobot_context.sessions.nanobot_files import import_nanobot_file, name_of_key
from nanobot_context.types import Message

MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "Hello, 世界"},
    {"role": "assistant", "content": "Hi.", "timestamp": "2026-01-01T00:00:00", "extra": [1, None]},
]
RECORD = {"_type": "metadata", "key": "cli:direct", "metadata": {"title": "Hi"}}
LINES = "\n".join(json.dumps(message, ensure_ascii=False) for message in MESSAGES)


def written(folder: Path, content: str | bytes, name: str = "chat.json") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# Forms -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(MESSAGES),
        json.dumps(MESSAGES, indent=2, ensure_ascii=False),
        json.dumps({"model": "gpt-4o", "messages": MESSAGES, "temperature": 0.5}),
        json.dumps({"messages": MESSAGES}, indent=1),
        LINES,
        f"\n\n{LINES}\n\n",
        LINES.replace("\n", "\r\n") + "\r\n",
        "\ufeff" + LINES,
        "\ufeff" + json.dumps(MESSAGES),
        f"  {json.dumps(MESSAGES)}  \n",
    ],
    ids=[
        *("list", "indented", "request", "indented-request", "lines", "blank-lines", "crlf"),
        *("bom-lines", "bom-list", "spaces"),
    ],
)
def test_every_form_of_a_file_gives_the_same_messages(tmp_path: Path, content: str) -> None:
    conversation = read_conversation(written(tmp_path, content))
    assert conversation.messages == MESSAGES
    assert (conversation.name, conversation.metadata) == ("chat.json", {})
    assert conversation.source == str(tmp_path / "chat.json")


def test_a_request_body_keeps_its_tools_and_its_model(tmp_path: Path) -> None:
    tools = [{"type": "function", "function": {"name": "look"}}]
    body = {"model": "gpt-4o", "messages": MESSAGES, "tools": tools}
    conversation = read_conversation(written(tmp_path, json.dumps(body)))
    assert (conversation.tools, conversation.model) == (tools, "gpt-4o")
    conversation = read_conversation(written(tmp_path, json.dumps(MESSAGES)))
    assert (conversation.tools, conversation.model) == (None, None)


def test_a_session_file_of_nanobots_has_a_key_and_metadata(tmp_path: Path) -> None:
    state = '{"_type": "provider_state", "id": "r_1"}'
    path = written(tmp_path, f"{json.dumps(RECORD)}\n{state}\n{LINES}\n", "cli_direct.jsonl")
    conversation = read_conversation(path)
    assert conversation.name == "cli:direct"
    assert conversation.metadata == RECORD
    assert conversation.messages == MESSAGES


@pytest.mark.parametrize("content", ["[]", '{"messages": []}', json.dumps(RECORD)])
def test_a_conversation_without_messages_is_one(tmp_path: Path, content: str) -> None:
    assert read_conversation(written(tmp_path, content)).messages == []


@pytest.mark.parametrize("indent", [None, 2])
def test_a_single_message_is_a_conversation(tmp_path: Path, indent: int | None) -> None:
    path = written(tmp_path, json.dumps(MESSAGES[0], indent=indent))
    assert read_conversation(path).messages == MESSAGES[:1]


def test_a_request_made_of_a_session_is_still_that_session(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps({"metadata": RECORD, "messages": MESSAGES}))
    conversation = read_conversation(path)
    assert (conversation.name, conversation.metadata) == ("cli:direct", RECORD)
    path = written(tmp_path, json.dumps({"metadata": {"key": "mine"}, "messages": MESSAGES}))
    assert (read_conversation(path).name, read_conversation(path).metadata) == ("chat.json", {})


def test_a_lone_surrogate_is_text_as_any_other(tmp_path: Path) -> None:
    path = written(tmp_path, r'[{"role": "user", "content": "half \ud83d"}]')
    assert read_conversation(path).messages[0]["content"] == "half \ud83d"


def test_a_line_separator_within_a_message_ends_no_line(tmp_path: Path) -> None:
    message = {"role": "user", "content": "one\u2028two\x85three"}
    path = written(tmp_path, json.dumps(message, ensure_ascii=False) + f"\n{LINES}")
    assert read_conversation(path).messages == [message, *MESSAGES]


def test_standard_input_is_read_for_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(LINES.encode())))
    conversation = read_conversation("-")
    assert (conversation.name, conversation.source) == ("standard input", "standard input")
    assert conversation.messages == MESSAGES


def test_a_fifo_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(LINES,))
    writer.start()
    assert read_conversation(path).messages == MESSAGES
    writer.join()


# Bad files ---------------------------------------------------------------------------------------

BAD: dict[str, tuple[str | bytes, int, int, str]] = {
    "empty": (b"", 1, 1, "there is nothing in it; expected a JSON list of messages"),
    "blank": ("\n \n", 3, 1, "there is nothing in it"),
    "prose": ("Dear diary,\nhello", 1, 1, "not valid JSON: expecting value"),
    "a number": ("17", 1, 1, "found a number"),
    "null": ("null", 1, 1, "found null"),
    "a string": ('"hello"', 1, 1, "found a string"),
    "another object": ('{"a": 1}', 1, 1, "found an object"),
    "messages is no list": ('{"a": [0],\n "messages": {"a": 1}}', 2, 14, "found an object"),
    "cut off": ('[\n  {"role": "user", "content": "a"},\n  {"ro', 3, 4, "it looks cut off"),
    "cut off behind a comma": ('[{"role": "user", "content": "a"},', 1, 35, "it looks cut off"),
    "a last line cut off": (f'{LINES}\n{{"role": "us', 3, 10, "it looks cut off"),
    "a bad line": (f"{LINES}\n{{role: 1}}\n{LINES}", 3, 2, "expecting property name"),
    "a list among lines": (f"{LINES}\n[]\n", 3, 1, "expected a message on each line; found a list"),
    "an indented line": (f"{LINES}\n   7\n", 3, 4, "found a number"),
    "two lists": ("[]\n[]", 2, 1, "extra data"),
    "no role": (f'{LINES}\n{{"content": "x"}}', 3, 1, "`messages[2]` has no `role`"),
    "an unknown role": (
        '[{"role": "user", "content": "a"},\n\n  {"role": "boss"}]',
        *(3, 3, "`messages[1].role` must be one of system, developer, user"),
    ),
    "a message that is a string": (
        '{"n": 1.5,\n"messages": [\n"hello"]}',
        *(3, 1, "`messages[0]` must be a dict, got 'hello'"),
    ),
    "a key twice": (
        '[{"role": "user"},\n{"role": "user",\n  "content": [1, {"a": 1, "a": 2}]}]',
        *(3, 27, "the key `a` stands twice"),
    ),
    "a key twice on a line": (
        f'{LINES}\n{{"role": "user", "role": "tool"}}\n',
        *(3, 18, "the key `role` stands twice"),
    ),
    "no number": ('[\n{"role": "user", "cost": NaN}]', 2, 26, "`NaN` is not valid JSON"),
    "too large a number": ('[{"role": "user", "cost": -1e999}]', 1, 27, "-1e999 is too large"),
    "a very long number": (f'[{{"cost": {"7" * 5_000}}}]', 1, 11, "a number of 5,000 digits"),
    "deep": ("[" * 100_000, 1, 1, "nested too deeply"),
    "latin-1": (b'[{"role": "user",\n "content": "caf\xe9"}]', 2, 17, "byte 0xe9 is not UTF-8"),
    "bytes behind a mark": (b"\xef\xbb\xbf[\xff]", 1, 2, "byte 0xff is not UTF-8"),
    "utf-16": (json.dumps(MESSAGES).encode("utf-16"), 1, 1, "it looks like UTF-16"),
    "binary": (b"\x00\x01\x02\x03", 1, 1, "not valid JSON"),
    "wide characters before": ('["世界😀", nope]', 1, 9, "expecting value"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_with_its_place(tmp_path: Path, name: str) -> None:
    content, line, column, problem = BAD[name]
    path = written(tmp_path, content)
    with pytest.raises(ConversationFileError) as caught:
        read_conversation(path)
    error = caught.value
    assert (error.path, error.line, error.column) == (str(path), line, column), error
    assert str(error).startswith(f"`{path}`, line {line}, column {column:,}: ")
    assert problem in str(error)
    assert len(str(error)) < 400


def test_a_file_that_cannot_be_read_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_conversation(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_conversation(tmp_path / "none.json")


def test_a_file_of_objects_is_read_line_by_line(tmp_path: Path) -> None:
    path = written(tmp_path, f"{LINES}\n\n")
    assert read_objects(path) == MESSAGES
    with pytest.raises(ConversationFileError, match="line 3, column 2: expected an object on each"):
        read_objects(written(tmp_path, f"{LINES}\n 1"))


# Sessions ----------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / ".nanobot"


def session_text(key: str, said: str = "Hello") -> str:
    record = {"_type": "metadata", "key": key}
    return f"{json.dumps(record)}\n{json.dumps({'role': 'user', 'content': said})}\n"


def test_sessions_of_every_release_are_found_by_their_keys(home: Path) -> None:
    workspace = home / "workspace"
    own = "0123456789abcdef" * 2
    written(workspace / ".nanobot", f"{own}\n", "workspace-id")
    written(home / "sessions" / own, session_text("a:new"), name_of_key("a:new"))
    written(workspace / "sessions", session_text("b:middle"), "b_middle.jsonl")
    # The first releases' files do not say their keys.
    written(home / "sessions", LINES, "c_old.jsonl")
    assert {*nanobot_session_files()} == {"a:new", "b:middle", "c:old"}
    assert find_conversation("a:new").messages[0]["content"] == "Hello"
    assert find_conversation("c:old").messages == MESSAGES


def test_of_two_files_of_a_session_the_one_in_use_is_read(home: Path) -> None:
    workspace = home / "workspace"
    written(workspace / "sessions", session_text("a:b", "now"), "a_b.jsonl")
    written(home / "sessions", session_text("a:b", "long ago"), "a_b.jsonl")
    assert find_conversation("a:b").messages[0]["content"] == "now"
    assert len(nanobot_session_files()["a:b"]) == 2


def test_the_configured_workspace_is_looked_through_and_another_one_on_request(
    home: Path, tmp_path: Path
) -> None:
    config = {"agents": {"defaults": {"workspace": "~/work"}}}
    written(home, json.dumps(config), "config.json")
    written(tmp_path / "work/sessions", session_text("a:b", "configured"), "a_b.jsonl")
    written(tmp_path / "other/sessions", session_text("a:b", "other"), "a_b.jsonl")
    assert find_conversation("a:b").messages[0]["content"] == "configured"
    found = find_conversation("a:b", workspace=tmp_path / "other")
    assert found.messages[0]["content"] == "other"


def test_a_file_comes_before_a_session(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(home / "workspace/sessions", session_text("chat", "session"), "chat.jsonl")
    monkeypatch.chdir(written(tmp_path, LINES, "chat").parent)
    assert find_conversation("chat").messages == MESSAGES


@pytest.mark.parametrize("key", ["nobody:here", "x" * 5_000, "a\0b", ""])
def test_a_session_that_is_nowhere_is_not_found(home: Path, key: str) -> None:
    with pytest.raises(SessionNotFoundError, match=r"among nanobot's sessions \(0\)"):
        find_conversation(key)


def test_a_key_that_is_nearly_right_is_named(home: Path) -> None:
    written(home / "workspace/sessions", session_text("telegram:7345"), "telegram_7345.jsonl")
    with pytest.raises(SessionNotFoundError, match="did you mean `telegram:7345`"):
        find_conversation("telegram:7344")


def test_a_session_of_nanobots_in_a_store_is_what_its_file_was(home: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"
    lines = f'{session_text("cli:direct")}{{"role": "assistant", "content": ""}}\n{LINES}\n'
    path = written(tmp_path, lines, "cli_direct.jsonl")
    with SessionService(url, event_limit=0) as service:
        import_nanobot_file(service, path)
    stored, file = find_conversation("cli:direct", store=url), read_conversation(path)
    assert (stored.name, stored.messages, stored.metadata) == (
        *(file.name, file.messages),
        file.metadata,
    )
    assert stored.source == url


def test_a_session_of_another_program_is_found_by_app_user_and_id(
    home: Path, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"
    with SessionService(url) as service:
        session = service.create("app", "user", "id/with/slashes")
        service.append(session, [SessionEvent(message) for message in MESSAGES])
        service.append(session, [SessionEvent({"progress": 0.5})])
    found = find_conversation("app/user/id/with/slashes", store=url)
    assert (found.messages, found.metadata, found.name) == (MESSAGES, {}, "id/with/slashes")
    with pytest.raises(SessionNotFoundError, match=r"among those in `sqlite:///"):
        find_conversation("app/user/else", store=url)


def test_the_summaries_of_a_store_come_with_the_session(home: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'sessions.db'}"
    with SessionService(url, summarizer=Summarizer(lambda request: "They talk.")) as service:
        session = service.create("app", "user", "id")
        for turn in range(2):
            said: list[Message] = [
                {"role": "user", "content": f"Question {turn}"},
                {"role": "assistant", "content": f"Answer {turn}"},
            ]
            service.append(session, [SessionEvent(message) for message in said])
            service.summarize(session, force=True)
    conversation = find_conversation("app/user/id", store=url)
    assert [(one.version, covers) for one, covers in conversation.summaries] == [(1, 2), (2, 4)]
    shown = render_report(conversation, replay(conversation.messages, 1_000), [], {})["summaries"]
    told = [(one["version"], one["covers"], one["status"], one["made_by"]) for one in shown]
    assert told == [(1, 2, "stored", "model"), (2, 4, "in use", "model")]
    assert "They talk." in shown[1]["text"]
    assert shown[1]["at"].startswith("20")


def test_the_configured_store_comes_before_the_files(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"
    written(home / "workspace/sessions", session_text("a:b", "file"), "a_b.jsonl")
    written(home / "workspace/sessions", session_text("a:c", "file only"), "a_c.jsonl")
    with SessionService(url, event_limit=0) as service:
        import_nanobot_file(service, written(tmp_path, session_text("a:b", "store"), "x.jsonl"))
    monkeypatch.setenv("NANOBOT_CONTEXT_SESSION_STORE", url)
    assert find_conversation("a:b").messages[0]["content"] == "store"
    assert find_conversation("a:c").messages[0]["content"] == "file only"


def test_no_password_is_shown_of_a_store(home: Path, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"127\.0\.0\.1:1") as caught:
        find_conversation("a:b", store="redis://me:secret@127.0.0.1:1/0")
    assert "secret" not in str(caught.value)


def test_settings_that_cannot_be_used_are_told_before_the_wrong_sessions_are_read(
    home: Path,
) -> None:
    written(home, '{"sessionStore": 5}', "nanobot-context.json")
    with pytest.raises(SettingsError, match="sessionStore"):
        find_conversation("a:b")
