"""A conversation and what of it goes into the next request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nanobot_context._core import select_history
from nanobot_context.errors import InvalidArgumentError, InvalidMessageError
from nanobot_context.types import Message

__all__ = ["Session"]

# What a request holds of a stored message; the rest (timestamps, metadata) is the session's own.
_REQUEST_KEYS = (
    "role",
    "content",
    "tool_calls",
    "tool_call_id",
    "name",
    "reasoning_content",
    "thinking_blocks",
)


@dataclass
class Session:
    """A conversation.

    Attributes:
        key: What it is stored under, in nanobot `channel:chat_id`.
        messages: Everything said, oldest first; only ever appended to.
        model: The model whose tokens `get_history` counts.
    """

    key: str = ""
    messages: list[Message] = field(default_factory=list)
    model: str | None = None

    def add_message(self, role: str, content: Any, **fields: Any) -> None:
        """Append a message; `fields` are further keys, such as `tool_calls`."""
        self.messages.append({"role": role, "content": content, **fields})

    def get_history(self, max_messages: int = 50, max_tokens: int | None = None) -> list[Message]:
        """Return the newest messages for a request, as new dicts.

        Args:
            max_messages: Messages at most; 0 for all, as in nanobot.
            max_tokens: Tokens at most, as `count_tokens` counts the list that comes back. With it
                only whole rounds come back: a user message and everything up to the next one, no
                tool result without its call and no call without its results.

        Without `max_tokens` the newest `max_messages` come back from the first user message among
        them on, or all of them where there is none.

        Raises:
            InvalidArgumentError: A limit is negative or no integer.
            InvalidMessageError: A message has no role or, where tokens are counted, another shape
                that no provider accepts.
        """
        if max_messages < 0:
            raise InvalidArgumentError(
                f"`max_messages` must be a non-negative integer, got {max_messages}",
                argument="max_messages",
            )
        newest = self.messages[-max_messages:]
        first = len(self.messages) - len(newest)
        history = [_for_request(message, index) for index, message in enumerate(newest, first)]
        if max_tokens is not None:
            return select_history(history, max_tokens, self.model)
        for start, message in enumerate(history):
            if message["role"] == "user":
                return history[start:]
        return history


def _for_request(message: Message, index: int) -> Message:
    if "role" not in message:
        raise InvalidMessageError(f"`messages[{index}]` has no `role`", index=index, field="")
    request = {key: message[key] for key in _REQUEST_KEYS if key in message}
    request.setdefault("content", "")
    return request
