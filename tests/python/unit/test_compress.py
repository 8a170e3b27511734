"""What compression does on conversations that one can read. For every input: property/."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import nanobot_context
from nanobot_context import (
    Compressor,
    ContextOverflowError,
    Priority,
    Settings,
    classify_message,
    compress_messages,
    count_tokens,
    emergency_compress,
    fit_messages,
    trim_tool_result,
)

Message = dict[str, Any]
LOG = "".join(f"2026-05-01 12:00:{n % 60:02} worker {n} finished\n" for n in range(400))


def user(content: Any) -> Message:
    return {"role": "user", "content": content}


def assistant(content: Any, **fields: Any) -> Message:
    return {"role": "assistant", "content": content, **fields}


def read(path: str, result: str, call_id: str = "c1") -> list[Message]:
    function = {"name": "read_file", "arguments": f'{{"path": "{path}"}}'}
    call = {"id": call_id, "type": "function", "function": function}
    answer = {"role": "tool", "tool_call_id": call_id, "name": "read_file", "content": result}
    return [assistant(None, tool_calls=[call]), answer]


def rounds(number: int) -> list[Message]:
    """One turn of `number` tool rounds."""
    messages = [{"role": "system", "content": "You help."}, user("Look at all the logs.")]
    for n in range(number):
        messages += read(f"logs/{n}.txt", LOG, f"c{n}")
    return messages


def test_what_fits_comes_back_as_a_new_list_of_the_same_messages() -> None:
    messages = rounds(2)
    result = compress_messages(messages, 1_000_000, "gpt-4o")
    assert result is not messages
    assert all(a is b for a, b in zip(result, messages, strict=True))


def test_after_20_tool_rounds_in_one_turn_the_request_is_within_85_percent() -> None:
    messages = rounds(20)
    window = 32_000
    assert count_tokens(messages, "gpt-4o") > window
    result = compress_messages(messages, window, "gpt-4o")
    # A step leaves 65 % of the budget, and more until the next one.
    assert 0.85 * 0.65 * 0.9 * window <= count_tokens(result, "gpt-4o") <= 0.85 * window
    assert len(result) == len(messages), "nothing is dropped while shortening is enough"
    assert result[:2] == messages[:2]
    assert result[-1] is messages[-1], "the newest result stays whole"


def test_every_shortened_result_keeps_its_path() -> None:
    result = compress_messages(rounds(60), 8_000, "gpt-4o")
    for message in result:
        for call in message.get("tool_calls") or []:
            assert "logs/" in call["function"]["arguments"]
        if message["role"] == "tool" and message["content"].startswith("[read_file"):
            assert "logs/" in message["content"]


def test_a_reserve_for_the_answer_lowers_the_budget() -> None:
    messages = rounds(20)
    result = compress_messages(messages, 32_000, "gpt-4o", max_output_tokens=16_000)
    assert count_tokens(result, "gpt-4o") <= 16_000


def test_tool_schemas_are_part_of_the_budget() -> None:
    tool = {"type": "function", "function": {"name": "f", "description": "words " * 4_000}}
    messages = rounds(20)
    result = compress_messages(messages, 32_000, "gpt-4o", tools=[tool])
    assert count_tokens(result, "gpt-4o", tools=[tool]) <= 0.85 * 32_000


def test_an_emergency_ends_below_60_percent_without_reasoning() -> None:
    messages = [*rounds(20), assistant("So.", reasoning_content="Hm. " * 500)]
    result = emergency_compress(messages, 32_000, "gpt-4o")
    assert count_tokens(result, "gpt-4o") < 0.6 * 32_000
    assert not any("reasoning_content" in message for message in result)


def test_an_emergency_and_a_compressor_leave_room_for_the_answer_that_is_asked_for() -> None:
    messages = rounds(20)
    ways: tuple[Callable[[], list[Message]], ...] = (
        lambda: emergency_compress(messages, 32_000, "gpt-4o", max_output_tokens=24_000),
        lambda: Compressor(32_000, "gpt-4o", max_output_tokens=24_000).compress(messages),
        lambda: Compressor(32_000, "gpt-4o", max_output_tokens=24_000).emergency(messages),
        lambda: Compressor(32_000, "gpt-4o").compress(messages, max_output_tokens=24_000),
    )
    for shorten in ways:
        assert 0 < count_tokens(shorten(), "gpt-4o") <= 8_000
    copied = pickle.loads(pickle.dumps(Compressor(32_000, "gpt-4o", max_output_tokens=24_000)))
    assert count_tokens(copied.compress(messages), "gpt-4o") <= 8_000


def test_an_emergency_leaves_system_and_last_user_message_byte_for_byte() -> None:
    system = {"role": "system", "content": "rules", "reasoning_content": "why " * 1_000}
    question = user("go") | {"reasoning_content": "because " * 1_000}
    result = emergency_compress([system, question, *read("a", LOG)], 32_000, "gpt-4o")
    assert result[0] is system
    assert result[1] is question


def test_a_system_message_before_the_last_round_keeps_its_reasoning() -> None:
    system = {"role": "system", "content": "rules", "reasoning_content": "why " * 1_000}
    result = compress_messages([system, user("go")], 32_000, "gpt-4o")
    assert result[0] is system


def test_what_must_stay_and_is_too_large_is_named_part_by_part() -> None:
    messages = [{"role": "system", "content": "rule " * 3_000}, user("word " * 1_000)]
    tool = {"type": "function", "function": {"name": "f", "description": "words " * 500}}
    with pytest.raises(ContextOverflowError) as caught:
        emergency_compress(messages, 4_000, "gpt-4o", tools=[tool])
    error = caught.value
    assert error.limit_tokens == 2_399
    assert error.model == "gpt-4o"
    assert error.needed_tokens == sum(error.parts.values())
    assert error.needed_tokens == count_tokens(messages, "gpt-4o", tools=[tool])
    assert list(error.parts) == ["system", "last_user", "tools", "framing"], "largest first"
    assert str(error) == (
        f"what must stay needs {error.needed_tokens} tokens for `gpt-4o` but 2399 are allowed "
        f"(system {error.parts['system']}, last_user {error.parts['last_user']}, "
        f"tools {error.parts['tools']} with `f` {error.largest_tools['f']}, framing 3)"
    )


def test_a_user_who_quotes_a_note_is_still_the_user() -> None:
    quoting = user("[nanobot-context: 3 earlier messages left out here, 40 tokens] - what is it?")
    messages = [user("hello"), assistant("word " * 5_000), quoting]
    assert fit_messages(messages, 200, "gpt-4o").messages[-1] is quoting
    assert nanobot_context.find_last_user_index(messages) == 2


def test_repairs_are_listed_in_the_receipt() -> None:
    calling = assistant(None, tool_calls=[{"id": "a"}, {"id": "a", "function": {"name": "f"}}])
    orphan = {"role": "tool", "tool_call_id": "x", "content": "lost"}
    fitted = fit_messages([user("go"), orphan, calling], 1_000)
    assert [(cut.index, cut.reason) for cut in fitted.receipt.cuts] == [
        (1, "orphan_result"),
        (2, "malformed_call"),
        (2, "missing_result"),
        (2, "missing_result"),
    ]
    assert [message["role"] for message in fitted.messages] == ["user", "assistant", "tool", "tool"]
    ids = [call["id"] for call in fitted.messages[1]["tool_calls"]]
    assert ids == ["a", "call_2_1"] == [m["tool_call_id"] for m in fitted.messages[2:]]
    assert fitted.messages[1]["tool_calls"][0]["name"] == "unknown_tool"
    assert fitted.messages[3]["content"] == "[no result was recorded for this call]"
    assert calling["tool_calls"] == [{"id": "a"}, {"id": "a", "function": {"name": "f"}}]


def calling(*ids: str) -> Message:
    functions = {"name": "f", "arguments": "{}"}
    calls = [{"id": id_, "type": "function", "function": functions} for id_ in ids]
    return assistant(None, tool_calls=calls)


def result(id_: str, text: str = "port 8080") -> Message:
    return {"role": "tool", "tool_call_id": id_, "content": text}


@pytest.mark.parametrize(
    "late",
    [
        [calling("a", "b"), result("a"), user("Quick!"), result("b")],
        [calling("a"), calling("b"), result("a"), result("b")],
        [calling("a"), {"role": "system", "content": "Note."}, result("a")],
        [calling("a"), assistant("Meanwhile."), user("Well?"), result("a"), user("So?")],
    ],
)
def test_a_result_that_came_late_moves_to_its_call(late: list[Message]) -> None:
    given = [user("Go."), *late]
    moved = [fit_messages(given, 9_000).messages, compress_messages(given, 9_000)]
    moved += [emergency_compress(given, 9_000)]
    for sent in moved:
        assert sorted(map(id, sent)) == sorted(map(id, given)), "nothing is new, nothing is gone"
        for at, message in enumerate(sent):
            ids = [call["id"] for call in message.get("tool_calls", ())]
            answers = [one.get("tool_call_id") for one in sent[at + 1 : at + 1 + len(ids)]]
            assert answers == ids
        assert compress_messages(sent, 9_000) == sent
    reasons = {cut.reason for cut in fit_messages(given, 9_000).receipt.cuts}
    assert reasons == {"late_result"}
    # What is cut, too, is still the result of its call.
    long = [{**one, "content": "line\n" * 4_000} if "tool_call_id" in one else one for one in given]
    fitted = fit_messages(long, 1_500)
    assert {"role": "tool"}.items() <= fitted.messages[2].items()
    assert "no result" not in str(fitted.messages)


def test_a_receipt_compares_and_shows_itself() -> None:
    messages = rounds(20)
    first, second = (fit_messages(messages, 9_000, "gpt-4o") for _ in range(2))
    assert first.receipt == second.receipt
    assert first.receipt != fit_messages(messages, 8_000, "gpt-4o").receipt
    assert first.receipt.cuts[0] == second.receipt.cuts[0]
    assert first.receipt.source == "exact"
    assert fit_messages(messages, 20_000, "claude-opus-4-5").receipt.source == "estimated"
    assert repr(first) == f"Fitted(messages=<{len(first.messages)}>, tokens={first.tokens})"
    assert repr(first.receipt).startswith("Receipt(tokens_before=")
    assert repr(first.receipt.cuts[0]).startswith("Cut(index=3, reason='budget', tokens_before=")
    with pytest.raises(AttributeError):
        first.tokens = 5  # type: ignore[misc]


def test_a_receipt_names_what_left_the_context_and_where_it_was() -> None:
    logs = [
        "".join(f"job_{n}_{i} left srv/{n}/{i}.csv\n" for i in range(99))
        + f"ERROR in {n}\nall of it done\n"
        for n in range(6)
    ]
    results = [m for n, text in enumerate(logs) for m in read(f"logs/{n}.txt", text, f"c{n}")]
    messages = [user("Check the logs."), *results, user("What of job_1_1?")]
    fitted = fit_messages(messages, 3_000, "gpt-4o")
    said = "\n".join(f"{m.get('content')}\n{m.get('tool_calls')}" for m in fitted.messages)
    told = [
        (2 + 2 * n, kind, text)
        for n in range(6)
        for kind, text in [
            *(
                one
                for i in range(99)
                for one in (("id", f"job_{n}_{i}"), ("path", f"srv/{n}/{i}.csv"))
            ),
            ("error", f"ERROR in {n}"),
        ]
    ]
    expected = [one for one in told if not re.search(rf"{one[2]}\b", said)]
    receipt = fitted.receipt
    assert len(expected) > 500
    assert [(lost.index, lost.kind, lost.text) for lost in receipt.lost] == expected
    assert fit_messages(messages, 100_000).receipt.lost == []
    assert repr(receipt.lost[0]).startswith("Lost(index=2, kind='id', text=\"job_0_")
    fitted.messages.clear()
    assert len(fit_messages(messages, 3_000, "gpt-4o").receipt.lost) == len(expected)
    messages.clear()
    assert len(receipt.lost) == len(expected)


def test_a_compressor_keeps_what_it_was_made_with_and_the_last_receipt() -> None:
    compressor = Compressor(32_000, "gpt-4o", tools=[])
    assert (compressor.context_window, compressor.model) == (32_000, "gpt-4o")
    assert compressor.receipt is None
    result = compressor.compress(rounds(20))
    assert compressor.receipt is not None
    assert compressor.receipt.tokens_after == count_tokens(result, "gpt-4o")
    compressor.compress([user("hi")])
    assert compressor.receipt is None
    result = compressor.emergency(rounds(20))
    assert compressor.receipt is not None
    assert compressor.receipt.tokens_after == count_tokens(result, "gpt-4o") < 0.6 * 32_000


def test_a_message_changed_in_place_is_looked_at_again() -> None:
    messages = rounds(2)
    functions: list[Callable[[], list[Message]]] = [
        lambda: compress_messages(messages, 32_000, "gpt-4o"),
        lambda: Compressor(32_000, "gpt-4o").compress(messages),
    ]
    for compress in functions:
        messages[:] = rounds(2)
        assert len(compress()) == len(compress()) == 6
        messages[3]["content"] = LOG * 20
        assert count_tokens(compress(), "gpt-4o") <= 0.85 * 32_000
        messages[3]["content"] = LOG
        messages[2]["tool_calls"][0]["id"] = "other"
        assert compress()[3]["tool_call_id"] == "other"
        messages[2]["tool_calls"][0]["id"] = "c0"
        del messages[3]
        assert compress()[3]["content"] == "[no result was recorded for this call]"
        messages[3:] = [{"role": "tool", "tool_call_id": "c0", "content": "fine"}]
        assert compress() == messages


def test_settings_change_the_limits() -> None:
    old = assistant("word " * 3_000, reasoning_content="so " * 600)
    messages = [user("one"), old, user("two")]
    settings = replace(Settings(), reasoning_keep_chars=100, max_assistant_message_chars=1_000)
    # A request that fits is not cut.
    assert compress_messages(messages, 100_000, settings=settings) == messages
    window = 4_000
    assert "word word [..." in str(compress_messages(messages, window, settings=Settings())[1])
    result = compress_messages(messages, window, settings=settings)
    assert result[1]["reasoning_content"].startswith("[reasoning left out: ")
    # 60 % of the limit from the start and 20 % from the end: document 001, stage seven.
    head, tail = result[1]["content"].split("\n[... 14,200 characters left out ...]\n")
    assert (head, tail) == (old["content"][:600], old["content"][-200:])
    off = replace(settings, reasoning_keep_chars=10_000, max_assistant_message_chars=0)
    assert len(compress_messages(messages, window, settings=off)[1]["content"]) > 2_000


def test_a_trimmed_result_keeps_first_and_last_lines() -> None:
    trimmed = trim_tool_result(LOG, 3_000)
    assert trimmed.startswith(LOG[:100])
    assert trimmed.endswith(LOG[-100:])
    assert len(trimmed) <= 3_000
    assert len(trim_tool_result(LOG * 100)) <= 15_000
    lines = trim_tool_result(LOG[:-1], 3_000, head_lines=2, tail_lines=1).split("\n")
    assert [lines[0], lines[1], lines[-1]] == [LOG.split("\n")[n] for n in (0, 1, 399)]
    assert len(lines) == 4
    assert trim_tool_result("short") == "short"
    assert trim_tool_result("short", 2) == "sh"
    assert trim_tool_result("short", 0) == ""


@pytest.mark.parametrize(
    ("message", "priority"),
    [
        (user("We decided to use SQLite. It must never write to /etc."), Priority.HIGH),
        (user("hello"), Priority.NORMAL),
        ({"role": "tool", "name": "list_dir", "content": "a b c"}, Priority.LOW),
    ],
)
def test_messages_are_classified_by_rules(message: Message, priority: Priority) -> None:
    assert classify_message(message) is priority


def exchange(number: int) -> list[Message]:
    """Return a call that ran with its result: one that reads, runs, writes in turn."""
    name, arguments, result = (
        ("read_file", {"path": f"/srv/part{number}.log"}, "GET /orders 200 OK\n" * 2_000),
        ("exec", {"command": f"make deploy-{number}"}, "deployed\nExit code: 0"),
        ("write_file", {"path": f"/srv/out{number}.txt", "content": "x" * 400}, "Written."),
    )[number % 3]
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "name": name, "content": result},
    ]


@pytest.mark.parametrize(
    ("calls", "room"),
    [
        (calls, room)
        for calls in (1, 2, 3, 6, 12)
        for room in (100, 130, 180, 260, 400, 700, 1_500, 3_000)
        # So many names are more tokens than that.
        if room >= 90 + 9 * calls
    ],
)
def test_in_little_room_every_call_that_ran_is_named_and_rules_stay(calls: int, room: int) -> None:
    messages: list[Message] = [
        {"role": "system", "content": "You are nanobot. " * 100},
        {"role": "user", "content": "Please call me Captain from now on."},
        {"role": "assistant", "content": "Yes, Captain."},
        {"role": "user", "content": "Deploy the service."},
        *(message for number in range(calls) for message in exchange(number)),
    ]
    fixed = count_tokens([messages[0], messages[3]], "gpt-4o")
    fitted = fit_messages(messages, fixed + room, "gpt-4o")
    assert fitted.tokens <= fixed + room
    shown = json.dumps(fitted.messages)
    assert "call me Captain" in shown
    named = [(f"part{n}.log", f"deploy-{n}", f"out{n}.txt")[n % 3] for n in range(calls)]
    assert [name for name in named if name not in shown] == []


def test_a_result_counts_by_the_call_that_it_answers() -> None:
    result = {"role": "tool", "tool_call_id": "c", "content": "重要：keep this"}

    def of(name: str, arguments: dict[str, str]) -> Priority:
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": "c", "type": "function", "function": function}
        return nanobot_context.classify_message(result, call)

    assert nanobot_context.classify_message(result) is Priority.HIGH
    assert of("read_file", {"path": "a"}) is Priority.LOW
    assert of("exec", {"command": "ls -la"}) is Priority.LOW
    assert of("exec", {"command": "make"}) is Priority.HIGH


@pytest.mark.parametrize(("results", "share"), [(6, 0.18), (6, 0.35), (14, 0.25)])
def test_earlier_results_keep_their_odd_line_beside_a_newest_one_that_fills_the_room(
    results: int, share: float
) -> None:
    messages, odd = [user("Collect what these tools print.")], []
    for number in range(results):
        lines = [f"worker-{number} item {i:04} stored in {20 + i * 7 % 60} ms" for i in range(300)]
        odd.append(f"worker-{number} item 0150 moved to quarantine")
        lines[150] = odd[-1]
        messages += read(f"log/{number}.txt", "\n".join(lines), f"c{number}")
        if number % 3 == 2:
            messages += [assistant("Next one."), user("Yes.")]
    messages += [assistant("That was all."), user("Thanks. What now?")]
    window = int(nanobot_context.count_tokens(messages) * share / 0.85)
    sent = json.dumps(compress_messages(messages, window))
    assert [line for line in odd if line not in sent] == []


@pytest.mark.parametrize("rule", ["Always answer in German.", "以后都用中文回答。"])
@pytest.mark.parametrize("window", [5_000, 6_000])
def test_a_rule_stays_at_the_head_of_a_long_line_where_the_user_says_much(
    rule: str, window: int
) -> None:
    def called(name: str, result: str) -> list[Message]:
        function = {"name": name, "arguments": json.dumps({"id": f"{name} {len(messages)}"})}
        call = {"id": f"c{len(messages)}", "type": "function", "function": function}
        return [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": result},
        ]

    log = "".join(f"2026-11-25 10:{n:04} GET /orders/{n} 200 OK {n}ms\n" for n in range(200))
    captain = "Task 1: From now on call me Captain. Look into it."
    asked = (captain, f"Task 2: {rule} Look into it. " + "pasted text" * 300, captain, "Task 4.")
    messages: list[Message] = [{"role": "system", "content": "You are careful."}]
    for turn, said in enumerate(asked):
        messages.append({"role": "user", "content": said})
        for _ in range(2):
            messages += called("send_payment", f"paid, receipt RX700{turn}")
            messages += called("fetch_log", log) if turn in (1, 3) else []
    shown = json.dumps(compress_messages(messages, window), ensure_ascii=False)
    assert rule in shown
    assert "call me Captain" in shown


def test_what_fills_a_budget_up_takes_no_place_of_a_rule() -> None:
    paste = " pasted text" * 500
    messages: list[Message] = [
        {"role": "system", "content": "You are careful."},
        {"role": "user", "content": "Task 3: Always answer in German. Look into it." + paste},
        {"role": "user", "content": "Task 7: Look into it." + paste},
    ]
    least = count_tokens(messages[::2])
    for budget in range(least + 40, least + 900, 5):
        assert "Always answer in German" in str(fit_messages(messages, budget).messages), budget


def test_a_rule_that_is_said_again_gives_way_to_another() -> None:
    again = ("From now on call me Captain.", "Always answer in German.") * 8
    messages: list[Message] = [{"role": "system", "content": "You are careful."}]
    for turn, rule in enumerate(("Never delete files without asking me first.", *again)):
        said = f"Task {turn} of 20: {rule} Look into it." + " pasted text" * 300
        messages += [{"role": "user", "content": said}, {"role": "assistant", "content": "Done."}]
    messages.append({"role": "user", "content": "Go on."})
    for budget in range(300, 1_000, 50):
        shown = str(fit_messages(messages, budget).messages)
        assert "Never delete" in shown, budget
        assert "German" in shown, budget


def test_rules_stay_at_every_budget_beside_a_newest_group_that_nearly_fills_it() -> None:
    rules = ["From now on call me Captain.", "Always answer in German."]
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are careful."}]

    def say(text: str) -> None:
        number = sum(message["role"] == "user" for message in messages)
        time = f"[Message Time: 2026-11-26T08:25:5{number}.012064]"
        messages.append({"role": "user", "content": f"{time}\nTask {number} of 402: {text}"})

    def call(name: str, arguments: dict[str, Any], result: str) -> None:
        key = f"c{len(messages)}"
        function = {"name": name, "arguments": json.dumps(arguments)}
        calls = [{"id": key, "type": "function", "function": function}]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages.append({"role": "tool", "tool_call_id": key, "content": result})

    def pay(number: int) -> None:
        to = {"to": f"acct-402x{number}", "amount": 20 + number}
        call("send_payment", to, f"paid, receipt RX70{number:02}")

    def read(number: int, lines: int = 22) -> None:
        log = (
            f"2026-11-25 10:00:{line:02} GET /orders/{number}-{line} 200 OK {line * 37 % 997}ms"
            for line in range(lines)
        )
        call("fetch_log", {"id": f"log402x{number}", "lines": lines}, "\n".join(log))

    paste = " pasted text" * 819
    for text, numbers in [
        (f"{rules[0]} Look into it.{paste}", []),
        (f"Look into it.{paste}", [11, 12]),
        (f"{rules[1]} Look into it.", [21]),
        ("Look into it.", [30]),
        (f"Look into it.{paste}", [40, 41]),
    ]:
        say(text)
        for number in numbers:
            read(100 + number, 40)
            pay(number)
        messages.append({"role": "assistant", "content": "Done."})
    say("Look into it.")
    for number in (500, 510, 530):
        read(number)
    for budget in range(500, 2_600, 7):
        kept = json.dumps(fit_messages(messages, budget, "my-model").messages)
        assert [rule for rule in rules if rule not in kept] == [], budget
