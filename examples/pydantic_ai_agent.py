"""A Pydantic AI agent whose requests fit: a history processor.

OPENAI_API_KEY=… python examples/pydantic_ai_agent.py    # MODEL, CONTEXT_WINDOW, OPENAI_BASE_URL

`capabilities=[ProcessHistory(compress)]` is of pydantic-ai 2; in 1 it is
`history_processors=[compress]`. What a processor returns is the history from then on: what is
shortened stays so, and the provider's prompt cache goes on working. Files in a prompt stay with
it, and do not count; of a response that is shortened stay thoughts, text and calls.
"""

import os
from dataclasses import replace
from typing import Any

from pydantic_ai import (
    Agent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.models.openai import OpenAIChatModel

from nanobot_context import compress_messages, get_context_window

MODEL = os.environ.get("MODEL", "gpt-4o-mini")
# What the package knows of the model; a local server has the window that it was started with.
WINDOW = int(os.environ.get("CONTEXT_WINDOW") or get_context_window(MODEL))


def compress(history: list[ModelMessage]) -> list[ModelMessage]:
    """Return a history that fits. Calls stay together with their results."""
    plain: list[dict[str, Any]] = []
    for entry in history:
        parts = [entry] if isinstance(entry, ModelResponse) else entry.parts
        plain += [{**to_plain(part), "of": (entry, part)} for part in parts]
    instructions = history[-1].instructions if isinstance(history[-1], ModelRequest) else None
    front = [{"role": "system", "content": instructions}] if instructions else []
    untouched = {id(message) for message in plain}
    shown: list[Any] = []
    previous = None
    for message in compress_messages([*front, *plain], WINDOW, MODEL)[len(front) :]:
        if message["role"] == "tool" and "of" not in message:
            continue  # the result of a call that had none: pydantic-ai makes it, too
        # What is of no part says that something is left out.
        of, part = message.get("of") or (None, UserPromptPart(message["content"]))
        if of and id(message) not in untouched:
            part = changed(part, message)
        if isinstance(part, ModelResponse):
            shown.append(part)
        elif of and of is previous:
            shown[-1] = replace(shown[-1], parts=[*shown[-1].parts, part])
        else:
            shown.append(replace(of, parts=[part]) if of else ModelRequest([part]))
        previous = of
    return shown


def to_plain(part: Any) -> dict[str, Any]:
    """Return a response, or a part of a request, as an OpenAI-style message."""
    if getattr(part, "tool_name", None):  # a result, or why the call is to be made again
        is_result = isinstance(part, ToolReturnPart)
        content = part.model_response_str() if is_result else part.model_response()
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": content}
    if not isinstance(part, ModelResponse):
        role = "system" if isinstance(part, SystemPromptPart) else "user"
        content = getattr(part, "content", "")
        texts = [content] if isinstance(content, str) else content
        return {"role": role, "content": "\n".join(one for one in texts if isinstance(one, str))}
    said = [one.content for one in part.parts if isinstance(one, TextPart)]
    thoughts = [one.content for one in part.parts if isinstance(one, ThinkingPart)]
    message: dict[str, Any] = {"role": "assistant", "content": "\n\n".join(said) or None}
    if any(thoughts):
        message["reasoning_content"] = "\n\n".join(thoughts)
    for one in part.parts:
        if isinstance(one, ToolCallPart):
            function = {"name": one.tool_name, "arguments": one.args_as_json_str()}
            call = {"id": one.tool_call_id, "type": "function", "function": function}
            message.setdefault("tool_calls", []).append(call)
    return message


def changed(part: Any, message: dict[str, Any]) -> Any:
    """Return a response, or a part of a request, with what its message says now."""
    content = message["content"]
    if isinstance(part, UserPromptPart) and not isinstance(part.content, str):
        files = [one for one in part.content if not isinstance(one, str)]
        return replace(part, content=[content, *files])
    if not isinstance(part, ModelResponse):
        return replace(part, content=content)
    calls = {call["id"]: call["function"]["arguments"] for call in message.get("tool_calls", ())}
    parts: list[Any] = [TextPart(content)] if content else []
    for one in part.parts:
        if isinstance(one, ThinkingPart) and "reasoning_content" in message:
            parts.insert(0, one)
        elif isinstance(one, ToolCallPart) and one.tool_call_id in calls:
            parts.append(replace(one, args=calls[one.tool_call_id]))
    return replace(part, parts=parts)


def read_log(day: int) -> str:
    """Return the log of one day in March."""
    lines = [f"2026-03-{day:02} node-{at % 9} GET /items/{at * day} 200" for at in range(200)]
    lines[day] = f"2026-03-{day:02} ERROR disk full on node-{day % 9}, ticket OPS-{day}42"
    return "\n".join(lines)


def main() -> None:
    agent = Agent(
        OpenAIChatModel(MODEL),
        instructions="You read logs. Be brief.",
        tools=[read_log],
        capabilities=[ProcessHistory(compress)],
    )
    history: list[ModelMessage] = []
    questions = [f"What failed on March {day}?" for day in range(1, 11)]
    for question in [*questions, "Which tickets are there?"]:
        result = agent.run_sync(question, message_history=history)
        history = result.all_messages()
        print(result.output)


if __name__ == "__main__":
    main()
