"""A Pydantic AI agent whose requests fit, and are repaired if they are refused.

OPENAI_API_KEY=… python examples/pydantic_ai_agent.py    # MODEL, OPENAI_BASE_URL

The history stays whole; only what is sent is shortened.
"""

import os

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.openai import OpenAIChatModel

from nanobot_context.adapters.pydantic_ai import FittingModel

MODEL = os.environ.get("MODEL", "gpt-4o-mini")


def read_log(day: int) -> str:
    """Return the log of one day in March."""
    lines = [f"2026-03-{day:02} node-{at % 9} GET /items/{at * day} 200" for at in range(200)]
    lines[day] = f"2026-03-{day:02} ERROR disk full on node-{day % 9}, ticket OPS-{day}42"
    return "\n".join(lines)


def main() -> None:
    agent = Agent(
        FittingModel(OpenAIChatModel(MODEL)),
        instructions="You read logs. Be brief.",
        tools=[read_log],
    )
    history: list[ModelMessage] = []
    days = [f"What failed on March {day}?" for day in range(1, 11)]
    for question in ["From now on never name a customer.", *days, "Which tickets are there?"]:
        result = agent.run_sync(question, message_history=history)
        history = result.all_messages()
        print(result.output)


if __name__ == "__main__":
    main()
