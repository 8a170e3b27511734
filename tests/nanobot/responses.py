"""OpenAI's Responses in terms of chat completions: how nanobot's Azure provider asks since 0.1.5.

`chat_form` turns a request into what the server counts and scripts, `response` turns a completion
back, `events` makes the stream of it. Nothing is stored: whoever wants to go on sends the items of
the conversation again, the model's thoughts among them, which only the server can read. They are
counted like all that they stand for.

The texts come from public threads: continue#10092 and #8933, GhidrAssist#78.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from refusals import Refusal, shape

ROLES = ("system", "developer", "user", "assistant")
PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fc",
    "reasoning": "rs",
}
"""What the ids of items begin with."""
ENCRYPTED = "reasoning.encrypted_content"
THOUGHT = "What was asked is one thing and what was read is another. " * 250

Item = dict[str, Any]


def malformed(asked: dict[str, Any]) -> Refusal | None:
    """Return OpenAI's refusal of a request that breaks the rules of Responses, or None."""
    if earlier := asked.get("previous_response_id"):
        text = f"Previous response with id '{earlier}' not found."
        return shape(text, "previous_response_id", "previous_response_not_found")
    given = items(asked)
    if not given:
        return shape("Missing required parameter: 'input'.", "input")
    seen: set[str] = set()
    for index, item in enumerate(given):
        if refusal := malformed_item(item, f"input[{index}]"):
            return refusal
        if "id" in item:
            if item["id"] in seen:
                return shape(f"Duplicate item found with id {item['id']}.", "input")
            seen.add(item["id"])
    return unpaired(given)


def malformed_item(item: Item, here: str) -> Refusal | None:
    """Return the refusal of one input item, or None."""
    kind = kind_of(item)
    if kind not in PREFIXES:
        return shape(f"Invalid value: '{kind}'.", f"{here}.type", "invalid_value")
    if kind == "message" and item.get("role") not in ROLES:
        return shape(f"Invalid value: '{item.get('role')}'.", f"{here}.role", "invalid_value")
    if "id" in item and not str(item["id"]).startswith(PREFIXES[kind]):
        text = f"Invalid '{here}.id': '{item['id']}'. Expected an ID that begins with"
        return shape(f"{text} '{PREFIXES[kind]}'.", f"{here}.id", "invalid_value")
    if kind == "function_call":
        try:
            parsed = json.loads(item["arguments"])
        except (ValueError, TypeError, KeyError):
            parsed = None
        if not isinstance(parsed, dict):
            return shape(f"Invalid '{here}.arguments'.", f"{here}.arguments")
    return None


def unpaired(given: list[Item]) -> Refusal | None:
    """Return the refusal of calls, results and thoughts that stand alone, or None."""
    waiting: list[str] = []
    for index, item in enumerate(given):
        kind = kind_of(item)
        if kind == "function_call":
            waiting.append(item["call_id"])
        elif kind == "function_call_output":
            if item.get("call_id") not in waiting:
                text = "No tool call found for function call output with call_id"
                return shape(f"{text} {item.get('call_id')}.", "input")
            waiting.remove(item["call_id"])
        elif kind == "reasoning":
            after = given[index + 1] if index + 1 < len(given) else {"role": "user"}
            if kind_of(after) != "function_call" and after.get("role") != "assistant":
                text = f"Item '{item.get('id')}' of type 'reasoning' was provided without its"
                return shape(f"{text} required following item.", "input")
    if waiting:
        return shape(f"No tool output found for function call {waiting[0]}.", "input")
    return None


def chat_form(asked: dict[str, Any]) -> dict[str, Any]:
    """Return a request in the form of chat completions, with all that its items stand for."""
    messages: list[dict[str, Any]] = []
    if asked.get("instructions"):
        messages.append({"role": "system", "content": asked["instructions"]})
    # What the model said and called at once, which is one message of chat completions.
    model: dict[str, Any] | None = None
    for item in items(asked):
        kind = kind_of(item)
        if (kind == "message" and item.get("role") != "assistant") or kind not in PREFIXES:
            messages.append({"role": item.get("role"), "content": text_of(item.get("content"))})
            model = None
        elif kind == "function_call_output":
            result = {"role": "tool", "tool_call_id": item.get("call_id")}
            messages.append({**result, "content": text_of(item.get("output"))})
            model = None
        else:
            if model is None or kind == "reasoning":
                model = {"role": "assistant", "content": None}
                messages.append(model)
            if kind == "reasoning":
                model["reasoning_content"] = thought_of(item)
            elif kind == "message":
                model["content"] = (model["content"] or "") + text_of(item.get("content"))
            else:
                function = {"name": item.get("name"), "arguments": item.get("arguments")}
                call = {"id": item.get("call_id"), "type": "function", "function": function}
                model.setdefault("tool_calls", []).append(call)
    # Others run where the model runs, such as `web_search`.
    functions = [tool for tool in asked.get("tools") or [] if tool.get("type") == "function"]
    tools = [{"type": "function", "function": tool} for tool in functions]
    limit = asked.get("max_output_tokens")
    return {
        "model": asked.get("model"),
        "messages": messages,
        "tools": tools,
        "max_completion_tokens": limit,
    }


def items(asked: dict[str, Any]) -> list[Item]:
    """Return the input items of a request; a text alone is the user's."""
    given = asked.get("input") or []
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def kind_of(item: Item) -> str:
    """Return the type of an item; a message need not name it."""
    return str(item.get("type") or "message")


def text_of(content: Any) -> str:
    """Return a text, or the texts of parts, joined."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content)
    return str(content or "")


def thought_of(item: Item) -> str:
    """Return what a reasoning item holds, in the open and encrypted."""
    sealed = base64.b64decode(item.get("encrypted_content") or "").decode()
    return sealed + text_of(item.get("content")) + text_of(item.get("summary"))


def response(completion: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    """Return `completion` as the answer to a Responses request."""
    number = completion["id"].removeprefix("chatcmpl-")
    choice = completion["choices"][0]
    output: list[Item] = []
    if ENCRYPTED in (asked.get("include") or []):
        sealed = base64.b64encode(THOUGHT.encode()).decode()
        thought = {"id": f"rs_model{number}", "type": "reasoning", "summary": []}
        output.append({**thought, "encrypted_content": sealed})
    elif text := choice["message"].get("reasoning_content"):
        # DeepSeek's.
        open_text = [{"type": "reasoning_text", "text": text}]
        thought = {"id": f"rs_model{number}", "type": "reasoning", "summary": []}
        output.append({**thought, "content": open_text})
    if choice["message"]["content"] is not None:
        part = {"type": "output_text", "text": choice["message"]["content"], "annotations": []}
        said = {"id": f"msg_model{number}", "type": "message", "status": "completed"}
        output.append({**said, "role": "assistant", "content": [part]})
    for index, call in enumerate(choice["message"].get("tool_calls") or []):
        called = {"id": f"fc_model{number}_{index}", "type": "function_call", "call_id": call["id"]}
        output.append({**called, **call["function"], "status": "completed"})
    usage = completion["usage"]
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": completion["created"],
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": asked.get("instructions"),
        "model": completion["model"],
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": asked.get("tools") or [],
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage["total_tokens"],
        },
    }


def streamed(answer: dict[str, Any]) -> str:
    """Return a response, or the error in place of one, as the server-sent events of a stream."""
    told = [{"type": "error", **answer}] if answer.get("error") else list(events(answer))
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(told)]
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in numbered)


def events(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what OpenAI tells of `answer` as it comes: text and arguments in halves."""
    begun = {**answer, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(answer["output"]):
        at = {"output_index": index}
        empty = {"status": "in_progress"} if "status" in item else {}
        empty |= {key: type(item[key])() for key in ("content", "arguments") if key in item}
        yield {"type": "response.output_item.added", "item": {**item, **empty}, **at}
        for event in deltas(item):
            yield {**event, "item_id": item["id"], **at}
        yield {"type": "response.output_item.done", "item": item, **at}
    yield {"type": "response.completed", "response": answer}


def deltas(item: Item) -> Iterator[dict[str, Any]]:
    """Yield what is told between the beginning and the end of one item."""
    if item["type"] == "message":
        part, at = item["content"][0], {"content_index": 0}
        text = part["text"]
        yield {"type": "response.content_part.added", "part": {**part, "text": ""}, **at}
        for half in halves(text):
            yield {"type": "response.output_text.delta", "delta": half, "logprobs": [], **at}
        yield {"type": "response.output_text.done", "text": text, "logprobs": [], **at}
        yield {"type": "response.content_part.done", "part": part, **at}
    if item["type"] == "function_call":
        kind, arguments = "response.function_call_arguments", item["arguments"]
        for half in halves(arguments):
            yield {"type": f"{kind}.delta", "delta": half}
        yield {"type": f"{kind}.done", "arguments": arguments, "name": item["name"]}


def halves(text: str) -> tuple[str, str]:
    """Return the first and the second half of `text`."""
    return text[: len(text) // 2], text[len(text) // 2 :]
