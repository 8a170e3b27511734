"""smolagents: a model whose requests fit, and are repaired where the server refuses them.

agent = CodeAgent(tools=[], model=fitting(OpenAIModel("gpt-4o")))
"""

from __future__ import annotations

import base64
import copy
import json
import struct
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from typing import Any, TypeVar, cast

from smolagents.models import ChatMessage, MessageRole, Model, get_tool_json_schema

from nanobot_context.adapters.converted import (
    Converted,
    Recovery,
    content_of,
    parts_of,
    text_in,
)
from nanobot_context.archive import Archive
from nanobot_context.arguments import check_instance
from nanobot_context.guard.exchange import Answer
from nanobot_context.identity import is_same
from nanobot_context.message_texts import texts_of
from nanobot_context.settings import Settings
from nanobot_context.types import Message

__all__ = ["fitting"]

AnyModel = TypeVar("AnyModel", bound=Model)

# The name of a step's calls; their arguments are in the text.
_STEP = "step"


def fitting(
    model: AnyModel,
    *,
    context_window: int | None = None,
    settings: Settings | None = None,
    archive: Archive | None = None,
) -> AnyModel:
    """Return a copy of `model` whose requests fit, and get through.

    The agent's memory stays whole; only what is sent is shortened. A step's observation counts as
    the result of its call. What a refusal states holds for the requests that follow.

    Args:
        model: Any model of smolagents'. It is not changed.
        context_window: Its window in tokens; `None` is what is known of it.
        settings: Limits of the compression.
        archive: Where originals of shortened observations are kept.

    Raises:
        InvalidArgumentError: `model` is something else.
    """
    check_instance("model", model, Model)
    fitted = copy.copy(model)
    fitted.__class__ = _class_of(cast("Any", type(model)))
    fitted.nanobot_context_recovery = Recovery(context_window, settings, archive)
    return fitted


@cache
def _class_of(base: Any) -> Any:
    own: tuple[type, ...] = (_Fitting,)
    if hasattr(base, "generate_stream"):  # by which an agent knows that a model can
        own = (_FittingStream,)
    return type(base.__name__, (*own, base), {"__module__": base.__module__})


class _Fitting:
    nanobot_context_recovery: Recovery

    def generate(self, messages: list[Any], *args: Any, **kwargs: Any) -> Any:
        def send(given: list[Any], options: dict[str, Any]) -> Answer:
            response = super(_Fitting, self).generate(given, *args, **options)  # type: ignore[misc]
            usage = {"input_tokens": getattr(response.token_usage, "input_tokens", None)}
            return Answer(response, response.content, response.tool_calls, usage=usage)

        return self._send(send, messages, args, kwargs)

    def _send(self, send: Any, given: list[Any], args: tuple[Any, ...], kwargs: Any) -> Any:
        converted = Converted(_plain(given))
        tools = kwargs.get("tools_to_call_from") or (args[2] if len(args) > 2 else None)
        own = getattr(self, "kwargs", None) or {}
        name = next((name for name in _LIMITS if name in own or name in kwargs), "max_tokens")
        limit = own.get(name, kwargs.get(name))
        limit = limit if isinstance(limit, int) else None

        def sent(messages: list[Message], max_tokens: int | None) -> Answer:
            shown, options = given, kwargs
            if not is_same(messages, converted.messages):
                shown = list(_back(converted, messages))
            if max_tokens is not None and max_tokens != limit:
                options = {**kwargs, name: max_tokens}
            answer: Answer = send(shown, options)
            return answer

        client = getattr(self, "client_kwargs", None) or {}
        return self.nanobot_context_recovery.call(
            sent,
            converted,
            model=text_in(self, "model_id") or None,
            tools=[get_tool_json_schema(tool) for tool in tools or ()] or None,
            max_output_tokens=limit,
            endpoint=text_in(self, "api_base") or str(client.get("base_url") or ""),
        )


class _FittingStream(_Fitting):
    def generate_stream(self, messages: list[Any], *args: Any, **kwargs: Any) -> Iterator[Any]:
        def send(given: list[Any], options: dict[str, Any]) -> Answer:
            pieces = super(_FittingStream, self).generate_stream(given, *args, **options)  # type: ignore[misc]
            # A refusal comes in place of the first piece that says something.
            read = []
            for piece in pieces:
                read.append(piece)
                if piece.content or piece.tool_calls:
                    break
            return Answer(chain(read, pieces), "…")

        yield from self._send(send, messages, args, kwargs)


_LIMITS = ("max_completion_tokens", "max_tokens", "max_new_tokens")


def _plain(messages: Iterable[Any]) -> Iterator[tuple[tuple[ChatMessage, ...], Message]]:
    """Yield what each message is made of: a call with the thought before it, which is its own."""
    given = [
        message if isinstance(message, ChatMessage) else ChatMessage.from_dict(dict(message))
        for message in messages
    ]
    steps: list[tuple[ChatMessage, ...]] = []
    for message in given:
        is_call = message.role == MessageRole.TOOL_CALL
        if is_call and steps and [made.role for made in steps[-1]] == [MessageRole.ASSISTANT]:
            steps[-1] += (message,)
        else:
            steps.append((message,))
    call: str | None = None
    for at, made in enumerate(steps):
        message = made[-1]
        if message.role == MessageRole.TOOL_CALL:
            call = f"{_STEP}{at}"
            arguments = json.dumps({"calls": texts_of(message.content)})
            function = {"name": _STEP, "arguments": arguments}
            calls = [{"id": call, "type": "function", "function": function}]
            said = texts_of(made[0].content) if made[1:] else None
            yield made, {"role": "assistant", "content": said, "tool_calls": calls}
            continue
        if message.role == MessageRole.TOOL_RESPONSE and call is not None:
            yield made, {**_one(message, "tool"), "tool_call_id": call}
        else:
            is_result = message.role == MessageRole.TOOL_RESPONSE
            yield made, _one(message, "user" if is_result else message.role.value)
        call = None


def _one(message: ChatMessage, role: str) -> Message:
    return {"role": role, "content": content_of(message.content, _media)}


def _back(
    converted: Converted[tuple[ChatMessage, ...]], messages: list[Message]
) -> Iterator[ChatMessage]:
    for made, now in converted.back(messages):
        if now is None:
            yield from made or ()
            continue
        content = now.get("content")
        if made is None:
            role = MessageRole.TOOL_RESPONSE if now["role"] == "tool" else MessageRole(now["role"])
            yield ChatMessage(role, _text(texts_of(content)))
            continue
        last = made[-1]
        if last.role == MessageRole.TOOL_CALL:
            if content:
                yield ChatMessage(MessageRole.ASSISTANT, _text(texts_of(content)))
            arguments = json.loads(now["tool_calls"][0]["function"]["arguments"])
            yield ChatMessage(last.role, _text(str(arguments.get("calls", arguments))))
            continue
        parts = parts_of(content, last.content)
        shown = (_text(part) if isinstance(part, str) else [part] for part in parts)
        yield ChatMessage(last.role, [*chain.from_iterable(shown)])


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}]


def _media(part: Any) -> Message | None:
    """Return the part of OpenAI's form that counts in place of one that is no text."""
    if not isinstance(part, dict) or part.get("type") == "text":
        return None
    size = getattr(part.get("image"), "size", None)
    if size is None:
        return part
    # The start of a PNG, which says how large it is: a picture of PIL's has no form yet.
    header = struct.pack(">8sI4sII", b"\x89PNG\r\n\x1a\n", 13, b"IHDR", *size)
    data = base64.b64encode(header).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
