"""LangChain and LangGraph: middleware of `create_agent`, from langchain 1.0 on.

agent = create_agent(model, tools, middleware=[FitContext()])

The agent's state keeps every message; only what is sent is shortened.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    convert_to_messages,
    convert_to_openai_messages,
)
from langchain_core.utils.function_calling import convert_to_openai_tool

from nanobot_context._core import compress_messages, get_context_window
from nanobot_context.adapters.converted import Converted, Recovery, text_in
from nanobot_context.archive import Archive
from nanobot_context.guard.exchange import Answer
from nanobot_context.identity import is_same
from nanobot_context.settings import Settings
from nanobot_context.types import Message

__all__ = ["FitContext", "fit_messages_hook"]

_REASONING = "reasoning_content"
_CALL = "function_call"
_NOTHING = {"type": "text", "text": ""}


class FitContext(AgentMiddleware[Any, Any]):
    """Makes each request of an agent fit, and repairs it where the server refuses it.

    System prompt and tools count. What a refusal states holds for the requests that follow.

    Args:
        context_window: The model's window in tokens; `None` is what is known of it.
        settings: Limits of the compression.
        archive: Where originals of shortened tool results are kept.
    """

    def __init__(
        self,
        *,
        context_window: int | None = None,
        settings: Settings | None = None,
        archive: Archive | None = None,
    ) -> None:
        super().__init__()
        self._recovery = Recovery(context_window, settings, archive)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Return the response to a request that fits."""
        call = _Call(request)

        def send(messages: list[Message], max_tokens: int | None) -> Answer:
            return _answer(handler(call.with_(messages, max_tokens)))

        response: ModelResponse[Any] = self._recovery.call(send, call.converted, **call.options)
        return response

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Return the response to a request that fits."""
        call = _Call(request)

        async def send(messages: list[Message], max_tokens: int | None) -> Answer:
            return _answer(await handler(call.with_(messages, max_tokens)))

        response: ModelResponse[Any] = await self._recovery.acall(
            send, call.converted, **call.options
        )
        return response


def fit_messages_hook(
    context_window: int | None = None, model: str | None = None
) -> Callable[[Any], dict[str, Any]]:
    """Return a hook for `langgraph.prebuilt.create_react_agent(…, pre_model_hook=…)`.

    It makes requests fit, and cannot repair one.

    Args:
        context_window: The model's window in tokens; `None` is what is known of `model`.
        model: The model that tokens are counted for.
    """
    window = get_context_window(model) if context_window is None else context_window

    def hook(state: Any) -> dict[str, Any]:
        converted = _converted(state["messages"])
        return {
            "llm_input_messages": _back(
                converted, compress_messages(converted.messages, window, model)
            )
        }

    return hook


class _Call:
    """One request, with its model and its options."""

    def __init__(self, request: ModelRequest[Any]) -> None:
        self._request = request
        front = [request.system_message] if request.system_message else []
        self._front = len(front)
        self.converted = _converted([*front, *request.messages])
        limit = request.model_settings.get("max_tokens", getattr(request.model, "max_tokens", None))
        self.options: dict[str, Any] = {
            "model": text_in(request.model, "model_name", "model") or None,
            "tools": [convert_to_openai_tool(tool) for tool in request.tools] or None,
            "max_output_tokens": limit if isinstance(limit, int) else None,
            "endpoint": text_in(request.model, "openai_api_base", "anthropic_api_url", "base_url"),
        }

    def with_(self, messages: list[Message], max_tokens: int | None) -> ModelRequest[Any]:
        changes: dict[str, Any] = {}
        if not is_same(messages, self.converted.messages):
            changes["messages"] = _back(self.converted, messages)[self._front :]
        if max_tokens != self.options["max_output_tokens"]:
            changes["model_settings"] = {**self._request.model_settings, "max_tokens": max_tokens}
        return self._request.override(**changes) if changes else self._request


def _answer(response: Any) -> Answer:
    # Middleware that stands nearer to the model may return its message alone.
    message = response.result[-1] if getattr(response, "result", None) else response
    usage = getattr(message, "usage_metadata", None) or {}
    content, calls = (getattr(message, name, None) for name in ("content", "tool_calls"))
    return Answer(response, content, calls, usage=dict(usage))


def _converted(messages: Sequence[BaseMessage]) -> Converted[BaseMessage]:
    return Converted((message, _plain(message)) for message in messages)


def _plain(message: BaseMessage) -> Message:
    plain: Message = convert_to_openai_messages(message)
    reasoning = message.additional_kwargs.get(_REASONING)
    content = plain.get("content")
    if isinstance(message, AIMessage) and isinstance(content, list):
        # OpenAI's Responses have thoughts, and the calls once more, among the content.
        plain["content"] = [part for part in content if not _is_of(part, "reasoning", _CALL)] or ""
        thoughts = [part for part in content if _is_of(part, "reasoning")]
        reasoning = reasoning or (json.dumps(thoughts) if thoughts else None)
    if reasoning:
        plain[_REASONING] = reasoning
    return plain


def _is_of(part: Any, *kinds: str) -> bool:
    return isinstance(part, dict) and part.get("type") in kinds


def _back(converted: Converted[BaseMessage], messages: list[Message]) -> list[Any]:
    shown: list[Any] = []
    for given, now in converted.back(messages):
        if now is None:
            shown.append(given)
            continue
        [made] = convert_to_messages([now])
        if given is not None:
            # The rest of it stays: its id, and what only its provider knows.
            thoughts = [part for part in given.content if _is_of(part, "reasoning")]
            content = made.content
            if thoughts and _REASONING in now:
                said = [{**_NOTHING, "text": content}] if isinstance(content, str) else content
                content = [*thoughts, *(part for part in said if part != _NOTHING)]
            changes: dict[str, Any] = {"content": content}
            if hasattr(given, "tool_calls"):
                changes["tool_calls"] = getattr(made, "tool_calls", [])
            others = dict(given.additional_kwargs)
            others.pop("tool_calls", None)  # the same in the provider's form
            if _REASONING not in now:
                others.pop(_REASONING, None)
            made = given.model_copy(update={**changes, "additional_kwargs": others})
        shown.append(made)
    return shown
