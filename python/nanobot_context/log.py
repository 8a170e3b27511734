"""Logs through loguru, as nanobot does; without loguru through `logging`.

Messages are written in loguru's style, with `{}`. What happens in every call is only logged
through `logging.getLogger("nanobot_context")` at DEBUG, because `nanobot agent` shows loguru's
lines between the answers.
"""

from __future__ import annotations

import importlib
import logging
from typing import Any

from nanobot_context.words import shown


def mute() -> None:
    """Log nothing any more: a command prints what there is to say."""
    logging.getLogger("nanobot_context").addHandler(logging.NullHandler())
    if (logger := _loguru()) is not None:
        logger.disable("nanobot_context")


def info(message: str, *args: object) -> None:
    _write("INFO", message, args)


def warning(message: str, *args: object) -> None:
    _write("WARNING", message, args)


def error(message: str, *args: object) -> None:
    _write("ERROR", message, args)


def exception(message: str, *args: object) -> None:
    """Log an error together with the exception that is being handled."""
    _write("ERROR", message, args, with_exception=True)


def _write(
    level: str, message: str, args: tuple[object, ...], *, with_exception: bool = False
) -> None:
    text = "nanobot-context: " + shown(message.format(*args))
    logger = _loguru()
    if logger is None:
        fallback = logging.getLogger("nanobot_context")
        fallback.log(logging.getLevelName(level), "%s", text, exc_info=with_exception)
        return
    # `text` is an argument, not the format: a `<` or `{` in it must not be read as loguru's markup.
    logger.opt(depth=2, exception=with_exception).log(level, "{}", text)


def _loguru() -> Any:
    """Return loguru's logger; `None` where there is no loguru."""
    try:
        return importlib.import_module("loguru").logger
    except ImportError:
        return None
