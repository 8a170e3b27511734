"""Requests of nanobot 0.3.5 that go on from a state, which goes out instead of the messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from nanobot_context import count_tokens, installer
from nanobot_context.host.detect import NanobotClasses
from shim_classes import (
    WINDOW,
    LLMResponse,
    Message,
    Script,
    call,
    conversation,
    error,
    with_stream,
)

TOO_LONG = "Your input exceeds the context window of this model."


@dataclass
class State:
    payload: dict[str, Any]
    pending_messages: list[Message] = field(default_factory=list)


@dataclass
class Context:
    conversation_state: State | None


def make_provider(classes: NanobotClasses, script: Script, states: list[State | None]) -> Any:
    """Return a provider that speaks Responses and notes in `states` what it goes on from."""

    class Going(classes.provider):  # type: ignore[name-defined, misc]
        async def chat(
            self, messages: list[Message], *, max_tokens: int, provider_context: Context
        ) -> Any:
            states.append(provider_context.conversation_state)
            return script.next(messages, max_tokens)

        def get_default_model(self) -> str:
            return "gpt-4o"

        def can_resume_conversation_state(self, state: State, model: str | None) -> bool:
            return True

    return Going()


def counted(tokens: int) -> LLMResponse:
    return LLMResponse("fine", usage={"prompt_tokens": tokens, "completion_tokens": 1})


def state_of(tokens: int) -> State:
    return State({"items": [], "context_tokens": tokens}, conversation(0, 0))


def test_a_state_that_does_not_fit_is_dropped_although_the_messages_fit(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(with_stream(classes))
    script, states = Script(LLMResponse("fine")), list[State | None]()
    messages = conversation(8, 150)
    context = Context(state_of(WINDOW))
    provider = make_provider(classes, script, states)
    call(provider, messages=messages, max_tokens=500, provider_context=context)
    assert script.sent == [messages]
    assert states == [None]
    assert context.conversation_state is not None


def test_a_state_that_fits_goes_out_although_the_messages_do_not_fit(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    # The provider made a summary of what it had, and goes on from that.
    install(with_stream(classes))
    script, states = Script(counted(WINDOW // 4)), list[State | None]()
    messages = conversation(20, 300)
    context = Context(state_of(WINDOW // 4))
    provider = make_provider(classes, script, states)
    call(provider, messages=messages, max_tokens=500, provider_context=context)
    assert script.sent[0] is messages
    assert states == [context.conversation_state]


@pytest.mark.parametrize("payload", [{}, {"context_tokens": None}])
def test_a_state_of_unknown_size_is_dropped_with_messages_that_are_compressed(
    classes: NanobotClasses, install: Callable[..., installer.Status], payload: dict[str, Any]
) -> None:
    install(with_stream(classes))
    script, states = Script(LLMResponse("fine")), list[State | None]()
    context = Context(State(payload))
    provider = make_provider(classes, script, states)
    call(provider, messages=conversation(20, 300), max_tokens=500, provider_context=context)
    assert states == [None]


def test_what_is_counted_of_a_state_says_nothing_of_how_the_provider_counts(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(with_stream(classes))
    states: list[State | None] = []
    script = Script(*[counted(6_000)] * 5, LLMResponse("fine"))
    provider = make_provider(classes, script, states)
    messages = conversation(10, 150)
    for _ in range(5):
        context = Context(state_of(6_000))
        call(provider, messages=messages, max_tokens=500, provider_context=context)
    messages = conversation(20, 150)
    assert count_tokens(messages) > WINDOW * 0.7
    call(provider, messages=messages, max_tokens=500, provider_context=Context(None))
    assert script.sent[-1] is messages


def test_a_state_that_was_refused_is_not_sent_again(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(with_stream(classes), context_window_override=None)
    states: list[State | None] = []
    script = Script(error(TOO_LONG), *[LLMResponse("fine")] * 2)
    provider = make_provider(classes, script, states)
    for _ in range(2):
        context = Context(state_of(90_000))
        messages = conversation(8, 150)
        call(provider, messages=messages, max_tokens=500, provider_context=context)
    assert states == [state_of(90_000), None, None]


def test_a_prompt_that_the_provider_made_a_summary_of_was_not_cut(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(with_stream(classes))
    answer = counted(1_100)
    answer.provider_compaction_applied = True  # type: ignore[attr-defined]
    script, states = Script(answer), list[State | None]()
    messages = conversation(20, 150)
    provider = make_provider(classes, script, states)
    call(provider, messages=messages, max_tokens=500, provider_context=Context(None))
    assert script.sent == [messages]
