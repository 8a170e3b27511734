"""What the shim sends of nanobot's requests: those that fit, and those that are made to."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nanobot_context import count_tokens, installer
from nanobot_context.host.detect import NanobotClasses
from nanobot_context.settings import Settings
from shim_classes import (
    TOO_LONG,
    WINDOW,
    LLMResponse,
    Script,
    call,
    conversation,
    error,
    make_provider,
    shaped,
    with_stream,
)


def test_a_request_that_fits_goes_out_as_the_same_objects(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    answer = LLMResponse("fine")
    script = Script(answer)
    messages = conversation(2, 10)
    assert call(make_provider(classes, script), messages=messages) is answer
    assert script.sent[0] is messages


def test_a_request_that_is_too_long_is_compressed_and_the_callers_list_is_not(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    script = Script(LLMResponse("fine"))
    messages = conversation(20, 300)
    before = copy.deepcopy(messages)
    call(make_provider(classes, script), messages=messages, max_tokens=500)
    assert messages == before
    assert script.sent[0][0] == messages[0]
    assert script.sent[0][-1] == messages[-1]
    assert len(str(script.sent[0])) < len(str(messages))


def test_a_request_of_which_nothing_is_left_to_cut_is_sent(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    answer = LLMResponse("fine")
    script = Script(answer)
    messages = [*conversation(5, 300)[:-1], {"role": "user", "content": "alpha " * 3 * WINDOW}]
    assert call(make_provider(classes, script), messages=messages) is answer
    assert script.sent[0][0] == messages[0]
    assert script.sent[0][-1] == messages[-1]
    others = [count_tokens(sent[1:-1]) for sent in (script.sent[0], messages)]
    assert others[0] < 600 < others[1]


def test_what_cannot_be_made_to_fit_is_told_in_plain_words_when_it_was_refused(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    script = Script(error(TOO_LONG))
    messages = [{"role": "user", "content": "alpha " * 3 * WINDOW}]
    response = call(make_provider(classes, script), messages=messages)
    assert script.sent == [messages]
    assert response.finish_reason == "error"
    assert "Shorten it or split it" in response.content


def test_an_error_that_is_no_overflow_comes_back_as_the_same_object(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    for text in ("Error calling LLM: invalid api key", "Error: Rate limit reached, try again"):
        answer = error(text)
        script = Script(answer)
        assert call(make_provider(classes, script), messages=conversation(2, 10)) is answer


def test_an_answer_that_talks_about_an_overflow_is_an_answer(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    answer = LLMResponse(TOO_LONG)
    script = Script(answer)
    assert call(make_provider(classes, script), messages=conversation(2, 10)) is answer


def test_an_exception_that_is_no_overflow_passes_through(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes)
    with pytest.raises(KeyError, match="x"):
        call(make_provider(classes, Script(KeyError("x"))), messages=conversation(2, 10))


def test_cancelling_passes_through(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    script = Script(asyncio.CancelledError())
    with pytest.raises(asyncio.CancelledError):
        call(make_provider(classes, script), messages=conversation(2, 10))


def test_arguments_may_come_by_position(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes)
    script = Script(error(TOO_LONG), LLMResponse("fine"))
    call(make_provider(classes, script), conversation(8, 150), None, "gpt-4o", 100)
    assert script.limits == [100, 100]
    assert len(str(script.sent[1])) < len(str(script.sent[0]))


def test_a_window_of_zero_only_repairs(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    install(shaped(classes, generation), context_window_override=0)
    script = Script(error(TOO_LONG), LLMResponse("fine"))
    messages = conversation(20, 300)
    call(make_provider(classes, script), messages=messages)
    assert script.sent[0] is messages
    assert len(str(script.sent[1])) < len(str(messages))


def test_a_mistake_of_ours_sends_nanobots_own_request(
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise ValueError("a bug")

    monkeypatch.setattr("nanobot_context.guard.fitting.compress", broken)
    install(classes)
    script = Script(LLMResponse("fine"))
    messages = conversation(20, 300)
    call(make_provider(classes, script), messages=messages)
    assert script.sent[0] is messages


def test_the_smallest_window_of_a_chain_of_models_counts(
    classes: NanobotClasses, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(installer, "load_classes", lambda: with_stream(classes))
    monkeypatch.setattr(installer, "nanobot_config_path", lambda: tmp_path / "config.json")
    installer.install(Settings())
    try:
        provider = make_provider(classes, script := Script(*[LLMResponse("fine")] * 2))
        messages = conversation(20, 900)
        call(provider, messages=messages)
        provider._fallback_presets = [SimpleNamespace(model="gpt-3.5-turbo")]
        call(provider, messages=messages)
    finally:
        installer.uninstall()
    alone, in_chain = script.sent
    assert alone is messages
    assert count_tokens(in_chain, "gpt-4o") <= 0.85 * 16_385 < count_tokens(messages, "gpt-4o")


def test_tool_schemas_stay_within_their_share_where_that_is_set(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    def tool(name: str) -> dict[str, Any]:
        function = {"name": name, "description": "Do it. " + f"{name} and more of it " * 400}
        return {"type": "function", "function": function}

    tools, messages = [tool("one"), tool("two"), tool("three")], conversation(2, 10)
    install(shaped(classes, generation), tool_schema_limit=0.1)
    script = Script(error(TOO_LONG), LLMResponse("fine"))
    before = copy.deepcopy(tools)
    call(make_provider(classes, script), messages=messages, tools=tools)
    assert tools == before
    # A repair sends the same ones.
    assert script.tools[0] == script.tools[1]
    assert [one["function"]["description"] for one in script.tools[0]] == ["Do it."] * 3
    assert count_tokens([], "gpt-4o", tools=script.tools[0]) <= WINDOW * 0.1
    installer.uninstall()
    install(shaped(classes, generation))
    script = Script(LLMResponse("fine"))
    call(make_provider(classes, script), messages=messages, tools=tools)
    assert script.tools[0] is tools
