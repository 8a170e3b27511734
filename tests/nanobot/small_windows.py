"""Print what a small window leaves for the conversation beside nanobot's own prompt and tools.

.cache/nanobot/0.2.2/bin/python tests/nanobot/small_windows.py

One request is taken from nanobot's own loop, with its system prompt and all of its tools. A long
conversation is put behind it and made to fit, with `maxTokens` as nanobot has it by default.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from drive import prepare
from scenario import script
from server import ModelServer
from stage import Stage
from texts import prose

WINDOWS = (8_192, 16_000, 16_384, 32_768)
MODEL = "gpt-4o-mini"
MAX_TOKENS = 8_192
"""nanobot's default."""


def main() -> int:
    """Print a line for each window."""
    prepare()
    with tempfile.TemporaryDirectory() as home:
        system, tools = asyncio.run(given(Path(home)))
    core = import_module("nanobot_context._core")
    fixed = core.count_tokens([system], MODEL, tools=tools)
    print(
        f"nanobot {version('nanobot-ai')}: {fixed:,} tokens of system prompt and {len(tools)} tools"
    )
    print("| window | half kept free | conversation at most | after a cut | answer then |")
    print("|---:|---:|---:|---:|---:|")
    messages = [system, *conversation()]
    for window in WINDOWS:
        sent, max_tokens, budget = fitted(messages, tools, window)
        prompt = core.count_tokens(sent, MODEL, tools=tools)
        free = window - prompt
        assert max_tokens == min(MAX_TOKENS, free), "an answer is cut that would fit"
        # What would be left if half of the window were kept free where nanobot asks for as much.
        half = max(window - fixed - min(MAX_TOKENS, window // 2), 0)
        most, now = max(budget - fixed, 0), prompt - fixed
        print(f"| {window:,} | {half:,} | {most:,} | {now:,} | {max_tokens:,} |")
    return 0


async def given(home: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the system message and the tools of a request of nanobot's."""
    with ModelServer(script(["Hello."]), window=200_000) as server:
        stage = Stage(home, server, f"openai/{MODEL}", defaults={}, package="off")
        await stage.say("Hello")
        await stage.idle()
        await stage.close()
        request = server.requests[0]
    return request.messages[0], request.tools


def fitted(
    messages: list[dict[str, Any]], tools: list[dict[str, Any]], window: int
) -> tuple[list[dict[str, Any]], int, int]:
    """Return what the shim sends of `messages`, the limit for the answer, and the budget."""
    fitting, windows, requests, settings = (
        import_module(f"nanobot_context.{name}")
        for name in ("guard.fitting", "guard.windows", "guard.request", "settings")
    )
    chosen = settings.Settings(context_window_override=window)
    resolver = windows.WindowResolver(settings.LoadedSettings(chosen))
    request = requests.Request(messages, tools, MODEL, MAX_TOKENS, send=None)
    attempt, budget = fitting.Fitter(chosen, resolver).first(request)
    return attempt.messages, attempt.max_tokens, budget


def conversation(rounds: int = 40) -> list[dict[str, Any]]:
    """Return a conversation of about 60,000 tokens: questions, files read and answers."""
    said: list[dict[str, Any]] = []
    for number in range(rounds):
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": "read_file", "arguments": f'{{"path": "notes-{number}.md"}}'},
        }
        said += [
            {"role": "user", "content": f"What do notes-{number}.md say?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "name": "read_file",
             "content": prose(f"notes-{number}", 1_200)},
            {"role": "assistant", "content": prose(f"answer-{number}", 150)},
        ]  # fmt: skip
    return [*said, {"role": "user", "content": "Compare what the last three say."}]


if __name__ == "__main__":
    sys.exit(main())
