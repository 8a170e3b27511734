"""`wrap` around OpenAI's client for asyncio, in streams."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
from talk import QUESTIONS, SCHEMA, read_log

from nanobot_context import wrap


async def main() -> None:
    client = wrap(openai.AsyncOpenAI())
    messages: list[Any] = [{"role": "system", "content": "You read logs. Be brief."}]
    for question in QUESTIONS:
        messages.append({"role": "user", "content": question})
        while True:
            tools: Any = [SCHEMA]
            async with client.chat.completions.stream(
                model="gpt-4o-mini", messages=messages, tools=tools
            ) as stream:
                answer = (await stream.get_final_completion()).choices[0].message
            messages.append(answer)
            if not answer.tool_calls:
                break
            for call in answer.tool_calls:
                result = read_log(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        print(answer.content)


if __name__ == "__main__":
    asyncio.run(main())
