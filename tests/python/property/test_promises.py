"""The promises that hold for every input. DESIGN.md, section 2, numbers them.

Promise 9 (off means off) is the shim's: tests/nanobot.
"""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import nanobot_context
from nanobot_context import count_tokens, fit_messages

from .checks import (
    WHOLE,
    Case,
    assert_edited,
    assert_gaps_are_true,
    assert_paired,
    cases,
    make_case,
    may_be_joined,
    messages_in,
    number,
    protected,
)
from .histories import BIG_NUMBER, MODELS, Message, histories, prose, tools

# A failing case is long, and is wanted all the same.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


@given(cases())
def test_1_system_and_last_user_message_come_back_byte_for_byte(case: Case) -> None:
    result = case.run()
    assume(result is not None)
    assert result is not None
    kept = [message for message in result if message.get("n") in protected(case.messages)]
    expected = [case.messages[n] for n in protected(case.messages)]
    assert len(kept) == len(expected)
    assert all(after is before for after, before in zip(kept, expected, strict=True))


@given(cases())
def test_1_nothing_is_reordered_or_repeated(case: Case) -> None:
    sent = [message for message in case.run() or [] if "n" in message]
    # A result that came late moves to its call: see the promise about calls.
    positions = [message["n"] for message in sent if message["role"] != "tool"]
    assert positions == sorted(positions)
    assert len({message["n"] for message in sent}) == len(sent)


@given(cases())
def test_2_every_call_is_answered_once_right_behind_its_message(case: Case) -> None:
    assert_paired(case.run() or [])


@given(cases())
def test_3_the_result_fits_or_the_error_names_each_part(case: Case) -> None:
    result = case.run()
    floor = case.count([case.messages[n] for n in protected(case.messages)])
    assert (result is None) == (floor > case.budget)
    assert result is None or case.count(result) <= case.budget


@given(cases(["fit"]))
def test_3_fitted_says_how_many_tokens_came_in_and_go_out(case: Case) -> None:
    assume(case.run() is not None)
    fitted = fit_messages(case.messages, case.budget, case.model, tools=case.tools)
    assert fitted.tokens == fitted.receipt.tokens_after == case.count(fitted.messages)
    assert fitted.receipt.tokens_before == case.count(case.messages)


@given(prose(), st.sampled_from(MODELS), st.floats(0.15, 0.99))
def test_4_a_fit_fills_nine_tenths_of_its_budget(
    messages: list[Message], model: str | None, share: float
) -> None:
    total = count_tokens(messages, model)
    # Below this a few marks are a tenth of the budget.
    budget = max(int(total * share), 600)
    fitted = fit_messages(messages, budget, model)
    if any(cut.reason == "budget" for cut in fitted.receipt.cuts):
        assert fitted.tokens >= 0.9 * budget
    else:
        assert fitted.messages == messages


@given(cases())
def test_5_the_same_input_gives_the_same_result(case: Case) -> None:
    first = case.run()
    again = Case(**{**vars(case), "messages": copy.deepcopy(case.messages)})
    assert first == case.run() == again.run()


@given(cases())
def test_5_a_second_time_changes_nothing(case: Case) -> None:
    once = case.run()
    assume(once is not None)
    assert once is not None
    twice = case.call(once)
    assert twice == once
    assert all(after is before for after, before in zip(twice, once, strict=True))


@given(histories(), st.sampled_from(MODELS), st.floats(0.2, 1), st.integers(0, 30))
def test_6_a_restart_gives_the_same_requests(
    messages: list[Message], model: str | None, share: float, start: int
) -> None:
    window = int(count_tokens(messages, model) * share)
    running = nanobot_context.Compressor(window, model)
    for end in range(start, len(messages) + 1, 2):
        sent, again = (
            _sent(compressor, messages[:end])
            for compressor in (running, nanobot_context.Compressor(window, model))
        )
        assert sent == again


def _sent(compressor: nanobot_context.Compressor, messages: list[Message]) -> list[Message] | None:
    try:
        return compressor.compress(messages)
    except nanobot_context.ContextOverflowError:
        return None


@given(cases())
def test_what_came_in_is_never_changed(case: Case) -> None:
    before, objects = copy.deepcopy(case.messages), [id(message) for message in case.messages]
    schemas = copy.deepcopy(case.tools)
    result = case.run()
    assert case.messages == before
    assert [id(message) for message in case.messages] == objects
    assert [list(message) for message in case.messages] == [list(message) for message in before]
    assert case.tools == schemas
    assert result is not case.messages


@given(cases())
def test_untouched_messages_are_the_same_objects_and_edited_ones_keep_their_keys(
    case: Case,
) -> None:
    for message in case.run() or []:
        if "n" not in message:
            assert message["role"] in ("user", "assistant", "tool")
        elif message is not (before := case.messages[message["n"]]):
            assert_edited(before, message)


@given(histories(), st.sampled_from(MODELS), tools())
def test_what_fits_and_is_sound_is_left_alone(
    messages: list[Message], model: str | None, schemas: list[Message] | None
) -> None:
    budget = 10_000_000
    sound = fit_messages(messages, budget, model, tools=schemas)
    again = fit_messages(sound.messages, budget, model, tools=schemas)
    assert again.receipt.cuts == []
    assert all(a is b for a, b in zip(again.messages, sound.messages, strict=True))
    # Only what had to be repaired differs from the input.
    repairs = {"orphan_result", "late_result", "missing_result", "malformed_call"}
    assert {cut.reason for cut in sound.receipt.cuts} <= repairs


@given(cases())
def test_7_numbers_in_arguments_are_copied_as_text(case: Case) -> None:
    for message in case.run() or []:
        if "n" not in message or message["role"] != "assistant":
            continue
        before = case.messages[message["n"]].get("tool_calls") or []
        for old, new in zip(before, message.get("tool_calls") or [], strict=True):
            given_, sent = (call.get("function", call).get("arguments") for call in (old, new))
            if isinstance(given_, str) and given_.endswith(BIG_NUMBER + "}"):
                assert sent.endswith(BIG_NUMBER + "}")
                assert list(json.loads(sent)) == list(json.loads(given_))


@given(cases())
def test_7_cut_texts_can_be_encoded(case: Case) -> None:
    for message in case.run() or []:
        if "n" not in message:
            json.dumps(message, ensure_ascii=False).encode()
        elif message is not case.messages[message["n"]]:
            for text in _changed_texts(case.messages[message["n"]], message):
                text[1].encode()


@given(cases())
def test_8_a_gap_says_how_many_characters_are_gone(case: Case) -> None:
    sent = case.run() or []
    for message in sent:
        if "n" not in message or message is (before := case.messages[message["n"]]):
            continue
        if may_be_joined(case.messages, sent, message):
            continue
        for old, new in _changed_texts(before, message):
            whole = WHOLE.fullmatch(new)
            if whole:
                tokens = count_tokens([{"role": "user", "content": old}], case.model)
                assert number(whole[2]) <= tokens
                continue
            old = old.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            assert_gaps_are_true(old, new)


@given(cases(["fit"]))
def test_8_notes_say_how_many_messages_are_gone(case: Case) -> None:
    assume(case.run() is not None)
    fitted = fit_messages(case.messages, case.budget, case.model, tools=case.tools)
    gone = {
        cut.index for cut in fitted.receipt.cuts if cut.reason == "budget" and not cut.tokens_after
    }
    kept = {message["n"] for message in fitted.messages if "n" in message}
    gone -= kept
    joined = {cut.index for cut in fitted.receipt.cuts if cut.reason == "joined"}
    gone -= joined
    texts = [m["content"] for m in fitted.messages if isinstance(m.get("content"), str)]
    noted = sum(map(messages_in, texts))
    # Where there is no room for a note, the budget holds first.
    assert noted == len(gone) or case.budget - fitted.tokens < 30
    assert noted <= len(gone)


@given(prose(), st.sampled_from(MODELS), st.floats(0.05, 0.6))
def test_8_a_message_cut_by_several_limits_has_one_true_mark(
    messages: list[Message], model: str | None, share: float
) -> None:
    numbered = [{**message, "n": n} for n, message in enumerate(messages)]
    case = make_case("compress", numbered, model, None, share)
    sent = case.run() or []
    for message in sent:
        if "n" in message and isinstance(message["content"], str):
            if may_be_joined(numbered, sent, message):
                continue
            old, new = numbered[message["n"]]["content"], message["content"]
            if new != old and not WHOLE.fullmatch(new):
                assert_gaps_are_true(old, new)


@given(histories(), st.sampled_from(MODELS))
def test_classes_and_functions_agree(messages: list[Message], model: str | None) -> None:
    window = count_tokens(messages, model)
    case = make_case("compress", messages, model, None, 0.8)
    compressor = nanobot_context.Compressor(int(window * 0.8 / 0.85), model)
    try:
        expected = nanobot_context.compress_messages(messages, compressor.context_window, model)
    except nanobot_context.ContextOverflowError:
        return
    assert compressor.compress(case.messages) == expected


def _changed_texts(before: Message, after: Message) -> list[tuple[str, str]]:
    """Return the texts of a message's content that were changed, as (before, after)."""
    old, new = before.get("content"), after.get("content")
    pairs = zip(old, new, strict=True) if isinstance(new, list) and old else [(old, new)]
    texts = []
    for a, b in pairs:
        if isinstance(a, dict) and isinstance(b, dict) and a.get("type") == "text":
            a, b = a["text"], b["text"]
        if isinstance(a, str) and isinstance(b, str) and a != b:
            texts.append((a, b))
    return texts
