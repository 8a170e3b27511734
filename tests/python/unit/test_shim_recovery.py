"""How the shim repairs what the provider refuses, and what it learns of it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from nanobot_context import count_tokens, installer
from nanobot_context.errors import ContextOverflowError
from nanobot_context.guard.guard import subagent
from nanobot_context.host.detect import NanobotClasses
from shim_classes import (
    TOO_LONG,
    WINDOW,
    LLMResponse,
    Message,
    Script,
    call,
    conversation,
    error,
    make_provider,
    shaped,
    streaming_provider,
    with_stream,
)


def test_an_overflow_is_repaired_by_one_smaller_request(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    answer = LLMResponse("fine")
    script = Script(error(TOO_LONG), answer)
    messages = conversation(8, 150)
    assert call(make_provider(classes, script), messages=messages) is answer
    assert len(script.sent) == 2
    assert len(str(script.sent[1])) < len(str(script.sent[0]))
    assert script.sent[1][-1] == messages[-1]


def test_an_overflow_that_is_raised_is_repaired_too(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    answer = LLMResponse("fine")
    script = Script(RuntimeError(TOO_LONG), answer)
    assert call(make_provider(classes, script), messages=conversation(8, 150)) is answer


@dataclass
class Structured(LLMResponse):
    """An error as nanobot 0.2.2 and later have it."""

    error_status_code: int | None = None
    error_code: str | None = None


@pytest.mark.parametrize(
    "said", [{"error_status_code": 413}, {"error_code": "context_length_exceeded"}]
)
def test_an_error_whose_body_says_nothing_is_known_by_what_came_with_it(
    classes: NanobotClasses, install: Callable[..., installer.Status], said: dict[str, Any]
) -> None:
    install(classes)
    answer = LLMResponse("fine")
    refusal = Structured("Error: {}", finish_reason="error", **said)
    script = Script(refusal, answer)
    assert call(make_provider(classes, script), messages=conversation(8, 150)) is answer


def test_three_smaller_requests_are_tried(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    answer = LLMResponse("fine")
    script = Script(*[error(TOO_LONG)] * 3, answer)
    messages = conversation(8, 150)
    assert call(make_provider(classes, script), messages=messages) is answer
    sizes = [count_tokens(sent) for sent in script.sent]
    assert sizes == sorted(set(sizes), reverse=True)
    assert script.sent[-1][0] == messages[0]
    assert script.sent[-1][-1] == messages[-1]
    assert all(0.5 * before < after for before, after in pairwise(sizes))


def test_what_is_refused_again_and_again_ends_in_a_friendly_error_without_digits(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    script = Script(*[error(TOO_LONG)] * 4)
    response = call(make_provider(classes, script), messages=conversation(8, 150))
    assert script.answers == []
    assert response.finish_reason == "error"
    assert "Send /new to clear the session" in response.content
    assert not any(char.isdigit() for char in response.content)


def test_a_chinese_conversation_gets_the_chinese_text(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    messages = conversation(2, 20)
    for message in messages:
        if message["role"] == "user":
            message["content"] = "请继续整理这些资料，谢谢。" * 30
    script = Script(*[error(TOO_LONG)] * 4)
    response = call(make_provider(classes, script), messages=messages)
    assert response.content == (
        "对话历史过长，自动压缩后仍然超出模型限制。请发送 /new 清空会话后重试。"
    )


@pytest.mark.parametrize(
    ("said", "expected"),
    [("Hello.", "context window is too small"), ("你好，请看一下。", "上下文窗口太小")],
)
@pytest.mark.parametrize(
    "refusal",
    ["This model's maximum context length is 4096 tokens.", "Error: context_length_exceeded"],
)
def test_a_window_that_the_system_prompt_fills_is_named_as_the_cause(
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    said: str,
    expected: str,
    refusal: str,
) -> None:
    install(classes)
    system = "Answer in full sentences. " * 1_200
    messages: list[Message] = [
        {"role": "system", "content": system},
        {"role": "user", "content": said},
    ]
    script = Script(*[error(refusal)] * 4)
    response = call(make_provider(classes, script), messages=messages)
    assert response.finish_reason == "error"
    assert expected in response.content
    assert "/new" not in response.content
    assert not any(char.isdigit() for char in response.content)


OUTPUT_CAP = error("Error: Range of max_tokens should be [1, 1024]")


def test_an_output_cap_lowers_only_the_output_limit(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    answer = LLMResponse("fine")
    script = Script(OUTPUT_CAP, answer)
    messages = conversation(2, 10)
    provider = make_provider(classes, script)
    assert call(provider, messages=messages, max_tokens=2048) is answer
    assert script.limits == [2048, 1024]
    assert script.sent[1] is messages


def test_an_output_cap_is_remembered(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    script = Script(OUTPUT_CAP, LLMResponse("fine"), LLMResponse("fine"))
    provider = make_provider(classes, script)
    for _ in range(2):
        call(provider, messages=conversation(2, 10), max_tokens=2048)
    assert script.limits == [2048, 1024, 1024]


def test_an_output_cap_that_nothing_satisfies_comes_back_as_it_is(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    script = Script(*[OUTPUT_CAP] * 4)
    messages = conversation(2, 10)
    response = call(make_provider(classes, script), messages=messages, max_tokens=3000)
    assert response is OUTPUT_CAP
    assert all(later < earlier for earlier, later in itertools.pairwise(script.limits))


def test_a_prompt_that_leaves_room_for_a_shorter_answer_is_not_cut(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    text = "max_tokens: 4096 > context_window: 8000 - input_tokens: 5000 = available_tokens: 3000"
    script = Script(error(f"Error: {text}"), LLMResponse("fine"), LLMResponse("fine"))
    messages = conversation(8, 280)
    assert 2_800 < count_tokens(messages) < 5_000
    provider = make_provider(classes, script)
    for _ in range(2):
        call(provider, messages=messages, max_tokens=4096)
    # The text states the window and the size: the next answer gets what the prompt leaves of it.
    assert script.limits == [4096, 3000, 3000]
    assert script.sent[2] == script.sent[0]
    assert script.sent[1] is script.sent[0]


def test_an_answer_as_large_as_the_window_leaves_room_for_the_prompt(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    script = Script(error(TOO_LONG), LLMResponse("fine"))
    messages = conversation(8, 150)
    call(make_provider(classes, script), messages=messages, max_tokens=WINDOW)
    assert script.sent[0] is messages
    free = WINDOW - count_tokens(messages)
    assert script.limits[0] == free
    assert 256 <= script.limits[1] < free


def test_a_shorter_answer_makes_room_for_what_must_stay(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    script = Script(error(TOO_LONG), LLMResponse("fine"))
    messages = [{"role": "user", "content": "abc " * 5_000}]
    call(make_provider(classes, script), messages=messages, max_tokens=3_500)
    assert script.sent[1] == messages
    assert script.limits[0] == WINDOW - count_tokens(messages)
    assert 256 <= script.limits[1] < script.limits[0]


def test_a_provider_that_calls_another_is_protected_once(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes)
    script = Script(*[error(TOO_LONG)] * 4)
    inner = make_provider(classes, script)

    class Outer(type(inner)):  # type: ignore[misc]
        async def chat(self, messages: list[Message], **kwargs: Any) -> Any:
            return await inner.chat(messages=messages, **kwargs)

    call(Outer(), messages=conversation(8, 150))
    assert script.answers == []


def test_a_subagent_that_cannot_go_on_is_announced_as_failed(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes)
    for task, text in (
        ("read them all", "error: The subagent's context overflowed"),
        ("请读取所有的文件", "error: 子代理上下文溢出，紧急压缩后仍超限，任务中止。"),
    ):
        manager = classes.subagents(make_provider(classes, Script(*[error(TOO_LONG)] * 2)))
        asyncio.run(manager._run_subagent("1", task, "label", {}))
        assert manager.announced[0].startswith(text)


def test_the_overflow_that_is_raised_inside_carries_its_numbers(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes)

    async def run() -> None:
        with subagent():
            script = Script(*[error(TOO_LONG)] * 4)
            await make_provider(classes, script).chat(messages=conversation(8, 150))

    with pytest.raises(ContextOverflowError) as caught:
        asyncio.run(run())
    assert caught.value.limit_tokens == 8_000
    assert caught.value.needed_tokens == 9_000


@pytest.mark.parametrize("stated", [True, False])
def test_after_one_refusal_no_longer_prompt_is_sent(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str, stated: bool
) -> None:
    """The provider counts 1.5 times what we do, and says so or not."""
    install(shaped(classes, generation), context_window_override=None)
    window = 100_000
    refused = 0

    class Strict(Script):
        def next(self, messages: list[Message], max_tokens: int) -> Any:
            nonlocal refused
            used = int(count_tokens(messages, "gpt-4o") * 1.5)
            self.sent.append(messages)
            if used <= window:
                return LLMResponse("fine")
            refused += 1
            numbers = f"maximum context length is {window} tokens, you requested {used} tokens"
            return error(numbers if stated else "context_length_exceeded")

    script = Strict()
    provider = make_provider(classes, script)
    messages = conversation(40, 500)
    for number in range(60):
        assert call(provider, messages=messages).content == "fine"
        messages = [*messages, *conversation(1, 500)[1:3], {"role": "user", "content": f"{number}"}]
    assert refused == 1


def usage(prompt: int, answer: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": answer}


def test_a_prompt_that_the_provider_cut_is_sent_again_as_large_as_what_it_read(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    install(shaped(classes, generation), context_window_override=None)
    forgetful = LLMResponse("Which rules?", usage=usage(1_500, 9))
    good = LLMResponse("fine", usage=usage(1_300, 9))
    script = Script(forgetful, good, good)
    provider = make_provider(classes, script)
    messages = conversation(12, 150)
    assert call(provider, messages=messages) is good
    first, again = (count_tokens(sent) for sent in script.sent)
    assert first > 3_600
    assert again < 1_500
    call(provider, messages=[*messages, {"role": "assistant", "content": "fine"}, messages[-1]])
    assert count_tokens(script.sent[2]) < 1_500, "the next request is cut as well"


def test_a_full_window_without_an_answer_is_repaired(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    mute = LLMResponse(None, finish_reason="length", usage=usage(WINDOW, 0))
    good = LLMResponse("fine", usage=usage(3_000, 9))
    script = Script(mute, good)
    assert call(make_provider(classes, script), messages=conversation(12, 150)) is good
    assert count_tokens(script.sent[1]) < count_tokens(script.sent[0])


@pytest.mark.parametrize(
    "response",
    [
        LLMResponse("fine", usage=usage(WINDOW + 1_000, 9)),
        LLMResponse("fine", usage=usage(3_700, 9)),
        LLMResponse("", finish_reason="length", usage=usage(3_700, 0)),
        LLMResponse("fine", usage={"prompt_tokens": 300, "cache_read_input_tokens": 3_400}),
        LLMResponse("fine"),
    ],
    ids=["above the window", "whole", "length", "cached", "no usage"],
)
def test_an_answer_to_a_prompt_that_was_read_is_the_answer(
    classes: NanobotClasses, install: Callable[..., installer.Status], response: LLMResponse
) -> None:
    install(classes)
    script = Script(response)
    assert call(make_provider(classes, script), messages=conversation(12, 150)) is response


def test_an_answer_that_repeats_in_vain_is_the_answer(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes, context_window_override=None)
    script = Script(*[LLMResponse("?", usage=usage(n, 9)) for n in (1_200, 1_100, 1_100, 1_100)])
    response = call(make_provider(classes, script), messages=conversation(12, 150))
    assert response.content == "?"


def test_a_provider_that_has_read_more_did_not_cut(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes, context_window_override=None)
    answers = [LLMResponse("a", usage=usage(3_700, 9)), LLMResponse("b", usage=usage(1_100, 9))]
    provider = make_provider(classes, Script(*answers))
    messages = conversation(12, 150)
    assert [call(provider, messages=messages) for _ in answers] == answers


def test_what_was_shown_as_it_came_is_not_said_twice(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(with_stream(classes), context_window_override=None)
    shown = LLMResponse("Which rules?", usage=usage(1_500, 9))
    calls = LLMResponse("", tool_calls=["read_file"], usage=usage(1_500, 9))
    good = LLMResponse("fine", usage=usage(1_300, 9))
    messages = conversation(12, 150)
    provider = streaming_provider(classes, Script(shown, calls, good))
    assert call(provider, messages=messages, on_content_delta=print) is shown
    assert call(provider, messages=messages, on_content_delta=print) is calls, "cut beforehand now"


def test_a_mistake_of_ours_hands_on_what_the_provider_said(
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise ValueError("a bug")

    monkeypatch.setattr("nanobot_context.guard.fitting.reduce_messages", broken)
    install(classes)
    refusal = error(TOO_LONG)
    script = Script(refusal)
    assert call(make_provider(classes, script), messages=conversation(8, 150)) is refusal


class Answers(Script):
    """A provider that takes so many tokens of prompt and of answer, and says what it counted."""

    def __init__(self, window: int, refuse: Callable[[int, int], str | None]) -> None:
        super().__init__()
        self.window, self.refuse = window, refuse

    def next(self, messages: list[Message], max_tokens: int) -> Any:
        self.sent.append(messages)
        self.limits.append(max_tokens)
        prompt = count_tokens(messages, "gpt-4o")
        refusal = self.refuse(prompt, max_tokens)
        return error(refusal) if refusal else LLMResponse("fine", usage=usage(prompt, 9))


def at_most(cap: int) -> Callable[[int, int], str | None]:
    return lambda _, limit: (
        f"The parameter `max_tokens` specified in the request are not valid: integer above maximum "
        f"value, expected a value <= {cap}, but got {limit} instead."
        if limit > cap
        else None
    )


def test_a_refused_max_tokens_is_lowered_once_and_no_prompt_is_cut(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    install(shaped(classes, generation), context_window_override=None)
    script = Answers(128_000, at_most(4_096))
    provider = make_provider(classes, script)
    messages = conversation(40, 150)
    for _ in range(3):
        assert call(provider, messages=messages, max_tokens=8_192).content == "fine"
    assert script.limits == [8_192, 4_096, 4_096, 4_096]
    assert all(sent is messages for sent in script.sent)
    (lesson,) = (installer.status().learned or {}).values()
    assert (lesson["window_tokens"], lesson["output_tokens"]) == (None, 4_096)


def test_a_cap_is_remembered_where_the_prompt_was_refused_next(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes, context_window_override=None)
    script = Script(
        error("Invalid max_tokens value, the valid range of max_tokens is [1, 4096]"),
        error(TOO_LONG),
        *[LLMResponse("fine")] * 2,
    )
    provider = make_provider(classes, script)
    for _ in range(2):
        call(provider, messages=conversation(8, 150), max_tokens=8_192)
    assert script.limits[1] == 4_096
    assert all(limit <= 4_096 for limit in script.limits[2:])
    learned = installer.status().learned or {}
    assert [one["output_tokens"] for one in learned.values()] == [4_096]


def test_a_sum_that_is_too_large_for_its_answer_cuts_no_prompt(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    install(shaped(classes, generation), context_window_override=None)

    def refuse(prompt: int, limit: int) -> str | None:
        if prompt + limit <= 8_192:
            return None
        return (
            f"This model's maximum context length is 8192 tokens, however you requested "
            f"{prompt + limit} tokens ({prompt} in your prompt; {limit} for the completion). "
            "Please reduce your prompt; or completion length."
        )

    script = Answers(8_192, refuse)
    provider = make_provider(classes, script)
    messages = conversation(5, 60)
    for _ in range(3):
        assert call(provider, messages=messages, max_tokens=8_000).content == "fine"
    assert len(script.sent) == 4, "one refusal"
    assert script.sent[1] is script.sent[0]


def test_a_window_that_was_misread_ends_with_the_first_answer(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
) -> None:
    """A number that is none of the window is stated once; the next turn needs more than that."""
    install(shaped(classes, generation), context_window_override=None)
    odd = error("prompt is too long: 60000 tokens > 4096 maximum")
    needed = [
        {"role": "system", "content": "alpha " * 6_000},
        {"role": "user", "content": "hello there"},
    ]
    answer = LLMResponse("fine", usage=usage(6_020, 9))
    script = Script(odd, answer, answer)
    provider = make_provider(classes, script)
    call(provider, messages=[needed[0], *conversation(30, 150)[1:]])
    assert call(provider, messages=needed) is answer
    assert script.sent[-1] == needed
    (lesson,) = (installer.status().learned or {}).values()
    assert lesson["window_tokens"] is None
