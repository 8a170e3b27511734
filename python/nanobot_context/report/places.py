"""Where the messages of a recorded request are in the session that it was made of.

A record has no texts. It knows one message again (its `anchor`), the newest ones by their keys, and
the roles of all; nanobot adds messages to a request that it does not save, and leaves out old ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nanobot_context.message_texts import known_by, message_key

if TYPE_CHECKING:
    from nanobot_context.guard.record import RequestRecord


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


def places_of(
    records: Sequence[RequestRecord], messages: Sequence[Mapping[str, Any]]
) -> list[Places | None]:
    """Return for each record, oldest first, where its messages are; `None` where they are not."""
    roles = "".join(str(message.get("role"))[:1] for message in messages)
    keys = list(map(known_by, messages))
    known: dict[str, list[int]] = {}
    for index, message in enumerate(messages):
        if key := message_key(message):
            known.setdefault(key, []).append(index)
    found: list[Places | None] = []
    newest = 0
    for record in records:
        anchor, candidates = record.anchor, known.get(record.anchor_key, [])
        if not record.anchor_key and not newest and "u" in roles:
            # The first request of a session has nothing but what the user says.
            anchor, candidates = record.messages, [roles.index("u")]
        best: Places | None = None
        if not record.is_subagent:
            for index in candidates:
                if index >= newest:
                    one = Places(_aligned(record, anchor, roles, index))
                    if not _is_known(record, one, keys):
                        continue
                    # What was said twice is where more of the rest is there, too.
                    if best is None or len(one.of) > len(best.of):
                        best, newest_now = one, index
        if best is not None:
            newest = newest_now
        found.append(best)
    return found


def _is_known(record: RequestRecord, places: Places, keys: Sequence[str]) -> bool:
    """Return whether the newest messages, three of four, are those at their places.

    After `/new`, or where another gateway went on with the session, the same was said elsewhere.
    """
    first = record.messages - len(record.keys) + 1
    same = [
        key == keys[places.of[at]]
        for at, key in enumerate(record.keys, first)
        if key and at in places.of
    ]
    return sum(same) * 4 >= len(same) * 3


def _aligned(record: RequestRecord, anchor: int, roles: str, index: int) -> dict[int, int]:
    """Return places where the message at `anchor` of a request is that at `index`."""
    of = {anchor: index}
    skipped = record.messages - len(record.roles)
    for step in (-1, 1):
        at, place = anchor + step, index + step
        while 0 <= at - 1 - skipped < len(record.roles) and 0 <= place < len(roles):
            # What only the request has is skipped.
            if record.roles[at - 1 - skipped] == roles[place]:
                of[at] = place
                place += step
            at += step
    return of
