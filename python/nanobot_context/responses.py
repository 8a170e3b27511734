"""Converts conversations to OpenAI Responses items; tells when to send an earlier response's id.

`to_response_items` makes a stateless request: everything the model is to know is sent each time.
`previous_response` says when the provider's own memory of the conversation can be used in place of
it, and `previous_response_fallback` what to do when that went wrong.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from nanobot_context.arguments import check_mappings, check_messages, invalid
from nanobot_context.errors import InvalidArgumentError
from nanobot_context.history import (
    answers_in,
    call_id,
    drop_duplicate_tail,
    function_of,
    leading_system,
    summary_message,
    tool_calls_of,
)
from nanobot_context.json_text import json_text
from nanobot_context.overflow import prompt_overflow
from nanobot_context.types import Message

if TYPE_CHECKING:
    from nanobot_context.summary.record import Summary

__all__ = [
    "Fallback",
    "PreviousResponse",
    "from_response_items",
    "previous_response",
    "previous_response_fallback",
    "to_response_items",
]

Item = dict[str, Any]

_MESSAGE_ROLES = ("system", "developer", "user", "assistant")
_TEXT_PARTS = ("text", "input_text", "output_text")
# `HISTORY_LIMIT` of document 003.
_HISTORY_LIMIT = 20
# Where a response can be found again by its id: OpenAI, and the relay that document 003 uses.
_KEEPS_RESPONSES = ("api.openai.com", "nf.video")
_YES = ("1", "true", "yes", "on")


def to_response_items(
    messages: Sequence[Mapping[str, Any]],
    *,
    summaries: Iterable[Summary | str] = (),
    current: Sequence[Mapping[str, Any]] = (),
) -> list[Item]:
    """Return `messages` and `current` as new items for `input`, with everything in them.

    A call becomes a `function_call` only where a result follows it, and a result a
    `function_call_output` only where its call does; each call is answered once. Thoughts have no
    form that another request may hold, and messages without content say nothing: both are left
    out. Costs O(messages).

    Args:
        messages: What is shown of the conversation; not what `summaries` cover.
        summaries: Shown as system messages behind leading ones; blank ones are left out.
        current: The messages of the present request. Where `messages` ends with them already, they
            are not doubled: see `drop_duplicate_tail`.

    Raises:
        InvalidArgumentError: A part or the arguments of a call contain themselves, or are nested
            too deeply to be written as JSON.

    Source: document 003, `build_stateless_items`, which took the last user message away whether
    or not it was the current one.
    """
    given, present = check_messages("messages", messages), check_messages("current", current)
    if isinstance(summaries, str | bytes) or not isinstance(summaries, Iterable):
        raise invalid("summaries", "a list of summaries or texts", summaries)
    texts = []
    for one in summaries:
        text = one if isinstance(one, str) else getattr(one, "text", None)
        if not isinstance(text, str):
            raise invalid("summaries", "a list of summaries or texts", one)
        texts.append(text)
    shown = [summary_message(text) for text in texts if text.strip()]
    front = leading_system(given)
    rest = drop_duplicate_tail(given[front:], present)
    every = [*given[:front], *shown, *rest, *present]
    answers = answers_in(every)
    answered = set(answers.values())
    items: list[Item] = []
    for at, message in enumerate(every):
        role = message.get("role")
        content = message.get("content")
        if role in _MESSAGE_ROLES:
            is_output = role == "assistant"
            if parts := list(_to_parts(content, is_output=is_output)):
                items.append({"type": "message", "role": role, "content": parts})
            calls = enumerate(tool_calls_of(message))
            items += [_call_item(call) for nth, call in calls if (at, nth) in answered]
        elif at in answers:
            caller, nth = answers[at]
            items.append(_result_item(message, tool_calls_of(every[caller])[nth]))
    return items


def _call_item(call: Any) -> Item:
    id_ = call_id(call)
    if isinstance(custom := call.get("custom"), dict):
        name, text = custom.get("name"), custom.get("input")
        return {"type": "custom_tool_call", "call_id": id_, "name": name or "", "input": text or ""}
    function = function_of(call)
    arguments = function.get("arguments")
    return {
        "type": "function_call",
        "call_id": id_,
        "name": function.get("name") or "",
        "arguments": arguments if isinstance(arguments, str) else _written(arguments or {}),
    }


def _result_item(message: Message, call: Any) -> Item:
    kind = "custom_tool_call_output" if "custom" in call else "function_call_output"
    output: Any = list(_to_parts(message.get("content"), is_output=False))
    if all(part["type"] == "input_text" for part in output):
        # Not every server that speaks this API takes parts here.
        output = "\n".join(part["text"] for part in output)
    return {"type": kind, "call_id": call_id(call), "output": output}


def _to_parts(content: Any, *, is_output: bool) -> Iterator[Item]:
    text_kind = "output_text" if is_output else "input_text"
    for part in content if isinstance(content, list) else [content]:
        kind = part.get("type") if isinstance(part, dict) else None
        text = part.get("text") if kind in _TEXT_PARTS else part
        if isinstance(text, str):
            if text:
                yield {"type": text_kind, "text": text}
        elif kind == "refusal" and is_output:
            yield {"type": "refusal", "refusal": part.get("refusal") or ""}
        elif is_output and part is not None:
            # The API takes only texts of an assistant.
            yield {"type": text_kind, "text": f"[{kind or 'part'} left out]"}
        elif part is not None:
            yield _media(part) or {"type": text_kind, "text": _written(part)}


def _written(value: Any) -> str:
    try:
        return json_text(value)
    except (ValueError, RecursionError) as error:
        problem = f"`messages` cannot be written as JSON: {error}"
        raise InvalidArgumentError(problem, argument="messages") from None


def _media(part: Any) -> Item | None:
    """Return an image or a file as an item's part; `None` for what it has no part for."""
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in ("input_image", "input_file", "input_audio"):
        return dict(part)
    if kind == "image_url":
        image = part.get("image_url")
        image = {"url": image} if isinstance(image, str) else image
        if isinstance(image, dict) and isinstance(image.get("url"), str):
            detail = {"detail": image["detail"]} if "detail" in image else {}
            return {"type": "input_image", "image_url": image["url"], **detail}
    if kind == "file" and isinstance(part.get("file"), dict):
        return {"type": "input_file", **part["file"]}
    return None


def from_response_items(items: Iterable[Mapping[str, Any]]) -> list[Message]:
    """Return items as new chat messages.

    The calls behind each other, and an assistant's text directly before them, make one message, as
    they did before `to_response_items`. Thoughts, references and calls of the provider's own tools
    are left out: chat messages have no form for them.
    """
    if not isinstance(items, Iterable):
        raise invalid("items", "a list of dicts", items)
    given: list[Any] = list(items)
    check_mappings("items", given)
    messages: list[Message] = []
    previous = None
    for item in given:
        kind = item.get("type") or ("message" if "role" in item else None)
        if kind == "message":
            content = _from_parts(item.get("content"))
            messages.append({"role": item.get("role"), "content": content})
        elif kind in ("function_call", "custom_tool_call"):
            joins = previous in ("function_call", "custom_tool_call") or (
                previous == "message" and messages[-1]["role"] == "assistant"
            )
            if not joins:
                messages.append({"role": "assistant", "content": None})
            messages[-1].setdefault("tool_calls", []).append(_from_call(item, kind))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            output = _from_parts(item.get("output"))
            id_ = item.get("call_id")
            messages.append({"role": "tool", "tool_call_id": id_, "content": output})
        else:
            continue
        previous = kind
    return messages


def _from_call(item: Item, kind: str) -> Item:
    if kind == "custom_tool_call":
        custom = {"name": item.get("name"), "input": item.get("input")}
        return {"id": item.get("call_id"), "type": "custom", "custom": custom}
    function = {"name": item.get("name"), "arguments": item.get("arguments")}
    return {"id": item.get("call_id"), "type": "function", "function": function}


def _from_parts(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    parts = [_from_part(part) for part in content]
    if len(parts) == 1 and isinstance(parts[0], dict) and parts[0].get("type") == "text":
        return parts[0]["text"]
    return parts


def _from_part(part: Any) -> Any:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in _TEXT_PARTS:
        return {"type": "text", "text": part.get("text") or ""}
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        detail = {"detail": part["detail"]} if "detail" in part else {}
        return {"type": "image_url", "image_url": {"url": part["image_url"], **detail}}
    if kind == "input_file":
        file = {key: value for key, value in part.items() if key != "type"}
        return {"type": "file", "file": file}
    return part


@dataclass(frozen=True, slots=True)
class PreviousResponse:
    """Whether a request names the response before it.

    Attributes:
        response_id: The id to send as `previous_response_id`, with what came after that response;
            `None` for a stateless request.
        history_limit: Messages of the conversation that a stateless request holds; 0 with an id.
        reason: Why: `usable`, `stateless` (a history limit is set), `disabled`, `provider`,
            `endpoint`, or `no_response` (the last answer has no id).
    """

    response_id: str | None
    history_limit: int
    reason: Literal["usable", "stateless", "disabled", "provider", "endpoint", "no_response"]


def previous_response(
    messages: Sequence[Mapping[str, Any]],
    *,
    history_limit: int = _HISTORY_LIMIT,
    provider: str = "gpt",
    base_url: str | None = None,
    disabled: bool = False,
    allow_proxy: bool | None = None,
) -> PreviousResponse:
    """Return whether the next request can name the last response in place of the conversation.

    It can where the history limit is 0, the provider keeps responses, and the newest message of the
    assistant makes no calls and has an id in `metadata.response_id` or `metadata.responseId`. An
    older response is not used: the provider has not seen what came after it.

    Args:
        messages: The conversation; only its newest assistant message is looked at.
        history_limit: Messages of a stateless request; anything but 0 asks for one.
        provider: `gpt` or `openai`, in any case; others have no such ids.
        base_url: Where requests go; `None` or empty is OpenAI.
        disabled: Whether ids have failed in this session: see `Fallback.DISABLE`.
        allow_proxy: Whether other addresses keep responses, too. `None` reads the environment's
            `ALLOW_PREV_ID_FOR_PROXY`: 1, true, yes or on.

    Source: document 003, the mode "prev_id".
    """
    if allow_proxy is None:
        allow_proxy = os.environ.get("ALLOW_PREV_ID_FOR_PROXY", "").strip().lower() in _YES
    if history_limit != 0:
        return PreviousResponse(None, history_limit, "stateless")
    if disabled:
        return PreviousResponse(None, _HISTORY_LIMIT, "disabled")
    if provider.strip().lower() not in ("gpt", "openai"):
        return PreviousResponse(None, _HISTORY_LIMIT, "provider")
    if not (allow_proxy or _keeps_responses(base_url or "")):
        return PreviousResponse(None, _HISTORY_LIMIT, "endpoint")
    response_id = _last_response_id(messages)
    if response_id is None:
        return PreviousResponse(None, _HISTORY_LIMIT, "no_response")
    return PreviousResponse(response_id, 0, "usable")


def _keeps_responses(base_url: str) -> bool:
    url = base_url.strip().lower()
    if not url:
        return True
    try:
        host = urlsplit(url if "//" in url else f"//{url}").hostname or ""
    except ValueError:
        return False
    return any(host == known or host.endswith(f".{known}") for known in _KEEPS_RESPONSES)


def _last_response_id(messages: Sequence[Mapping[str, Any]]) -> str | None:
    answers = (message for message in reversed(messages) if message.get("role") == "assistant")
    last: Mapping[str, Any] = next(answers, {})
    metadata = last.get("metadata")
    if tool_calls_of(last) or not isinstance(metadata, dict):
        return None
    id_ = metadata.get("response_id") or metadata.get("responseId")
    return id_ if isinstance(id_, str) else None


class Fallback(Enum):
    """What to do after a request was refused."""

    DISABLE = "disable"
    """Name no response in this session any more; send the conversation again, stateless."""
    PENDING = "pending"
    """Send it stateless, with the calls that wait for results and their results, each once."""
    PLAIN_TEXT = "plain_text"
    """Send content as plain text, not in parts, in this session."""
    SUMMARISE = "summarise"
    """Too long: summarise and send again, and where that is no help go down `history_ladder`."""


def previous_response_fallback(error: BaseException | str) -> Fallback | None:
    """Return what to do after `error`, or `None` where another request is no help.

    Args:
        error: What was raised, or the text of a response that ended with the status `failed`.

    Source: document 003, the attempts of `v3/ai_client`. New here: a response that is not found.
    """
    if not isinstance(error, BaseException | str):
        raise invalid("error", "an exception or a text", error)
    text = str(error).lower()
    names_id = "previous_response_id" in text
    if names_id and ("unsupported parameter" in text or "invalid parameter" in text):
        return Fallback.DISABLE
    if "previous_response_not_found" in text or (
        "previous response with id" in text and "not found" in text
    ):
        return Fallback.DISABLE
    if "no tool call found" in text and (
        "function call output" in text or "function_call_output" in text
    ):
        return Fallback.PENDING
    if "input_text" in text and ("invalid value" in text or "invalid_value" in text):
        return Fallback.PLAIN_TEXT
    return None if prompt_overflow(error) is None else Fallback.SUMMARISE
