"""Lists and deletes sessions of a store, or of nanobot's folders of session files."""

from __future__ import annotations

import atexit
import codecs
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from nanobot_context._core import mask_credentials, without_credentials
from nanobot_context.conversations import configured, nanobot_session_files, open_store, store_url

if TYPE_CHECKING:
    from nanobot_context.sessions import SessionHead, SessionService

# The checkpoint of a turn, beside the session's file. Source: nanobot 0.3.5,
# `_RUNTIME_CHECKPOINT_SUFFIX`.
_CHECKPOINT = ".checkpoint.json"


@dataclass(frozen=True, slots=True)
class Entry:
    """A session as a list shows it.

    Attributes:
        items: How many messages it has; in a store, events of any kind.
        updated: When it was written last, in seconds since 1970.
        where: Its files; empty in a store.
        bytes: The size of the file in use; `None` in a store.
    """

    key: str
    items: int
    updated: float
    where: tuple[str, ...] = ()
    bytes: int | None = None


class Files:
    """nanobot's session files; each method as `Stored` has it."""

    items = "messages"

    def __init__(self, workspace: Path | None) -> None:
        self._workspace = workspace
        self.shown = "nanobot's files"
        if workspace:
            self.shown = f"nanobot's files of `{mask_credentials(str(workspace))}`"

    def entries(self) -> list[Entry]:
        found = [
            Entry(
                key, _count(path), path.stat().st_mtime, tuple(map(str, paths)), path.stat().st_size
            )
            for key, paths in nanobot_session_files(self._workspace).items()
            for path in paths[:1]
        ]
        return sorted(found, key=lambda entry: entry.updated, reverse=True)

    def delete(self, key: str) -> bool:
        # All of them: nanobot would take up an older one that is left.
        paths = nanobot_session_files(self._workspace).get(key, [])
        for path in paths:
            path.unlink(missing_ok=True)
            path.with_name(path.stem + _CHECKPOINT).unlink(missing_ok=True)
        return bool(paths)

    def sweep(self) -> int:
        return 0


class Stored:
    """A user's sessions in a store.

    Attributes:
        shown: What the store is called; without user name and password.
    """

    items = "events"

    def __init__(self, service: SessionService, shown: str, app: str, user: str) -> None:
        self.service = service
        self.shown = f"`{shown}`"
        self.app = app
        self.user = user

    def entries(self) -> list[Entry]:
        """Return every session, the one written last first."""
        found = [
            Entry(head.id, head.seq - head.first_seq + 1 if head.seq else 0, _updated(head))
            for head in self.heads()
        ]
        return sorted(found, key=lambda entry: entry.updated, reverse=True)

    def heads(self) -> list[SessionHead]:
        """Return every session without its events."""
        return self.service.list_sessions(self.app, self.user)

    def delete(self, key: str) -> bool:
        """Delete a session with all that belongs to it; return whether there was one."""
        return self.service.delete(self.app, self.user, key)

    def sweep(self) -> int:
        """Free the expired sessions of every user, and return their number."""
        return self.service.cleanup()


SessionSource: TypeAlias = Files | Stored


def source_of(
    store: str | None,
    workspace: Path | None,
    app: str | None = None,
    user: str | None = None,
    *,
    create: bool = False,
) -> SessionSource:
    """Return the source that the options name: a store, else files, else the configured one.

    Args:
        store: The URL of a store.
        workspace: nanobot's workspace whose files are meant.
        app: Whose sessions of the store; `None` for nanobot's.
        user: The user; `None` for nanobot's.
        create: Whether a SQLite file may be made.

    Raises:
        StoreUnavailableError: There is no such SQLite file, or the store does not answer.
    """
    if store is None and workspace is None:
        from nanobot_context.cli.in_force import note_left_out

        note_left_out(configured())
    url = store_url(store, workspace)
    if url is None:
        return Files(workspace)
    from nanobot_context.sessions.nanobot_files import APP, USER

    service = open_store(url, create=create)
    atexit.register(service.close)  # which leaves a SQLite file without its log
    return Stored(service, without_credentials(url), app or APP, user or USER)


def _updated(head: SessionHead) -> float:
    """Return when a session was written last: as nanobot says, for one that was imported."""
    from nanobot_context.sessions.nanobot_files import META

    lines = (head.meta.get(META) or {}).get("lines", [])
    for _, line in lines:
        try:
            return datetime.fromisoformat(json.loads(line)["updated_at"]).timestamp()
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return head.updated


def _count(path: Path) -> int:
    """Return how many messages a session file has; reads all of it, and parses nothing."""
    lines = path.read_bytes().removeprefix(codecs.BOM_UTF8).split(b"\n")
    # As every release writes what is not a message.
    return sum(line.strip() != b"" and not line.startswith(b'{"_type"') for line in lines)
