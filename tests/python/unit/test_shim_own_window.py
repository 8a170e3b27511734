"""The window that nanobot itself goes by, on classes shaped like those that keep it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import pytest

from nanobot_context import installer
from nanobot_context.guard.windows import WindowResolver
from nanobot_context.host.detect import NanobotClasses
from nanobot_context.settings import LoadedSettings, Settings

LARGE, SMALL = "gemini-2.5-pro", "gpt-4"
LARGE_WINDOW = 1_048_576


@dataclass
class Loop:
    """As `AgentLoop` to 0.2.2."""

    model: str
    context_window_tokens: int


@dataclass(frozen=True, slots=True)
class Runtime:
    """As `LLMRuntime` of 0.3.0 and later."""

    model: str
    context_window_tokens: int
    provider: Any = None


_PLACES = {
    Loop: ("nanobot.agent.loop", "AgentLoop"),
    Runtime: ("nanobot.utils.llm_runtime", "LLMRuntime"),
}


@pytest.fixture(params=_PLACES)
def make(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
) -> type:
    module, name = _PLACES[request.param]
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        monkeypatch.setitem(sys.modules, ".".join(parts[:depth]), ModuleType(module))
    setattr(sys.modules[module], name, request.param)
    install(classes, context_window_override=None)
    made: type = request.param
    return made


@pytest.mark.parametrize("default", [65_536, 200_000])
def test_the_default_follows_a_larger_model(make: type, default: int) -> None:
    assert make(LARGE, default).context_window_tokens == LARGE_WINDOW
    assert make(SMALL, default).context_window_tokens == default
    assert make(LARGE, 32_000).context_window_tokens == 32_000, "what the user has set"
    assert make(LARGE, 0).context_window_tokens == 0, "off"


def test_uninstalling_leaves_the_own_value(make: type) -> None:
    made = make(LARGE, 200_000)
    assert made.context_window_tokens == LARGE_WINDOW
    installer.uninstall()
    assert made.context_window_tokens == 200_000
    assert make(LARGE, 200_000).context_window_tokens == 200_000


def test_a_copy_for_another_model_has_that_ones_window(make: type) -> None:
    made = make(LARGE, 200_000)
    assert replace(made, model=SMALL).context_window_tokens == 200_000
    assert replace(made, model=SMALL, context_window_tokens=9_000).context_window_tokens == 9_000


def test_a_window_that_was_learned_counts() -> None:
    windows = WindowResolver(LoadedSettings(Settings()))
    assert windows.in_place_of(65_536, LARGE) == LARGE_WINDOW
    windows.learn(LARGE, 90_000)
    assert windows.in_place_of(65_536, LARGE) == 90_000
    assert windows.in_place_of(200_000, LARGE) == 200_000


def test_status_names_it(make: type) -> None:
    assert any(point.name.endswith(".context_window_tokens") for point in installer.status().points)
