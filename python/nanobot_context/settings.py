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
saves (`nanobot onboard`), so a setting that must survive belongs in `nanobot-context.json`.
"""

from __future__ import annotations

import difflib
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from nanobot_context._core import (
    MAX_WHOLE,
    format_value,
    mask_credentials,
    without_credentials,
)
from nanobot_context.arguments import check_instance
from nanobot_context.errors import SettingsError

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

# The settings that may stand in nanobot's own file, and nanobot's own keys that look like them.
NANOBOT_FIELDS = (
    "context_compression",
    "context_window_override",
    "enable_history_summarization",
    "message_buffer_limit",
    "message_buffer_min",
    "summary_model",
)
NANOBOT_OWN_KEYS = frozenset(
    {"contextWindowTokens", "context_window_tokens", "contextBlockLimit", "context_block_limit"}
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting, with the defaults of the plans it comes from.

    A value that cannot be used raises `SettingsError` at construction.

    Attributes:
        context_compression: The main switch; `False` leaves nanobot exactly as it is.
        context_window_override: Window in tokens for every model; `None` asks the model table. In
            nanobot 0 means that no window is known: nothing is cut ahead, overflows are still
            repaired.
        tool_result_soft_limit: Share of the window that one tool result may fill before its
            middle goes.
        tool_result_hard_limit: Share of the window that all tool results may fill together when a
            request has to be cut.
        context_reserve_ratio: Share of the window that is kept free for the answer.
        compression_model: Model for summaries made while compressing; `None` is the current model.
        tool_result_max_chars: Most characters of a result that is trimmed by lines.
        soft_trim_head_lines: Lines kept at the start of a trimmed result.
        soft_trim_tail_lines: Lines kept at the end of a trimmed result.
        reasoning_keep_chars: Longest `reasoning_content` kept outside the last round.
        max_user_message_chars: Longest older user message left whole; 0 switches the limit off.
        max_assistant_message_chars: The same for assistant messages.
        emergency_ratio: Share of the window that an emergency compression stays under.
        enable_history_summarization: Whether evicted history may be summarised by a model call.
        message_buffer_limit: Messages in a session that trigger the static-buffer summary.
        message_buffer_min: Messages that stay after it; fewer than `message_buffer_limit`.
        summary_model: Model for that summary; `None` is the current model.
        summary_interval: Rounds between two rolling summaries.
        summary_timeout_seconds: How long the model may take for one. Nothing waits for it.
        archive: Whether originals of shortened tool results are kept in nanobot's workspace, where
            `read_file` opens them.
        archive_max_bytes: Bytes of them that are kept at most; the oldest go first.
        cache_mb: Megabytes of memory that the caches of the process may take together.
        session_store: URL of the store that has nanobot's sessions, for several gateways at once:
            `sqlite:///path`, `redis://...` or `rediss://...`, which may hold a password. `None`
            leaves them in nanobot's files.
        events: File that each event is written to as a line of JSON, see `nanobot_context.events`;
            relative to the folder of nanobot's config file. `None` writes none.
        events_max_bytes: Size at which that file is put aside; three older ones are kept.
        events_include_content: Whether it holds texts of the conversation, too.
    """

    context_compression: bool = True
    context_window_override: int | None = None
    tool_result_soft_limit: float = 0.3
    tool_result_hard_limit: float = 0.5
    context_reserve_ratio: float = 0.15
    compression_model: str | None = None
    tool_result_max_chars: int = 15_000
    soft_trim_head_lines: int = 20
    soft_trim_tail_lines: int = 10
    reasoning_keep_chars: int = 2_000
    max_user_message_chars: int = 30_000
    max_assistant_message_chars: int = 20_000
    emergency_ratio: float = 0.6
    enable_history_summarization: bool = False
    message_buffer_limit: int = 50
    message_buffer_min: int = 10
    summary_model: str | None = None
    summary_interval: int = 10
    summary_timeout_seconds: float = 120.0
    archive: bool = True
    archive_max_bytes: int = 67_108_864
    cache_mb: int = 128
    session_store: str | None = field(default=None, repr=False)
    events: str | None = None
    events_max_bytes: int = 5_242_880
    events_include_content: bool = False

    def __post_init__(self) -> None:
        for name in _RULES:
            _check(name, getattr(self, name), path=f"Settings.{name}")
        if self.message_buffer_min >= self.message_buffer_limit:
            path = "Settings.message_buffer_min"
            raise SettingsError(
                f"`{path}` must be below `message_buffer_limit` ({self.message_buffer_limit}), "
                f"got `{self.message_buffer_min}`",
                path=path,
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as a plain dict in the order of their definition."""
        return {item.name: getattr(self, item.name) for item in fields(self)}


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings together with where they were found.

    Attributes:
        settings: The settings in force.
        sources: For each setting that is not at its default, the key that set it.
        nanobot_config: nanobot's config file, whether it exists or not.
        settings_file: `nanobot-context.json` beside it, whether it exists or not.
        agent_defaults: `agents.defaults` of nanobot's file as it stands there.
        problems: What `load_usable_settings` has left out, and what is wrong with each.
    """

    settings: Settings
    sources: dict[str, str] = field(default_factory=dict)
    nanobot_config: Path = Path()
    settings_file: Path = Path()
    agent_defaults: dict[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Rule:
    """What a setting accepts, and how to read it from an environment variable."""

    expected: str
    accepts: Callable[[Any], bool]
    parse: Callable[[str], Any]


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_name(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.strip() != "")


def _is_store(value: Any) -> bool:
    schemes = ("sqlite:///", "redis://", "rediss://")
    if not isinstance(value, str):
        return value is None
    # In memory the sessions would end with the process.
    return value.startswith(schemes) and value.partition("?")[0] != "sqlite:///:memory:"


def _is_path(value: Any) -> bool:
    return _is_name(value) and "\0" not in (value or "")


def _parse_bool(text: str) -> bool:
    word = text.strip().lower()
    if word in {"1", "true", "yes", "on"}:
        return True
    if word in {"0", "false", "no", "off"}:
        return False
    raise ValueError(text)


def _parse_optional_int(text: str) -> int | None:
    return None if text.strip().lower() in {"none", "null"} else int(text)


def _parse_name(text: str) -> str | None:
    return None if text.strip().lower() in {"none", "null"} else text.strip()


def _is_whole(value: Any, lowest: int = 0) -> bool:
    return _is_int(value) and lowest <= value <= MAX_WHOLE


_SWITCH = _Rule("`true` or `false`", lambda value: isinstance(value, bool), _parse_bool)
_NAME = _Rule("a model name or null", _is_name, _parse_name)
_COUNT = _Rule("a non-negative integer up to 2^53", _is_whole, int)
_POSITIVE = _Rule("a positive integer up to 2^53", lambda value: _is_whole(value, 1), int)
_WINDOW = _Rule(
    "a non-negative integer up to 2^53",
    lambda value: value is None or _is_whole(value),
    _parse_optional_int,
)
_SECONDS = _Rule(
    "a positive number of seconds", lambda value: _is_number(value) and 0 < value < math.inf, float
)
_SHARE = _Rule(
    "a number above 0 and at most 1", lambda value: _is_number(value) and 0 < value <= 1, float
)
_RESERVE = _Rule(
    "a number from 0 to below 1", lambda value: _is_number(value) and 0 <= value < 1, float
)

_STORE = _Rule(
    "null or a URL that begins with `sqlite:///`, `redis://` or `rediss://`, not in memory",
    _is_store,
    _parse_name,
)

_PATH = _Rule("a file's path or null", _is_path, _parse_name)

_RULES: dict[str, _Rule] = {
    "context_compression": _SWITCH,
    "context_window_override": _WINDOW,
    "tool_result_soft_limit": _SHARE,
    "tool_result_hard_limit": _SHARE,
    "context_reserve_ratio": _RESERVE,
    "compression_model": _NAME,
    "tool_result_max_chars": _POSITIVE,
    "soft_trim_head_lines": _COUNT,
    "soft_trim_tail_lines": _COUNT,
    "reasoning_keep_chars": _COUNT,
    "max_user_message_chars": _COUNT,
    "max_assistant_message_chars": _COUNT,
    "emergency_ratio": _SHARE,
    "enable_history_summarization": _SWITCH,
    "message_buffer_limit": _POSITIVE,
    "message_buffer_min": _COUNT,
    "summary_model": _NAME,
    "summary_interval": _POSITIVE,
    "summary_timeout_seconds": _SECONDS,
    "archive": _SWITCH,
    "archive_max_bytes": _POSITIVE,
    "cache_mb": _COUNT,
    "session_store": _STORE,
    "events": _PATH,
    "events_max_bytes": _POSITIVE,
    "events_include_content": _SWITCH,
}


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
        SettingsError: A file is no JSON object, a key is unknown or a value cannot be used. The
            message names the key's path (`agents.defaults.contextWindowOverride`).
    """
    check_instance("nanobot_config", nanobot_config, Path, optional=True)
    check_instance("environ", environ, Mapping, optional=True)
    return _load(nanobot_config, environ, _Strict())


def load_usable_settings(nanobot_config: Path) -> LoadedSettings:
    """Return as `load_settings` does what can be used; one wrong setting switches off no other.

    It is as if it were not there, but a switch is off: what it was to be cannot be known.

    Raises:
        SettingsError: A file is no JSON object, or the main switch is wrong.
    """
    tolerant = _Tolerant()
    return replace(_load(nanobot_config, None, tolerant), problems=tuple(tolerant.problems))


class _Strict:
    """Refuses all settings for one that is wrong."""

    def wrong(self, error: SettingsError, name: str | None) -> dict[str, tuple[Any, str]]:
        """Return what is in force in place of the setting `name`, if it is known which one."""
        raise error


class _Tolerant(_Strict):
    """Leaves out a setting that is wrong."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def wrong(self, error: SettingsError, name: str | None) -> dict[str, tuple[Any, str]]:
        if name == "context_compression":
            raise error
        self.problems.append(str(error))
        return {name: (False, error.path)} if name and _RULES[name] is _SWITCH else {}


def _load(
    nanobot_config: Path | None, environ: Mapping[str, str] | None, judge: _Strict
) -> LoadedSettings:
    config = nanobot_config or Path.home() / ".nanobot" / "config.json"
    settings_file = config.parent / SETTINGS_FILE
    agent_defaults = _agent_defaults(config)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for found in (
        _from_agent_defaults(agent_defaults, config, judge),
        _from_settings_file(settings_file, judge),
        _from_environ(os.environ if environ is None else environ, judge),
    ):
        for name, (value, source) in found.items():
            values[name] = value
            sources[name] = source
    try:
        _check_buffer(values, sources)
    except SettingsError as error:
        judge.wrong(error, None)
        for name in ("message_buffer_min", "message_buffer_limit"):
            values.pop(name, None)
            sources.pop(name, None)
    return LoadedSettings(
        settings=replace(Settings(), **values),
        sources=sources,
        nanobot_config=config,
        settings_file=settings_file,
        agent_defaults=agent_defaults,
    )


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


def _agent_defaults(config: Path) -> dict[str, Any]:
    section: Any = read_json_object(config)
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


def _from_agent_defaults(
    section: Mapping[str, Any], config: Path, judge: _Strict
) -> dict[str, tuple[Any, str]]:
    # nanobot's own keys stand here too, so only what is very close to one of ours can be a mistake.
    ours = {camel_case(name): name for name in NANOBOT_FIELDS}
    ours |= {name: name for name in NANOBOT_FIELDS}
    found: dict[str, Any] = {}
    instead: dict[str, tuple[Any, str]] = {}
    for key, value in section.items():
        if key in ours:
            found[key] = value
        elif key not in NANOBOT_OWN_KEYS and (match := _closest(key, ours, cutoff=0.85)):
            error = _unknown(f"agents.defaults.{key}", match, where=str(config))
            instead |= judge.wrong(error, ours[match])
    return instead | _accepted(
        found, ours, prefix="agents.defaults.", where=str(config), judge=judge
    )


def _from_settings_file(path: Path, judge: _Strict) -> dict[str, tuple[Any, str]]:
    known = {camel_case(name): name for name in _RULES} | {name: name for name in _RULES}
    data = read_json_object(path)
    instead: dict[str, tuple[Any, str]] = {}
    for key in [key for key in data if key not in known]:
        match = _closest(key, known)
        error = _unknown(key, match, where=str(path))
        instead |= judge.wrong(error, known[match] if match else None)
        del data[key]
    return instead | _accepted(data, known, prefix="", where=str(path), judge=judge)


def _from_environ(environ: Mapping[str, str], judge: _Strict) -> dict[str, tuple[Any, str]]:
    known = {env_name(name): name for name in _RULES}
    found: dict[str, tuple[Any, str]] = {}
    for key, text in environ.items():
        if not key.startswith(ENV_PREFIX) or text.strip() == "":
            continue
        name = known.get(key)
        if name is None:
            # The prefix is shared with variables that are no settings: only a likely slip is an
            # error.
            if match := _closest(key, known, cutoff=0.85):
                error = _unknown(key, match, where="the environment")
                found = judge.wrong(error, known[match]) | found
            continue
        try:
            found[name] = (_parsed(name, text, path=key), key)
        except SettingsError as error:
            found |= judge.wrong(error, name)
    return found


def _parsed(name: str, text: str, *, path: str) -> Any:
    rule = _RULES[name]
    try:
        value = rule.parse(text)
    except ValueError:
        raise _invalid(rule, text, path=path) from None
    _check(name, value, path=path)
    return value


def _accepted(
    data: Mapping[str, Any], known: Mapping[str, str], *, prefix: str, where: str, judge: _Strict
) -> dict[str, tuple[Any, str]]:
    found: dict[str, tuple[Any, str]] = {}
    for key, value in data.items():
        name, path = known[key], prefix + key
        try:
            if name in found:
                raise SettingsError(
                    f"`{path}` and `{found[name][1]}` set the same thing (in `{where}`)", path=path
                )
            _check(name, value, path=path, where=where)
            found[name] = (value, path)
        except SettingsError as error:
            found.pop(name, None)
            found |= judge.wrong(error, name)
    return found


def _check(name: str, value: Any, *, path: str, where: str = "") -> None:
    rule = _RULES[name]
    if not rule.accepts(value):
        raise _invalid(rule, value, path=path, where=where)


def _check_buffer(values: Mapping[str, Any], sources: Mapping[str, str]) -> None:
    defaults = Settings()
    keep = values.get("message_buffer_min", defaults.message_buffer_min)
    limit = values.get("message_buffer_limit", defaults.message_buffer_limit)
    if keep >= limit:
        path = sources.get("message_buffer_min") or sources["message_buffer_limit"]
        raise SettingsError(
            f"`{path}` leaves nothing to summarise: {keep} messages stay of {limit}\n"
            "hint: `messageBufferMin` must be below `messageBufferLimit`",
            path=path,
        )


def _invalid(rule: _Rule, value: Any, *, path: str, where: str = "") -> SettingsError:
    place = f" (in `{where}`)" if where else ""
    shown = _show_store(value) if rule is _STORE else _show(value)
    return SettingsError(f"`{path}` must be {rule.expected}, got `{shown}`{place}", path=path)


def _unknown(path: str, match: str | None, *, where: str) -> SettingsError:
    hint = f"\nhint: did you mean `{match}`?" if match else ""
    return SettingsError(f"`{path}` is not a setting (in `{where}`){hint}", path=path)


def _closest(key: str, known: Mapping[str, str], *, cutoff: float = 0.6) -> str | None:
    matches = difflib.get_close_matches(key, known, n=1, cutoff=cutoff)
    return matches[0] if matches else None


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
