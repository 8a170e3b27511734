"""Keeps a session's summary in the metadata of nanobot's session file.

    metadata["summary"]        the text, nothing else
    metadata["summary_state"]  what it covers, its version, how it was made; and "last", by which
                               the last message that it covers is known again

nanobot itself reads and writes both like any other metadata. It drops messages at the front of a
session, puts hidden ones in between, and copies metadata into sessions that end earlier: so
`covers` alone says little. The summary counts from where the message of "last" is now; where that
is gone, there is none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from nanobot_context.errors import InvalidArgumentError
from nanobot_context.summary import Summary
from nanobot_context.types import Message

TEXT, STATE, LAST = "summary", "summary_state", "last"

Mark = dict[str, str | None]
"""What a message is known by: its time stamp, and a digest of what it says."""


def mark_of(message: Mapping[str, Any]) -> Mark:
    """Return a mark that identifies `message`, whatever nanobot notes in it later."""
    return {"timestamp": _timestamp(message), "digest": _digest(message)}


def said_at(message: Mapping[str, Any]) -> str:
    """Return when `message` was said, as nanobot stamps it, or nothing."""
    return _timestamp(message) or ""


def position(messages: Sequence[Message], mark: Mapping[str, Any], covers: int) -> int | None:
    """Return the position, from 1, of the message with `mark`; `None` if it is gone.

    Looks at `covers` first, which costs one digest; else for the first match.
    """
    if 0 < covers <= len(messages) and _is(messages[covers - 1], mark):
        return covers
    found = (number for number, message in enumerate(messages, 1) if _is(message, mark))
    return next(found, None)


def read(session: Any) -> Summary | None:
    """Return the summary of `session`, its `covers` as the messages stand now; `None` without one.

    A summary whose last message left the session does not count.
    """
    metadata = session.metadata
    if not isinstance(metadata, dict):
        return None
    text, state = metadata.get(TEXT), metadata.get(STATE)
    if not (isinstance(text, str) and text and isinstance(state, dict)):
        return None
    mark = state.get(LAST)
    known = {name: value for name, value in state.items() if name != LAST}
    try:
        summary = Summary.from_dict({**known, "text": text})
    except InvalidArgumentError:
        return None
    covers = position(session.messages, mark, summary.covers) if isinstance(mark, dict) else None
    return None if covers is None else replace(summary, covers=covers)


def version_of(session: Any) -> int:
    """Return the version of the summary that `session` holds, also where it is void; 0 without."""
    state = session.metadata.get(STATE) if isinstance(session.metadata, dict) else None
    version = state.get("version") if isinstance(state, dict) else None
    return version if isinstance(version, int) else 0


def write(session: Any, summary: Summary) -> None:
    """Put `summary` into the metadata of `session`, in one go. Saves nothing."""
    state = summary.to_dict()
    del state["text"]
    state[LAST] = mark_of(session.messages[summary.covers - 1])
    session.metadata.update({TEXT: summary.text, STATE: state})


def forget(session: Any) -> None:
    """Take the summary out of the metadata of `session`."""
    take_out(session, TEXT, STATE)


def take_out(session: Any, *names: str) -> None:
    """Remove the named entries from the metadata of `session`."""
    if isinstance(session.metadata, dict):
        for name in names:
            session.metadata.pop(name, None)


def _is(message: Mapping[str, Any], mark: Mapping[str, Any]) -> bool:
    if _timestamp(message) != mark.get("timestamp"):
        return False
    return _digest(message) == mark.get("digest")


def _timestamp(message: Mapping[str, Any]) -> str | None:
    value = message.get("timestamp")
    return value if isinstance(value, str) else None


def _digest(message: Mapping[str, Any]) -> str:
    """Return 16 digits for role, content and the ids of tool calls."""
    calls = message.get("tool_calls")
    ids = [call.get("id") for call in calls if isinstance(call, dict)] if calls else []
    said = [message.get("role"), message.get("content"), ids, message.get("tool_call_id")]
    # In ASCII: a lone surrogate has no UTF-8.
    text = json.dumps(said, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
