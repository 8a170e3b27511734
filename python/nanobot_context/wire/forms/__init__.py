"""Reads the request bodies of three APIs as messages of OpenAI's form, and writes them back.

`form` is their common base; each API has a file beside it.
"""

from __future__ import annotations

from typing import Any

from nanobot_context.wire.forms.chat import Chat
from nanobot_context.wire.forms.form import Form, Json
from nanobot_context.wire.forms.messages import Messages
from nanobot_context.wire.forms.responses import Responses

# Where a server keeps the conversation, a request holds the newest part alone.
_KEPT_BY_SERVER = ("previous_response_id", "conversation", "prompt")
# What the address of a provider ends with is not a part of it.
_PATHS = ("/chat/completions", "/responses", "/messages")
_CHAT_ROLES = ("tool", "function")
# Types of items that are no messages, by how they begin and end.
_ITEM_STARTS = ("reasoning", "compaction", "context_compaction", "item_reference")
_ITEM_ENDS = ("_call", "_output", "_request", "_response", "_list_tools")


def form_of(path: str, body: Any) -> Form | None:
    """Return the form of a request body; `None` if `path` is not that of a conversation."""
    if not isinstance(body, dict):
        return None
    if path.endswith("/chat/completions") and _is_list(body.get("messages")):
        return Chat(body)
    if path.endswith("/messages") and _is_list(body.get("messages")):
        return Messages(body)
    if path.endswith("/responses") and not any(body.get(name) for name in _KEPT_BY_SERVER):
        given = body.get("input")
        if isinstance(given, str) or _is_list(given):
            return Responses(body)
    return None


def form_of_messages(messages: list[Json], body: Json | None = None) -> Form | None:
    """Return the form of Anthropic's messages or Responses items; `None` for other lists.

    Args:
        body: The body that they stand in.
    """
    body = body or {}
    if any(one.get("role") in _CHAT_ROLES or "tool_calls" in one for one in messages):
        return None
    kinds = {str(one.get("type")) for one in messages if "role" not in one}
    if kinds and not any(k.startswith(_ITEM_STARTS) or k.endswith(_ITEM_ENDS) for k in kinds):
        return None
    if kinds or "input" in body:
        return Responses({**body, "input": messages})
    return Messages({**body, "messages": messages})


def endpoint_of(url: str) -> str:
    """Return the base address of the provider that `url` calls."""
    bare = url.partition("?")[0].rstrip("/")
    return next((bare.removesuffix(path) for path in _PATHS if bare.endswith(path)), bare)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)
