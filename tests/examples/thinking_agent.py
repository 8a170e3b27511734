"""examples/openai_agents_session.py with a model that thinks, and as a stream.

The thoughts come encrypted and are sent again with each request. The provider takes none without
what it led to. Two processes answer the questions, from one store, and are told the window.
"""

import asyncio
import multiprocessing

from agents import Agent, ModelSettings, RunConfig, Runner, function_tool
from talk import QUESTIONS, read_log

from nanobot_context.openai_agents import InputFilter, OpenAIAgentsSession

MODEL, WINDOW = "gpt-4o-mini", 16_000


async def ask(questions: list[str]) -> None:
    settings = ModelSettings(store=False, response_include=["reasoning.encrypted_content"])
    agent = Agent(
        name="Logs",
        instructions="You read logs. Be brief.",
        model=MODEL,
        tools=[function_tool(read_log)],
        model_settings=settings,
    )
    config = RunConfig(call_model_input_filter=InputFilter(WINDOW), tracing_disabled=True)
    store = "sqlite:///agents.db"
    async with OpenAIAgentsSession(store, "s", max_tokens=WINDOW * 3 // 4, model=MODEL) as session:
        for question in questions:
            result = Runner.run_streamed(agent, question, session=session, run_config=config)
            async for _ in result.stream_events():
                pass
            print(result.final_output, flush=True)


def answer(questions: list[str]) -> None:
    asyncio.run(ask(questions))


if __name__ == "__main__":
    processes = multiprocessing.get_context("spawn")
    for questions in (QUESTIONS[:6], QUESTIONS[6:]):
        process = processes.Process(target=answer, args=(questions,))
        process.start()
        process.join()
        if process.exitcode:
            raise SystemExit(f"exit code {process.exitcode}")
