"""The model's own reasoning, put back into messages for providers that miss it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nanobot_context._core import NO_REASONING
from nanobot_context.identity import is_same

if TYPE_CHECKING:
    from nanobot_context.types import Message

THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
"""Fields of a message that hold the model's reasoning, in plain text or signed."""

_SIGNATURES = ("extra_content", "provider_specific_fields")


def with_reasoning(messages: list[Message], given: list[Message]) -> list[Message]:
    """Return `messages` with the reasoning that `given` has for them, a mark where there is none.

    The mark stands in every message of the assistant's, for providers that want reasoning back look
    whether it is there. The very same list comes back where nothing is to be done.
    """
    originals = {_first_call(m): m for m in given if _first_call(m)}
    restored: list[Message] = []
    for message in messages:
        if message.get("role") != "assistant":
            restored.append(message)
            continue
        original = originals.get(_first_call(message), {})
        put = {
            name: original[name]
            for name in (*THOUGHTS, *_SIGNATURES)
            if original.get(name) and original[name] != message.get(name)
        }
        thoughts = {**message, **put}
        if not (thoughts.get("reasoning_content") or thoughts.get("reasoning")):
            put["reasoning_content"] = NO_REASONING
        restored.append({**message, **put} if put else message)
    return messages if is_same(restored, messages) else restored


def _first_call(message: Message) -> str | None:
    calls = message.get("tool_calls")
    call = calls[0] if isinstance(calls, list) and calls else None
    name = call.get("id") if isinstance(call, dict) else None
    return name if isinstance(name, str) and name else None
