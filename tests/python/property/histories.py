"""Generated conversations, as Python dicts of every shape that providers and nanobot send.

Left out:

- shapes that raise (unit/test_bad_input.py has them), so that every case says something;
- `tool_calls` on messages of other roles than the assistant's: no provider defines them;
- texts above 6,000 characters: a case would cost more than it finds; budgets are as much smaller.

Each group of messages is made from one drawn integer, since drawing every choice by itself takes
hypothesis 100 ms a case in place of 2; a failing case shrinks by groups and by the size of texts.

Every message carries its position as the unknown key `n`, by which it is found again.
"""

from __future__ import annotations

import base64
import json
import random
import struct
import zlib
from typing import Any

from hypothesis import strategies as st

Message = dict[str, Any]

MODELS = [None, "gpt-4o", "gpt-4", "claude-opus-4-5", "deepseek-chat", "gemini-2.5-pro", "no-such"]

# A number that neither a float nor a 64-bit integer holds.
BIG_NUMBER = "123456789012345678901234.50e-3"


def png(width: int, height: int) -> str:
    """Return a data URL of a grey PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress((b"\0" + b"\x7f" * width) * height)
    data = chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + data).decode()


PNG = png(64, 48)

_UNITS = [
    "2026-05-01 12:00:01 worker 17 finished in 0.125 s\n",
    "The quick brown fox explains importers to everybody who wants to listen. ",
    "请检查一下支付模块的日志，错误号是 4031。",
    "🙂👩‍👩‍👧 ok ",
    "x",
    " ",
    "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo",
    "<|endoftext|> <|im_start|>user ",
    "\x00\x1b[31m",
    "lone \udc80 and \ud83d halves ",
    'say "hi" \\ back\\slash\t',
    "line\r\n",
]


MAX_CHARS = 6_000


def _long(unit: str, length: int) -> str:
    return (unit * (length // len(unit) + 1))[:length]


def anything() -> st.SearchStrategy[str]:
    """Texts of any characters, lone surrogates included."""
    return st.text(st.characters(codec=None), max_size=30)


def texts() -> st.SearchStrategy[str]:
    """Texts of every length and kind: surrogates, NUL, special tokens, Chinese, emoji."""
    long = st.builds(_long, st.sampled_from(_UNITS), st.integers(0, MAX_CHARS))
    return st.one_of(anything(), long)


MEDIA: list[Message] = [
    {"type": "image_url", "image_url": {"url": PNG}},
    {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
    {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
    {"type": "image_url", "image_url": "https://example.org/b.png"},
    {"type": "image_url"},
    {"type": "input_audio", "input_audio": {"data": "UklGRg" * 40, "format": "wav"}},
    {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0="}},
    {"type": "file", "file": {"file_id": "file-1"}},
    {"type": "document", "source": {"type": "base64", "data": "JVBERi0="}},
]

BROKEN_ARGUMENTS = ["", "  ", "{", '{"a": ', "not json", "{'a': 1}", "\x00", '"\ud800']


class Maker:
    """Makes messages from one integer."""

    def __init__(self, seed: int, words: list[str], max_chars: int) -> None:
        self._random = random.Random(seed)
        self._words = words
        self._max_chars = max_chars

    def one(self, *values: Any) -> Any:
        return self._random.choice(values)

    def chance(self, percent: int) -> bool:
        return self._random.randrange(100) < percent

    def text(self) -> str:
        if self._words and self.chance(30):
            return self._random.choice(self._words)
        length = self._random.randint(0, self.one(300, self._max_chars))
        return _long(self._random.choice(_UNITS), min(length, self._max_chars))

    def unknown(self) -> Any:
        return self.one(None, True, {"type": "ephemeral"}, [1, "a"])

    def part(self) -> Any:
        """Any kind of part, with unknown keys."""
        match self.one("text", "text", "marked", "bare", "other", "media"):
            case "text":
                return {"type": "text", "text": self.text()}
            case "marked":
                return {"type": "text", "cache_control": self.unknown(), "text": self.text()}
            case "bare":
                return self.text()
            case "other":
                return {"type": "hologram", "blob": [self.text(), 1.5, None]}
            case _:
                return dict(self._random.choice(MEDIA))

    def content(self) -> Any:
        match self.one("text", "text", "parts", "none"):
            case "text":
                return self.text()
            case "parts":
                return [self.part() for _ in range(self.one(0, 1, 2, 4))]
            case _:
                return None

    def arguments(self) -> Any:
        """Arguments as providers send them, and broken."""
        if self.chance(20):
            return self.one(*BROKEN_ARGUMENTS, {"a": [1, "x"]}, None)
        keys = [key for key in ("path", "content", "command", "深") if self.chance(40)]
        body = json.dumps({key: self.text() for key in keys}, ensure_ascii=self.chance(50))
        return body[:-1] + (", " if keys else "") + f'"n": {BIG_NUMBER}}}'

    def call(self) -> Message:
        name = self.one("read_file", "exec", "f")
        function = {"name": name, "strict": True, "arguments": self.arguments()}
        call: Message = {"id": self.one(*"abcd", "call_1_0"), "type": "function"}
        call |= {"function": function, "index": 0}
        match self._random.randrange(24):
            case 0:
                del call["id"]
            case 1:
                call["id"] = self.one(None, "", 7)
            case 2:
                del function["name"]
            case 3:
                del function["arguments"]
            case 4:
                call = {"id": call["id"], "name": "flat", "arguments": function["arguments"]}
            case 5:
                custom = {"name": "patch", "input": self.text()}
                call = {"id": call["id"], "type": "custom", "custom": custom}
        return call

    def group(self) -> list[Message]:
        """An assistant's message with calls, and results: complete, or broken in some way."""
        calls = [self.call() for _ in range(self.one(1, 1, 2, 3))]
        message = {"role": "assistant", "content": self.content(), "tool_calls": calls}
        group: list[Message] = [message | self.thoughts()]
        for call in calls:
            result = {"role": "tool", "tool_call_id": call.get("id"), "content": self.content()}
            result["name"] = self.one("read_file", "exec", "f", None)
            group.append(result)
        match self._random.randrange(14):
            case 0:
                group.pop()
            case 1:
                group.append(dict(group[-1]))
            case 2:
                group = group[1:] + group[:1]
            case 3:
                group[-1]["tool_call_id"] = "of nobody"
            case 4:
                del group[-1]["tool_call_id"]
            case 5:
                group.insert(1, {"role": "user", "content": "wait"})
            case 6:
                group[1:] = reversed(group[1:])
        return group

    def thoughts(self) -> Message:
        block = {"type": "thinking", "thinking": self.text(), "signature": "s"}
        thoughts: Message = {"thinking_blocks": [block]} if self.chance(20) else {}
        return thoughts | ({"reasoning_content": self.text()} if self.chance(30) else {})

    def single(self) -> list[Message]:
        role = self.one(
            *("user", "user", "user", "assistant", "assistant", "assistant"),
            *("system", "developer", "function", "tool"),
        )
        message: Message = {"role": role, "content": self.content()}
        if role == "assistant":
            message |= self.thoughts()
            message |= self.one({}, {"tool_calls": []}, {"tool_calls": None})
        elif role == "user":
            message |= self.one({}, {"name": "ada"})
        if message["content"] is None and self.chance(50):
            del message["content"]
        return [message]

    def numbered(self, messages: list[Message]) -> list[Message]:
        made = []
        for n, message in enumerate(messages):
            first, last = self.one(({}, {}), ({"timestamp": "now"}, {"x": [n]}))
            made.append(first | message | last | {"n": n})
        return made


seeds = st.integers(0, 2**32 - 1)


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Conversations of 0 to 30 messages or so, whole and broken."""
    words = draw(st.lists(anything(), max_size=2))
    max_chars = draw(st.sampled_from([300, 3_000, MAX_CHARS]))
    messages: list[Message] = []
    for seed in draw(st.lists(seeds, max_size=9)):
        maker = Maker(seed, words, max_chars)
        messages += maker.group() if maker.chance(50) else maker.single()
    maker = Maker(draw(seeds), words, 300)
    if maker.chance(50):
        messages.insert(0, {"role": "system", "content": maker.text()})
    if maker.chance(50):
        messages.append({"role": "user", "content": maker.text()})
    return maker.numbered(messages)


def tools() -> st.SearchStrategy[list[Any] | None]:
    schema = {"type": "object", "properties": {"path": {"type": "string", "enum": ["a", "b"]}}}
    tool = {
        "type": "function",
        "function": {"name": "f", "description": "文", "parameters": schema},
    }
    return st.sampled_from([None, None, [], [tool], [tool, {"name": "flat"}, "not a tool"]])


@st.composite
def prose(draw: st.DrawFn) -> list[Message]:
    """Sound conversations of texts that can be cut anywhere, so that any budget can be filled."""
    units = st.sampled_from(_UNITS[:3])
    text = st.builds(_long, units, st.integers(1_000, 6_000))
    messages: list[Message] = []
    for n in range(draw(st.integers(1, 6))):
        messages.append({"role": "user", "content": draw(text)})
        if draw(st.booleans()):
            function = {"name": "read_file", "arguments": f'{{"path": "src/{n}.py"}}'}
            call = {"id": f"c{n}", "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append(
                {
                    "role": "tool",
                    "tool_call_id": f"c{n}",
                    "name": "read_file",
                    "content": draw(text),
                }
            )
        messages.append({"role": "assistant", "content": draw(text)})
    return [*messages, {"role": "user", "content": "go on"}]
