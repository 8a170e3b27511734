"""The fuse: what fails here costs a line in the log, never a call or an answer of nanobot's."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TypeVar

from nanobot_context.guard import log

__all__ = ["NOT_OURS", "blown", "fused", "reset"]

T = TypeVar("T")

NOT_OURS = (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError)
"""What ends a program or a task, and must. Everything else is caught: a panic of the core is a
`BaseException`, too."""

_logged: set[tuple[str, type[BaseException]]] = set()


def fused(what: str, run: Callable[[], T], otherwise: T) -> T:
    """Return what `run` returns, or `otherwise` where it fails to do `what`."""
    try:
        return run()
    except NOT_OURS:
        raise
    except BaseException as error:
        blown(what, error)
        return otherwise


def blown(what: str, error: BaseException) -> None:
    """Log the exception that is being handled, the first of its class for each `what`."""
    failure = what, type(error)
    if failure not in _logged:
        _logged.add(failure)
        with contextlib.suppress(Exception):
            log.exception("could not {}; nanobot goes on. This is logged once", what)


def reset() -> None:
    """Log each failure anew."""
    _logged.clear()
