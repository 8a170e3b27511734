"""Which window a model has, and where nanobot's config is."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest

from nanobot_context.guard.windows import WindowResolver
from nanobot_context.host.config import nanobot_config_path
from nanobot_context.settings import LoadedSettings, Settings


def windows(agent_defaults: dict[str, Any] | None = None, **settings: Any) -> WindowResolver:
    loaded = LoadedSettings(Settings(**settings), agent_defaults=agent_defaults or {})
    return WindowResolver(loaded, frozenset({"custom", "openai_codex"}))


def test_an_override_wins_over_everything() -> None:
    found = windows({"contextWindowTokens": 5_000}, context_window_override=7_000)
    found.learn("gpt-4", 1_000)
    assert found.of("gpt-4").tokens == 7_000


@pytest.mark.parametrize(("value", "taken"), [(65_536, False), (200_000, False), (50_000, True)])
def test_nanobots_default_window_is_not_taken_for_a_setting(value: int, taken: bool) -> None:
    found = windows({"contextWindowTokens": value}).of("gpt-4")
    assert (found.tokens == value) is taken


def test_a_learned_limit_only_lowers_the_table() -> None:
    found = windows()
    listed = found.of("gpt-4").tokens
    found.learn("gpt-4", listed + 1)
    assert found.of("gpt-4").tokens == listed
    found.learn("gpt-4", 5_000)
    found.learn("gpt-4", 6_000)
    assert found.of("gpt-4").tokens == 5_000
    assert found.of("gpt-4-turbo").tokens != 4_000


def test_provider_names_of_nanobots_are_no_part_of_a_model() -> None:
    listed = windows().of("gpt-4").tokens
    assert windows().of("custom/gpt-4").tokens == listed
    assert windows().of("openai-codex/gpt-4").tokens == listed
    assert windows().of("nobody-knows-this").tokens == 128_000


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["/x/bin/nanobot", "agent", "--config", "/c/a.json"], "/c/a.json"),
        (["/x/bin/nanobot", "agent", "--config=/c/b.json"], "/c/b.json"),
        (["/x/bin/nanobot", "gateway", "-c", "/c/c.json"], "/c/c.json"),
        (["/x/site-packages/nanobot/__main__.py", "agent", "-c/c/d.json"], "/c/d.json"),
        (["/x/bin/pytest", "-c", "/c/e.json"], None),
        (["/x/bin/nanobot", "agent"], None),
        ([], None),
    ],
)
def test_the_config_file_is_the_one_on_nanobots_command_line(
    argv: list[str], expected: str | None
) -> None:
    usual = Path.home() / ".nanobot" / "config.json"
    assert nanobot_config_path(argv) == (Path(expected) if expected else usual)


def test_the_config_file_that_nanobot_was_told_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loader = types.ModuleType("nanobot.config.loader")
    loader._current_config_path = Path("/told.json")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nanobot.config.loader", loader)
    assert nanobot_config_path(["nanobot", "-c", "/argv.json"]) == Path("/told.json")


def test_what_was_refused_without_a_number_is_tried_again_after_an_hour() -> None:
    found, seconds = windows(), [0.0]
    found.learned.now = lambda: seconds[0]
    found.assume("gpt-4-turbo", 60_000)
    assert found.of("gpt-4-turbo").tokens == 60_000
    seconds[0] = 3_600.0
    assert found.of("gpt-4-turbo").tokens == 128_000


def test_what_was_refused_without_a_number_is_not_below_what_was_accepted() -> None:
    found = windows()
    found.assume("gpt-4-turbo", 60_000)
    found.accepted("gpt-4-turbo", 61_000)
    assert found.of("gpt-4-turbo").tokens == 128_000
    found.assume("gpt-4-turbo", 50_000)
    assert found.of("gpt-4-turbo").tokens == 61_000
