"""Reads a model request from the arguments of a call, and repeats the call with other arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from nanobot_context._core import count_tokens
from nanobot_context.guard.fuse import fused
from nanobot_context.guard.limits import name_of
from nanobot_context.guard.trace import Trace
from nanobot_context.history import system_messages
from nanobot_context.host.config import address_of

Message = dict[str, Any]

# `LLMProvider.chat` of every release begins with these, for a provider that declares `*args`.
_CHAT_PARAMETERS = ("messages", "tools", "model", "max_tokens", "temperature")


Send = Callable[[list[Message], int | None], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class State:
    """What nanobot 0.3.5 sends in place of messages where a provider speaks OpenAI's Responses.

    All that was sent and came back before, with thoughts that no message holds or with a summary by
    the provider in place of what the messages still hold; and what is new since then.

    Attributes:
        tokens: What the provider counted of it with its newest answer.
        pending: The messages that came after that.
    """

    tokens: int
    pending: list[Message]


@dataclass(frozen=True, slots=True)
class Request:
    """One model call: its arguments, and how to send it.

    `send` takes the messages and the output limit to send instead; everything else, and the
    original objects where they are passed back, goes out as nanobot gave it.
    """

    messages: list[Message]
    tools: list[dict[str, Any]] | None
    model: str | None
    max_tokens: int | None
    send: Send
    fallbacks: tuple[str, ...] = ()
    """The models that get the same messages when this one fails."""
    endpoint: str = ""
    """The provider's address, where it has been given one."""
    is_shown: bool = False
    """Whether the answer is shown as it comes in."""
    asked: Any = None
    """nanobot's provider, by which is known who asks."""
    state: State | None = None
    """What goes out instead of the messages as long as they are the caller's own list."""
    choice: Any = None
    """The request's `tool_choice`."""
    offer: Callable[[list[dict[str, Any]]], Send] | None = None
    """Returns `send` with other tool schemas; `None` where they cannot be replaced."""
    trace: Trace = field(default_factory=Trace, compare=False, repr=False)
    """What is noted of it."""

    def offering(self, tools: list[dict[str, Any]]) -> Request:
        """Return the same request with other tool schemas."""
        assert self.offer is not None
        return replace(self, tools=tools, send=self.offer(tools))

    def state_for(self, messages: list[Message]) -> State | None:
        """Return the state that goes out in place of `messages`; `None` where these do."""
        return self.state if messages is self.messages else None

    def fixed_tokens(self) -> int:
        """Return the tokens of system messages and tool schemas, which every request has."""
        return count_tokens(system_messages(self.messages), self.model, tools=self.tools)

    @property
    def provider(self) -> str:
        """Whatever names the provider: the model often does, and the address."""
        return f"{self.model or ''} {self.endpoint}"

    @property
    def place(self) -> str:
        """The model with the provider's address, as lessons name it."""
        return name_of(self.model, self.endpoint)

    @property
    def models(self) -> tuple[str | None, ...]:
        """Every model that may get the messages."""
        return (self.model, *self.fallbacks)


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of one call, read and replaced by name however they were passed."""

    names: tuple[str, ...]
    defaults: dict[str, Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def get(self, name: str) -> Any:
        """Return the argument `name`, its default when it was not passed, else `None`."""
        if name in self.kwargs:
            return self.kwargs[name]
        if name in self.names and (index := self.names.index(name)) < len(self.args):
            return self.args[index]
        return self.defaults.get(name)

    def replaced(self, **changes: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with `changes`; an argument keeps the way in which it was passed."""
        args, kwargs = list(self.args), dict(self.kwargs)
        for name, value in changes.items():
            index = self.names.index(name) if name in self.names else len(args)
            if name not in kwargs and index < len(args):
                args[index] = value
            else:
                kwargs[name] = value
        return tuple(args), kwargs

    @property
    def max_tokens(self) -> int | None:
        """The limit for the answer, if it is a number."""
        limit = self.get("max_tokens")
        return limit if isinstance(limit, int) else None

    def _changes(
        self, messages: list[Message], max_tokens: int | None, tools: list[dict[str, Any]] | None
    ) -> dict[str, Any]:
        """Return the arguments that differ from those of this call."""
        changes: dict[str, Any] = {} if tools is None else {"tools": tools}
        if messages is not self.get("messages"):
            changes["messages"] = messages
            context = self.get("provider_context")
            if getattr(context, "conversation_state", None) is not None:
                # It stands for messages that may not be among the new ones (0.3.5).
                changes["provider_context"] = replace(context, conversation_state=None)
        if max_tokens != self.max_tokens:
            changes["max_tokens"] = max_tokens
        return changes

    def _sender(
        self, original: Callable[..., Awaitable[Any]], tools: list[dict[str, Any]] | None = None
    ) -> Send:
        """Return a function that makes this call again with other messages and another limit."""

        def send(messages: list[Message], max_tokens: int | None) -> Awaitable[Any]:
            own: dict[str, Any] = {}
            changes = fused(
                "replace a request", lambda: self._changes(messages, max_tokens, tools), own
            )
            args, kwargs = self.replaced(**changes)
            return original(*args, **kwargs)

        return send

    def request(self, original: Callable[..., Awaitable[Any]], *, provider: Any) -> Request | None:
        """Return this call of `provider` as a request to `original`; `None` without messages."""
        messages = self.get("messages")
        if not isinstance(messages, list):
            return None
        return Request(
            messages=messages,
            tools=self.get("tools") or None,
            model=self.get("model") or _text(provider.get_default_model()),
            max_tokens=self.max_tokens,
            send=self._sender(original),
            fallbacks=_fallbacks(provider),
            endpoint=address_of(provider),
            is_shown=self.get("on_content_delta") is not None,
            asked=provider,
            choice=self.get("tool_choice"),
            offer=functools.partial(self._sender, original),
            state=_state(self.get("provider_context"), provider, self.get("model")),
        )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _state(context: Any, provider: Any, model: Any) -> State | None:
    """Return the state that `provider` resumes; `None` if its size is unknown."""
    state = getattr(context, "conversation_state", None)
    can_resume = getattr(provider, "can_resume_conversation_state", None)
    if state is None or can_resume is None or not can_resume(state, model):
        return None
    payload, pending = getattr(state, "payload", None), getattr(state, "pending_messages", None)
    # Without this key it is a summary alone, of which only nanobot's request for its text is made.
    tokens = payload.get("context_tokens") if isinstance(payload, dict) else None
    if isinstance(tokens, int) and isinstance(pending, list):
        return State(tokens, pending)
    return None


def _fallbacks(provider: Any) -> tuple[str, ...]:
    """Return the models of nanobot's `FallbackProvider` (0.2.0 and later) behind the first."""
    presets = getattr(provider, "_fallback_presets", None) or ()
    models = (getattr(preset, "model", None) for preset in presets)
    return tuple(model for model in models if isinstance(model, str))


def positional_names(function: Callable[..., Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the names behind `self` that `function` takes by position, and all defaults."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    names = tuple(
        parameter.name
        for parameter in parameters
        if parameter.kind
        in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    )
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        names += tuple(name for name in _CHAT_PARAMETERS if name not in names)
    defaults = {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.default is not inspect.Parameter.empty
    }
    return names, defaults
