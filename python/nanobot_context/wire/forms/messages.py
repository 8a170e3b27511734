"""Reads Anthropic's blocks as messages, and writes them back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import nanobot_context.wire.forms.pairs as pairs
from nanobot_context.history import SYSTEM_ROLES
from nanobot_context.identity import is_same
from nanobot_context.json_text import parsed
from nanobot_context.types import Message
from nanobot_context.wire.forms.form import PART, Form, Json

_CALL = ("tool_use", "tool_result")
_THOUGHTS = ("thinking", "redacted_thinking")
# Source: Anthropic, "Extended thinking": `budget_tokens` is at least 1,024.
_LEAST_THINKING = 1_024
# A compaction is a message of the system's here.
_MODELS = ("assistant", *SYSTEM_ROLES)
_ANSWERED = ("assistant", "tool")


class Messages(Form):
    """Anthropic's messages."""

    def _read(self) -> list[Message]:
        self._parts: list[Json] = self.body["messages"]
        messages: list[Message] = []
        system = self.body.get("system")
        if system:
            messages.append({"role": "system", "content": _contents(system)})
        # Source: Anthropic, "Compaction": the server ignores all content before such a block.
        compacted = (at for at, part in enumerate(self._parts) if _compactions(part))
        for number in range(max(compacted, default=0), len(self._parts)):
            part = self._parts[number]
            messages += [{**message, PART: number} for message in _from_blocks(part)]
        messages = list(_as_merged(messages))
        self._known = {id(message) for message in messages}
        self._whole: dict[int, int] = {}
        for message in messages:
            if PART in message:
                self._whole[message[PART]] = self._whole.get(message[PART], 0) + 1
        return messages

    def written(self, messages: list[Message]) -> list[Json]:
        if is_same(messages, self.messages):
            return list(self._parts)
        written: list[Json] = []
        for turn in _by_turn(m for m in messages if PART in m or m.get("role") not in SYSTEM_ROLES):
            number = turn[0].get(PART)
            part = {} if number is None else self._parts[number]
            is_known = all(id(one) in self._known and one.get(PART) == number for one in turn)
            if is_known and number is not None and len(turn) == self._whole[number]:
                written.append(part)
                continue
            role = "assistant" if turn[0].get("role") in _MODELS else "user"
            numbers = dict.fromkeys(one[PART] for one in turn if PART in one)
            contents = [self._parts[one].get("content") for one in numbers]
            before = [block for one in contents if isinstance(one, list) for block in one]
            blocks = _to_blocks(turn, before)
            if blocks:
                written.append({**part, "role": role, "content": blocks})
        return _behind_compaction(written)

    def _limited(self, max_tokens: int | None) -> Json:
        limited = super()._limited(max_tokens)
        thinking = self.body.get("thinking")
        budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
        # It has to be smaller, and has a least of its own.
        if max_tokens and isinstance(budget, int) and budget >= max_tokens > _LEAST_THINKING:
            budget = max(max_tokens // 2, _LEAST_THINKING)
            limited["thinking"] = {**self.body["thinking"], "budget_tokens": budget}
        return limited


def _from_blocks(part: Json) -> Iterable[Message]:
    """Yield a message of Anthropic's as messages: each result is one, the rest another."""
    role, content = part.get("role"), part.get("content")
    if not isinstance(content, list):
        yield {"role": role, "content": content}
        return
    if role == "assistant":
        compactions = _compactions(part)
        if compactions:
            # It is all that the model knows of what came before, and is never cut.
            yield {"role": "system", "content": compactions}
        rest = [block for block in content if block not in compactions]
        if rest or not compactions:
            yield _said(rest)
        return
    rest = []
    for block in content:
        if block.get("type") == "tool_result":
            yield {
                "role": "tool",
                "tool_call_id": block.get("tool_use_id"),
                "content": _contents(block.get("content") or ""),
            }
        else:
            rest.append(block)
    if rest:
        yield {"role": role, "content": _contents(rest)}


def _as_merged(messages: list[Message]) -> Iterator[Message]:
    """Yield messages with results moved behind their calls, which several messages may make.

    Source: Anthropic, "Messages": consecutive turns of a role are combined. So results may stand
    behind all of them, before anything else that the user says.
    """
    start = 0
    for end in range(1, len(messages) + 1):
        before = messages[end - 1].get("role")
        role = messages[end].get("role") if end < len(messages) else None
        if before in _ANSWERED and role in _ANSWERED and (before, role) != ("tool", "assistant"):
            continue
        turns = messages[start:end]
        start = end
        yield from pairs.behind_calls(turns, map(_pairing, turns))


def _pairing(message: Message) -> pairs.Said:
    """Return the names of the calls of a message, and of the one that it answers."""
    ids = [*(call["id"] for call in message.get("tool_calls", ())), message.get("tool_call_id")]
    *asked, answered = (id_ if isinstance(id_, str) else None for id_ in ids)
    return asked, answered


def _compactions(part: Json) -> list[Json]:
    """Return the blocks of a message that say what came before it; one that failed says nothing."""
    content = part.get("content")
    blocks = content if part.get("role") == "assistant" and isinstance(content, list) else []
    return [one for one in blocks if one.get("type") == "compaction" and one.get("content")]


def _behind_compaction(parts: list[Json]) -> list[Json]:
    """Return messages with a leading compaction merged into the model's message behind it."""
    first = parts[:2]
    if [part.get("role") for part in first] != ["assistant"] * 2 or not _compactions(first[0]):
        return parts
    compaction, said = first
    return [{**said, "content": [*compaction["content"], *_blocks(said["content"])]}, *parts[2:]]


def _blocks(content: Any) -> list[Json]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _said(blocks: list[Json]) -> Message:
    message: Message = {"role": "assistant", "content": None}
    calls = [_call(block) for block in blocks if block.get("type") == "tool_use"]
    thoughts = [block for block in blocks if block.get("type") in _THOUGHTS]
    rest = [b for b in blocks if b.get("type") not in ("tool_use", *_THOUGHTS)]
    if rest:
        message["content"] = _contents(rest)
    if thoughts:
        message["thinking_blocks"] = thoughts
    if calls:
        message["tool_calls"] = calls
    return message


def _call(block: Json) -> Json:
    arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
    function = {"name": block.get("name"), "arguments": arguments}
    return {"id": block.get("id"), "type": "function", "function": function}


def _contents(content: Any) -> Any:
    """Return blocks as parts, one for each, so that they can be found again."""
    return content if isinstance(content, str) else [_content(block) for block in content]


def _content(block: Json) -> Json:
    if block.get("type") == "text":
        return {"type": "text", "text": block.get("text") or ""}
    if block.get("type") == "image":
        source = block.get("source") or {}
        data = f"data:{source.get('media_type')};base64,{source.get('data')}"
        return {"type": "image_url", "image_url": {"url": source.get("url") or data}}
    if str(block.get("type")).endswith(_CALL):
        # The core would not let a message with it go.
        return {"type": "block", "block": block}
    return block


def _by_turn(messages: Iterable[Message]) -> Iterable[list[Message]]:
    """Yield the messages of each of Anthropic's turns: results, and what was said beside them."""
    turn: list[Message] = []
    for message in messages:
        if turn and not _is_same_turn(turn, message):
            yield turn
            turn = []
        turn.append(message)
    if turn:
        yield turn


def _is_same_turn(turn: list[Message], message: Message) -> bool:
    # A result that somebody else has put in answers the calls before it.
    is_result = message.get("role") == "tool"
    last = turn[-1]
    if last.get("role") in SYSTEM_ROLES:
        return message.get(PART) == last.get(PART)
    if message.get("role") == "assistant" or last.get("role") == "assistant":
        return False
    if is_result and last.get("role") == "tool":
        return True
    return PART in message and message.get(PART) == turn[0].get(PART)


def _to_blocks(turn: list[Message], before: list[Json]) -> list[Json]:
    """Return the messages of a turn as blocks, reusing those they were read from."""
    if turn[0].get("role") in _MODELS:
        return _said_blocks(turn[-1], before)
    results = {b.get("tool_use_id"): b for b in before if b.get("type") == "tool_result"}
    rest = [block for block in before if block.get("type") != "tool_result"]
    blocks: list[Json] = []
    for message in turn:
        if message.get("role") == "tool":
            id_ = message.get("tool_call_id")
            block = results.get(id_, {"type": "tool_result", "tool_use_id": id_})
            was, now = block.get("content"), message.get("content")
            if isinstance(now, list):
                now = _texts(now, was if isinstance(was, list) else [])
            blocks.append({**block, "content": now})
        else:
            blocks += _texts(message.get("content"), rest)
    return blocks


def _said_blocks(message: Message, before: list[Json]) -> list[Json]:
    calls = {call.get("id"): call for call in message.get("tool_calls") or ()}
    compactions = _compactions({"role": "assistant", "content": before})
    apart = [b for b in before if b.get("type") in ("tool_use", *_THOUGHTS) or b in compactions]
    texts = [block for block in before if block not in apart]
    # Alone, a compaction is the message.
    content = message.get("content") if message.get("role") == "assistant" else []
    said = iter(_texts(content, texts))
    blocks: list[Json] = []
    for block in before:
        if block in compactions:
            blocks.append(block)
        elif block.get("type") in _THOUGHTS:
            blocks += [block] if message.get("thinking_blocks") else []
        elif block.get("type") == "tool_use":
            if block.get("id") in calls:
                blocks.append(_used(calls.pop(block["id"]), block))
        else:
            blocks += [one for one in [next(said, None)] if one is not None]
    blocks += [*said, *(_used(call, {}) for call in calls.values())]
    halves = _unpaired(blocks) - _unpaired(before)
    return [block for block in blocks if _server_call(block) not in halves]


def _unpaired(blocks: list[Json]) -> set[Any]:
    """Return the calls of the server's own tools that lack their call or their result."""
    calls = [id_ for block in blocks if (id_ := _server_call(block))]
    return {id_ for id_ in calls if calls.count(id_) == 1}


def _server_call(block: Json) -> Any:
    """Return the call that a block belongs to, if the server itself ran the tool."""
    kind = str(block.get("type"))
    if kind in _CALL or not kind.endswith(_CALL):
        return None
    return block.get("tool_use_id") or block.get("id")


def _used(call: Json, block: Json) -> Json:
    function = call.get("function") or {}
    if block and _call(block)["function"] == function:
        return block
    given = parsed(function.get("arguments") or "{}", {})
    made = {"type": "tool_use", "id": call.get("id"), "name": function.get("name")}
    return {**block, **made, "input": given if isinstance(given, dict) else {"value": given}}


def _texts(content: Any, before: list[Json]) -> list[Json]:
    """Return content as blocks, reusing those of `before` with the same content."""
    blocks: list[Json] = []
    for at, part in enumerate(content if isinstance(content, list) else [content]):
        # Of two that say the same one may be marked.
        known = next((one for one in [*before[at:], *before] if _content(one) == part), None)
        text = part.get("text") if isinstance(part, dict) else part
        if known is not None:
            blocks.append(known)
        elif isinstance(text, str):
            was = before[at] if at < len(before) else {}
            kept = {key: value for key, value in was.items() if key == "cache_control"}
            # A provider refuses a text of nothing but spaces.
            blocks += [{"type": "text", "text": text, **kept}] if text.strip() else []
    return blocks
