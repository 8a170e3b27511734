"""What `wrap` and the proxy read of requests and answers, where they are not as they should be."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from nanobot_context import compress_messages, count_tokens, fit_messages
from nanobot_context.wire.forms import endpoint_of, form_of
from nanobot_context.wire.streams import Beginning, EndReader, Lines, failure


def test_a_stream_that_is_no_gzip_is_not_read_any_further() -> None:
    lines = Lines("gzip")
    assert lines.feed(b"data: plain") == []
    assert not lines.can_read
    assert lines.feed(gzip.compress(b"data: x\n")) == []


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
def test_an_error_and_the_usage_of_a_stream_are_found_whatever_its_lines_end_in(
    end: bytes, size: int
) -> None:
    usage = {"prompt_tokens": 9}
    said = [{"error": {"code": 5}}, {"choices": [], "usage": usage}]
    body = b"".join(b"data: " + json.dumps(one).encode() + end * 2 for one in said)
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    begun = Beginning(Lines(None), is_patient=True)
    found: list[EndReader] = []
    read = EndReader(Lines(None), found.append)
    for piece in pieces:
        begun.feed(piece)
        read.feed(piece)
    read.end()
    assert begun.event == said[0]
    assert (found[0].failure, found[0].usage) == ({"code": 5}, usage)


def test_the_last_line_is_open_until_it_has_ended() -> None:
    lines = Lines(None)
    assert lines.feed(b"data: a.\rdata: b.") == [b"data: a."]
    assert lines.feed(b"") == []
    assert lines.feed(b"\r") == [b"data: b."]
    assert lines.feed(b"\ndata: c\n\r\n") == [b"", b"data: c", b""]


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (None, None),
        ({"type": "message"}, None),
        ({"error": "too long"}, {"message": "too long"}),
        ({"error": {"code": 5}}, {"code": 5}),
        ({"type": "response.failed", "response": {"error": {"code": 6}}}, {"code": 6}),
        ({"type": "response.failed", "response": 5, "error": {"code": 7}}, {"code": 7}),
    ],
)
def test_a_failure_is_what_any_api_calls_one(event: Any, said: Any) -> None:
    assert failure(event) == said


@pytest.mark.parametrize(
    ("budget", "max_tokens", "expected"),
    [(8_000, 4_000, 2_000), (8_000, 1_500, 1_024), (1_000, 4_000, None), (8_000, 1_000, None)],
)
def test_a_budget_for_thinking_stays_below_the_limit_of_the_answer(
    budget: int, max_tokens: int, expected: int | None
) -> None:
    thinking = {"type": "enabled", "budget_tokens": budget}
    body = {"messages": [{"role": "user", "content": "x"}], "thinking": thinking}
    form = form_of("/v1/messages", {**body, "max_tokens": 16_000})
    assert form is not None
    sent = form.replaced(form.messages, max_tokens)
    assert sent["max_tokens"] == max_tokens
    assert sent["thinking"] == {**thinking, "budget_tokens": expected or budget}


@pytest.mark.parametrize("body", [None, [], {"messages": "x"}, {"messages": [5]}, {"input": 5}])
def test_what_is_no_conversation_has_no_form(body: Any) -> None:
    for path in ("/chat/completions", "/messages", "/responses", "/embeddings"):
        assert form_of(path, body) is None


@pytest.mark.parametrize("kind", ["web_search_call", "mcp_call"])
def test_no_cut_parts_thoughts_from_what_the_provider_ran(kind: str) -> None:
    items: list[dict[str, Any]] = []
    for number in range(30):
        thoughts = {"type": "reasoning", "id": f"rs_{number}", "encrypted_content": "e" * 60}
        ran = {"type": kind, "id": f"ws_{number}", "name": "look", "output": "found it " * 30}
        said = {"type": "message", "id": f"m_{number}", "role": "assistant", "content": "So. " * 90}
        items += [{"role": "user", "content": f"Question {number}"}, thoughts, ran, said]
    items.append({"role": "user", "content": "And now?"})
    for budget in range(2_000, 8_000, 500):
        sent = fit_messages(items, budget, "gpt-5").messages
        thoughts_at = [at for at, item in enumerate(sent) if item.get("type") == "reasoning"]
        for at in thoughts_at:
            assert sent[at + 1].get("id") == sent[at]["id"].replace("rs", "ws")


@pytest.mark.parametrize(
    "hosted",
    [
        {"type": "web_search_call", "status": "completed", "action": {"query": "the capital"}},
        {"type": "mcp_call", "name": "look", "arguments": "{}", "output": "the capital"},
        {"type": "image_generation_call", "result": "aGk=" * 1_000},
        {"type": "local_shell_call", "call_id": "k", "action": {"command": ["the capital"]}},
    ],
    ids=lambda hosted: str(hosted["type"]),
)
@pytest.mark.parametrize("goes", [False, True], ids=["thoughts stay", "thoughts go"])
def test_what_the_provider_ran_itself_goes_with_an_id_only_behind_its_thoughts(
    hosted: dict[str, Any], goes: bool
) -> None:
    given: list[dict[str, Any]] = [
        {"role": "user", "content": "Where?"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc"},
        {**hosted, "id": "ho_1"},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": "There."},
        {"role": "user", "content": "And now?"},
    ]
    if "call_id" in hosted:
        given.insert(3, {"type": "local_shell_call_output", "call_id": "k", "output": "it is so"})
        # Directly behind its thoughts it would be of one message with them.
        given.insert(2, {"type": "web_search_call", "id": "ws_1", "status": "completed"})
    form = form_of("/responses", {"model": "gpt-5", "input": given})
    assert form is not None
    # The thoughts are a message of their own.
    sent = form.replaced([*form.messages[:1], *form.messages[1 + goes :]], None)["input"]
    if not goes:
        assert sent == given
        return
    ids = [item["id"] for item in sent if "id" in item]
    # A message behind a result has no thoughts.
    assert ids == (["msg_1"] if "call_id" in hosted else [])
    # Without a result apart it is of one message with its thoughts, and goes with them.
    assert ("the capital" in json.dumps(sent)) is ("call_id" in hosted)
    assert ("it is so" in json.dumps(sent)) is ("call_id" in hosted)
    assert [item for item in sent if item.get("type") == hosted["type"]] == []
    assert {"role": "user", "content": "And now?"} in sent


USER: dict[str, Any] = {"role": "user", "content": "And now?"}


def answer(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "m", "role": "assistant", "content": [part]}


def test_what_is_shortened_of_an_item_leaves_the_rest_of_it() -> None:
    call = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}"}
    result = {"type": "function_call_output", "id": "fco", "call_id": "c", "status": "completed"}
    done = answer(" ".join(f"step{number} is done" for number in range(900)))
    items = [USER, call, {**result, "output": "line\n" * 2_000}, done, USER]
    sent = fit_messages(items, 2_000, "gpt-5").messages
    assert [item.get("id") for item in sent] == [None, "fc", "fco", "m", None]
    assert sent[1] is call
    assert {**sent[2], "output": ""} == {**result, "output": ""}
    assert len(str(sent[2:4])) < 10_000


def test_a_result_that_is_put_in_is_of_the_kind_of_its_call() -> None:
    custom = {"type": "custom_tool_call", "call_id": "c", "name": "sh", "input": "ls"}
    [_, call, result, _] = compress_messages([USER, custom, USER], 100_000, "gpt-5")
    assert (call, result["type"]) == (custom, "custom_tool_call_output")


def test_a_screenshot_without_its_call_counts_as_an_image() -> None:
    shown = {"type": "computer_screenshot", "image_url": "data:image/png;base64," + "A" * 900_000}
    output = {"type": "computer_call_output", "call_id": "c", "output": shown}
    assert 500 < count_tokens([USER, output, USER], "gpt-5") < 5_000


@pytest.mark.parametrize("kind", ["compaction", "compaction_summary", "context_compaction"])
@pytest.mark.parametrize("before", [[], [{"type": "reasoning", "id": "rs", "summary": []}]])
def test_what_holds_all_before_it_stays_as_it_came(kind: str, before: list[dict[str, Any]]) -> None:
    compaction = {"type": kind, "id": "cmp", "encrypted_content": "E" * 2_000}
    talk = [one for _ in range(40) for one in (USER, {**answer("word " * 300), "id": None})]
    items = [USER, *before, compaction, *talk, USER]
    sent = fit_messages(items, 4_000, "gpt-5").messages
    assert compaction in sent
    assert sent != items
    assert compress_messages([USER, compaction, USER], 100_000) == [USER, compaction, USER]


@pytest.mark.parametrize("call", ["/chat/completions", "/responses", "/messages", "/messages/"])
def test_what_an_address_ends_with_is_no_part_of_it(call: str) -> None:
    assert endpoint_of(f"http://localhost:1/v1{call}?a=b") == "http://localhost:1/v1"
