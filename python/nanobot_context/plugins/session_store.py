"""nanobot's sessions in a store that several gateways share: the setting `sessionStore`.

    load()   the stored lines -> nanobot's session, which notes what of it is stored
    save()   lines behind those -> appended; lines changed -> their tail replaced
             another gateway was first -> both writers' lines, in the session too, then once more
    cached   what nanobot keeps in memory is brought up to date when the store has moved on
    no store   where it cannot be opened, sessions are nanobot's files: see `meanwhile`
    no answer  nanobot goes on with what is in memory, and with an empty session where nothing is;
             sessions that could not be stored are held here, and once the store answers, what was
             said meanwhile is put behind what is stored; what was deleted is deleted then

A session is stored as `sessions.nanobot_files` has it: a message is an event, and the metadata
line, and what a provider goes on from, are the session's metadata. So is the turn that a gateway is
at, under the gateway's name: to another one it would look like a turn that was broken off. nanobot
0.3.5 is the first release whose store can be another one.
"""

from __future__ import annotations

import atexit
import copy
import hashlib
import math
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from nanobot_context.errors import (
    ConflictError,
    SessionExistsError,
    SessionGoneError,
    SessionNotFoundError,
    SessionStoreError,
    StoreAccessError,
    StoreDataError,
)
from nanobot_context.forks import ThreadLock
from nanobot_context.guard import fuse, log
from nanobot_context.guard.counters import Counters
from nanobot_context.host.detect import find
from nanobot_context.plugins import meanwhile
from nanobot_context.plugins.shared_session import (
    MODULE,
    Known,
    cleared_at,
    forget,
    known_of,
    loaded,
    merge,
    messages_of,
    meta_with,
    metadata_of,
    migrate,
    note,
    preview_of,
    read_file,
    record_of,
    stored_record,
)
from nanobot_context.sessions.nanobot_files import APP, META, USER, common_length, dumps, event_of
from nanobot_context.sessions.records import SessionEvent, SessionHead, StoredSession
from nanobot_context.sessions.service import SessionService

# nanobot removes the oldest of these by their files, and they are of one gateway's workspace.
# Source: nanobot 0.3.5, `agent/memory.py`, `prune_dream_sessions`.
_OWN_PREFIX = "dream:"
# Each time one fails, another gateway has written.
_ATTEMPTS = 100
_OVERTAKEN = (ConflictError, SessionExistsError, SessionGoneError, SessionNotFoundError)
# What the user's state has for each session whose file was stored: it is not to come back.
_FILE = "file:"

T = TypeVar("T")


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
        self._service = service
        self._files = files
        self._gateway = gateway
        self._lease = lease
        self._counters = counters
        self._lock = ThreadLock()
        self._previews: dict[str, tuple[Any, str]] = {}
        self._is_answering = True
        # Sessions that could not be read: nanobot may have begun them anew.
        self._unread: set[str] = set()
        # Sessions that could not be stored, and how many messages of each are in memory alone.
        self._held: dict[str, tuple[Any, int]] = {}
        # When sessions were deleted that could not be deleted from the store yet.
        self._deleted: dict[str, float] = {}
        # How many have been stored since an outage, of how many sessions: for the log.
        self._late = 0, 0

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
            if key in self._held:  # nanobot has dropped it: by `/new`, or as one of too many
                session, _ = self._held[key]
                self.bring_up(session)
                if key in self._held:
                    return copy.deepcopy(session)
            # Until it has been read.
            self._unread.add(key)
            return self._goes_on("load a session from the store", lambda: self._load(key), None)

    def _load(self, key: str) -> Any:
        with self._lock:
            stored = self._stored(key)
            if stored is not None:
                session = loaded(key, stored, self._gateway)
                self._unread.discard(key)
                return session
            session = self._files.load(key) if key not in self._taken_files() else None
            self._unread.discard(key)
            if session is not None:
                self._save(session)
                self._service.update_user_state(APP, USER, {_FILE + key: True})
            return session

    def save(self, session: Any, *, fsync: bool = False) -> None:
        """Store what is new of `session`, and bring it up to date with what others have written.

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
            self._delete_late(session.key)
            if session.key in self._unread:
                self._catch_up(session)
            for _ in range(_ATTEMPTS):
                try:
                    known = known_of(session) or self._begin(session)
                    self._write_lines(session, known)
                    self._write_record(session, known)
                    return True
                except _OVERTAKEN as error:
                    last = error
                    self._read_again(session)
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
            return self._goes_on(what, lambda: self._delete(key), False) or key in self._deleted

    def _delete(self, key: str) -> bool:
        at = time.time()
        try:
            was_stored = self._service.delete(APP, USER, key)
        except StoreAccessError:
            raise  # no waiting helps
        except SessionStoreError:
            self._deleted[key] = at
            self._forget(key)
            meanwhile.note_deleted(self._files, key, at)
            raise
        had_file = self._forget(key)
        self._has_deleted(key)
        return had_file or was_stored

    def _forget(self, key: str) -> bool:
        """Drop a session from memory, and its file; return whether there was a file."""
        self._release(key, is_stored=False)
        self._unread.discard(key)
        return bool(self._files.delete(key))

    def _delete_late(self, key: str) -> None:
        """Delete what of a session was there when it was deleted without the store."""
        if key in self._deleted:
            head = self._service.get(APP, USER, key, last=0, user_first="off")
            if self._is_deleted(head):
                self._service.delete(APP, USER, key)
            self._has_deleted(key)

    def _has_deleted(self, key: str) -> None:
        if self._deleted.pop(key, None) is not None:
            meanwhile.forget_deleted(self._files, key)

    def _is_deleted(self, head: SessionHead | None) -> bool:
        """Return whether a session is in the store only because that did not answer."""
        return head is not None and head.created <= self._deleted.get(head.id, -math.inf)

    def read(self, key: str) -> dict[str, Any] | None:
        """Return all of the session `key` as nanobot shows it, or `None`."""
        return self._goes_on("read a session of the store", lambda: self._read(key), None)

    def _read(self, key: str) -> dict[str, Any] | None:
        stored = None if is_own(key) else self._stored(key)
        if stored is None:
            return self._files.read(key) if self._is_in_file(key) else None
        shown, messages = self._record_of(stored), messages_of(stored)
        migrate(messages, shown["metadata"])
        return {**shown, "messages": messages}

    def read_metadata(self, key: str) -> dict[str, Any] | None:
        """Return what is known of the session `key`, without its messages, or `None`."""
        return self._goes_on("read a session of the store", lambda: self._read_metadata(key), None)

    def _read_metadata(self, key: str) -> dict[str, Any] | None:
        head = None if is_own(key) else self._head(key)
        if head is None:
            return self._files.read_metadata(key) if self._is_in_file(key) else None
        return self._record_of(head)

    def update_metadata(self, key: str, updates: dict[str, Any], *, fsync: bool = False) -> bool:
        """Change the metadata of the session `key`, and nothing else; return whether that was done.

        It is not where there is no such session, or the store does not answer.
        """
        if is_own(key):
            return bool(self._files.update_metadata(key, updates, fsync=fsync))
        what = "change the metadata of a session of the store"
        return self._goes_on(what, lambda: self._update_metadata(key, updates), False)

    def _update_metadata(self, key: str, updates: dict[str, Any]) -> bool:
        last: SessionStoreError | None = None
        for _ in range(_ATTEMPTS):
            head = self._head(key)
            if head is None:
                if self._load(key) is None:
                    return False
                continue
            record = stored_record(head, self._gateway)
            record["metadata"] = {**metadata_of(record), **copy.deepcopy(updates)}
            try:
                self._service.set_meta(head, meta_with(head, record, self._gateway))
            except (ConflictError, SessionNotFoundError) as error:
                last = error
            else:
                return True
        assert last is not None
        raise last

    def list_sessions(self) -> list[dict[str, Any]]:
        """Return what nanobot lists of each session, the one that was used last first.

        nanobot lists its sessions when it starts, which a store that is down does not stop: then
        those in files.
        """
        listed = self._goes_on("list the sessions of the store", self._list_sessions, None)
        return list(self._files.list_sessions()) if listed is None else listed

    def _list_sessions(self) -> list[dict[str, Any]]:
        heads = self._service.list_sessions(APP, USER)
        shared = {head.id: head for head in heads if not self._is_deleted(head)}
        gone = shared.keys() | self._taken_files()
        found = [item for item in self._files.list_sessions() if item["key"] not in gone]
        title = find(MODULE, "_metadata_title")
        for head in shared.values():
            shown = self._record_of(head)
            found.append(
                {
                    "key": head.id,
                    "created_at": shown["created_at"],
                    "updated_at": shown["updated_at"],
                    "title": title(shown["metadata"]) if title else "",
                    "preview": self._preview(head),
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
                number = self._goes_on(what, partial(self._take_up, kept), None)
                if number is not None:
                    path.unlink(missing_ok=True)
                    taken += number
        if taken:
            log.warning("{} sessions were in files alone and are stored now", taken)

    def _take_up(self, copy: meanwhile.Copy) -> int:
        """Have the store catch up with one session; return how many were stored."""
        if copy.deleted_at is not None:
            self._deleted[copy.key] = copy.deleted_at
            self._delete_late(copy.key)
        session, stored = self._files.load(copy.key), self._stored(copy.key)
        if session is None:
            return 0
        if stored is None and copy.key not in self._taken_files():
            self._load(copy.key)
            return 1
        now = Known.of(stored, self._gateway) if stored else self._begin(session)
        if stored and copy.cleared_at:
            before = Known.until(stored, copy.cleared_at, self._gateway)
        else:
            messages, record = read_file(copy.text)
            before = Known(now.head, messages, [], record)
        merge(session, before, now)
        self._save(session)
        return 1

    def bring_up(self, session: Any) -> bool:
        """Bring a session that nanobot has in memory up to date; return whether it still exists.

        One read without events where nothing is new. Where the store does not answer, the session
        stays as it is.
        """
        if not session.policy.persist or is_own(session.key):
            return True
        with self._lock:
            what = "look for news of a session"
            is_there = self._goes_on(what, lambda: self._bring_up(session), True)
            if self._is_answering:
                self._store_held()
            return is_there

    def _bring_up(self, session: Any) -> bool:
        if session.key in self._unread:
            self._catch_up(session)
        known, head = known_of(session), self._head(session.key)
        if head is None:
            return known is None
        if known is not None and head.generation != known.head.generation:
            return False
        if known is None or not known.is_current(head):
            self._read_again(session)
        return True

    def _catch_up(self, session: Any) -> None:
        """Put what could not be read when `session` was begun before what it has by now."""
        if known_of(session) is None:
            was_stored = self._head(session.key) is not None
            self._load(session.key)  # brings a file into the store
            at = cleared_at(session)
            if at is not None and (stored := self._stored(session.key)) is not None:
                # All of a file is from before; it is stored with the time of today.
                note(session, Known.until(stored, at if was_stored else math.inf, self._gateway))
            self._read_again(session)
        self._unread.discard(session.key)

    def _store(self, session: Any) -> bool:
        """Store what is new of `session`, or hold it; return whether it was stored."""
        if self._goes_on("store a session", lambda: self._save(session), False):
            self._release(session.key, is_stored=True)
            return True
        if not self._is_answering:
            self._hold(session)
        return False

    def _hold(self, session: Any) -> None:
        """Keep a session until it is stored, and count what of it is in memory alone."""
        known = known_of(session)
        stored = common_length(known.messages, session.messages) if known else 0
        _, before = self._held.get(session.key, (None, 0))
        count = max(len(session.messages) - stored, before)
        if not self._held:
            atexit.register(self._end)
        self._held[session.key] = session, count
        self._counters.add(messages_held=count - before)

    def _release(self, key: str, *, is_stored: bool) -> None:
        if key not in self._held:
            return
        _, count = self._held.pop(key)
        if is_stored:
            messages, sessions = self._late
            self._late = messages + count, sessions + 1
            self._counters.add(messages_stored_late=count)
        if not self._held:
            atexit.unregister(self._end)

    def _store_held(self) -> None:
        """Do what an outage has left undone, as far as the store takes it."""
        for session, _ in list(self._held.values()):
            if not self._store(session):
                break
        for key in list(self._deleted) if self._is_answering else ():
            self._goes_on("delete a session of the store", partial(self._delete_late, key), None)
        messages, sessions = self._late
        if sessions:
            self._late = 0, 0
            log.warning(
                "{} messages of {} sessions were in memory alone and are stored now",
                *(messages, sessions),
            )

    def _end(self) -> None:
        """Store at the end of the process what is held, or say what is lost."""
        with self._lock:
            self._store_held()
            if self._held:
                lost = sum(count for _, count in self._held.values())
                log.error(
                    "{} messages of {} sessions are lost: nanobot ends and the session store does "
                    "not take them",
                    *(lost, len(self._held)),
                )

    def _goes_on(self, what: str, run: Callable[[], T], otherwise: T) -> T:
        """Return what `run` returns, or `otherwise` where the store does not do `what`."""
        try:
            found = run()
        except SessionStoreError as error:
            fuse.counted(what, error)
            if self._is_answering:
                self._is_answering = False
                log.warning(
                    "could not {}: {}\nnanobot goes on; what is said meanwhile is in its memory "
                    "alone until the store answers",
                    *(what, error),
                )
            return otherwise
        except fuse.NOT_OURS:
            raise
        except BaseException as error:
            fuse.blown(what, error)
            return otherwise
        if not self._is_answering:
            self._is_answering = True
            log.warning("the session store answers again")
        return found

    def _begin(self, session: Any) -> Known:
        """Create the session in the store.

        Raises:
            SessionExistsError: Another gateway was first.
        """
        known = Known(self._service.create(APP, USER, session.key).head)
        note(session, known)
        return known

    def _read_again(self, session: Any) -> None:
        """Make `session` what is stored by now, and what of it is not stored yet."""
        stored = self._stored(session.key)
        known = known_of(session)
        if stored is not None:
            merge(session, known, Known.of(stored, self._gateway))
        elif known is not None:
            # Deleted elsewhere: that stays deleted, and what is new begins a new session.
            merge(session, known, Known(replace(known.head, meta={})))
            forget(session)

    def _write_lines(self, session: Any, known: Known) -> None:
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
        # Its metadata stays what was read: if that is another one by now, writing it will tell.
        known.head = replace(known.head, seq=start.seq, updated=start.updated)
        known.messages[common:] = new
        known.seqs[common:] = [_position(event) for event in tail]

    def _write_record(self, session: Any, known: Known) -> None:
        record = record_of(session)
        meta = meta_with(known.head, record, self._gateway)
        meta[META]["preview"] = preview_of(session.messages)
        if meta != known.head.meta:
            self._service.set_meta(known.head, meta)
            known.record = copy.deepcopy(record)

    def _stored(self, key: str) -> StoredSession | None:
        stored = self._service.get(APP, USER, key, user_first="off")
        return None if self._is_deleted(stored) else stored

    def _head(self, key: str) -> SessionHead | None:
        head = self._service.get(APP, USER, key, last=0, user_first="off")
        return None if self._is_deleted(head) else head

    def _taken_files(self) -> set[str]:
        """Return the keys of sessions whose files have been stored, some of them deleted since."""
        names = self._service.user_state(APP, USER)
        return {name.removeprefix(_FILE) for name in names if name.startswith(_FILE)}

    def _is_in_file(self, key: str) -> bool:
        return is_own(key) or key not in self._taken_files()

    def _record_of(self, head: SessionHead) -> dict[str, Any]:
        """Return what nanobot shows of a session beside its messages."""
        record = stored_record(head, self._gateway)
        stamps = {"created_at": head.created, "updated_at": head.updated}
        for name, seconds in stamps.items():
            record[name] = record.get(name) or datetime.fromtimestamp(seconds).isoformat()
        return {"key": head.id, **{name: record[name] for name in (*stamps, "metadata")}}

    def _preview(self, head: SessionHead) -> str:
        """Return how a session begins; of one that nanobot has not saved yet, by reading it."""
        preview = head.meta.get(META, {}).get("preview")
        if preview is not None:
            return str(preview)
        version = (head.generation, head.seq, head.updated)
        found = self._previews.get(head.id)
        if found is None or found[0] != version:
            stored = self._stored(head.id)
            found = version, preview_of(messages_of(stored)) if stored else ""
            self._previews[head.id] = found
        return found[1]


def is_own(key: str) -> bool:
    return key.startswith(_OWN_PREFIX)


def _event_id(session: SessionHead, at: int, line: str) -> str:
    """Return the id of a line that is written when the session has come so far."""
    said = f"{session.generation}\0{session.seq}\0{at}\0{line}".encode()
    return hashlib.sha256(said).hexdigest()[:32]


def _position(event: SessionEvent) -> int:
    if event.seq is None:
        raise StoreDataError(f"the store did not take the message {event.raw:.60}")
    return event.seq
