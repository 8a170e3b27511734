"""Generated conversations in forms that no provider defines, beside those that some do.

What histories.py leaves out since it raises, or since hardly anybody sends it: ids that are
integers, legacy `function_call`, blocks of Anthropic's form, subclasses of dict and str that run
code of their own, objects of clients in place of dicts, values that JSON does not have, fields of
wrong types, containers that hold themselves.

Left out: subclasses that lie about being equal, which nothing can be promised for.
"""

from __future__ import annotations

import collections
import random
import types
from collections.abc import Callable
from typing import Any

from odd_values import Raising, Text, Unprintable

__all__ = ["OddMaker"]


class Changing(dict[str, Any]):
    """A dict that changes something else while it is walked through."""

    change: Callable[[], Any] = staticmethod(lambda: None)

    def items(self) -> Any:
        self.change()
        return super().items()


class Key(str):
    """A key that calls something when it is compared."""

    __hash__ = str.__hash__
    change: Callable[[], Any] = staticmethod(lambda: None)

    def __eq__(self, other: object) -> bool:
        self.change()
        return str.__eq__(self, other)


class ClientMessage:
    """As the messages of clients are: attributes, and a way to become a dict."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields)

    def get(self, key: str, default: Any = None) -> Any:
        return self.__dict__.get(key, default)

    def __getitem__(self, key: str) -> Any:
        return self.__dict__[key]

    def model_dump(self) -> dict[str, Any]:
        return dict(self.__dict__)


WORDS = [
    "error:",
    "src/app.py",
    "never",
    "必须",
    "42",
    "\ud800",
    "\udfff x",
    "\x00",
    "🙂",
    "}{",
    "a" * 300,
]


class OddMaker:
    """Makes conversations from one integer; `odd` is the share of odd things among usual ones."""

    def __init__(
        self, seed: int, odd: float, objects: Callable[[dict[str, Any]], Any] = ClientMessage
    ) -> None:
        self._random = random.Random(seed)
        self._odd = odd
        self._objects = objects
        self.messages: list[Any] = []

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def is_odd(self) -> bool:
        return self.chance(self._odd)

    def one(self, *makers: Any) -> Any:
        made = self._random.choice(makers)
        return made() if callable(made) else made

    def text(self) -> str:
        words = self._random.choices(WORDS, k=self._random.choice([0, 1, 3, 40, 200]))
        text = self._random.choice([" ", "\n", ""]).join(words)
        return Text(text) if self.is_odd() else text

    def change(self) -> None:
        """Change the conversation that is being read."""
        match self._random.randrange(5):
            case 0:
                self.messages.append({"role": "user", "content": "new"})
            case 1:
                self.messages[:] = self.messages[1:] + self.messages[:1]
            case 2:
                del self.messages[self._random.randrange(-1, len(self.messages)) :]
            case _:
                for message in self.messages:
                    if isinstance(message, dict):
                        message[f"extra {self._random.randrange(99)}"] = 1
                        if isinstance(message.get("content"), list):
                            message["content"].clear()

    def wrapped(self, made: dict[str, Any]) -> Any:
        """Return a dict as some other kind of mapping, most of the time as it is."""
        if not self.is_odd():
            return made
        match self._random.randrange(9):
            case 0:
                return collections.OrderedDict(made)
            case 1:
                return collections.defaultdict(list, made)
            case 2:
                return collections.UserDict(made)
            case 3:
                return types.MappingProxyType(made)
            case 4:
                return Raising(made)
            case 5:
                changing = Changing(made)
                changing.change = self.change
                return changing
            case 6:
                keys = {Key(key): value for key, value in made.items()}
                for key in keys:
                    key.change = self.change
                return keys
            case 7:
                return self._objects(made)
            case _:
                return made | {self.one(7, None, "\ud800", (1,)): self.junk()}

    def junk(self) -> Any:
        itself: list[Any] = []
        itself.append(itself)
        deep: Any = 1
        for _ in range(self._random.choice([5, 2_000])):
            deep = [deep]
        return self.one(
            *(None, True, 7, -1, 10**400, 1.5, float("nan"), float("inf"), b"bytes", "", "text"),
            *(
                {1, 2},
                (1, 2),
                {"a": float("nan")},
                {"a": {"b": [1]}},
                [None],
                [[]],
                {},
                [],
                range(3),
            ),
            *(Unprintable(), object(), bytearray(b"x"), itself, deep, Raising(a=1), int, Text("t")),
        )

    def id(self) -> Any:
        if self.is_odd():
            return self.one(
                7, 0, None, "", True, b"x", "\ud800", "a\udc00", Text("a"), 1.5, self.junk
            )
        return self._random.choice(["a", "b", "c", "call_1_0"])

    def part(self) -> Any:
        text, kind = self.text, self._random.choice
        if self.is_odd():
            return self.one(self.junk, lambda: {"type": self.junk(), "text": self.junk()})
        url = kind(["https://example.org/a.png", "data:image/png;base64,AAAA", "data:,", ""])
        image = {"url": url, "detail": kind(["low", "high", None, 3])}
        return self.wrapped(
            kind(
                [
                    {"type": kind(["text", "input_text", "output_text"]), "text": text()},
                    {"type": "text", "text": text(), "cache_control": {"type": "ephemeral"}},
                    {"type": "image_url", "image_url": kind([image, url, None])},
                    {"type": "input_image", "image_url": url},
                    {"type": "image", "source": {"type": "base64", "data": url}},
                    {"type": "input_audio", "input_audio": {"data": url, "format": "wav"}},
                    {"type": "file", "file": {"file_id": url, "filename": text()}},
                    {"type": "refusal", "refusal": text()},
                    {"type": "thinking", "thinking": text(), "signature": "s"},
                    {"type": "redacted_thinking", "data": "QUJD"},
                    {"type": "tool_use", "id": self.id(), "name": "f", "input": {"a": text()}},
                    {"type": "tool_result", "tool_use_id": self.id(), "content": text()},
                    {"type": "reference", "ids": [1, 2.5, None]},
                    {"text": text()},
                    {},
                ]
            )
        )

    def content(self) -> Any:
        if self.is_odd():
            return self.one(self.junk, self.part)
        if self.chance(0.4):
            parts = [self.part() for _ in range(self._random.randrange(4))]
            return [*parts, self.text()] if self.chance(0.2) else parts
        return self.one(self.text, None, self.text)

    def arguments(self) -> Any:
        return self.one(
            '{"a": 1}', self.text, "{", "", None, {"a": float("nan")}, {"a": [1]}, self.junk
        )

    def function(self) -> Any:
        if self.is_odd():
            return self.junk()
        name = self.one("f", "read_file", self.text, None)
        return self.wrapped({"name": name, "arguments": self.arguments()})

    def call(self) -> Any:
        if self.is_odd():
            return self.junk()
        call = {"id": self.id(), "type": "function", "function": self.function()}
        if self.chance(0.1):
            call["extra_content"] = {"google": {"thought_signature": self.text()}}
        if self.chance(0.1):
            del call["function"]
            call |= self.one({}, {"custom": {"name": "p", "input": self.text()}}, {"name": "flat"})
        return self.wrapped(call)

    def message(self) -> Any:
        if self.is_odd() and self.chance(0.3):
            return self.junk()
        roles = ["user", "assistant", "tool", "system", "function", "developer"]
        role = self.one(self.junk, "control", Text("user")) if self.is_odd() else self.one(*roles)
        made: dict[str, Any] = {"role": role, "content": self.content()}
        if role == "tool":
            made["tool_call_id"] = self.id()
        if role == "assistant":
            if self.chance(0.5):
                made["tool_calls"] = [self.call() for _ in range(self._random.randrange(4))]
            if self.chance(0.2):
                made["function_call"] = self.function()
            for key in ("reasoning_content", "reasoning", "refusal", "thinking_blocks", "audio"):
                if self.chance(0.08):
                    made[key] = self.one(self.text, self.junk, [{"text": self.text()}])
        if self.chance(0.1):
            made["name"] = self.one("ada", self.text, self.junk)
        if self.is_odd():
            key = self.one("tool_calls", "content", "role", "name", "tool_call_id", "function_call")
            made[key] = self.junk()
        if self.is_odd():
            del made[self.one("role", "content")]
        return self.wrapped(made)

    def conversation(self) -> list[Any]:
        """Return 1 to 12 messages, which changes of their own go to as well."""
        for _ in range(self._random.randrange(1, 9)):
            message = self.message()
            self.messages.append(message)
            calls = message.get("tool_calls") if isinstance(message, dict) else None
            for call in calls if isinstance(calls, list) and self.chance(0.7) else ():
                if isinstance(call, dict) and len(self.messages) < 12:
                    result = {"role": "tool", "tool_call_id": call.get("id")}
                    self.messages.append(self.wrapped(result | {"content": self.content()}))
        return self.messages
