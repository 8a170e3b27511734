"""Breakpoints for a provider's cache: where they stand, and what a conversation costs with them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from model_server import WINDOW, ModelServer, serving
from nanobot_context import wrap
from nanobot_context.wire.breakpoints import with_breakpoints
from nanobot_context.wire.forms import form_of
from talks import OPENAI, SHORT, TURNS, Ask, claude, said, talk

CONTROL = {"cache_control": {"type": "ephemeral"}}
POINT = {"prompt_cache_breakpoint": {"mode": "explicit"}}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving() as running:
        yield running


def marked(path: str, body: dict[str, Any]) -> dict[str, Any]:
    form = form_of(path, body)
    assert form is not None
    before = json.dumps(body)
    made = with_breakpoints(form, body)
    assert json.dumps(body) == before
    return made


CLAUDE_TURNS: list[Any] = [
    {"role": "user", "content": "Go."},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "a"}]},
]


def test_anthropic_is_told_of_the_system_prompt_the_last_request_and_the_end() -> None:
    made = marked("/v1/messages", {"model": "c", "system": "Be brief.", "messages": CLAUDE_TURNS})
    assert made["system"] == [{"type": "text", "text": "Be brief.", **CONTROL}]
    first, call, result = made["messages"]
    assert first["content"] == [{"type": "text", "text": "Go.", **CONTROL}]
    assert call is CLAUDE_TURNS[1]
    assert result["content"] == [{**CLAUDE_TURNS[2]["content"][0], **CONTROL}]


def test_chat_completions_are_marked_as_their_model_wants_it() -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "I go."},
        {"role": "user", "content": "And?"},
    ]
    for model, mark in (("gpt-5.6", POINT), ("anthropic/claude-sonnet-5", CONTROL)):
        made = marked("/v1/chat/completions", {"model": model, "messages": messages})["messages"]
        for at in (0, 1, 3):
            assert made[at]["content"] == [
                {"type": "text", "text": messages[at]["content"], **mark}
            ]
        assert made[2] is messages[2]


def test_items_of_responses_are_marked() -> None:
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "Go."}]},
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "a log"},
    ]
    made = marked("/v1/responses", {"model": "gpt-5.6", "input": items})["input"]
    assert made[0]["content"] == [{"type": "input_text", "text": "Go.", **POINT}]
    assert made[1:3] == items[1:3]
    assert made[3]["output"] == [{"type": "input_text", "text": "a log", **POINT}]
    [only] = marked("/v1/responses", {"model": "gpt-5.6", "input": "Go."})["input"]
    assert only["content"] == [{"type": "input_text", "text": "Go.", **POINT}]


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": [{"type": "text", "text": "Go.", **CONTROL}]}],
        [
            {"role": "user", "content": "Go."},
            {"role": "user", "content": [{**CLAUDE_TURNS[2]["content"][0], **CONTROL}]},
        ],
    ],
)
def test_a_body_that_has_breakpoints_keeps_its_own(messages: list[Any]) -> None:
    body = {"model": "c", "messages": messages}
    assert marked("/v1/messages", body) is body


TOOL: dict[str, Any] = {"name": "f", "input_schema": {"type": "object"}}


@pytest.mark.parametrize(
    "marks",
    [
        CONTROL,
        {"tools": [TOOL, {**TOOL, **CONTROL}]},
        {"tools": [{"type": "function", "function": {**TOOL, **CONTROL}}]},
        {"system": [{"type": "text", "text": "Be brief.", **CONTROL}]},
        {"messages": [{"role": "user", "content": "Go.", **CONTROL}]},
    ],
    ids=["the request", "a tool", "a function", "the system prompt", "a message"],
)
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions"])
def test_a_request_that_is_marked_anywhere_keeps_its_own_marks(
    path: str, marks: dict[str, Any]
) -> None:
    body = {"model": "claude", "messages": CLAUDE_TURNS[:1], "system": "Be brief.", **marks}
    assert marked(path, body) is body


def test_marks_that_were_cut_with_what_they_stood_on_are_still_the_users() -> None:
    text = {"type": "text", "text": "Go.", **CONTROL}
    body = {"model": "c", "messages": [{"role": "user", "content": [text]}, *CLAUDE_TURNS]}
    form = form_of("/v1/messages", body)
    assert form is not None
    short = form.replaced(form.messages[1:], None)
    assert "cache_control" not in json.dumps(short)
    assert with_breakpoints(form, short) is short


def test_a_schema_that_names_a_mark_has_none() -> None:
    properties = {"cache_control": {"type": "string"}}
    tool = {"name": "f", "input_schema": {"type": "object", "properties": properties}}
    made = marked("/v1/messages", {"model": "c", "messages": CLAUDE_TURNS[:1], "tools": [tool]})
    assert made["messages"][0]["content"] == [{"type": "text", "text": "Go.", **CONTROL}]


def test_what_bears_no_mark_stays_as_it_is() -> None:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    odd: list[Any] = [{"role": "user", "content": ""}, {"role": "user", "content": [thought]}]
    made = marked("/v1/messages", {"model": "c", "messages": odd})
    assert made["messages"] == odd


def cost(server: ModelServer) -> float:
    """Return what the prompts cost in characters, by Anthropic's prices of the cache.

    What stands before a mark is written at 1.25 of the price and read at .1, if the beginning up
    to one of the last marks is known. Source: Anthropic, "Prompt caching".
    """
    known: set[str] = set()
    total = 0.0
    for asked in (one for one in server.asked if not one.refused):
        ends, text = [0], json.dumps(asked.body.get("system"))
        if "cache_control" in text:
            ends.append(len(text))
        for turn in asked.body["messages"]:
            content = turn["content"]
            blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
            for block in blocks:
                text += json.dumps({k: v for k, v in block.items() if k != "cache_control"})
                if "cache_control" in block:
                    ends.append(len(text))
        read = max((end for end in ends if text[:end] in known), default=0)
        known |= {text[:end] for end in ends}
        total += 0.1 * read + 1.25 * (ends[-1] - read) + len(text) - ends[-1]
    return total


def test_a_conversation_with_anthropic_costs_less_than_half(server: ModelServer) -> None:
    def asked(client: Any, messages: list[Any]) -> Any:
        return client.messages.create(
            model="claude-sonnet-5", messages=messages, max_tokens=100, system="You read logs."
        )

    costs = []
    for breakpoints in (False, True):
        server.asked.clear()
        server.window = WINDOW * 4
        with anthropic.Anthropic(api_key="k", base_url=server.url, max_retries=0) as client:
            talk(wrap(client, cache_breakpoints=breakpoints), asked)
        assert len(server.asked) == TURNS
        costs.append(cost(server))
    assert costs[1] < costs[0] / 2, costs


@pytest.mark.parametrize("ask", OPENAI)
def test_what_was_cut_is_marked_too(server: ModelServer, ask: Ask) -> None:
    with openai.OpenAI(api_key="k", base_url=f"{server.url}/v1", max_retries=0) as client:
        talk(wrap(client, context_window=WINDOW, cache_breakpoints=True), ask)
    marks = [asked.content.count(b"prompt_cache_breakpoint") for asked in server.asked]
    assert marks == [2] * TURNS


def test_without_the_option_nothing_is_marked(server: ModelServer) -> None:
    with anthropic.Anthropic(api_key="k", base_url=server.url, max_retries=0) as client:
        assert said(claude(wrap(client), SHORT))
    assert b"cache_control" not in server.asked[0].content
