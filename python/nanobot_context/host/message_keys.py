"""Keys that identify a message in the session where nanobot saves it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zlib import crc32

from nanobot_context.history import call_id, tool_calls_of
from nanobot_context.host.messages import users_own
from nanobot_context.message_texts import content_text, message_text


def message_key(message: Mapping[str, Any]) -> str:
    """Return a key that identifies a message in its saved session; "" if there is none.

    nanobot saves messages of the user otherwise than it sends them.
    """
    role = message.get("role")
    if role in ("tool", "function"):
        text = str(message.get("tool_call_id") or message_text(message))
    elif role == "assistant":
        calls = tool_calls_of(dict(message))
        text = call_id(calls[0]) if calls else _own_text(message)
    else:
        text = ""
    return _key_of(text)


def known_by(message: Mapping[str, Any]) -> str:
    """Return `message_key`; for a message of the user a key of its own words."""
    if message.get("role") != "user":
        return message_key(message)
    return _key_of(_own_text(message))


def _own_text(message: Mapping[str, Any]) -> str:
    """Return the text of a message without nanobot's additions, which are saved differently."""
    return users_own(content_text(message.get("content"))).strip()


def _key_of(text: str) -> str:
    return f"{crc32(text.encode(errors='replace')):08x}" if text else ""
