"""LiteLLM, any provider: every request is made to fit, and repaired if it is refused.

OPENAI_API_KEY=… python examples/litellm_client.py    # MODEL, CONTEXT_WINDOW, OPENAI_BASE_URL
"""

import asyncio
import os
from typing import Any

import litellm

from nanobot_context import call_with_recovery, get_context_window

# As LiteLLM names it: `anthropic/claude-sonnet-4-5`, `deepseek/deepseek-chat`, …
MODEL = os.environ.get("MODEL", "openai/gpt-4o-mini")
WINDOW = int(os.environ.get("CONTEXT_WINDOW") or get_context_window(MODEL))


async def chat(messages: list[Any], *, max_tokens: int | None) -> Any:
    """Send messages as they are; `call_with_recovery` decides which."""
    return await litellm.acompletion(model=MODEL, messages=messages, max_tokens=max_tokens)


async def ask(messages: list[Any], question: str) -> str:
    """Add a question and its answer. `messages` stays whole."""
    messages.append({"role": "user", "content": question})
    response = await call_with_recovery(
        chat, messages, context_window=WINDOW, model=MODEL, max_output_tokens=1_000
    )
    answer = response.choices[0].message
    messages.append({"role": "assistant", "content": answer.content})
    return answer.content or ""


async def main() -> None:
    messages: list[Any] = [
        {"role": "system", "content": "You read logs. Be brief."},
        {"role": "user", "content": "From now on never show customers' names."},
        {"role": "assistant", "content": "I never will."},
    ]
    for day in range(1, 11):
        log = [f"2026-03-{day:02} node-{at % 9} GET /items/{at * day} 200" for at in range(200)]
        log[day] = f"2026-03-{day:02} ERROR disk full on node-{day % 9}, ticket OPS-{day}42"
        print(await ask(messages, f"What failed on March {day}?\n" + "\n".join(log)))
    print(await ask(messages, "Which tickets are there?"))


if __name__ == "__main__":
    asyncio.run(main())
