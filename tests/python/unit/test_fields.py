"""Fields beside content and calls: what providers read is counted and cut, anything else is not."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

import pytest

from nanobot_context import (
    compress_messages,
    count_tokens,
    emergency_compress,
    fit_messages,
    fits,
)
from nanobot_context.errors import InvalidMessageError

BIG = "word " * 20_000
SIGNATURE = base64.b64encode(bytes(range(256)) * 20).decode()


def user(text: str = "go on") -> dict[str, Any]:
    return {"role": "user", "content": text}


def calls(*ids: str, **extra: Any) -> list[dict[str, Any]]:
    function = {"name": "exec", "arguments": '{"command": "ls"}'}
    made = [{"id": id_, "type": "function", "function": dict(function)} for id_ in ids]
    made[0] |= extra
    return [
        {"role": "assistant", "content": None, "tool_calls": made},
        *({"role": "tool", "tool_call_id": id_, "content": "ok"} for id_ in ids),
    ]


def gemini(signature: str = SIGNATURE) -> dict[str, Any]:
    return {"extra_content": {"google": {"thought_signature": signature}}}


FIELDS: dict[str, Any] = {
    "function_call": {"name": "f", "arguments": BIG},
    "reasoning": BIG,
    "reasoning_content": BIG,
    "reasoning_details": [{"type": "reasoning.text", "text": BIG}],
    "thinking_blocks": [{"type": "thinking", "thinking": BIG, "signature": "x"}],
    "refusal": BIG,
    "audio": {"id": "audio_1", "transcript": BIG},
    "extra_content": {"google": {"thought_signature": BIG}},
    "provider_specific_fields": {"thought_signatures": [BIG]},
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_that_providers_read_counts_and_does_not_exceed_the_budget(name: str) -> None:
    messages = [user("q"), {"role": "assistant", "content": "a", name: FIELDS[name]}, user()]
    before = copy.deepcopy(messages)
    assert count_tokens(messages, "gpt-4o") > 20_000
    assert not fits(messages, 15_000, "gpt-4o")
    for shortened in (
        fit_messages(messages, 1_000, "gpt-4o").messages,
        emergency_compress(messages, 2_000, "gpt-4o"),
        compress_messages(messages, 2_000, "gpt-4o"),
    ):
        assert count_tokens(shortened, "gpt-4o") <= 1_700
        assert len(json.dumps(shortened)) < 10_000
    assert messages == before


@pytest.mark.parametrize("value", [BIG, 10**40, [BIG], {"name": None}, {"name": 5}, {}, [], ""])
@pytest.mark.parametrize("name", FIELDS)
def test_a_field_of_another_shape_is_counted_and_cut(name: str, value: Any) -> None:
    messages = [user("q"), {"role": "assistant", "content": "a", name: value}, user()]
    fitted = fit_messages(messages, 1_000, "gpt-4o")
    assert fitted.tokens == count_tokens(fitted.messages, "gpt-4o") <= 1_000
    assert len(json.dumps(fitted.messages)) < 10_000


def test_what_cannot_be_written_as_json_is_named() -> None:
    for name in ("reasoning_details", "extra_content", "audio", "function_call", "refusal"):
        with pytest.raises(InvalidMessageError, match=rf"messages\[0\]\.{name}"):
            count_tokens([{"role": "assistant", "content": "a", name: {"x": object()}}])
    call = calls("a", extra_content={"x": object()})[:1]
    with pytest.raises(InvalidMessageError, match=r"messages\[0\]\.tool_calls\[0\]\.extra_content"):
        count_tokens(call)


def test_what_nobody_reads_counts_nothing_and_stays() -> None:
    bare = [user("q"), *calls("a"), {"role": "assistant", "content": "a " * 3_000}, user()]
    kept = {"timestamp": "2026-11-23T10:00:00", "_meta": {"blob": BIG}, "tools_used": ["exec"]}
    messages: list[dict[str, Any]] = [message | kept for message in bare]
    assert count_tokens(messages, "gpt-4o") == count_tokens(bare, "gpt-4o")
    fitted = fit_messages(messages, 400, "gpt-4o")
    assert any(message not in messages for message in fitted.messages)
    for message in fitted.messages:
        original = [m for m in messages if m["role"] == message["role"]]
        assert not original or kept.items() <= message.items() or "left out" in message["content"]


def test_signatures_of_gemini_go_from_rounds_that_are_over_only() -> None:
    old = [message for i in range(40) for message in calls(f"a{i}", **gemini())]
    messages = [user("first"), *old, user("second"), *calls("b", "c", **gemini())]
    tokens = count_tokens(messages, "gemini-3-pro")
    unsigned = count_tokens([user("first"), *(m for i in range(40) for m in calls(f"a{i}"))])
    assert tokens > 40 * 1_000
    budget = count_tokens(messages[-4:], "gemini-3-pro") + 3 * unsigned
    fitted = fit_messages(messages, budget, "gemini-3-pro")
    assert fitted.tokens <= budget
    assert fitted.messages[-3] is messages[-3]
    signed = [m for m in fitted.messages if "extra_content" in json.dumps(m)]
    assert len(signed) < 41
    # The calls themselves are still there.
    assert sum(len(m.get("tool_calls") or ()) for m in fitted.messages) == 42
    cut = next(m for m in fitted.messages[1:-4] if m.get("tool_calls") and m not in messages)
    assert set(cut["tool_calls"][0]) == {"id", "type", "function"}


@pytest.mark.parametrize(
    "place",
    [
        lambda call: call.update(provider_specific_fields={"thought_signature": SIGNATURE}),
        lambda call: call.update(thought_signature=SIGNATURE),
        lambda call: call["function"].update(thought_signature=SIGNATURE),
        lambda call: call["function"].update(provider_specific_fields={"signature": SIGNATURE}),
        lambda call: call.update(gemini()),
        lambda call: (call.update(gemini()), call["function"].update(thought_signature="x")),
    ],
)
def test_a_signature_counts_and_goes_wherever_a_client_puts_it(place: Any) -> None:
    old = calls("a", index=0)
    bare = count_tokens([user(), *old, user()], "gpt-4o")
    place(old[0]["tool_calls"][0])
    messages = [user(), *old, user()]
    before = copy.deepcopy(messages)
    assert count_tokens(messages, "gpt-4o") > bare + 1_000
    fitted = fit_messages(messages, bare + 10, "gpt-4o")
    assert fitted.messages[1]["tool_calls"] == calls("a", index=0)[0]["tool_calls"]
    assert (fitted.tokens, messages) == (bare, before)
    assert [cut.reason for cut in fitted.receipt.cuts] == ["budget"]


def test_a_plain_function_call_keeps_its_name_and_its_arguments_stay_json() -> None:
    arguments = json.dumps({"path": "a.py", "content": BIG})
    call = {"name": "write_file", "arguments": arguments}
    messages = [
        user("q"),
        {"role": "assistant", "content": None, "function_call": call},
        {"role": "function", "name": "write_file", "content": "ok"},
        user(),
    ]
    fitted = fit_messages(messages, 500, "gpt-4o")
    short = fitted.messages[1]["function_call"]
    assert short["name"] == "write_file"
    assert call["arguments"] == arguments
    assert json.loads(short["arguments"])["path"] == "a.py"
    assert "left out" in short["arguments"]


def test_a_voice_message_costs_its_length_and_stays_whole() -> None:
    spoken = {"id": "audio_1", "data": base64.b64encode(bytes(160_000)).decode()}
    message = {"role": "assistant", "content": None, "audio": spoken}
    assert count_tokens([message], "gpt-4o") - count_tokens([message | {"audio": None}]) == 100
    assert fit_messages([user("q"), message, user()], 200, "gpt-4o").messages[1] is message
    dropped = fit_messages([user("q"), message, user()], 60, "gpt-4o").messages
    assert message not in dropped
