"""Keeps an LLM conversation inside the model's context window, without losing what matters.

Importing this package patches nothing, reads no file and loads no vocabulary; `install()` protects
the nanobot of this process, and the functions serve any loop that speaks OpenAI-style messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nanobot_context import _core
from nanobot_context._core import (
    Cut,
    Fitted,
    Lost,
    Overflow,
    Receipt,
    __version__,
    get_context_window,
    get_output_limit,
    trim_tool_result,
)
from nanobot_context.errors import (
    ConflictError,
    ContextOverflowError,
    ConversationFileError,
    InvalidArgumentError,
    InvalidInputError,
    InvalidMessageError,
    NanobotContextError,
    SessionExistsError,
    SessionGoneError,
    SessionNotFoundError,
    SessionStoreError,
    SettingsError,
    StoreAccessError,
    StoreClosedError,
    StoreDataError,
    StoreFullError,
    StoreUnavailableError,
)
from nanobot_context.overflow import Usage, detect_overflow
from nanobot_context.own_form import (
    Compressor,
    compress_messages,
    count_tokens,
    emergency_compress,
    find_last_user_index,
    find_safe_cut_point,
    fit_messages,
    fits,
)
from nanobot_context.types import Message, Priority

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nanobot_context.archive import Archive
    from nanobot_context.calls import call_with_recovery, call_with_recovery_sync
    from nanobot_context.events import subscribe
    from nanobot_context.installer import install, status, uninstall
    from nanobot_context.session import Session
    from nanobot_context.sessions import AsyncSessionService, SessionEvent, SessionService
    from nanobot_context.settings import Settings, load_settings
    from nanobot_context.summary import Summarizer, Summary
    from nanobot_context.wire.wrapped import wrap

__all__ = [
    "Archive",
    "AsyncSessionService",
    "Compressor",
    "ConflictError",
    "ContextOverflowError",
    "ConversationFileError",
    "Cut",
    "Fitted",
    "InvalidArgumentError",
    "InvalidInputError",
    "InvalidMessageError",
    "Lost",
    "Message",
    "NanobotContextError",
    "Overflow",
    "Priority",
    "Receipt",
    "Session",
    "SessionEvent",
    "SessionExistsError",
    "SessionGoneError",
    "SessionNotFoundError",
    "SessionService",
    "SessionStoreError",
    "Settings",
    "SettingsError",
    "StoreAccessError",
    "StoreClosedError",
    "StoreDataError",
    "StoreFullError",
    "StoreUnavailableError",
    "Summarizer",
    "Summary",
    "Usage",
    "__version__",
    "call_with_recovery",
    "call_with_recovery_sync",
    "classify_message",
    "compress_messages",
    "count_tokens",
    "detect_overflow",
    "emergency_compress",
    "find_last_user_index",
    "find_safe_cut_point",
    "fit_messages",
    "fits",
    "get_context_window",
    "get_output_limit",
    "install",
    "load_settings",
    "status",
    "subscribe",
    "trim_tool_result",
    "uninstall",
    "wrap",
]

# Imported when they are first used: they bring in modules that counting does not need.
_LAZY = {
    "Archive": "nanobot_context.archive",
    "AsyncSessionService": "nanobot_context.sessions",
    "SessionEvent": "nanobot_context.sessions",
    "Session": "nanobot_context.session",
    "SessionService": "nanobot_context.sessions",
    "Settings": "nanobot_context.settings",
    "Summarizer": "nanobot_context.summary",
    "Summary": "nanobot_context.summary",
    "call_with_recovery": "nanobot_context.calls",
    "call_with_recovery_sync": "nanobot_context.calls",
    "load_settings": "nanobot_context.settings",
    "install": "nanobot_context.installer",
    "status": "nanobot_context.installer",
    "subscribe": "nanobot_context.events",
    "uninstall": "nanobot_context.installer",
    "wrap": "nanobot_context.wire.wrapped",
}

# Modules that are used by their names without an import of their own: `nanobot_context.caches`.
_MODULES = (
    *("caches", "conversations", "errors", "events", "history", "openai_agents", "replay"),
    *("report", "responses", "sessions", "settings", "summary", "tools"),
)


def classify_message(message: Mapping[str, Any], call: Mapping[str, Any] | None = None) -> Priority:
    """Return how much `message` matters, by rules alone; takes microseconds.

    `call` is the tool call that a result answers, as in `tool_calls`: its tool and command say what
    the result is of.

    Raises:
        InvalidMessageError: `message` is not a dict with a known role, or `call` not a dict.
    """
    return Priority(_core.classify_message(message, call))


def __getattr__(name: str) -> Any:
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
