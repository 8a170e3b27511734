"""What real clients raise when a provider refuses a prompt, also behind other exceptions."""

from __future__ import annotations

import asyncio
import gc
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import boto3
import botocore.config
import httpx
import openai
import pytest
from google import genai

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm

from nanobot_context import Overflow, call_with_recovery, count_tokens, detect_overflow
from refusing_server import Server, running

# litellm's types, as pydantic sees them.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pydantic")

MESSAGES: list[Any] = [{"role": "user", "content": "Hello."}]
OPENAI = {
    "error": {
        "message": (
            "This model's maximum context length is 16,385 tokens. However, your messages resulted "
            "in 20,101 tokens. Please reduce the length of the messages."
        ),
        "type": "invalid_request_error",
        "param": "messages",
        "code": "context_length_exceeded",
    }
}
ANTHROPIC = {
    "type": "error",
    "error": {
        "type": "invalid_request_error",
        "message": "prompt is too long: 213462 tokens > 200000 maximum",
    },
}
GOOGLE = {
    "error": {
        "code": 400,
        "message": (
            "The input token count (1196265) exceeds the maximum number of tokens allowed "
            "(1048575)."
        ),
        "status": "INVALID_ARGUMENT",
    }
}
BEDROCK = {"__type": "ValidationException", "message": "Input is too long for requested model."}
FULL = {"error": {"message": "Rate limit reached. Please try again later.", "type": "tokens"}}


@pytest.fixture(autouse=True)
def swept() -> Iterator[None]:
    """Clean up behind clients that leave sockets and event loops to the collector."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def server() -> Iterator[Server]:
    with running() as server:
        yield server


def by_openai(url: str) -> None:
    with openai.OpenAI(base_url=url, api_key="x", max_retries=0) as client:
        client.chat.completions.create(model="gpt-4o", messages=MESSAGES)


def by_litellm(url: str) -> None:
    litellm.completion(model="openai/gpt-4o", messages=MESSAGES, api_base=url, api_key="x")


def by_anthropic(url: str) -> None:
    with anthropic.Anthropic(base_url=url, api_key="x", max_retries=0) as client:
        client.messages.create(model="claude-next", max_tokens=9, messages=MESSAGES)


def by_google(url: str) -> None:
    client = genai.Client(api_key="x", http_options={"base_url": url})
    client.models.generate_content(model="gemini-2.5-pro", contents="Hello.")


def by_bedrock(url: str) -> None:
    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
        config=botocore.config.Config(retries={"max_attempts": 0}),
    )
    content = [{"role": "user", "content": [{"text": "Hello."}]}]
    client.converse(modelId="anthropic.claude-v2", messages=content)


def by_httpx(url: str) -> None:
    httpx.post(url, json={}).raise_for_status()


CASES: dict[str, tuple[Callable[[str], None], dict[str, Any], int | None, int | None]] = {
    "openai": (by_openai, OPENAI, 16_385, 20_101),
    "litellm": (by_litellm, OPENAI, 16_385, 20_101),
    "anthropic": (by_anthropic, ANTHROPIC, 200_000, 213_462),
    "google": (by_google, GOOGLE, 1_048_575, 1_196_265),
    "bedrock": (by_bedrock, BEDROCK, None, None),
    "httpx": (by_httpx, ANTHROPIC, 200_000, 213_462),
}


def raised(call: Callable[[str], None], url: str) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call(url)
    return caught.value


@pytest.mark.parametrize("client", CASES)
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_an_overflow_is_found_with_its_numbers_however_deep(
    server: Server, client: str, depth: int
) -> None:
    call, body, limit, used = CASES[client]
    server.answers = [(400, body)]
    error = raised(call, server.url)
    for _ in range(depth):
        outer = RuntimeError("the model call failed")
        outer.__cause__, error = error, outer
    found = detect_overflow(error)
    assert found is not None
    assert (found.kind, found.limit_tokens, found.used_tokens) == ("input", limit, used)
    assert detect_overflow(ExceptionGroup("two calls", [ValueError("no"), error])) == found


@pytest.mark.parametrize("client", CASES)
@pytest.mark.parametrize(
    ("status", "body"), [(429, FULL), (500, b""), (400, b"\xff\xfe"), (401, {"error": "bad key"})]
)
def test_other_refusals_are_no_overflow(
    server: Server, client: str, status: int, body: Any
) -> None:
    server.answers = [(status, body)] * 9
    assert detect_overflow(raised(CASES[client][0], server.url)) is None


def test_a_body_that_nobody_read_is_left_alone(server: Server) -> None:
    server.answers = [(400, ANTHROPIC)]
    with (
        httpx.stream("POST", server.url, json={}) as response,
        pytest.raises(httpx.HTTPStatusError) as caught,
    ):
        response.raise_for_status()
    assert detect_overflow(caught.value) is None


def completion(content: str, **usage: int) -> tuple[int, dict[str, Any]]:
    message = {"role": "assistant", "content": content}
    return 200, {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "gpt-4o",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10, **usage},
    }


CONVERSATION: list[Any] = [
    {"role": role, "content": f"{role} {number}: " + "alpha beta gamma " * 300}
    for number in range(12)
    for role in ("user", "assistant")
] + [{"role": "user", "content": "And now?"}]


@pytest.mark.parametrize("client", ["openai", "litellm"])
def test_a_call_gets_through_real_clients(server: Server, client: str) -> None:
    cap = (
        "max_tokens is too large: 9000. This model supports at most 4096 completion tokens, "
        "whereas you provided 9000."
    )
    server.answers = [
        (400, {"error": {"message": cap, "code": "invalid_value"}}),
        (400, OPENAI),
        completion("fine", prompt_tokens=9_000),
    ]
    heard: list[Overflow] = []

    async def run() -> Any:
        async with openai.AsyncOpenAI(base_url=server.url, api_key="x", max_retries=0) as direct:

            async def chat(messages: Any, *, max_tokens: int | None) -> Any:
                wanted: dict[str, Any] = {"messages": messages, "max_tokens": max_tokens}
                if client == "openai":
                    return await direct.chat.completions.create(model="gpt-4o", **wanted)
                return await litellm.acompletion(
                    model="openai/gpt-4o", api_base=server.url, api_key="x", **wanted
                )

            return await call_with_recovery(
                chat,
                CONVERSATION,
                context_window=128_000,
                model="gpt-4o",
                max_output_tokens=9_000,
                on_overflow=heard.append,
            )

    response = asyncio.run(run())
    assert response.choices[0].message.content == "fine"
    assert [overflow.kind for overflow in heard] == ["output_cap", "input"]
    first, second, third = server.received
    assert first["messages"] == second["messages"] == CONVERSATION
    assert (first["max_tokens"], second["max_tokens"]) == (9_000, 4_096)
    assert count_tokens(third["messages"], "gpt-4o") < 16_385 - 4_096
    assert third["messages"][-1] == CONVERSATION[-1]
