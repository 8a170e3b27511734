"""`call_with_recovery` and the ladder below it, with chat functions that refuse."""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import openai
import pytest

import agent_work
from agent_work import COMMANDS, DONE, PATHS, Work
from nanobot_context import (
    Compressor,
    ContextOverflowError,
    InvalidArgumentError,
    Overflow,
    Usage,
    call_with_recovery,
    call_with_recovery_sync,
    count_tokens,
    detect_overflow,
    installer,
)
from nanobot_context._core import Recovery
from nanobot_context.caches import clear_caches
from nanobot_context.host.detect import NanobotClasses
from refusing_server import running
from shim_classes import LLMResponse, Message, conversation, make_provider
from shim_classes import Script as NanobotScript

TOO_LONG = "Error code: 400 - {'error': {'code': 'context_length_exceeded'}}"


@dataclass
class Chat:
    """Answers from a list: exceptions are raised, functions are asked."""

    answers: list[Any]
    sent: list[list[Message]] = field(default_factory=list)
    limits: list[int | None] = field(default_factory=list)

    async def __call__(self, messages: list[Message], *, max_tokens: int | None) -> Any:
        self.sent.append(messages)
        self.limits.append(max_tokens)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    @property
    def sizes(self) -> list[int]:
        return [count_tokens(messages) for messages in self.sent]


def run(chat: Chat, messages: list[Message], **arguments: Any) -> Any:
    arguments.setdefault("context_window", 128_000)
    return asyncio.run(call_with_recovery(chat, messages, **arguments))


def refused(text: str = TOO_LONG) -> RuntimeError:
    return RuntimeError(text)


def test_what_fits_goes_out_as_it_is() -> None:
    chat = Chat(["fine"])
    messages = conversation(4, 100)
    assert run(chat, messages) == "fine"
    assert all(a is b for a, b in zip(chat.sent[0], messages, strict=True))
    assert chat.limits == [None]


def test_the_first_request_fits_the_window_with_room_for_the_answer() -> None:
    chat = Chat(["fine"])
    run(chat, conversation(20, 300), context_window=8_000, max_output_tokens=3_000)
    assert chat.sizes[0] <= 5_000
    assert chat.limits == [3_000]


def test_a_compressor_of_the_conversation_takes_the_place_of_the_functions() -> None:
    messages = conversation(20, 300)
    compressor = Compressor(8_000)
    chat = Chat(["fine", refused(), "fine"])
    call = functools.partial(call_with_recovery, chat, messages, compressor=compressor)
    assert asyncio.run(call()) == "fine"
    assert chat.sent[0] == Compressor(8_000).compress(messages)
    assert compressor.receipt is not None
    assert asyncio.run(call(max_output_tokens=5_000)) == "fine"
    assert chat.sizes[1] <= 4_000, "half of the window, however long an answer is asked for"
    assert chat.sizes[2] == chat.sizes[1], "a shorter answer is tried before a shorter prompt"
    assert chat.limits[1:] == [min(5_000, 8_000 - chat.sizes[1]), 1_024]


@pytest.mark.parametrize("arguments", [{"compressor": 5}, {}])
def test_a_window_or_a_compressor_has_to_be_given(arguments: dict[str, Any]) -> None:
    chat = Chat([])
    with pytest.raises(InvalidArgumentError):
        asyncio.run(call_with_recovery(chat, [], **arguments))


def test_a_function_that_is_not_async_is_called_in_the_same_way() -> None:
    answers: list[Any] = [refused(), "fine", KeyError("else")]
    sizes = []

    def chat(messages: list[Message], *, max_tokens: int | None) -> Any:
        sizes.append(count_tokens(messages))
        answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    messages = conversation(20, 300)
    assert call_with_recovery_sync(chat, messages, context_window=128_000) == "fine"
    assert sizes[1] <= 0.6 * sizes[0]
    with pytest.raises(KeyError):
        call_with_recovery_sync(chat, messages, context_window=128_000)
    with pytest.raises(InvalidArgumentError, match="`chat`"):
        call_with_recovery_sync(Chat(["fine"]), messages, context_window=128_000)  # type: ignore[unused-coroutine]
    with pytest.raises(InvalidArgumentError, match="`chat`"):
        call_with_recovery_sync(5, messages, context_window=128_000)  # type: ignore[arg-type]


def test_each_attempt_has_60_percent_of_the_one_before() -> None:
    chat = Chat([*[refused()] * 3, "fine"])
    messages = conversation(20, 300)
    assert run(chat, messages) == "fine"
    for before, after in pairwise(chat.sizes):
        assert 0.5 * before < after <= 0.6 * before
    assert chat.sent[-1][-1] == messages[-1]
    assert chat.sent[-1][0] == messages[0]


@pytest.mark.parametrize("first", [0, 1])
def test_refusals_that_alternate_end_after_three_attempts(first: int) -> None:
    refusals = [refused(), refused("Range of max_tokens should be [1, 512]"), refused()]
    refusals += [refused("Range of max_tokens should be [1, 256]"), refused()] * 3
    chat = Chat(refusals[first:])
    with pytest.raises((ContextOverflowError, RuntimeError)):
        run(chat, conversation(20, 300), max_output_tokens=9_000)
    # And one in which the answer alone was shorter, where the first says nothing of what it is for.
    assert len(chat.sent) == (4 if first else 5)


def test_a_window_that_was_wrong_does_not_matter() -> None:
    chat = Chat([refused("prompt is too long: 11000 tokens > 6000 maximum"), "fine"])
    run(chat, conversation(20, 300), context_window=1_000_000)
    assert chat.sizes[1] <= 6_000


@pytest.mark.parametrize("limit", [256, 512, 900, 1_023])
def test_a_small_limit_that_is_stated_is_the_target(limit: int) -> None:
    messages = [*conversation(1, 20_000), {"role": "user", "content": "And now?"}]

    def chat(sent: list[Message], *, max_tokens: int | None) -> str:
        tokens = count_tokens(sent)
        if tokens > limit:
            said = f"request ({tokens} tokens) exceeds the available context size ({limit} tokens)"
            raise RuntimeError(said)
        return "an answer"

    assert call_with_recovery_sync(chat, messages, context_window=0) == "an answer"


def test_when_nothing_helps_the_error_has_the_numbers_and_its_cause() -> None:
    chat = Chat([error := refused("prompt is too long: 9000 tokens > 4000 maximum")] * 4)
    with pytest.raises(ContextOverflowError, match="three smaller ones as well") as caught:
        run(chat, conversation(20, 300), model="gpt-4o")
    assert chat.answers == []
    assert (caught.value.needed_tokens, caught.value.limit_tokens) == (9_000, 4_000)
    assert caught.value.model == "gpt-4o"
    assert caught.value.__cause__ is error


def test_what_must_stay_is_named_when_it_is_too_large() -> None:
    chat = Chat([refused("prompt is too long: 9000 tokens > 4000 maximum")])
    with pytest.raises(ContextOverflowError, match="what must stay is as large") as caught:
        run(chat, [{"role": "user", "content": "alpha " * 9_000}])
    assert caught.value.parts["last_user"] > 9_000


def test_what_is_larger_than_the_window_is_not_sent() -> None:
    chat = Chat([])
    with pytest.raises(ContextOverflowError):
        run(chat, [{"role": "user", "content": "alpha " * 9_000}], context_window=4_000)
    assert chat.sent == []


def test_what_only_lacks_room_for_the_answer_is_sent() -> None:
    chat = Chat(["fine"])
    messages = [{"role": "user", "content": "alpha " * 3_800}]
    assert run(chat, messages, context_window=4_000) == "fine"


@pytest.mark.parametrize("stated", [1_024, 100])
def test_an_output_cap_lowers_the_limit_only(stated: int) -> None:
    cap = f"Range of max_tokens should be [1, {stated}]"
    chat = Chat([refused(cap), "fine"])
    run(chat, conversation(4, 100), max_output_tokens=9_000)
    assert chat.limits == [9_000, stated]
    assert chat.sent[0] == chat.sent[1]


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no overflow"),
        refused("Rate limit reached: Limit 30000, Used 29000, Requested 2000"),
        asyncio.CancelledError(),
        KeyboardInterrupt(),
    ],
    ids=["bug", "rate", "cancelled", "interrupt"],
)
def test_other_exceptions_come_back_as_they_are(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        run(Chat([error]), conversation(4, 100))
    assert caught.value is error or isinstance(error, asyncio.CancelledError | KeyboardInterrupt)


def test_without_a_window_only_a_refusal_shortens() -> None:
    chat = Chat([refused(), "fine"])
    messages = conversation(20, 300)
    run(chat, messages, context_window=0)
    assert chat.sent[0] is messages
    assert chat.sizes[1] <= 0.6 * chat.sizes[0]


def reported(prompt: int, answer: int, reason: str) -> SimpleNamespace:
    usage = SimpleNamespace(prompt_tokens=prompt, completion_tokens=answer)
    return SimpleNamespace(usage=usage, choices=[SimpleNamespace(finish_reason=reason)])


def test_a_prompt_that_was_cut_in_silence_is_sent_again() -> None:
    good = reported(3_500, 9, "stop")
    chat = Chat([reported(4_096, 9, "stop"), good])
    heard: list[Overflow] = []
    assert run(chat, conversation(20, 300), on_overflow=heard.append) is good
    assert chat.sizes[1] <= 0.9 * 4_096
    assert [overflow.kind for overflow in heard] == ["silent"]


def test_a_report_by_length_alone_is_no_cut_prompt() -> None:
    def answer(messages: list[Message]) -> SimpleNamespace:
        return reported(sum(len(message["content"]) for message in messages) // 4, 9, "stop")

    messages: list[Message] = []
    heard: list[Overflow] = []
    for turn in range(6):
        numbers = "\n".join(
            f"{turn}{i:03} {i * 7919 % 1000003} a*{i * 31 % 997}" for i in range(500)
        )
        messages.append({"role": "user", "content": numbers})
        chat = Chat([answer])
        run(chat, messages, model="estimates-by-length", on_overflow=heard.append)
        assert chat.sent == [messages]
        messages.append({"role": "assistant", "content": "ok"})
    assert heard == []


@pytest.mark.parametrize("uncached", [1, 3, 14])
def test_a_report_of_what_no_cache_held_is_no_cut_prompt(uncached: int) -> None:
    answer = reported(uncached, 9, "stop")
    assert run(Chat([answer]), conversation(20, 300)) is answer


def test_cached_tokens_that_are_not_in_the_prompt_are_added() -> None:
    answer = reported(1_500, 9, "stop")
    answer.usage.prompt_tokens_details = SimpleNamespace(cached_tokens=4_700)
    assert run(Chat([answer]), conversation(20, 300)) is answer
    assert Usage.of(answer).cache_tokens == 4_700


def test_an_answer_that_nothing_improves_is_the_answer() -> None:
    answers = [reported(tokens, 9, "stop") for tokens in (4_096, 1_100, 400, 90)]
    assert run(Chat(answers), conversation(20, 300)) is not None


@pytest.mark.parametrize(
    ("response", "prompt", "output", "reason"),
    [
        (reported(10, 2, "stop"), 10, 2, "stop"),
        ({"usage": {"prompt_tokens": 10, "completion_tokens": 2}, "choices": []}, 10, 2, None),
        (
            {
                "usage": {
                    "input_tokens": 10,
                    "output_tokens": 2,
                    "cache_read_input_tokens": 7,
                    "cache_creation_input_tokens": 6,
                },
                "stop_reason": "end_turn",
            },
            23,
            2,
            "end_turn",
        ),
        (
            {"usage_metadata": {"prompt_token_count": 10, "candidates_token_count": 2}},
            10,
            2,
            None,
        ),
        ({"usage": {"prompt_tokens": 10, "cache_read_input_tokens": 7}}, 10, None, None),
        ({"usage": {"prompt_tokens": 10, "cached_tokens": 70}}, 80, None, None),
        (
            {"usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 70}}},
            *(80, None, None),
        ),
        (
            {"usage": {"prompt_tokens": 99, "prompt_tokens_details": {"cached_tokens": 70}}},
            *(99, None, None),
        ),
        ({"usage": {"prompt_tokens": -1, "completion_tokens": True}}, None, None, None),
        ({"usage": {"prompt_tokens": 10**40, "completion_tokens": 2**64}}, None, None, None),
        ("text", None, None, None),
        (None, None, None, None),
    ],
)
def test_usage_is_read_from_the_responses_of_every_client(
    response: Any, prompt: int | None, output: int | None, reason: str | None
) -> None:
    usage = Usage.of(response)
    read = None if usage.input_tokens is None else usage.input_tokens + usage.cache_tokens
    assert (read, usage.output_tokens, usage.finish_reason) == (prompt, output, reason)


def test_usage_alone_gives_an_overflow_away() -> None:
    usage = Usage(input_tokens=4_096, window_tokens=128_000, counted_tokens=20_000)
    found = detect_overflow(None, usage=usage)
    assert found is not None
    assert (found.kind, found.limit_tokens, found.used_tokens) == ("silent", 4_096, 20_000)
    assert detect_overflow(None) is None
    assert detect_overflow(TOO_LONG, usage=usage) == detect_overflow(TOO_LONG)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Recovery(-1, fixed_tokens=0, listed_output_tokens=1),
        lambda: Recovery(1, "2", fixed_tokens=0, listed_output_tokens=1),  # type: ignore[arg-type]
        lambda: Recovery(1, None, fixed_tokens=0, listed_output_tokens=1, emergency_ratio=1.5),
        lambda: Recovery(
            1, None, fixed_tokens=0, listed_output_tokens=1, emergency_ratio=float("nan")
        ),
        lambda: Recovery(1, None, fixed_tokens=0, listed_output_tokens=1).compressed(-1),
        lambda: Recovery(1, None, fixed_tokens=0, listed_output_tokens=1).floor(1 << 60),
    ],
)
def test_bad_numbers_are_named(make: Callable[[], Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        make()


TOO_MANY = (
    "Invalid 'messages': array too long. Expected an array with maximum length {}, but got {}."
)


@pytest.mark.parametrize("most", [4, 100, 1_000, 2_048])
def test_too_many_messages_are_made_fewer(most: int) -> None:
    sent: list[list[Message]] = []

    async def chat(messages: list[Message], *, max_tokens: int | None) -> str:
        sent.append(messages)
        if len(messages) > most:
            raise RuntimeError(TOO_MANY.format(most, len(messages)))
        return "fine"

    messages = conversation(most * 2 // 3, 10)
    assert len(messages) > most
    answer = asyncio.run(call_with_recovery(chat, messages, context_window=1_000_000))
    assert answer == "fine"
    assert len(sent) <= 2
    assert sent[-1][-1] is messages[-1]


def resident_mb() -> float:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


@pytest.fixture
def no_log() -> Iterator[None]:
    """No log: pytest keeps every record of it."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("no_log")
def test_thousands_of_repaired_calls_leak_nothing(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes, context_window_override=16_000)
    messages = conversation(1, 3_000)
    error = LLMResponse(TOO_LONG, finish_reason="error")
    script = NanobotScript()
    provider = make_provider(classes, script)

    async def rounds(count: int) -> None:
        for _ in range(count):
            await call_with_recovery(Chat([refused(), "fine"]), messages, context_window=16_000)
            script.answers, script.sent, script.limits = [error, LLMResponse("fine")], [], []
            await provider.chat(messages=messages)
        assert len(asyncio.all_tasks()) == 1

    def held() -> tuple[int, float]:
        installer.status()  # makes the records of the last seconds' requests
        clear_caches()
        gc.collect()
        return len(gc.get_objects()), resident_mb()

    # A leak grows in each part, the allocator's own holdings only in some.
    grown = []
    asyncio.run(rounds(500))
    last = held()
    for _ in range(3):
        asyncio.run(rounds(500))
        before, last = last, held()
        grown.append(tuple(now - then for now, then in zip(last, before, strict=True)))
    objects, megabytes = (min(part) for part in zip(*grown, strict=True))
    assert objects < 250
    assert megabytes < 1


def test_the_answer_to_messages_that_cannot_be_counted_comes_back() -> None:
    messages = [{"role": "control", "content": "x"}, {"role": "user", "content": "hi"}]
    chat = Chat(["fine"])
    assert run(chat, messages, context_window=0) == "fine"
    refusal = refused("prompt is too long: 9000 tokens > 4000 maximum")
    with pytest.raises(type(refusal)) as caught:
        run(Chat([refusal]), messages, context_window=0)
    assert caught.value is refusal


@pytest.mark.parametrize("later", [ConnectionError("down"), refused()])
def test_an_answer_to_a_prompt_that_was_cut_outlives_what_comes_after(later: Exception) -> None:
    first = reported(4_096, 9, "stop")
    assert run(Chat([first, later, later, later, later]), conversation(20, 300)) is first


def told(prompt: int, message: dict[str, Any]) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": 9}
    return {"usage": usage, "choices": [{"finish_reason": "stop", "message": message}]}


CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    "second",
    [
        told(3_500, {"content": None}),
        told(3_500, {"content": "", "tool_calls": None}),
        told(3_500, {"content": [{"type": "text", "text": " "}]}),
        told(3_500, {"content": " ", "tool_calls": []}),
        {"choices": []},
        {"content": [], "stop_reason": "end_turn"},
        {"output": [], "output_text": ""},
        SimpleNamespace(content=None, tool_calls=[], finish_reason="content_filter"),
        {},
        None,
        "",
    ],
)
def test_an_answer_outlives_an_empty_one_to_the_prompt_sent_again(second: Any) -> None:
    first = told(4_096, {"content": "useful"})
    assert run(Chat([first, second]), conversation(20, 300)) is first
    nothing = told(4_096, {"content": ""})
    assert run(Chat([nothing, second]), conversation(20, 300)) is second


@pytest.mark.parametrize(
    "second",
    [
        told(3_500, {"content": "better"}),
        told(3_500, {"content": None, "tool_calls": [CALL]}),
        told(3_500, {"content": [{"type": "text", "text": "better"}]}),
        {"output": [{"type": "function_call", "name": "f", "arguments": "{}"}]},
        {"candidates": [{"content": {"parts": [{"text": "better"}]}}]},
        object(),
        "better",
    ],
)
def test_an_answer_to_the_prompt_sent_again_is_the_answer(second: Any) -> None:
    first = told(4_096, {"content": "useful"})
    assert run(Chat([first, second]), conversation(20, 300)) is second


def test_what_a_function_that_is_not_async_answers_is_not_lost() -> None:
    sent: list[Any] = []

    def chat(messages: list[Message], *, max_tokens: int | None) -> str:
        sent.append(messages)
        if len(sent) == 1:
            raise refused()
        return "paid for"

    call = call_with_recovery(chat, conversation(20, 300), context_window=0)  # type: ignore[arg-type,var-annotated]
    assert asyncio.run(call) == "paid for"
    assert len(sent) == 2


def awaited(*arguments: Any, **more: Any) -> Any:
    return asyncio.run(call_with_recovery(*arguments, **more))


@pytest.mark.parametrize("call", [awaited, call_with_recovery_sync])
def test_a_function_that_yields_is_refused_before_anything_is_sent(call: Any) -> None:
    async def pieces(messages: list[Message], *, max_tokens: int | None) -> Any:
        yield "a"

    class Streaming:
        def __call__(self, messages: list[Message], *, max_tokens: int | None) -> Any:
            yield "a"

    for chat in (pieces, Streaming()):
        with pytest.raises(InvalidArgumentError, match="`chat` must be"):
            call(chat, conversation(2, 3), context_window=0)


def test_an_async_function_is_refused_by_the_other_before_anything_is_sent() -> None:
    chat = Chat(["paid for"])
    with pytest.raises(InvalidArgumentError, match="not async"):
        _ = call_with_recovery_sync(chat.__call__, conversation(2, 3), context_window=0)
    assert chat.sent == []


def test_a_stop_iteration_comes_back_as_it_is() -> None:
    stop = StopIteration(5)

    def chat(messages: list[Message], *, max_tokens: int | None) -> str:
        raise stop

    with pytest.raises(StopIteration) as caught:
        call_with_recovery_sync(chat, conversation(2, 3), context_window=0)
    assert caught.value is stop


def test_who_listens_costs_no_call(caplog: pytest.LogCaptureFixture) -> None:
    def fail(overflow: Overflow) -> None:
        raise ZeroDivisionError

    messages = conversation(20, 300)
    assert run(Chat([refused(), "fine"]), messages, on_overflow=fail) == "fine"
    assert "`on_overflow` failed" in caplog.text


@pytest.mark.parametrize(
    "arguments",
    [
        *({"context_window": None}, {"on_overflow": 5}, {"tools": [5]}, {"model": 5}),
        *({"context_window": 0, "tools": [5]}, {"max_output_tokens": "x"}, {"settings": 5}),
    ],
)
def test_a_wrong_argument_is_named_before_anything_is_sent(arguments: dict[str, Any]) -> None:
    chat = Chat(["fine"])
    with pytest.raises(InvalidArgumentError) as caught:
        run(chat, conversation(2, 10), **arguments)
    assert caught.value.argument.partition("[")[0] in arguments
    assert chat.sent == []


async def work(url: str, agent: Work, told: int, *, is_async: bool) -> str:
    """Let the model work until it calls nothing; return what it says then.

    What a refusal says of the window is remembered, as `on_overflow` is there for.
    """
    window = told

    def learn(overflow: Overflow) -> None:
        nonlocal window
        window = min(window, overflow.limit_tokens or window)

    client: dict[str, Any] = {"base_url": url, "api_key": "x", "max_retries": 0}
    async with openai.AsyncOpenAI(**client) as later:
        with openai.OpenAI(**client) as now:
            chats = [
                functools.partial(one.chat.completions.create, model=agent_work.MODEL)
                for one in (now, later)
            ]
            given: dict[str, Any] = {"model": agent_work.MODEL, "max_output_tokens": 8_192}
            given["on_overflow"] = learn
            while True:
                given["context_window"] = window
                answer = (
                    await call_with_recovery(asked(chats[1]), agent.messages, **given)
                    if is_async
                    else call_with_recovery_sync(asked(chats[0]), agent.messages, **given)
                )
                message = answer.choices[0].message
                if not message.tool_calls:
                    return str(message.content)
                functions = [call.function for call in message.tool_calls]
                agent.do(*(agent_work.target_of(one.arguments) for one in functions))


def asked(create: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call of the model that passes `messages` by position."""
    return lambda messages, *, max_tokens: create(messages=messages, max_tokens=max_tokens)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("window", [8_000, 12_000, 16_000, 32_000])
@pytest.mark.parametrize("told", [None, 200_000], ids=["known", "told 200,000"])
@pytest.mark.parametrize("past", [0, 10])
def test_after_a_refusal_the_model_knows_what_it_did(
    is_async: bool, window: int, told: int | None, past: int
) -> None:
    agent = Work(window)
    for command in COMMANDS[:past]:
        agent.do(command)
    if past == len(COMMANDS):
        agent.do(*PATHS)
    with running() as server:
        server.reply = agent.reply
        said = asyncio.run(work(server.url, agent, told or window, is_async=is_async))
    assert agent.missing == []
    assert said == DONE
    assert agent.ran == [*COMMANDS, *PATHS]
    assert agent.refusals == (0 if told is None else 1)


@pytest.mark.parametrize("said", ["{limit} tokens ({used} in the messages)", "{limit} tokens"])
@pytest.mark.parametrize(
    "counts", [0.9, 0.95, 1.0, 1.1], ids=lambda counts: f"{counts:.0%} counted"
)
@pytest.mark.parametrize("left", [350, 500, 800])
def test_a_system_prompt_that_nearly_fills_the_window_leaves_room_for_a_rule_and_a_call(
    said: str, counts: float, left: int
) -> None:
    sentence = "The assistant keeps files in order and reports what it has changed. "
    tokens = count_tokens([{"role": "system", "content": sentence * 10}]) / 10
    system = {"role": "system", "content": sentence * int((8_192 - left) / tokens / counts)}
    paid = {"name": "pay", "arguments": '{"to": "Bob", "amount": 5}'}
    messages: list[Message] = [
        system,
        {"role": "user", "content": "Call me Captain from now on."},
        *conversation(20, 300)[1:-1],
        {"role": "user", "content": "Pay Bob, then tell me the state."},
        {"role": "assistant", "tool_calls": [{"id": "p", "type": "function", "function": paid}]},
        {"role": "tool", "tool_call_id": "p", "content": "paid: PAY-77\n" + "ok line\n" * 300},
    ]
    sent: list[str] = []

    def chat(messages: list[Message], *, max_tokens: int | None) -> str:
        sent.append(str(messages))
        used = int(count_tokens(messages) * counts)
        if used + (max_tokens or 0) <= 8_192:
            return "fine"
        length = said.format(limit=8_192, used=used)
        raise refused(f"This model's maximum context length is {length}. Shorten the messages.")

    assert call_with_recovery_sync(chat, messages, context_window=128_000, max_output_tokens=1_024)
    assert len(sent) <= 3
    assert all(fact in sent[-1] for fact in ("Captain", "pay", "Bob", "PAY-77"))
