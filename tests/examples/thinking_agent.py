"""examples/openai_agents_session.py with a model that thinks, and as a stream.

The thoughts come encrypted and are sent again with each request. The provider takes none without
what it led to. A process of its own answers each question, from one store.
"""

import asyncio
import multiprocessing
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from agents import Agent, ModelSettings, RunConfig, Runner
from openai_agents_session import MODEL, WINDOW, fit, read_log

from nanobot_context.openai_agents import OpenAIAgentsSession


async def ask(questions: list[str]) -> None:
    settings = ModelSettings(store=False, response_include=["reasoning.encrypted_content"])
    agent = Agent(
        name="Logs",
        instructions="You read logs. Be brief.",
        model=MODEL,
        tools=[read_log],
        model_settings=settings,
    )
    config = RunConfig(call_model_input_filter=fit, tracing_disabled=True)
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
    asked = [f"What failed on March {day}?" for day in range(1, 11)] + ["Which tickets are there?"]
    processes = multiprocessing.get_context("spawn")
    for questions in (asked[:6], asked[6:]):
        process = processes.Process(target=answer, args=(questions,))
        process.start()
        process.join()
        if process.exitcode:
            raise SystemExit(f"exit code {process.exitcode}")
