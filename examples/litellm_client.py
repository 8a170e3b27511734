"""LiteLLM, any provider: every request is made to fit, and repaired if it is refused.

OPENAI_API_KEY=… python examples/litellm_client.py    # MODEL, OPENAI_BASE_URL
"""

import json
import os
from typing import Any

from nanobot_context.adapters.litellm import completion

# As LiteLLM names it: `anthropic/claude-sonnet-4-5`, `deepseek/deepseek-chat`, …
MODEL = os.environ.get("MODEL", "openai/gpt-4o-mini")
READ_LOG = {
    "name": "read_log",
    "description": "Return the log of one day in March.",
    "parameters": {"type": "object", "properties": {"day": {"type": "integer"}}},
}
TOOLS: list[Any] = [{"type": "function", "function": READ_LOG}]


def read_log(day: int) -> str:
    lines = [f"2026-03-{day:02} node-{at % 9} GET /items/{at * day} 200" for at in range(200)]
    lines[day] = f"2026-03-{day:02} ERROR disk full on node-{day % 9}, ticket OPS-{day}42"
    return "\n".join(lines)


def ask(messages: list[Any], question: str) -> str:
    """Add a question and everything up to its answer. `messages` stays whole."""
    messages.append({"role": "user", "content": question})
    while True:
        answer = completion(MODEL, messages, tools=TOOLS).choices[0].message
        messages.append(answer.model_dump(exclude_none=True))
        if not answer.tool_calls:
            return answer.content or ""
        for call in answer.tool_calls:
            result = read_log(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def main() -> None:
    messages: list[Any] = [{"role": "system", "content": "You read logs. Be brief."}]
    print(ask(messages, "From now on never name a customer."))
    for day in range(1, 11):
        print(ask(messages, f"What failed on March {day}?"))
    print(ask(messages, "Which tickets are there?"))


if __name__ == "__main__":
    main()
