"""Every knob of compression, overflow recovery and summaries, and where each is read from.

Three places, the later one wins:

1. `agents.defaults` of nanobot's `config.json`: `contextCompression`, `contextWindowOverride`, and
   those of the summaries of sessions, where documents 000 and 001 put them
   (`enableHistorySummarization`, `messageBufferLimit`, `messageBufferMin`, `summaryModel`).
2. `nanobot-context.json` in the same folder: every setting, camelCase or snake_case.
3. Environment variables: `NANOBOT_CONTEXT_` and the setting's name without a leading `context_`
   (`NANOBOT_CONTEXT_COMPRESSION`, `NANOBOT_CONTEXT_WINDOW_OVERRIDE`,
   `NANOBOT_CONTEXT_TOOL_RESULT_SOFT_LIMIT`, ...). An empty variable counts as not set.

nanobot's file is only ever read. Its models drop keys that they do not know when nanobot itself
saves (`nanobot onboard`, the web UI, MCP presets, a channel's login), so what is set there is
copied to `nanobot-context.json` once, by `keep_settings`.
"""

from __future__ import annotations

import difflib
import json
import math
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from nanobot_context._core import (
    MAX_WHOLE,
    SummaryRun,
    format_value,
    mask_credentials,
    without_credentials,
)
from nanobot_context.arguments import check_instance, is_number
from nanobot_context.errors import InvalidArgumentError, SettingsError
from nanobot_context.files import replace_file

__all__ = [
    "SETTINGS_FILE",
    "LoadedSettings",
    "Settings",
    "load_settings",
    "load_usable_settings",
    "read_json_object",
]

SETTINGS_FILE = "nanobot-context.json"
ENV_PREFIX = "NANOBOT_CONTEXT_"

# The settings that may stand in nanobot's own file, where documents 000 and 001 have them, and
# nanobot's own keys that look like them.
NANOBOT_FIELDS = (
    "context_compression",
    "context_window_override",
    "tool_result_soft_limit",
    "tool_result_hard_limit",
    "context_reserve_ratio",
    "max_user_message_chars",
    "max_assistant_message_chars",
    "enable_history_summarization",
    "message_buffer_limit",
    "message_buffer_min",
    "compression_model",
    "summary_model",
)
NANOBOT_OWN_KEYS = frozenset(
    {"contextWindowTokens", "context_window_tokens", "contextBlockLimit", "context_block_limit"}
)


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a setting accepts, and how to read it from an environment variable."""

    expected: str
    accepts: Callable[[Any], bool]
    parse: Callable[[str], Any]


def _is_name(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.strip() != "")


def _is_store(value: Any) -> bool:
    schemes = ("sqlite:///", "redis://", "rediss://")
    if not isinstance(value, str):
        return value is None
    # In memory the sessions would end with the process.
    return value.startswith(schemes) and value.partition("?")[0] != "sqlite:///:memory:"


def _is_pattern(value: Any) -> bool:
    return isinstance(value, str) and value.strip() != ""


def _is_path(value: Any) -> bool:
    return _is_name(value) and "\0" not in (value or "")


_OFF = frozenset({"0", "false", "no", "off"})


def _parse_bool(text: str) -> bool:
    word = text.strip().lower()
    if word in {"1", "true", "yes", "on"}:
        return True
    if word in _OFF:
        return False
    raise ValueError(text)


def _parse_name(text: str) -> str | None:
    return None if text.strip().lower() in {"none", "null"} else text.strip()


def _is_prompt(value: Any) -> bool:
    if not isinstance(value, str):
        return value is None
    try:
        SummaryRun([], prompt=value)
    except InvalidArgumentError:
        return False
    return True


def _is_whole(value: Any, lowest: int = 0) -> bool:
    return isinstance(value, int) and is_number(value) and lowest <= value <= MAX_WHOLE


_SWITCH = _Kind("`true` or `false`", lambda value: isinstance(value, bool), _parse_bool)
_NAME = _Kind("a model name or null", _is_name, _parse_name)
_COUNT = _Kind("a non-negative integer up to 2^53", _is_whole, int)
_POSITIVE = _Kind("a positive integer up to 2^53", lambda value: _is_whole(value, 1), int)
_WINDOW = _Kind(
    "a non-negative integer up to 2^53",
    lambda value: value is None or _is_whole(value),
    lambda text: None if _parse_name(text) is None else int(text),
)
_WINDOWS = _Kind(
    "an object of models' names, or patterns of them, and windows in tokens",
    lambda value: (
        value is None
        or (
            isinstance(value, dict)
            and all(isinstance(name, str) and _is_whole(size, 1) for name, size in value.items())
        )
    ),
    lambda text: None if _parse_name(text) is None else json.loads(text),
)
_NAMES = _Kind(
    "a list of file names or patterns of them",
    lambda value: isinstance(value, list | tuple) and all(_is_pattern(name) for name in value),
    lambda text: [name.strip() for name in text.split(",") if _parse_name(name)],
)
_FORMAT = _Kind("`text` or `structured`", lambda value: value in ("text", "structured"), str.strip)
_PROMPT = _Kind(
    "a text with `{conversation_text}` and no unknown name in braces, or null",
    _is_prompt,
    _parse_name,
)
_SECONDS = _Kind(
    "a positive number of seconds", lambda value: is_number(value) and 0 < value < math.inf, float
)
_SHARE = _Kind(
    "a number above 0 and at most 1", lambda value: is_number(value) and 0 < value <= 1, float
)
_SHARE_OR_NONE = _Kind(
    "a number above 0 and at most 1, or null",
    lambda value: value is None or _SHARE.accepts(value),
    lambda text: None if _parse_name(text) is None else float(text),
)
_RESERVE = _Kind(
    "a number from 0 to below 1", lambda value: is_number(value) and 0 <= value < 1, float
)
_STORE = _Kind(
    "null or a URL that begins with `sqlite:///`, `redis://` or `rediss://`, not in memory",
    _is_store,
    _parse_name,
)
_PATH = _Kind("a file's path or null", _is_path, _parse_name)


def _setting(kind: _Kind, default: Any, **options: Any) -> Any:
    return field(default=default, metadata={"kind": kind}, **options)


def _matches(model: str, pattern: str) -> bool:
    name, pattern = model.lower(), pattern.lower()
    # `openrouter/qwen/qwen3-8b` is `qwen/qwen3-8b` and `qwen3-8b`, too.
    parts = name.split("/")
    return any(fnmatchcase("/".join(parts[at:]), pattern) for at in range(len(parts)))


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting, with its default.

    A value that cannot be used raises `SettingsError` at construction.
    """

    context_compression: bool = _setting(_SWITCH, True)
    """The main switch; `False` leaves nanobot exactly as it is."""
    context_window_override: int | None = _setting(_WINDOW, None)
    """Window in tokens for every model; `None` asks the model table. In nanobot 0 means that no
    window is known: nothing is cut ahead, overflows are still repaired."""
    context_windows: Mapping[str, int] | None = _setting(_WINDOWS, None, hash=False)
    """Windows of single models by name or pattern (`qwen3-*`), which stand above the one for every
    model; the first that matches counts."""
    tool_result_soft_limit: float = _setting(_SHARE, 0.3)
    """Share of the window that one tool result may fill before its middle goes."""
    tool_result_hard_limit: float = _setting(_SHARE, 0.5)
    """Share of the window that all tool results may fill together when a request has to be cut."""
    tool_schema_limit: float | None = _setting(_SHARE_OR_NONE, None)
    """Share of the window that tool schemas may fill before their descriptions are shortened and
    tools are left out: see `shorten_tools`. `None` leaves them as they are."""
    context_reserve_ratio: float = _setting(_RESERVE, 0.15)
    """Share of the window that is kept free for the answer."""
    compression_model: str | None = _setting(_NAME, None)
    """Model for summaries made while compressing; `None` is the current model."""
    reasoning_keep_chars: int = _setting(_COUNT, 2_000)
    """Longest `reasoning_content` kept outside the last round."""
    max_user_message_chars: int = _setting(_COUNT, 30_000)
    """Longest older user message left whole; 0 switches the limit off."""
    max_assistant_message_chars: int = _setting(_COUNT, 20_000)
    """The same for assistant messages."""
    emergency_ratio: float = _setting(_SHARE, 0.6)
    """Share of the window that an emergency compression stays under."""
    message_overhead_tokens: int = _setting(_COUNT, 0)
    """Tokens that the provider takes for each message beside those that are counted here. Where its
    usage is seen (nanobot, `wrap`, `serve`, `call_with_recovery`) it is learned, and the larger of
    both counts."""
    pinned: Sequence[str] = _setting(_NAMES, (), hash=False)
    """Files, by name or pattern (`AGENTS.md`, `docs/*.md`), whose last read stays whole when a
    request has to be cut. So does a message of the user with a line that begins with `#pin`."""
    enable_history_summarization: bool = _setting(_SWITCH, False)
    """Whether evicted history may be summarised by a model call."""
    message_buffer_limit: int = _setting(_POSITIVE, 50)
    """Messages in a session that trigger the static-buffer summary."""
    message_buffer_min: int = _setting(_COUNT, 10)
    """Messages that stay after it; fewer than `message_buffer_limit`."""
    summary_interval: int = _setting(_COUNT, 0)
    """Rounds after which the older ones are summarised, but for the newest two; 0 for never."""
    summary_format: str = _setting(_FORMAT, "text")
    """`text`, or `structured`: decisions, constraints, open questions, changed files, context."""
    summary_prompt: str | None = _setting(_PROMPT, None)
    """What the model is asked, with `{conversation_text}`; `None` for the package's own prompts."""
    summary_max_words: int | None = _setting(_WINDOW, None)
    """Words of a summary; `None` for 200, of Chinese 500 characters; 0 names no limit."""
    summary_model: str | None = _setting(_NAME, None)
    """Model for that summary; `None` is the current model."""
    summary_timeout_seconds: float = _setting(_SECONDS, 120.0)
    """How long the model may take for one. Nothing waits for it."""
    keep_rules: bool = _setting(_SWITCH, True)
    """Whether rules and facts that the user stated stay in the system prompt when nanobot leaves
    out the messages that they were said in."""
    archive: bool = _setting(_SWITCH, True)
    """Whether originals of shortened tool results are kept in nanobot's workspace, where
    `read_file` opens them."""
    archive_max_bytes: int = _setting(_POSITIVE, 67_108_864)
    """Bytes of them that are kept at most; the oldest go first."""
    cache_mb: int = _setting(_COUNT, 128)
    """Megabytes of memory that the caches of the process may take together."""
    session_store: str | None = _setting(_STORE, None, repr=False)
    """URL of the store that has nanobot's sessions, for several gateways at once: `sqlite:///path`,
    `redis://...` or `rediss://...`, which may hold a password. `None` leaves them in nanobot's
    files."""
    events: str | None = _setting(_PATH, None)
    """File that each event is written to as a line of JSON, see `nanobot_context.events`; relative
    to the folder of nanobot's config file. `None` writes none."""
    events_max_bytes: int = _setting(_POSITIVE, 5_242_880)
    """Size at which that file is put aside; three older ones are kept."""
    events_include_content: bool = _setting(_SWITCH, False)
    """Whether it holds texts of the conversation, too."""

    def __post_init__(self) -> None:
        for name, value in self.to_dict().items():
            _check(name, value, path=f"Settings.{name}")
        _check_buffer(self.to_dict(), "Settings.message_buffer_min")

    def window_of(self, model: str | None) -> tuple[int, str] | None:
        """Return the window that is set for `model`, and the setting that says so."""
        for pattern, size in (self.context_windows or {}).items():
            if _matches(model or "", pattern):
                return size, "context_windows"
        override = self.context_window_override
        return None if override is None else (override, "context_window_override")

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as a plain dict in the order of their definition."""
        return {item.name: getattr(self, item.name) for item in fields(self)}


_KINDS: dict[str, _Kind] = {item.name: item.metadata["kind"] for item in fields(Settings)}


_REPLACED = {
    "tool_result_max_chars": "tool_result_soft_limit",
    "soft_trim_head_lines": "tool_result_soft_limit",
    "soft_trim_tail_lines": "tool_result_soft_limit",
}
"""Names that nothing reads, and what decides in their place."""


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings together with where they were found.

    Attributes:
        settings: The settings in force.
        sources: For each setting that is not at its default, the key that set it.
        nanobot_config: nanobot's config file, whether it exists or not.
        settings_file: `nanobot-context.json` beside it, whether it exists or not.
        agent_defaults: `agents.defaults` of nanobot's file as it stands there.
        model_presets: `modelPresets` of nanobot's file (0.2.0 and later).
        problems: What `load_usable_settings` has left out, and what is wrong with each.
    """

    settings: Settings
    sources: dict[str, str] = field(default_factory=dict)
    nanobot_config: Path = Path()
    settings_file: Path = Path()
    agent_defaults: dict[str, Any] = field(default_factory=dict)
    model_presets: dict[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def load_settings(
    nanobot_config: Path | None = None, environ: Mapping[str, str] | None = None
) -> LoadedSettings:
    """Return the settings in force for the nanobot that uses the file `nanobot_config`.

    Reads two small files and the environment; writes nothing. A file that does not exist is no
    error.

    Args:
        nanobot_config: nanobot's config file; `None` is `~/.nanobot/config.json`.
        environ: The environment to read; `None` is the process's own.

    Raises:
        InvalidArgumentError: An argument is something else.
        SettingsError: A file is not a JSON object, a key is unknown or a value cannot be used. The
            message names the key's path (`agents.defaults.contextWindowOverride`).
    """
    check_instance("nanobot_config", nanobot_config, Path, optional=True)
    check_instance("environ", environ, Mapping, optional=True)
    return _load(nanobot_config, environ, None)


def load_usable_settings(nanobot_config: Path) -> LoadedSettings:
    """Return as `load_settings` does what can be used; one wrong setting switches off no other.

    It is as if it were not there, but a switch is off: what it was to be cannot be known.

    Raises:
        SettingsError: A file is not a JSON object, or the main switch is wrong and not known to be
            off.
    """
    problems: list[str] = []
    return replace(_load(nanobot_config, None, problems), problems=tuple(problems))


def _load(
    nanobot_config: Path | None, environ: Mapping[str, str] | None, problems: list[str] | None
) -> LoadedSettings:
    """Read all places; without `problems` a wrong setting raises, else it is noted there."""
    config = nanobot_config or Path.home() / ".nanobot" / "config.json"
    settings_file = config.parent / SETTINGS_FILE
    own = read_json_object(config)
    agent_defaults = _agent_defaults(own, config)
    variables = os.environ if environ is None else environ
    places = (
        _Place(
            {key: agent_defaults[key] for key in agent_defaults if key not in NANOBOT_OWN_KEYS},
            _json_names(NANOBOT_FIELDS),
            prefix=_NANOBOT_PREFIX,
            where=str(config),
            is_shared=True,
        ),
        _Place(read_json_object(settings_file), _json_names(_KINDS), where=str(settings_file)),
        _Place(
            {
                key: text
                for key, text in variables.items()
                if key.upper().startswith(ENV_PREFIX) and text.strip()
            },
            {env_name(name): name for name in _KINDS},
            where="the environment",
            is_shared=True,
            is_text=True,
        ),
    )
    found: dict[str, tuple[Any, str]] = {}
    for place in places:
        found |= place.read(problems)
    values = {name: value for name, (value, _) in found.items()}
    sources = {name: source for name, (_, source) in found.items()}
    buffer = ("message_buffer_min", "message_buffer_limit")
    try:
        path = next((sources[name] for name in buffer if name in sources), "")
        _check_buffer(Settings().to_dict() | values, path)
    except SettingsError as error:
        _leave_out(error, None, problems)
        for name in buffer:
            values.pop(name, None)
            sources.pop(name, None)
    return LoadedSettings(
        settings=replace(Settings(), **values),
        sources=sources,
        nanobot_config=config,
        settings_file=settings_file,
        agent_defaults=agent_defaults,
        model_presets=_model_presets(own),
    )


def keep_settings(loaded: LoadedSettings) -> tuple[str, ...]:
    """Copy settings from nanobot's file to `nanobot-context.json`, and return which.

    nanobot's next save drops them. What the other file says already is left as it is there.

    Raises:
        SettingsError: `nanobot-context.json` is not a JSON object.
        OSError: It cannot be written.
    """
    names = _json_names(NANOBOT_FIELDS)
    found = {
        names[key]: meant
        for key, value in loaded.agent_defaults.items()
        if key in names and _KINDS[names[key]].accepts(meant := _meant(names[key], value))
    }
    switch = loaded.sources.get("context_compression", "")
    if switch.startswith(_NANOBOT_PREFIX) and not loaded.settings.context_compression:
        found["context_compression"] = False  # under a name that is a slip, too
    own = read_json_object(loaded.settings_file) if found else {}
    known = {names.get(key) for key in own}
    copied = {camel_case(name): value for name, value in found.items() if name not in known}
    if copied:
        _write(loaded.settings_file, own | copied)
    return tuple(copied)


def keep_off(nanobot_config: Path, error: SettingsError) -> None:
    """Write to `nanobot-context.json` that protection is off where `error` is of nanobot's file.

    It says that the main switch cannot be used there, and nanobot's next save drops it.

    Raises:
        SettingsError: `nanobot-context.json` is not a JSON object.
        OSError: It cannot be written.
    """
    settings_file = nanobot_config.parent / SETTINGS_FILE
    own = read_json_object(settings_file)
    is_said = any(name in own for name in _json_names(["context_compression"]))
    if error.path.startswith(_NANOBOT_PREFIX) and not is_said:
        _write(settings_file, own | {"contextCompression": False})


def _write(file: Path, settings: Mapping[str, Any]) -> None:
    text = json.dumps(settings, ensure_ascii=False, indent=2) + "\n"
    # What a link names is written, not the link.
    replace_file(file.resolve(), text.encode("utf-8", "surrogatepass"))


def read_json_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in `path`; empty when there is no such file.

    Raises:
        SettingsError: The file cannot be read or holds something else.
    """
    try:
        # A byte order mark, as Windows editors write it, is no reason to refuse a file.
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsError(f"could not read `{path}`: {error.strerror}", path=str(path)) from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"`{path}` is not valid JSON: {error}", path=str(path)) from error
    if not isinstance(data, dict):
        raise SettingsError(
            f"`{path}` must hold a JSON object, got `{_show(data)}`", path=str(path)
        )
    return data


def env_name(name: str) -> str:
    """Return the environment variable of the setting `name`."""
    return ENV_PREFIX + name.removeprefix("context_").upper()


def camel_case(name: str) -> str:
    """Return a setting's name as it is written in JSON files."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _model_presets(own: Mapping[str, Any]) -> dict[str, Any]:
    presets = own.get("modelPresets", own.get("model_presets"))
    return dict(presets) if isinstance(presets, dict) else {}


def _agent_defaults(own: Mapping[str, Any], config: Path) -> dict[str, Any]:
    section: Any = own
    path: list[str] = []
    for key in ("agents", "defaults"):
        path.append(key)
        section = section.get(key, {})
        if not isinstance(section, dict):
            joined = ".".join(path)
            raise SettingsError(
                f"`{joined}` must be a JSON object, got `{_show(section)}` (in `{config}`)",
                path=joined,
            )
    return dict(section)


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _json_names(names: Collection[str]) -> dict[str, str]:
    """Return which setting a key of a JSON file is."""
    return {camel_case(name): name for name in names} | {name: name for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A place that settings are read from.

    Attributes:
        given: What stands there, by key.
        names: The setting of each key.
        where: What an error calls the place.
        prefix: What the path of a key begins with.
        is_shared: Whether keys of others stand there, too: only a likely slip is an error then.
        is_text: Whether values are texts, as those of variables.
    """

    given: Mapping[str, Any] = field(kw_only=False)
    names: Mapping[str, str] = field(kw_only=False)
    where: str
    prefix: str = ""
    is_shared: bool = False
    is_text: bool = False

    def read(self, problems: list[str] | None) -> dict[str, tuple[Any, str]]:
        """Return the value of each setting that is set there, and the path that set it."""
        found: dict[str, tuple[Any, str]] = {}
        instead: dict[str, tuple[Any, str]] = {}
        for key, value in self.given.items():
            name, path = self.names.get(key), self.prefix + key
            if name is None:
                written = key.upper() if self.is_text else key
                match = self._nearest(written)
                hint = f"\nhint: did you mean `{match}`?" if match else ""
                if replacement := _REPLACED.get(_snake_case(key.removeprefix(ENV_PREFIX))):
                    match = None
                    hint = f"\nhint: `{camel_case(replacement)}` has taken its place"
                # Who only looks is told of all that looks like ours.
                if hint or not self.is_shared or (self.is_text and problems is not None):
                    problem = f"`{path}` is not a setting (in `{self.where}`){hint}"
                    is_slip = match and difflib.get_close_matches(written, [match], 1, _SLIP)
                    is_meant = _is_off(value) or (is_slip and value is not True)
                    likely = self.names[match] if match and is_meant else None
                    error = SettingsError(problem, path=path)
                    instead |= _leave_out(error, likely, problems, _is_off(value))
                continue
            try:
                if name in found:
                    other = found[name][1]
                    problem = f"`{path}` and `{other}` set the same thing (in `{self.where}`)"
                    raise SettingsError(problem, path=path)
                found[name] = self._parsed(name, value, path), path
            except SettingsError as error:
                found.pop(name, None)
                found |= _leave_out(error, name, problems)
        return instead | found

    def _nearest(self, key: str) -> str | None:
        """Return the setting's key that a wrong one is likely to be."""
        # What all variables begin with makes none like another.
        prefix, cutoff = "", 0.85 if self.is_shared else 0.6
        if self.is_text:
            prefix, cutoff = ENV_PREFIX, 0.75
        names = [name.removeprefix(prefix) for name in self.names]
        near = difflib.get_close_matches(key.removeprefix(prefix), names, 1, cutoff)
        return prefix + near[0] if near else None

    def _parsed(self, name: str, value: Any, path: str) -> Any:
        if self.is_text:
            try:
                value = _KINDS[name].parse(value)
            except ValueError:
                raise _invalid(name, value, path, self.where) from None
        value = _meant(name, value)
        _check(name, value, path, self.where)
        return value


def _meant(name: str, value: Any) -> Any:
    """Return `value`, or the switch that was written otherwise: "false" is no reason to go on."""
    if name == "context_compression":
        with suppress(ValueError):
            return _parse_bool(str(value))
    if _KINDS[name] is _SWITCH and isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower(), value)
    return value


# Where nanobot's own file has settings.
_NANOBOT_PREFIX = "agents.defaults."
# A key so like a setting's is that with a slip of the finger: `contextCompresion`.
_SLIP = 0.95


def _is_off(value: Any) -> bool:
    """Return whether a value switches something off: under a name that is wrong that is meant."""
    return str(value).strip().lower() in _OFF


def _leave_out(
    error: SettingsError, name: str | None, problems: list[str] | None, is_off: bool = False
) -> dict[str, tuple[Any, str]]:
    """Note what is wrong; return what is in force in place of the setting `name`, if known which.

    Raises:
        SettingsError: Nobody asked for what is usable, or the main switch is wrong and what it was
            to be is not known.
    """
    if problems is None or (name == "context_compression" and not is_off):
        raise error
    problems.append(str(error))
    return {name: (False, error.path)} if name and _KINDS[name] is _SWITCH else {}


def _check(name: str, value: Any, path: str, where: str = "") -> None:
    if not _KINDS[name].accepts(value):
        raise _invalid(name, value, path, where)


def _check_buffer(values: Mapping[str, Any], path: str) -> None:
    keep, limit = values["message_buffer_min"], values["message_buffer_limit"]
    if keep >= limit:
        raise SettingsError(
            f"`{path}` leaves nothing to summarise: {keep} messages stay of {limit}\n"
            "hint: `messageBufferMin` must be below `messageBufferLimit`",
            path=path,
        )


def _invalid(name: str, value: Any, path: str, where: str) -> SettingsError:
    kind, place = _KINDS[name], f" (in `{where}`)" if where else ""
    shown = _show_store(value) if kind is _STORE else _show(value)
    return SettingsError(f"`{path}` must be {kind.expected}, got `{shown}`{place}", path=path)


def _show(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=format_value)
    except (TypeError, ValueError, RecursionError):
        text = format_value(value)
    text = mask_credentials(text)
    return text if len(text) <= 80 else text[:77] + "..."


def _show_store(value: Any) -> str:
    # Whatever stands there may be a password, or have one.
    return without_credentials(value) if isinstance(value, str) else type(value).__name__
