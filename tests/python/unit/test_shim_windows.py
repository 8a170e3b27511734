"""Which window a model has, and where nanobot's config is."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from nanobot_context.guard import configured
from nanobot_context.guard.reports import Reports
from nanobot_context.guard.windows import Window, WindowResolver
from nanobot_context.host.config import address_of, nanobot_config_path
from nanobot_context.settings import LoadedSettings, Settings

DEFAULT = int("65536")
"""As in nanobot's schema: an object of its own, by which it is known."""


def windows(
    agent_defaults: dict[str, Any] | None = None,
    model_presets: dict[str, Any] | None = None,
    **settings: Any,
) -> WindowResolver:
    loaded = LoadedSettings(
        Settings(**settings),
        agent_defaults=agent_defaults or {},
        model_presets=model_presets or {},
    )
    return WindowResolver(loaded, frozenset({"custom", "openai_codex"}))


def test_an_override_stands_for_all_but_what_was_learned() -> None:
    found = windows({"contextWindowTokens": 5_000}, context_window_override=7_000)
    assert found.of("gpt-4") == Window(7_000, "your setting `contextWindowOverride`")
    assert windows(context_window_override=900_000).of("gpt-4").tokens == 900_000
    found.learn("gpt-4", 6_000)
    assert found.of("gpt-4") == Window(6_000, "the server said so")
    none = windows(context_window_override=0)
    assert none.of("gpt-4") == Window(0, "your setting `contextWindowOverride`")
    none.learn("gpt-4", 6_000)
    assert none.of("gpt-4") == Window(6_000, "the server said so")


def test_a_window_of_one_model_stands_above_that_of_all() -> None:
    sizes = {"qwen/qwen3-8b": 8_192, "Qwen3-*": 16_384}
    found = windows(context_windows=sizes, context_window_override=65_536)
    assert found.of("openrouter/qwen/qwen3-8b") == Window(8_192, "your setting `contextWindows`")
    assert found.of("ollama/qwen3-32b").tokens == 16_384
    assert found.of("gpt-4o") == Window(65_536, "your setting `contextWindowOverride`")
    assert windows(context_windows=sizes).of("gpt-4o").tokens == 128_000
    found.learn("ollama/qwen3-32b", 4_096)
    assert found.of("ollama/qwen3-32b") == Window(4_096, "the server said so")


def test_without_a_request_the_window_is_that_of_the_address_in_the_config() -> None:
    found = windows()
    found.learn("gpt-4o", 20_000, "http://one:8000/v1")
    found.learn("gpt-4o", 14_000, "http://two/my-key/v1/")
    found.learn("gpt-4o-mini", 5_000, "http://two")
    assert found.of_addresses("gpt-4o", ["http://one:8000/v1"]) == Window(
        20_000, "the server said so"
    )
    assert found.of_addresses("gpt-4o", ["http://three"]).tokens == 128_000
    assert found.of_addresses("gpt-4o", [""]).tokens == 128_000
    # Of two that the provider may use.
    assert found.of_addresses("gpt-4o", ["", "http://one:8000/v1"]).tokens == 20_000
    smallest = found.of_addresses("gpt-4o", [])
    assert smallest.tokens == 14_000
    assert re.fullmatch(r"the server at two/….{8}/v1 said so", smallest.source)
    assert found.of_addresses("gpt-4", []) == found.of("gpt-4")
    found.learn("gpt-4o", 6_000)
    assert found.of_addresses("gpt-4o", []) == Window(6_000, "the server said so")


def test_a_provider_with_fallbacks_has_the_address_of_its_first() -> None:
    first = types.SimpleNamespace(api_base="http://one")
    assert address_of(types.SimpleNamespace(_primary=first)) == "http://one"
    assert address_of(types.SimpleNamespace(_primary=first, api_base=None)) == "http://one"
    assert address_of(types.SimpleNamespace(api_base=None)) == ""


@pytest.mark.parametrize("key", ["contextWindowTokens", "context_window_tokens"])
@pytest.mark.parametrize("written", [50_000, 65_536, 200_000])
def test_a_number_in_nanobots_config_is_a_cap(key: str, written: int) -> None:
    found = windows({key: written})
    setting = f"your setting `agents.defaults.{key}`"
    assert found.of("gemini-2.5-pro") == Window(written, setting)
    assert found.of("nobody-knows-this") == Window(written, setting)
    assert found.of("gpt-4").source == "model table (`gpt-4`)", "what is known is a cap, too"


@pytest.mark.parametrize("value", [0, -1, None, True, "65536"])
def test_what_is_no_number_of_tokens_says_nothing(value: object) -> None:
    assert windows({"contextWindowTokens": value}).of("gpt-4o").tokens == 128_000


def test_without_a_word_a_known_model_has_its_window_up_to_200_000() -> None:
    found = windows()
    assert found.of("gpt-4o") == Window(128_000, "model table (`gpt-4o`)")
    assert found.of("gemini-2.5-pro") == Window(200_000, "model table (`gemini-2.5-pro`)")


def test_an_unknown_model_has_nanobots_own_number(monkeypatch: pytest.MonkeyPatch) -> None:
    assumed = "assumed: this model is in no table"
    assert windows().of("nobody-knows-this") == Window(128_000, assumed)
    monkeypatch.setattr(configured, "default_windows", lambda: (DEFAULT,))
    assert windows().of("nobody-knows-this") == Window(65_536, assumed)
    assert windows().of(None) == Window(65_536, assumed)


def test_the_active_preset_stands_for_the_defaults() -> None:
    presets = {"small": {"model": "m", "contextWindowTokens": 32_000}, "bare": {"model": "gpt-4o"}}
    defaults = {"model": "n", "contextWindowTokens": 65_536, "modelPreset": "small"}
    found = windows(defaults, presets)
    assert found.of("m") == Window(32_000, "your setting `modelPresets.small.contextWindowTokens`")
    assert found.configured.file.model == "m"
    bare = windows({**defaults, "modelPreset": "bare"}, presets)
    assert bare.of("gpt-4o") == Window(128_000, "model table (`gpt-4o`)")
    implicit = windows({**defaults, "modelPreset": "default"}, presets)
    assert (implicit.of("m").tokens, implicit.configured.file.model) == (65_536, "n")


def test_a_block_limit_caps_prompts_and_not_answers() -> None:
    found = windows({"contextBlockLimit": 15_000}).of("gpt-4o")
    assert (found.tokens, found.prompt_tokens) == (128_000, 15_000)
    assert found.source == (
        "model table (`gpt-4o`); prompts at most 15,000: "
        "your setting `agents.defaults.contextBlockLimit`"
    )


def test_a_block_limit_holds_beside_an_override_of_the_window() -> None:
    limit = {"contextBlockLimit": 15_000}
    found = windows(limit, context_window_override=64_000).of("gpt-4o")
    assert (found.tokens, found.prompt_tokens) == (64_000, 15_000)
    assert windows(limit, context_window_override=0).of("gpt-4o").tokens == 0


class Provider:
    """Whatever nanobot asks."""


def test_a_number_in_code_is_a_cap_for_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configured, "default_windows", lambda: (DEFAULT,))
    found, provider, other = windows(), Provider(), Provider()
    found.configured.remember(provider, "gpt-4o", int("65536"), 9_000)
    window = found.of("gpt-4o", provider=provider)
    assert (window.tokens, window.prompt_tokens) == (65_536, 9_000)
    assert window.source == (
        "your setting `context_window_tokens=` in code; prompts at most 9,000: "
        "your setting `context_block_limit=` in code"
    )
    assert found.of("a-title-model", provider=provider).tokens == 65_536, "asked beside it"
    assert found.of("gpt-4o", provider=other).tokens == 128_000
    found.configured.remember(provider, "gpt-4o", DEFAULT)
    assert found.of("gpt-4o", provider=provider).tokens == 128_000, "nobody wrote that"
    assert found.of("nobody-knows-this", provider=provider).tokens == 65_536


def test_a_number_that_stands_in_the_config_and_reaches_the_loop_is_the_configs() -> None:
    found, provider = windows({"contextWindowTokens": 65_536}), Provider()
    found.configured.remember(provider, "gpt-4o", int("65536"))
    source = found.of("gpt-4o", provider=provider).source
    assert source == "your setting `agents.defaults.contextWindowTokens`"


def test_a_provider_that_cannot_be_remembered_has_the_configs_number() -> None:
    found = windows({"contextWindowTokens": 50_000})
    found.configured.remember({}, "gpt-4o", 9_000)
    assert found.of("gpt-4o", provider={}).tokens == 50_000


def test_what_was_learned_lowers_what_was_told() -> None:
    found = windows({"contextWindowTokens": 131_072})
    found.learn("m", 40_000)
    assert found.of("m") == Window(40_000, "the server said so")
    found.learned.learn_window("m", 30_000, is_stated=False)
    assert found.of("m") == Window(30_000, "about what the server takes", is_assumed=True)


def test_a_small_window_is_believed_where_what_is_in_every_request_fits() -> None:
    found = windows()
    found.learn("own loop", 2_048, needed_tokens=400)
    assert found.of("own loop").tokens == 2_048
    # nanobot's prompt and tools alone are more: the number was misread.
    found.learn("nanobot", 2_048, needed_tokens=6_900)
    assert found.of("nanobot").tokens == 4_096


def test_a_learned_limit_only_lowers_the_table() -> None:
    found = windows()
    listed = found.of("gpt-4").tokens
    found.learn("gpt-4", listed + 1)
    assert found.of("gpt-4").tokens == listed
    found.learn("gpt-4", 5_000)
    found.learn("gpt-4", 6_000)
    assert found.of("gpt-4").tokens == 5_000
    assert found.of("gpt-4-turbo").tokens != 5_000


def test_provider_names_of_nanobots_are_no_part_of_a_model() -> None:
    listed = windows().of("gpt-4").tokens
    assert windows().of("custom/gpt-4").tokens == listed
    assert windows().of("openai-codex/gpt-4").tokens == listed


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


def test_who_reads_the_same_of_a_longer_prompt_reads_no_more() -> None:
    found = windows()
    assert not found.reads_no_more("mistral-7b", 16_384, 12_000)
    found.learned.accepted("mistral-7b", 16_384, 12_000)
    # The same prompt again, and one that is hardly longer.
    assert not found.reads_no_more("mistral-7b", 16_384, 12_000)
    assert not found.reads_no_more("mistral-7b", 16_384, 12_040)
    assert not found.reads_no_more("mistral-7b", 16_400, 12_100)
    assert found.reads_no_more("mistral-7b", 16_384, 12_100)


@pytest.mark.parametrize("went", ["a picture", "words"])
def test_a_prompt_that_lost_a_picture_was_read_whole(went: str) -> None:
    reports = Reports()
    talk: list[dict[str, Any]] = [{"role": "system", "content": "Be brief. " * 2_000}]

    def read(messages: list[dict[str, Any]], *, pictures: int = 0) -> int:
        return sum(len(str(message["content"])) for message in messages) // 4 + 1_600 * pictures

    for turn in range(4):
        talk += [
            {"role": "user", "content": f"What for day {turn}?"},
            {"role": "assistant", "content": "You could take a walk. " * 20},
        ]
        reports.add(talk, read(talk))
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    shown: Any = [{"type": "text", "text": "Look."}, image] if went == "a picture" else "Look."
    reports.add([*talk, {"role": "user", "content": shown}], read(talk, pictures=1))
    behind = [*talk, {"role": "user", "content": "Look.\n[image: /media/a.png]"}]
    behind += [{"role": "assistant", "content": "Nice."}, {"role": "user", "content": "And then?"}]
    assert reports.are_of_all
    # Of words so much less is not read unless they were cut.
    assert reports.reads_less(behind, read(behind)) is (went == "words")


def test_what_was_refused_without_a_number_is_not_below_what_was_accepted() -> None:
    found = windows()
    found.learned.learn_window("gpt-4-turbo", 60_000, is_stated=False)
    found.learned.accepted("gpt-4-turbo", 61_000)
    assert found.of("gpt-4-turbo").tokens == 128_000
    found.learned.learn_window("gpt-4-turbo", 50_000, is_stated=False)
    assert found.of("gpt-4-turbo").tokens == 61_000
