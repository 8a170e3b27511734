"""Run an example as `python examples/x.py` does; `--without` what the package does in it.

python tests/examples/run_example.py examples/openai_client.py --without
"""

from __future__ import annotations

import argparse
import runpy
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import nanobot_context
from nanobot_context import openai_agents


def switch_off() -> None:
    """Make the functions that examples import hand on what they are given."""

    def as_it_is(given: Sequence[Any], *_: object, **__: object) -> list[Any]:
        return list(given)

    async def once(chat: Callable[..., Awaitable[Any]], messages: list[Any], **_: object) -> object:
        return await chat(messages, max_tokens=None)

    class Session(openai_agents.OpenAIAgentsSession):
        def __init__(self, store: str, session_id: str, **_: object) -> None:
            super().__init__(store, session_id)

    instead: dict[Any, dict[str, Any]] = {
        nanobot_context: {"compress_messages": as_it_is, "call_with_recovery": once},
        openai_agents: {"compress_items": as_it_is, "OpenAIAgentsSession": Session},
    }
    for module, names in instead.items():
        for name, value in names.items():
            setattr(module, name, value)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("example")
    parser.add_argument("--without", action="store_true")
    options = parser.parse_args()
    if options.without:
        switch_off()
    runpy.run_path(options.example, run_name="__main__")
