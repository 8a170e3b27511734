"""Shares lessons, counts and windows in this process for requests that are not nanobot's.

It is kept in the file that the nanobot of this user keeps its lessons in, where there is one;
else a server keeps it in a folder of the user's.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import replace

from nanobot_context import log
from nanobot_context.guard.configured import IN_CODE, ConfiguredWindows
from nanobot_context.guard.counters import Counters
from nanobot_context.guard.limits import ProviderLimits, learned_file
from nanobot_context.guard.record_file import record_file
from nanobot_context.guard.state_file import LEARNED, OWN_REQUESTS, user_folder
from nanobot_context.guard.telemetry import Telemetry
from nanobot_context.guard.windows import WindowResolver
from nanobot_context.host.config import nanobot_config_path
from nanobot_context.settings import LoadedSettings, Settings

WAYS = ("call_with_recovery", "wrap", "serve")
"""What records of requests that are not nanobot's name in place of a session."""


@functools.cache
def _shared(is_server: bool) -> WindowResolver:
    config = nanobot_config_path()
    if config.parent.is_dir():
        return _made(ProviderLimits.load(learned_file(config), later=_later))
    if is_server:
        folder = user_folder()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            log.warning("what providers teach is forgotten at the end: {}", error)
        else:
            return _made(ProviderLimits.load(folder / LEARNED, later=_later))
    return _made(ProviderLimits())


def _later(save: Callable[[], None]) -> None:
    shared_telemetry().counters.also(save)


def _made(learned: ProviderLimits) -> WindowResolver:
    # Of a script's own requests each token is wanted.
    return WindowResolver(LoadedSettings(Settings()), learned=learned, most_unwritten=sys.maxsize)


@functools.cache
def shared_telemetry() -> Telemetry:
    """Return the telemetry for requests that are not nanobot's."""
    config = nanobot_config_path()
    is_there = config.parent.is_dir()
    return Telemetry(Counters(requests=record_file(config, OWN_REQUESTS) if is_there else None))


def shared_windows(
    settings: Settings,
    window_tokens: int | None = None,
    *,
    is_named: bool = True,
    is_server: bool = False,
) -> WindowResolver:
    """Return the resolver of windows for `settings`, with the lessons of this process.

    nanobot's own config file says nothing here.

    Args:
        window_tokens: The window that the caller gives; 0 if it knows none.
        is_named: Whether it is known whom requests go to; else nothing is learned for the next.
        is_server: Whether `serve` asks: it is given `--window`, and saves lessons without a
            nanobot, too. A script alone makes no folder.
    """
    shown = IN_CODE.format("settings")
    if window_tokens is not None:
        settings = replace(settings, context_window_override=window_tokens, context_windows=None)
        shown = "`--window`" if is_server else IN_CODE.format("context_window")
    sources = {"context_window_override": shown}
    shared = _shared(is_server) if is_named else _made(ProviderLimits())
    windows = replace(shared, loaded=LoadedSettings(settings, sources))
    windows.configured = ConfiguredWindows(_defaults=())
    return windows


def forget() -> None:
    """Drop the lessons in memory; the next use reads the file again."""
    _shared.cache_clear()
    shared_telemetry().counters.close()
    shared_telemetry.cache_clear()
