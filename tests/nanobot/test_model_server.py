"""The scripted server itself: it counts as OpenAI's cookbook does and refuses what OpenAI does."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from counting import message_tokens, text_tokens, tool_tokens
from faults import FAULTS
from refusals import COUNTS_OUTPUT, OVERFLOW, Size
from responses import ENCRYPTED, THOUGHT
from server import Answer, Call, ModelServer

# Source: openai/openai-cookbook, "How to count tokens with tiktoken"; the API returned the numbers.
JARGON: list[dict[str, Any]] = [
    {
        "role": "system",
        "content": "You are a helpful, pattern-following assistant that translates corporate "
        "jargon into plain English.",
    },
    {
        "role": "system",
        "name": "example_user",
        "content": "New synergies will help drive top-line growth.",
    },
    {
        "role": "system",
        "name": "example_assistant",
        "content": "Things working well together will increase revenue.",
    },
    {
        "role": "system",
        "name": "example_user",
        "content": "Let's circle back when we have more bandwidth to touch base on opportunities "
        "for deeper leverage.",
    },
    {
        "role": "system",
        "name": "example_assistant",
        "content": "Let's talk later when we're less busy about how to do better.",
    },
    {
        "role": "user",
        "content": "This late pivot means we don't have time to boil the ocean for the client "
        "deliverable.",
    },
]
WEATHER: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_current_weather",
            "description": "Get the current weather in a given location",
            "parameters": {
                "type": "object",
                "properties": {
                    "location": {
                        "type": "string",
                        "description": "The city and state, e.g. San Francisco, CA",
                    },
                    "unit": {
                        "type": "string",
                        "description": "The unit of temperature to return",
                        "enum": ["celsius", "fahrenheit"],
                    },
                },
                "required": ["location"],
            },
        },
    }
]
ASKED_FOR_WEATHER: list[dict[str, Any]] = [
    {
        "role": "system",
        "content": "You are a helpful assistant that can answer to questions about the weather.",
    },
    {"role": "user", "content": "What's the weather like in San Francisco?"},
]
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "seen"}
USER = {"role": "user", "content": "look"}


def test_messages_count_as_the_api_said_in_the_cookbook() -> None:
    assert message_tokens(JARGON, "cl100k_base") == 129
    assert message_tokens(JARGON, "o200k_base") == 124


def test_tools_count_as_the_api_said_in_the_cookbook() -> None:
    assert message_tokens(ASKED_FOR_WEATHER) + tool_tokens(WEATHER) == 101


def ask(messages: list[dict[str, Any]], window: int = 1_000, **more: Any) -> tuple[int, str]:
    """Return status and text of one answer."""
    server = ModelServer(lambda _: "fine", window=window, form=more.pop("form", "openai"))
    try:
        status, answer, _ = server.answer(json.dumps({"messages": messages, **more}).encode())
    finally:
        server.close()
    return status, json.dumps(answer)


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([USER, CALLING], "must be followed by tool messages"),
        ([USER, CALLING, USER], "must be followed by tool messages"),
        ([USER, RESULT], "must be a response to a preceeding message"),
        ([USER, CALLING, RESULT, RESULT], "must be a response to a preceeding message"),
        ([USER, RESULT, CALLING], "must be a response to a preceeding message"),
        ([{"role": "robot", "content": "x"}], "Invalid value: 'robot'"),
        ([{"role": "user", "content": None}], "expected a string, got null"),
        ([], "empty array"),
        (
            [USER, {**CALLING, "tool_calls": [{**CALL, "function": {"name": "x"}}]}, RESULT],
            "must be a JSON object",
        ),
        ([USER, {**CALLING, "tool_calls": [CALL, CALL]}, RESULT], "Duplicate"),
    ],
)
def test_broken_message_lists_are_refused(messages: list[dict[str, Any]], words: str) -> None:
    status, text = ask(messages)
    assert status == 400
    assert words in text


def test_whole_message_lists_are_answered() -> None:
    assert ask([USER, CALLING, RESULT, USER])[0] == 200


@pytest.mark.parametrize("form", OVERFLOW)
def test_the_window_is_enforced_to_the_token(form: str) -> None:
    size = message_tokens([USER]) + (100 if form in COUNTS_OUTPUT else 0)
    assert ask([USER], size, form=form, max_tokens=100)[0] == 200
    assert ask([USER], size - 1, form=form, max_tokens=100)[0] in (400, 500)


def test_an_overflow_states_window_and_size() -> None:
    refusal = OVERFLOW["openai"](Size(window=16_385, messages=16_726, tools=168, output=0))
    assert refusal.body["error"]["code"] == "context_length_exceeded"
    assert refusal.body["error"]["message"] == (
        "This model's maximum context length is 16385 tokens. However, your messages resulted in "
        "16894 tokens (16726 in the messages, 168 in the functions). Please reduce the length of "
        "the messages or functions."
    )


def test_calls_and_refusals_travel_over_http() -> None:
    answers: Iterator[Answer] = iter([[Call("look", {"at": "盘"})], "fine"])
    with ModelServer(lambda _: next(answers), window=100) as server:
        first = post(server, [USER])
        call = first["choices"][0]["message"]["tool_calls"][0]
        assert json.loads(call["function"]["arguments"]) == {"at": "盘"}
        with pytest.raises(urllib.error.HTTPError) as refused:
            post(server, [{"role": "user", "content": "word " * 200}])
        with refused.value as response:
            assert response.code == 400
            assert b"context_length_exceeded" in response.read()
    assert [request.about for request in server.requests] == ["answered", "overflow"]


@pytest.mark.parametrize("usage", [True, False])
def test_a_stream_holds_what_the_answer_holds(usage: bool) -> None:
    answers: Iterator[Answer] = iter([[Call("look", {"at": "盘"}), Call("look", {})], "fine"])
    options = {"stream": True, "stream_options": {"include_usage": usage}}
    with ModelServer(lambda _: next(answers), window=100) as server:
        calling, talking = (joined(stream(server, options)) for _ in range(2))
    calls = [json.loads(arguments) for arguments in calling["arguments"]]
    assert (calls, calling["finish_reason"]) == ([{"at": "盘"}, {}], "tool_calls")
    assert (talking["content"], talking["finish_reason"]) == ("fine", "stop")
    assert ("usage" in talking) == usage


def test_a_refused_stream_is_plain_json() -> None:
    with (
        ModelServer(lambda _: "fine", window=1) as server,
        pytest.raises(urllib.error.HTTPError) as refused,
    ):
        post(server, [USER], stream=True)
    with refused.value as response:
        assert json.load(response)["error"]["code"] == "context_length_exceeded"


def stream(server: ModelServer, options: dict[str, Any]) -> list[dict[str, Any]]:
    """Send one request over HTTP and return the chunks of its answer."""
    with urlopen(server, [USER], options) as response:
        events = response.read().decode().split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    return [json.loads(event.removeprefix("data: ")) for event in events[:-2]]


@pytest.mark.parametrize(
    ("fault", "seen"),
    [
        ("cut", http.client.IncompleteRead),
        ("closed", http.client.RemoteDisconnected),
        ("garbage", json.JSONDecodeError),
        ("empty", json.JSONDecodeError),
        *((status, urllib.error.HTTPError) for status in ("500", "429", "408")),
    ],
)
def test_an_answer_is_spoilt_on_its_way(fault: str, seen: type[Exception]) -> None:
    with ModelServer(lambda _: FAULTS[fault], window=1_000) as server:
        with pytest.raises(seen) as caught:
            post(server, [USER])
        if isinstance(caught.value, urllib.error.HTTPError):
            assert str(caught.value.code) == fault
            caught.value.close()
        assert [(r.about, r.accepted) for r in server.requests] == [(fault, False)]


def joined(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a client puts together from `chunks`."""
    whole: dict[str, Any] = {"content": "", "arguments": []}
    for chunk in chunks:
        if chunk["usage"]:
            whole["usage"] = chunk["usage"]
        for choice in chunk["choices"]:
            whole["content"] += choice["delta"].get("content", "")
            whole["finish_reason"] = choice["finish_reason"]
            for call in choice["delta"].get("tool_calls", []):
                whole["arguments"] += [""] * ("id" in call)
                whole["arguments"][call["index"]] += call["function"]["arguments"]
    return whole


def post(server: ModelServer, messages: list[dict[str, Any]], **options: Any) -> Any:
    """Send one request over HTTP and return the parsed answer."""
    with urlopen(server, messages, options) as response:
        return json.load(response)


def urlopen(server: ModelServer, messages: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Send one request over HTTP and return the response, open."""
    body = json.dumps({"model": "x", "messages": messages, **options}).encode()
    return urllib.request.urlopen(f"{server.base}/chat/completions", body)


LOOK = {"type": "function", "name": "look", "description": "Look at it.", "parameters": {}}
CALLED = {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"}
RETURNED = {"type": "function_call_output", "call_id": "call_1", "output": "seen"}
THOUGHTS = {"type": "reasoning", "id": "rs_1", "summary": []}


def create(server: ModelServer, given: Any, **options: Any) -> Any:
    """Send one request with OpenAI's client and return the answer, or the last event of it."""
    with (
        httpx.Client(trust_env=False) as http_client,
        openai.OpenAI(
            base_url=server.base, api_key="x", max_retries=0, http_client=http_client
        ) as client,
    ):
        answer: Any = client.responses.create(model="x", input=given, **options)
        return list(answer)[-1].response if options.get("stream") else answer


@pytest.mark.parametrize("stream", [True, False])
def test_calls_and_answers_travel_as_responses(stream: bool) -> None:
    answers: Iterator[Answer] = iter([[Call("look", {"at": "盘"}), Call("look", {})], "fine"])
    with ModelServer(lambda _: next(answers), window=1_000) as server:
        first = create(server, "look", instructions="Be kind.", tools=[LOOK], stream=stream)
        calls = first.output
        results = [{**RETURNED, "call_id": call.call_id} for call in calls]
        asked = [USER, *(call.to_dict() for call in calls), *results]
        second = create(server, asked, instructions="Be kind.", tools=[LOOK], stream=stream)
    assert [json.loads(call.arguments) for call in calls] == [{"at": "盘"}, {}]
    assert second.output_text == "fine"
    system, *said = server.requests[1].messages
    assert system == {"role": "system", "content": "Be kind."}
    assert [message["role"] for message in said] == ["user", "assistant", "tool", "tool"]
    tool = {"type": "function", "function": {**LOOK}}
    counted = message_tokens([system, *said]) + tool_tokens([tool])
    assert second.usage.input_tokens == server.requests[1].prompt_tokens == counted


@pytest.mark.parametrize("stream", [True, False])
def test_thoughts_that_are_sent_again_are_counted(stream: bool) -> None:
    answers: Iterator[Answer] = iter([[Call("look", {})], "fine", "fine"])
    with ModelServer(lambda _: next(answers), window=10_000) as server:
        first = create(server, [USER], include=[ENCRYPTED], stream=stream)
        thought, call = (item.to_dict() for item in first.output)
        result = {**RETURNED, "call_id": call["call_id"]}
        create(server, [USER, thought, call, result], stream=stream)
        create(server, [USER, call, result], stream=stream)
    with_thoughts, without = server.requests[1:]
    assert with_thoughts.prompt_tokens - without.prompt_tokens == text_tokens(THOUGHT)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([USER, CALLED], "No tool output found for function call call_1."),
        ([USER, RETURNED], "No tool call found for function call output with call_id call_1."),
        ([USER, CALLED, RETURNED, RETURNED], "No tool call found"),
        ([RETURNED, CALLED], "No tool call found"),
        ([USER, THOUGHTS], "without its required following item"),
        ([THOUGHTS, USER], "without its required following item"),
        ([{**CALLED, "id": "fc_1"}, {**CALLED, "id": "fc_1"}], "Duplicate item found"),
        ([{**CALLED, "id": "call_1"}, RETURNED], "begins with 'fc'"),
        ([{**CALLED, "arguments": "[]"}, RETURNED], "arguments"),
        ([{"role": "robot", "content": "x"}], "Invalid value: 'robot'"),
        ([{"type": "compaction_trigger"}], "Invalid value: 'compaction_trigger'"),
        ([], "Missing required parameter"),
    ],
)
def test_broken_responses_requests_are_refused(given: list[Any], words: str) -> None:
    with (
        ModelServer(lambda _: "fine", window=1_000) as server,
        pytest.raises(openai.BadRequestError, match=words),
    ):
        create(server, given)
    assert [request.about for request in server.requests] == ["shape"]


def test_no_response_is_stored() -> None:
    with (
        ModelServer(lambda _: "fine", window=1_000) as server,
        pytest.raises(openai.BadRequestError, match="'resp_1' not found"),
    ):
        create(server, [USER], previous_response_id=create(server, [USER]).id)


@pytest.mark.parametrize("form", ["azure", "responses"])
@pytest.mark.parametrize("stream", [True, False])
def test_responses_that_do_not_fit_are_refused(form: str, stream: bool) -> None:
    with (
        ModelServer(lambda _: "fine", window=1, form=form) as server,
        pytest.raises(openai.APIError) as refused,
    ):
        create(server, [USER], stream=stream)
    assert refused.value.code == "context_length_exceeded"
    is_told_in_stream = stream and form == "responses"
    assert isinstance(refused.value, openai.BadRequestError) != is_told_in_stream
