"""A conversation, and the selection of its history for the next request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nanobot_context._core import select_history, static_buffer_cut
from nanobot_context.arguments import check_instance, check_whole, not_a_dict
from nanobot_context.errors import InvalidMessageError
from nanobot_context.forks import ThreadLock
from nanobot_context.history import check_covers, check_summary, newest
from nanobot_context.types import Message

if TYPE_CHECKING:
    from nanobot_context.summary.record import Summary

# What providers read of a stored message, as the core counts it; the rest (timestamps, metadata) is
# the session's own.
_REQUEST_KEYS = (
    "role",
    "content",
    "tool_calls",
    "tool_call_id",
    "name",
    "reasoning_content",
    "thinking_blocks",
    "reasoning",
    "reasoning_details",
    "extra_content",
    "provider_specific_fields",
    "refusal",
    "function_call",
    "audio",
)
# How many messages `get_history` returns where no summary is used, as in nanobot.
_MAX_MESSAGES = 50
# Two summaries may arrive at once. One lock for all sessions, held for microseconds, leaves a
# session an object that can be copied and pickled.
_ACCEPTING = ThreadLock()


@dataclass
class Session:
    """A conversation.

    Attributes:
        key: What it is stored under, in nanobot `channel:chat_id`.
        messages: Everything said, oldest first; only appended to. Clear `summary` with them.
        model: The model whose tokens `get_history` counts.
        summary: What stands for the first `summary.covers` messages; `None` before the first one.
        summary_in_progress: Whether a summary is being made of what `trim_if_needed` returned.
    """

    key: str = ""
    messages: list[Message] = field(default_factory=list)
    model: str | None = None
    summary: Summary | None = None
    summary_in_progress: bool = False
    _handed_out: int | None = field(default=None, init=False, repr=False, compare=False)

    def add_message(self, role: str, content: Any, **fields: Any) -> None:
        """Append a message; `fields` are further keys, such as `tool_calls`."""
        self.messages.append({"role": role, "content": content, **fields})

    def get_history(
        self, max_messages: int | None = None, max_tokens: int | None = None
    ) -> list[Message]:
        """Return the newest messages for a request, as new dicts; behind what the summary covers.

        Args:
            max_messages: Messages at most; 0 for all, as in nanobot. `None` is 50, but where there
                is a summary, or one is being made, all behind it: then each message is covered or
                shown.
            max_tokens: Tokens at most, as `count_tokens` counts the list that comes back. With it
                only whole rounds come back: a user message and everything up to the next one, no
                tool result without its call and no call without its results.

        Without a summary and without `max_tokens` the newest `max_messages` come back from the
        first user message among them on, or all of them where there is none. Behind a summary
        nothing is left out unless there are more than `max_messages`; then no tool result comes
        back without its call.

        Raises:
            InvalidArgumentError: A limit is negative or no integer, or the summary covers more
                messages than there are.
            InvalidMessageError: A message has no role or, where tokens are counted, another shape
                that no provider accepts.
        """
        summary = self.summary
        is_covered = summary is not None or self.summary_in_progress
        if max_messages is None:
            max_messages = 0 if is_covered else _MAX_MESSAGES
        check_whole("max_messages", max_messages)
        check_instance("messages", self.messages, list)
        shown = self.messages
        if summary is not None:
            check_covers(summary, shown)
            shown = shown[summary.covers :]
        if is_covered and max_tokens is None:
            shown = newest(shown, max_messages or None)
        else:
            shown = shown[-max_messages:]
        first = len(self.messages) - len(shown)
        history = [_for_request(message, index) for index, message in enumerate(shown, first)]
        if max_tokens is not None:
            return select_history(history, max_tokens, self.model)
        if is_covered:
            return history
        for start, message in enumerate(history):
            if message["role"] == "user":
                return history[start:]
        return history

    def trim_if_needed(self, limit: int = 50, min_keep: int = 10) -> tuple[list[Message], bool]:
        """Return the messages to summarise now, and whether there are any.

        It is something once more than `limit` messages are behind the summary, and not while one is
        in progress: then all but the last `min_keep`, up to a user message. They are those of
        `messages` themselves, and stay there and in the history until `update_summary` brings a
        summary that covers them. Take `summary` at the same time: the new one follows it. Whoever
        gets messages calls `update_summary` or `summary_failed` in the end.

        Source: document 000, except that nothing is removed before the summary is there.

        Raises:
            InvalidArgumentError: A limit cannot be used, or the summary covers more messages than
                there are.
            InvalidMessageError: A message is of a shape that no provider accepts.
        """
        if self.summary_in_progress:
            return [], False
        covered = 0
        if self.summary is not None:
            check_covers(self.summary, self.messages)
            covered = self.summary.covers
        cut = static_buffer_cut(self.messages, covered, limit=limit, keep=min_keep)
        if cut is None:
            return [], False
        self._handed_out = cut
        self.summary_in_progress = True
        return self.messages[covered:cut], True

    def update_summary(self, summary: Summary | str) -> bool:
        """Take a new summary, and return whether it was taken; none is in progress afterwards.

        It is taken where its version is newer than that of the present one and it covers no less,
        so that it does not matter which of two arrives first. Refused are those without a text
        and those that cover more messages than there are. Nothing is removed from `messages`.

        Args:
            summary: The summary. A text covers what `trim_if_needed` returned last, and is refused
                where that has come to its end before: where summaries may be late, hand over a
                `Summary`, which knows what it covers.
        """
        with _ACCEPTING:
            handed_out, self._handed_out = self._handed_out, None
            self.summary_in_progress = False
            if isinstance(summary, str):
                if handed_out is None:
                    return False
                summary = self._next_summary(summary, handed_out)
            check_summary(summary)
            is_possible = summary.covers <= len(self.messages) and summary.text.strip()
            if not is_possible or not summary.is_newer_than(self.summary):
                return False
            self.summary = summary
            return True

    def summary_failed(self) -> None:
        """Tell that the summary failed, so that `trim_if_needed` returns its messages again."""
        with _ACCEPTING:
            self._handed_out = None
            self.summary_in_progress = False

    def _next_summary(self, text: str, covers: int) -> Summary:
        from nanobot_context.summary.record import Summary

        version = self.summary.version + 1 if self.summary is not None else 1
        return Summary(text, covers, version, reason="buffer")


def _for_request(message: Message, index: int) -> Message:
    if not isinstance(message, dict):
        raise not_a_dict("messages", index, message)
    if "role" not in message:
        raise InvalidMessageError(f"`messages[{index}]` has no `role`", index=index, field="")
    request = {key: message[key] for key in _REQUEST_KEYS if key in message}
    request.setdefault("content", "")
    return request
