"""Tool schemas made smaller."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from nanobot_context import count_tokens
from nanobot_context.errors import NanobotContextError
from nanobot_context.tools import largest_tools, shorten_tools

MODEL = "gpt-4o"
LONG = "Read a file, v1.2 of it. Then many more words follow that a model can do without. " * 9


def tool(name: str, words: int = 1) -> dict[str, Any]:
    path = {"type": "string", "description": f"Where it is. {LONG}", "default": "a. b. c."}
    # A parameter may have the name of the key.
    said = {"type": "string", "enum": ["description"]}
    parameters = {"type": "object", "properties": {"path": path, "description": said}}
    function = {"name": name, "description": LONG * words, "parameters": parameters}
    return {"type": "function", "function": function}


TOOLS = [tool("read"), tool("write", 3), tool("search"), tool("list")]


def size(tools: list[Any]) -> int:
    return count_tokens([], MODEL, tools=tools)


def test_the_largest_come_first() -> None:
    names = [name for name, _ in largest_tools(TOOLS, MODEL)]
    assert names[0] == "write"
    assert sorted(names) == ["list", "read", "search", "write"]
    claude = [{"name": "f", "input_schema": {"type": "object"}}]
    assert [name for name, _ in largest_tools(claude, MODEL)] == ["f"]


def test_what_fits_comes_back_as_the_same_objects() -> None:
    shown = shorten_tools(TOOLS, 100_000, MODEL)
    assert all(one is other for one, other in zip(shown, TOOLS, strict=True))


def test_descriptions_shrink_to_their_first_sentence_and_data_stays() -> None:
    before = copy.deepcopy(TOOLS)
    shown = shorten_tools(TOOLS, size(TOOLS) // 3, MODEL)
    assert before == TOOLS
    assert size(shown) <= size(TOOLS) // 3
    assert [one["function"]["name"] for one in shown] == ["read", "write", "search", "list"]
    function = shown[1]["function"]
    assert function["description"] == "Read a file, v1.2 of it."
    properties = function["parameters"]["properties"]
    assert properties["path"]["description"] == "Where it is."
    assert properties["path"]["default"] == "a. b. c."
    assert properties["description"] == {"type": "string", "enum": ["description"]}
    assert shorten_tools(shown, size(TOOLS) // 3, MODEL) == shown


def test_then_those_of_parameters_go_then_tools_but_for_those_called() -> None:
    first = shorten_tools(TOOLS, size(TOOLS) // 3, MODEL)
    [*_, last] = shorten_tools(TOOLS, size(first) - 1, MODEL)
    assert "description" in last["function"]
    assert "description" not in last["function"]["parameters"]["properties"]["path"]
    bare = shorten_tools(TOOLS, size(first) - 1, MODEL)
    call = {"id": "c", "type": "function", "function": {"name": "list", "arguments": "{}"}}
    messages = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    shown = shorten_tools(TOOLS, size(bare) - 1, MODEL, messages=messages)
    assert [one["function"]["name"] for one in shown] == ["read", "write", "list"]
    old = [{"role": "assistant", "content": None, "function_call": call["function"]}]
    assert shorten_tools(TOOLS, size(bare) - 1, MODEL, messages=old) == shown
    only = shorten_tools(TOOLS, 0, MODEL, messages=messages)
    assert [one["function"]["name"] for one in only] == ["list"]


def test_chinese_ends_a_sentence_without_a_space() -> None:
    given = {"name": "f", "description": "读文件。然后还有很多话。" * 40, "input_schema": {}}
    assert shorten_tools([given], 40, MODEL)[0]["description"] == "读文件。"


@pytest.mark.parametrize("wrong", [{"tools": "read"}, {"max_tokens": -1}, {"messages": [5]}])
def test_what_cannot_be_used_is_said(wrong: dict[str, Any]) -> None:
    with pytest.raises(NanobotContextError):
        shorten_tools(**{"tools": TOOLS, "max_tokens": 5, **wrong})


def test_what_a_request_names_and_what_has_no_name_stays() -> None:
    tools = [*TOOLS, {"type": "web_search"}, tool("chosen")]
    chosen = {"type": "function", "function": {"name": "chosen"}}
    shown = shorten_tools(tools, 1, MODEL, choice=chosen)
    assert [one.get("function", one).get("name") for one in shown] == [None, "chosen"]
    assert shorten_tools(tools, 1, MODEL, choice="auto") == [{"type": "web_search"}]


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "last"}]},
        {
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "required",
                "tools": [{"type": "function", "function": {"name": "last"}}],
            },
        },
    ],
    ids=["Responses", "chat"],
)
def test_tools_that_a_request_allows_stay(choice: dict[str, Any]) -> None:
    shown = shorten_tools([*TOOLS, tool("last")], 1, MODEL, choice=choice)
    assert [one["function"]["name"] for one in shown] == ["last"]


@pytest.mark.parametrize("tools", [None, "all", [5], {"tools": 5}])
def test_what_a_request_allows_may_be_of_any_shape(tools: Any) -> None:
    for choice in ({"type": "allowed_tools", "tools": tools}, {"allowed_tools": tools}):
        assert shorten_tools(TOOLS, 1, MODEL, choice=choice) == []


@pytest.mark.parametrize(
    "own",
    [
        {"type": "web_search"},
        {"type": "bash_20250124", "name": "bash"},
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
        {"type": "namespace", "name": "crm", "tools": [tool("find")]},
    ],
)
def test_the_providers_own_tools_stay(own: dict[str, Any]) -> None:
    custom = {"name": "read", "input_schema": {"type": "object"}, "type": "custom"}
    shown = shorten_tools([*TOOLS, own, custom], 1, MODEL)
    assert [one["type"] for one in shown] == [own["type"]]


def test_a_cache_mark_of_what_is_left_out_moves_to_the_tool_before_it_that_stays() -> None:
    hour = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    mark = {"cache_control": {"type": "ephemeral"}}
    a, b, c, d, e = ({"name": name, "input_schema": {"type": "object"}} for name in "abcde")
    call = {"id": "c", "type": "function", "function": {"name": "d", "arguments": "{}"}}
    messages = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    tools = [a, {**b, **hour}, c, d, {**e, **mark}]
    shown = shorten_tools(tools, size([a, d]), MODEL, messages=messages)
    assert shown == [{**a, **hour}, {**d, **mark}]
    # What has a mark keeps it, and what has nothing before it has nowhere to go.
    tools = [{**a, **mark}, b, c, {**d, **hour}, {**e, **mark}]
    assert shorten_tools(tools, 0, MODEL, messages=messages) == [{**d, **hour}]
