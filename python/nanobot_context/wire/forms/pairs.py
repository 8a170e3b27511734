"""Pairs items of Responses that are a call and its result by their form, whatever their tool.

A `shell_call` and its `shell_call_output`, an `mcp_approval_request` and its response, and all that
name each other in the same way: the server refuses one without the other. A call stays as it is,
for nobody here knows what may be left out of it; of a result the texts can be shortened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeVar

from nanobot_context.json_text import json_text
from nanobot_context.message_texts import texts_of
from nanobot_context.types import Message
from nanobot_context.wire.forms.form import Json

# What names an item that the server has.
REFERENCE = "item_reference"
# These have messages of their own.
_CHAT = ("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output")
_NAMES = ("type", "id", "call_id", "approval_request_id", "status")
# Of what is encrypted, characters a token: base64 has 3 bytes in 4, and a token is about 4 bytes.
_ENCRYPTED_CHARS = 16 / 3
# Characters of what a call says in its arguments: nothing is cut of so little.
_MAX_SAID_CHARS = 200
# Characters of the shortest text that can be shortened.
_LEAST_TEXT_CHARS = 200

Path = tuple[Any, ...]
Turn = TypeVar("Turn")
# The names of the calls that something makes, and of the one that it answers.
Said = tuple[Iterable[str | None], str | None]


def asks(item: Json) -> str | None:
    """Return the name by which a result answers this call; `None` if it is not a call."""
    kind = str(item.get("type"))
    if kind in _CHAT or kind.endswith("_output"):
        return None
    name = item.get("id" if kind.endswith("_request") else "call_id")
    return name if isinstance(name, str) else None


def answers(item: Json) -> str | None:
    """Return the name of the call that an item answers; `None` if it is not a result."""
    kind = str(item.get("type"))
    if kind in _CHAT or not kind.endswith(("_output", "_response")):
        return None
    name = item.get("call_id", item.get("approval_request_id"))
    return name if isinstance(name, str) else None


def asked_by(item: Json) -> str | None:
    """Return `asks` of any call, function calls included."""
    return item.get("call_id") if item.get("type") in _CHAT[::2] else asks(item)


def answered_by(item: Json) -> str | None:
    """Return `answers` of any result, those of function calls included."""
    return item.get("call_id") if item.get("type") in _CHAT[1::2] else answers(item)


def paired(items: list[Json]) -> set[int]:
    """Return the places of calls that have a result behind them, and of their results."""
    calls = _calls(([asks(item)], answers(item)) for item in items)
    return {*calls, *calls.values()}


def answered(
    turns: Iterable[list[Json]], asked: Mapping[int, list[str]]
) -> Iterator[tuple[int, list[Json]]]:
    """Yield turns with the place of their first item, each followed by its calls' results.

    Messages need that order; in items thoughts, a search or the user's words may stand between.

    Args:
        asked: The names of the calls of some turns, by place, in place of those of their items.
    """
    parts = list(turns)
    placed = list(zip(accumulate(map(len, parts), initial=0), parts, strict=False))
    said = ((asked.get(place, map(asked_by, part)), answered_by(part[0])) for place, part in placed)
    yield from behind_calls(placed, said)


def is_reference(item: Json) -> bool:
    """Return whether an item names one that the server has; it needs no type."""
    return item.get("type", None if "role" in item else REFERENCE) == REFERENCE


def references(items: list[Json]) -> dict[int, list[str]]:
    """Return the places where references to calls begin, and the names of these calls.

    A reference names an item that the server has. Which of some in a row is a call, and of what
    name, only the results tell that follow and whose calls are nowhere else.
    """
    known = {name for item in items if (name := asked_by(item)) is not None}
    found: dict[int, list[str]] = {}
    begins: int | None = None
    for place, item in enumerate(items):
        name = answered_by(item)
        if is_reference(item):
            if begins is None or not is_reference(items[place - 1]):
                begins = place
        elif name is None:
            begins = None
        elif begins is not None and name not in known:
            found.setdefault(begins, []).append(name)
    return found


def behind_calls(turns: Sequence[Turn], said: Iterable[Said]) -> Iterator[Turn]:
    """Yield turns in their order, but each that answers a call behind the one that makes it."""
    calls = _calls(said)
    behind: dict[int, list[Turn]] = {}
    for place, call in calls.items():
        behind.setdefault(call, []).append(turns[place])
    for place, turn in enumerate(turns):
        if place not in calls:
            yield turn
            yield from behind.get(place, ())


def _calls(said: Iterable[Said]) -> dict[int, int]:
    """Return the place of each answer, and that of the newest call it may answer."""
    waiting: dict[str | None, int] = {}
    calls: dict[int, int] = {}
    for place, (asked, name) in enumerate(said):
        if name in waiting:
            calls[place] = waiting.pop(name)
        waiting.update((one, place) for one in asked if one is not None)
    return calls


def as_call(item: Json) -> tuple[Json, list[Json]]:
    """Return an item as a call of a message, and the rest of it as parts."""
    said: Json = {}
    for name, value in item.items():
        if name not in _NAMES:
            said.update(value if isinstance(value, dict) else {name: value})
    short: Json = {}
    for name, value in said.items():
        if len(json_text({**short, name: value})) <= _MAX_SAID_CHARS:
            short[name] = value
    long = {name: value for name, value in said.items() if name not in short}
    kind = str(item["type"]).removesuffix("_call").removesuffix("_request")
    function = {"name": kind, "arguments": json_text(short)}
    call = {"id": asks(item), "type": "function", "function": function}
    return call, [whole(long)] if long else []


def as_result(item: Json) -> Message:
    """Return an item as the result of a call."""
    said = _said(item)
    content: Any = said["output"] if list(said) == ["output"] else None
    if not isinstance(content, str):
        leaves = dict(_leaves(said))
        content = [*leaves.values(), whole(_with(said, dict.fromkeys(leaves, "")))]
    return {"role": "tool", "tool_call_id": answers(item), "content": content}


def as_content(items: list[Json]) -> Any:
    """Return items without a message form as the content of one: JSON, and their images."""
    images = {path: part for path, part in _leaves(items) if part["type"] == "image_url"}
    text = json_text(counted(_with(items, dict.fromkeys(images, ""))))
    return [{"type": "text", "text": text}, *images.values()] if images else text


def called(item: Json, name: Any) -> Json:
    """Return a call or a result with another name."""
    if name in (asks(item), answers(item)):
        return item
    key = "id" if str(item["type"]).endswith("_request") else "call_id"
    return {**item, key if key in item else "approval_request_id": name}


def resulted(item: Json, message: Message) -> Json | None:
    """Return a result with the content of `message`; `None` if the item cannot hold it."""
    item = called(item, message.get("tool_call_id"))
    now: Any = message.get("content")
    was = as_result(item)["content"]
    if now == was:
        return item
    if isinstance(was, str):
        return {**item, "output": texts_of(now)}
    said = _said(item)
    leaves = list(_leaves(said))
    if isinstance(now, str):
        now = [{"type": "text", "text": now}, *([{"type": "text", "text": ""}] * len(leaves))]
    changed: dict[Path, str] = {}
    for (path, before), part in zip(leaves, now, strict=False):
        if part == before:
            continue
        if before["type"] != "text" or not isinstance(part.get("text"), str):
            return None
        changed[path] = part["text"]
    return {**item, **_with(said, changed)} if changed else None


def as_text(item: Json, content: Any = None) -> Json:
    """Return an item as a text of the model, where it cannot keep its kind."""
    if content is None:
        content = json_text({key: one for key, one in item.items() if key not in ("id", "call_id")})
    return {"role": "assistant", "content": texts_of(content)}


def counted(value: Any) -> Any:
    """Return an item with encrypted content replaced by text of about as many tokens.

    Base64 has more than twice the tokens of what it holds.
    """
    if isinstance(value, list):
        return [counted(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {
        name: " thought" * round(len(inner) / _ENCRYPTED_CHARS)
        if name == "encrypted_content" and isinstance(inner, str)
        else counted(inner)
        for name, inner in value.items()
    }


def whole(said: Any) -> Json:
    """Return a part that counts and is never cut, as signed thoughts are."""
    return {"type": "thinking", "thinking": counted(said)}


def _said(item: Json) -> Json:
    return {name: value for name, value in item.items() if name not in _NAMES}


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Json]]:
    """Yield the texts and images of a value as parts, with their paths: what can be cut."""
    if isinstance(value, dict | list):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(inner, (*path, name))
    elif isinstance(value, str):
        if path[-1] == "image_url":
            yield path, {"type": "image_url", "image_url": {"url": value}}
        elif len(value) >= _LEAST_TEXT_CHARS and (not value.isascii() or len(value.split()) > 1):
            yield path, {"type": "text", "text": value}


def _with(value: Any, changed: dict[Path, str], path: Path = ()) -> Any:
    """Return a value with other strings at some places."""
    if path in changed:
        return changed[path]
    if isinstance(value, dict):
        return {name: _with(inner, changed, (*path, name)) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with(inner, changed, (*path, at)) for at, inner in enumerate(value)]
    return value
