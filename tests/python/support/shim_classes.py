"""Classes shaped like nanobot's, which tests bend one point at a time, and a scripted provider."""

from __future__ import annotations

import asyncio
import types
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from nanobot_context.host.detect import NanobotClasses

Message = dict[str, Any]

WINDOW = 8_000
TOO_LONG = (
    "Error calling LLM: litellm.BadRequestError: OpenAIException - This model's maximum context "
    "length is 8000 tokens. However, your messages resulted in 9000 tokens. Please reduce the "
    "length of the messages."
)


@dataclass
class LLMResponse:
    content: str | None
    tool_calls: list[Any] = field(default_factory=list)
    finish_reason: str = "stop"
    usage: dict[str, int] = field(default_factory=dict)


@dataclass
class Session:
    key: str = "cli:direct"
    messages: list[Message] = field(default_factory=list)

    def get_history(self, max_messages: int = 500) -> list[Message]:
        return [dict(message) for message in self.messages[-max_messages:]]


def make_classes() -> NanobotClasses:
    """Return fresh classes of the "provider-chat" shape, so that no test sees another's patches."""

    class LLMProvider(ABC):
        @abstractmethod
        async def chat(
            self,
            messages: list[Message],
            tools: list[Any] | None = None,
            model: str | None = None,
            max_tokens: int = 4096,
            temperature: float = 0.7,
        ) -> LLMResponse: ...

        @abstractmethod
        def get_default_model(self) -> str: ...

    class SubagentManager:
        def __init__(self, provider: Any) -> None:
            self.provider = provider
            self.announced: list[str] = []

        async def _run_subagent(
            self, task_id: str, task: str, label: str, origin: dict[str, str]
        ) -> None:
            try:
                response = await self.provider.chat(messages=[{"role": "user", "content": task}])
                self.announced.append(f"ok: {response.content}")
            except Exception as error:
                self.announced.append(f"error: {error}")

    session = types.new_class("Session", (), {}, lambda space: space.update(_own(Session)))
    return NanobotClasses(LLMProvider, LLMResponse, SubagentManager, dataclass(session))


def _own(cls: type) -> dict[str, Any]:
    names = ("__annotations__", "get_history", "key")
    own = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
    return {**own, "messages": field(default_factory=list), "__module__": cls.__module__}


def safe(words: str) -> Callable[..., Awaitable[Any]]:
    """Return nanobot's method around `chat`, which makes a response of any exception."""

    async def safe_chat(self: Any, **kwargs: Any) -> Any:
        try:
            return await self.chat(**kwargs)
        except Exception as error:
            return LLMResponse(f"{words}: {error}", finish_reason="error")

    return safe_chat


def with_safe_chat(classes: NanobotClasses) -> NanobotClasses:
    """Turn the classes into the shape of 0.1.4.post5."""
    classes.provider._safe_chat = safe("Error calling LLM")  # type: ignore[attr-defined]
    return classes


def with_stream(classes: NanobotClasses) -> NanobotClasses:
    """Turn the classes into the shape of 0.1.4.post6 and later."""
    classes.provider._safe_chat_stream = safe("Error")  # type: ignore[attr-defined]
    return with_safe_chat(classes)


def shaped(classes: NanobotClasses, generation: str) -> NanobotClasses:
    shapes = {"safe-chat": with_safe_chat, "safe-chat-stream": with_stream}
    return shapes[generation](classes) if generation in shapes else classes


class Script:
    """What a scripted provider answers, and what it was sent."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.sent: list[list[Message]] = []
        self.limits: list[int] = []
        self.tools: list[Any] = []

    def next(self, messages: list[Message], max_tokens: int) -> Any:
        self.sent.append(messages)
        self.limits.append(max_tokens)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def make_provider(classes: NanobotClasses, script: Script) -> Any:
    class Scripted(classes.provider):  # type: ignore[name-defined, misc]
        async def chat(
            self,
            messages: list[Message],
            tools: list[Any] | None = None,
            model: str | None = None,
            max_tokens: int = 4096,
            temperature: float = 0.7,
        ) -> Any:
            script.tools.append(tools)
            return script.next(messages, max_tokens)

        def get_default_model(self) -> str:
            return "gpt-4o"

    return Scripted()


def streaming_provider(classes: NanobotClasses, script: Script) -> Any:
    """Return a provider whose answers are shown as they come in."""

    class Streaming(classes.provider):  # type: ignore[name-defined, misc]
        async def chat(
            self, messages: list[Message], max_tokens: int = 4096, on_content_delta: Any = None
        ) -> Any:
            return script.next(messages, max_tokens)

        def get_default_model(self) -> str:
            return "gpt-4o"

    return Streaming()


def call(provider: Any, *args: Any, **kwargs: Any) -> Any:
    async def run() -> Any:
        names = ("_safe_chat_stream", "_safe_chat", "chat")
        chat: Callable[..., Awaitable[Any]] = next(
            getattr(provider, name) for name in names if hasattr(provider, name)
        )
        return await chat(*args, **kwargs)

    return asyncio.run(run())


def error(text: str) -> LLMResponse:
    return LLMResponse(text, finish_reason="error")


def conversation(rounds: int, words: int) -> list[Message]:
    messages: list[Message] = [{"role": "system", "content": "You are nanobot."}]
    for number in range(rounds):
        messages.append({"role": "user", "content": f"question {number}: " + "alpha " * words})
        messages.append({"role": "assistant", "content": f"answer {number}: " + "beta " * words})
    messages.append({"role": "user", "content": "And what was the first question?"})
    return messages


def consolidation(entries: int, words: int) -> list[Message]:
    """Return what nanobot asks a model to remember, with so many entries of so many words."""
    lines = "\n".join(
        f"[2026-02-13T10:{number:02}] USER: entry {number} " + "delta " * words
        for number in range(entries)
    )
    prompt = (
        "Process this conversation and call the save_memory tool with your consolidation.\n\n"
        f"## Current Long-term Memory\n{'The user likes tea. ' * 40}\n\n"
        f"## Conversation to Process\n{lines}"
    )
    system = "You are a memory consolidation agent. Call the save_memory tool."
    return [{"role": "system", "content": system}, {"role": "user", "content": prompt}]
