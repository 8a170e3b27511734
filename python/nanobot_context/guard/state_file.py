"""Reads and writes small JSON files beside nanobot's config, shared by all its processes.

Each is there whole or not at all, and its owner's only; one process at a time writes it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from nanobot_context import log
from nanobot_context._core import format_value
from nanobot_context.files import locked, replace_file

State = TypeVar("State")

LEARNED, COUNTERS, RULES = "learned.json", "counters.json", "rules.json"
REQUESTS = "requests.jsonl"
OWN_REQUESTS = "own-requests.jsonl"
"""Those of programs that are not nanobot: they push none of nanobot's out."""

UNWRITTEN = {
    LEARNED: "what providers teach is forgotten when nanobot ends",
    COUNTERS: "`status` does not count what nanobot does",
    REQUESTS: "`inspect` shows a replay, not what was sent",
    RULES: "`nanobot-context rules --forget` takes nothing back",
}
"""Every such file, and what follows where it cannot be written."""


_UNREADABLE: dict[Path, str] = {}
"""Files that could not be read the last time, and what that means."""


class ReadInPart(Exception):
    """Says that a file was read without one of its entries."""

    def __init__(self, state: Any, entry: str, why: object) -> None:
        super().__init__(entry, why)
        self.state, self.entry, self.why = state, entry, why


def state_file(config: Path, name: str) -> Path:
    """Return where the file `name` is, for a config file of nanobot's."""
    return config.parent / "nanobot-context" / name


def user_folder() -> Path:
    """Return the user's folder for the state of a server on a machine without nanobot.

    Source: XDG Base Directory Specification 0.8, `XDG_STATE_HOME`, which must be absolute.
    """
    if sys.platform == "win32":
        named, usual = "LOCALAPPDATA", Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        named, usual = "", Path.home() / "Library" / "Application Support"
    else:
        named, usual = "XDG_STATE_HOME", Path.home() / ".local" / "state"
    folder = Path(os.environ.get(named, ""))
    return (folder if folder.is_absolute() else usual) / "nanobot-context"


def read_state(file: Path, parse: Callable[[dict[str, Any]], State], empty: State) -> State:
    """Return the object in `file`, read by `parse`; `empty` if there is no such file.

    A file that is damaged or cannot be read counts as empty, or as what `ReadInPart` has of it: a
    warning and `unreadable` say so.
    """
    try:
        if file.exists() and not file.is_file():
            # A pipe would wait for a writer, and a device have no end.
            raise OSError("it is no regular file")
        given = json.loads(file.read_text(encoding="utf-8-sig"))  # editors on Windows
        if not isinstance(given, dict):
            raise ValueError(f"it must hold a JSON object, got {format_value(given)}")
        state = parse(given)
    except FileNotFoundError:
        state = empty
    except ReadInPart as read:
        _UNREADABLE[file] = f"`{file}` is read without `{read.entry}`: {read.why}"
        log.warning("{}", _UNREADABLE[file])
        return read.state  # type: ignore[no-any-return]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        _UNREADABLE[file] = f"`{file}` cannot be read and counts as empty: {error}"
        log.warning("{}", _UNREADABLE[file])
        return empty
    _UNREADABLE.pop(file, None)
    return state


def unreadable(file: Path) -> str | None:
    """Return what it means that `file` could not be read the last time; `None` if it could."""
    return _UNREADABLE.get(file)


def set_aside(file: Path) -> Path:
    """Return where a damaged `file` is kept once a new one takes its place."""
    return file.with_name(f"{file.name}.damaged")


def update_state(file: Path, change: Callable[[], Any], *, timeout_seconds: float) -> None:
    """Write the result of `change` under the file's lock; `change` reads the file first.

    Raises:
        OSError: The file cannot be written, or another process writes it all the while.
    """
    # Not its parents: without nanobot's folder there is no nanobot to keep a file for.
    file.parent.mkdir(exist_ok=True)
    with locked(file.with_name(f"{file.name}.lock"), timeout_seconds=timeout_seconds):
        content = (json.dumps(change(), indent=2) + "\n").encode()
        if _UNREADABLE.pop(file, None) is not None and file.is_file():
            # Most of it may be right, and somebody can read it who knows what it was.
            file.replace(set_aside(file))
        replace_file(file, content)
