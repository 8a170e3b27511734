"""No vocabulary is loaded while lengths alone decide: it costs up to half a second of a process."""

from __future__ import annotations

import subprocess
import sys

import pytest

START = """
import asyncio
from nanobot_context import *
from nanobot_context._core import loaded_vocabularies, reduce_messages, token_bound
said = [{"role": "system", "content": "Be brief. " * 100}, {"role": "user", "content": "Hello"}]
tools = [{"type": "function", "function": {"name": "read_file", "description": "Read a file. " * 50,
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}]
"""
GUARDED = """
from types import SimpleNamespace
from nanobot_context import events
from nanobot_context.guard.fitting import Fitter
from nanobot_context.guard.guard import Guard
from nanobot_context.guard.request import Request
from nanobot_context.guard.windows import WindowResolver
from nanobot_context.settings import LoadedSettings, Settings
told = []
events.subscribe(told.append)
windows = WindowResolver(LoadedSettings(Settings()))
guard = Guard(Fitter(Settings(), windows), str)
def ask(messages, prompt_tokens):
    async def send(messages, max_tokens):
        usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 2}
        return SimpleNamespace(content="Hi", finish_reason="stop", usage=usage)
    asyncio.run(guard.run(Request(messages, tools, "gpt-4o", 8_192, send)))
"""
NOTHING_LOADED = {
    "compress_messages": "compress_messages(said, 128_000, 'gpt-4o', tools=tools)",
    "a family that is estimated": "compress_messages(said, 128_000, 'claude-opus-4-7')",
    "fit_messages": "assert fit_messages(said, 50_000, 'gpt-4o', tools=tools).messages == said",
    "the cuts of a receipt": "assert fit_messages(said, 50_000).receipt.cuts == []",
    "fits": "assert fits(said, 50_000, 'deepseek-chat', tools=tools)",
    "Compressor": "Compressor(128_000, 'gpt-4o', tools=tools).compress(said)",
    "call_with_recovery": """
async def chat(messages, *, max_tokens): return max_tokens
answered = call_with_recovery(
    chat, said, context_window=128_000, model='gpt-4o', tools=tools, max_output_tokens=8_192)
assert asyncio.run(answered) == 8_192""",
    "an answer that is counted, and its event": GUARDED
    + "ask(said, 300)\nassert [event.kind for event in told] == ['answered'], told",
    "status": "status()",
}


def loaded_by(script: str) -> str:
    """Return what a process has loaded that ran `script`."""
    done = subprocess.run(
        [sys.executable, "-c", f"{START}\n{script}\nprint(loaded_vocabularies())"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("script", NOTHING_LOADED.values(), ids=NOTHING_LOADED.keys())
def test_a_short_request_loads_no_vocabulary(script: str) -> None:
    assert loaded_by(script) == "[]"


@pytest.mark.parametrize(
    "script",
    [
        "count_tokens(said, 'gpt-4o')",
        "assert fit_messages(said, 50_000, 'gpt-4o').tokens == count_tokens(said, 'gpt-4o')",
        "receipt = fit_messages(said, 50_000, 'gpt-4o', tools=tools).receipt\n"
        "assert receipt.tokens_before == receipt.tokens_after"
        " == count_tokens(said, 'gpt-4o', tools=tools)",
        "compress_messages([*said[1:] * 900, said[1]], 3_000, 'gpt-4o')",
        # Of more than six bytes a token, that were read, some may have been cut.
        GUARDED + "ask([{'role': 'user', 'content': 'Hello. ' * 2_000}], 1_100)",
        # More than half a window: what a provider counts begins to matter.
        GUARDED + "ask([{'role': 'user', 'content': 'Hello. ' * 12_000}], 24_000)",
        "assert token_bound(said) > count_tokens(said) and token_bound(said) is None",
    ],
)
def test_what_is_counted_loads_the_vocabulary_of_its_model(script: str) -> None:
    assert loaded_by(script) == "['o200k_base']"
