"""OpenAI's Agents SDK: a session in SQLite or Redis, and requests that fit.

OPENAI_API_KEY=… python examples/openai_agents_session.py    # MODEL, CONTEXT_WINDOW, SESSIONS

The session hands out what fits three quarters of the window, and `fit` makes each request fit to
which the tools of a turn have added. What is stored stays whole.
"""

import asyncio
import os
from dataclasses import replace

from agents import Agent, FunctionTool, RunConfig, Runner, function_tool
from agents.run import CallModelData, ModelInputData

from nanobot_context import get_context_window
from nanobot_context.openai_agents import OpenAIAgentsSession, compress_items

MODEL = os.environ.get("MODEL", "gpt-4o-mini")
# What the package knows of the model; a local server has the window that it was started with.
WINDOW = int(os.environ.get("CONTEXT_WINDOW") or get_context_window(MODEL))
# `redis://…` shares sessions between machines; `memory:` keeps them in this process.
SESSIONS = os.environ.get("SESSIONS", "sqlite:///agents.db")


def fit(data: CallModelData[None]) -> ModelInputData:
    """Make one request fit: called before each, in the middle of a turn, too."""
    tools = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.params_json_schema,
            },
        }
        for tool in data.agent.tools
        if isinstance(tool, FunctionTool)
    ]
    request = data.model_data
    items = compress_items(
        request.input, WINDOW, MODEL, instructions=request.instructions, tools=tools
    )
    return replace(request, input=items)


@function_tool
def read_log(day: int) -> str:
    """Return the log of one day in March."""
    lines = [f"2026-03-{day:02} node-{at % 9} GET /items/{at * day} 200" for at in range(200)]
    lines[day] = f"2026-03-{day:02} ERROR disk full on node-{day % 9}, ticket OPS-{day}42"
    return "\n".join(lines)


async def main() -> None:
    agent = Agent(
        name="Logs", instructions="You read logs. Be brief.", model=MODEL, tools=[read_log]
    )
    config = RunConfig(call_model_input_filter=fit, tracing_disabled=True)
    questions = [f"What failed on March {day}?" for day in range(1, 11)]
    async with OpenAIAgentsSession(
        SESSIONS, "thread-7", max_tokens=WINDOW * 3 // 4, model=MODEL
    ) as session:
        for question in [*questions, "Which tickets are there?"]:
            result = await Runner.run(agent, question, session=session, run_config=config)
            print(result.final_output)


if __name__ == "__main__":
    asyncio.run(main())
