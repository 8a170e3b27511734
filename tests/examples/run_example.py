"""Run an example as `python examples/x.py` does; `--without` what the package does in it.

python tests/examples/run_example.py examples/openai_client.py --without
"""

from __future__ import annotations

import argparse
import os
import runpy
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import Any

WITHOUT = "WITHOUT_NANOBOT_CONTEXT"
"""Set where a program of this directory is to do without by itself."""


def switch_off() -> None:
    """Make the functions that examples and adapters import hand on what they are given."""

    async def once(chat: Callable[..., Awaitable[Any]], messages: list[Any], **_: object) -> object:
        return await chat(messages, max_tokens=None)

    def once_sync(chat: Callable[..., Any], messages: list[Any], **_: object) -> object:
        return chat(messages, max_tokens=None)

    import nanobot_context
    from nanobot_context import calls

    calls.call_with_recovery = once  # type: ignore[assignment]
    calls.call_with_recovery_sync = once_sync  # type: ignore[assignment]
    nanobot_context.wrap = lambda client, **_: client
    # Behind the others, which its modules import.
    from nanobot_context import openai_agents

    openai_agents.InputFilter.__call__ = lambda self, data: data.model_data  # type: ignore[method-assign]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("example")
    parser.add_argument("--without", action="store_true")
    options = parser.parse_args()
    if options.without:
        os.environ[WITHOUT] = "1"
        # nanobot is as it is where the package is not even imported.
        if find_spec("nanobot") is None:
            switch_off()
    runpy.run_path(options.example, run_name="__main__")
