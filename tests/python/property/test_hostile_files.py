"""Files that anybody may have written: read, or refused with an error of this package's.

The inputs are files as nanobot and this package write them, with bytes taken out, put in, doubled
and nested, and JSON of any shape in the places where these files have theirs.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nanobot_context.conversations import (
    nanobot_session_files,
    read_conversation,
    read_objects,
)
from nanobot_context.errors import ConversationFileError, InvalidArgumentError, SettingsError
from nanobot_context.guard import counters
from nanobot_context.guard.limits import ProviderLimits
from nanobot_context.host import stored_summary
from nanobot_context.sessions import SessionService
from nanobot_context.sessions.nanobot_files import (
    SessionFile,
    export_nanobot_file,
    import_nanobot_file,
)
from nanobot_context.sessions.records import decode_state
from nanobot_context.settings import SETTINGS_FILE, load_settings

NAMES = [
    "_type",
    "agents",
    "average",
    "compression",
    "content",
    "contextWindowOverride",
    "counts",
    "covers",
    "created_at",
    "defaults",
    "digest",
    "events",
    "function",
    "id",
    "key",
    "last",
    "last_consolidated",
    "messages",
    "metadata",
    "models",
    "name",
    "output_tokens",
    "ratios",
    "role",
    "sessionStore",
    "since",
    "state",
    "summary",
    "summary_state",
    "text",
    "timestamp",
    "tool_call_id",
    "tool_calls",
    "tools",
    "used",
    "version",
    "window_tokens",
    "workspace",
]
WORDS = ["user", "assistant", "tool", "system", "metadata", "provider_state", "cjk", "\ud800", ""]


def objects(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=5), values, max_size=6)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(0, 3)
    | st.floats()
    | st.sampled_from(WORDS)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | objects(inner),
    max_leaves=8,
)
RECORD = {
    "_type": "metadata",
    "key": "cli:direct",
    "created_at": "2026-01-02T03:04:05",
    "metadata": {"summary": "s", "summary_state": {"covers": 1, "version": 1, "last": {}}},
    "last_consolidated": 0,
}
CALL = {"id": "c1", "type": "function", "function": {"name": "list_dir", "arguments": "{}"}}
LINES: list[Any] = [
    RECORD,
    {"_type": "provider_state", "state": {"items": []}},
    {"role": "user", "content": "hello", "timestamp": "2026-01-02T03:04:05.5"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "content": "a.txt", "tool_call_id": "c1", "name": "list_dir"},
]
LEARNED = {
    "models": {
        "gpt-4o": {
            "window_tokens": 8192,
            "output_tokens": None,
            "ratios": {"latin": {"used": 1.1, "average": 1.08, "counts": 4}},
        }
    }
}
SETTINGS = {"compression": True, "contextWindowOverride": 8000, "events": "a.jsonl"}
COUNTS = {"since": "2026-01-02T03:04:05+00:00", "requests": 3, "compressed": 1}
CONFIG = {"agents": {"defaults": {"contextCompression": {"emergencyRatio": 0.5}}}}


@st.composite
def contents(draw: st.DrawFn, *wholes: Any) -> bytes:
    """The content of a file that is one of `wholes`, or has values one a line, or neither."""
    form = draw(st.sampled_from(["whole", "whole", "lines", "bytes"]))
    if form == "bytes":
        return draw(st.binary(max_size=200))
    values = [draw(st.sampled_from(wholes))] if form == "whole" and wholes else draw(some_lines())
    in_ascii = draw(st.booleans())
    text = "\n".join(json.dumps(_replaced(draw, one), ensure_ascii=in_ascii) for one in values)
    content = (text + draw(st.sampled_from(["", "\n", "\r\n\n"]))).encode(errors="surrogatepass")
    for _ in range(draw(st.integers(0, 2))):
        content = _broken(draw, content)
    return content


def some_lines() -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(LINES) | VALUES, max_size=5)


def _replaced(draw: st.DrawFn, value: Any) -> Any:
    """Put any value in the place of `value`, of one that is somewhere within it, or of none."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 4)) == 0:
        return draw(VALUES) if draw(st.booleans()) else value
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    at = draw(
        st.sampled_from(sorted(copy)) if isinstance(copy, dict) else st.integers(0, len(copy) - 1)
    )
    copy[at] = _replaced(draw, copy[at])
    return copy


NESTED = [
    b"[" * 200_000,
    b'{"messages":' * 50_000,
    b"[" * 500 + b"]" * 500,
    b"[" * 130 + b"]" * 130,
]
PIECES = [
    *NESTED,
    b"9" * 5_000,
    b"1e999",
    b"NaN",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\0",
    b"\n",
    b'"',
    b"\\ud800",
]


def _broken(draw: st.DrawFn, content: bytes) -> bytes:
    start = draw(st.integers(0, len(content)))
    end = draw(st.integers(start, len(content)))
    middle = draw(st.sampled_from([b"", content[start:end] * 2, *PIECES]) | st.binary(max_size=4))
    return content[:start] + middle + content[end:]


@dataclass
class FakeSession:
    messages: list[Any]
    metadata: Any = field(default_factory=dict)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    (folder / "sessions").mkdir()
    return folder


def put(file: Path, content: bytes) -> Path:
    file.write_bytes(content)
    return file


def every_nesting(test: Callable[..., None]) -> Callable[..., None]:
    for content in NESTED:
        test = example(content=content)(test)
    return test


@every_nesting
@given(content=contents(LINES, {"messages": LINES}))
def test_a_file_is_a_conversation_or_is_refused_with_its_place(home: Path, content: bytes) -> None:
    for read in (read_conversation, read_objects):
        refused = None
        try:
            read(put(home / "any.json", content))
        except ConversationFileError as error:
            refused = error
        assert refused is None or (refused.line >= 1 and refused.column >= 1)


@every_nesting
@given(content=contents())
def test_a_file_that_cannot_be_read_hides_no_session(home: Path, content: bytes) -> None:
    put(home / "sessions" / "any.jsonl", content)
    put(home / "sessions" / "other.jsonl", json.dumps({**RECORD, "key": "other:1"}).encode())
    assert "other:1" in nanobot_session_files(home)


@every_nesting
@given(content=contents())
@example(content=codecs.BOM_UTF8)
def test_a_session_file_is_stored_byte_for_byte_or_refused(home: Path, content: bytes) -> None:
    # Editors on Windows put a byte order mark before it, which says nothing.
    said = content.removeprefix(codecs.BOM_UTF8)
    path = put(home / "any.jsonl", content)
    try:
        file = SessionFile.parse(path.name, content)
    except InvalidArgumentError:
        return
    assert file.render() == said
    with SessionService("memory:") as service:
        try:
            session = import_nanobot_file(service, path)
        except InvalidArgumentError:
            return
        export_nanobot_file(service, session, home / "out.jsonl")
    assert (home / "out.jsonl").read_bytes() == said


@every_nesting
@given(content=contents(SETTINGS, CONFIG))
def test_settings_are_read_or_refused(home: Path, content: bytes) -> None:
    for name in ("config.json", SETTINGS_FILE):
        path = put(home / name, content)
        try:
            load_settings(home / "config.json", {})
        except SettingsError:
            pass
        finally:
            path.unlink()


@every_nesting
@given(content=contents(LEARNED, COUNTS))
@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_read_of_lessons_and_counts_is_made_anew(home: Path, content: bytes) -> None:
    learned = ProviderLimits.load(put(home / "learned.json", content))
    learned.learn_window("gpt-4o", 5_000)
    learned.counted("gpt-4o", "latin", 2_000, 3_000, refused=True)
    assert ProviderLimits.load(home / "learned.json").to_dict() == learned.to_dict()
    counters.read_counts(put(home / "counters.json", content)).to_dict()


@given(
    messages=st.lists(objects(VALUES) | st.sampled_from(LINES[2:])),
    metadata=VALUES | objects(VALUES),
)
def test_a_summary_in_a_session_is_read_or_is_none(messages: list[Any], metadata: Any) -> None:
    session = FakeSession(messages, metadata)
    summary = stored_summary.read(session)
    assert summary is None or 0 <= summary.covers <= len(messages)
    assert isinstance(stored_summary.version_of(session), int)


@every_nesting
@given(content=contents())
def test_a_state_that_another_program_wrote_is_a_value_or_its_bytes(content: bytes) -> None:
    value = decode_state({"name": content})["name"]
    assert value == content.removeprefix(b"\0") or json.loads(content) == value or value != value
