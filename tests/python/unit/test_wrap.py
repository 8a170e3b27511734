"""`wrap`: OpenAI's and Anthropic's own clients against a server with a window of 16k."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest

import nanobot_context
from model_server import WINDOW, ModelServer, serving
from nanobot_context.errors import InvalidArgumentError
from nanobot_context.guard import shared
from nanobot_context.guard.record_file import read_records
from nanobot_context.guard.state_file import OWN_REQUESTS
from nanobot_context.wire import streams
from nanobot_context.wire.refusals import show_refusals
from talks import (
    ANTHROPIC,
    CLAUDE,
    MODEL,
    OPENAI,
    SHORT,
    TOO_LONG,
    TURNS,
    Ask,
    assert_remembered,
    chat,
    chat_streamed,
    claude,
    day,
    piece,
    talk,
    talk_async,
)

ROLE = '{"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}'
"""What some servers say before they have read the prompt."""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving() as running:
        yield running


def openai_client(server: ModelServer, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(api_key="k", base_url=f"{server.url}/v1", max_retries=0, **options)


def async_openai_client(server: ModelServer) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key="k", base_url=f"{server.url}/v1", max_retries=0)


@pytest.mark.parametrize("ask", OPENAI)
def test_ten_turns_of_openai_get_through_with_one_refusal(server: ModelServer, ask: Ask) -> None:
    with openai_client(server) as client:
        talk(nanobot_context.wrap(client), ask)
    assert_remembered(server)


@pytest.mark.parametrize("ask", ANTHROPIC)
def test_ten_turns_of_anthropic_get_through_with_one_refusal(server: ModelServer, ask: Ask) -> None:
    with anthropic.Anthropic(api_key="k", base_url=server.url, max_retries=0) as client:
        talk(nanobot_context.wrap(client), ask)
    assert_remembered(server)


@pytest.mark.parametrize("ask", OPENAI)
def test_ten_turns_of_async_openai_get_through(server: ModelServer, ask: Ask) -> None:
    async def run() -> None:
        async with async_openai_client(server) as client:
            await talk_async(nanobot_context.wrap(client), ask)

    asyncio.run(run())
    assert_remembered(server)


@pytest.mark.parametrize("ask", ANTHROPIC)
def test_ten_turns_of_async_anthropic_get_through(server: ModelServer, ask: Ask) -> None:
    async def run() -> None:
        client = anthropic.AsyncAnthropic(api_key="k", base_url=server.url, max_retries=0)
        async with client:
            await talk_async(nanobot_context.wrap(client), ask)

    asyncio.run(run())
    assert_remembered(server)


def test_without_it_the_same_conversation_fails(server: ModelServer) -> None:
    with openai_client(server) as client, pytest.raises(openai.BadRequestError):
        talk(client, chat)
    with (
        anthropic.Anthropic(api_key="k", base_url=server.url, max_retries=0) as claude_client,
        pytest.raises(anthropic.BadRequestError),
    ):
        talk(claude_client, claude)


# The rest of a client ----------------------------------------------------------------------------


def test_the_client_stays_of_its_class_and_the_given_one_as_it_was(server: ModelServer) -> None:
    with openai_client(server) as client:
        wrapped = nanobot_context.wrap(client)
        assert type(wrapped) is openai.OpenAI
        assert wrapped is not client
        with pytest.raises(openai.BadRequestError):
            chat(client, TOO_LONG)
        assert chat(wrapped, TOO_LONG).choices


def test_a_request_that_fits_goes_out_byte_for_byte(server: ModelServer) -> None:
    tools: Any = [{"type": "function", "function": {"name": "f", "parameters": {"x": 1e-7}}}]
    with openai_client(server) as client:
        for one in (client, nanobot_context.wrap(client)):
            one.chat.completions.create(
                model=MODEL, messages=[*SHORT], tools=tools, extra_body={"odd": [1.50, "é"]}
            )
    plain, wrapped = server.asked
    assert plain.content == wrapped.content
    assert plain.headers == wrapped.headers


def test_a_client_made_of_a_wrapped_one_is_wrapped(server: ModelServer) -> None:
    with openai_client(server) as client:
        other = nanobot_context.wrap(client).with_options(timeout=30)
        assert chat(other, TOO_LONG).choices
    assert server.refusals == 1


def test_every_way_to_ask_is_repaired(server: ModelServer) -> None:
    asked: list[Callable[[openai.OpenAI], Any]] = [
        lambda c: c.chat.completions.with_raw_response.create(
            model=MODEL, messages=TOO_LONG
        ).parse(),
        lambda c: c.chat.completions.parse(model=MODEL, messages=TOO_LONG),
        lambda c: c.responses.parse(model=MODEL, input=TOO_LONG),
        lambda c: c.post(
            "/chat/completions", body={"model": MODEL, "messages": TOO_LONG}, cast_to=httpx.Response
        ),
    ]
    for ask in asked:
        shared.forget()
        with openai_client(server) as client:
            assert ask(nanobot_context.wrap(client))
    assert server.refusals == len(asked)
    assert len(server.asked) == 2 * len(asked)


def test_helpers_that_stream_are_repaired(server: ModelServer) -> None:
    with openai_client(server) as client:
        wrapped = nanobot_context.wrap(client)
        with wrapped.chat.completions.stream(model=MODEL, messages=TOO_LONG) as stream:
            said = stream.get_final_completion().choices[0].message.content
        assert said == "It was OPS-642."
        with wrapped.responses.stream(model=MODEL, input=TOO_LONG) as events:
            assert events.get_final_response().output_text == said
    with anthropic.Anthropic(api_key="k", base_url=server.url, max_retries=0) as client_of_claude:
        wrapped_claude = nanobot_context.wrap(client_of_claude)
        with wrapped_claude.messages.stream(
            model=CLAUDE, messages=TOO_LONG, max_tokens=100
        ) as messages:
            assert messages.get_final_text() == said
        assert messages.get_final_message().usage.input_tokens == server.asked[-1].tokens
    assert server.refusals == 2  # once at each address of a provider


def test_a_response_that_is_streamed_raw_is_repaired(server: ModelServer) -> None:
    with openai_client(server) as client:
        completions = nanobot_context.wrap(client).chat.completions
        with completions.with_streaming_response.create(model=MODEL, messages=TOO_LONG) as raw:
            assert json.loads(b"".join(raw.iter_bytes()))["choices"]


def test_a_stated_window_holds_for_every_client_of_that_address(server: ModelServer) -> None:
    for _ in range(3):
        with openai_client(server) as client:
            chat(nanobot_context.wrap(client), TOO_LONG)
    assert server.refusals == 1
    with serving() as other, openai_client(other) as client:
        chat(nanobot_context.wrap(client), TOO_LONG)
        assert other.refusals == 1


def test_a_window_that_is_told_needs_no_refusal(server: ModelServer) -> None:
    with openai_client(server) as client:
        talk(nanobot_context.wrap(client, context_window=WINDOW), chat)
    assert server.refusals == 0
    assert len(server.asked) == TURNS


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (429, {"error": {"message": "slow down", "code": "rate_limit"}}, openai.RateLimitError),
        (500, b"<html>oops</html>", openai.InternalServerError),
        (400, {"error": {"message": "bad temperature"}}, openai.BadRequestError),
    ],
)
def test_other_errors_are_raised_as_they_are(
    server: ModelServer, status: int, body: Any, error: type[openai.APIStatusError]
) -> None:
    def instead(handler: Any, asked: Any) -> bool:
        handler.reply(status, body)
        return True

    server.instead = instead
    with openai_client(server) as client:
        raised = []
        for one in (client, nanobot_context.wrap(client)):
            with pytest.raises(error) as caught:
                chat(one, SHORT)
            raised.append((str(caught.value), caught.value.response.content))
    assert raised[0] == raised[1]
    assert len(server.asked) == 2


def test_the_clients_own_retries_stay(server: ModelServer) -> None:
    def instead(handler: Any, asked: Any) -> bool:
        if len(server.asked) == 1:
            handler.reply(503, {"error": {"message": "busy"}})
        return len(server.asked) == 1

    server.instead = instead
    with openai_client(server) as client:
        assert chat(nanobot_context.wrap(client.with_options(max_retries=1)), SHORT).choices
    assert len(server.asked) == 2


def test_what_cannot_be_made_to_fit_raises_what_the_server_said(server: ModelServer) -> None:
    huge = [{"role": "user", "content": "All is well. " * 12_000}]
    with openai_client(server) as client, pytest.raises(openai.BadRequestError, match="16384"):
        chat(nanobot_context.wrap(client), huge)


@pytest.mark.parametrize(
    "event",
    [
        'data: {"error": {"message": "maximum context length is 16384 tokens, got 20000 tokens"}}',
        'event: error\ndata: {"type": "error", "error": {"message": "prompt is too long: 20000 '
        'tokens > 16384 maximum"}}',
    ],
)
@pytest.mark.parametrize(
    "before",
    [
        [],
        [": OPENROUTER PROCESSING"],
        ['event: ping\ndata: {"type": "ping"}', ": working"],
        ['data: {"choices": [], "prompt_filter_results": []}', f"data: {ROLE}"],
    ],
)
def test_a_refusal_inside_a_stream_is_repaired(
    server: ModelServer, before: list[str], event: str
) -> None:
    def instead(handler: Any, asked: Any) -> bool:
        if len(server.asked) == 1:
            handler.stream([f"{one}\n\n" for one in (*before, event)])
        return len(server.asked) == 1

    server.instead = instead
    with openai_client(server) as client:
        pieces = list(chat_streamed(nanobot_context.wrap(client), TOO_LONG[:4]))
    assert "".join(map(piece, pieces)) == "It was OPS-242."
    assert len(server.asked) == 2


REFUSED = {"error": {"message": "maximum context length is 16384 tokens, got 20000 tokens"}}
FAILED = {"object": "response", "status": "failed", "output": [], **REFUSED}
BEHIND = {
    "choices": [{"index": 0, "finish_reason": "error", "message": {"content": ""}, **REFUSED}]
}
BESIDE = {
    "choices": None,
    "base_resp": {
        "status_code": 2013,
        "status_msg": "invalid params, context window exceeds limit",
    },
}


@pytest.mark.parametrize("body", [REFUSED, FAILED, BEHIND, BESIDE])
@pytest.mark.parametrize("ask", [*OPENAI, *ANTHROPIC])
def test_a_refusal_with_the_status_of_a_success_is_repaired(
    server: ModelServer, ask: Ask, body: Any
) -> None:
    def instead(handler: Any, asked: Any) -> bool:
        if len(server.asked) == 1:
            handler.reply(200, body)
        return len(server.asked) == 1

    server.instead = instead
    with (
        openai_client(server) as client,
        anthropic.Anthropic(api_key="k", base_url=server.url, max_retries=0) as other,
    ):
        asked = nanobot_context.wrap(client if ask in OPENAI else other)
        given = ask(asked, TOO_LONG[:4])
        assert hasattr(given, "model_dump") or list(given)
    assert len(server.asked) == 2


def test_a_client_that_is_not_wrapped_can_be_shown_such_refusals(server: ModelServer) -> None:
    def instead(handler: Any, asked: Any) -> bool:
        refuses = len(server.asked) == 2
        if refuses:
            handler.reply(200, REFUSED)
        return refuses

    async def run() -> None:
        async with async_openai_client(server) as client:
            for _ in range(2):
                show_refusals(client)
            assert len(client._client.event_hooks["response"]) == 1
            assert (await client.chat.completions.create(model=MODEL, messages=SHORT)).choices
            with pytest.raises(openai.BadRequestError, match="maximum context length"):
                await client.chat.completions.create(model=MODEL, messages=SHORT, stream=True)

    server.instead = instead
    asyncio.run(run())
    show_refusals(None)


def test_a_bare_error_in_the_place_of_a_stream_is_repaired(server: ModelServer) -> None:
    def instead(handler: Any, asked: Any) -> bool:
        if len(server.asked) == 1:
            handler.stream([json.dumps(REFUSED, indent=1)])
        return len(server.asked) == 1

    server.instead = instead
    with openai_client(server) as client:
        pieces = list(chat_streamed(nanobot_context.wrap(client), TOO_LONG[:4]))
    assert "".join(map(piece, pieces)) == "It was OPS-242."


def test_a_refusal_that_stays_is_raised_whatever_its_status(server: ModelServer) -> None:
    def instead(handler: Any, asked: Any) -> bool:
        handler.reply(200, {"error": {"message": "context length exceeded"}})
        return True

    server.instead = instead
    with (
        openai_client(server) as client,
        pytest.raises(openai.BadRequestError, match="context length exceeded"),
    ):
        chat(nanobot_context.wrap(client), TOO_LONG)


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_stream_is_reported_once(server: ModelServer, is_refused: bool) -> None:
    def instead(handler: Any, asked: Any) -> bool:
        if is_refused:
            handler.stream(['data: {"error": {"message": "context length exceeded"}}\n\n'])
        return is_refused

    server.instead = instead
    events: list[str] = []
    stop = nanobot_context.subscribe(lambda event: events.append(event.kind))
    with openai_client(server) as client:
        wrapped = nanobot_context.wrap(client)
        if is_refused:
            with pytest.raises(openai.APIError):
                list(chat_streamed(wrapped, TOO_LONG))
        else:
            list(chat_streamed(wrapped, SHORT))
    gc.collect()
    stop()
    assert events.count("answered") == int(not is_refused)
    assert events.count("overflow") == (len(server.asked) if is_refused else 0)
    assert events.count("gave_up") == int(is_refused)


def test_a_refusal_that_comes_too_late_is_learned_from(server: ModelServer) -> None:
    said = ROLE.replace('"content": ""', '"content": "It"')
    refusal = f'data: {{"error": {{"message": "maximum context length is {WINDOW} tokens"}}}}'

    def instead(handler: Any, asked: Any) -> bool:
        if len(server.asked) == 1:
            handler.stream([f"data: {said}\n\n", f"{refusal}\n\n"])
        return len(server.asked) == 1

    server.instead = instead
    with openai_client(server) as client:
        wrapped = nanobot_context.wrap(client)
        with pytest.raises(openai.APIError, match="maximum"):
            list(chat_streamed(wrapped, TOO_LONG))
        pieces = list(chat_streamed(wrapped, TOO_LONG))
    assert "".join(map(piece, pieces)).startswith("It was OPS-")
    assert server.refusals == 0


def test_a_comment_is_not_held_back_for_long(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps a connection open: who waits for it must get it."""
    monkeypatch.setattr(streams, "_PATIENCE_SECONDS", 0.0)
    events = [": working\n\n", 'data: {"error": {"message": "context length exceeded"}}\n\n']

    def instead(handler: Any, asked: Any) -> bool:
        handler.stream(events, pause=0.05)
        return True

    server.instead = instead
    with openai_client(server) as client:
        wrapped = nanobot_context.wrap(client)
        with pytest.raises(openai.APIError, match="context length"):
            list(chat_streamed(wrapped, SHORT))
    assert len(server.asked) == 1


def test_what_the_server_keeps_is_left_alone(server: ModelServer) -> None:
    with openai_client(server) as client:
        wrapped = nanobot_context.wrap(client, context_window=2_000)
        wrapped.responses.create(model=MODEL, input=SHORT * 20, previous_response_id="r0")
        wrapped.responses.create(model=MODEL, input=day(1)[:9_000])
    assert len(server.asked[0].body["input"]) == 20


def test_the_connections_live_as_long_as_either_client(server: ModelServer) -> None:
    client = openai_client(server)
    wrapped = nanobot_context.wrap(client)
    chat(wrapped, SHORT)
    del wrapped
    gc.collect()
    chat(client, SHORT)
    again = nanobot_context.wrap(nanobot_context.wrap(client))
    del client
    gc.collect()
    chat(again, SHORT)
    again.close()
    assert again.is_closed()
    with pytest.raises(openai.APIConnectionError):
        chat(again, SHORT)


@pytest.mark.parametrize("client", [None, object(), openai, httpx.Client])
def test_anything_else_is_refused_by_its_name(client: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="`client` must be a client of OpenAI's"):
        nanobot_context.wrap(client)


@pytest.mark.parametrize("ask", OPENAI)
def test_requests_of_a_wrapped_client_are_recorded_beside_nanobots(
    server: ModelServer, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.forget()
    monkeypatch.setattr(shared, "nanobot_config_path", lambda: tmp_path / "config.json")
    with openai_client(server) as client:
        talk(nanobot_context.wrap(client), ask)
    shared.forget()
    records = read_records(tmp_path / "config.json", "wrap", OWN_REQUESTS)
    assert len(records) == TURNS
    assert [record.outcome for record in records] == ["answered"] * TURNS
    assert sum(len(record.refusals) for record in records) == server.refusals
    assert all(record.tokens_after == record.prompt_tokens for record in records)
    assert read_records(tmp_path / "config.json") == []


# Tool schemas ------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", ["chat", "functions", "responses", "messages"])
def test_tool_schemas_stay_within_their_share_where_that_is_set(
    server: ModelServer, api: str
) -> None:
    def function(name: str, key: str) -> dict[str, Any]:
        said = "Do it. " + f"{name} and more of it " * 400
        return {"name": name, "description": said, key: {"type": "object", "properties": {}}}

    names = ("one", "two")
    settings = nanobot_context.Settings(tool_schema_limit=0.05)
    said: Any = [{"role": "user", "content": "Hi."}]
    with (
        openai_client(server) as client,
        anthropic.Anthropic(api_key="k", base_url=server.url, max_retries=0) as other,
    ):
        given: list[dict[str, Any]] = [{"settings": settings}, {}]
        for options in given:
            options["context_window"] = WINDOW
            ours: Any = nanobot_context.wrap(client, **options)
            if api == "chat":
                tools: Any = [
                    {"type": "function", "function": function(n, "parameters")} for n in names
                ]
                ours.chat.completions.create(model=MODEL, messages=said, tools=tools)
            elif api == "functions":
                tools = [function(n, "parameters") for n in names]
                ours.chat.completions.create(model=MODEL, messages=said, functions=tools)
            elif api == "responses":
                tools = [{"type": "function", **function(n, "parameters")} for n in names]
                ours.responses.create(model=MODEL, input=said, tools=tools)
            else:
                tools = [function(n, "input_schema") for n in names]
                wrapped: Any = nanobot_context.wrap(other, **options)
                wrapped.messages.create(model=CLAUDE, messages=said, max_tokens=9, tools=tools)
    name = "functions" if api == "functions" else "tools"
    shown, whole = (asked.body[name] for asked in server.asked)
    assert [one.get("function", one)["description"] for one in shown] == ["Do it."] * 2
    assert [one.get("function", one)["name"] for one in shown] == ["one", "two"]
    assert whole == tools
