"""Input that changes during the call: by its own code, by an archive, by another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import Any

import pytest

from nanobot_context import (
    Compressor,
    classify_message,
    compress_messages,
    count_tokens,
    emergency_compress,
    fit_messages,
)
from nanobot_context._core import find_last_user_index, fits, select_history

Message = dict[str, Any]

FUNCTIONS: dict[str, Callable[[list[Message]], Any]] = {
    "count_tokens": count_tokens,
    "fits": lambda messages: fits(messages, 1_000),
    "fit_messages": lambda messages: fit_messages(messages, 1_000).messages,
    "compress_messages": lambda messages: compress_messages(messages, 2_000),
    "emergency_compress": lambda messages: emergency_compress(messages, 2_000),
    "Compressor": lambda messages: Compressor(2_000).compress(messages),
    "select_history": lambda messages: select_history(messages, 1_000),
    "find_last_user_index": find_last_user_index,
    "classify_message": lambda messages: classify_message(messages[0]),
}


class Growing(dict[str, Any]):
    """Writes to its own message while it is written as JSON."""

    message: Message

    def items(self) -> Any:
        self.message[f"extra_{len(self.message)}"] = 1
        return super().items()


class Changing(str):
    """A key that changes its dict when it is compared."""

    message: Message
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        self.message[f"extra_{len(self.message)}"] = 1
        return str.__eq__(self, other)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=list(FUNCTIONS))
def test_a_message_may_grow_while_its_content_is_read(function: Callable[..., Any]) -> None:
    message: Message = {"role": "user"}
    content = message["content"] = Growing(type="x", a=1)
    content.message = message
    message["name"] = "me"
    function([message, {"role": "assistant", "content": "yes"}])
    assert "extra_3" in message


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=list(FUNCTIONS))
def test_a_message_may_change_while_a_key_is_compared(function: Callable[..., Any]) -> None:
    message: Message = {}
    keys = [Changing(key) for key in ("role", "content", "name")]
    for key, value in zip(keys, ("user", "hello", "me"), strict=True):
        key.message = {}
        message[key] = value
    for key in keys:
        key.message = message
    function([message])
    assert len(message) > 3


def test_a_comparison_that_calls_in_again_finds_nothing_locked() -> None:
    counts: list[int] = []

    class Calling(str):
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            counts.append(len(compress_messages([{"role": "user", "content": "inner"}], 9_000)))
            return str.__eq__(self, other)

    messages: list[Message] = [{"role": "user", "content": "hello", "timestamp": "now"}]
    assert compress_messages(messages, 9_000) == messages
    again = [{"role": "user", "content": "hello", "timestamp": Calling("now")}]
    assert compress_messages(again, 9_000) is not again
    assert counts


class Meddling:
    """An archive that changes the messages between the plan and its carrying out."""

    shown = "results"

    def __init__(self, change: Callable[[], Any]) -> None:
        self.change = change

    def missing(self, sizes: dict[str, int | None]) -> set[str]:
        self.change()
        return set()

    def write(self, texts: dict[str, str], in_use: Collection[str]) -> set[str]:
        raise NotImplementedError


def conversation() -> list[Message]:
    messages: list[Message] = [{"role": "system", "content": "sys"}]
    for n in range(6):
        arguments = '{"content": "' + f"argument {n} " * 300 + '"}'
        function = {"name": "exec", "arguments": arguments}
        call = {"id": f"c{n}", "type": "function", "function": function}
        parts = [{"type": "text", "text": f"part {k} of {n} " * 100} for k in range(3)]
        messages += [
            {"role": "user", "content": f"question {n}"},
            {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "r"},
            {"role": "tool", "tool_call_id": f"c{n}", "content": parts},
        ]
    return [*messages, {"role": "user", "content": "LAST"}]


def change_lists(messages: list[Message]) -> None:
    for message in messages:
        for key in ("content", "tool_calls"):
            if isinstance(message.get(key), list):
                message[key].clear()


def change_calls(messages: list[Message]) -> None:
    for message in messages:
        for call in message.get("tool_calls") or []:
            call.clear()


def remove_fields(messages: list[Message]) -> None:
    for message in messages:
        for key in ("content", "tool_calls", "reasoning_content"):
            message.pop(key, None)


@pytest.mark.parametrize("change", [list.clear, list.reverse])
def test_a_plan_is_carried_out_on_the_list_it_was_made_of(
    change: Callable[[list[Message]], None],
) -> None:
    messages = conversation()
    fitted = fit_messages(messages, 4_000, archive=Meddling(lambda: change(messages)))
    assert messages != conversation()
    undisturbed = fit_messages(conversation(), 4_000, archive=Meddling(lambda: None))
    assert fitted.messages == undisturbed.messages


def test_parts_are_edited_in_the_lists_that_the_plan_was_made_of() -> None:
    undisturbed = fit_messages(conversation(), 4_000, archive=Meddling(lambda: None)).messages
    messages = conversation()
    change = Meddling(lambda: change_lists(messages))
    fitted = fit_messages(messages, 4_000, archive=change).messages
    pairs = list(zip(fitted, undisturbed, strict=True))
    edited = [(new, old) for new, old in pairs if not any(new is message for message in messages)]
    parts = [(new, old) for new, old in edited if isinstance(old["content"], list)]
    assert parts
    assert all(new == old for new, old in parts)
    calls = [(new, old) for new, old in edited if new.get("tool_calls")]
    assert calls
    assert all(new == old for new, old in calls)


@pytest.mark.parametrize("change", [change_calls, remove_fields])
def test_messages_emptied_before_a_plan_is_carried_out_raise_nothing(
    change: Callable[[list[Message]], None],
) -> None:
    messages = conversation()
    fitted = fit_messages(messages, 4_000, archive=Meddling(lambda: change(messages)))
    assert fitted.messages[-1] is messages[-1]


def test_what_an_archive_raises_comes_through() -> None:
    class Broken(set[str]):
        def __iter__(self) -> Any:
            raise RuntimeError("this set cannot be read")

    archive = Meddling(lambda: None)
    archive.missing = lambda sizes: Broken()  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="cannot be read"):
        fit_messages(conversation(), 4_000, archive=archive)


def test_a_list_that_another_thread_rotates_is_read_as_it_was_at_one_moment() -> None:
    for trial in range(8):
        messages: list[Message] = [{"role": "system", "content": "sys"}]
        for n in range(20):
            text = f"answer {trial} {n}: " + f"line {n} of {trial}\n" * 1_500
            messages += [
                {"role": "user", "content": f"question {trial} {n}"},
                {"role": "assistant", "content": text},
            ]
        messages.append({"role": "user", "content": "LAST"})
        done = threading.Event()

        def rotate(messages: list[Message] = messages, done: threading.Event = done) -> None:
            while not done.is_set():
                messages[:] = messages[10:] + messages[:10]
                messages[:] = messages[-10:] + messages[:-10]

        thread = threading.Thread(target=rotate)
        thread.start()
        try:
            fitted = fit_messages(messages, 8_000, "gpt-4o")
        finally:
            done.set()
            thread.join()
        assert count_tokens(fitted.messages, "gpt-4o") == fitted.tokens <= 8_000
        for message in fitted.messages:
            said = str(message["content"])
            assert ("answer" in said) <= (message["role"] == "assistant")
