"""Histories put together, their tails and calls repaired; when to name an earlier response.

The last part is what the suite of document 003 checks of its `prev_context` (listed in
spec/sessions-and-summaries.md, 2.10). Here otherwise, on purpose:

- a tail is dropped only where all of the current messages match, and calls, answered calls and ids
  match, too; there, any part of it went, and two equal messages of a user became one;
- foreign, late and repeated results go; there, only late ones did;
- the newest answer must be the one with the response's id; there, an older one would do, and the
  provider would not have known what came after it;
- a provider's address is compared by its host; there, by a search in the whole address;
- what is too long is found by this package's own detection of overflows, and a response that the
  provider does not find any more is taken for an id that cannot be used.
"""

from __future__ import annotations

import copy
import json
from typing import Any, Literal

import pytest

from nanobot_context import InvalidArgumentError
from nanobot_context.history import (
    assemble_history,
    drop_duplicate_tail,
    ensure_tool_responses,
    history_ladder,
)
from nanobot_context.responses import (
    Fallback,
    PreviousResponse,
    previous_response,
    previous_response_fallback,
)
from nanobot_context.summary import Summary, wrap_summary

Message = dict[str, Any]


def user(text: str = "hi", **fields: Any) -> Message:
    return {"role": "user", "content": text, **fields}


def assistant(text: str | None = "ok", *call_ids: str) -> Message:
    message: Message = {"role": "assistant", "content": text}
    if call_ids:
        message["tool_calls"] = [call(id_) for id_ in call_ids]
    return message


def call(id_: str) -> Message:
    return {"id": id_, "type": "function", "function": {"name": "f", "arguments": "{}"}}


def result(id_: str, text: str = "result") -> Message:
    return {"role": "tool", "tool_call_id": id_, "content": text}


def rounds(count: int) -> list[Message]:
    """Rounds of four messages, each with a call and its result."""
    return [
        message
        for n in range(count)
        for message in (
            user(f"question {n}"),
            assistant(None, f"c{n}"),
            result(f"c{n}"),
            assistant(f"answer {n}"),
        )
    ]


SYSTEM: Message = {"role": "system", "content": "You help."}


def same(made: list[Message], expected: list[Message]) -> bool:
    """Whether they are the very same objects."""
    return list(map(id, made)) == list(map(id, expected))


# --- assemble_history ---------------------------------------------------------------------------


def test_a_message_that_stands_for_a_summary_says_it() -> None:
    placeholder = {
        "role": "assistant",
        "content": "Context summarised.",
        "summary": "They weigh 12 kg.",
        "metadata": {"type": "session_summary", "summary_id": "s1"},
    }
    own = {"role": "assistant", "content": "Done.", "summary": "x", "metadata": {"type": "note"}}
    shown = assemble_history([placeholder, own])
    assert shown == [{"role": "assistant", "content": wrap_summary("They weigh 12 kg.")}, own]
    assert placeholder["content"] == "Context summarised."
    # As a column of a table has it.
    row = {**placeholder, "metadata": json.dumps(placeholder["metadata"])}
    assert assemble_history([row, own]) == shown
    for wrong in ("{", "5", "[" * 100_000):
        assert assemble_history([{**row, "metadata": wrong}]) == [{**row, "metadata": wrong}]


def test_without_a_summary_everything_is_shown() -> None:
    messages = [SYSTEM, *rounds(30)]
    assert same(assemble_history(messages), messages)
    assert assemble_history([]) == []


def test_a_summary_stands_behind_the_instructions_and_before_what_follows_it() -> None:
    messages = [SYSTEM, *rounds(3)]
    history = assemble_history(messages, summary=Summary("so far", covers=5))
    assert history[1] == {"role": "system", "content": wrap_summary("so far")}
    assert same([history[0], *history[2:]], [SYSTEM, *messages[5:]])


@pytest.mark.parametrize("covers", [0, 1, 13])
def test_instructions_are_shown_whatever_is_covered(covers: int) -> None:
    messages = [SYSTEM, *rounds(3)]
    history = assemble_history(messages, summary=Summary("so far", covers))
    assert same([history[0], *history[2:]], [SYSTEM, *messages[max(covers, 1) :]])


def test_recent_messages_need_no_summary() -> None:
    messages = [SYSTEM, *rounds(5)]
    summary = Summary("so far", covers=9)
    recent = assemble_history(messages, summary=summary, mode="recent", rounds=2)
    assert same(recent, [SYSTEM, *messages[-8:]])
    assert same(assemble_history(messages, mode="recent"), messages)


@pytest.mark.parametrize(
    ("limits", "shown"),
    [
        ({"rounds": 1}, 4),
        ({"rounds": 5}, 20),
        ({"rounds": 9}, 20),
        ({"max_messages": 20}, 20),
        ({"max_messages": 11}, 8),
        ({"max_messages": 8}, 8),
        ({"max_messages": 11, "rounds": 1}, 4),
        ({"max_messages": 4, "rounds": 3}, 4),
    ],
)
def test_a_limit_cuts_at_a_user_message(limits: dict[str, Any], shown: int) -> None:
    messages = rounds(5)
    modes: list[Literal["summary", "recent"]] = ["summary", "recent"]
    for mode in modes:
        assert same(assemble_history(messages, mode=mode, **limits), messages[20 - shown :])
    behind = assemble_history(messages, summary=Summary("so far", 4), **limits)
    assert same(behind[1:], messages[20 - min(shown, 16) :])


def test_a_limit_within_a_round_parts_no_call_from_its_result() -> None:
    long = [user(), *(m for n in range(5) for m in (assistant(None, f"c{n}"), result(f"c{n}")))]
    for limit, shown in ((11, 11), (10, 10), (9, 8), (2, 2), (1, 0)):
        assert len(assemble_history(long, max_messages=limit)) == shown
    assert same(assemble_history(long, max_messages=9), long[3:])


def test_a_late_result_keeps_its_call() -> None:
    messages = [user(), assistant(None, "a"), user("wait"), result("a"), user("go on")]
    assert same(assemble_history(messages, max_messages=4), messages[4:])
    assert same(assemble_history(messages, rounds=2), messages[4:])


def test_results_that_answer_nothing_neither_begin_a_history_nor_hold_up_a_cut() -> None:
    lost = [user(), assistant(), result("a"), assistant()]
    assert same(assemble_history(lost, max_messages=2), lost[3:])
    repeated = [user(), assistant(None, "a"), result("a"), user(), result("a")]
    assert same(assemble_history(repeated, rounds=1), repeated[3:])


def test_the_current_messages_are_appended_and_not_doubled() -> None:
    messages = rounds(3)
    now = [user("now")]
    assert same(assemble_history(messages, current=now), [*messages, *now])
    stored = [*messages, user("now")]
    assert same(assemble_history(stored, current=now), [*messages, *now])
    limited = assemble_history(stored, current=now, max_messages=4)
    assert same(limited, [*messages[-4:], *now]), "the limit is for what came before"
    covered = assemble_history(stored, summary=Summary("all", 13), current=now)
    assert same(covered[1:], now)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *(("max_messages", value) for value in (0, -1, 1.5, True, "5")),
        *(("rounds", value) for value in (0, -3)),
        ("mode", "all"),
    ],
)
def test_what_cannot_be_used_is_named(argument: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        assemble_history(rounds(1), **{argument: value})
    assert caught.value.argument == argument


def test_a_summary_of_another_conversation_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="covers 9 messages, but there are 4"):
        assemble_history(rounds(1), summary=Summary("so far", 9))
    assert len(assemble_history(rounds(1), summary=Summary("so far", 9), mode="recent")) == 4


def test_what_came_in_stays_as_it_was() -> None:
    messages = [SYSTEM, *rounds(3), user("now")]
    before = copy.deepcopy(messages)
    now = [user("now")]
    assemble_history(messages, summary=Summary("so far", 5), current=now, max_messages=3)
    drop_duplicate_tail(messages, now)
    ensure_tool_responses(messages[:3])
    assert messages == before
    assert now == [user("now")]


# --- drop_duplicate_tail ------------------------------------------------------------------------


def test_a_tail_that_is_the_current_request_goes() -> None:
    history = [*rounds(1), user("a"), assistant("b")]
    assert same(drop_duplicate_tail(history, [user("a"), assistant("b")]), history[:4])
    assert same(drop_duplicate_tail(history, []), history)
    assert drop_duplicate_tail([], [user()]) == []


def test_a_tail_that_matches_in_part_stays() -> None:
    for history in ([*rounds(1), user("b")], [user("b")], [user("a")]):
        assert same(drop_duplicate_tail(history, [user("a"), user("b")]), history)


def test_of_equal_messages_of_a_user_only_the_current_one_goes() -> None:
    history = [user("ok"), user("ok"), user("ok")]
    assert same(drop_duplicate_tail(history, [user("ok")]), history[:2])
    assert same(drop_duplicate_tail(history, [user("go"), user("ok")]), history)


@pytest.mark.parametrize(
    ("stored", "current"),
    [
        ("text", [{"type": "text", "text": "text"}]),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        (None, ""),
        ("", []),
        ([{"type": "image_url", "image_url": {"url": "u"}}],) * 2,
    ],
)
def test_content_is_compared_by_what_it_says(stored: Any, current: Any) -> None:
    history = [user("first"), {"role": "user", "content": stored}]
    assert drop_duplicate_tail(history, [{"role": "user", "content": current}]) == [user("first")]


@pytest.mark.parametrize(
    "other",
    [
        user("text "),
        assistant("text"),
        {"role": "user", "content": [{"type": "text", "text": "text"}, {"type": "image_url"}]},
        user("text", id="m2"),
        user("text", message_id=8),
    ],
)
def test_what_is_not_the_same_stays(other: Message) -> None:
    history = [user("text", id="m1", message_id=7)]
    assert same(drop_duplicate_tail(history, [other]), history)


def test_calls_and_results_are_the_same_only_with_the_same_ids() -> None:
    tail = [assistant(None, "a"), result("a")]
    assert drop_duplicate_tail(tail, [assistant(None, "a"), result("a")]) == []
    for other in ([assistant(None, "b"), result("a")], [assistant(None), result("a")]):
        assert same(drop_duplicate_tail(tail, other), tail)
    assert same(drop_duplicate_tail(tail, [result("b")]), tail)


def test_images_that_differ_are_two_messages() -> None:
    def image(url: str) -> Message:
        parts = [
            {"type": "text", "text": "what is this?"},
            {"type": "image_url", "image_url": {"url": url}},
        ]
        return {"role": "user", "content": parts}

    assert drop_duplicate_tail([image("a")], [image("a")]) == []
    assert len(drop_duplicate_tail([image("a")], [image("b")])) == 1


# --- ensure_tool_responses ----------------------------------------------------------------------


def test_what_is_whole_comes_back_as_it_is() -> None:
    messages = rounds(3)
    assert same(ensure_tool_responses(messages), messages)


@pytest.mark.parametrize(
    ("given_messages", "spelled"),
    [
        ([assistant(None, "a")], "assistant a:aborted"),
        ([assistant(None, "a"), user()], "assistant a:aborted user"),
        ([assistant(None, "a", "b"), result("b")], "assistant b:result a:aborted"),
        ([assistant(None, "a"), user(), result("a")], "assistant a:aborted user"),
        ([assistant(None, "a"), result("x"), result("a")], "assistant a:result"),
        ([assistant(None, "a"), result("a"), result("a", "again")], "assistant a:result"),
        ([assistant(None, "a", "a"), result("a")], "assistant a:result"),
        ([result("a"), user()], "user"),
        ([assistant("no call"), result("a")], "assistant"),
        (
            [assistant(None, "a"), result("a"), assistant(None, "a")],
            "assistant a:result assistant a:aborted",
        ),
    ],
)
def test_each_call_is_answered_once_behind_it(given_messages: list[Message], spelled: str) -> None:
    made = ensure_tool_responses(given_messages)
    words = (
        f"{m['tool_call_id']}:{m['content']}" if m["role"] == "tool" else m["role"] for m in made
    )
    assert " ".join(words) == spelled
    assert all(any(m is one for one in given_messages) or m["content"] == "aborted" for m in made)


def test_calls_are_found_wherever_they_are_kept() -> None:
    calls = [call("a")]
    for kept in (
        {"tool_calls": json.dumps(calls)},
        {"metadata": {"toolCalls": calls}},
        {"metadata": {"toolCalls": json.dumps(calls)}, "tool_calls": [call("old")]},
    ):
        message = {"role": "assistant", "content": None, **kept}
        before = copy.deepcopy(message)
        made = ensure_tool_responses([message, result("a")])
        assert made == [{**message, "tool_calls": calls}, result("a")]
        assert message == before
    for text in ("[{", "[" * 100_000):
        broken = {"role": "assistant", "content": "x", "tool_calls": text, "metadata": "none"}
        assert same(ensure_tool_responses([broken]), [broken])


# --- earlier responses --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "following"),
    [(20, 10), (10, 5), (5, 2), (3, 1), (2, 1), (1, None), (0, None), (-1, None)],
)
def test_a_history_that_is_too_long_is_halved(limit: int, following: int | None) -> None:
    assert history_ladder(limit) == following


ANSWERED = [user(), {**assistant(), "metadata": {"response_id": "resp_1"}}, user("now")]


def test_stateless_is_preferred() -> None:
    assert previous_response(ANSWERED) == PreviousResponse(None, 20, "stateless")
    assert previous_response(ANSWERED, history_limit=7).history_limit == 7


@pytest.mark.parametrize("name", ["response_id", "responseId"])
def test_an_id_is_named_where_no_history_is_sent(name: str) -> None:
    messages = [user(), {**assistant(), "metadata": {name: "resp_1"}}]
    for provider in ("gpt", "GPT", " openai "):
        decision = previous_response(messages, history_limit=0, provider=provider)
        assert decision == PreviousResponse("resp_1", 0, "usable")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"disabled": True}, "disabled"),
        ({"provider": "deepseek"}, "provider"),
        ({"base_url": "https://proxy.example/v1"}, "endpoint"),
        ({"base_url": "https://proxy.example/api.openai.com/v1"}, "endpoint"),
        ({"base_url": "https://api.openai.com.example/v1"}, "endpoint"),
        ({"base_url": "https://[broken"}, "endpoint"),
        ({"base_url": "https://proxy.example/v1", "allow_proxy": True}, "usable"),
        ({"base_url": "https://api.openai.com/v1"}, "usable"),
        ({"base_url": " HTTPS://API.OPENAI.COM:443/v1 "}, "usable"),
        ({"base_url": "relay.nf.video/v1"}, "usable"),
        ({"base_url": ""}, "usable"),
    ],
)
def test_an_id_is_named_only_to_who_keeps_responses(options: dict[str, Any], reason: str) -> None:
    options.setdefault("allow_proxy", False)
    decision = previous_response(ANSWERED, history_limit=0, **options)
    assert decision.reason == reason
    assert (decision.response_id, decision.history_limit) == (
        ("resp_1", 0) if reason == "usable" else (None, 20)
    )


@pytest.mark.parametrize(
    ("value", "is_allowed"),
    [("1", True), (" True ", True), ("yes", True), ("ON", True), ("0", False), ("", False)],
)
def test_the_environment_may_allow_proxies(
    monkeypatch: pytest.MonkeyPatch, value: str, is_allowed: bool
) -> None:
    monkeypatch.setenv("ALLOW_PREV_ID_FOR_PROXY", value)
    decision = previous_response(ANSWERED, history_limit=0, base_url="https://proxy.example")
    assert (decision.reason == "usable") is is_allowed


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [user()],
        [user(), assistant()],
        [*ANSWERED, assistant("of another model")],
        [*ANSWERED, assistant(None, "a"), result("a")],
        [user(), {**assistant(None, "a"), "metadata": {"response_id": "resp_1"}}, result("a")],
        [user(), {**assistant(), "metadata": {"response_id": 5}}],
        [user(), {**assistant(), "metadata": None}],
    ],
)
def test_without_the_id_of_the_newest_answer_none_is_named(messages: list[Message]) -> None:
    decision = previous_response(messages, history_limit=0, allow_proxy=False)
    assert decision == PreviousResponse(None, 20, "no_response")


@pytest.mark.parametrize(
    ("error", "fallback"),
    [
        ("Unsupported parameter: 'previous_response_id'.", Fallback.DISABLE),
        ("Invalid parameter: previous_response_id", Fallback.DISABLE),
        ("Previous response with id 'resp_1' not found.", Fallback.DISABLE),
        ('{"error": {"code": "previous_response_not_found"}}', Fallback.DISABLE),
        ("No tool call found for function call output with call_id call_1.", Fallback.PENDING),
        ("no tool call found for function_call_output", Fallback.PENDING),
        ("Invalid value: 'input_text'. Supported values are: 'text'.", Fallback.PLAIN_TEXT),
        ("invalid_value: input_text", Fallback.PLAIN_TEXT),
        ('{"error": {"code": "context_length_exceeded"}}', Fallback.SUMMARISE),
        ("Your input exceeds the context window of this model.", Fallback.SUMMARISE),
        ("This model's maximum context length is 128000 tokens.", Fallback.SUMMARISE),
        (ValueError("This model's maximum context length is 8192 tokens."), Fallback.SUMMARISE),
        ("Rate limit reached for gpt-5: try again in 3 s", None),
        ("You exceeded your current token quota", None),
        ("max_tokens is too large: 999999. This model supports at most 16384 tokens", None),
        ("previous_response_id", None),
        ("connection reset", None),
        ("", None),
    ],
)
def test_each_error_has_its_way_on(error: Any, fallback: Fallback | None) -> None:
    assert previous_response_fallback(error) is fallback
