"""Keeps sessions while the store cannot be opened or does not answer.

Before nanobot first writes a session into a file in place of the store, that file is copied. Once
the store is there, what the file has beyond the copy is appended to what is stored. Deletions are
noted and done then.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from nanobot_context import log
from nanobot_context.files import replace_file
from nanobot_context.plugins.shared_session import cleared_at

_FOLDER = ".not-stored"


@dataclass(frozen=True, slots=True)
class Copy:
    """The file of a session before nanobot wrote it without the store.

    Attributes:
        text: The file's text; empty where there was none.
        cleared_at: When the session was cleared meanwhile, in seconds since 1970.
        deleted_at: When it was deleted meanwhile; a file that is there again is from after it.
    """

    key: str
    text: str
    cleared_at: float | None = None
    deleted_at: float | None = None


def put_aside(files: Any, session: Any) -> None:
    """Copy the file of `session` before its first save, and note when it was cleared.

    `files` is nanobot's store of files.
    """
    kept = _kept(files, session.key)
    if kept is None:
        file: Path = files.get_session_path(session.key)
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        new = Copy(session.key, text, cleared_at(session))
    else:
        new = replace(kept, cleared_at=cleared_at(session) or kept.cleared_at)
    if new != kept:
        _keep(files, new)


def note_deleted(files: Any, key: str, at: float) -> None:
    """Note that a session was deleted, but not from the store."""
    _keep(files, Copy(key, "", deleted_at=at))


def forget_deleted(files: Any, key: str) -> None:
    """Forget that note, unless it is also of a file that was written since."""
    kept = _kept(files, key)
    if kept is not None and kept.deleted_at and not files.get_session_path(key).exists():
        _path(files, key).unlink(missing_ok=True)


def copies(files: Any) -> Iterator[tuple[Path, Copy]]:
    """Yield each copy, and where it is. One that is damaged is left there."""
    for path in sorted((files.sessions_dir / _FOLDER).glob("*.json")):
        try:
            yield path, _read(path)
        except (OSError, ValueError, TypeError) as error:
            log.warning("`{}` is damaged, its session stays in a file: {}", path, error)


def _path(files: Any, key: str) -> Path:
    folder: Path = files.sessions_dir / _FOLDER
    return folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"


def _kept(files: Any, key: str) -> Copy | None:
    path = _path(files, key)
    return _read(path) if path.exists() else None


def _keep(files: Any, copy: Copy) -> None:
    path = _path(files, copy.key)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    replace_file(path, json.dumps(asdict(copy)).encode())


def _read(path: Path) -> Copy:
    return Copy(**json.loads(path.read_text(encoding="utf-8")))
