"""Settings: defaults, the three places they are read from, and what a mistake in each says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nanobot_context.errors import SettingsError
from nanobot_context.settings import SETTINGS_FILE, Settings, load_settings, load_usable_settings
from nanobot_context.settings.kept import keep_off, keep_settings
from nanobot_context.settings.names import camel_case, env_name, snake_case


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.json"


def write(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data), encoding="utf-8")


def test_defaults_are_those_of_the_plans() -> None:
    assert Settings().to_dict() == {
        "context_compression": True,
        "context_window_override": None,
        "context_windows": None,
        "tool_result_soft_limit": 0.3,
        "tool_result_hard_limit": 0.5,
        "tool_schema_limit": None,
        "context_reserve_ratio": 0.15,
        "compression_model": None,
        "reasoning_keep_chars": 2_000,
        "max_user_message_chars": 30_000,
        "max_assistant_message_chars": 20_000,
        "emergency_ratio": 0.6,
        "message_overhead_tokens": 0,
        "pinned": (),
        "enable_history_summarization": False,
        "message_buffer_limit": 50,
        "message_buffer_min": 10,
        "summary_interval": 0,
        "summary_format": "text",
        "summary_prompt": None,
        "summary_max_words": None,
        "summary_model": None,
        "summary_timeout_seconds": 120.0,
        "archive": True,
        "archive_max_bytes": 67_108_864,
        "keep_rules": True,
        "cache_mb": 128,
        "session_store": None,
        "events": None,
        "events_max_bytes": 5_242_880,
        "events_include_content": False,
    }


def test_without_any_file_the_defaults_are_in_force(config: Path) -> None:
    loaded = load_settings(config, {})
    assert loaded.settings == Settings()
    assert loaded.sources == {}


def test_a_later_place_wins_over_an_earlier_one(config: Path) -> None:
    write(config, {"agents": {"defaults": {"contextWindowOverride": 1000}}})
    write(config.parent / "nanobot-context.json", {"contextWindowOverride": 2000})
    assert load_settings(config, {}).settings.context_window_override == 2000
    loaded = load_settings(config, {"NANOBOT_CONTEXT_WINDOW_OVERRIDE": "3000"})
    assert loaded.settings.context_window_override == 3000
    assert loaded.sources == {"context_window_override": "NANOBOT_CONTEXT_WINDOW_OVERRIDE"}


@pytest.mark.parametrize("key", ["toolResultSoftLimit", "tool_result_soft_limit"])
def test_the_settings_file_takes_camel_case_and_snake_case(config: Path, key: str) -> None:
    write(config.parent / "nanobot-context.json", {key: 0.25})
    loaded = load_settings(config, {})
    assert loaded.settings.tool_result_soft_limit == 0.25
    assert loaded.sources == {"tool_result_soft_limit": key}


def test_every_setting_can_be_set_in_the_file_and_in_the_environment(config: Path) -> None:
    other: dict[str, tuple[Any, str]] = {
        "context_compression": (False, "off"),
        "context_window_override": (64_000, "64000"),
        "context_windows": ({"qwen3-*": 16_384}, '{"qwen3-*": 16384}'),
        "tool_result_soft_limit": (0.2, "0.2"),
        "tool_result_hard_limit": (0.4, "0.4"),
        "tool_schema_limit": (0.25, "0.25"),
        "context_reserve_ratio": (0.0, "0"),
        "compression_model": ("small", "small"),
        "reasoning_keep_chars": (0, "0"),
        "max_user_message_chars": (0, "0"),
        "max_assistant_message_chars": (0, "0"),
        "emergency_ratio": (1, "1"),
        "message_overhead_tokens": (6, "6"),
        "pinned": (["AGENTS.md", "docs/*.md"], "AGENTS.md, docs/*.md"),
        "enable_history_summarization": (True, "yes"),
        "message_buffer_limit": (60, "60"),
        "message_buffer_min": (5, "5"),
        "summary_interval": (10, "10"),
        "summary_format": ("structured", "structured"),
        "summary_prompt": ("Sum {conversation_text}", "Sum {conversation_text}"),
        "summary_max_words": (80, "80"),
        "summary_model": ("small", "small"),
        "summary_timeout_seconds": (30.5, "30.5"),
        "archive": (False, "off"),
        "archive_max_bytes": (1_000_000, "1000000"),
        "keep_rules": (False, "no"),
        "cache_mb": (0, "0"),
        "session_store": ("sqlite:///a.db", "sqlite:///a.db"),
        "events": ("events.jsonl", "events.jsonl"),
        "events_max_bytes": (1_000, "1000"),
        "events_include_content": (True, "on"),
    }
    assert set(other) == set(Settings().to_dict())
    expected = Settings(**{name: value for name, (value, _) in other.items()})
    environ = {env_name(name): text for name, (_, text) in other.items()}
    assert load_settings(config, environ).settings == expected
    settings_file = config.parent / "nanobot-context.json"
    write(settings_file, {camel_case(name): value for name, (value, _) in other.items()})
    assert load_settings(config, {}).settings == expected


def test_environment_names_lose_the_leading_context() -> None:
    assert env_name("context_compression") == "NANOBOT_CONTEXT_COMPRESSION"
    assert env_name("summary_model") == "NANOBOT_CONTEXT_SUMMARY_MODEL"


def test_an_empty_variable_counts_as_not_set(config: Path) -> None:
    assert load_settings(config, {"NANOBOT_CONTEXT_COMPRESSION": " "}).settings == Settings()


def test_a_byte_order_mark_is_no_reason_to_refuse_a_file(config: Path) -> None:
    config.write_text("\ufeff{}", encoding="utf-8")
    assert load_settings(config, {}).settings == Settings()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("big", '"big"'),
        (-1, "-1"),
        (2**53 + 1, str(2**53 + 1)),
        (1.5, "1.5"),
        (True, "true"),
        ([], "[]"),
    ],
)
def test_a_wrong_value_names_the_path_of_its_key(config: Path, value: Any, shown: str) -> None:
    write(config, {"agents": {"defaults": {"contextWindowOverride": value}}})
    with pytest.raises(SettingsError) as caught:
        load_settings(config, {})
    assert caught.value.path == "agents.defaults.contextWindowOverride"
    assert str(caught.value).startswith(
        "`agents.defaults.contextWindowOverride` must be a non-negative integer up to 2^53, "
        f"got `{shown}`"
    )
    assert str(config) in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("contextCompression", "maybe"),
        ("toolResultSoftLimit", 0),
        ("toolResultSoftLimit", 1.01),
        ("toolResultHardLimit", float("nan")),
        ("contextWindows", {"a": 0}),
        ("contextWindows", [16_384]),
        ("contextReserveRatio", 1),
        ("contextReserveRatio", -0.1),
        ("compressionModel", ""),
        ("summaryModel", 4),
        ("archiveMaxBytes", 0),
        ("maxUserMessageChars", -1),
        ("maxUserMessageChars", 2**53 + 1),
        ("eventsMaxBytes", 0),
        ("eventsMaxBytes", 2**64),
        ("summaryTimeoutSeconds", 0),
    ],
)
def test_a_value_out_of_range_is_refused(config: Path, key: str, value: Any) -> None:
    write(config.parent / "nanobot-context.json", {key: value})
    with pytest.raises(SettingsError) as caught:
        load_settings(config, {})
    assert caught.value.path == key


@pytest.mark.parametrize("key", ["contextCompression", "emergencyRatio", "keepRules"])
def test_null_and_none_mean_not_set(config: Path, key: str) -> None:
    write(config.parent / "nanobot-context.json", {key: None})
    assert load_settings(config, {}).settings == Settings()
    assert load_settings(config, {}).sources == {}
    assert (
        load_settings(config.parent / "other.json", {env_name(snake_case(key)): "none"}).sources
        == {}
    )


@pytest.mark.parametrize("text", ["maybe", "2"])
def test_a_variable_that_cannot_be_read_is_named(config: Path, text: str) -> None:
    with pytest.raises(SettingsError, match="`NANOBOT_CONTEXT_COMPRESSION` must be") as caught:
        load_settings(config, {"NANOBOT_CONTEXT_COMPRESSION": text})
    assert caught.value.path == "NANOBOT_CONTEXT_COMPRESSION"


def test_an_unknown_key_gets_the_closest_name(config: Path) -> None:
    write(config.parent / "nanobot-context.json", {"toolResultSofLimit": 0.3})
    with pytest.raises(SettingsError, match="did you mean `toolResultSoftLimit`"):
        load_settings(config, {})


@pytest.mark.parametrize("key", ["agents", "maxTokens", "max_tokens", "contextBlockLimit"])
def test_a_key_of_nanobots_is_no_slip_of_ours(config: Path, key: str) -> None:
    write(config.parent / "nanobot-context.json", {key: 8_192})
    with pytest.raises(SettingsError, match=r"it is nanobot's: set it in `config\.json`"):
        load_settings(config, {})


@pytest.mark.parametrize(
    "name", ["softTrimHeadLines", "soft_trim_tail_lines", "toolResultMaxChars"]
)
def test_a_setting_of_the_plans_that_nothing_reads_names_what_does(config: Path, name: str) -> None:
    write(config.parent / "nanobot-context.json", {name: 20})
    with pytest.raises(SettingsError, match="`toolResultSoftLimit` has taken its place"):
        load_settings(config, {})


def test_a_variable_of_the_plans_that_nothing_reads_names_what_does(config: Path) -> None:
    with pytest.raises(SettingsError, match="`toolResultSoftLimit` has taken its place"):
        load_settings(config, {"NANOBOT_CONTEXT_SOFT_TRIM_HEAD_LINES": "5"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("summaryFormat", "json"),
        ("summaryPrompt", "Sum it up."),
        ("summaryPrompt", "Sum up {conversation_text} in {words}."),
        ("summaryMaxWords", -1),
        ("summaryInterval", "often"),
    ],
)
def test_how_to_summarise_is_checked_when_it_is_read(
    config: Path, name: str, value: object
) -> None:
    write(config.parent / "nanobot-context.json", {name: value})
    with pytest.raises(SettingsError, match=name):
        load_settings(config, {})


def test_a_slip_in_a_variable_gets_the_closest_name(config: Path) -> None:
    with pytest.raises(SettingsError, match="did you mean `NANOBOT_CONTEXT_COMPRESSION`"):
        load_settings(config, {"NANOBOT_CONTEXT_COMPRESION": "0"})


def test_a_variable_that_is_nothing_like_a_setting_is_left_alone(config: Path) -> None:
    assert load_settings(config, {"NANOBOT_CONTEXT_TEST_RUN": "1"}).settings == Settings()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("NANOBOT_CONTEXT_TOKENS", None),
        ("NANOBOT_CONTEXT_CONTEXT_WINDOW_OVERRIDE", "`NANOBOT_CONTEXT_WINDOW_OVERRIDE`"),
        ("NANOBOT_CONTEXT_EVENT", "`NANOBOT_CONTEXT_EVENTS`"),
        ("NANOBOT_CONTEXT_windowOverride", "`NANOBOT_CONTEXT_WINDOW_OVERRIDE`"),
        ("nanobot_context_window_override", "`NANOBOT_CONTEXT_WINDOW_OVERRIDE`"),
    ],
)
def test_every_variable_that_is_no_setting_is_named_to_who_looks(
    config: Path, monkeypatch: pytest.MonkeyPatch, name: str, hint: str | None
) -> None:
    monkeypatch.setenv(name, "32000")
    loaded = load_usable_settings(config)
    (problem,) = loaded.problems
    meant = f"\nhint: did you mean {hint}?" if hint else ""
    assert problem == f"`{name}` is not a setting (in `the environment`){meant}"
    assert loaded.settings == Settings()


def test_a_slip_in_the_agent_defaults_gets_the_closest_name(config: Path) -> None:
    write(config, {"agents": {"defaults": {"contextCompresion": False}}})
    with pytest.raises(SettingsError, match="did you mean `contextCompression`") as caught:
        load_settings(config, {})
    assert caught.value.path == "agents.defaults.contextCompresion"


def test_keys_of_nanobots_own_are_left_alone(config: Path) -> None:
    own = {"model": "x", "contextWindowTokens": 65_536, "contextBlockLimit": 1, "maxTokens": 4096}
    write(config, {"agents": {"defaults": own}, "providers": {}})
    loaded = load_settings(config, {})
    assert loaded.settings == Settings()
    assert loaded.agent_defaults == own


def test_the_same_setting_twice_in_one_file_is_refused(config: Path) -> None:
    both = {"emergencyRatio": 0.5, "emergency_ratio": 0.4}
    write(config.parent / "nanobot-context.json", both)
    with pytest.raises(SettingsError, match="set the same thing"):
        load_settings(config, {})


@pytest.mark.parametrize("text", ["", "{", "[]", "nul"])
def test_a_file_that_is_no_json_object_is_named(config: Path, text: str) -> None:
    settings_file = config.parent / "nanobot-context.json"
    settings_file.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load_settings(config, {})
    assert caught.value.path == str(settings_file)


@pytest.mark.parametrize("data", [{"agents": []}, {"agents": {"defaults": 3}}])
def test_a_section_that_is_no_object_is_named(config: Path, data: Any) -> None:
    write(config, data)
    with pytest.raises(SettingsError, match="must be a JSON object"):
        load_settings(config, {})


def test_the_buffer_must_leave_something_to_summarise(config: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(config, {"NANOBOT_CONTEXT_MESSAGE_BUFFER_LIMIT": "10"})
    assert caught.value.path == "NANOBOT_CONTEXT_MESSAGE_BUFFER_LIMIT"


def test_settings_made_in_code_are_checked_too() -> None:
    with pytest.raises(SettingsError) as caught:
        Settings(context_window_override=-5)
    assert caught.value.path == "Settings.context_window_override"
    with pytest.raises(SettingsError):
        Settings(message_buffer_min=50)


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Settings().emergency_ratio = 0.5  # type: ignore[misc]


def test_an_error_is_a_value_error() -> None:
    assert issubclass(SettingsError, ValueError)


@pytest.mark.parametrize(
    ("data", "problem", "instead"),
    [
        ({"sessionStore": "mysql://me:s3cr@h/0"}, "`sessionStore` must be null or a URL", {}),
        ({"emergencyRatio": 2}, "`emergencyRatio` must be a number", {}),
        ({"archive": "maybe"}, "`archive` must be `true` or `false`", {"archive": False}),
        ({"archive": 2}, "it counts as `false`", {"archive": False}),
        ({"archiv": False}, "did you mean `archive`", {"archive": False}),
        ({"nothing like it": 1}, "`nothing like it` is not a setting", {}),
        ({"messageBufferMin": 60}, "leaves nothing to summarise", {}),
        ({"cacheMb": 1, "cache_mb": 2}, "set the same thing", {}),
        ({"archive": True, "archiv": False, "events": 5}, "`events` must be", {}),
    ],
    ids=range(9),
)
def test_a_setting_that_is_wrong_switches_off_no_other(
    config: Path, data: dict[str, Any], problem: str, instead: dict[str, Any]
) -> None:
    write(config.with_name(SETTINGS_FILE), {"contextWindowOverride": 9_000, **data})
    with pytest.raises(SettingsError):
        load_settings(config, {})
    loaded = load_usable_settings(config)
    expected = replace(Settings(), context_window_override=9_000, **instead)
    assert loaded.settings == expected
    assert any(problem in text for text in loaded.problems), loaded.problems
    assert "s3cr" not in str(loaded.problems)


@pytest.mark.parametrize("value", ["yes", "on", 1, "1", "True", "no", "off", 0, "0", "false"])
def test_a_switch_is_read_as_people_write_it(config: Path, value: str | int) -> None:
    write(config.with_name(SETTINGS_FILE), {"keepRules": value, "archive": value})
    loaded = load_settings(config, {})
    is_on = str(value).lower() in {"yes", "on", "1", "true"}
    assert (loaded.settings.keep_rules, loaded.settings.archive) == (is_on, is_on)


def test_a_key_that_stands_twice_is_reported(config: Path) -> None:
    text = '{"contextWindowOverride": 20000, "contextWindowOverride": 30000}'
    config.with_name(SETTINGS_FILE).write_text(text)
    with pytest.raises(SettingsError, match="stands there twice"):
        load_settings(config, {})
    loaded = load_usable_settings(config)
    assert loaded.settings.context_window_override == 30_000
    assert "`contextWindowOverride` stands there twice" in loaded.problems[0]


def test_a_wrong_variable_leaves_what_the_file_says(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(config.with_name(SETTINGS_FILE), {"cacheMb": 7})
    monkeypatch.setenv("NANOBOT_CONTEXT_CACHE_MB", "many")
    monkeypatch.setenv("NANOBOT_CONTEXT_ARCHIV", "off")
    loaded = load_usable_settings(config)
    assert (loaded.settings.cache_mb, loaded.settings.archive) == (7, False)
    assert len(loaded.problems) == 2


@pytest.mark.parametrize("key", ["contextCompression", "contextCompresion"])
def test_a_wrong_main_switch_is_no_guess(config: Path, key: str) -> None:
    write(config.with_name(SETTINGS_FILE), {key: "flase"})
    with pytest.raises(SettingsError, match="contextCompression"):
        load_usable_settings(config)


@pytest.mark.parametrize("said", [1, "on", "Yes", " true "])
def test_a_main_switch_that_says_on_in_other_words_is_on(config: Path, said: object) -> None:
    write(config, {"agents": {"defaults": {"contextCompression": said}}})
    assert load_usable_settings(config).settings.context_compression is True


@pytest.mark.parametrize("value", ["disabled", "关", [], 0.0])
def test_a_main_switch_that_cannot_be_used_is_off_when_nanobot_has_dropped_it(
    tmp_path: Path, value: object
) -> None:
    config = tmp_path / "config.json"
    write(config, {"agents": {"defaults": {"contextCompression": value}}})
    with pytest.raises(SettingsError) as raised:
        load_usable_settings(config)
    keep_off(config, raised.value)
    write(config, {"agents": {"defaults": {}}})
    assert not load_usable_settings(config).settings.context_compression
    # What the other file says already stays.
    write(config.with_name(SETTINGS_FILE), {"contextCompression": True})
    keep_off(config, raised.value)
    assert load_usable_settings(config).settings.context_compression


@pytest.mark.parametrize("value", [False, 0, "off"])
def test_a_main_switch_with_a_slip_is_off_and_stays_off_when_nanobot_drops_it(
    tmp_path: Path, value: object
) -> None:
    config, own = tmp_path / "config.json", tmp_path / SETTINGS_FILE
    write(config, {"agents": {"defaults": {"contextCompresion": value}}})
    loaded = load_usable_settings(config)
    assert not loaded.settings.context_compression
    assert "did you mean `contextCompression`?" in loaded.problems[0]
    assert keep_settings(loaded) == ("contextCompression",)
    write(config, {"agents": {"defaults": {}}})
    assert json.loads(own.read_text()) == {"contextCompression": False}
    assert not load_usable_settings(config).settings.context_compression


def test_what_nanobots_file_says_is_copied_once(tmp_path: Path) -> None:
    config, own = tmp_path / "config.json", tmp_path / "nanobot-context.json"
    defaults = {
        "context_compression": False,
        "contextWindowOverride": 9_000,
        "messageBufferLimit": "many",
        "contextWindowTokens": 5_000,
    }
    config.write_text(json.dumps({"agents": {"defaults": defaults}}), encoding="utf-8")
    own.write_text('{"context_window_override": 8000, "cacheMb": 5}', encoding="utf-8")
    kept = json.loads(own.read_text()) | {"contextCompression": False}
    assert keep_settings(load_usable_settings(config)) == ("contextCompression",)
    assert json.loads(own.read_text()) == kept
    assert keep_settings(load_usable_settings(config)) == ()
    # nanobot's save drops what it does not know.
    config.write_text(json.dumps({"agents": {"defaults": {}}}), encoding="utf-8")
    assert load_settings(config, {}).settings.context_compression is False


def test_a_settings_file_that_is_a_link_stays_one(tmp_path: Path) -> None:
    config, own, real = (tmp_path / name for name in ("config.json", "nanobot-context.json", "own"))
    config.write_text('{"agents": {"defaults": {"contextCompression": false}}}', encoding="utf-8")
    real.write_text("{}", encoding="utf-8")
    own.symlink_to(real)
    keep_settings(load_settings(config, {}))
    assert own.is_symlink()
    assert json.loads(real.read_text()) == {"contextCompression": False}


def test_without_a_setting_in_nanobots_file_nothing_is_written(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"agents": {"defaults": {"model": "m"}}}', encoding="utf-8")
    assert keep_settings(load_settings(config, {})) == ()
    assert list(tmp_path.iterdir()) == [config]


@pytest.mark.parametrize("said", ["false", " False ", False, 0, "off", "no"])
def test_a_switch_that_was_written_as_a_text_is_what_it_says(config: Path, said: Any) -> None:
    write(config, {"agents": {"defaults": {"contextCompression": said}}})
    loaded = load_settings(config, {})
    assert loaded.settings.context_compression is False
    assert keep_settings(loaded) == ("contextCompression",)
    # nanobot's next save drops it from its own file.
    write(config, {"agents": {"defaults": {}}})
    assert load_settings(config, {}).settings.context_compression is False


@pytest.mark.parametrize(
    ("given", "off"),
    [
        ({"keepRecent": 5}, ()),
        ({"keepRule": True}, ()),
        ({"keepRule": False}, ("keep_rules",)),
        ({"archiveDir": "x"}, ()),
        ({"contextCompressionModel": "x"}, ()),
        ({"contextCompressed": True}, ()),
    ],
)
def test_a_name_that_is_wrong_switches_off_nothing_that_was_not_meant(
    config: Path, given: dict[str, Any], off: tuple[str, ...]
) -> None:
    write(config.with_name(SETTINGS_FILE), given)
    loaded = load_usable_settings(config)
    changed = {name: value for name, value in loaded.settings.to_dict().items() if value is False}
    plain = {name for name, value in Settings().to_dict().items() if value is False}
    assert changed.keys() - plain == set(off)
    assert len(loaded.problems) == 1
