"""A server on the loopback that answers from a list, or as a function says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

Serving = TypeVar("Serving", bound=ThreadingHTTPServer)


class Server(ThreadingHTTPServer):
    """What it answers, as (status, body), and the bodies that it received.

    `reply` makes an answer of a body; without it the next of `answers` is sent.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[tuple[int, Any]] = []
        self.reply: Callable[[dict[str, Any]], tuple[int, Any]] = lambda _: self.answers.pop(0)
        self.received: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    # Head and body are written apart: without this the body waits 40 ms for the client.
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        asked = json.loads(self.rfile.read(length))
        self.server.received.append(asked)
        status, answer = self.server.reply(asked)
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if kind := isinstance(answer, dict) and answer.get("__type"):
            self.send_header("x-amzn-ErrorType", str(kind))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def in_thread(server: Serving) -> Iterator[Serving]:
    """Run a server until the end of the block."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def running() -> AbstractContextManager[Server]:
    """Run a server until the end of the block."""
    return in_thread(Server())
