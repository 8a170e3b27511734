"""Every setting, with its default, what it accepts and what it means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any

from nanobot_context.errors import SettingsError
from nanobot_context.settings.kinds import (
    COUNT,
    FORMAT,
    NAME,
    NAMES,
    PATH,
    POSITIVE,
    PROMPT,
    RESERVE,
    SECONDS,
    SHARE,
    SHARE_OR_NONE,
    STORE,
    SWITCH,
    WINDOW,
    WINDOWS,
    Kind,
    check,
)


def _setting(kind: Kind, default: Any, **options: Any) -> Any:
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

    context_compression: bool = _setting(SWITCH, True)
    """The main switch; `False` leaves nanobot exactly as it is."""
    context_window_override: int | None = _setting(WINDOW, None)
    """Window in tokens for every model; `None` asks the model table. In nanobot 0 means that no
    window is known: nothing is cut ahead, overflows are still repaired."""
    context_windows: Mapping[str, int] | None = _setting(WINDOWS, None, hash=False)
    """Windows of single models by name or pattern (`qwen3-*`), which stand above the one for every
    model; the first that matches counts."""
    tool_result_soft_limit: float = _setting(SHARE, 0.3)
    """Share of the window that one tool result may fill before its middle goes."""
    tool_result_hard_limit: float = _setting(SHARE, 0.5)
    """Share of the window that all tool results may fill together when a request has to be cut."""
    tool_schema_limit: float | None = _setting(SHARE_OR_NONE, None)
    """Share of the window that tool schemas may fill before their descriptions are shortened and
    tools are left out: see `shorten_tools`. `None` leaves them as they are."""
    context_reserve_ratio: float = _setting(RESERVE, 0.15)
    """Share of the window that is kept free for the answer."""
    compression_model: str | None = _setting(NAME, None)
    """Model for summaries made while compressing; `None` is the current model."""
    reasoning_keep_chars: int = _setting(COUNT, 2_000)
    """Longest `reasoning_content` kept outside the last round."""
    max_user_message_chars: int = _setting(COUNT, 30_000)
    """Longest older user message left whole; 0 switches the limit off."""
    max_assistant_message_chars: int = _setting(COUNT, 20_000)
    """The same for assistant messages."""
    emergency_ratio: float = _setting(SHARE, 0.6)
    """Share of the window that an emergency compression stays under."""
    message_overhead_tokens: int = _setting(COUNT, 0)
    """Tokens that the provider takes for each message beside those that are counted here. Where its
    usage is seen (nanobot, `wrap`, `serve`, `call_with_recovery`) it is learned, and the larger of
    both counts."""
    pinned: Sequence[str] = _setting(NAMES, (), hash=False)
    """Files, by name or pattern (`AGENTS.md`, `docs/*.md`), whose last read stays whole when a
    request has to be cut. So does a message of the user with a line that begins with `#pin`."""
    enable_history_summarization: bool = _setting(SWITCH, False)
    """Whether evicted history may be summarised by a model call."""
    message_buffer_limit: int = _setting(POSITIVE, 50)
    """Messages in a session that trigger the static-buffer summary."""
    message_buffer_min: int = _setting(COUNT, 10)
    """Messages that stay after it; fewer than `message_buffer_limit`."""
    summary_interval: int = _setting(COUNT, 0)
    """Rounds after which the older ones are summarised, but for the newest two; 0 for never."""
    summary_format: str = _setting(FORMAT, "text")
    """`text`, or `structured`: decisions, constraints, open questions, changed files, context."""
    summary_prompt: str | None = _setting(PROMPT, None)
    """What the model is asked, with `{conversation_text}`; `None` for the package's own prompts."""
    summary_max_words: int | None = _setting(WINDOW, None)
    """Words of a summary; `None` for 200, of Chinese 500 characters; 0 names no limit."""
    summary_model: str | None = _setting(NAME, None)
    """Model for that summary; `None` is the current model."""
    summary_timeout_seconds: float = _setting(SECONDS, 120.0)
    """How long the model may take for one. Nothing waits for it."""
    keep_rules: bool = _setting(SWITCH, True)
    """Whether rules and facts that the user stated stay in the system prompt when nanobot leaves
    out the messages that they were said in."""
    archive: bool = _setting(SWITCH, True)
    """Whether originals of shortened tool results are kept in nanobot's workspace, where
    `read_file` opens them."""
    archive_max_bytes: int = _setting(POSITIVE, 67_108_864)
    """Bytes of them that are kept at most; the oldest go first."""
    cache_mb: int = _setting(COUNT, 128)
    """Megabytes of memory that the caches of the process may take together."""
    session_store: str | None = _setting(STORE, None, repr=False)
    """URL of the store that has nanobot's sessions, for several gateways at once: `sqlite:///path`,
    `redis://...` or `rediss://...`, which may hold a password. `None` leaves them in nanobot's
    files."""
    events: str | None = _setting(PATH, None)
    """File that each event is written to as a line of JSON, see `nanobot_context.events`; relative
    to the folder of nanobot's config file. `None` writes none."""
    events_max_bytes: int = _setting(POSITIVE, 5_242_880)
    """Size at which that file is put aside; three older ones are kept."""
    events_include_content: bool = _setting(SWITCH, False)
    """Whether it holds texts of the conversation, too."""

    def __post_init__(self) -> None:
        for name, value in self.to_dict().items():
            check(KINDS[name], value, path=f"Settings.{name}")
        check_buffer(self.to_dict(), "Settings.message_buffer_min")

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


KINDS: dict[str, Kind] = {item.name: item.metadata["kind"] for item in fields(Settings)}


def check_buffer(values: Mapping[str, Any], path: str) -> None:
    keep, limit = values["message_buffer_min"], values["message_buffer_limit"]
    if keep >= limit:
        raise SettingsError(
            f"`{path}` leaves nothing to summarise: {keep} messages stay of {limit}\n"
            "hint: `messageBufferMin` must be below `messageBufferLimit`",
            path=path,
        )
