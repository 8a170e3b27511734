"""Runs our code so that an exception is logged and counted, and nanobot continues."""

from __future__ import annotations

import asyncio
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from nanobot_context import log
from nanobot_context.errors import InvalidInputError
from nanobot_context.forks import ThreadLock

T = TypeVar("T")

NOT_OURS = (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError)
"""What ends a program or a task, and must. Everything else is caught: a panic of the core is a
`BaseException`, too."""


@dataclass(frozen=True, slots=True)
class BlownFuse:
    """A mistake of the package's, which cost nanobot nothing.

    Attributes:
        what: What could not be done, such as "compress a request".
        error: The class of the exception; the log has all of it.
        times: How often.
    """

    what: str
    error: str
    times: int


_blown: Counter[tuple[str, str]] = Counter()
_lock = ThreadLock()
_listener: Callable[[], None] | None = None


def fused(what: str, run: Callable[[], T], otherwise: T) -> T:
    """Return the result of `run`, or `otherwise` if it raises; `what` names the task in the log."""
    try:
        return run()
    except NOT_OURS:
        raise
    except BaseException as error:
        blown(what, error)
        return otherwise


def blown(what: str, error: BaseException) -> None:
    """Count a failure to do `what`, and log the exception that is being handled.

    Only the first of its class is logged, with where it happened; of what an argument of the
    request was refused for, which quotes it, the class alone.
    """
    if counted(what, error) > 1:
        return
    frames = "".join(traceback.format_tb(error.__traceback__))
    name = type(error).__name__
    try:
        said = name if isinstance(error, InvalidInputError) else f"{name}: {error}"
        log.error("could not {}; the call goes on. This is logged once\n{}{}", what, frames, said)
    except NOT_OURS:
        raise
    except BaseException:
        return


def counted(what: str, error: BaseException) -> int:
    """Count a failure to do `what` that the caller logs; return how often it failed like that."""
    failure = what, type(error).__name__
    with _lock:
        _blown[failure] += 1
        times = _blown[failure]
    try:
        if _listener is not None:
            _listener()
    except NOT_OURS:
        raise
    except BaseException:
        return times
    return times


def blown_fuses() -> tuple[BlownFuse, ...]:
    """Return the failures since the package was installed, oldest first."""
    with _lock:
        return tuple(BlownFuse(*failure, times) for failure, times in _blown.items())


def reset(listener: Callable[[], None] | None = None) -> None:
    """Forget every failure, so that each is logged again; `listener` is called with each."""
    global _listener
    with _lock:
        _blown.clear()
        _listener = listener
