"""Model servers that are asked for their window: each kind, as it answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from nanobot_context.host.model_server import ask_window, is_local
from refusing_server import in_thread

MODEL = "openai/qwen3:8b"


@contextmanager
def server(answers: dict[str, Any]) -> Iterator[str]:
    """Serve JSON by path on a port of its own; anything else is not found."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found = answers.get(f"{self.command} {self.path}")
            self.send_response(404 if found is None else 200)
            self.end_headers()
            self.wfile.write(b"no" if found is None else json.dumps(found).encode())

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with in_thread(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as http:
        yield f"http://127.0.0.1:{http.server_address[1]}/v1"


@pytest.mark.parametrize(
    ("answers", "tokens", "kind"),
    [
        (
            {"GET /props": {"default_generation_settings": {"n_ctx": 8_192}}},
            8_192,
            "llama.cpp, `/props`",
        ),
        (
            {
                "GET /api/v0/models": {
                    "data": [
                        {"id": "other", "loaded_context_length": 1_000},
                        {"id": "qwen3:8b", "loaded_context_length": 16_384},
                    ]
                }
            },
            16_384,
            "LM Studio, `/api/v0/models`",
        ),
        (
            {"GET /api/ps": {"models": [{"name": "qwen3:8b", "context_length": 4_096}]}},
            4_096,
            "Ollama, `/api/ps`",
        ),
        (
            {"POST /api/show": {"parameters": 'stop "x"\nnum_ctx                        32768'}},
            32_768,
            "Ollama, `/api/show`",
        ),
        (
            {"GET /v1/models": {"data": [{"id": "served", "max_model_len": 40_960}]}},
            40_960,
            "vLLM, `/v1/models`",
        ),
    ],
    ids=["llama.cpp", "lm studio", "ollama runs it", "ollama would run it", "vllm"],
)
def test_each_kind_of_server_says_its_window(
    answers: dict[str, Any], tokens: int, kind: str
) -> None:
    with server(answers) as address:
        assert ask_window(address, MODEL) == (tokens, kind)


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"GET /props": [], "GET /v1/models": {"data": "none"}, "POST /api/show": {}},
        {"GET /props": {"default_generation_settings": {"n_ctx": True}}},
        {"GET /v1/models": {"data": [{"id": "a", "max_model_len": 1}, {"id": "b"}]}},
    ],
    ids=["nothing", "other forms", "no number", "of other models"],
)
def test_a_server_that_does_not_say_it_is_no_error(answers: dict[str, Any]) -> None:
    with server(answers) as address:
        assert ask_window(address, MODEL) is None
    assert ask_window(address, MODEL) is None, "it is gone"


def test_only_a_server_that_is_near_is_asked() -> None:
    near = ("127.0.0.1:1", "[::1]:1", "192.168.1.4", "10.0.0.2", "localhost:8080", "ollama:11434")
    assert all(is_local(f"http://{host}/v1") for host in near)
    far = ("https://api.openai.com/v1", "http://8.8.8.8/v1", "", "http://[bad", "no address")
    assert not any(map(is_local, far))
