"""LiteLLM's own functions, as the adapter has them, against a server that refuses in a stream."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

from model_server import ModelServer, serving
from nanobot_context.adapters import litellm
from talks import MODEL, TOO_LONG

# litellm's types, as pydantic sees them, and the loops that it leaves open.
pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

REFUSAL = 'data: {"error": {"message": "maximum context length is 16384 tokens", "code": 400}}'
ROLE = 'data: {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}'


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving() as running:
        yield running
    # Here, where that is ignored, and not in a test that comes later.
    gc.collect()


def ask_sync(server: ModelServer) -> Iterator[Any]:
    yield from litellm.completion(**arguments(server))


def ask_async(server: ModelServer) -> list[Any]:
    async def run() -> list[Any]:
        return [piece async for piece in await litellm.acompletion(**arguments(server))]

    return asyncio.run(run())


def arguments(server: ModelServer) -> dict[str, Any]:
    address = {"api_base": f"{server.url}/v1", "api_key": "k", "num_retries": 0}
    return {"model": f"openai/{MODEL}", "messages": TOO_LONG, "stream": True, **address}


@pytest.mark.parametrize("before", [[], [": working"], [ROLE]])
@pytest.mark.parametrize("ask", [ask_sync, ask_async])
def test_a_refusal_inside_a_stream_is_repaired(
    server: ModelServer, ask: Any, before: list[str]
) -> None:
    def instead(handler: Any, asked: Any) -> bool:
        if len(server.asked) == 1:
            handler.stream([f"{one}\n\n" for one in (*before, REFUSAL)])
        return len(server.asked) == 1

    server.instead = instead
    said = [piece.choices[0].delta.content or "" for piece in ask(server)]
    assert "".join(said).startswith("It was OPS-")
    assert len(server.asked) == 2
