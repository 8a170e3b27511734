"""Marks where a prompt's steady prefix ends, for providers that want to be told.

Anthropic caches nothing without `cache_control`; newer models of OpenAI's take
`prompt_cache_breakpoint`. A request begins as the one before, so there are marks behind the system
prompt, where the request before ended, and at the end, which is where the next one goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nanobot_context.history import SYSTEM_ROLES
from nanobot_context.wire.forms.form import Form
from nanobot_context.wire.forms.messages import Messages
from nanobot_context.wire.forms.responses import Responses

Json = dict[str, Any]

_CLAUDE = ("cache_control", {"type": "ephemeral"})
_OPENAI = ("prompt_cache_breakpoint", {"mode": "explicit"})
# Thoughts bear no mark.
_BEARING = ("text", "input_text", "image", "image_url", "tool_result", "document")


def with_breakpoints(form: Form, body: Json) -> Json:
    """Return `body`, of the API of `form`, with breakpoints; unchanged if it has some.

    Anthropic refuses more than four.
    """
    if _has_marks(form.body):
        return body
    is_claude = isinstance(form, Messages) or "claude" in (form.model or "").lower()
    name, mark = _CLAUDE if is_claude else _OPENAI
    key, kind = ("input", "input_text") if isinstance(form, Responses) else ("messages", "text")
    turns = body[key]
    turns = [{"role": "user", "content": turns}] if isinstance(turns, str) else list(turns)

    def marked(content: Any) -> Any:
        blocks = [{"type": kind, "text": content}] if isinstance(content, str) else content
        last = blocks[-1] if isinstance(blocks, list) and blocks else {}
        if last.get("type") not in _BEARING or last.get("text") == "":
            return content
        return [*blocks[:-1], {**last, name: mark}]

    changed: Json = {key: turns}
    if isinstance(form, Messages) and body.get("system"):
        changed["system"] = marked(body["system"])
    for at in _ends(turns):
        field = "output" if "output" in turns[at] else "content"
        turns[at] = {**turns[at], field: marked(turns[at].get(field))}
    return {**body, **changed}


def _ends(turns: list[Json]) -> Iterator[int]:
    """Yield where a request ended: the system prompt, the one before this one, this one."""
    system = [at for at, turn in enumerate(turns) if turn.get("role") in SYSTEM_ROLES]
    if system and system == list(range(len(system))):
        yield system[-1]
    newest = max((at for at, turn in enumerate(turns) if _is_models(turn)), default=None)
    if newest is not None:
        before = (at for at in range(newest, -1, -1) if not _is_models(turns[at]))
        if (at := next(before, None)) is not None and at not in system:
            yield at
    if turns and newest != len(turns) - 1 and turns[-1].get("role") not in SYSTEM_ROLES:
        yield len(turns) - 1


def _is_models(turn: Json) -> bool:
    kind = turn.get("type") or "message"
    own = kind == "message" or str(kind).endswith("_output")
    return turn.get("role") == "assistant" or not own


def _has_marks(body: Json) -> bool:
    """Return whether anything is marked: the request, a tool, a message, or a part of one."""
    turns = body.get("messages", body.get("input"))
    turns = turns if isinstance(turns, list) else []
    tools = body.get("tools")
    tools = [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    functions = [tool["function"] for tool in tools if isinstance(tool.get("function"), dict)]
    blocks = _blocks([*turns, {"content": body.get("system")}])
    marked = (body, *tools, *functions, *turns, *blocks)
    return any(name in one for name, _ in (_CLAUDE, _OPENAI) for one in marked)


def _blocks(turns: list[Json]) -> Iterator[Json]:
    for turn in turns:
        for field in ("content", "output"):
            content = turn.get(field)
            for block in content if isinstance(content, list) else ():
                if isinstance(block, dict):
                    yield block
                    yield from _blocks([block])
