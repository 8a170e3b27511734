"""A conversation request by request: what was shortened stays as it is (promise 6)."""

from __future__ import annotations

import copy
import json
import pickle
from itertools import pairwise
from typing import Any

import pytest

from nanobot_context import (
    Compressor,
    InvalidArgumentError,
    Settings,
    compress_messages,
    count_tokens,
)

Message = dict[str, Any]
WINDOW = 12_000
BUDGET = WINDOW * 85 // 100


@pytest.mark.parametrize("overhead", [0, 6, 40])
def test_what_the_provider_takes_for_each_message_counts_of_those_that_are_sent(
    overhead: int,
) -> None:
    messages: list[Message] = [
        {"role": role, "content": f"Number {number} is well."}
        for number in range(2_000)
        for role in ("user", "assistant")
    ]
    messages.append({"role": "user", "content": "And now?"})
    given: dict[str, Any] = {"message_overhead_tokens": overhead}
    sent = compress_messages(messages, WINDOW, "gpt-4o", settings=Settings(**given))
    tokens = count_tokens(sent, "gpt-4o") + overhead * len(sent)
    assert 0.35 * BUDGET < tokens <= BUDGET
    compressor = Compressor(WINDOW, "gpt-4o", settings=Settings(**given))
    assert compressor.compress(messages) == sent
    assert pickle.loads(pickle.dumps(compressor)).compress(messages) == sent
    assert Compressor(WINDOW, "gpt-4o").compress(messages, **given) == sent


def conversation(name: str, turns: int = 4, rounds: int = 20) -> list[Message]:
    messages: list[Message] = [{"role": "system", "content": "You help. It is 10:01."}]
    for turn in range(turns):
        messages.append({"role": "user", "content": f"Task {turn} of {name}."})
        for n in range(rounds):
            call_id, path = f"{name}{turn}_{n}", f"{name}/{turn}/{n}.log"
            log = "".join(f"{path} line {line} is done\n" for line in range(20 + 7 * n % 50))
            function = {"name": "read_file", "arguments": json.dumps({"path": path})}
            call = {"id": call_id, "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append(
                {"role": "tool", "tool_call_id": call_id, "name": "read_file", "content": log}
            )
        messages.append({"role": "assistant", "content": f"Task {turn} of {name} is done."})
    return messages


def requests(messages: list[Message]) -> list[list[Message]]:
    """The messages of every request: one before each message of the assistant."""
    ends = [n for n, message in enumerate(messages) if n and message["role"] == "assistant"]
    return [messages[:end] for end in ends]


def test_requests_begin_as_the_last_one_did_but_for_rare_steps() -> None:
    compressor = Compressor(WINDOW, "gpt-4o")
    previous: list[Message] = []
    steps = 0
    all_requests = requests(conversation("a"))
    for messages in all_requests:
        sent = compressor.compress(messages)
        assert count_tokens(sent, "gpt-4o") <= BUDGET
        steps += sent[: len(previous)] != previous
        previous = sent
    assert 1 <= steps <= len(all_requests) / 8


def test_a_step_keeps_most_of_what_the_user_said_where_that_takes_nearly_all() -> None:
    """A little more of the user's words does not halve what is kept of them."""
    said = [
        f"Person {index} of the choir sings part {index * 7 % 40}, and lives {index * 13 % 17} "
        "streets from the hall."
        for index in range(100)
    ]
    answer = (
        "The list has been brought up to date as you asked, and nothing else was changed. " * 15
    )
    messages: list[Message] = [{"role": "system", "content": "You help."}]
    for words in said:
        messages += [{"role": "user", "content": words}, {"role": "assistant", "content": answer}]
    messages.append({"role": "user", "content": "Thanks."})
    users = sum(count_tokens([message]) for message in messages if message["role"] == "user")

    def kept(share: float) -> int:
        """Return how many stay where the user's words take a share of the budget."""
        sent = compress_messages(messages, int(users / share / 0.85), max_output_tokens=0)
        return sum(any(words in str(message["content"]) for message in sent) for words in said)

    assert kept(0.7) == len(said)
    assert kept(0.9) >= 80
    assert kept(1.0) >= 75


def test_steps_are_rare_where_each_second_call_is_an_edit() -> None:
    """The lines of calls with effects take no more than half of what a step would leave free."""
    messages: list[Message] = [
        {"role": "system", "content": "You are a coding agent."},
        {"role": "user", "content": "Port all modules to the new API."},
    ]
    for number in range(300):
        path = f"src/part/module_{number}.py"
        line = f"def read_{number}(x): return old.read(x)"
        result = "\n".join(f"{at}: def f{at}_{number}(x): return old.f(x)" for at in range(20))
        edit = {"path": path, "old": line, "new": line.replace("old.", "new.")}
        for name, arguments, content in (
            ("read_file", {"path": path}, result),
            ("edit_file", edit, f"Edited {path}"),
        ):
            call_id = f"{name}-{number}"
            function = {"name": name, "arguments": json.dumps(arguments)}
            call = {"id": call_id, "type": "function", "function": function}
            messages += [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": call_id, "content": content},
            ]
    sent = [compress_messages(request, 8_000) for request in requests(messages)]
    changed = sum(after[: len(before)] != before for before, after in pairwise(sent))
    assert changed * 6 < len(sent)


def test_the_function_the_class_and_a_restart_come_to_the_same() -> None:
    running = Compressor(WINDOW, "gpt-4o")
    for messages in requests(conversation("a"))[::5]:
        sent = running.compress(messages)
        again = copy.deepcopy(messages)
        assert Compressor(WINDOW, "gpt-4o").compress(again) == sent
        assert compress_messages(again, WINDOW, "gpt-4o") == sent


def test_conversations_that_take_turns_are_not_confused() -> None:
    first, second = conversation("a"), conversation("b")
    # The same beginning, and then another way.
    third = [*first[:90], {"role": "user", "content": "Stop."}, *second[2:]]
    pairs = zip(requests(first), requests(second), requests(third), strict=False)
    shared, alone = Compressor(WINDOW), [Compressor(WINDOW) for _ in range(3)]
    for group in list(pairs)[::3]:
        for messages, compressor in zip(group, alone, strict=True):
            sent = compressor.compress(messages)
            assert shared.compress(messages) == sent
            assert compress_messages(messages, WINDOW) == sent
            said = {message["content"] for message in messages}
            texts = [text for m in sent for text in (m["content"] or "").split("\n\n")]
            kept = [text for text in texts if text and "left out" not in text]
            assert kept
            assert all(text in said for text in kept)


def test_a_clock_in_the_system_prompt_moves_nothing() -> None:
    compressor = Compressor(WINDOW)
    for messages in requests(conversation("a"))[40:]:
        before = compressor.compress(messages)
        later = [{"role": "system", "content": "You help. It is 22:47:13."}, *messages[1:]]
        after = compressor.compress(later)
        assert after[1:] == before[1:]
        assert after[0] is later[0]


def test_a_message_changed_in_place_is_seen() -> None:
    messages = conversation("a")
    compressor = Compressor(WINDOW)
    before = compressor.compress(messages)
    kept = next(n for n, m in enumerate(messages) if m["role"] == "tool" and m in before)
    messages[kept]["content"] = "nothing " * 20
    after = compressor.compress(messages)
    assert after != before
    assert after == Compressor(WINDOW).compress(copy.deepcopy(messages))


def test_frozen_cuts_keep_the_keys_that_come_in() -> None:
    messages = conversation("a")
    compressor = Compressor(WINDOW)
    cut = [n for n, m in enumerate(compressor.compress(messages)) if m not in messages]
    assert cut
    numbered = [{**message, "n": n} for n, message in enumerate(messages)]
    sent = compressor.compress(numbered)
    assert [{k: v for k, v in m.items() if k != "n"} for m in sent] == compressor.compress(messages)
    assert all(message["role"] == "user" or "n" in message for message in sent)


def test_the_receipt_names_what_earlier_steps_cut() -> None:
    messages = conversation("a")
    compressor = Compressor(WINDOW)
    for request in requests(messages):
        numbered = [{**message, "n": n} for n, message in enumerate(request)]
        sent = {
            message["n"]: message for message in compressor.compress(numbered) if "n" in message
        }
        receipt = compressor.receipt
        changed = {n for n, message in enumerate(numbered) if sent.get(n) != message}
        assert changed == ({cut.index for cut in receipt.cuts} if receipt else set())
        if receipt:
            assert receipt.tokens_before == count_tokens(request)


def test_a_lower_window_makes_the_next_request_smaller() -> None:
    messages = conversation("a")
    compressor = Compressor(WINDOW)
    refused = count_tokens(compressor.compress(messages))
    assert count_tokens(compressor.compress(messages, context_window=refused)) <= refused * 0.85
    assert compressor.context_window == WINDOW
    with pytest.raises(InvalidArgumentError, match="context_window"):
        compressor.compress(messages, context_window=-1)
