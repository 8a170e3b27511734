"""nanobot's session files, imported and exported; those of real releases are in tests/nanobot."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nanobot_context.errors import InvalidArgumentError, SessionNotFoundError
from nanobot_context.sessions import (
    SessionEvent,
    SessionService,
    StoredSession,
)
from nanobot_context.sessions.nanobot_files import (
    META,
    export_nanobot_file,
    export_nanobot_folder,
    import_nanobot_file,
    import_nanobot_folder,
)
from nanobot_context.summary import Summarizer
from session_cases import at_once

if TYPE_CHECKING:
    from session_cases import Store

pytest_plugins = ("session_fixtures",)

KEY = "telegram:42"


def message(role: str, content: Any, **fields: Any) -> bytes:
    said = {"role": role, "content": content, "timestamp": "2026-01-02T03:04:05.678901", **fields}
    return json.dumps(said, ensure_ascii=False).encode()


RECORD = json.dumps(
    {
        "_type": "metadata",
        "key": KEY,
        "created_at": "2026-01-02T03:04:05.000001",
        "updated_at": "2026-01-02T03:04:06.000001",
        "metadata": {"title": "Größe 秤", "summary": "They weigh things."},
        "last_archived": 1,
        "last_consolidated": 1,
    },
    ensure_ascii=False,
).encode()
STATE = b'{"_type": "provider_state", "state": {"version": 1, "items": [1, 2.50, 1e400]}}'
CALL = {"id": "c1", "type": "function", "function": {"name": "list_dir", "arguments": "{}"}}
TALK = [
    message("user", "How heavy is it? 🙂"),
    message("assistant", None, tool_calls=[CALL]),
    message("tool", "", tool_call_id="c1", name="list_dir"),
    message("assistant", "It weighs 12 kg."),
]


def content(*lines: bytes, end: bytes = b"\n") -> bytes:
    return b"\n".join(lines) + end


FILES = {
    "plain": content(RECORD, *TALK),
    "without a final newline": content(RECORD, *TALK, end=b""),
    "a provider's state": content(RECORD, STATE, *TALK),
    "blank lines": content(b"", RECORD, b"", TALK[0], b"  ", TALK[3], b"", b""),
    "nothing but messages": content(*TALK),
    "nothing but metadata": content(RECORD),
    "nothing": b"",
    "one newline": b"\n",
    "Windows": content(RECORD, *TALK).replace(b"\n", b"\r\n"),
    "ASCII": content(*[json.dumps(json.loads(line)).encode() for line in (RECORD, *TALK)]),
    "other spacing": content(RECORD, b'{ "role":"user","content" : "hi" , "n": 1.50, "n": 2 }'),
    "a line separator in a message": content(RECORD, message("user", "one\u2028two\x85three")),
    "half a character": content(RECORD, b'{"role": "user", "content": "\\ud83d"}'),
    "no number": content(RECORD, b'{"role": "user", "content": "x", "score": NaN}'),
    "too large a number": content(RECORD, b'{"role": "user", "content": "x", "n": 1e999}'),
    "deep": content(RECORD, b'{"role": "user", "content": ' + b"[" * 300 + b"]" * 300 + b"}"),
    "messages that say nothing": content(
        RECORD, message("assistant", ""), message("user", []), message("assistant", None)
    ),
    "an unknown type": content(RECORD, TALK[0], b'{"_type": "later", "role": "user"}', TALK[3]),
    "no objects": content(RECORD, b"[1, 2]", b'"text"', b"null", b"12345678901234567890.10"),
    "our own wrapping": content(RECORD, b'{"line": "x"}', b'{"line": {"line": 1}}'),
    "twice the same": content(RECORD, TALK[0], TALK[0], TALK[0]),
}

files = pytest.mark.parametrize("name", FILES)


def stored(service: SessionService, session: StoredSession) -> list[tuple[int | None, str, Any]]:
    found = service.get(*session.key, user_first="off")
    assert found is not None
    return [(event.seq, event.id, event.raw) for event in found.events]


@files
def test_a_file_that_was_imported_is_exported_byte_for_byte(
    plain_store: Store, tmp_path: Path, name: str
) -> None:
    path, back = tmp_path / "telegram_42.jsonl", tmp_path / "back.jsonl"
    path.write_bytes(FILES[name])
    service = plain_store.open(event_limit=0)
    session = import_nanobot_file(service, path)
    assert session.key == ("nanobot", "default", KEY)
    export_nanobot_file(service, session, back)
    assert back.read_bytes() == FILES[name]
    assert back.stat().st_mode & 0o777 == 0o600


def test_a_byte_order_mark_is_no_part_of_what_is_imported(
    plain_store: Store, tmp_path: Path
) -> None:
    path, back = tmp_path / "telegram_42.jsonl", tmp_path / "back.jsonl"
    path.write_bytes(codecs.BOM_UTF8 + FILES["plain"])
    service = plain_store.open(event_limit=0)
    session = import_nanobot_file(service, path)
    export_nanobot_file(service, session, back)
    assert back.read_bytes() == FILES["plain"]


@files
def test_importing_twice_adds_nothing(plain_store: Store, tmp_path: Path, name: str) -> None:
    path = tmp_path / "telegram_42.jsonl"
    path.write_bytes(FILES[name])
    service = plain_store.open(event_limit=0)
    first = import_nanobot_file(service, path)
    before = stored(service, first)
    second = import_nanobot_file(service, path)
    assert (second.seq, second.generation) == (first.seq, first.generation)
    assert second.meta == first.meta
    assert stored(service, second) == before


@pytest.mark.parametrize("knows_file", [True, False])
def test_a_file_that_did_not_change_takes_nothing_from_a_session_that_went_on(
    plain_store: Store, tmp_path: Path, knows_file: bool
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(content(RECORD, *TALK))
    service = plain_store.open(event_limit=0)
    session = import_nanobot_file(service, path)
    service.append(session, [SessionEvent({"role": "user", "content": "And now?"})])
    if not knows_file:
        meta = {**session.meta, META: {**session.meta[META]}}
        del meta[META]["imported"]
        service.set_meta(session, meta)
    before = stored(service, session)
    assert stored(service, import_nanobot_file(service, path)) == before
    if knows_file:
        service.replace_tail(session, 0, [SessionEvent({"role": "user", "content": "Anew."})])
        assert len(import_nanobot_file(service, path).messages) == 1, "it was cleared since"


CHANGES: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "grew": lambda lines: [*lines, message("user", "And now?"), message("assistant", "Now.")],
    "was cut": lambda lines: lines[:-2],
    "was rewritten in the middle": lambda lines: [*lines[:2], message("user", "No."), *lines[3:]],
    "was cleared": lambda lines: lines[:1],
    "began anew": lambda lines: [lines[0], message("user", "Hello again.")],
    "has other metadata": lambda lines: [lines[0].replace(b"weigh", b"lift"), *lines[1:]],
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changed_is_stored_as_it_is_now(
    plain_store: Store, tmp_path: Path, change: str
) -> None:
    path, back = tmp_path / "a.jsonl", tmp_path / "back.jsonl"
    lines = [RECORD, *TALK]
    path.write_bytes(content(*lines))
    service = plain_store.open(event_limit=0)
    before = stored(service, import_nanobot_file(service, path))
    path.write_bytes(content(*CHANGES[change](lines)))
    after = import_nanobot_file(service, path)
    export_nanobot_file(service, after, back)
    assert back.read_bytes() == path.read_bytes()
    if change == "grew":
        assert stored(service, after)[: len(before)] == before, "these were not stored anew"


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        (b'{"role": "user", "content": }', "line 3, column 29"),
        (b'{"role": "user", "content": "\xff"}', "line 3, column 30"),
        (b'{"role": "user", "content": "' + "秤".encode() + b'\xff"}', "line 3, column 31"),
        (b'{"role": "user"', "line 3, column 16"),
        (b"[" * 100_000, "line 3, column 1"),
    ],
)
def test_a_line_that_is_no_json_is_named_and_nothing_of_its_file_is_stored(
    plain_store: Store, tmp_path: Path, wrong: bytes, where: str
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(content(RECORD, TALK[0], wrong, TALK[3]))
    service = plain_store.open(event_limit=0)
    with pytest.raises(InvalidArgumentError, match=f"`a.jsonl` .*{where}"):
        import_nanobot_file(service, path)
    assert service.list_sessions("nanobot", "default") == []
    good = tmp_path / "0.jsonl"
    good.write_bytes(content(*TALK))
    with pytest.raises(InvalidArgumentError, match=r"`a\.jsonl`"):
        import_nanobot_folder(service, tmp_path)
    assert [head.id for head in service.list_sessions("nanobot", "default")] == ["0"], (
        "the good one is"
    )


def test_a_service_that_would_drop_old_messages_is_refused(
    plain_store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(content(RECORD, *[message("user", str(n)) for n in range(30)]))
    service = plain_store.open(event_limit=10)
    with pytest.raises(InvalidArgumentError, match=r"30 messages.*\nhint: `event_limit=0`"):
        import_nanobot_file(service, path)
    assert service.list_sessions("nanobot", "default") == []


def test_messages_are_messages_for_whoever_reads_the_session(
    plain_store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(FILES["a provider's state"])
    service = plain_store.open(event_limit=0)
    session = import_nanobot_file(service, path)
    assert session.messages == [json.loads(line) for line in TALK]
    assert [shown["role"] for shown in service.context(session, mode="recent")] == [
        *("user", "assistant", "tool", "assistant")
    ]
    assert session.events[0].time == pytest.approx(1767323045.678, abs=86_400)


def test_a_summary_of_an_imported_session_is_not_in_its_file(
    plain_store: Store, tmp_path: Path
) -> None:
    path, back = tmp_path / "a.jsonl", tmp_path / "back.jsonl"
    path.write_bytes(content(RECORD, *TALK))
    service = plain_store.open(
        event_limit=0, summarizer=Summarizer(), placeholder=True, auto_summary=False
    )
    session = import_nanobot_file(service, path)
    assert service.summarize(session, force=True) is not None
    export_nanobot_file(service, session, back)
    assert back.read_bytes() == path.read_bytes()
    import_nanobot_file(service, path)
    assert len(service.summaries(session)) == 1, "nothing was rewritten"
    path.write_bytes(content(RECORD, *TALK, message("user", "More?")))
    session = import_nanobot_file(service, path)
    export_nanobot_file(service, session, back)
    assert back.read_bytes() == path.read_bytes()


def test_a_folder_comes_back_with_its_names(plain_store: Store, tmp_path: Path) -> None:
    folder, back = tmp_path / "sessions", tmp_path / "back"
    folder.mkdir()
    back.mkdir()
    for number, name in enumerate(("cli_direct", "dGVsZWdyYW06NDI", "with_two_parts")):
        # Without a key of its own each is known by its name.
        (folder / f"{name}.jsonl").write_bytes(content(message("user", f"talk {number}")))
    service = plain_store.open(event_limit=0)
    sessions = import_nanobot_folder(service, folder)
    assert [one.id for one in sessions] == ["cli:direct", KEY, "with:two_parts"]
    paths = export_nanobot_folder(service, back)
    assert paths == sorted(back.iterdir())
    assert [path.name for path in paths] == sorted(path.name for path in folder.iterdir())
    for path in paths:
        assert path.read_bytes() == (folder / path.name).read_bytes()


def test_two_files_of_one_session_are_refused(plain_store: Store, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_bytes(content(RECORD, TALK[0]))
    service = plain_store.open(event_limit=0)
    with pytest.raises(InvalidArgumentError, match=r"`a.jsonl` and `b.jsonl`"):
        import_nanobot_folder(service, tmp_path)
    assert service.list_sessions("nanobot", "default") == []


def test_a_session_that_nanobot_never_wrote_becomes_a_file_of_its(
    plain_store: Store, tmp_path: Path
) -> None:
    service = plain_store.open()
    session = service.create("nanobot", "default", "cli:new")
    service.append(session, [SessionEvent({"role": "user", "content": "Hello"})])
    (path,) = export_nanobot_folder(service, tmp_path)
    assert path.name == "Y2xpOm5ldw.jsonl"
    record, said = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert (record["_type"], record["key"], record["metadata"]) == ("metadata", "cli:new", {})
    assert said == {"role": "user", "content": "Hello"}


def test_a_session_that_is_gone_is_not_exported(plain_store: Store, tmp_path: Path) -> None:
    service = plain_store.open()
    session = service.create("nanobot", "default", "cli:new")
    service.delete(*session.key)
    with pytest.raises(SessionNotFoundError, match="nanobot/default/cli:new"):
        export_nanobot_file(service, session, tmp_path / "a.jsonl")
    assert list(tmp_path.glob("*.jsonl")) == []


def test_importers_at_once_store_each_line_once(tmp_path: Path) -> None:
    path, url = tmp_path / "a.jsonl", f"sqlite:///{tmp_path}/s.db"
    path.write_bytes(content(RECORD, *[message("user", str(n)) for n in range(200)]))
    with (
        SessionService(url, event_limit=0) as one,
        SessionService(url, event_limit=0) as other,
    ):
        works = [partial(import_nanobot_file, service, path) for service in (one, other) * 4]
        for session in at_once(works):
            assert [event.payload["content"] for event in session.events] == [
                str(number) for number in range(200)
            ]


def test_a_key_that_is_too_long_for_a_name_is_in_the_file(
    plain_store: Store, tmp_path: Path
) -> None:
    service = plain_store.open(event_limit=0)
    keys = ["telegram:" + "x" * 500, "telegram:" + "x" * 501, "short"]
    for key in keys:
        service.append(
            service.create("nanobot", "default", key),
            [SessionEvent({"role": "user", "content": "hello"})],
        )
    paths = export_nanobot_folder(service, tmp_path)
    assert len({path.name for path in paths}) == 3
    for key in keys:
        service.delete("nanobot", "default", key)
    assert sorted(session.id for session in import_nanobot_folder(service, tmp_path)) == sorted(
        keys
    )
