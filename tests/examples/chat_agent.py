"""examples/openai_agents_session.py with a server that has chat completions alone."""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import openai_agents_session
from agents import set_default_openai_api

if __name__ == "__main__":
    set_default_openai_api("chat_completions")
    asyncio.run(openai_agents_session.main())
