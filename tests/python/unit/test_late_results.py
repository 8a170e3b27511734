"""Results that do not stand right behind their calls, in other forms than OpenAI's."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from nanobot_context import compress_messages, find_safe_cut_point, fit_messages

Json = dict[str, Any]

GO: Json = {"role": "user", "content": "Go."}
QUICK: Json = {"role": "user", "content": "Quick!"}
MEANWHILE: Json = {"role": "assistant", "content": "Meanwhile."}


def used(*ids: str) -> Json:
    blocks = [{"type": "tool_use", "id": id_, "name": "read", "input": {}} for id_ in ids]
    return {"role": "assistant", "content": blocks}


def results(*ids: str, text: str = "port 8080", **more: Any) -> Json:
    said = {"type": "tool_result", "content": text, **more}
    return {"role": "user", "content": [{**said, "tool_use_id": id_} for id_ in ids]}


def called(*ids: str) -> list[Json]:
    call = {"type": "function_call", "name": "read", "arguments": "{}"}
    return [{**call, "call_id": id_} for id_ in ids]


def output(id_: str, text: str = "port 8080") -> Json:
    return {"type": "function_call_output", "call_id": id_, "output": text}


@pytest.mark.parametrize(
    "messages",
    [
        [GO, used("a"), used("b"), results("a", "b")],
        [GO, used("a"), used("b"), results("b"), results("a"), QUICK],
        [GO, used("a"), MEANWHILE, results("a"), QUICK],
        [GO, used("a", "b"), results("a"), results("b")],
    ],
)
def test_what_anthropic_combines_by_itself_goes_out_as_it_came(messages: list[Json]) -> None:
    # Source: Anthropic, "Messages": consecutive turns of a role are combined.
    assert compress_messages(messages, 100_000) == messages
    assert fit_messages(messages, 100_000).receipt.cuts == []


def test_a_result_behind_a_word_of_the_user_moves_to_its_call() -> None:
    messages = [GO, used("a", "b"), results("a"), QUICK, results("b", is_error=True), GO]
    sent = compress_messages(messages, 100_000)
    both = [*results("a")["content"], *results("b", is_error=True)["content"]]
    assert sent == [GO, messages[1], {"role": "user", "content": both}, QUICK, GO]


def test_results_of_two_messages_keep_what_they_had_where_something_else_is_cut() -> None:
    image = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    shown = [{"type": "text", "text": "as seen"}, {"type": "image", "source": image}]
    second = results("b", is_error=True, cache_control={"type": "ephemeral"})
    second["content"][0]["content"] = shown
    old = [used("o"), results("o", text="line of a log\n" * 4_000), MEANWHILE]
    messages = [GO, *old, QUICK, used("a"), used("b"), results("a"), second]
    given = copy.deepcopy(messages)
    sent = fit_messages(messages, 2_000).messages
    assert messages == given
    blocks = [b for one in sent if isinstance(one["content"], list) for b in one["content"]]
    assert [b["content"] for b in blocks if b.get("tool_use_id") == "a"] == ["port 8080"]
    assert [b for b in blocks if b.get("tool_use_id") == "b"] == second["content"]
    assert "no result" not in str(sent)
    waiting: list[str] = []
    for message in sent:
        content = message["content"] if isinstance(message["content"], list) else []
        assert [b["tool_use_id"] for b in content if b["type"] == "tool_result"] == waiting
        waiting = [b["id"] for b in content if b["type"] == "tool_use"]


@pytest.mark.parametrize(
    "between", [MEANWHILE, QUICK, {"type": "web_search_call", "id": "w", "status": "completed"}]
)
def test_no_cut_parts_a_call_from_a_result_that_came_late(between: Json) -> None:
    items = [GO, MEANWHILE, QUICK, *called("a"), between, output("a"), MEANWHILE]
    assert compress_messages(items, 100_000) == items
    for keep in range(1, len(items)):
        kept = items[find_safe_cut_point(items, keep) :]
        assert (output("a") in kept) <= (called("a")[0] in kept), keep
    messages = [GO, MEANWHILE, QUICK, used("a"), MEANWHILE, results("a"), MEANWHILE]
    for keep in range(1, len(messages)):
        kept = messages[find_safe_cut_point(messages, keep) :]
        assert (results("a") in kept) <= (used("a") in kept), keep


def test_what_is_above_stays_with_results_that_came_late() -> None:
    long = output("a", "line of a log\n" * 100)
    items = [GO, MEANWHILE, GO, *called("a"), MEANWHILE, long, QUICK]
    old = {"role": "user", "content": "word " * 4_000}
    sent = fit_messages([old, *items], 540, above=6).messages
    assert sent[-4:] == [*called("a"), long, MEANWHILE, QUICK]
