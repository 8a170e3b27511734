"""JSON from outside that is nested too deeply to be read, and is no reason to stop."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nanobot_context.guard.line_file import LineFile
from nanobot_context.guard.record_file import _objects
from nanobot_context.plugins.shared_session import read_file
from nanobot_context.wire import exchange, streams
from nanobot_context.wire.forms import messages

DEEP = "[" * 100_000
CALL = {"id": "c", "function": {"name": "f", "arguments": DEEP}}

READERS: dict[str, tuple[Callable[[], Any], Any]] = {
    "a request": (
        lambda: exchange._form("POST", "http://h/v1/chat/completions", DEEP.encode()),
        None,
    ),
    "an event of a stream": (lambda: streams._json(DEEP.encode()), None),
    "arguments sent on to Anthropic": (lambda: messages._used(CALL, {})["input"], {}),
    "a line of nanobot's session file": (
        lambda: read_file(f"{DEEP}\n{json.dumps({'role': 'user', 'content': 'x'})}")[0],
        [{"role": "user", "content": "x"}],
    ),
}


@pytest.mark.parametrize("name", READERS)
def test_it_counts_as_no_json(name: str) -> None:
    read, expected = READERS[name]
    assert read() == expected


def test_a_record_that_is_such_a_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text(f'{DEEP}\n{{"at": 1}}\n')
    assert list(_objects(LineFile(path, 1_000))) == [{"at": 1}]
