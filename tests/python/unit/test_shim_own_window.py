"""The window that nanobot itself goes by, on classes shaped like those that keep it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import pytest

from nanobot_context import installer
from nanobot_context.guard import configured
from nanobot_context.guard.windows import WindowResolver
from nanobot_context.host.detect import NanobotClasses
from nanobot_context.settings import LoadedSettings, Settings

LARGE, SMALL = "gemini-2.5-pro", "gpt-4"
MOST = 200_000
DEFAULT = int("65536")
"""As in nanobot's schema: an object of its own, by which it is known."""


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
    monkeypatch.setattr(configured, "default_windows", lambda: (DEFAULT,))
    install(classes, context_window_override=None)
    made: type = request.param
    return made


def test_a_default_that_nobody_wrote_follows_a_larger_model_up_to_200_000(make: type) -> None:
    assert make(LARGE, DEFAULT).context_window_tokens == MOST
    assert make(SMALL, DEFAULT).context_window_tokens == DEFAULT
    assert make("nobody-knows-this", DEFAULT).context_window_tokens == DEFAULT


@pytest.mark.parametrize("written", ["65536", "200000", "32000", "0"])
def test_a_number_that_was_written_stays(make: type, written: str) -> None:
    assert make(LARGE, int(written)).context_window_tokens == int(written)


def test_uninstalling_leaves_the_own_value(make: type) -> None:
    made = make(LARGE, DEFAULT)
    assert made.context_window_tokens == MOST
    installer.uninstall()
    assert made.context_window_tokens is DEFAULT
    assert make(LARGE, DEFAULT).context_window_tokens is DEFAULT


def test_a_copy_for_another_model_has_that_ones_window(make: type) -> None:
    made = make(LARGE, DEFAULT)
    following = made.context_window_tokens
    assert replace(made, model=SMALL).context_window_tokens == DEFAULT
    assert make(SMALL, following).context_window_tokens == DEFAULT
    assert replace(made, model=SMALL, context_window_tokens=9_000).context_window_tokens == 9_000


def test_a_window_that_was_learned_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configured, "default_windows", lambda: (DEFAULT,))
    windows = WindowResolver(LoadedSettings(Settings()))
    assert windows.in_place_of(DEFAULT, LARGE) == MOST
    windows.learn(LARGE, 90_000)
    assert windows.in_place_of(DEFAULT, LARGE) == 90_000
    windows.learn(LARGE, 30_000)
    assert windows.in_place_of(DEFAULT, LARGE) == DEFAULT, "never smaller"


def test_status_names_it(make: type) -> None:
    assert any(point.name.endswith(".context_window_tokens") for point in installer.status().points)
