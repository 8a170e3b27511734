"""What `get_history` returns, and what of it stands behind the system prompt of a request."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from nanobot_context.types import Message

if TYPE_CHECKING:
    from nanobot_context.summary import Summary


class History(list[Message]):
    """The messages of a history, and what is known of those that are not in it.

    Attributes:
        session: The session they are of.
        summary: The summary of what came before.
        rules: What the user said there that holds for good.
    """

    def __init__(
        self, messages: Sequence[Message], session: Any, summary: Summary | None = None
    ) -> None:
        super().__init__(messages)
        self.session = session
        self.summary = summary
        self.rules: list[str] = []


class Section:
    """One section behind system prompts; it remembers that of the turn the current task works on.

    The history itself says which section belongs to it: between nanobot's two calls a newer summary
    may be stored, and nanobot makes other requests, without a history, that are to have none.
    """

    def __init__(self, name: str) -> None:
        self._current: ContextVar[str] = ContextVar(f"nanobot_context_{name}", default="")

    def begin(self, text: str) -> None:
        """Remember the section of a turn that begins."""
        self._current.set(text)

    def show(self, messages: list[Message], given: Any) -> None:
        """Put the section behind the system prompt of `messages`, which nanobot built of `given`.

        Without a history there is one only where nanobot 0.3.5 makes the system prompt anew within
        a turn whose history became a checkpoint.
        """
        history = history_of(given)
        is_anew = not history and given is not history and given.current_message is None
        text = self._current.get() if isinstance(history, History) or is_anew else ""
        if text:
            system = messages[0]
            messages[0] = {**system, "content": system["content"] + text}


def history_of(given: Any) -> Any:
    """Return the history in what `build_messages` is given: in 0.3.5 a record that holds it."""
    return getattr(given, "history", given)
