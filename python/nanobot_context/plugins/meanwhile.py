"""Sessions that nanobot writes into files while the store cannot be opened.

Before a session is first written so, a copy of its file is put aside. What the file has more than
the copy, once the store is there, was said meanwhile, and is put behind what is stored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from nanobot_context.files import replace_file
from nanobot_context.plugins.shared_session import cleared_at

_FOLDER = ".not-stored"


@dataclass(frozen=True, slots=True)
class Copy:
    """The file of a session before nanobot wrote it without the store.

    Attributes:
        key: The session's key.
        text: The file's text; empty where there was none.
        cleared_at: When the session was cleared meanwhile, in seconds since 1970.
    """

    key: str
    text: str
    cleared_at: float | None = None


def put_aside(manager: Any, session: Any) -> None:
    """Keep the file of `session` as it is before its first save, and when it was cleared."""
    folder = manager.sessions_dir / _FOLDER
    path = folder / f"{hashlib.sha256(session.key.encode()).hexdigest()[:32]}.json"
    kept = _read(path) if path.exists() else None
    if kept is None:
        file: Path = manager._jsonl_store.get_session_path(session.key)
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        new = Copy(session.key, text, cleared_at(session))
    else:
        new = replace(kept, cleared_at=cleared_at(session) or kept.cleared_at)
    if new != kept:
        folder.mkdir(mode=0o700, exist_ok=True)
        replace_file(path, json.dumps(asdict(new)).encode())


def copies(manager: Any) -> Iterator[tuple[Path, Copy]]:
    """Yield each copy, and where it is."""
    for path in sorted((manager.sessions_dir / _FOLDER).glob("*.json")):
        yield path, _read(path)


def _read(path: Path) -> Copy:
    return Copy(**json.loads(path.read_text(encoding="utf-8")))
