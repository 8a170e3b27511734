"""Conversations of Anthropic's and of OpenAI's Responses, made to fit: what a server insists on.

Left out: servers' own tools of Anthropic, whose blocks stand beside each other in one message.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nanobot_context import ContextOverflowError
from nanobot_context.first_attempt import compress
from nanobot_context.settings import Settings
from nanobot_context.wire.forms import form_of
from nanobot_context.wire.forms.form import Form

CLAUDE = "claude-sonnet-4-6"
Json = dict[str, Any]

words = st.sampled_from(
    ["All is well. ", "节点 7 磁盘已满。", "GET /items/42 200\n", "x\U0001f600 "]
)
texts = st.builds(lambda word, times: word * times, words, st.integers(1, 400))
marks = st.sampled_from([{}, {}, {"cache_control": {"type": "ephemeral"}}])
image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}}


@st.composite
def claude_bodies(draw: st.DrawFn) -> Json:
    messages: list[Json] = []
    number = 0
    for _ in range(draw(st.integers(1, 6))):
        said: Any = draw(texts)
        if draw(st.booleans()):
            said = [image, {"type": "text", "text": said, **draw(marks)}]
        messages.append({"role": "user", "content": said})
        for _ in range(draw(st.integers(0, 3))):
            blocks: list[Json] = []
            results: list[Json] = []
            for _ in range(draw(st.integers(1, 3))):
                number += 1
                if draw(st.booleans()):
                    blocks.append(
                        {"type": "thinking", "thinking": draw(texts), "signature": f"s{number}"}
                    )
                if draw(st.booleans()):
                    blocks.append({"type": "text", "text": draw(texts)})
                given = {"path": f"/var/{number}", "text": draw(texts), "n": 1.5}
                call = {"type": "tool_use", "id": f"t{number}", "name": "f", "input": given}
                blocks.append({**call, **draw(marks)})
                result: Any = draw(texts)
                if draw(st.booleans()):
                    result = [{"type": "text", "text": result, **draw(marks)}, image]
                answer: Json = {"type": "tool_result", "tool_use_id": f"t{number}"}
                if draw(st.integers(0, 9)):
                    answer["content"] = result
                answer |= {"is_error": True} if draw(st.booleans()) else {}
                results.append({**answer, **draw(marks)})
            if draw(st.booleans()):
                results.append({"type": "text", "text": "Go on.", **draw(marks)})
            if draw(st.booleans()):
                results.append({**image, **draw(marks)})
            messages += [
                {"role": "assistant", "content": blocks},
                {"role": "user", "content": results},
            ]
        thought = {"type": "redacted_thinking", "data": f"d{len(messages)}"}
        answer = {"type": "text", "text": draw(texts)}
        messages.append({"role": "assistant", "content": [thought, answer]})
    if draw(st.booleans()):
        messages.pop()
    else:
        messages.append({"role": "user", "content": "And now?"})
    system = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    return {"model": CLAUDE, "max_tokens": 100, "system": system, "messages": messages}


def fitted(form: Form, window_tokens: int) -> Json:
    """Return the body with its messages within a window; as it is where nothing can."""
    try:
        messages, _ = compress(
            form.messages,
            window_tokens,
            form.model,
            tools=form.tools,
            max_output_tokens=None,
            settings=Settings(),
            archive=None,
        )
    except ContextOverflowError:
        return form.body
    return form.replaced(messages, form.max_tokens)


def blocks_of(message: Json) -> list[Json]:
    content = message["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


@given(claude_bodies(), st.integers(500, 20_000))
def test_calls_results_and_thoughts_of_anthropic_stay_as_its_server_wants_them(
    body: Json, window_tokens: int
) -> None:
    before = json.dumps(body)
    form = form_of("/v1/messages", body)
    assert form is not None
    sent = fitted(form, window_tokens)
    assert json.dumps(body) == before
    assert sent["system"] is body["system"]
    json.dumps(sent)
    signed = [b for m in body["messages"] for b in blocks_of(m) if "thinking" in b["type"]]
    waiting: list[str] = []
    given = {name: block for block, name in named(body["messages"])}
    order = [name for _, name in named(sent["messages"])]
    assert order == [name for name in given if name in order]
    for block, name in named(sent["messages"]):
        # All that a block has beside what it says is as it was.
        assert {k: block.get(k) for k in _KEPT} == {k: given[name].get(k) for k in _KEPT}
    for message in sent["messages"]:
        blocks = blocks_of(message)
        assert blocks
        assert set(message) == {"role", "content"}
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        # Each call is answered in the message behind it, before anything else is said there.
        assert results == waiting
        assert all(b["type"] == "tool_result" for b in blocks[: len(results)])
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert message["role"] == "assistant" or not waiting
        for block in blocks:
            if "thinking" in block["type"]:
                assert block in signed
            elif block["type"] == "text":
                assert block["text"].strip()
            elif block["type"] == "tool_use":
                assert isinstance(block["input"], dict)
            else:
                assert block["type"] in ("tool_result", "image")
    assert not waiting
    assert of_newest_round(sent["messages"]) <= of_newest_round(body["messages"])


_KEPT = ("type", "name", "signature", "data", "cache_control", "is_error")


def named(messages: list[Json]) -> list[tuple[Json, str]]:
    """Return blocks that can be told from all others, each with its name."""
    names = ("signature", "data", "id", "tool_use_id")
    blocks = [block for message in messages for block in blocks_of(message)]
    found = [(block, next((name for name in names if name in block), None)) for block in blocks]
    return [(block, f"{name} {block[name]}") for block, name in found if name]


def of_newest_round(messages: list[Json]) -> set[str]:
    """Return the calls of the round under way that have lost the thoughts that led to them."""
    lost: set[str] = set()
    for message in reversed(messages):
        blocks = blocks_of(message)
        if message["role"] == "user" and any(b["type"] != "tool_result" for b in blocks):
            return lost
        if message["role"] == "assistant" and "thinking" not in str(blocks[0]["type"]):
            lost |= {block["id"] for block in blocks if block["type"] == "tool_use"}
    return lost


@st.composite
def response_bodies(draw: st.DrawFn) -> Json:
    items: list[Json] = []
    number = 0
    for _ in range(draw(st.integers(1, 6))):
        items.append({"role": "user", "content": draw(texts)})
        for _ in range(draw(st.integers(0, 3))):
            number += 1
            if draw(st.booleans()):
                sealed = {"encrypted_content": f"e{number}", "summary": []}
                items.append({"type": "reasoning", "id": f"rs{number}", **sealed})
            calls = [f"c{number}.{at}" for at in range(draw(st.integers(1, 3)))]
            kinds = {call: draw(st.sampled_from(["function", "shell"])) for call in calls}
            for call, kind in kinds.items():
                given = json.dumps({"path": f"/var/{number}", "text": draw(texts)})
                said: Json = {"name": "f", "arguments": given}
                if kind == "shell":
                    said = {"action": {"commands": [given]}}
                items.append({"type": f"{kind}_call", "id": f"fc{call}", "call_id": call, **said})
            for call, kind in kinds.items():
                output: Any = draw(texts)
                if kind == "shell":
                    output = [{"stdout": output, "stderr": "", "outcome": {"type": "timeout"}}]
                items.append({"type": f"{kind}_call_output", "call_id": call, "output": output})
        items.append({"type": "reasoning", "id": f"ra{number}", "summary": []})
        part = {"type": "output_text", "text": draw(texts), "annotations": []}
        items.append(
            {"type": "message", "id": f"m{number}", "role": "assistant", "content": [part]}
        )
    items.append({"role": "user", "content": "And now?"})
    return {"model": "gpt-5", "input": items, "instructions": "Be brief."}


@given(response_bodies(), st.integers(500, 20_000))
def test_items_of_responses_stay_as_its_server_wants_them(body: Json, window_tokens: int) -> None:
    before = json.dumps(body)
    form = form_of("/v1/responses", body)
    assert form is not None
    sent = fitted(form, window_tokens)
    assert json.dumps(body) == before
    assert sent["instructions"] is body["instructions"]
    items = sent["input"]
    names = [(str(item.get("type")), item.get("call_id")) for item in items]
    calls = [name for name in names if name[0].endswith("_call")]
    outputs = [name for name in names if name[0].endswith("_output")]
    assert [(f"{kind}_output", call) for kind, call in calls] == outputs
    for at, item in enumerate(items):
        if item.get("type") == "reasoning":
            # What it led to stands behind it.
            assert item in body["input"]
            following = items[at + 1]
            assert following["type"].endswith("_call") or following["role"] == "assistant"
        elif "id" in item:
            # An id ties an item to the thoughts before it.
            original = [one.get("id") for one in body["input"]].index(item["id"])
            assert body["input"][original - 1].get("type") != "reasoning" or (
                items[at - 1] == body["input"][original - 1]
            )
        elif item.get("type") == "function_call":
            json.loads(item["arguments"])
    assert items[-1] == body["input"][-1]


@given(st.one_of(claude_bodies(), response_bodies()))
def test_a_body_that_is_read_and_written_is_the_same(body: Json) -> None:
    form = form_of("/responses" if "input" in body else "/messages", body)
    assert form is not None
    assert form.replaced(list(form.messages), form.max_tokens) == body
