"""The history that `get_history` returns, and the sections it adds behind the system prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from nanobot_context.host.stored_calls import Calls
from nanobot_context.summary import Summary
from nanobot_context.types import Message


class History(list[Message]):
    """The messages of a history, and what was kept of the messages left out of it.

    Attributes:
        summary: The summary of what came before.
        rules: The user's standing rules in them.
        calls: The calls in them that changed something.
        stated: All of the user's standing rules, whose language sections have: that of the newest
            messages changes.
    """

    def __init__(
        self, messages: Sequence[Message], session: Any, summary: Summary | None = None
    ) -> None:
        super().__init__(messages)
        self.session = session
        self.summary = summary
        self.rules: list[str] = []
        self.calls = Calls([])
        self.stated: list[str] = []


class Section:
    """A section behind system prompts; `text_of` returns its text for a history.

    The history itself says which section belongs to it: between nanobot's two calls a newer summary
    may be stored, and nanobot makes other requests, without a history, that are to have none.
    """

    def __init__(self, name: str, text_of: Callable[[History], str]) -> None:
        self._text_of = text_of
        # That of the turn that the current task works on.
        self._current: ContextVar[str] = ContextVar(f"nanobot_context_{name}", default="")

    def show(self, messages: list[Message], given: Any) -> None:
        """Put the section behind the system prompt of `messages`, which nanobot built of `given`.

        Without a history there is one only where nanobot 0.3.5 makes the system prompt anew within
        a turn whose history became a checkpoint.
        """
        # In 0.3.5 a record that holds the history.
        history = getattr(given, "history", given)
        text = ""
        if isinstance(history, History):
            text = self._text_of(history)
            self._current.set(text)
        elif not history and given is not history and given.current_message is None:
            text = self._current.get()
        if text:
            system = messages[0]
            messages[0] = {**system, "content": system["content"] + text}
