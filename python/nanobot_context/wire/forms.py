"""The bodies of three APIs as messages of OpenAI's form, and back.

What comes back untouched is the very part of the body that it was: blocks that are signed, marked
for a cache, or of a kind that nobody here knows stay as they are. Only what was shortened is
written anew, within the blocks and items that it was read from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from nanobot_context.history import SYSTEM_ROLES
from nanobot_context.responses import from_response_items, to_response_items
from nanobot_context.types import Message

Json = dict[str, Any]

# Where the part of the body was that a message was read from. Messages that are shortened keep keys
# that nobody knows.
_PART = "nanobot_context.part"
_CALL = ("tool_use", "tool_result")
_THOUGHTS = ("thinking", "redacted_thinking")


class Form:
    """One API's body.

    Attributes:
        body: The body as it came.
        messages_name: The key of the messages.
        limit_name: The key of the limit for the answer.
        messages: What it says, as messages.
        shown_tools: Tool schemas that go out in place of the body's; `None` for these.
    """

    messages_name = "messages"

    def __init__(self, body: Json) -> None:
        self.body = body
        self.limit_name = self._limit_name()
        self.messages = self._read()
        self.shown_tools: list[Json] | None = None

    @property
    def model(self) -> str | None:
        """The model's name."""
        model = self.body.get("model")
        return model if isinstance(model, str) else None

    @property
    def max_tokens(self) -> int | None:
        """The limit for the answer."""
        limit = self.body.get(self.limit_name)
        return limit if isinstance(limit, int) and not isinstance(limit, bool) else None

    @property
    def tools(self) -> list[Json] | None:
        """The tool schemas, as OpenAI's chat API has them."""
        tools = self.given_tools if self.shown_tools is None else self.shown_tools
        return [_schema(tool) for tool in tools] or None

    @property
    def given_tools(self) -> list[Json]:
        """The tool schemas as they came."""
        tools = self.body.get("tools")
        return [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []

    @property
    def is_streamed(self) -> bool:
        """Whether the answer is to come in pieces."""
        return self.body.get("stream") is True

    def replaced(self, messages: list[Message], max_tokens: int | None) -> Json:
        """Return the body with other messages, and another limit for the answer."""
        body = dict(self.body)
        if messages is not self.messages:
            body[self.messages_name] = self.written(messages)
        if max_tokens != self.max_tokens:
            body.update(self._limited(max_tokens))
        if self.shown_tools is not None:
            body["tools"] = self.shown_tools
        return body

    def written(self, messages: list[Message]) -> list[Json]:
        """Return messages as the body has them: what is as it was read, as it came."""
        raise NotImplementedError

    def place(self, index: int) -> int:
        """Return where the part of the body was that a message was read from; 0 for none."""
        return place_of(self.messages[index]) or 0

    def read_before(self, place: int) -> int:
        """Return how many messages were read from before a place."""
        return sum(self.place(index) < place for index in range(len(self.messages)))

    def can_begin_at(self, place: int) -> bool:
        """Return whether what stands there needs nothing before it but its call."""
        return True

    def _limit_name(self) -> str:
        return "max_tokens"

    def _read(self) -> list[Message]:
        raise NotImplementedError

    def _limited(self, max_tokens: int | None) -> Json:
        return {} if max_tokens is None else {self.limit_name: max_tokens}


class Chat(Form):
    """OpenAI's chat completions."""

    def _limit_name(self) -> str:
        return "max_completion_tokens" if "max_completion_tokens" in self.body else "max_tokens"

    def _read(self) -> list[Message]:
        messages: list[Message] = self.body["messages"]
        return messages

    def written(self, messages: list[Message]) -> list[Json]:
        return messages


class Responses(Form):
    """OpenAI's Responses, where the request holds the whole conversation."""

    messages_name = "input"

    def _limit_name(self) -> str:
        return "max_output_tokens"

    def _read(self) -> list[Message]:
        given = self.body["input"]
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        self._parts: dict[int, list[Json]] = {}
        messages: list[Message] = []
        if isinstance(self.body.get("instructions"), str):
            messages.append({"role": "system", "content": self.body["instructions"]})
        number = 0
        for part in _turns(items):
            self._parts[number] = part
            read = from_response_items(part)
            if not read:
                # Of a kind that has no form as a message: it counts, and stays where it is.
                read = [{"role": "assistant", "content": json.dumps(part, ensure_ascii=False)}]
            thoughts = [item for item in part if item.get("type") == "reasoning"]
            if thoughts and read[0].get("role") == "assistant":
                read[0]["reasoning_details"] = thoughts
            messages += [{**message, _PART: number} for message in read]
            number += len(part)
        self._known = {id(message) for message in messages}
        return messages

    def written(self, messages: list[Message]) -> list[Json]:
        items: list[Json] = []
        for message in messages:
            number = message.get(_PART)
            if id(message) in self._known:
                items += [] if number is None else self._parts[number]
                continue
            edited = {key: value for key, value in message.items() if key != _PART}
            before = self._parts[number] if number is not None else []
            if edited.get("role") == "assistant" and edited.get("reasoning_details"):
                items += [item for item in before if item.get("type") == "reasoning"]
            items += _items(edited, before)
        given = [item for part in self._parts.values() for item in part]
        loose = _loose_thoughts(items) - _loose_thoughts(given)
        return _with_thoughts([item for item in items if id(item) not in loose], given)

    def can_begin_at(self, place: int) -> bool:
        """Return whether no thoughts led to what stands there: see `_with_thoughts`."""
        for item in reversed(self.body["input"][:place]):
            if item.get("type") == "reasoning":
                return False
            if _ends_thoughts(item):
                return True
        return True


class Messages(Form):
    """Anthropic's messages."""

    def _read(self) -> list[Message]:
        self._parts: list[Json] = self.body["messages"]
        messages: list[Message] = []
        system = self.body.get("system")
        if system:
            messages.append({"role": "system", "content": _contents(system)})
        for number, part in enumerate(self._parts):
            messages += [{**message, _PART: number} for message in _from_blocks(part)]
        self._known = {id(message) for message in messages}
        self._whole: dict[int, int] = {}
        for message in messages:
            if _PART in message:
                self._whole[message[_PART]] = self._whole.get(message[_PART], 0) + 1
        return messages

    def written(self, messages: list[Message]) -> list[Json]:
        written: list[Json] = []
        for turn in _by_turn(
            m for m in messages if _PART in m or m.get("role") not in SYSTEM_ROLES
        ):
            number = turn[0].get(_PART)
            part = {} if number is None else self._parts[number]
            is_same = all(id(one) in self._known for one in turn)
            if is_same and number is not None and len(turn) == self._whole[number]:
                written.append(part)
                continue
            role = "assistant" if turn[0].get("role") == "assistant" else "user"
            blocks = _to_blocks(turn, part.get("content"))
            if blocks:
                written.append({**part, "role": role, "content": blocks})
        return written

    def _limited(self, max_tokens: int | None) -> Json:
        limited = super()._limited(max_tokens)
        thinking = self.body.get("thinking")
        budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
        # It has to be smaller, and has a least of its own.
        if max_tokens and isinstance(budget, int) and budget >= max_tokens > _LEAST_THINKING:
            budget = max(max_tokens // 2, _LEAST_THINKING)
            limited["thinking"] = {**self.body["thinking"], "budget_tokens": budget}
        return limited


# Source: Anthropic, "Extended thinking": `budget_tokens` is at least 1,024.
_LEAST_THINKING = 1_024

# Where a server keeps the conversation, a request holds the newest part alone.
_KEPT_BY_SERVER = ("previous_response_id", "conversation", "prompt")


def form_of(path: str, body: Any) -> Form | None:
    """Return the body of a request to `path`; `None` for what is none of a conversation."""
    if not isinstance(body, dict):
        return None
    if path.endswith("/chat/completions") and _is_list(body.get("messages")):
        return Chat(body)
    if path.endswith("/messages") and _is_list(body.get("messages")):
        return Messages(body)
    if path.endswith("/responses") and not any(body.get(name) for name in _KEPT_BY_SERVER):
        given = body.get("input")
        if isinstance(given, str) or _is_list(given):
            return Responses(body)
    return None


# What the address of a provider ends with is not a part of it.
_PATHS = ("/chat/completions", "/responses", "/messages")


def form_of_messages(messages: list[Json], body: Json | None = None) -> Form | None:
    """Return messages of Anthropic's, or items of Responses; `None` where some are not of these.

    Args:
        body: The body that they stand in.
    """
    body = body or {}
    if any(one.get("role") in _CHAT_ROLES or "tool_calls" in one for one in messages):
        return None
    kinds = {str(one.get("type")) for one in messages if "role" not in one}
    if kinds and not any(kind in _ITEMS or kind.endswith(_ITEM_ENDS) for kind in kinds):
        return None
    if kinds or "input" in body:
        return Responses({**body, "input": messages})
    return Messages({**body, "messages": messages})


def place_of(message: Message) -> int | None:
    """Return where the part was that `message` was read from; `None` for none."""
    place = message.get(_PART)
    return place if isinstance(place, int) else None


def without_places(messages: list[Message]) -> list[Message]:
    """Return messages that were read as if they were nobody's but the reader's."""
    return [{name: one[name] for name in one if name != _PART} for one in messages]


_CHAT_ROLES = ("tool", "function")
_ITEMS = ("reasoning", "item_reference")
_ITEM_ENDS = ("_call", "_output")


def endpoint_of(url: str) -> str:
    """Return the address of a provider, of which `url` is one call."""
    bare = url.partition("?")[0].rstrip("/")
    return next((bare.removesuffix(path) for path in _PATHS if bare.endswith(path)), bare)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def _schema(tool: Json) -> Json:
    """Return a tool of any of the three APIs in the form that is counted."""
    if "function" in tool or "name" not in tool:
        return tool
    parameters = tool.get("input_schema") or tool.get("parameters") or {}
    description = tool.get("description") or ""
    function = {"name": tool["name"], "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


# Responses ---------------------------------------------------------------------------------------

_CALLS = ("function_call", "custom_tool_call")
# Characters of a call that is said as text. An image has more.
_MAX_SAID_CHARS = 2_000


def _turns(items: list[Json]) -> Iterable[list[Json]]:
    """Yield items that make one message: a model's thoughts, what it said, and its calls."""
    turn: list[Json] = []
    for item in items:
        kind = item.get("type") or ("message" if "role" in item else None)
        is_said = kind == "message" and item.get("role") == "assistant"
        if kind == "reasoning" or is_said or kind in _CALLS:
            last = (turn[-1].get("type") or "message") if turn else None
            begins = last is not None and (
                (kind == "reasoning" and last != "reasoning")
                or (is_said and last not in ("reasoning", None))
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


def _items(message: Message, before: list[Json]) -> list[Json]:
    """Return a message that was shortened as items, each with what else it had."""
    calls = {item.get("call_id"): item for item in before if item.get("type") in _CALLS}
    if message.get("role") == "tool":
        # Alone it answers no call, and would be left out.
        call = {"id": message.get("tool_call_id"), "type": "function", "function": {"name": "f"}}
        if before and before[0].get("type") == "custom_tool_call_output":
            call = {"id": call["id"], "type": "custom", "custom": {"name": "f"}}
        pair = [{"role": "assistant", "content": None, "tool_calls": [call]}, message]
        return to_response_items(pair)[1:]
    results = [
        {"role": "tool", "tool_call_id": call.get("id"), "content": ""}
        for call in message.get("tool_calls") or ()
    ]
    written = []
    for item in to_response_items([message, *results]):
        if item.get("type") in _CALLS:
            known = calls.get(item["call_id"], {})
            # An id ties a call to thoughts that may be gone.
            written.append({**{k: v for k, v in known.items() if k != "id"}, **item})
        elif not str(item.get("type")).endswith("_output"):
            written.append(item)
    return written


def _with_thoughts(items: list[Json], given: list[Json]) -> list[Json]:
    """Return `items` without ids of what stood behind thoughts that are gone.

    OpenAI refuses these: "Item 'ws_…' of type 'web_search_call' was provided without its required
    'reasoning' item". What it ran itself cannot go without an id; what is short of that is said as
    text.
    """
    kept, thoughts = {id(item) for item in items}, None
    bare: set[int | str] = set()
    for item in given:
        kind = str(item.get("type") or "message")
        if kind == "reasoning":
            thoughts = id(item)
        elif _ends_thoughts(item):
            thoughts = None
        elif thoughts is not None and thoughts not in kept and "id" in item:
            bare.add(id(item))
            if _is_hosted(item) and isinstance(item.get("call_id"), str):
                # With its result.
                bare.add(item["call_id"])
    if not bare:
        return items
    whole: list[Json] = []
    for item in items:
        known = {key: value for key, value in item.items() if key != "id"}
        if not bare & {id(item), str(item.get("call_id"))}:
            whole.append(item)
        elif not (_is_hosted(item) or str(item.get("type")).endswith("_output")):
            whole.append(known)
        elif len(text := json.dumps(known, ensure_ascii=False, default=str)) <= _MAX_SAID_CHARS:
            whole.append({"role": "assistant", "content": text})
    return whole


def _loose_thoughts(items: list[Json]) -> set[int]:
    """Return the thoughts that lead to nothing, which OpenAI refuses."""
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
    return role != "assistant" or kind.endswith("_output")


def _is_hosted(item: Json) -> bool:
    kind = str(item.get("type"))
    return kind.endswith("_call") and kind not in _CALLS and "id" in item


# Anthropic ---------------------------------------------------------------------------------------


def _from_blocks(part: Json) -> Iterable[Message]:
    """Yield a message of Anthropic's as messages: each result is one, the rest another."""
    role, content = part.get("role"), part.get("content")
    if not isinstance(content, list):
        yield {"role": role, "content": content}
        return
    if role == "assistant":
        yield _said(content)
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
    """Yield messages that make one of Anthropic's: results, and what was said beside them."""
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
    if message.get("role") == "assistant" or last.get("role") == "assistant":
        return False
    if is_result and last.get("role") == "tool":
        return True
    return _PART in message and message.get(_PART) == turn[0].get(_PART)


def _to_blocks(turn: list[Message], content: Any) -> list[Json]:
    """Return messages of one turn as blocks, made of those that they were read from."""
    before: list[Json] = content if isinstance(content, list) else []
    if turn[0].get("role") == "assistant":
        return _said_blocks(turn[0], before)
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
    texts = [b for b in before if b.get("type") not in ("tool_use", *_THOUGHTS)]
    said = iter(_texts(message.get("content"), texts))
    blocks: list[Json] = []
    for block in before:
        if block.get("type") in _THOUGHTS:
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
    """Return the calls of the server's own tools of which only a half is there."""
    calls = [id_ for block in blocks if (id_ := _server_call(block))]
    return {id_ for id_ in calls if calls.count(id_) == 1}


def _server_call(block: Json) -> Any:
    """Return the call that a block is of, where the server itself ran the tool."""
    kind = str(block.get("type"))
    if kind in _CALL or not kind.endswith(_CALL):
        return None
    return block.get("tool_use_id") or block.get("id")


def _used(call: Json, block: Json) -> Json:
    function = call.get("function") or {}
    if block and _call(block)["function"] == function:
        return block
    try:
        given = json.loads(function.get("arguments") or "{}")
    except (ValueError, RecursionError):
        given = {}
    made = {"type": "tool_use", "id": call.get("id"), "name": function.get("name")}
    return {**block, **made, "input": given if isinstance(given, dict) else {"value": given}}


def _texts(content: Any, before: list[Json]) -> list[Json]:
    """Return content as blocks: those of `before` where a part says the same as one."""
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
