"""The proxy, between real clients and a server with a window of 16k."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import os
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest

from model_server import WINDOW, ModelServer, serving
from nanobot_context.errors import InvalidArgumentError
from nanobot_context.events import subscribe
from nanobot_context.settings import Settings
from nanobot_context.wire.exchange import Protection
from nanobot_context.wire.proxy import make_app
from proxying import proxying
from talks import (
    ANTHROPIC,
    MODEL,
    OPENAI,
    SHORT,
    TOO_LONG,
    Ask,
    assert_remembered,
    chat,
    chat_streamed,
    talk,
)

BODY: dict[str, Any] = {"model": MODEL, "messages": SHORT}
CHAT = "/v1/chat/completions"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving() as running:
        yield running


@pytest.fixture
def proxy(server: ModelServer) -> Iterator[str]:
    with proxying(f"{server.url}/v1") as address:
        yield address


def client_of(address: str) -> openai.OpenAI:
    return openai.OpenAI(api_key="sk-secret", base_url=f"{address}/v1", max_retries=0)


@pytest.mark.parametrize("ask", OPENAI)
def test_ten_turns_of_openai_get_through_with_one_refusal(
    server: ModelServer, proxy: str, ask: Ask
) -> None:
    with client_of(proxy) as client:
        talk(client, ask)
    assert_remembered(server)


@pytest.mark.parametrize("ask", ANTHROPIC)
def test_ten_turns_of_anthropic_get_through_with_one_refusal(
    server: ModelServer, proxy: str, ask: Ask
) -> None:
    with anthropic.Anthropic(api_key="k", base_url=proxy, max_retries=0) as client:
        talk(client, ask)
    assert_remembered(server)


@pytest.mark.filterwarnings("ignore")  # its own
def test_ten_turns_of_litellm_get_through_with_one_refusal(server: ModelServer, proxy: str) -> None:
    import litellm

    def ask(client: Any, messages: list[Any]) -> Any:
        known = {"api_base": f"{proxy}/v1", "api_key": "k", "num_retries": 0}
        return litellm.completion(model=f"openai/{MODEL}", messages=messages, **known)

    talk(None, ask)
    assert_remembered(server)


def test_a_window_that_is_told_needs_no_refusal(server: ModelServer) -> None:
    with proxying(server.url, window=WINDOW) as proxy, client_of(proxy) as client:
        talk(client, chat)
    assert server.refusals == 0


@pytest.mark.parametrize("path", ["", "/v1"])
def test_the_address_upstream_may_name_the_version_or_not(server: ModelServer, path: str) -> None:
    with proxying(server.url + path) as proxy:
        assert httpx.post(f"{proxy}{CHAT}", json=BODY).status_code == 200
    assert server.asked[0].path == CHAT


def test_what_needs_nothing_arrives_byte_for_byte_with_its_key(
    server: ModelServer, proxy: str
) -> None:
    content = b'{"model": "m",  "messages": [{"role": "user", "content": "\\u00e9"}], "x": 1e-7}'
    headers = {
        "Authorization": "Bearer sk-secret",
        "X-Own": "1",
        "Content-Type": "application/json",
    }
    direct = httpx.post(f"{server.url}{CHAT}", content=content, headers=headers)
    passed = httpx.post(f"{proxy}{CHAT}?a=1&b=%20", content=content, headers=headers)
    assert passed.content == direct.content
    first, second = server.asked
    assert second.path == f"{CHAT}?a=1&b=%20"
    assert second.content == first.content == content
    dropped = {"Host", "Connection"}
    given = [
        {k.lower(): v for k, v in one.headers.items() if k not in dropped}
        for one in (first, second)
    ]
    assert given[0] == given[1]


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_packed_body_is_unpacked_and_fits(server: ModelServer, proxy: str, encoding: str) -> None:
    long = [{"role": "user", "content": f"{i} " + "word " * 900} for i in range(40)]
    content = json.dumps({"model": MODEL, "messages": [*long, *SHORT]}).encode()
    packed = gzip.compress(content) if encoding == "gzip" else zlib.compress(content)
    headers = {"Content-Encoding": encoding, "Content-Type": "application/json"}
    assert httpx.post(f"{proxy}{CHAT}", content=packed, headers=headers).status_code == 200
    answered = server.asked[-1]
    assert len(json.loads(answered.content)["messages"]) > 1
    assert "content-encoding" not in {name.lower() for name in answered.headers}


# An id of its own, for gzip writes the clock and workers must collect the same ids.
@pytest.mark.parametrize(
    "packed", [b"{}", gzip.compress(b"{}", mtime=0)[:-4]], ids=["not packed", "cut"]
)
def test_what_is_not_packed_as_it_says_arrives_as_it_is(
    server: ModelServer, proxy: str, packed: bytes
) -> None:
    httpx.post(f"{proxy}{CHAT}", content=packed, headers={"Content-Encoding": "gzip"})
    assert server.asked[-1].content == packed


def test_a_stream_comes_byte_for_byte(server: ModelServer, proxy: str) -> None:
    body = {**BODY, "stream": True}
    replies = [httpx.post(f"{base}{CHAT}", json=body) for base in (server.url, proxy)]
    assert replies[0].content == replies[1].content
    assert replies[0].headers["content-type"] == replies[1].headers["content-type"]


# A client of another test may have left a loop open, which is found when this one makes garbage.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_200_streams_at_once_lose_and_mix_nothing(server: ModelServer, proxy: str) -> None:
    def instead(handler: Any, asked: Any) -> bool:
        mine = asked.body["user"]
        pieces = [f'data: {{"choices": [], "of": "{mine}", "at": {at}}}\n\n' for at in range(40)]
        handler.stream([*pieces, "data: [DONE]\n\n"], pause=0.002)
        return True

    server.instead = instead

    async def read(client: httpx.AsyncClient, number: int) -> list[str]:
        body = {**BODY, "stream": True, "user": f"u{number}"}
        async with client.stream("POST", f"{proxy}{CHAT}", json=body) as reply:
            return [line async for line in reply.aiter_lines() if line]

    async def read_all() -> list[list[str]]:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(limits=limits, timeout=None) as client:
            return await asyncio.gather(*(read(client, number) for number in range(200)))

    for number, lines in enumerate(asyncio.run(read_all())):
        assert lines.pop() == "data: [DONE]"
        seen = [json.loads(line.removeprefix("data: ")) for line in lines]
        assert [(one["of"], one["at"]) for one in seen] == [(f"u{number}", at) for at in range(40)]


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_client_that_goes_away_ends_the_call_upstream(
    server: ModelServer, proxy: str, has_begun: bool
) -> None:
    ended, asked_for = threading.Event(), threading.Event()

    def instead(handler: Any, asked: Any) -> bool:
        asked_for.set()
        if has_begun:
            handler.stream(["data: {}\n\n"], end=False)
        # What nobody sends any more reads as the end.
        handler.rfile.read(1)
        ended.set()
        return True

    server.instead = instead
    with httpx.Client(timeout=60) as client:
        if has_begun:
            with client.stream("POST", f"{proxy}{CHAT}", json={**BODY, "stream": True}) as reply:
                assert next(reply.iter_raw())
        else:
            with pytest.raises(httpx.ReadTimeout):
                client.post(f"{proxy}{CHAT}", json=BODY, timeout=1.0)
    assert asked_for.is_set()
    assert ended.wait(30)


@pytest.mark.parametrize(
    ("status", "content"),
    [
        (429, b'{"error": {"message": "slow down"}}'),
        (500, b"<html>oops</html>"),
        (400, b'{"error": "bad temperature"}'),
        (200, b"\xff\xfe garbage"),
        (200, b"[1, 2]"),
    ],
)
def test_faults_come_back_as_they_were(
    server: ModelServer, proxy: str, status: int, content: bytes
) -> None:
    def instead(handler: Any, asked: Any) -> bool:
        handler.reply(status, content)
        return True

    server.instead = instead
    direct, passed = (httpx.post(f"{base}{CHAT}", json=BODY) for base in (server.url, proxy))
    assert (passed.status_code, passed.content) == (status, content)
    assert {**passed.headers, "date": ""} == {**direct.headers, "date": ""}
    assert len(server.asked) == 2


def test_a_reset_in_a_stream_is_one_behind_what_had_come(server: ModelServer, proxy: str) -> None:
    def instead(handler: Any, asked: Any) -> bool:
        handler.stream(['data: {"choices": []}\n\n', "data: {}\n\n"], end=False)
        handler.close_connection = True
        return True

    server.instead = instead
    pieces: list[bytes] = []
    with (
        pytest.raises(httpx.RemoteProtocolError),
        httpx.stream("POST", f"{proxy}{CHAT}", json={**BODY, "stream": True}) as reply,
    ):
        pieces.extend(reply.iter_raw())
    assert b"".join(pieces) == b'data: {"choices": []}\n\ndata: {}\n\n'


def test_a_refusal_that_nothing_helps_comes_back(server: ModelServer, proxy: str) -> None:
    huge = [{"role": "user", "content": "All is well. " * 12_000}]
    reply = httpx.post(f"{proxy}{CHAT}", json={"model": MODEL, "messages": huge})
    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == "context_length_exceeded"


def test_a_server_that_is_not_there_is_a_bad_gateway() -> None:
    with proxying("http://127.0.0.1:9/v1") as proxy:
        reply = httpx.post(f"{proxy}{CHAT}", json=BODY)
    assert reply.status_code == 502
    assert "cannot be reached" in reply.json()["error"]["message"]


def test_another_name_for_this_machine_is_not_answered(server: ModelServer, proxy: str) -> None:
    reply = httpx.post(f"{proxy}{CHAT}", json=BODY, headers={"Host": "evil.example"})
    assert reply.status_code == 400
    assert server.asked == []


def test_where_there_is_a_token_nothing_passes_without_it(server: ModelServer) -> None:
    name = "x-nanobot-context-token"
    with proxying(server.url, token="t0ken") as proxy:
        url = f"{proxy}{CHAT}"
        for headers in ({}, {name: "wrong"}, {"Authorization": "Bearer t0ken"}):
            assert httpx.post(url, json=BODY, headers=headers).status_code == 401
        assert httpx.post(f"{proxy}/t0ke{CHAT}", json=BODY).status_code == 401
        assert server.asked == []
        other = {name: "t0ken", "Host": "box.lan"}
        assert httpx.post(url, json=BODY, headers=other).status_code == 200
        assert httpx.post(f"{proxy}/t0ken{CHAT}", json=BODY).status_code == 200
    assert [asked.path for asked in server.asked] == [CHAT, CHAT]
    assert "t0ken" not in str([asked.headers for asked in server.asked])


def test_events_and_logs_hold_no_key_and_no_text(
    server: ModelServer, proxy: str, caplog: pytest.LogCaptureFixture
) -> None:
    events: list[Any] = []
    stop = subscribe(events.append)
    try:
        with client_of(proxy) as client:
            chat(client, TOO_LONG)
            list(chat_streamed(client, TOO_LONG))
    finally:
        stop()
    kinds = {event.to_dict()["kind"] for event in events}
    assert {"compressed", "overflow", "retry", "answered"} <= kinds
    told = str([event.to_dict() for event in events]) + caplog.text
    assert "sk-secret" not in told
    assert "OPS-" not in told


# The command -------------------------------------------------------------------------------------


@contextmanager
def served(
    server: ModelServer, *options: str, environ: dict[str, str] | None = None
) -> Iterator[openai.OpenAI]:
    """Run the command, and yield a client of it."""
    command = [sys.executable, "-m", "nanobot_context", "serve", "--upstream", f"{server.url}/v1"]
    command += ["--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as running:
        assert running.stdout is not None
        try:
            address, arrow, upstream = running.stdout.readline().split()
            assert (arrow, upstream) == ("->", f"{server.url}/v1")
            with openai.OpenAI(api_key="sk-secret", base_url=address, max_retries=0) as client:
                yield client
        finally:
            running.terminate()


def test_the_command_says_where_it_listens_and_records(server: ModelServer, tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    with served(server, "--window", str(WINDOW), "--record", str(record)) as client:
        assert chat(client, TOO_LONG).choices
    assert server.refusals == 0
    (told,) = [json.loads(line) for line in record.read_text().splitlines()]
    assert (told["session"], told["outcome"], told["is_shortened"]) == ("serve", "answered", True)
    assert told["tokens_before"] > WINDOW >= told["prompt_tokens"] == told["attempts"][-1]["tokens"]
    assert (told["window_tokens"], told["window_source"]) == (WINDOW, "your setting `--window`")
    assert "sk-secret" not in record.read_text()
    shown = cli("inspect", str(record), "--json")
    assert json.loads(shown.stdout)["requests"] == [told]
    assert f"{told['tokens_before']:,}" in cli("inspect", str(record)).stdout
    refused = cli("inspect", str(record), "--replay", code=2)
    assert "a record of requests has no texts to replay" in refused.stderr


def test_a_signal_ends_it_though_a_call_is_under_way(server: ModelServer) -> None:
    asked_for, is_over, answered = threading.Event(), threading.Event(), threading.Event()

    def instead(handler: Any, asked: Any) -> bool:
        asked_for.set()
        is_over.wait(60)
        answered.set()
        return True

    def call(address: str) -> None:
        with contextlib.suppress(httpx.HTTPError):
            httpx.post(f"{address}chat/completions", json=BODY, timeout=60)

    server.instead = instead
    with served(server) as client:
        calling = threading.Thread(target=call, args=(str(client.base_url),))
        calling.start()
        assert asked_for.wait(30)
    assert not answered.is_set(), "it ended before the call did"
    is_over.set()
    calling.join()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other folders")
@pytest.mark.parametrize("named", [None, "state", "relative"])
def test_without_nanobot_the_next_one_knows_the_window_that_was_stated(
    server: ModelServer, tmp_path: Path, named: str | None
) -> None:
    environ = {**os.environ, "HOME": str(tmp_path)}
    environ.pop("XDG_STATE_HOME", None)
    if named is not None:
        environ["XDG_STATE_HOME"] = named if named == "relative" else str(tmp_path / named)
    for _ in range(2):
        with served(server, environ=environ) as client:
            assert chat(client, TOO_LONG).choices
    assert server.refusals == 1
    folder = tmp_path / ("state" if named == "state" else ".local/state") / "nanobot-context"
    learned = folder / "learned.json"
    assert (learned.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)
    assert not (tmp_path / ".nanobot").exists()
    assert str(learned) in cli("forget", environ=environ).stdout
    assert not learned.exists()


def test_a_folder_that_cannot_be_made_keeps_no_proxy_from_running(
    server: ModelServer, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    environ = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "file")}
    with served(server, environ=environ) as client:
        assert chat(client, TOO_LONG).choices


def cli(
    *arguments: str, code: int = 0, environ: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nanobot_context", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--upstream", "api.openai.com"], "`--upstream` must be an address"),
        (["--upstream", "http://u:secret@", "--port", "0"], "must be an address"),
        (["--upstream", "http://a/v1", "--host", "0.0.0.0"], "which needs a token"),
    ],
)
def test_what_cannot_be_served_is_said(options: list[str], problem: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nanobot_context", "serve", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert problem in done.stderr
    assert "secret" not in done.stderr


@pytest.mark.parametrize("call", ["/chat/completions", "/responses/", "/messages"])
def test_an_address_of_one_call_is_refused_with_what_to_leave_out(call: str) -> None:
    protection = Protection.by(Settings(), None, way="serve")
    with pytest.raises(InvalidArgumentError, match=f"without `{call.rstrip('/')}`") as error:
        make_app(f"http://127.0.0.1:1/v1{call}", protection)
    assert error.value.argument == "upstream"
