"""What holds of `Session.get_history` and of the places to cut at, for every conversation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanobot_context import (
    Session,
    count_tokens,
    find_last_user_index,
    find_safe_cut_point,
    trim_tool_result,
)

from .checks import assert_paired
from .histories import MODELS, Message, histories, prose, texts

# A failing case is long, and is wanted all the same.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


@given(histories(), st.sampled_from(MODELS), st.integers(0, 3_000), st.sampled_from([0, 5, 50]))
def test_a_history_is_never_above_its_tokens_and_opens_with_a_user(
    messages: list[Message], model: str | None, max_tokens: int, max_messages: int
) -> None:
    session = Session(messages=messages, model=model)
    history = session.get_history(max_messages, max_tokens)
    assert not history or count_tokens(history, model) <= max_tokens
    assert not history or history[0]["role"] == "user"
    newest = messages[-max_messages:]
    # Nothing of the last round is left out for room when something older is there.
    users = [message for message in newest if message["role"] == "user"]
    kept = [message for message in history if message["role"] == "user"]
    assert len(kept) <= len(users)
    assert [m.get("content") or "" for m in kept] == [
        m.get("content") or "" for m in users[len(users) - len(kept) :]
    ]


@given(histories())
def test_a_history_has_no_result_without_its_call(messages: list[Message]) -> None:
    history = Session(messages=messages).get_history(0, 100_000)
    open_ids: list[object] = []
    for message in history:
        if message["role"] == "tool":
            assert _id(message.get("tool_call_id")) in open_ids
        elif message["role"] != "function":
            open_ids = [_id(call.get("id")) for call in message.get("tool_calls") or []]


@given(prose(), st.floats(0, 1.1))
def test_a_history_of_whole_calls_is_whole(messages: list[Message], share: float) -> None:
    max_tokens = int(count_tokens(messages) * share)
    history = Session(messages=messages).get_history(0, max_tokens)
    assert_paired(history)
    start = len(messages) - len(history)
    assert [m["content"] for m in history] == [m["content"] for m in messages[start:]]
    # As many rounds as fit: one more would be too much.
    older = [n for n, message in enumerate(messages[:start]) if message["role"] == "user"]
    if older:
        assert count_tokens(messages[older[-1] :]) > max_tokens


@given(histories(), st.integers(0, 30))
def test_a_safe_cut_parts_no_call_from_its_results(messages: list[Message], keep_last: int) -> None:
    cut = find_safe_cut_point(messages, keep_last)
    assert 0 <= cut <= max(len(messages) - keep_last, 0)
    assert cut in (0, len(messages)) or messages[cut]["role"] in ("user", "assistant")
    if 0 < cut < len(messages) and messages[cut]["role"] == "assistant":
        assert not messages[cut].get("tool_calls")


@given(histories())
def test_the_last_user_index_is_that_of_the_last_user_or_the_length(
    messages: list[Message],
) -> None:
    users = [n for n, message in enumerate(messages) if message["role"] == "user"]
    assert find_last_user_index(messages) == (users[-1] if users else len(messages))


@given(texts(), st.integers(0, 400), st.integers(0, 5), st.integers(0, 5))
def test_a_trimmed_result_is_never_longer_than_asked(
    text: str, max_chars: int, head_lines: int, tail_lines: int
) -> None:
    trimmed = trim_tool_result(text, max_chars, head_lines=head_lines, tail_lines=tail_lines)
    assert len(trimmed) <= max_chars or trimmed is text
    assert (trimmed is text) == (len(text) <= max_chars)
    again = trim_tool_result(trimmed, max_chars, head_lines=head_lines, tail_lines=tail_lines)
    assert again == trimmed


@given(histories(), st.sampled_from(MODELS))
def test_counts_add_up(messages: list[Message], model: str | None) -> None:
    empty = count_tokens([], model)
    each = [count_tokens([message], model) - empty for message in messages]
    assert count_tokens(messages, model) == empty + sum(each)
    assert all(tokens >= 4 for tokens in each)


def _id(value: object) -> str:
    # What is no text counts as missing, on both sides.
    return value if isinstance(value, str) else ""
