"""OpenAI's Agents SDK: a session in SQLite or Redis, and requests that fit.

OPENAI_API_KEY=… python examples/openai_agents_session.py    # MODEL, OPENAI_BASE_URL, SESSIONS

What is stored stays whole. `wrap` repairs what a server of OpenAI's interface refuses; `fit_input`
makes requests fit for any other model, too.
"""

import asyncio
import os

import openai
from agents import Agent, RunConfig, Runner, function_tool, set_default_openai_client

from nanobot_context import wrap
from nanobot_context.openai_agents import OpenAIAgentsSession, fit_input

MODEL = os.environ.get("MODEL", "gpt-4o-mini")
# `redis://…` shares sessions between machines; `memory:` keeps them in this process.
SESSIONS = os.environ.get("SESSIONS", "sqlite:///agents.db")


@function_tool
def read_log(day: int) -> str:
    """Return the log of one day in March."""
    lines = [f"2026-03-{day:02} node-{at % 9} GET /items/{at * day} 200" for at in range(200)]
    lines[day] = f"2026-03-{day:02} ERROR disk full on node-{day % 9}, ticket OPS-{day}42"
    return "\n".join(lines)


async def main() -> None:
    set_default_openai_client(wrap(openai.AsyncOpenAI()), use_for_tracing=False)
    agent = Agent(
        name="Logs", instructions="You read logs. Be brief.", model=MODEL, tools=[read_log]
    )
    config = RunConfig(call_model_input_filter=fit_input, tracing_disabled=True)
    days = [f"What failed on March {day}?" for day in range(1, 11)]
    async with OpenAIAgentsSession(SESSIONS, "thread-7") as session:
        for question in ["From now on never name a customer.", *days, "Which tickets are there?"]:
            result = await Runner.run(agent, question, session=session, run_config=config)
            print(result.final_output)


if __name__ == "__main__":
    asyncio.run(main())
