"""Reads, begins, writes and deletes nanobot's sessions in a shared store.

What a session has in common with what is stored is known from the session itself, see
`shared_session`; where the store does not answer, all of this raises `SessionStoreError`.
"""

from __future__ import annotations

import copy
import hashlib
import math
from dataclasses import replace
from datetime import datetime
from typing import Any

from nanobot_context.errors import StoreDataError
from nanobot_context.identity import common_length
from nanobot_context.plugins import meanwhile
from nanobot_context.plugins.shared_session import (
    Known,
    forget,
    known_of,
    merge,
    messages_of,
    meta_with,
    metadata_of,
    note,
    preview_of,
    record_of,
    stored_record,
)
from nanobot_context.sessions.nanobot_files import APP, META, USER, dumps, event_of
from nanobot_context.sessions.records import SessionEvent, SessionHead, StoredSession
from nanobot_context.sessions.service import SessionService

# What the user's state has for each session whose file was stored: it is not to come back.
_FILE = "file:"


class StoredSessions:
    """The sessions of a store, without those whose deletion it has not heard of yet.

    Args:
        service: Where they are.
        files: nanobot's own store, beside which is noted what is still to be deleted.
        gateway: Whose turns are shown, and who writes.

    Attributes:
        deleted: When sessions were deleted that could not be deleted from the store yet.
    """

    def __init__(self, service: SessionService, files: Any, gateway: str) -> None:
        self._service = service
        self._files = files
        self._gateway = gateway
        self._previews: dict[str, tuple[Any, str]] = {}
        self.deleted: dict[str, float] = {}

    def stored(self, key: str) -> StoredSession | None:
        """Return the stored session `key`, or `None`."""
        stored = self._service.get(APP, USER, key, user_first="off")
        return None if self._is_deleted(stored) else stored

    def head(self, key: str) -> SessionHead | None:
        """Return the stored session `key` without its messages, or `None`."""
        head = self._service.get(APP, USER, key, last=0, user_first="off")
        return None if self._is_deleted(head) else head

    def heads(self) -> dict[str, SessionHead]:
        """Return all sessions, without their messages, by their keys."""
        heads = self._service.list_sessions(APP, USER)
        return {head.id: head for head in heads if not self._is_deleted(head)}

    def begin(self, session: Any) -> Known:
        """Create the session in the store.

        Raises:
            SessionExistsError: Another gateway was first.
        """
        known = Known(self._service.create(APP, USER, session.key).head)
        note(session, known)
        return known

    def read_again(self, session: Any) -> None:
        """Merge what is stored by now into `session`; what it has beyond that stays."""
        stored = self.stored(session.key)
        known = known_of(session)
        if stored is not None:
            merge(session, known, Known.of(stored, self._gateway))
        elif known is not None:
            # Deleted elsewhere: that stays deleted, and what is new begins a new session.
            merge(session, known, Known(replace(known.head, meta={})))
            forget(session)

    def write_lines(self, session: Any, known: Known) -> None:
        """Write the messages of `session` that are new or changed."""
        common = common_length(known.messages, session.messages)
        start = StoredSession(**vars(known.head))
        new = copy.deepcopy(session.messages[common:])
        tail = [
            replace(event_of(line, _event_id(start, at, line)), author=self._gateway)
            for at, line in enumerate(map(dumps, new), common)
        ]
        if common < len(known.messages):
            after = known.seqs[common - 1] if common else 0
            self._service.replace_tail(start, after, tail)
        elif tail:
            self._service.append(start, tail, expected=start.seq)
        else:
            return
        # The metadata stays as read: if it has changed since, writing it raises `ConflictError`.
        known.head = replace(known.head, seq=start.seq, updated=start.updated)
        known.messages[common:] = new
        known.seqs[common:] = [_position(event) for event in tail]

    def write_record(self, session: Any, known: Known) -> None:
        """Write the metadata of `session` if it differs from the stored one."""
        record = record_of(session)
        meta = meta_with(known.head, record, self._gateway)
        meta[META]["preview"] = preview_of(session.messages)
        if meta != known.head.meta:
            self._service.set_meta(known.head, meta)
            known.record = copy.deepcopy(record)

    def write_metadata(self, head: SessionHead, updates: dict[str, Any]) -> None:
        """Change nanobot's metadata of a session, and nothing else."""
        record = stored_record(head, self._gateway)
        record["metadata"] = {**metadata_of(record), **copy.deepcopy(updates)}
        self._service.set_meta(head, meta_with(head, record, self._gateway))

    def delete(self, key: str) -> bool:
        """Delete the session `key` from the store; return whether it was there."""
        return self._service.delete(APP, USER, key)

    def delete_late(self, key: str) -> None:
        """Delete a session now that was deleted while the store did not answer."""
        if key in self.deleted:
            head = self._service.get(APP, USER, key, last=0, user_first="off")
            if self._is_deleted(head):
                self._service.delete(APP, USER, key)
            self.has_deleted(key)

    def has_deleted(self, key: str) -> None:
        """Forget that the session `key` is still to be deleted."""
        if self.deleted.pop(key, None) is not None:
            meanwhile.forget_deleted(self._files, key)

    def _is_deleted(self, head: SessionHead | None) -> bool:
        """Return whether a session was deleted while the store did not answer."""
        return head is not None and head.created <= self.deleted.get(head.id, -math.inf)

    def taken_files(self) -> set[str]:
        """Return the keys of sessions whose files have been stored, some of them deleted since."""
        names = self._service.user_state(APP, USER)
        return {name.removeprefix(_FILE) for name in names if name.startswith(_FILE)}

    def take_file(self, key: str) -> None:
        """Note that the file of a session has been stored."""
        self._service.update_user_state(APP, USER, {_FILE + key: True})

    def shown(self, head: SessionHead) -> dict[str, Any]:
        """Return the fields that nanobot shows of a session, without its messages."""
        record = stored_record(head, self._gateway)
        stamps = {"created_at": head.created, "updated_at": head.updated}
        for name, seconds in stamps.items():
            record[name] = record.get(name) or datetime.fromtimestamp(seconds).isoformat()
        return {"key": head.id, **{name: record[name] for name in (*stamps, "metadata")}}

    def preview(self, head: SessionHead) -> str:
        """Return how a session begins; of one that nanobot has not saved yet, by reading it."""
        preview = head.meta.get(META, {}).get("preview")
        if preview is not None:
            return str(preview)
        version = (head.generation, head.seq, head.updated)
        found = self._previews.get(head.id)
        if found is None or found[0] != version:
            stored = self.stored(head.id)
            found = version, preview_of(messages_of(stored)) if stored else ""
            self._previews[head.id] = found
        return found[1]


def _event_id(session: SessionHead, at: int, line: str) -> str:
    """Return the id of a line that is written when the session has come so far."""
    said = f"{session.generation}\0{session.seq}\0{at}\0{line}".encode()
    return hashlib.sha256(said).hexdigest()[:32]


def _position(event: SessionEvent) -> int:
    if event.seq is None:
        raise StoreDataError(f"the store did not take the message {event.raw:.60}")
    return event.seq
