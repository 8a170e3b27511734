"""Reads Responses items as messages, and writes them back with their ids and thoughts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import nanobot_context.wire.forms.pairs as pairs
from nanobot_context.identity import is_same
from nanobot_context.json_text import json_text
from nanobot_context.responses import from_response_items, to_response_items
from nanobot_context.types import Message
from nanobot_context.wire.forms.form import PART, Form, Json

_CALLS = ("function_call", "custom_tool_call")
# Source: codex, `ResponseItem`: `compaction`, `compaction_summary`, `context_compaction`.
_COMPACTIONS = ("compaction", "context_compaction")
# Characters of a call that is said as text. An image has more.
_MAX_SAID_CHARS = 2_000


class Responses(Form):
    """OpenAI's Responses, where the request holds the whole conversation."""

    messages_name = "input"
    limit_name = "max_output_tokens"

    def _read(self) -> list[Message]:
        given = self.body["input"]
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        self._given: list[Json] = items
        self._parts: dict[int, list[Json]] = {}
        messages: list[Message] = []
        if isinstance(self.body.get("instructions"), str):
            messages.append({"role": "system", "content": self.body["instructions"]})
        self._paired = pairs.paired(items)
        self._referenced = pairs.references(items)
        compactions = [at for at, item in enumerate(items) if is_compaction(item)]
        compacted = compactions[-1] if compactions else 0
        # What led to a compaction is in it, whether or not it still stands before it.
        asked = {**{place: [] for place in range(compacted)}, **self._referenced}
        called = {pairs.asked_by(item) for item in items[compacted:]}.union(
            *(names for place, names in asked.items() if place >= compacted)
        )
        for number, part in pairs.answered(_turns(items, self._paired, self._referenced), asked):
            if number < compacted and _is_compacted(part):
                continue
            self._parts[number] = part
            read = self._from_pairs(number, part) or from_response_items(part)
            is_lone = bool(compactions) and pairs.answered_by(part[0]) not in {None, *called}
            if is_compaction(part[0]) or is_lone:
                # It is all that the model knows of what came before, and is never cut.
                read = [{"role": "system", "content": pairs.counted(part)}]
            thoughts = [item for item in part if item.get("type") == "reasoning"]
            if not read:
                # Of a kind that has no form as a message: it counts, and stays where it is.
                said = [item for item in part if item.get("type") != "reasoning"]
                read = [{"role": "assistant", "content": pairs.as_content(said or thoughts)}]
                thoughts = thoughts if said else []
            is_own = read[0].get("role") == "assistant" and not self._calls_in(number, part)
            if thoughts and is_own:
                read[0]["reasoning_details"] = pairs.counted(thoughts)
            messages += [{**message, PART: number} for message in read]
        self._known = {id(message) for message in messages}
        return messages

    def _from_pairs(self, number: int, part: list[Json]) -> list[Message]:
        """Return a turn with paired calls, or a paired result, as messages; empty for others."""
        if names := self._referenced.get(number):
            function = {"name": pairs.REFERENCE, "arguments": "{}"}
            asked = [{"id": name, "type": "function", "function": function} for name in names]
            return [{"role": "assistant", "content": pairs.as_content(part), "tool_calls": asked}]
        if number in self._paired and pairs.answers(part[0]) is not None:
            return [pairs.as_result(part[0])]
        calls = self._calls_in(number, part)
        if not calls:
            return []
        read = from_response_items([item for item in part if id(item) not in calls])
        message: Message = read[0] if read else {"role": "assistant", "content": None}
        others = iter(message.get("tool_calls", ()))
        # Calls are not written without the thoughts that led to them.
        parts = [pairs.whole(item) for item in part if item.get("type") == "reasoning"]
        content, made = message["content"], []
        for item in part:
            if id(item) in calls:
                call, rest = pairs.as_call(item)
                parts += rest
                made.append(call)
            elif item.get("type") in _CALLS:
                made.append(next(others))
        if parts:
            said = [{"type": "text", "text": content}] if isinstance(content, str) else content
            message["content"] = [*(said or ()), *parts]
        return [{**message, "tool_calls": made}]

    def _calls_in(self, number: int, part: list[Json]) -> set[int]:
        """Return the calls of a turn that are such by their form."""
        places = enumerate(part, number)
        return {id(item) for at, item in places if at in self._paired and pairs.asks(item)}

    def written(self, messages: list[Message]) -> list[Json]:
        if is_same(messages, self.messages):
            return list(self._given)
        items: list[Json] = []
        said: set[str] = set()
        for message in messages:
            number = message.get(PART)
            if id(message) in self._known:
                items += [] if number is None else self._parts[number]
                continue
            edited = {key: value for key, value in message.items() if key != PART}
            before = self._parts[number] if number is not None else self._answered(edited)
            if number in self._referenced:
                items += before
                continue
            if number is not None and (calls := self._calls_in(number, before)):
                items += _turn_items(edited, before, calls)
                continue
            if number in self._paired:
                result = pairs.resulted(before[0], edited)
                if result is None:
                    said.add(edited["tool_call_id"])
                    result = pairs.as_text(before[0], edited.get("content"))
                items.append(result)
                continue
            # What the server ran itself goes with the thoughts that led to it, or as text.
            is_own = edited.get("role") == "assistant" and not any(map(_is_hosted, before))
            if is_own and edited.get("reasoning_details"):
                items += [item for item in before if item.get("type") == "reasoning"]
            items += _items(edited, before)
        items = [pairs.as_text(item) if pairs.asks(item) in said else item for item in items]
        loose = _loose_thoughts(items) - _loose_thoughts(self._given)
        return _with_thoughts([item for item in items if id(item) not in loose], self._given)

    def _answered(self, message: Message) -> list[Json]:
        """Return the item to write an inserted message from: a result has its call's kind."""
        name = message.get("tool_call_id")
        calls = (call for call in self._given if call.get("type") in _CALLS)
        kind = next((call["type"] for call in calls if call.get("call_id") == name), None)
        return [{"type": f"{kind}_output"}] if kind else []

    def can_begin_at(self, index: int) -> bool:
        """Return whether no thoughts led to what stands there, either: see `_with_thoughts`."""
        for item in reversed(self.body["input"][: self.place(index)]):
            if item.get("type") == "reasoning":
                return False
            if _ends_thoughts(item):
                break
        return super().can_begin_at(index)


def _turns(items: list[Json], paired: set[int], referenced: Iterable[int]) -> Iterable[list[Json]]:
    """Yield the items of each message: a model's thoughts, what it said, and its calls.

    Args:
        paired: The places of calls by their form, and of their results.
        referenced: The places where references to calls begin.
    """
    turn: list[Json] = []
    for place, item in enumerate(items):
        if place in referenced:
            yield from [turn] if turn else []
            turn = [item]
            continue
        if turn and pairs.is_reference(turn[0]) and pairs.is_reference(item):
            turn.append(item)
            continue
        kind = item.get("type") or ("message" if "role" in item else None)
        is_said = kind == "message" and item.get("role") == "assistant"
        is_call = kind in _CALLS or (place in paired and pairs.asks(item) is not None)
        last = (turn[-1].get("type") or "message") if turn else None
        # What the server ran itself, with no result apart.
        ends_hosted = last is not None and _is_hosted(turn[-1]) and place - 1 not in paired
        if not is_call and _is_hosted(item) and (last == "reasoning" or ends_hosted):
            turn.append(item)
            continue
        if kind == "reasoning" or is_said or is_call:
            begins = last is not None and (
                ends_hosted
                or (kind == "reasoning" and last != "reasoning")
                or (is_said and last not in ("reasoning", None))
                or pairs.is_reference(turn[-1])
            )
            if begins:
                yield turn
                turn = []
            turn.append(item)
            continue
        if turn:
            yield turn
            turn = []
        yield [item]
    if turn:
        yield turn


def _turn_items(message: Message, before: list[Json], own: set[int]) -> list[Json]:
    """Return a message that was shortened as items, with calls that are such by their form."""
    items = [item for item in before if item.get("type") == "reasoning"]
    known = [item for item in before if id(item) in own]
    content = message.get("content")
    if isinstance(content, list):
        content = [part for part in content if part.get("type") != "thinking"]
    chat = {call.get("call_id") for call in before if call.get("type") in _CALLS}
    calls = message.get("tool_calls") or ()
    rest = {**message, "content": content, "tool_calls": [c for c in calls if c["id"] in chat]}
    written = _items(rest, before)
    items += [item for item in written if item.get("type") not in _CALLS]
    for call in calls:
        if call["id"] in chat:
            items += [item for item in written if item.get("call_id") == call["id"]]
            continue
        item = next((one for one in known if pairs.asks(one) == call["id"]), known[0])
        known.remove(item)
        items.append(pairs.called(item, call["id"]))
    return items


def _items(message: Message, before: list[Json]) -> list[Json]:
    """Return a message that was shortened as items, each with what else it had."""
    calls = {item.get("call_id"): item for item in before if item.get("type") in _CALLS}
    said = next((item for item in before if "role" in item), {})
    if message.get("role") == "tool":
        # Alone it answers no call, and would be left out.
        call = {"id": message.get("tool_call_id"), "type": "function", "function": {"name": "f"}}
        if before and before[0].get("type") == "custom_tool_call_output":
            call = {"id": call["id"], "type": "custom", "custom": {"name": "f"}}
        pair = [{"role": "assistant", "content": None, "tool_calls": [call]}, message]
        return [{**(before[0] if before else {}), **made} for made in to_response_items(pair)[1:]]
    results = [
        {"role": "tool", "tool_call_id": call.get("id"), "content": ""}
        for call in message.get("tool_calls") or ()
    ]
    written = []
    for item in to_response_items([message, *results]):
        if item.get("type") in _CALLS:
            written.append({**calls.get(item["call_id"], {}), **item})
        elif not str(item.get("type")).endswith("_output"):
            written.append({**said, **item})
    return written


def _with_thoughts(items: list[Json], given: list[Json]) -> list[Json]:
    """Return `items` without the ids of items whose thoughts are gone.

    OpenAI refuses these: "Item 'ws_…' of type 'web_search_call' was provided without its required
    'reasoning' item". What it ran itself cannot go without an id; what is short of that is said as
    text.
    """
    kept, thoughts = {id(item) for item in items}, None
    bare: set[Any] = set()
    for item in given:
        kind = str(item.get("type") or "message")
        if kind == "reasoning":
            thoughts = id(item)
        elif _ends_thoughts(item):
            thoughts = None
        elif thoughts is not None and thoughts not in kept and "id" in item:
            bare.add(item["id"])
            name = pairs.asks(item) if _is_hosted(item) else None
            if name is not None:
                # With its result.
                bare.add(name)
    if not bare:
        return items
    whole: list[Json] = []
    for item in items:
        known = {key: value for key, value in item.items() if key != "id"}
        name = pairs.answers(item)
        if not bare & {item.get("id"), name or str(item.get("call_id"))}:
            whole.append(item)
        elif not (_is_hosted(item) or name or str(item.get("type")).endswith("_output")):
            whole.append(known)
        elif len(text := json_text(known)) <= _MAX_SAID_CHARS:
            whole.append({"role": "assistant", "content": text})
    return whole


def _loose_thoughts(items: list[Json]) -> set[int]:
    """Return the thoughts with nothing behind them, which OpenAI refuses."""
    loose: set[int] = set()
    leads = False
    for item in reversed(items):
        if item.get("type") != "reasoning":
            leads = not _ends_thoughts(item)
        elif not leads:
            loose.add(id(item))
    return loose


def _ends_thoughts(item: Json) -> bool:
    role, kind = item.get("role", "assistant"), str(item.get("type"))
    return role != "assistant" or kind.endswith("_output") or is_compaction(item)


def is_compaction(item: Json) -> bool:
    """Return whether an item is the server's compaction of what came before it."""
    kind = str(item.get("type"))
    return kind.startswith(_COMPACTIONS) and bool(item.get("encrypted_content"))


def _is_compacted(part: list[Json]) -> bool:
    """Return whether a turn before a compaction is in there, so that the server leaves it out.

    What the user said may not be: `/responses/compact` returns it in front of the compaction.

    Source: OpenAI, "Compaction": "you can drop items that came before the most recent compaction
    item".
    """
    return all(item.get("role", "assistant") == "assistant" for item in part)


def _is_hosted(item: Json) -> bool:
    kind = str(item.get("type"))
    return kind.endswith(("_call", "_request")) and kind not in _CALLS and "id" in item
