"""Measures tool schemas, and shortens those that take too much of a window."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nanobot_context._core import count_tokens
from nanobot_context.arguments import check_mappings, check_messages, check_whole

__all__ = ["largest_tools", "shorten_tools"]

Tool = Mapping[str, Any]

# Values under these keys are the tool's own data.
_DATA = ("const", "default", "enum", "example", "examples")
# Anthropic caches what stands before it.
_MARK = "cache_control"
_FIRST = re.compile(r"\s*(.*?[.!?](?=\s|$)|.*?[。！？]|[^\n]*)", re.DOTALL)


def largest_tools(tools: Sequence[Tool], model: str | None = None) -> list[tuple[str, int]]:
    """Return the names of tools with the tokens of their schemas, the largest first.

    Raises:
        InvalidArgumentError: An argument cannot be used.
    """
    check_mappings("tools", tools)
    sizes = [(_name(tool), count_tokens([], model, tools=[tool])) for tool in tools]
    return sorted(sizes, key=lambda size: -size[1])


def shorten_tools(
    tools: Sequence[Tool],
    max_tokens: int,
    model: str | None = None,
    *,
    messages: Sequence[Mapping[str, Any]] = (),
    choice: Any = None,
) -> list[Any]:
    """Return tool schemas shortened to `max_tokens`, if they can get that small.

    Descriptions shrink to their first sentence; then those of parameters go; then tools are left
    out, from the last on, but for those that `messages` call, that `choice` names, and that are the
    provider's own. Names and types of parameters stay. The same tools give the
    same schemas in each request of a conversation, so that the provider's cache holds; those that
    fit come back as the same objects. A `cache_control` of a tool that is left out moves to the one
    before it that stays.

    Args:
        tools: Schemas as chat completions, Responses or Anthropic have them.
        max_tokens: Tokens that they may take.
        model: The model that tokens are counted for.
        messages: The conversation, in OpenAI's form.
        choice: The request's `tool_choice`.

    Raises:
        InvalidArgumentError: An argument cannot be used.
        InvalidMessageError: A message is of a shape that cannot be read.
    """
    check_mappings("tools", tools)
    check_whole("max_tokens", max_tokens)
    needed = {""} | _called(check_messages("messages", messages)) | _chosen(choice)
    shown: list[Any] = list(tools)

    def fits(some: list[Any]) -> bool:
        return not some or count_tokens([], model, tools=some) <= max_tokens

    steps: list[Callable[[str, bool], str | None]] = [
        lambda text, _: _first_sentence(text),
        lambda text, is_of_tool: _first_sentence(text) if is_of_tool else None,
    ]
    for step in steps:
        if fits(shown):
            return shown
        shown = [_described(tool, step) for tool in tools]
    described = shown
    for tool in reversed(described):
        if fits(shown):
            break
        if _name(tool) not in needed and not _is_hosted(tool):
            shown = [one for one in shown if one is not tool]
    return shown if len(shown) == len(described) else _marked(described, shown)


def _name(tool: Tool) -> str:
    function = tool.get("function")
    return str((function if isinstance(function, Mapping) else tool).get("name") or "")


def _is_hosted(tool: Tool) -> bool:
    """Return whether a tool is the provider's own: `bash_20250124`, `web_search`, a namespace."""
    kind = tool.get("type", "function")
    return kind not in ("function", "custom") and not {"input_schema", "parameters"} & tool.keys()


def _marked(tools: list[Any], shown: list[Any]) -> list[Any]:
    """Return `shown` with the cache marks of the tools that were left out."""
    kept = {id(tool) for tool in shown}
    marked: list[Any] = []
    mark = None
    for tool in reversed(tools):
        own = tool.get(_MARK)
        if id(tool) not in kept:
            mark = mark or own
            continue
        marked.append({**tool, _MARK: mark} if mark and not own else tool)
        mark = None
    return marked[::-1]


def _chosen(choice: Any) -> set[str]:
    """Return the tools that a `tool_choice` names: one, or those that are allowed."""
    if not isinstance(choice, Mapping):
        return set()
    allowed = choice.get("allowed_tools", choice)
    tools = allowed.get("tools") if isinstance(allowed, Mapping) else None
    named = tools if isinstance(tools, list) else []
    return {_name(one) for one in [choice, *named] if isinstance(one, Mapping)}


def _called(messages: Sequence[Mapping[str, Any]]) -> set[str]:
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    calls += [message.get("function_call") for message in messages]
    return {_name(call) for call in calls if isinstance(call, Mapping)}


def _first_sentence(text: str) -> str:
    found = _FIRST.match(text)
    return found[1] if found else text


def _described(value: Any, change: Callable[[str, bool], str | None], depth: int = 0) -> Any:
    """Return a schema with other descriptions; a tool's own are at its top or in `function`."""
    if isinstance(value, list):
        return [_described(one, change, depth + 1) for one in value]
    if not isinstance(value, Mapping):
        return value
    described: dict[str, Any] = {}
    for key, one in value.items():
        if key == "description" and isinstance(one, str):
            is_of_tool = depth == 0 or (depth == 1 and "name" in value)
            said = change(one, is_of_tool)
            if said is not None:
                described[key] = said
        else:
            described[key] = one if key in _DATA else _described(one, change, depth + 1)
    return described
