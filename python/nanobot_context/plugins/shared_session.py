"""Merges one of nanobot's sessions in memory with what the shared store has of it.

A session in memory notes which part of it is stored. With that and what is stored now, a three-way
merge keeps its own changes and those of others. See `session_store`.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import takewhile
from typing import Any, TypeVar

from nanobot_context.host.detect import find
from nanobot_context.identity import without
from nanobot_context.json_text import parsed
from nanobot_context.sessions.nanobot_files import (
    META,
    METADATA,
    PROVIDER_STATE,
    dumps,
    line_of,
    lines_among,
)
from nanobot_context.sessions.records import SessionHead, StoredSession
from nanobot_context.types import Message

MODULE = "nanobot.session.manager"

# Which message the replay begins at, and what is said in place of those before: one belongs to the
# other, and both to the messages.
_BOUNDARY = ("last_archived", "last_consolidated", "_last_summary", "summary", "summary_state")
# What nanobot's metadata says of the turn that it is at. Source: nanobot 0.3.5,
# `session/recovery.py`.
_TURN_KEYS = (
    *("runtime_checkpoint", "pending_user_turn", "pending_user_followups", "webui_recovery"),
)
# Where the metadata of a stored session has them, by the name of the gateway: the last position at
# that time, and JSON text.
_TURNS = "turns"
# Where a session in memory has its `Known`, beside nanobot's own.
_KNOWN = "_nanobot_context_stored"
# And the time at which it was cleared before it could be read.
_CLEARED = "_nanobot_context_cleared"
# Source: nanobot 0.3.5, `_SESSION_LIST_PREVIEW_MAX_RECORDS`.
_PREVIEWED = 200

Item = TypeVar("Item", bound=Hashable)
Record = dict[str, Any]


def _fresh() -> Record:
    """Return the record of a session in which nothing has been said."""
    return {"metadata": {}, "last_archived": 0, "last_consolidated": 0}


@dataclass(slots=True)
class Known:
    """The part of a session in memory that the store has.

    Attributes:
        head: The stored session when it was read or written last.
        messages: As they are stored. Copies, by which changes are seen without writing all of them.
        seqs: The position of each message.
        record: Its metadata line, and the state that a provider resumes.
    """

    head: SessionHead
    messages: list[Message] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)
    record: Record = field(default_factory=_fresh)

    @classmethod
    def of(cls, stored: StoredSession, gateway: str) -> Known:
        """Return the `Known` of a session that `gateway` has just read."""
        lines = list(_lines(stored))
        messages, seqs = [message for _, message in lines], [seq for seq, _ in lines]
        return cls(stored.head, messages, seqs, stored_record(stored, gateway))

    @classmethod
    def until(cls, stored: StoredSession, at: float, gateway: str) -> Known:
        """Return the stored part of a session as it was when it was cleared, `at` that time.

        Merged as the known part, this is what clearing removed; what others wrote later, and the
        metadata that clearing keeps, come from the store.
        """
        events = list(takewhile(lambda event: (event.time or 0.0) <= at, stored.events))
        known = cls.of(replace(stored, events=events), gateway)
        metadata = metadata_of(known.record).items()
        known.record["metadata"] = {name: one for name, one in metadata if name in _BOUNDARY}
        return known

    def is_current(self, head: SessionHead) -> bool:
        """Return whether nobody has written since, given the present `head`."""
        mine = (self.head.generation, self.head.seq, self.head.updated, self.head.meta)
        return mine == (head.generation, head.seq, head.updated, head.meta)


def merged(
    base: Sequence[Item], ours: Sequence[Item], theirs: Sequence[Item]
) -> tuple[list[int], bool]:
    """Merge two lists that began as `base`; return the order, and whether `theirs` rewrote `base`.

    What either has added is in it, once, and what `theirs` has added comes first. Where one of them
    has changed or removed items of `base`, that holds; where both have, `theirs` holds.

    Returns:
        The items as indices: 0 and more into `theirs`, below into `ours`, -1 being its first.
    """
    is_rewritten = list(theirs[: len(base)]) != list(base)
    own, foreign = range(len(ours)), range(len(theirs))
    if is_rewritten:
        new = without(without(own, base, ours.__getitem__), theirs, ours.__getitem__)
        return [*foreign, *(-1 - at for at in new)], True
    if list(ours[: len(base)]) != list(base):
        behind = without(foreign[len(base) :], ours, theirs.__getitem__)
        return [*(-1 - at for at in own), *behind], False
    new = without(own[len(base) :], theirs[len(base) :], ours.__getitem__)
    return [*foreign, *(-1 - at for at in new)], False


def merge(session: Any, known: Known | None, now: Known) -> None:
    """Merge what is stored `now` into `session`, of which `known` was stored before."""
    base = known or Known(now.head)
    sides = [list(map(dumps, side)) for side in (base.messages, session.messages, now.messages)]
    order, is_rewritten = merged(*sides)
    own, foreign = list(session.messages), copy.deepcopy(now.messages)
    # In place: a turn that is going on has this list.
    session.messages[:] = [foreign[at] if at >= 0 else own[-1 - at] for at in order]
    record = _merged_record(base.record, record_of(session), now.record, is_rewritten)
    # The state that a provider resumes belongs to one list of messages alone.
    if order == list(range(len(foreign))):
        record["provider_state"] = now.record.get("provider_state")
    elif order != [-1 - at for at in range(len(own))]:
        record["provider_state"] = None
    _restore(session, record)
    note(session, replace(now, record=copy.deepcopy(now.record)))


def _merged_record(base: Record, ours: Record, theirs: Record, is_rewritten: bool) -> Record:
    """Merge two records that began as `base`; where both changed, ours wins."""

    def chosen(name: str, base: Record, ours: Record, theirs: Record) -> Record:
        is_theirs = ours.get(name) == base.get(name) or (is_rewritten and name in _BOUNDARY)
        side = theirs if is_theirs else ours
        return {name: side[name]} if name in side else {}

    record: Record = {}
    for name in dict.fromkeys((*ours, *theirs)):
        record |= chosen(name, base, ours, theirs)
    sides = metadata_of(base), metadata_of(ours), metadata_of(theirs)
    record["metadata"] = {}
    for name in dict.fromkeys((*sides[2], *sides[1])):
        record["metadata"] |= chosen(name, *sides)
    for name, newest in (("created_at", min), ("updated_at", max)):
        record[name] = newest(str(side[name]) for side in (ours, theirs) if side.get(name))
    return record


def loaded(key: str, stored: StoredSession, gateway: str) -> Any:
    """Return nanobot's session for a stored one, with the turn of `gateway`."""
    session = find(MODULE, "Session")(key=key)
    known = Known.of(stored, gateway)
    session.messages = copy.deepcopy(known.messages)
    note(session, replace(known, record=copy.deepcopy(known.record)))
    _restore(session, known.record)
    if migrate(session.messages, session.metadata):
        session.provider_state = None
    if _has_ended(stored, gateway):
        for name in ("runtime_checkpoint", "pending_user_turn"):
            session.metadata.pop(name, None)
    return session


def _has_ended(stored: StoredSession, gateway: str) -> bool:
    """Return whether the turn noted for `gateway` has been stored since.

    The messages of a turn are stored first, then that it is over: a process may end in between.
    """
    after, _ = stored.meta.get(META, {}).get(_TURNS, {}).get(gateway, (stored.seq, ""))
    return any(event.author == gateway for event in stored.events if (event.seq or 0) > after)


def record_of(session: Any) -> Record:
    """Return the metadata line that nanobot 0.3.5 writes of `session`, and its provider's state."""
    state = session.provider_state
    return {
        "key": session.key,
        "created_at": session.created_at.isoformat(),
        "updated_at": session.updated_at.isoformat(),
        "metadata": session.metadata,
        "last_archived": session.last_archived,
        "last_consolidated": session.last_consolidated,
        "provider_state": state.to_private_record() if state is not None else None,
    }


def _restore(session: Any, record: Record) -> None:
    """Set the fields of `session`, whose messages are there, from a record."""
    for name in ("created_at", "updated_at"):
        with suppress(TypeError, ValueError):
            setattr(session, name, datetime.fromisoformat(record.get(name) or ""))
    metadata = dict(metadata_of(record))
    session.metadata.clear()
    session.metadata.update(metadata)
    offsets = (record.get(name) for name in ("last_archived", "last_consolidated"))
    known = (at for at in offsets if isinstance(at, int) and not isinstance(at, bool))
    offset = next(known, 0)
    session.last_consolidated = offset if 0 <= offset <= len(session.messages) else 0
    state = find("nanobot.providers.base", "ProviderConversationState")
    session.provider_state = state.from_private_record(record.get("provider_state"))


def stored_record(head: SessionHead, gateway: str) -> Record:
    """Return the record of a stored session, with the turn that `gateway` is at, if any."""
    record: Record = {}
    kept = head.meta.get(META, {})
    for _, line in kept.get("lines", []):
        _add_to(record, json.loads(line) if line.strip() else {})
    _, turn = kept.get(_TURNS, {}).get(gateway, (0, "{}"))
    return {**record, "metadata": {**metadata_of(record), **json.loads(turn)}}


def meta_with(head: SessionHead, record: Record, gateway: str) -> dict[str, Any]:
    """Return the metadata of a stored session with `record` in it, in lines as nanobot's."""
    metadata = dict(metadata_of(record))
    turn = {name: metadata.pop(name) for name in _TURN_KEYS if name in metadata}
    line = {name: value for name, value in record.items() if name != "provider_state"}
    lines = [[0, dumps({"_type": METADATA, **line, "metadata": metadata})]]
    if (state := record.get("provider_state")) is not None:
        lines.append([1, dumps({"_type": PROVIDER_STATE, "state": state})])
    kept = head.meta.get(META, {})
    turns = {name: one for name, one in kept.get(_TURNS, {}).items() if name != gateway}
    if turn:
        turns[gateway] = [head.seq, dumps(turn)]
    return {**head.meta, META: {**kept, "lines": lines, "end": "\n", _TURNS: turns}}


def metadata_of(record: Record) -> dict[str, Any]:
    metadata = record.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def messages_of(stored: StoredSession) -> list[Message]:
    """Return the messages of a stored session: its lines that are objects."""
    return [message for _, message in _lines(stored)]


def _lines(stored: StoredSession) -> Iterator[tuple[int, Message]]:
    for event in lines_among(stored.events):
        message = event.payload if event.is_message else parsed(line_of(event))
        if isinstance(message, dict):
            yield event.seq or 0, message


def read_file(text: str) -> tuple[list[Message], Record]:
    """Return messages and record of a session file of nanobot's, without lines that are damaged."""
    messages, record = [], _fresh()
    for line in text.splitlines():
        value = parsed(line)
        if isinstance(value, dict) and not _add_to(record, value):
            messages.append(value)
    migrate(messages, metadata_of(record))
    return messages, record


def _add_to(record: Record, value: Record) -> bool:
    """Add a line that is not a message to the session's record; return whether that was done."""
    kind = value.get("_type")
    if kind == METADATA:
        record |= {name: item for name, item in value.items() if name != "_type"}
    elif kind == PROVIDER_STATE:
        record["provider_state"] = value.get("state")
    return kind in (METADATA, PROVIDER_STATE)


def migrate(messages: list[Message], metadata: dict[str, Any]) -> bool:
    """Migrate messages of earlier releases as nanobot does; return whether any changed."""
    migrate = find(MODULE, "_migrate_legacy_exec_session_records")
    return bool(migrate(messages, metadata)) if migrate else False


def preview_of(messages: list[Message]) -> str:
    """Return the line that nanobot shows of a session. Source: nanobot 0.3.5, `list_sessions`."""
    text_of = find(MODULE, "_message_preview_text")
    of_assistant = ""
    for message in messages[:_PREVIEWED] if text_of else ():
        text = text_of(message)
        if text and message.get("role") == "user":
            return str(text)
        if message.get("role") == "assistant":
            of_assistant = of_assistant or str(text)
    return of_assistant


def known_of(session: Any) -> Known | None:
    """Return the part of a session in memory that the store has; `None` before it has any."""
    known: Known | None = vars(session).get(_KNOWN)
    return known


def note(session: Any, known: Known) -> None:
    """Note which part of `session` the store has."""
    vars(session)[_KNOWN] = known


def forget(session: Any) -> None:
    """Note that nothing of `session` is in the store."""
    vars(session).pop(_KNOWN, None)


def note_cleared(session: Any) -> None:
    """Note that `session` was cleared, including what could not be read yet."""
    if known_of(session) is None:
        vars(session)[_CLEARED] = time.time()


def cleared_at(session: Any) -> float | None:
    """Return when `session` was cleared, in seconds since 1970, if that was before it was read."""
    at: float | None = vars(session).get(_CLEARED)
    return at
