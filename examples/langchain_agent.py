"""A LangChain agent whose requests fit: middleware of `create_agent`, from langchain 1.0 on.

OPENAI_API_KEY=… python examples/langchain_agent.py    # MODEL, CONTEXT_WINDOW, OPENAI_BASE_URL

The agent's state keeps every message; only what is sent is shortened. For `create_react_agent`,
which `create_agent` has taken the place of, there is `pre_model_hook`.
"""

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import BaseMessage, convert_to_messages, convert_to_openai_messages
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_openai import ChatOpenAI

from nanobot_context import compress_messages, get_context_window

MODEL = os.environ.get("MODEL", "gpt-4o-mini")
# What the package knows of the model; a local server has the window that it was started with.
WINDOW = int(os.environ.get("CONTEXT_WINDOW") or get_context_window(MODEL))


def compress(messages: Sequence[BaseMessage], tools: Sequence[Any] = ()) -> list[Any]:
    """Return messages that fit; those that stay as they are, as the same objects."""
    plain = [{**convert_to_openai_messages(m), "at": at} for at, m in enumerate(messages)]
    schemas = [convert_to_openai_tool(tool) for tool in tools]
    fitted: list[BaseMessage] = []
    for message in compress_messages(plain, WINDOW, MODEL, tools=schemas):
        at = message.get("at")
        if at is not None and message is plain[at]:
            fitted.append(messages[at])
        else:
            fitted += convert_to_messages([{k: v for k, v in message.items() if k != "at"}])
    return fitted


class FitContext(AgentMiddleware):
    """Makes each request of an agent fit, system prompt and tools counted."""

    def fitting(self, request: ModelRequest) -> ModelRequest:
        front = [request.system_message] if request.system_message else []
        fitted = compress([*front, *request.messages], request.tools)
        return request.override(messages=fitted[len(front) :])

    def wrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]
    ) -> ModelResponse:
        return handler(self.fitting(request))

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        return await handler(self.fitting(request))


def pre_model_hook(state: dict[str, Any]) -> dict[str, Any]:
    """For `langgraph.prebuilt.create_react_agent(…, pre_model_hook=pre_model_hook)`."""
    return {"llm_input_messages": compress(state["messages"])}


def read_log(day: int) -> str:
    """Return the log of one day in March."""
    lines = [f"2026-03-{day:02} node-{at % 9} GET /items/{at * day} 200" for at in range(200)]
    lines[day] = f"2026-03-{day:02} ERROR disk full on node-{day % 9}, ticket OPS-{day}42"
    return "\n".join(lines)


def main() -> None:
    agent = create_agent(
        ChatOpenAI(model=MODEL),
        [read_log],
        system_prompt="You read logs. Be brief.",
        middleware=[FitContext()],
    )
    messages: list[Any] = []
    questions = [f"What failed on March {day}?" for day in range(1, 11)]
    for question in [*questions, "Which tickets are there?"]:
        messages.append({"role": "user", "content": question})
        messages = agent.invoke({"messages": messages})["messages"]
        print(messages[-1].content)


if __name__ == "__main__":
    main()
