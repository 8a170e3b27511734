"""Asks a model server on this machine or network for the window it was started with."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

_TIMEOUT_SECONDS = 3.0
_MAX_BYTES = 1 << 20


def is_local(address: str) -> bool:
    """Return whether an address is on this machine or a private network."""
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:
        return False
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        # As in a compose file, where a service is called by its name.
        return host != "" and ("." not in host or host.endswith((".local", ".lan", ".localhost")))


def ask_window(address: str, model: str) -> tuple[int, str] | None:
    """Return the window of `model` at the server at `address`, and the field it was read from.

    `address` is the API's base, such as `http://127.0.0.1:8080/v1`. `None` where the server says
    nothing. Costs a few requests, of three seconds at most each.
    """
    parts = urlsplit(address)
    root = f"{parts.scheme}://{parts.netloc}"
    name = model.rsplit("/", 1)[-1]
    for tokens, where in _answers(root, address.rstrip("/"), {model, name}, name):
        if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0:
            return tokens, where
    return None


def _answers(root: str, base: str, names: set[str], name: str) -> Iterator[tuple[Any, str]]:
    """Query each kind of server in turn; yield its window, and the server and field it is from."""
    props = _get(f"{root}/props")
    yield _at(props, "default_generation_settings", "n_ctx"), "llama.cpp, `/props`"
    for one in _models(_get(f"{root}/api/v0/models"), "data", names):
        yield one.get("loaded_context_length"), "LM Studio, `/api/v0/models`"
    for one in _models(_get(f"{root}/api/ps"), "models", names):
        yield one.get("context_length"), "Ollama, `/api/ps`"
    set_to = re.search(r"num_ctx\s+(\d+)", str(_at(_get(f"{root}/api/show", name), "parameters")))
    yield int(set_to[1]) if set_to else None, "Ollama, `/api/show`"
    for one in _models(_get(f"{base}/models"), "data", names):
        yield one.get("max_model_len"), "vLLM, `/v1/models`"


def _get(url: str, model: str | None = None) -> Any:
    """Return the JSON that a URL answers, to a question about `model` where one is named."""
    body = None if model is None else json.dumps({"model": model}).encode()
    request = Request(url, body, {"Content-Type": "application/json"})
    try:
        # Not through a proxy: the server is near.
        with build_opener(ProxyHandler({})).open(request, timeout=_TIMEOUT_SECONDS) as answer:
            return json.loads(answer.read(_MAX_BYTES))
    except (URLError, OSError, ValueError, RecursionError):
        return None


def _models(answer: Any, key: str, names: set[str]) -> list[dict[str, Any]]:
    """Return the models of an answer with one of `names`; a single model whatever its name."""
    listed = _at(answer, key)
    found = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    meant = [one for one in found if {one.get("id"), one.get("name"), one.get("model")} & names]
    return meant or (found if len(found) == 1 else [])


def _at(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value
