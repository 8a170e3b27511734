"""The functions of every public module, given what they are not made for."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import nanobot_context
from nanobot_context import (
    AsyncSessionService,
    InvalidArgumentError,
    NanobotContextError,
    SessionService,
)
from nanobot_context.summary import Rolling, StaticBuffer
from odd_values import Text, Unprintable

WRONG: dict[str, Any] = {
    "None": None,
    "5": 5,
    "1.5": 1.5,
    "text": "x",
    "surrogate": "\ud800",
    "NUL": "a\0b",
    "Text": Text("x"),
    "path": Path("a\0b"),
    "bytes": b"x",
    "list": [5],
    "lists": [None],
    "dict": {"a": 1},
    "object": object(),
    "Unprintable": Unprintable(),
}
# Where everything is public that a module exports, and a user is meant to import it.
MODULES = (
    *("conversations", "history", "openai_agents", "report", "responses", "summary"),
    *("sessions", "sessions.nanobot_files", "replay", "caches"),
)
# They act on nanobot or the process and not on their arguments, or are the package's own protocol.
LEFT_OUT = {
    *("set_cache_limit", "clear_caches", "cache_sizes", "configured"),
    # The policies of the core, whose binding names the parameter itself.
    *("keep_last_cut", "rolling_cut", "static_buffer_cut", "summary_due"),
}


def functions() -> Iterator[Any]:
    known = {
        one.name.removeprefix("nanobot_context.")
        for one in pkgutil.walk_packages(nanobot_context.__path__, "nanobot_context.")
    }
    for name in MODULES:
        assert name in known
        module = importlib.import_module(f"nanobot_context.{name}")
        for exported in module.__all__:
            value = getattr(module, exported)
            if (
                inspect.isroutine(value)
                and inspect.signature(value).parameters
                and exported not in LEFT_OUT
            ):
                yield pytest.param(value, id=f"{name}.{exported}")


@pytest.mark.parametrize("function", list(functions()))
@pytest.mark.parametrize("wrong", list(WRONG))
def test_a_wrong_first_argument_is_taken_or_named(function: Callable[..., Any], wrong: str) -> None:
    parameters = list(inspect.signature(function).parameters.values())
    required = [one for one in parameters if one.default is one.empty]
    arguments = [WRONG[wrong] for _ in required] or [WRONG[wrong]]
    named = {
        one.name: value
        for one, value in zip(required, arguments, strict=False)
        if one.kind is one.KEYWORD_ONLY
    }
    try:
        done = function(*arguments[: len(arguments) - len(named)], **named)
        if inspect.iscoroutine(done):
            asyncio.run(done)
    except NanobotContextError:
        pass
    except FileNotFoundError:
        assert wrong in ("text", "Text")


def test_a_closed_service_can_be_shown() -> None:
    service = SessionService()
    service.close()
    assert repr(service) == "SessionService(closed)"

    async def closed() -> AsyncSessionService:
        async with AsyncSessionService() as service:
            assert "memory" in repr(service)
        return service

    assert repr(asyncio.run(closed())) == "AsyncSessionService(closed)"


@pytest.mark.parametrize("wrong", ["8000", -1, float("nan"), 1.5])
@pytest.mark.parametrize("policy", [StaticBuffer, Rolling])
def test_a_policy_is_refused_when_it_is_made(policy: Callable[..., Any], wrong: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        policy(wrong)


def test_a_store_is_named_as_the_error_says() -> None:
    with pytest.raises(InvalidArgumentError, match="must begin with `memory:`"):
        SessionService("memory")
