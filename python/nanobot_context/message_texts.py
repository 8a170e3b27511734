"""Extracts the texts of messages for people, and which parts of them were sent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nanobot_context.arguments import check_instance
from nanobot_context.history import call_id, function_of, tool_calls_of
from nanobot_context.types import Message

# As `src/text/elision.rs` writes what is left of a text.
_GAP = re.compile(r"\n?\[(?:\.\.\. [^\]\n]{1,480} \.\.\.|…\d[^\]\n]{1,48})\]\n?")
_ORIGIN = re.compile(r'; all of it: ([^"\n]{1,400}?/[0-9a-f]{16}\.txt)')


def message_text(message: Mapping[str, Any]) -> str:
    """Return everything that a message says: content, calls, thoughts."""
    check_instance("message", message, Mapping)
    calls = (_call_text(call) for call in tool_calls_of(dict(message)))
    function_call = message.get("function_call")
    said = (
        content_text(message.get("content")),
        message.get("refusal"),
        *calls,
        _call_text(function_call) if isinstance(function_call, dict) else None,
        message.get("reasoning_content"),
        message.get("reasoning"),
        *_thoughts(message.get("thinking_blocks")),
    )
    return "\n".join(text for text in said if isinstance(text, str) and text)


def holds_media(message: Mapping[str, Any]) -> bool:
    """Return whether a message holds something else than text, as an image."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return any(isinstance(part, dict) and "text" not in part for part in parts)


def kept_spans(before: str, after: str) -> list[int]:
    """Return which of `before` is in `after`, as positions: from, to, from, to and so on.

    `after` is taken for pieces of `before` in their order, with marks or new words between them;
    what cannot be found is taken for new. Costs one search of `before` for each such piece.
    """
    kept: list[int] = []
    # Positions in `whole` are one larger.
    at, whole = 0, f"\n{before}\n"
    for piece in _pieces(before, after):
        found = whole.find(piece, at)
        if found < 0:
            continue
        # The end of this line begins the next one.
        end = at = found + len(piece.rstrip("\n"))
        start = found + len(piece) - len(piece.lstrip("\n"))
        if start >= end:
            continue
        start, stop = max(start - 1, 0), min(end - 1, len(before))
        if kept and not before[kept[-1] : start].strip("\n"):
            kept[-1] = stop
        else:
            kept += [start, stop]
    return kept


def origin_of(after: str, before: str) -> str | None:
    """Return the file that the mark in a shortened text names; `None` where it names none.

    A mark that the text had before it was shortened does not count.
    """
    found = _ORIGIN.search(after)
    return found[1] if found and found[0] not in before else None


def tool_names(messages: Sequence[Message]) -> list[str | None]:
    """Return for each message the tool whose result it is: as it says, or else its call."""
    calls: dict[str, str] = {}
    names: list[str | None] = []
    for message in messages:
        for call in tool_calls_of(message):
            calls[call_id(call)] = _call_name(call)
        name = None
        if message.get("role") in ("tool", "function"):
            name = message.get("name")
            if not isinstance(name, str):
                name = calls.get(str(message.get("tool_call_id")))
        names.append(name)
    return names


def turns_of(messages: Sequence[Message]) -> list[int]:
    """Return for each message how many messages of the user there are up to it."""
    turn = 0
    return [turn := turn + (message["role"] == "user") for message in messages]


def _pieces(before: str, after: str) -> Iterator[str]:
    """Yield what `after` may have of `before`: text between marks, or else its whole lines."""
    for text in _GAP.split(after):
        if text.strip() and text in before:
            yield text
        else:
            yield from (f"\n{line}\n" for line in text.splitlines() if line.strip())


def _call_name(call: Any) -> str:
    name = function_of(call).get("name")
    return name if isinstance(name, str) else "?"


def _call_text(call: Any) -> str:
    arguments = function_of(call).get("arguments", "")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False, default=repr)
    return f"{_call_name(call)}({arguments})"


def content_text(content: Any) -> str:
    """Return the text of a message's content; parts other than text are named in brackets."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(map(_part_text, content if isinstance(content, list) else [content]))


def texts_of(content: Any) -> str:
    """Return the texts among the parts of a message's content; nothing of other parts."""
    is_one = isinstance(content, str) or not isinstance(content, Sequence)
    parts = [content] if is_one else content
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return "\n".join(text for text in texts if isinstance(text, str))


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    text = part.get("text") if isinstance(part, dict) else None
    if isinstance(text, str):
        return text
    kind = part.get("type") if isinstance(part, dict) else None
    return f"[{kind}]" if isinstance(kind, str) else f"[{type(part).__name__}]"


def _thoughts(blocks: Any) -> Iterator[Any]:
    for block in blocks if isinstance(blocks, list) else ():
        yield block.get("thinking") if isinstance(block, dict) else None
