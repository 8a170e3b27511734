"""LiteLLM's router with the callback, as its proxy has it."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import litellm
from run_example import WITHOUT
from talk import QUESTIONS, SCHEMA, read_log

from nanobot_context.adapters.litellm import fit_context


async def main() -> None:
    if not os.environ.get(WITHOUT):
        litellm.callbacks = [fit_context]
    router = litellm.Router(
        model_list=[{"model_name": "house", "litellm_params": {"model": "openai/gpt-4o-mini"}}],
        retry_policy=litellm.RetryPolicy(BadRequestErrorRetries=1),
    )
    messages: list[Any] = [{"role": "system", "content": "You read logs. Be brief."}]
    for question in QUESTIONS:
        messages.append({"role": "user", "content": question})
        while True:
            response: Any = await router.acompletion("house", messages=messages, tools=[SCHEMA])
            answer = response.choices[0].message
            messages.append(answer.model_dump(exclude_none=True))
            if not answer.tool_calls:
                break
            for call in answer.tool_calls:
                result = read_log(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        print(answer.content)


if __name__ == "__main__":
    asyncio.run(main())
