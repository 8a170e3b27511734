"""Pydantic AI: a model whose requests fit, and a history processor.

agent = Agent(FittingModel("openai:gpt-4o"))

The history stays whole; only what is sent is shortened. Files in a prompt count, and stay in their
places or are left out. Of a response that is shortened stay thoughts, text and calls.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import cache
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import KnownModelName, Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from nanobot_context._core import compress_messages, get_context_window
from nanobot_context.adapters.converted import (
    Converted,
    Recovery,
    content_of,
    parts_of,
    schema,
    text_in,
)
from nanobot_context.archive import Archive
from nanobot_context.guard.exchange import Answer
from nanobot_context.identity import is_same
from nanobot_context.message_texts import texts_of
from nanobot_context.settings import Settings
from nanobot_context.types import Message

__all__ = ["FittingModel", "history_processor"]


class FittingModel(WrapperModel):
    """A model whose requests fit, and are repaired where the server refuses them.

    Instructions and tools count. What a refusal states holds for the requests that follow.

    Args:
        wrapped: The model, or its name as `Agent` takes it.
        context_window: The model's window in tokens; `None` is what is known of it.
        settings: Limits of the compression.
        archive: Where originals of shortened tool results are kept.
    """

    def __init__(
        self,
        wrapped: Model | KnownModelName,
        *,
        context_window: int | None = None,
        settings: Settings | None = None,
        archive: Archive | None = None,
    ) -> None:
        super().__init__(wrapped)
        self._recovery = Recovery(context_window, settings, archive)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Return the response to a request that fits."""

        async def send(given: list[ModelMessage], settings: ModelSettings | None) -> Answer:
            response = await self.wrapped.request(given, settings, model_request_parameters)
            return Answer(response, response.parts, usage={"input_tokens": _read(response)})

        response: ModelResponse = await self._send(
            send, messages, model_settings, model_request_parameters
        )
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncGenerator[StreamedResponse, None]:
        """Yield the stream of a response to a request that fits."""
        async with AsyncExitStack() as stack:

            async def send(given: list[ModelMessage], settings: ModelSettings | None) -> Answer:
                begun = self.wrapped.request_stream(
                    given, settings, model_request_parameters, run_context
                )
                return Answer(await _begun(await stack.enter_async_context(begun)), "…")

            yield await self._send(send, messages, model_settings, model_request_parameters)

    async def _send(
        self,
        send: Any,
        history: list[ModelMessage],
        settings: ModelSettings | None,
        parameters: ModelRequestParameters,
    ) -> Any:
        front = _instructions(history, parameters)
        converted = _converted(history, front)
        limit = (settings or {}).get("max_tokens")

        async def sent(messages: list[Message], max_tokens: int | None) -> Answer:
            given, changed = history, settings
            if not is_same(messages, converted.messages):
                given = _back(converted, messages[len(front) :])
            if max_tokens is not None and max_tokens != limit:
                changed = {**(settings or {}), "max_tokens": max_tokens}
            answer: Answer = await send(given, changed)
            return answer

        tools = [*parameters.function_tools, *parameters.output_tools]
        return await self._recovery.acall(
            sent,
            converted,
            model=self.wrapped.model_name,
            tools=[schema(t.name, t.description, t.parameters_json_schema) for t in tools] or None,
            max_output_tokens=limit,
            endpoint=text_in(self.wrapped, "base_url"),
        )


async def _begun(response: StreamedResponse) -> StreamedResponse:
    """Return a response once it says something: a refusal comes instead of its first word."""
    events = aiter(response)
    read = []
    async for event in events:
        read.append(event)
        part = getattr(event, "part", None)
        if hasattr(event, "delta") or (part is not None and getattr(part, "content", None) != ""):
            break

    async def all_events() -> AsyncIterator[Any]:
        for event in read:
            yield event
        async for event in events:
            yield event

    response.__class__ = _begun_class(type(response))
    vars(response)["nanobot_context_events"] = all_events()
    return response


@cache
def _begun_class(base: Any) -> Any:
    class Begun(base):  # type: ignore[misc]
        nanobot_context_events: AsyncIterator[Any]

        def __aiter__(self) -> AsyncIterator[Any]:
            return self.nanobot_context_events

    Begun.__name__ = base.__name__
    return Begun


def history_processor(
    context_window: int | None = None,
    model: str | None = None,
    *,
    settings: Settings | None = None,
    archive: Archive | None = None,
) -> Callable[[list[ModelMessage]], list[ModelMessage]]:
    """Return a history processor: `capabilities=[ProcessHistory(history_processor(…))]`.

    What it returns is the agent's history from then on: what is shortened stays so. It makes
    requests fit, and cannot repair one, which `FittingModel` does. Tools do not count.

    Args:
        context_window: The model's window in tokens; `None` is what is known of `model`.
        model: The model that tokens are counted for.
        settings: Limits of the compression.
        archive: Where originals of shortened tool results are kept.
    """
    window = get_context_window(model) if context_window is None else context_window

    def process(history: list[ModelMessage]) -> list[ModelMessage]:
        front = _instructions(history, None)
        converted = _converted(history, front)
        fitted = compress_messages(
            converted.messages, window, model, settings=settings, archive=archive
        )
        return _back(converted, fitted[len(front) :])

    return process


def _read(response: ModelResponse) -> int | None:
    # None where no usage is reported, which reads as 0.
    return response.usage.input_tokens or None


def _instructions(
    history: list[ModelMessage], parameters: ModelRequestParameters | None
) -> list[str]:
    parts = getattr(parameters, "instruction_parts", None)
    if parts is not None:
        return ["\n\n".join(part.content for part in parts)] if parts else []
    newest = history[-1] if history else None
    said = newest.instructions if isinstance(newest, ModelRequest) else None
    return [said] if said else []


def _converted(history: list[ModelMessage], front: list[str]) -> Converted[Any]:
    made: list[tuple[Any, Message]] = [
        (None, {"role": "system", "content": text}) for text in front
    ]
    for entry in history:
        parts = [entry] if isinstance(entry, ModelResponse) else entry.parts
        made += [((entry, part), _plain(part)) for part in parts]
    return Converted(made)


def _back(converted: Converted[Any], messages: list[Message]) -> list[ModelMessage]:
    """Return messages as they are said now. Calls stay together with their results."""
    shown: list[Any] = []
    previous = None
    for made_of, now in converted.back(messages):
        entry: Any
        entry, part = made_of or (None, None)
        if now is not None and entry is None:
            if now["role"] == "tool":
                continue  # the result of a call that had none: Pydantic AI makes it, too
            text = texts_of(now.get("content"))
            is_models = now["role"] == "assistant"
            shown.append(
                ModelResponse([TextPart(text)])
                if is_models
                else ModelRequest([UserPromptPart(text)])
            )
        else:
            if now is not None:
                part = _changed(part, now)
            if isinstance(part, ModelResponse):
                shown.append(part)
            elif entry is previous:
                shown[-1] = replace(shown[-1], parts=[*shown[-1].parts, part])
            else:
                shown.append(replace(entry, parts=[part]))
        previous = entry
    return shown


def _plain(part: Any) -> Message:
    """Return a response, or a part of a request, as a message of OpenAI's form."""
    if getattr(part, "tool_name", None):  # a result, or why the call is to be made again
        is_result = isinstance(part, ToolReturnPart)
        content = part.model_response_str() if is_result else part.model_response()
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": content}
    if not isinstance(part, ModelResponse):
        role = "system" if isinstance(part, SystemPromptPart) else "user"
        content = getattr(part, "content", "")
        if not isinstance(content, str):
            # Texts with metadata of the application's, in later releases.
            content = [getattr(one, "content", one) for one in content]
        return {"role": role, "content": content_of(content, _media)}
    said = [one.content for one in part.parts if isinstance(one, TextPart)]
    thoughts = [one for one in part.parts if isinstance(one, ThinkingPart)]
    message: Message = {"role": "assistant", "content": "\n\n".join(said) or None}
    if any(one.signature for one in thoughts):
        message["thinking_blocks"] = [
            {"type": "thinking", "thinking": one.content, "signature": one.signature}
            for one in thoughts
        ]
    elif any(one.content for one in thoughts):
        message["reasoning_content"] = "\n\n".join(one.content for one in thoughts)
    for one in part.parts:
        if isinstance(one, ToolCallPart):
            function = {"name": one.tool_name, "arguments": one.args_as_json_str()}
            call = {"id": one.tool_call_id, "type": "function", "function": function}
            message.setdefault("tool_calls", []).append(call)
    return message


def _media(part: Any) -> Message | None:
    """Return the part of OpenAI's form that counts in place of one that is no text."""
    if isinstance(part, str):
        return None
    if getattr(part, "kind", "") == "cache-point":
        return {"type": "text", "text": ""}
    url = getattr(part, "url", "")
    if isinstance(part, BinaryContent):
        data = base64.b64encode(part.data).decode()
        if part.is_audio:
            return {"type": "input_audio", "input_audio": {"data": data}}
        url = f"data:{part.media_type};base64,{data}"
    if isinstance(part, ImageUrl) or getattr(part, "is_image", False):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"file_data": url}}


def _changed(part: Any, message: Message) -> Any:
    """Return a response, or a part of a request, with what its message says now."""
    content = message["content"]
    if not isinstance(part, ModelResponse):
        is_text = isinstance(content, str)
        return replace(part, content=content if is_text else [*parts_of(content, part.content)])
    calls = {call["id"]: call["function"]["arguments"] for call in message.get("tool_calls") or ()}
    thoughts = [one for one in part.parts if isinstance(one, ThinkingPart)]
    made = [one for one in part.parts if isinstance(one, ToolCallPart)]
    has_thoughts = "reasoning_content" in message or "thinking_blocks" in message
    parts: list[Any] = thoughts if has_thoughts else []
    parts += [TextPart(content)] if content else []
    parts += [
        replace(one, args=calls[one.tool_call_id]) for one in made if one.tool_call_id in calls
    ]
    return replace(part, parts=parts)
