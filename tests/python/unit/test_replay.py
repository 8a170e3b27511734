"""A conversation sent again request by request."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from nanobot_context import (
    Archive,
    InvalidArgumentError,
    InvalidMessageError,
    compress_messages,
    count_tokens,
)
from nanobot_context.message_texts import message_text
from nanobot_context.replay import Replay, replay
from nanobot_context.settings import Settings

Message = dict[str, Any]
MODEL = "gpt-4o"
WINDOW = 8_000


def conversation(turns: int = 3, rounds: int = 12) -> list[Message]:
    messages: list[Message] = [{"role": "system", "content": "You help."}]
    for turn in range(turns):
        messages.append({"role": "user", "content": f"Task {turn}, please."})
        for n in range(rounds):
            call_id, path = f"{turn}_{n}", f"src/{turn}/{n}.log"
            log = "".join(f"{path} line {line} is done\n" for line in range(20 + 7 * n % 50))
            function = {"name": "read_file", "arguments": json.dumps({"path": path})}
            call = {"id": call_id, "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": call_id, "content": log})
        messages.append({"role": "assistant", "content": f"Task {turn} is done."})
    return messages


def sent(messages: list[Message], position: int, **options: Any) -> list[Message]:
    return compress_messages(messages[:position], WINDOW, MODEL, **options)


@pytest.fixture(scope="module")
def replayed() -> Replay:
    return replay(conversation(), WINDOW, MODEL)


def test_there_is_a_request_before_each_answer_and_one_with_all_messages(replayed: Replay) -> None:
    messages = conversation()
    answers = [n for n, message in enumerate(messages) if message["role"] == "assistant"]
    assert [request.position for request in replayed.requests] == [*answers, len(messages)]
    assert [fate.index for fate in replayed.messages] == list(range(len(messages)))


def test_each_request_has_the_tokens_that_nanobot_would_send(replayed: Replay) -> None:
    messages = conversation()
    assert any(request.tokens_after < request.tokens_before for request in replayed.requests)
    for request in replayed.requests:
        before, after = messages[: request.position], sent(messages, request.position)
        assert request.tokens_before == count_tokens(before, MODEL)
        assert request.tokens_after == count_tokens(after, MODEL)
        assert sum(request.before.values()) == request.tokens_before
        assert sum(request.after.values()) == request.tokens_after
        assert not request.over
        assert request.error is None


def test_what_is_reused_is_what_two_requests_have_in_common(replayed: Replay) -> None:
    messages = conversation()
    last: list[Message] = []
    for request in replayed.requests:
        now = sent(messages, request.position)
        shared = next(
            (n for n, pair in enumerate(zip(last, now, strict=False)) if pair[0] != pair[1]),
            len(last),
        )
        framing = count_tokens([], MODEL)
        assert request.reused_tokens == count_tokens(now[:shared], MODEL) - framing
        last = now


def test_a_mark_says_what_is_gone_and_why(replayed: Replay) -> None:
    messages = conversation()
    marks = [mark for request in replayed.requests for mark in request.cuts]
    assert marks
    for mark in marks:
        is_result = messages[mark.index]["role"] == "tool"
        assert mark.tool == ("read_file" if is_result else None)
        assert mark.reason in {"large_result", "many_results", "budget"}
        assert mark.tokens_before == replayed.messages[mark.index].tokens
        assert mark.tokens_after < mark.tokens_before
        text = message_text(messages[mark.index])
        assert list(mark.kept) == sorted(set(mark.kept))
        assert all(0 <= at <= len(text) for at in mark.kept)
        # Of a result that one line stands for, nothing is kept either.
        assert not mark.kept or (mark.tokens_after and is_result)
    assert any(mark.kept for mark in marks)


def is_joined(message: Message, request: Iterable[Message]) -> bool:
    """Return whether all that a message says stands in a longer message of its role."""
    of_role = [other for other in request if other["role"] == message["role"]]
    same_calls = [m for m in of_role if m.get("tool_calls") == message.get("tool_calls")]
    said = f"\n\n{message['content']}\n\n"
    return any(not message["content"] or said in f"\n\n{m['content']}\n\n" for m in same_calls)


def test_a_message_is_marked_again_only_where_it_is_sent_otherwise(replayed: Replay) -> None:
    messages = [{**message, "n": n} for n, message in enumerate(conversation())]
    last: dict[int, Message] = {}
    position = 0
    for request in replayed.requests:
        now = {message.get("n", -1): message for message in sent(messages, request.position)}
        cut = {
            n
            for n in range(request.position)
            if now.get(n) != messages[n] and not is_joined(messages[n], now.values())
        }
        as_before = {n for n in range(position) if now.get(n) == last.get(n)}
        assert {mark.index for mark in request.cuts} == cut - as_before
        last, position = now, request.position


def test_the_fate_of_each_message_is_that_of_the_last_request(replayed: Replay) -> None:
    messages = conversation()
    last = sent(messages, len(messages))
    for fate, message in zip(replayed.messages, messages, strict=True):
        assert fate.role == message["role"]
        if any(message is other for other in last) or is_joined(message, last):
            assert (fate.state, fate.reason, fate.first_request) == ("kept", None, None)
            assert fate.tokens_after == fate.tokens
        else:
            assert fate.state in ("shortened", "left out")
            assert fate.reason is not None
            assert fate.tokens_after < fate.tokens
            assert fate.first_request is not None
            first = replayed.requests[fate.first_request]
            assert fate.index in [mark.index for mark in first.cuts]
    assert {fate.state for fate in replayed.messages} >= {"kept", "shortened"}
    assert (
        sum(fate.tokens_after for fate in replayed.messages) <= replayed.requests[-1].tokens_after
    )


def test_turns_are_the_messages_of_the_user_so_far(replayed: Replay) -> None:
    messages = conversation()
    for request in replayed.requests:
        users = [message for message in messages[: request.position] if message["role"] == "user"]
        assert request.turn == len(users)
    assert replayed.messages[0].turn == 0
    assert replayed.messages[-1].turn == 3


def test_a_conversation_that_fits_is_left_as_it_is() -> None:
    result = replay(conversation(turns=1, rounds=2), 128_000, MODEL)
    assert (result.window_tokens, result.budget_tokens) == (128_000, 108_800)
    assert (result.model, result.counted) == (MODEL, "exact")
    for request in result.requests:
        assert request.before == request.after
        assert request.cuts == ()
    assert {fate.state for fate in result.messages} == {"kept"}
    everything_but_the_last = result.requests[-1].tokens_before - result.messages[-1].tokens
    assert result.requests[-1].reused_tokens == everything_but_the_last - count_tokens([], MODEL)


def test_counts_of_a_model_without_a_vocabulary_are_estimates() -> None:
    assert replay(conversation(1, 1), WINDOW, "claude-sonnet-4-5").counted == "estimated"


def test_tool_schemas_and_their_reuse_count() -> None:
    schema = {"type": "function", "function": {"name": "read_file", "parameters": {}}}
    messages = conversation(turns=1, rounds=2)
    result = replay(messages, 128_000, MODEL, tools=[schema])
    request = result.requests[-1]
    assert request.tokens_before == count_tokens(messages, MODEL, tools=[schema])
    assert request.before["tools"] > 0
    bare = replay(messages, 128_000, MODEL).requests[-1]
    assert request.reused_tokens == bare.reused_tokens + request.before["tools"]
    assert result.requests[0].reused_tokens == 0


def test_a_request_that_cannot_be_made_small_enough_is_shown_and_the_next_one_goes_on() -> None:
    messages = [
        {"role": "user", "content": "word " * 20_000},
        {"role": "assistant", "content": "That was long."},
        {"role": "user", "content": "Then shorter."},
        {"role": "assistant", "content": "Yes."},
    ]
    first, second, third = replay(messages, WINDOW, MODEL).requests
    assert first.over
    assert first.error is not None
    assert (first.after, first.tokens_after, first.reused_tokens) == ({}, 0, 0)
    assert not second.over
    assert second.tokens_after <= 6_800
    assert [(mark.index, mark.reason) for mark in second.cuts] == [(0, "budget")]
    assert third.reused_tokens > 0


def test_where_no_request_can_be_sent_every_message_is_kept() -> None:
    result = replay([{"role": "user", "content": "word " * 20_000}], WINDOW, MODEL)
    assert [request.over for request in result.requests] == [True]
    assert [fate.state for fate in result.messages] == ["kept"]


def test_what_takes_from_the_room_of_the_answer_is_sent_and_over() -> None:
    messages = [{"role": "user", "content": "word " * 7_500}]
    (request,) = replay(messages, WINDOW, MODEL).requests
    assert request.over
    assert request.error is None
    assert 6_800 < request.tokens_after <= WINDOW


def test_broken_histories_are_repaired_and_say_so() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "exec", "arguments": "{}"}}
    messages: list[Message] = [
        {"role": "user", "content": "Go on."},
        {"role": "tool", "tool_call_id": "nobody", "content": "an orphan"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": "Well?"},
    ]
    result = replay(messages, WINDOW, MODEL)
    marks = {(mark.index, mark.reason) for request in result.requests for mark in request.cuts}
    assert marks == {(1, "orphan_result"), (2, "missing_result")}
    orphan = result.messages[1]
    assert (orphan.state, orphan.reason, orphan.tokens_after) == ("left out", "orphan_result", 0)
    assert result.messages[2].state == "kept"
    assert result.requests[0].cuts[0].kept == ()


def test_a_mark_names_the_file_that_has_the_original(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "results", shown=".nanobot-context/results")
    result = replay(conversation(), WINDOW, MODEL, archive=archive)
    marks = [mark for request in result.requests for mark in request.cuts]
    named = [mark for mark in marks if mark.kept_in]
    assert named
    for mark in named:
        assert mark.kept_in is not None
        directory, name = mark.kept_in.rsplit("/", 1)
        assert directory == ".nanobot-context/results"
        original = (tmp_path / "results" / name).read_text(encoding="utf-8")
        assert original == conversation()[mark.index]["content"]


def test_a_session_that_quotes_a_mark_names_no_file() -> None:
    quoted = "x; all of it: results/0123456789abcdef.txt ...]\n" + "a line of it\n" * 4_000
    messages = [{"role": "user", "content": "Go."}, *conversation()[2:4]]
    messages[2] = {**messages[2], "content": quoted}
    marks = replay(messages, WINDOW, MODEL).requests[-1].cuts
    assert [(mark.index, mark.kept_in) for mark in marks] == [(2, None)]


def test_the_room_for_an_answer_lowers_the_budget_by_as_much() -> None:
    messages = conversation()
    for room, budget in ((None, 6_800), (100, 6_800), (3_333, 4_667), (9_999, 4_000)):
        result = replay(messages, WINDOW, MODEL, max_output_tokens=room)
        assert result.budget_tokens == budget
        last = sent(messages, len(messages), max_output_tokens=min(room or 0, WINDOW // 2))
        assert result.requests[-1].tokens_after == count_tokens(last, MODEL)


def test_settings_are_those_of_nanobot() -> None:
    loose = replay(conversation(), WINDOW, MODEL, settings=Settings(context_reserve_ratio=0.5))
    assert loose.budget_tokens == 4_000
    with pytest.raises(InvalidArgumentError, match="settings"):
        replay([], WINDOW, settings={"context_reserve_ratio": 0.5})  # type: ignore[arg-type]


@pytest.mark.parametrize("window", [0, -1, 1.5, True, None])
def test_a_window_that_is_no_positive_number_is_refused(window: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="context_window"):
        replay([], window)


def test_a_message_of_no_known_shape_is_refused() -> None:
    with pytest.raises(InvalidMessageError):
        replay([{"role": "user", "content": "a"}, {"role": "nobody"}], WINDOW)


def test_the_conversation_is_not_changed_and_odd_keys_stay() -> None:
    messages = [{**message, "timestamp": "2026-01-01T00:00:00"} for message in conversation()]
    given = copy.deepcopy(messages)
    assert replay(messages, WINDOW, MODEL) == replay(conversation(), WINDOW, MODEL)
    assert messages == given


def test_progress_is_told_after_each_request() -> None:
    told: list[tuple[int, int]] = []
    replay(conversation(1, 2), WINDOW, on_request=lambda done, of: told.append((done, of)))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert replay([], WINDOW).requests == ()
