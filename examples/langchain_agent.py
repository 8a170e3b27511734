"""A LangChain agent whose requests fit, and are repaired if they are refused: middleware.

OPENAI_API_KEY=… python examples/langchain_agent.py    # MODEL, OPENAI_BASE_URL

The agent's state keeps every message; only what is sent is shortened.
"""

import os
from typing import Any

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

from nanobot_context.adapters.langchain import FitContext

MODEL = os.environ.get("MODEL", "gpt-4o-mini")


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
    days = [f"What failed on March {day}?" for day in range(1, 11)]
    for question in ["From now on never name a customer.", *days, "Which tickets are there?"]:
        messages.append({"role": "user", "content": question})
        messages = agent.invoke({"messages": messages})["messages"]
        print(messages[-1].content)


if __name__ == "__main__":
    main()
