"""An agent of smolagents whose requests fit, and are repaired if they are refused.

OPENAI_API_KEY=… python examples/smolagents_agent.py    # MODEL, OPENAI_BASE_URL

The agent's memory stays whole; only what is sent is shortened.
"""

import os

from smolagents import OpenAIModel, ToolCallingAgent, tool

from nanobot_context.adapters.smolagents import fitting

MODEL = os.environ.get("MODEL", "gpt-4o-mini")


@tool
def read_log(day: int) -> str:
    """Return the log of one day in March.

    Args:
        day: The day.
    """
    lines = [f"2026-03-{day:02} node-{at % 9} GET /items/{at * day} 200" for at in range(200)]
    lines[day] = f"2026-03-{day:02} ERROR disk full on node-{day % 9}, ticket OPS-{day}42"
    return "\n".join(lines)


def main() -> None:
    agent = ToolCallingAgent(
        tools=[read_log],
        model=fitting(OpenAIModel(MODEL)),
        instructions="You read logs. Be brief.",
        verbosity_level=0,
    )
    days = [f"What failed on March {day}?" for day in range(1, 11)]
    for question in ["From now on never name a customer.", *days, "Which tickets are there?"]:
        print(agent.run(question, reset=False))


if __name__ == "__main__":
    main()
