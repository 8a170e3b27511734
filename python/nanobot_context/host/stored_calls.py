"""Keeps the calls of a session that changed something, in the metadata of its file.

    metadata["calls"]        of each: its id, a line for it, and when it was made; the oldest first
    metadata["calls_state"]  how far the messages were looked through, and how many calls were
                             before those that are kept

nanobot drops messages at the front of a session, and leaves others out of its history: what was
done in them must not be done again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from nanobot_context._core import list_changes
from nanobot_context.host.stored_summary import mark_of, position, said_at, take_out
from nanobot_context.identity import without
from nanobot_context.types import Message

CALLS, STATE = "calls", "calls_state"

# The newest ones; some kilobytes of the session's file.
MAX_CALLS = 100


class Call(NamedTuple):
    """A call that changed something; `made_at` as nanobot stamps messages, or empty."""

    id: str
    line: str
    made_at: str


@dataclass
class Calls:
    """The newest calls, and how many were made before them."""

    newest: list[Call]
    before: int = 0

    def left_out_of(self, history: Sequence[Message]) -> Calls:
        """Return those that `history` does not make."""
        if not self.newest:
            return self
        shown = (id_ for _, id_, _ in list_changes(history))
        hidden = without(reversed(self.newest), shown, lambda call: call.id)
        return Calls(hidden[::-1], self.before)


def gather(session: Any) -> Calls:
    """Update the kept calls of `session` to its last message and return them. Saves nothing."""
    metadata = getattr(session, "metadata", None)
    if not isinstance(metadata, dict):
        return Calls([])
    return read(session.messages, metadata, vars(session))


def read(messages: Sequence[Message], metadata: dict[str, Any], notes: dict[str, Any]) -> Calls:
    """Return the calls of a session, and update its metadata by its messages.

    How far the messages of a session without such calls were looked through is in `notes`, which
    are not saved.
    """
    state = metadata.get(STATE, notes.get(STATE))
    state = state if isinstance(state, dict) else {}
    calls = _read(metadata.get(CALLS), state)
    end = _answered(messages)
    start = 0
    if isinstance(covers := state.get("covers"), int):
        found = position(messages, state, covers)
        if found is None and messages:
            # The talk ends earlier than it did: nanobot copies sessions up to some message.
            last = said_at(messages[-1])
            made = {id_ for _, id_, _ in list_changes(messages)}
            calls.newest = [
                call for call in calls.newest if call.made_at <= last and call.id not in made
            ]
        start = found or 0
    if start >= end:
        return calls
    new = messages[start:end]
    calls.newest += [Call(id_, line, said_at(new[at])) for at, id_, line in list_changes(new)]
    calls.before += max(0, len(calls.newest) - MAX_CALLS)
    calls.newest = calls.newest[-MAX_CALLS:]
    state = {**mark_of(messages[end - 1]), "covers": end, "before": calls.before}
    if calls.newest:
        metadata |= {CALLS: [list(call) for call in calls.newest], STATE: state}
    else:
        notes[STATE] = state
    return calls


def forget(session: Any) -> None:
    """Take the calls out of the metadata of `session`."""
    take_out(session, CALLS, STATE)
    vars(session).pop(STATE, None)


def _read(kept: Any, state: Mapping[str, Any]) -> Calls:
    """Read the kept calls; entries of an unknown shape are ignored."""
    before = state.get("before")
    rows = kept if isinstance(kept, list) else []
    calls = [
        Call(*row)
        for row in rows
        if isinstance(row, list) and len(row) == 3 and all(isinstance(one, str) for one in row)
    ]
    return Calls(calls, before if isinstance(before, int) and before > 0 else 0)


def _answered(messages: Sequence[Message]) -> int:
    """Return how many of `messages` come before calls that wait for a result."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.get("role") == "tool":
            continue
        calls = message.get("tool_calls")
        waits = isinstance(calls, list) and len(messages) - 1 - index < len(calls)
        return index if waits else len(messages)
    return len(messages)
