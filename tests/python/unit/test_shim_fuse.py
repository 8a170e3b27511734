"""Whatever fails in the package, nanobot's call goes out and what came of it comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nanobot_context import installer, subscribe
from nanobot_context.guard import fuse
from nanobot_context.host.detect import NanobotClasses
from shim_classes import (
    TOO_LONG,
    LLMResponse,
    Message,
    Script,
    call,
    conversation,
    error,
    make_provider,
    shaped,
)

ANSWER = LLMResponse("fine", usage={"prompt_tokens": 5_000, "completion_tokens": 9})
GUARD, EXCHANGE = "nanobot_context.guard.guard.", "nanobot_context.guard.exchange."
FITTING = "nanobot_context.guard.fitting."
WINDOWS, LIVE = "nanobot_context.guard.windows.WindowResolver.", "nanobot_context.guard.telemetry."
LEARNED = "nanobot_context.guard.limits.ProviderLimits."

BEFORE = (
    f"{FITTING}compress",
    f"{FITTING}lift_reflections",
    f"{FITTING}Fitter.window",
    f"{WINDOWS}of",
    f"{WINDOWS}ratio",
    f"{LEARNED}output_of",
    f"{LEARNED}wants_reasoning",
    "nanobot_context.guard.archives.Archives.of",
    "nanobot_context.guard.request.Call.request",
    "nanobot_context.guard.counters.Counters.add_request",
)
"""What is called before a request goes out."""
AFTER = (
    f"{EXCHANGE}count_tokens",
    f"{EXCHANGE}Usage.of",
    f"{EXCHANGE}detect_overflow",
    f"{EXCHANGE}is_answer",
    f"{WINDOWS}could_cut_at",
    f"{WINDOWS}smallest",
    f"{WINDOWS}counted",
    f"{LEARNED}accepted",
    f"{LIVE}Usage.of",
    f"{LIVE}is_wanted",
    f"{LEARNED}counted",
    "nanobot_context.guard.counters.Counters.add_request",
)
"""What is called when an answer is there."""
REFUSED = (
    f"{EXCHANGE}count_tokens",
    f"{EXCHANGE}detect_overflow",
    f"{FITTING}reduce_messages",
    f"{EXCHANGE}log.warning",
    f"{FITTING}lift_reflections",
    f"{FITTING}Fitter.window",
    f"{GUARD}log.error",
    f"{WINDOWS}learn",
    f"{WINDOWS}counted",
    "nanobot_context.recovery.Recovery",
    "nanobot_context.recovery.get_output_limit",
    f"{GUARD}friendly_text",
    "nanobot_context.guard.limits.update_state",
    f"{LIVE}is_wanted",
)
"""What is called when a provider has refused a request."""


class Panic(BaseException):
    """As a panic of the core comes: no `Exception`."""


def fail(monkeypatch: pytest.MonkeyPatch, point: str, failure: type[BaseException]) -> list[str]:
    """Have `point` raise; returns a list that is not empty once it has."""
    reached: list[str] = []

    def broken(*_: Any, **__: Any) -> Any:
        reached.append(point)
        raise failure("a mistake")

    monkeypatch.setattr(point, broken)
    return reached


failures = pytest.mark.parametrize("failure", [ValueError, OSError, Panic])


@failures
@pytest.mark.parametrize("point", BEFORE)
def test_what_fails_before_a_request_sends_it_all_the_same(
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    failure: type[BaseException],
) -> None:
    install(classes)
    # A usage would say that the provider has cut what is not compressed.
    answer = LLMResponse("fine")
    script = Script(answer)
    messages = [
        {"role": "system", "content": "You are nanobot.\n## Workspace\n/nowhere\n"},
        *conversation(20, 300)[1:],
    ]
    reached = fail(monkeypatch, point, failure)
    assert call(make_provider(classes, script), messages=messages) is answer
    assert reached
    assert len(script.sent) == 1


@failures
@pytest.mark.parametrize("point", AFTER)
def test_what_fails_after_an_answer_does_not_cost_it(
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    generation: str,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    failure: type[BaseException],
) -> None:
    install(shaped(classes, generation))
    script = Script(ANSWER)
    reached = fail(monkeypatch, point, failure)
    answer = call(make_provider(classes, script), messages=conversation(20, 300))
    assert answer is ANSWER
    assert len(script.sent) == 1
    assert reached or point.endswith(("detect_overflow", "is_answer"))


@failures
@pytest.mark.parametrize("point", REFUSED)
@pytest.mark.parametrize("raised", [False, True], ids=["response", "exception"])
def test_what_fails_after_a_refusal_hands_on_an_answer_or_the_refusal(
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    failure: type[BaseException],
    raised: bool,
) -> None:
    install(classes)
    refusal = RuntimeError(TOO_LONG) if raised else error(TOO_LONG)
    script = Script(*[refusal] * 4)
    fail(monkeypatch, point, failure)
    provider = make_provider(classes, script)
    try:
        result: Any = call(provider, messages=conversation(8, 150))
    except RuntimeError as given:
        result = given
    friendly = getattr(result, "content", None) or ""
    assert result is refusal or friendly.startswith("The conversation is too long")


UNCOUNTABLE: dict[str, Message] = {
    "a role of a later release": {"role": "control", "content": "x"},
    "no role": {"content": "x"},
    "a name that is no string": {"role": "user", "name": 5, "content": "hi"},
    "bytes": {"role": "user", "content": b"hi"},
    "an object": {"role": "user", "content": object()},
}


@pytest.mark.parametrize("message", UNCOUNTABLE.values(), ids=UNCOUNTABLE.keys())
def test_the_answer_to_a_message_that_cannot_be_counted_comes_back(
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    generation: str,
    message: Message,
) -> None:
    install(shaped(classes, generation), context_window_override=None)
    messages = [message, {"role": "user", "content": "hi"}]
    refusal = error(TOO_LONG)
    script = Script(ANSWER, refusal)
    provider = make_provider(classes, script)
    assert call(provider, messages=messages) is ANSWER
    assert call(provider, messages=messages) is refusal
    assert all(sent is messages for sent in script.sent)


@pytest.mark.parametrize("default", [None, 7, "\ud800"], ids=["none", "a number", "a surrogate"])
def test_a_provider_without_a_usable_default_model_is_asked(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str, default: Any
) -> None:
    install(shaped(classes, generation))
    provider = make_provider(classes, Script(ANSWER))
    provider.get_default_model = None if default is None else lambda: default
    assert call(provider, messages=[{"role": "user", "content": "hi"}]) is ANSWER


@pytest.mark.parametrize("ending", fuse.NOT_OURS)
def test_what_ends_a_task_ends_it(
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    monkeypatch: pytest.MonkeyPatch,
    ending: type[BaseException],
) -> None:
    install(classes)
    fail(monkeypatch, f"{EXCHANGE}Usage.of", ending)
    coroutine = make_provider(classes, Script(ANSWER)).chat(messages=conversation(1, 1))
    with pytest.raises(ending):
        coroutine.send(None)


def test_a_failure_is_logged_once(
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(classes)
    logged: list[str] = []
    monkeypatch.setattr("nanobot_context.log.error", lambda _, what, *__: logged.append(what))
    fail(monkeypatch, f"{EXCHANGE}Usage.of", ValueError)
    provider = make_provider(classes, Script(*[ANSWER] * 3))
    for _ in range(3):
        assert call(provider, messages=conversation(1, 1)) is ANSWER
    assert sorted(logged) == ["read an answer", "report an event"]


def test_the_log_does_not_quote_what_was_said(
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    caplog: pytest.LogCaptureFixture,
) -> None:
    install(classes)
    broken = [*conversation(1, 1), {"role": "SECRET-ROLE", "content": "hello"}]
    assert call(make_provider(classes, Script(ANSWER)), messages=broken) is ANSWER
    assert "could not" in caplog.text
    assert "InvalidMessageError" in caplog.text
    assert "SECRET" not in caplog.text


def test_a_log_that_fails_costs_nothing(
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(classes)
    for name in ("exception", "warning", "error"):
        fail(monkeypatch, f"nanobot_context.log.{name}", OSError)
    fail(monkeypatch, f"{EXCHANGE}Usage.of", ValueError)
    provider = make_provider(classes, Script(ANSWER, error(TOO_LONG), ANSWER))
    assert call(provider, messages=conversation(8, 150)) is ANSWER
    assert call(provider, messages=conversation(8, 150)) is ANSWER


def test_listeners_and_files_that_fail_cost_nothing(
    classes: NanobotClasses, install: Callable[..., installer.Status], tmp_path: Path
) -> None:
    for name in ("nanobot-context", "events"):
        (tmp_path / name).write_text("a file where a folder should be", encoding="utf-8")

    def broken(_: object) -> None:
        raise Panic("a mistake")

    stop = subscribe(broken)
    try:
        install(classes, context_window_override=None, events="events/events.jsonl")
        script = Script(error(TOO_LONG), ANSWER, ANSWER)
        provider = make_provider(classes, script)
        messages = conversation(8, 150)
        assert call(provider, messages=messages) is ANSWER
        assert call(provider, messages=messages) is ANSWER
        assert installer.status().learned
    finally:
        stop()


def test_an_answer_that_is_cancelled_on_its_way_is_cancelled(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes)
    script = Script(asyncio.CancelledError())
    with pytest.raises(asyncio.CancelledError):
        call(make_provider(classes, script), messages=conversation(1, 1))
