"""Keeps nanobot's sessions in a store that several gateways share: the setting `sessionStore`.

    load()   the stored lines -> nanobot's session, which notes what of it is stored
    save()   lines behind those -> appended; lines changed -> their tail replaced
             another gateway was first -> both writers' lines, in the session too, then once more
    cached   what nanobot keeps in memory is brought up to date when the store has moved on
    no store   where it cannot be opened, sessions are nanobot's files: see `meanwhile`
    no answer  nanobot goes on with what is in memory, and with an empty session where nothing is;
             sessions that could not be stored are held, see `outage`, and once the store answers,
             what was said meanwhile is put behind what is stored; what was deleted is deleted then

A session is stored as `sessions.nanobot_files` has it: a message is an event, and the metadata
line, and what a provider goes on from, are the session's metadata. So is the turn that a gateway is
at, under the gateway's name: to another one it would look like a turn that was broken off. nanobot
0.3.5 is the first release whose store can be another one.
"""

from __future__ import annotations

import copy
import math
import time
from functools import partial
from typing import Any

from nanobot_context import log
from nanobot_context.errors import (
    ConflictError,
    SessionExistsError,
    SessionGoneError,
    SessionNotFoundError,
    SessionStoreError,
    StoreAccessError,
)
from nanobot_context.forks import ThreadLock
from nanobot_context.guard.counters import Counters
from nanobot_context.host.detect import find
from nanobot_context.plugins import meanwhile
from nanobot_context.plugins.outage import Outage
from nanobot_context.plugins.shared_session import (
    MODULE,
    Known,
    cleared_at,
    known_of,
    loaded,
    merge,
    messages_of,
    migrate,
    note,
    read_file,
)
from nanobot_context.plugins.stored_sessions import StoredSessions
from nanobot_context.sessions.service import SessionService

# nanobot removes the oldest of these by their files, and they are of one gateway's workspace.
# Source: nanobot 0.3.5, `agent/memory.py`, `prune_dream_sessions`.
_OWN_PREFIX = "dream:"
# Each time one fails, another gateway has written.
_ATTEMPTS = 100
_OVERTAKEN = (ConflictError, SessionExistsError, SessionGoneError, SessionNotFoundError)


class SharedSessions:
    """A session store of nanobot 0.3.5 over a `SessionService`.

    Every method waits for the store, as nanobot's own does for the disk. Where the store does not
    answer, none raises: the failure is counted in `status`, and the first of an outage is logged.
    A session that could not be stored is held until it is, whether nanobot asks for it or not.

    Args:
        service: Where sessions are.
        files: nanobot's own store. A session that is only there is stored when it is first loaded;
            its file stays as it is, and is not read again.
        gateway: What this gateway is called; after a restart, the same.
        lease: What keeps that name for this process as long as it lives.
        counters: Where messages are counted that could not be stored at once.
    """

    def __init__(
        self,
        service: SessionService,
        files: Any,
        gateway: str,
        lease: Any,
        counters: Counters,
    ) -> None:
        self._sessions = StoredSessions(service, files, gateway)
        self._files = files
        self._gateway = gateway
        self._lease = lease
        self._lock = ThreadLock()
        self._outage = Outage(counters)
        # Sessions that could not be read: nanobot may have begun them anew.
        self._unread: set[str] = set()

    # What nanobot's protocol asks for ------------------------------------------------------------

    def load(self, key: str) -> Any:
        """Return the session `key`, or `None`, also where the store does not answer.

        One that is held comes as a copy. Otherwise nanobot then goes on with an empty one, which
        overwrites nothing: what is stored, or in a file that is not stored yet, is put before it as
        soon as the store answers.
        """
        if is_own(key):
            return self._files.load(key)
        with self._lock:
            held = self._outage.held(key)
            if held is not None:  # nanobot has dropped it: by `/new`, or as one of too many
                self.bring_up(held)
                if self._outage.held(key) is not None:
                    return copy.deepcopy(held)
            # Until it has been read.
            self._unread.add(key)
            what = "load a session from the store"
            return self._outage.try_to(what, lambda: self._load(key), None)

    def _load(self, key: str) -> Any:
        with self._lock:
            stored = self._sessions.stored(key)
            # One that never had an event was made by an import that was killed: the file has all.
            is_empty = stored is None or not stored.seq
            is_new = is_empty and key not in self._sessions.taken_files()
            session = self._files.load(key) if is_new else None
            self._unread.discard(key)
            if session is None and stored is not None:
                return loaded(key, stored, self._gateway)
            if session is not None:
                self._save(session)
                self._sessions.take_file(key)
            return session

    def save(self, session: Any, *, fsync: bool = False) -> None:
        """Store what is new in `session`, and merge what other gateways have written into it.

        Where the store does not take it, nanobot goes on: the next save goes on from there.
        """
        if is_own(session.key):
            self._files.save(session, fsync=fsync)
            return
        with self._lock:
            if self._store(session):
                self._store_held()

    def _save(self, session: Any) -> bool:
        with self._lock:
            self._sessions.delete_late(session.key)
            if session.key in self._unread:
                self._catch_up(session)
            for _ in range(_ATTEMPTS):
                try:
                    known = known_of(session) or self._sessions.begin(session)
                    self._sessions.write_lines(session, known)
                    self._sessions.write_record(session, known)
                    return True
                except _OVERTAKEN as error:
                    last = error
                    self._sessions.read_again(session)
            raise last

    def delete(self, key: str) -> bool:
        """Delete the session `key` and its file; return whether there was one of them.

        Where the store does not answer, it is deleted there as soon as it does, also by the next
        process of this workspace, and was there for all that anybody knows.
        """
        if is_own(key):
            return bool(self._files.delete(key))
        with self._lock:
            what = "delete a session of the store"
            is_gone = self._outage.try_to(what, lambda: self._delete(key), False)
            return is_gone or key in self._sessions.deleted

    def _delete(self, key: str) -> bool:
        at = time.time()
        try:
            was_stored = self._sessions.delete(key)
        except StoreAccessError:
            raise  # no waiting helps
        except SessionStoreError:
            self._sessions.deleted[key] = at
            self._forget(key)
            meanwhile.note_deleted(self._files, key, at)
            raise
        had_file = self._forget(key)
        self._sessions.has_deleted(key)
        return had_file or was_stored

    def _forget(self, key: str) -> bool:
        """Drop a session from memory, and its file; return whether there was a file."""
        self._outage.release(key, is_stored=False)
        self._unread.discard(key)
        return bool(self._files.delete(key))

    def read(self, key: str) -> dict[str, Any] | None:
        """Return all of the session `key` as nanobot shows it, or `None`."""
        return self._outage.try_to("read a session of the store", lambda: self._read(key), None)

    def _read(self, key: str) -> dict[str, Any] | None:
        stored = None if is_own(key) else self._sessions.stored(key)
        if stored is None:
            return self._files.read(key) if self._is_in_file(key) else None
        shown, messages = self._sessions.shown(stored), messages_of(stored)
        migrate(messages, shown["metadata"])
        return {**shown, "messages": messages}

    def read_metadata(self, key: str) -> dict[str, Any] | None:
        """Return the session `key` without its messages, or `None`."""
        what = "read a session of the store"
        return self._outage.try_to(what, lambda: self._read_metadata(key), None)

    def _read_metadata(self, key: str) -> dict[str, Any] | None:
        head = None if is_own(key) else self._sessions.head(key)
        if head is None:
            return self._files.read_metadata(key) if self._is_in_file(key) else None
        return self._sessions.shown(head)

    def update_metadata(self, key: str, updates: dict[str, Any], *, fsync: bool = False) -> bool:
        """Change the metadata of the session `key`, and nothing else; return whether that was done.

        It is not where there is no such session, or the store does not answer.
        """
        if is_own(key):
            return bool(self._files.update_metadata(key, updates, fsync=fsync))
        what = "change the metadata of a session of the store"
        return self._outage.try_to(what, lambda: self._update_metadata(key, updates), False)

    def _update_metadata(self, key: str, updates: dict[str, Any]) -> bool:
        last: SessionStoreError | None = None
        for _ in range(_ATTEMPTS):
            head = self._sessions.head(key)
            if head is None:
                if self._load(key) is None:
                    return False
                continue
            try:
                self._sessions.write_metadata(head, updates)
            except (ConflictError, SessionNotFoundError) as error:
                last = error
            else:
                return True
        assert last is not None
        raise last

    def list_sessions(self) -> list[dict[str, Any]]:
        """Return the entry of each session in nanobot's list, the last used first.

        nanobot lists its sessions when it starts, which a store that is down does not stop: then
        those in files.
        """
        listed = self._outage.try_to("list the sessions of the store", self._list_sessions, None)
        return list(self._files.list_sessions()) if listed is None else listed

    def _list_sessions(self) -> list[dict[str, Any]]:
        shared = self._sessions.heads()
        gone = shared.keys() | self._sessions.taken_files()
        found = [item for item in self._files.list_sessions() if item["key"] not in gone]
        title = find(MODULE, "_metadata_title")
        for head in shared.values():
            shown = self._sessions.shown(head)
            found.append(
                {
                    "key": head.id,
                    "created_at": shown["created_at"],
                    "updated_at": shown["updated_at"],
                    "title": title(shown["metadata"]) if title else "",
                    "preview": self._sessions.preview(head),
                    "path": str(self._files.get_session_path(head.id)),
                }
            )
        return sorted(found, key=lambda item: str(item["updated_at"]), reverse=True)

    # Beyond it -----------------------------------------------------------------------------------

    def take_up(self) -> None:
        """Store what nanobot wrote into files while the store could not be opened."""
        taken = 0
        for path, kept in meanwhile.copies(self._files):
            what = "store a session that was in a file meanwhile"
            with self._lock:
                number = self._outage.try_to(what, partial(self._take_up, kept), None)
                if number is not None:
                    path.unlink(missing_ok=True)
                    taken += number
        if taken:
            log.warning("{} sessions were in files alone and are stored now", taken)

    def _take_up(self, copy: meanwhile.Copy) -> int:
        """Store one session that was in a file meanwhile; return how many were stored: 0 or 1."""
        if copy.deleted_at is not None:
            self._sessions.deleted[copy.key] = copy.deleted_at
            self._sessions.delete_late(copy.key)
        session, stored = self._files.load(copy.key), self._sessions.stored(copy.key)
        if session is None:
            return 0
        if stored is None and copy.key not in self._sessions.taken_files():
            self._load(copy.key)
            return 1
        now = Known.of(stored, self._gateway) if stored else self._sessions.begin(session)
        if stored and copy.cleared_at:
            before = Known.until(stored, copy.cleared_at, self._gateway)
        else:
            messages, record = read_file(copy.text)
            before = Known(now.head, messages, [], record)
        merge(session, before, now)
        self._save(session)
        return 1

    def bring_up(self, session: Any) -> bool:
        """Update a session in nanobot's memory from the store; return whether it still exists.

        One read without events where nothing is new. Where the store does not answer, the session
        stays as it is.
        """
        if not session.policy.persist or is_own(session.key):
            return True
        with self._lock:
            what = "look for news of a session"
            is_there = self._outage.try_to(what, lambda: self._bring_up(session), True)
            if self._outage.is_answering:
                self._store_held()
            return is_there

    def _bring_up(self, session: Any) -> bool:
        if session.key in self._unread:
            self._catch_up(session)
        known, head = known_of(session), self._sessions.head(session.key)
        if head is None:
            return known is None
        if known is not None and head.generation != known.head.generation:
            return False
        if known is None or not known.is_current(head):
            self._sessions.read_again(session)
        return True

    def _catch_up(self, session: Any) -> None:
        """Put what could not be read when `session` began before its present messages."""
        if known_of(session) is None:
            was_stored = self._sessions.head(session.key) is not None
            self._load(session.key)  # brings a file into the store
            at = cleared_at(session)
            if at is not None and (stored := self._sessions.stored(session.key)) is not None:
                # All of a file is from before; it is stored with the time of today.
                note(session, Known.until(stored, at if was_stored else math.inf, self._gateway))
            self._sessions.read_again(session)
        self._unread.discard(session.key)

    def _store(self, session: Any) -> bool:
        """Store what is new in `session`, or hold it; return whether it was stored."""
        if self._outage.try_to("store a session", lambda: self._save(session), False):
            self._outage.release(session.key, is_stored=True)
            return True
        if not self._outage.is_answering:
            self._outage.hold(session, self._end)
        return False

    def _store_held(self) -> None:
        """Store and delete what an outage held up, until the store fails again."""
        for session in self._outage.all_held():
            if not self._store(session):
                break
        for key in list(self._sessions.deleted) if self._outage.is_answering else ():
            delete = partial(self._sessions.delete_late, key)
            self._outage.try_to("delete a session of the store", delete, None)
        self._outage.log_late()

    def _end(self) -> None:
        """Store what is held when the process ends; log what is lost."""
        with self._lock:
            self._store_held()
            self._outage.log_lost()

    def _is_in_file(self, key: str) -> bool:
        return is_own(key) or key not in self._sessions.taken_files()


def is_own(key: str) -> bool:
    return key.startswith(_OWN_PREFIX)
