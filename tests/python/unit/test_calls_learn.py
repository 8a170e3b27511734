"""What a refusal teaches `call_with_recovery` holds for the calls that follow."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from nanobot_context import (
    Compressor,
    ContextOverflowError,
    Overflow,
    Settings,
    call_with_recovery,
    call_with_recovery_sync,
    count_tokens,
)
from nanobot_context.errors import InvalidArgumentError
from nanobot_context.guard import shared
from nanobot_context.guard.limits import name_of
from nanobot_context.guard.record_file import read_records
from nanobot_context.guard.shared import shared_windows
from nanobot_context.guard.state_file import OWN_REQUESTS

MODEL = "gpt-4o"
LONG: list[dict[str, Any]] = [
    {"role": "user", "content": "From now on never delete a file."},
    *(
        {"role": role, "content": f"{number}: " + "all is well. " * 700}
        for number in range(6)
        for role in ("user", "assistant")
    ),
    {"role": "user", "content": "And now?"},
]


@dataclass
class Server:
    """A model with a window, which says or hides how large it is."""

    window: int = 8_000
    says: bool = True
    adds_answer: bool = False
    cap: int | None = None
    sent: list[int] = field(default_factory=list)
    limits: list[int | None] = field(default_factory=list)
    refusals: int = 0

    def __call__(self, messages: list[Any], *, max_tokens: int | None) -> Any:
        tokens = count_tokens(messages, MODEL)
        self.sent.append(tokens)
        self.limits.append(max_tokens)
        if self.cap is not None and (max_tokens or 0) > self.cap:
            self.refusals += 1
            raise ValueError(
                f"max_tokens is too large: {max_tokens}. This model supports at most {self.cap}"
            )
        if tokens + (max_tokens or 0 if self.adds_answer else 0) > self.window:
            self.refusals += 1
            limit = f"This model's maximum context length is {self.window} tokens. "
            text = f"However, your messages resulted in {tokens} tokens."
            raise ValueError((limit if self.says else "context_length_exceeded: ") + text)
        usage = {"prompt_tokens": tokens, "completion_tokens": 3}
        return {"choices": [{"message": {"content": "Yes."}}], "usage": usage}


def ask(server: Server, **arguments: Any) -> Any:
    return call_with_recovery_sync(
        server, LONG, **{"context_window": 128_000, "model": MODEL, **arguments}
    )


@pytest.mark.parametrize("says", [True, False])
@pytest.mark.parametrize("window", [128_000, 0])
def test_the_same_overflow_is_not_sent_twice(says: bool, window: int) -> None:
    server = Server(says=says)
    ask(server, context_window=window)
    assert server.refusals == 1 or not says
    first = len(server.sent)
    for _ in range(4):
        assert ask(server, context_window=window)
    assert len(server.sent) == first + 4


def test_a_limit_without_a_number_for_prompt_and_answer_costs_no_message() -> None:
    server = Server(window=16_384, says=False, adds_answer=True)
    messages = [*LONG[:4], LONG[-1]]
    arguments: dict[str, Any] = {"context_window": 128_000, "model": MODEL}
    for _ in range(2):
        call_with_recovery_sync(server, messages, max_output_tokens=12_000, **arguments)
    assert server.refusals == 1
    assert set(server.sent) == {count_tokens(messages, MODEL)}
    assert server.limits[:2] == [12_000, 1_024]
    # Most windows are a power of two: the second call has what that leaves.
    assert server.limits[2] == 16_384 - server.sent[0]


def test_who_reports_less_than_half_of_what_is_never_cut_reports_something_else() -> None:
    sent: list[int] = []

    def uncached(messages: list[Any], *, max_tokens: int | None) -> Any:
        sent.append(count_tokens(messages, MODEL))
        read = sent[-1] if len(sent) == 1 else 1_500
        usage = {"prompt_tokens": read, "completion_tokens": 3}
        return {"choices": [{"message": {"content": "Yes."}}], "usage": usage}

    messages = [{"role": "system", "content": "Be careful. " * 1_500}, *LONG[:3], LONG[-1]]
    for _ in range(4):
        call_with_recovery_sync(uncached, messages, context_window=128_000, model=MODEL)
    assert sent == [count_tokens(messages, MODEL)] * 4


@pytest.mark.parametrize("reports", ["length", "rest", "one of two servers"])
def test_a_server_that_cuts_nothing_is_sent_everything_once(reports: str) -> None:
    """However it reports: characters, what was in no cache, or as either of two vocabularies."""
    sent: list[list[Any]] = []

    def chat(messages: list[Any], *, max_tokens: int | None) -> Any:
        before = sent[-1] if sent else []
        sent.append(messages)
        tokens = count_tokens(messages, MODEL)
        read = {
            "length": sum(len(one["content"]) for one in messages) // 5,
            "rest": count_tokens(messages[len(before) :], MODEL),
            "one of two servers": int(tokens * (0.75 if len(sent) % 2 else 1.0)),
        }[reports]
        usage = {"prompt_tokens": read, "completion_tokens": 3}
        return {"choices": [{"message": {"content": "Yes."}}], "usage": usage}

    messages = [{"role": "system", "content": "Be careful. " * 900}]
    for turn in range(9):
        log = "\n".join(f"0x{turn:04x}{line:06x} 17,{line},4 ok" for line in range(turn * 60))
        messages += [{"role": "user", "content": f"Look at this, {turn}: {log}"}]
        call_with_recovery_sync(
            chat, messages, context_window=128_000, model=MODEL, endpoint=reports
        )
        messages += [{"role": "assistant", "content": "Yes."}]
        assert sent[-1] == messages[:-1]
    assert len(sent) == 9


def test_a_window_that_nobody_stated_refuses_no_prompt() -> None:
    server = Server(window=128_000)
    learned = shared_windows(Settings(), 128_000).learned
    learned.learn_window(name_of(MODEL, "there"), 1_500, is_stated=False)
    large = [{"role": "user", "content": "alpha beta " * 2_000}]
    arguments: dict[str, Any] = {"context_window": 128_000, "model": MODEL, "endpoint": "there"}
    assert call_with_recovery_sync(server, large, **arguments)
    assert len(server.sent) == 1


def test_the_async_twin_has_learned_what_the_sync_one_did() -> None:
    server = Server()
    ask(server)

    async def chat(messages: list[Any], *, max_tokens: int | None) -> Any:
        return server(messages, max_tokens=max_tokens)

    asyncio.run(call_with_recovery(chat, LONG, context_window=128_000, model=MODEL))
    assert server.refusals == 1


def test_a_conversations_compressor_goes_by_what_was_stated() -> None:
    server, compressor = Server(), Compressor(128_000, MODEL)
    for _ in range(3):
        call_with_recovery_sync(server, LONG, compressor=compressor)
    assert server.refusals == 1


def test_a_stream_whose_refusal_was_seen_teaches_as_well() -> None:
    server = Server()

    def chat(messages: list[Any], *, max_tokens: int | None) -> Iterator[str]:
        server(messages, max_tokens=max_tokens)
        return iter(["Y", "es."])

    for _ in range(3):
        pieces = call_with_recovery_sync(chat, LONG, context_window=128_000, model=MODEL)
        assert list(pieces) == ["Y", "es."]
    assert server.refusals == 1


@pytest.mark.parametrize("other", [{"model": "gpt-4.1"}, {"endpoint": "http://127.0.0.1:8000/v1"}])
def test_what_one_server_states_is_not_what_another_has(other: dict[str, Any]) -> None:
    small, large = Server(), Server(window=128_000)
    ask(small)
    ask(large, **other)
    assert large.refusals == 0
    assert large.sent == [count_tokens(LONG, MODEL)]
    ask(small)
    assert small.refusals == 1


def test_a_call_that_names_no_model_teaches_nothing() -> None:
    small, large = Server(), Server(window=128_000)
    ask(small, model=None)
    ask(large, model=None)
    assert large.sent == [count_tokens(LONG, MODEL)]


def test_a_cap_on_answers_holds_for_the_next_call() -> None:
    server = Server(window=128_000, cap=4_096)
    for _ in range(3):
        ask(server, max_output_tokens=16_000)
    assert server.refusals == 1
    assert server.limits == [16_000, 4_096, 4_096, 4_096]


def test_a_window_that_is_told_smaller_than_stated_holds() -> None:
    server = Server()
    ask(server)
    ask(server, context_window=4_000)
    assert server.sent[-1] <= 4_000


def test_on_overflow_is_told_of_the_one_refusal() -> None:
    server, told = Server(), list[Overflow]()
    for _ in range(3):
        ask(server, on_overflow=told.append)
    assert [overflow.limit_tokens for overflow in told] == [8_000]


def test_what_must_stay_is_measured_by_the_window_that_was_stated() -> None:
    server = Server()
    ask(server)
    huge = [{"role": "user", "content": "all is well. " * 4_000}]
    with pytest.raises(ContextOverflowError) as raised:
        call_with_recovery_sync(server, huge, context_window=128_000, model=MODEL)
    assert raised.value.limit_tokens <= 8_000
    assert set(raised.value.parts) >= {"last_user"}


def test_beside_nanobot_it_holds_in_the_next_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shared, "nanobot_config_path", lambda: tmp_path / "config.json")
    server = Server()
    for _ in range(3):
        shared.forget()  # a process begins so
        ask(server)
    assert server.refusals == 1
    assert (tmp_path / "nanobot-context" / "learned.json").exists()


def test_without_nanobot_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / ".nanobot"
    monkeypatch.setattr(shared, "nanobot_config_path", lambda: folder / "config.json")
    shared.forget()
    ask(Server())
    assert not folder.exists()


def test_an_endpoint_is_a_text() -> None:
    with pytest.raises(InvalidArgumentError, match="`endpoint` must be a `str`"):
        ask(Server(), endpoint=8000)


def test_a_refusal_is_logged_with_who_told_the_window_and_whose_numbers_they_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(messages: list[Any], *, max_tokens: int | None) -> Any:
        raise ValueError("context_length_exceeded")

    with pytest.raises(ContextOverflowError):
        call_with_recovery_sync(refuse, LONG, context_window=64_000, model=MODEL)
    said = caplog.messages[0]
    assert "window 64000, your setting `context_window=` in code" in said
    assert f"refused about {count_tokens(LONG, MODEL):,} tokens as counted here" in said
    assert "contextWindowOverride" not in caplog.text


def test_a_provider_that_wants_reasoning_back_refuses_once() -> None:
    refusals: list[int] = []

    def chat(messages: list[Any], *, max_tokens: int | None) -> str:
        missing = [m for m in messages if m.get("tool_calls") and not m.get("reasoning_content")]
        if missing:
            refusals.append(len(missing))
            raise ValueError(
                "The reasoning_content in the thinking mode must be passed back to the API."
            )
        return "Yes."

    talk = [*LONG]
    for name in "abcdef":
        call = {"id": name, "type": "function", "function": {"name": "look", "arguments": "{}"}}
        thought = {"reasoning_content": "Look. " * 1_500, "content": ""}
        talk.append({"role": "assistant", **thought, "tool_calls": [call]})
        talk.append({"role": "tool", "tool_call_id": name, "content": "There it is."})
    for _ in range(3):
        call_with_recovery_sync(chat, talk, context_window=12_000, model=MODEL)
    assert len(refusals) == 1


def test_calls_are_recorded_beside_nanobots_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.forget()
    monkeypatch.setattr(shared, "nanobot_config_path", lambda: tmp_path / "config.json")
    server = Server()
    for _ in range(2):
        call_with_recovery_sync(server, LONG, context_window=64_000, model=MODEL)
    shared.forget()
    first, second = read_records(tmp_path / "config.json", "call_with_recovery", OWN_REQUESTS)
    assert [one.refused for one in first.attempts] == ["input", None]
    assert [one.refused for one in second.attempts] == [None]
    assert second.window_source == "the server said so"
    for record in (first, second):
        assert record.is_shortened
        assert record.cut_messages == len(record.cuts) > 0
        assert record.tokens_after < record.tokens_before


COUNTS: dict[str, Callable[[list[Any]], int]] = {
    "as here": lambda messages: count_tokens(messages, "my-model"),
    "15 % more": lambda messages: count_tokens(messages, "my-model") * 23 // 20,
    "a quarter less": lambda messages: count_tokens(messages, "my-model") * 3 // 4,
    "six a message more": lambda messages: count_tokens(messages, "my-model") + 6 * len(messages),
    "another vocabulary": lambda messages: count_tokens(messages, "qwen3-8b"),
    "by length": lambda messages: len(json.dumps(messages, ensure_ascii=False)) // 3,
}
WORDS = (
    *("alpha", "beta", "gamma", "中文", "日志", "错误", '{"k":', "17}"),
    *("https://x.y/z", "0xdeadbeef", "return", "naïve"),
)


@pytest.mark.parametrize("counted", COUNTS)
@pytest.mark.parametrize("calls", [False, True], ids=["talk", "calls"])
def test_however_a_provider_counts_its_cache_holds_and_nothing_is_refused(
    counted: str, calls: bool
) -> None:
    window, words = 8_000, random.Random(5)
    sent: list[tuple[int, list[Any]]] = []

    def chat(messages: list[Any], *, max_tokens: int | None) -> dict[str, Any]:
        tokens = COUNTS[counted](messages)
        assert tokens <= window
        sent.append((tokens, messages))
        usage = {"prompt_tokens": tokens, "completion_tokens": 5}
        choice = {"message": {"role": "assistant", "content": "."}, "finish_reason": "stop"}
        return {"choices": [choice], "usage": usage}

    def text(length: int) -> str:
        return " ".join(words.choice(WORDS) for _ in range(length))

    messages: list[dict[str, Any]] = [{"role": "system", "content": "You help."}]
    for turn in range(120):
        messages.append({"role": "user", "content": f"Item {turn}? {text(2 if calls else 40)}"})
        if calls:
            function = {"name": "read", "arguments": f'{{"item": {turn}}}'}
            call = {"id": f"c{turn}", "type": "function", "function": function}
            messages += [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"c{turn}", "content": text(80)},
            ]
        call_with_recovery_sync(
            chat, messages, context_window=window, model="my-model", endpoint=counted
        )
        messages.append({"role": "assistant", "content": f"Fine. {text(2 if calls else 40)}"})
    changed = sum(after[: len(before)] != before for (_, before), (_, after) in pairwise(sent))
    # More room is taken with a step, which keeps most of what the user said where that is too much.
    assert changed <= 15
    later = [tokens / window for tokens, _ in sent[60:]]
    assert sum(later) / len(later) > 0.5, "the room is used"
