"""Converts a framework's messages to OpenAI's form and back, and runs its calls with recovery."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from nanobot_context.archive import Archive
from nanobot_context.arguments import check_instance, check_whole
from nanobot_context.calls import call_with_recovery, call_with_recovery_sync
from nanobot_context.guard.exchange import Answer
from nanobot_context.message_texts import texts_of
from nanobot_context.settings import Settings
from nanobot_context.types import Message

Made = TypeVar("Made")

# Messages that are shortened keep keys that nobody knows.
_AT = "_at"


class Converted(Generic[Made]):
    """Messages of a framework in OpenAI's form, and the way back.

    Attributes:
        messages: In OpenAI's form, each with its place among what it was made of.
    """

    def __init__(self, made: Iterable[tuple[Made, Message]]) -> None:
        self._of: list[Made] = []
        self.messages: list[Message] = []
        for at, (one, message) in enumerate(made):
            self._of.append(one)
            self.messages.append({**message, _AT: at})

    def back(self, messages: Iterable[Message]) -> Iterator[tuple[Made | None, Message | None]]:
        """Yield the object that each message was made of, and the message where it has changed.

        The first is `None` for a message that was put in, the second for one that is as it was.
        """
        for message in messages:
            at = message.get(_AT)
            if at is None:
                yield None, message
            elif message is self.messages[at] or message == self.messages[at]:
                yield self._of[at], None
            else:
                yield self._of[at], {key: value for key, value in message.items() if key != _AT}


class Recovery:
    """Calls of a framework's models, with the same options each: see `call_with_recovery`."""

    def __init__(
        self,
        context_window: int | None = None,
        settings: Settings | None = None,
        archive: Archive | None = None,
    ) -> None:
        check_whole("context_window", context_window, optional=True)
        check_instance("settings", settings, Settings, optional=True)
        self._options: dict[str, Any] = {
            "context_window": context_window,
            "settings": settings,
            "archive": archive,
        }

    def call(self, send: Any, converted: Converted[Any], **options: Any) -> Any:
        """Return the response of `send`, a function that returns an `Answer`."""
        answer: Answer = call_with_recovery_sync(
            send, converted.messages, **self._options, **options
        )
        return answer.reply

    async def acall(self, send: Any, converted: Converted[Any], **options: Any) -> Any:
        """Return the response of `send`, a coroutine function that returns an `Answer`."""
        answer: Answer = await call_with_recovery(
            send, converted.messages, **self._options, **options
        )
        return answer.reply


def content_of(content: Any, media: Callable[[Any], Message | None]) -> Any:
    """Return the content of a message in OpenAI's form: a text, or parts where some are none.

    `media` returns the part that counts in place of one that is no text, `None` for a text.
    """
    if content is None or isinstance(content, str):
        return content or ""
    found = [media(part) for part in content]
    if not any(found):
        return texts_of(content)
    text = {"type": "text"}
    return [
        {**text, "text": texts_of([part])} if other is None else {**other, _AT: at}
        for at, (part, other) in enumerate(zip(content, found, strict=True))
    ]


def parts_of(content: Any, given: Any) -> Iterator[Any]:
    """Yield what a message says now: its texts, and those of the `given` parts that are none."""
    for part in content if isinstance(content, list) else [content]:
        at = part.get(_AT) if isinstance(part, dict) else None
        yield texts_of([part]) if at is None else given[at]


def text_in(given: Any, *names: str) -> str:
    """Return the first attribute of `given` that is a text; empty where none is."""
    values = (getattr(given, name, None) for name in names)
    return next((value for value in values if isinstance(value, str) and value), "")


def schema(name: str, description: str | None, parameters: Any) -> dict[str, Any]:
    """Return the schema of a tool in the form that is counted."""
    function = {"name": name, "description": description or "", "parameters": parameters}
    return {"type": "function", "function": function}
