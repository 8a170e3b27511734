"""Locates the messages of a recorded request in the session that it was made of.

A record has no texts. It knows one message again (its `anchor`), the newest ones by their keys, and
the roles of all; nanobot adds messages to a request that it does not save, and leaves out old ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nanobot_context.guard.record import RequestRecord
from nanobot_context.host.message_keys import known_by


@dataclass(frozen=True, slots=True)
class Places:
    """Positions in a request, from 1, and the index of the same message in the session."""

    of: dict[int, int]

    @property
    def first(self) -> int:
        """The index of the oldest message of the request."""
        return min(self.of.values())

    @property
    def stop(self) -> int:
        """The index behind its newest one."""
        return max(self.of.values()) + 1

    def runs(self, ranges: str) -> list[tuple[int, int]]:
        """Return runs of positions, `2-40,44`, as first and last index in the session."""
        found = []
        for run in ranges.split(","):
            first, _, last = run.partition("-")
            if not (first.isdigit() and (last or first).isdigit()):
                continue  # cut off
            held = [
                self.of[at] for at in range(int(first), int(last or first) + 1) if at in self.of
            ]
            if held:
                found.append((held[0], held[-1]))
        return found


# So many messages in a row may be in the session alone, or in the request alone, between others.
_GAPS = range(1, 9)


def places_of(
    records: Sequence[RequestRecord], messages: Sequence[Mapping[str, Any]]
) -> list[Places | None]:
    """Return for each record, oldest first, where its messages are; `None` where they are not.

    After `/new` an answer or a whole round may be the same as before it: a request is of this
    session only where nothing that it had contradicts that.
    """
    session = _Session.of(messages)
    found: list[Places | None] = []
    newest = 0
    for record in records:
        best: Places | None = None
        for one in () if record.is_subagent else _possible(record, session):
            # What was said twice is where the requests before were, or later; and where more of
            # the rest is there, too.
            if best is None or (one.stop > newest, len(one.of)) > (
                best.stop > newest,
                len(best.of),
            ):
                best = one
        if best is not None:
            newest = max(newest, best.stop - 1)
        found.append(best)
    return found


@dataclass(frozen=True, slots=True)
class _Session:
    """The messages of a session: their roles, their keys, and where each key is."""

    roles: str
    keys: list[str]
    known: dict[str, list[int]]

    @classmethod
    def of(cls, messages: Sequence[Mapping[str, Any]]) -> _Session:
        keys = list(map(known_by, messages))
        known: dict[str, list[int]] = {}
        for index, key in enumerate(keys):
            if key:
                known.setdefault(key, []).append(index)
        return cls("".join(str(message.get("role"))[:1] for message in messages), keys, known)


def _possible(record: RequestRecord, session: _Session) -> Iterator[Places]:
    """Yield every place that a request may have in a session."""
    anchor, key = record.anchor, record.anchor_key
    if key not in session.known:
        # Also where nothing but the user has said something.
        keyed = _newest(record, record.keys).items()
        anchor, key = max((one for one in keyed if one[1] in session.known), default=(0, ""))
    for index in session.known.get(key, ()):
        of = _aligned(record, anchor, session, index)
        if of is not None and _is_enough(record, of):
            yield Places(of)


def _newest(record: RequestRecord, given: Sequence[str]) -> dict[int, str]:
    """Return what is `given` of the newest messages of a request, by their positions."""
    return dict(enumerate(given, record.messages - len(given) + 1))


def _is_enough(record: RequestRecord, of: Mapping[int, int]) -> bool:
    """Return whether three of four messages with a key are in the session.

    One alone is enough where the session begins with it.
    """
    keyed = [at for at, key in _newest(record, record.keys).items() if key]
    same = sum(at in of for at in keyed)
    return same * 4 >= len(keyed) * 3 and (same != 1 or min(of.values()) == 0)


def _aligned(
    record: RequestRecord, anchor: int, session: _Session, index: int
) -> dict[int, int] | None:
    """Return places where the message at `anchor` of a request is that at `index`.

    `None` where both have something else at the same place before it.
    """
    keys, roles = _newest(record, record.keys), _newest(record, record.roles)
    of = {anchor: index}

    def same(at: int, place: int) -> bool:
        if at not in keys or not 0 <= place < len(session.roles):
            return False
        return (roles.get(at), keys[at]) == (session.roles[place], session.keys[place])

    def extend(step: int) -> bool:
        """Align the messages with keys on one side of the anchor, until both sides differ."""
        at, place = anchor + step, index + step
        while at in keys and 0 <= place < len(session.roles):
            if same(at, place):
                of[at] = place
                place += step
            elif keys[at] and not any(same(at + gap * step, place) for gap in _GAPS):
                # The request alone has nothing more here; the session alone may have.
                gap = next((gap for gap in _GAPS if same(at, place + gap * step)), 0)
                if not gap:
                    return False
                place += gap * step
                continue
            at += step
        return True

    if not extend(-1):
        return None
    extend(1)  # the session does not get all that stands at the end of a request
    # Older messages have roles alone; those that only the request has are skipped.
    at, place = min([anchor, *keys]) - 1, min(of.values()) - 1
    while at in roles and place >= 0:
        if roles[at] == session.roles[place]:
            of[at] = place
            place -= 1
        at -= 1
    return of
