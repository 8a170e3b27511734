"""What the prompt that is answered after a refusal still holds."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from nanobot_context import (
    call_with_recovery,
    compress_messages,
    count_tokens,
    detect_overflow,
    fit_messages,
)
from shim_classes import Message

MODEL = "gpt-4o"
RULE = "Please call me Captain from now on."
LOG = "\n".join(f"request {i} GET /orders/{i} 200 OK" for i in range(1, 2_000))


def calls(identifier: str, path: str, **fields: Any) -> Message:
    function = {"name": "read_file", "arguments": json.dumps({"path": path})}
    call = {"id": identifier, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call], **fields}


def result(identifier: str, text: str) -> Message:
    return {"role": "tool", "tool_call_id": identifier, "name": "read_file", "content": text}


def under_way(system_tokens: int) -> list[Message]:
    """A rule, a request, and the call that was made for it."""
    return [
        {"role": "system", "content": "alpha beta gamma delta " * (system_tokens // 4)},
        {"role": "user", "content": RULE},
        {"role": "assistant", "content": "Yes, Captain."},
        {"role": "user", "content": "Read big.log."},
        calls("c1", "big.log"),
        result("c1", LOG),
    ]


def refusal(window_tokens: int, used_tokens: int) -> RuntimeError:
    return RuntimeError(
        f"Error code: 400 - This model's maximum context length is {window_tokens} tokens. "
        f"However, your messages resulted in {used_tokens} tokens. Please reduce the length of "
        "the messages."
    )


@pytest.mark.parametrize("refusals", [1, 2, 3])
@pytest.mark.parametrize("states_limit", [True, False])
def test_rules_the_request_and_the_call_under_way_stay_in_every_attempt(
    refusals: int, states_limit: bool
) -> None:
    messages = under_way(7_400)
    sent: list[tuple[list[Message], int]] = []

    async def chat(messages: list[Message], *, max_tokens: int) -> str:
        sent.append((messages, max_tokens))
        if len(sent) <= refusals:
            if not states_limit:
                raise RuntimeError("Error code: 400 - context_length_exceeded")
            raise refusal(16_000, count_tokens(messages, MODEL) if len(sent) == 1 else 0)
        return "fine"

    call = call_with_recovery(
        chat, messages, context_window=128_000, model=MODEL, max_output_tokens=8_192
    )
    assert asyncio.run(call) == "fine"
    sizes = [count_tokens(prompt, MODEL) for prompt, _ in sent]
    assert sizes == sorted(set(sizes), reverse=True)
    for prompt, max_tokens in sent[1:]:
        texts = [str(message["content"]) for message in prompt]
        assert any(RULE in text for text in texts)
        assert prompt[-2] == messages[-2], "the call that ran"
        assert "left out" in texts[-1]
        assert prompt[-3] == messages[-3], "the last request"
        if states_limit:
            assert count_tokens(prompt, MODEL) + max_tokens <= 16_000


def test_in_a_known_small_window_a_rule_does_not_give_way_to_a_log() -> None:
    messages = under_way(2_000)
    for room in (100, 150, 200, 300, 500):
        fixed = count_tokens([messages[0], messages[3]], MODEL)
        short = fit_messages(messages, fixed + room, MODEL).messages
        assert RULE in [message["content"] for message in short], room
        assert short[-2] == messages[-2]


def test_an_input_that_fits_alone_keeps_its_messages() -> None:
    messages = under_way(2_000)
    limits = []
    used = count_tokens(messages, MODEL)

    async def chat(sent: list[Message], *, max_tokens: int) -> str:
        limits.append(max_tokens)
        assert sent == messages
        if used + max_tokens > used + 2_000:
            raise refusal(used + 2_000, used)
        return "fine"

    call = call_with_recovery(
        chat, messages, context_window=128_000, model=MODEL, max_output_tokens=8_192
    )
    assert asyncio.run(call) == "fine"
    assert limits == [8_192, 2_000]


def test_of_a_small_window_the_conversation_gets_most_of_what_is_not_fixed() -> None:
    messages = under_way(6_890)
    sent = []

    async def chat(prompt: list[Message], *, max_tokens: int) -> str:
        sent.append((count_tokens(prompt, MODEL), max_tokens))
        return "fine"

    call = call_with_recovery(
        chat, messages, context_window=16_000, model=MODEL, max_output_tokens=8_192
    )
    asyncio.run(call)
    ((size, max_tokens),) = sent
    assert size > 6_890 + 4_000
    assert size + max_tokens <= 16_000
    assert max_tokens > 3_500


def test_rules_and_calls_have_what_is_essential_before_the_share_of_the_answer() -> None:
    messages = under_way(6_000)
    fixed = count_tokens([m for m in messages if m["role"] == "system"] + messages[-3:-2], MODEL)
    sent = []

    async def chat(prompt: list[Message], *, max_tokens: int) -> str:
        sent.append((json.dumps(prompt), count_tokens(prompt, MODEL) + max_tokens))
        return "fine"

    # The reserve leaves the conversation next to nothing.
    window = int((fixed + 20) / 0.85)
    call = call_with_recovery(
        chat, messages, context_window=window, model=MODEL, max_output_tokens=4_096
    )
    assert asyncio.run(call) == "fine"
    ((shown, tokens),) = sent
    assert tokens <= window
    assert RULE in shown
    assert "read_file" in shown


THOUGHTS = "I should look at the file first. " * 120


def thoughtful(rounds: int) -> list[Message]:
    messages: list[Message] = [{"role": "system", "content": "You help."}]
    for number in range(rounds):
        messages += [
            {"role": "user", "content": f"Task {number}: read file {number}"},
            calls(f"c{number}", f"/f{number}", reasoning_content=THOUGHTS),
            result(f"c{number}", f"line of data {number}\n" * 200),
            {"role": "assistant", "content": f"Done {number}", "reasoning_content": "I am done."},
        ]
    return [*messages, {"role": "user", "content": "And now?"}]


@pytest.mark.parametrize(
    "model", ["deepseek-v4-pro", "kimi-k2-thinking", "mimo-v2.5-pro", "glm-5", "my-own", None]
)
@pytest.mark.parametrize("window", [11_000, 8_000, 4_000])
def test_calls_keep_their_reasoning_or_a_mark_of_it(model: str | None, window: int) -> None:
    short = compress_messages(thoughtful(6), window, model)
    assert count_tokens(short, model) < count_tokens(thoughtful(6), model)
    assert all(message.get("reasoning_content") for message in short if message.get("tool_calls"))
    assert compress_messages(short, window, model) == short


def test_reasoning_of_a_provider_that_does_not_read_it_goes() -> None:
    short = compress_messages(thoughtful(6), 4_000, MODEL)
    called = [message for message in short if message.get("tool_calls")]
    assert any("reasoning_content" not in message for message in called)


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_a_note_in_the_models_name_has_reasoning_where_a_provider_may_want_it(key: str) -> None:
    messages = [
        {key if name == "reasoning_content" else name: value for name, value in message.items()}
        for message in thoughtful(12)
    ]
    for message in messages[4::4]:
        # A short answer stays.
        message["content"] += " as planned" * 200

    def notes(model: str, messages: list[Message]) -> list[Message]:
        shorts = [fit_messages(messages, budget, model).messages for budget in range(400, 900, 50)]
        said = [m for short in shorts for m in short if m["role"] == "assistant"]
        return [m for m in said if re.match(r"\[\d+ messages? left out", str(m.get("content")))]

    wanted = notes("deepseek-v4-pro", messages)
    assert wanted
    assert [note[key] for note in wanted] == ["[reasoning left out]"] * len(wanted)
    assert notes(MODEL, messages)
    assert not any(key in note for note in notes(MODEL, messages))
    # Nobody thought in it.
    plain = [{k: v for k, v in message.items() if k != key} for message in messages]
    assert notes("deepseek-v4-pro", plain)
    assert not any(key in note for note in notes("deepseek-v4-pro", plain))


@pytest.mark.parametrize(
    "text",
    [
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at "
        "index 2",
    ],
)
def test_reasoning_that_is_wanted_back_is_sent_back_and_nothing_is_cut(text: str) -> None:
    messages = thoughtful(2)
    del messages[2]["reasoning_content"]
    sent = []

    async def chat(prompt: list[Message], *, max_tokens: int | None) -> str:
        sent.append(prompt)
        lacking = [m for m in prompt if m.get("tool_calls") and not m.get("reasoning_content")]
        if lacking:
            raise RuntimeError(f"Error code: 400 - {text}")
        return "fine"

    call = call_with_recovery(chat, messages, context_window=128_000, model="my-own")
    assert asyncio.run(call) == "fine"
    assert [len(prompt) for prompt in sent] == [len(messages)] * 2
    assert sent[1][2]["reasoning_content"]
    assert [m for m in sent[1] if m is not sent[1][2]] == [
        m for m in messages if m is not messages[2]
    ]
    found = detect_overflow(text, status=400)
    assert found is not None
    assert found.kind == "reasoning"


def test_reasoning_that_was_wanted_back_stays_when_the_prompt_is_too_long_as_well() -> None:
    messages = thoughtful(8)
    sent: list[int] = []
    for message in messages:
        message.pop("reasoning_content", None)

    async def chat(prompt: list[Message], *, max_tokens: int | None) -> str:
        sent.append(count_tokens(prompt, "my-own"))
        if any(m.get("tool_calls") and not m.get("reasoning_content") for m in prompt):
            raise RuntimeError("Error code: 400 - reasoning_content is missing")
        if sent[-1] > 6_000:
            raise RuntimeError("Error code: 400 - prompt is too long: 9000 tokens > 6000 maximum")
        return "fine"

    call = call_with_recovery(chat, messages, context_window=128_000, model="my-own")
    assert asyncio.run(call) == "fine"
    assert len(sent) == 3


def test_reasoning_that_is_there_already_ends_in_the_providers_error() -> None:
    async def chat(prompt: list[Message], *, max_tokens: int | None) -> str:
        raise RuntimeError("Error code: 400 - reasoning_content is missing")

    with pytest.raises(RuntimeError, match="is missing"):
        asyncio.run(call_with_recovery(chat, thoughtful(2), context_window=128_000, model="my-own"))


def test_a_limit_in_bytes_is_kept_to() -> None:
    messages = thoughtful(8)
    sent: list[int] = []

    async def chat(prompt: list[Message], *, max_tokens: int | None) -> str:
        sent.append(len(json.dumps(prompt, separators=(",", ":")).encode()))
        if sent[-1] > 30_000:
            raise RuntimeError(
                "Error code: 413 - Request payload size exceeds the limit: 30000 bytes."
            )
        return "fine"

    assert (
        asyncio.run(call_with_recovery(chat, messages, context_window=0, model="my-own")) == "fine"
    )
    assert len(sent) == 2
    assert 15_000 < sent[1] <= 30_000


def test_a_plain_function_that_raises_stop_iteration_is_named() -> None:
    def chat(prompt: list[Message], *, max_tokens: int | None) -> Any:
        raise StopIteration(5)

    with pytest.raises(RuntimeError, match="hint: `call_with_recovery_sync` does") as raised:
        asyncio.run(call_with_recovery(chat, thoughtful(1), context_window=128_000))
    assert isinstance(raised.value.__cause__, StopIteration)
