"""An agent with OpenAI's own client: every request is made to fit, and repaired if it is refused.

OPENAI_API_KEY=… python examples/openai_client.py    # MODEL, CONTEXT_WINDOW, OPENAI_BASE_URL
"""

import asyncio
import json
import os
from typing import Any

import openai

from nanobot_context import Overflow, call_with_recovery, get_context_window

MODEL = os.environ.get("MODEL", "gpt-4o-mini")
# What the package knows of the model; a local server has the window that it was started with.
WINDOW = int(os.environ.get("CONTEXT_WINDOW") or get_context_window(MODEL))
READ_LOG = {
    "name": "read_log",
    "description": "Return the log of one day in March.",
    "parameters": {"type": "object", "properties": {"day": {"type": "integer"}}},
}
TOOLS: list[Any] = [{"type": "function", "function": READ_LOG}]

client = openai.AsyncOpenAI()


def read_log(day: int) -> str:
    lines = [f"2026-03-{day:02} node-{at % 9} GET /items/{at * day} 200" for at in range(200)]
    lines[day] = f"2026-03-{day:02} ERROR disk full on node-{day % 9}, ticket OPS-{day}42"
    return "\n".join(lines)


async def chat(messages: list[Any], *, max_tokens: int | None) -> Any:
    """Send messages as they are; `call_with_recovery` decides which."""
    return await client.chat.completions.create(
        model=MODEL, messages=messages, tools=TOOLS, max_completion_tokens=max_tokens or openai.omit
    )


async def ask(messages: list[Any], question: str) -> str:
    """Add a question and everything up to its answer. `messages` stays whole."""
    messages.append({"role": "user", "content": question})
    while True:
        response = await call_with_recovery(
            chat,
            messages,
            context_window=WINDOW,
            model=MODEL,
            tools=TOOLS,
            max_output_tokens=1_000,
            on_overflow=report,
        )
        answer = response.choices[0].message
        messages.append(answer.model_dump(exclude_none=True))
        if not answer.tool_calls:
            return answer.content or ""
        for call in answer.tool_calls:
            result = read_log(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def report(overflow: Overflow) -> None:
    print(f"refused as too long: {overflow.used_tokens} of {overflow.limit_tokens} tokens")


async def main() -> None:
    messages: list[Any] = [{"role": "system", "content": "You read logs. Be brief."}]
    for day in range(1, 11):
        print(await ask(messages, f"What failed on March {day}?"))
    print(await ask(messages, "Which tickets are there?"))


if __name__ == "__main__":
    asyncio.run(main())
