"""Resets locks and background work in a forked child, where the parent's threads do not exist.

A child has one thread, the one that forked. A lock that another thread held would stay held in it
for ever, and what another thread was about to finish would never be finished. Every lock of threads
in this package is a `ThreadLock`, and every object with threads of its own is a `Forked`.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar
from weakref import WeakSet

P = ParamSpec("P")
Owner = TypeVar("Owner", bound="Locked")
Result = TypeVar("Result")


class ThreadLock:
    """A lock for `with`, which a thread that holds it may take again.

    In a forked child it is free, unless the thread that forked holds it; what it guards may be half
    changed there. A copied or unpickled lock is another one, and free.
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[ThreadLock], tuple[()]]:
        return ThreadLock, ()

    def begin_in_child(self) -> None:
        """Free the lock if a thread of the parent held it."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


class Locked(Protocol):
    """An object with a lock of its own."""

    @property
    def _lock(self) -> ThreadLock: ...


def alone(
    method: Callable[Concatenate[Owner, P], Result],
) -> Callable[Concatenate[Owner, P], Result]:
    """Return a method that one thread at a time runs, under the lock of its instance."""

    @functools.wraps(method)
    def alone(self: Owner, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        with self._lock:
            return method(self, *args, **kwargs)

    return alone


class Forked(Protocol):
    """An object that must be told that it is in a forked child."""

    def begin_in_child(self) -> None:
        """Reset what the parent's threads held; called once in each forked child."""


_locks: WeakSet[ThreadLock] = WeakSet()
_others: WeakSet[Forked] = WeakSet()


def begin_in_children(one: Forked) -> None:
    """Call `one.begin_in_child` in forked children, after the locks are reset."""
    _others.add(one)


def _begin() -> None:
    for one in (*_locks, *_others):
        one.begin_in_child()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_begin)
