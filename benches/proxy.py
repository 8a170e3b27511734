"""What the proxy adds to a request that needs nothing: `python benches/proxy.py`.

A server that answers at once, with and without the proxy before it, one request after the other
over one connection each, in turn; and 200 streams at once through it. Both servers are processes
of their own.
"""

from __future__ import annotations

import asyncio
import json
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx

REQUESTS = 400
STREAMS, PIECES = 200, 100
WARM_UP = 20

UPSTREAM = """
import asyncio, json, sys, uvicorn

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        event = await receive()
        body, more = body + event.get("body", b""), event.get("more_body", False)
    asked = json.loads(body)
    start = {"type": "http.response.start", "status": 200}
    if not asked.get("stream"):
        await send({**start, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": b'{"choices": []}'})
        return
    await send({**start, "headers": [(b"content-type", b"text/event-stream")]})
    for at in range(asked["n"]):
        piece = b'data: {"choices": [], "of": "%s", "at": %d}\\n\\n' % (asked["user"].encode(), at)
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        await asyncio.sleep(0.01)
    await send({"type": "http.response.body", "body": b"data: [DONE]\\n\\n"})

uvicorn.run(app, port=int(sys.argv[1]), log_level="error")
"""


def conversation(messages: int) -> dict[str, Any]:
    """Return a request of so many messages of some 100 tokens."""
    text = "The build failed again on node 7, see /var/log/build.log for the lines. " * 6
    roles = ("user", "assistant")
    said = [{"role": roles[at % 2], "content": f"{at}: {text}"} for at in range(messages)]
    return {"model": "gpt-4o-mini", "messages": [*said, {"role": "user", "content": "And now?"}]}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def wait_for(port: int) -> None:
    for _ in range(600):
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"nothing listens at {port}")


def medians(direct: str, proxied: str, body: bytes) -> tuple[float, float]:
    """Return milliseconds without and with the proxy."""
    took: dict[str, list[float]] = {direct: [], proxied: []}
    with httpx.Client(timeout=60) as client:
        for number in range(WARM_UP + REQUESTS):
            for base, times in took.items():
                begun = time.perf_counter()
                reply = client.post(f"{base}/v1/chat/completions", content=body)
                if number >= WARM_UP:
                    times.append((time.perf_counter() - begun) * 1e3)
                assert reply.status_code == 200
    return statistics.median(took[direct]), statistics.median(took[proxied])


async def streams(base: str) -> tuple[int, float]:
    """Return how many of the streams came whole and in order, and the seconds that they took."""

    async def one(client: httpx.AsyncClient, number: int) -> bool:
        body = {**conversation(2), "stream": True, "user": f"u{number}", "n": PIECES}
        url = f"{base}/v1/chat/completions"
        async with client.stream("POST", url, json=body) as reply:
            lines = [line async for line in reply.aiter_lines() if line]
        seen = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
        wanted = [(f"u{number}", at) for at in range(PIECES)]
        return [(each["of"], each["at"]) for each in seen] == wanted

    begun = time.perf_counter()
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=120) as client:
        whole = await asyncio.gather(*(one(client, number) for number in range(STREAMS)))
    return sum(whole), time.perf_counter() - begun


def main() -> None:
    upstream, proxy = free_port(), free_port()
    direct, proxied = (f"http://127.0.0.1:{port}" for port in (upstream, proxy))
    serve = [sys.executable, "-m", "nanobot_context", "serve"]
    commands = [
        [sys.executable, "-c", UPSTREAM, str(upstream)],
        [*serve, "--upstream", direct, "--port", str(proxy)],
    ]
    running = [subprocess.Popen(one, stdout=subprocess.DEVNULL, cwd=Path.cwd()) for one in commands]
    try:
        wait_for(upstream)
        wait_for(proxy)
        for messages in (2, 40, 400):
            body = json.dumps(conversation(messages)).encode()
            without, within = medians(direct, proxied, body)
            added = within - without
            size = f"{messages:4} messages, {len(body):7,} bytes"
            print(f"{size}: {without:.2f} ms direct, +{added:.2f} ms")
        for name, base in (("direct", direct), ("proxied", proxied)):
            whole, seconds = asyncio.run(streams(base))
            print(f"{STREAMS} streams {name}: {whole} whole and in order, {seconds:.1f} s")
    finally:
        for one in running:
            one.terminate()


if __name__ == "__main__":
    main()
