"""Lets nanobot go on while a shared store does not answer, and holds what could not be stored."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from typing import Any, TypeVar

from nanobot_context import log
from nanobot_context.errors import SessionStoreError
from nanobot_context.guard import fuse
from nanobot_context.guard.counters import Counters
from nanobot_context.identity import common_length
from nanobot_context.plugins.shared_session import known_of

T = TypeVar("T")


class Outage:
    """Whether the store answers, and the sessions that it did not take.

    The failures are counted in `status`, and the first of an outage is logged.

    Args:
        counters: Where messages are counted that could not be stored at once.

    Attributes:
        is_answering: Whether the store took what it was asked last.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self.is_answering = True
        # What is called at the end of the process, while something is held.
        self._at_end: Callable[[], None] | None = None
        # Sessions that could not be stored, and how many messages of each are in memory alone.
        self._held: dict[str, tuple[Any, int]] = {}
        # How many have been stored since an outage, of how many sessions: for the log.
        self._late = 0, 0

    def try_to(self, what: str, run: Callable[[], T], otherwise: T) -> T:
        """Return the result of `run`, or `otherwise` if the store fails to do `what`."""
        try:
            found = run()
        except SessionStoreError as error:
            fuse.counted(what, error)
            if self.is_answering:
                self.is_answering = False
                log.warning(
                    "could not {}: {}\nnanobot goes on; what is said meanwhile is in its memory "
                    "alone until the store answers",
                    *(what, error),
                )
            return otherwise
        except fuse.NOT_OURS:
            raise
        except BaseException as error:
            fuse.blown(what, error)
            return otherwise
        if not self.is_answering:
            self.is_answering = True
            log.warning("the session store answers again")
        return found

    def held(self, key: str) -> Any:
        """Return the session `key` if it is held, or `None`."""
        session, _ = self._held.get(key, (None, 0))
        return session

    def all_held(self) -> list[Any]:
        """Return all sessions that are held."""
        return [session for session, _ in self._held.values()]

    def hold(self, session: Any, at_end: Callable[[], None]) -> None:
        """Hold a session until it is stored, and count its messages that are in memory alone.

        `at_end` is called if the process ends before that.
        """
        known = known_of(session)
        stored = common_length(known.messages, session.messages) if known else 0
        _, before = self._held.get(session.key, (None, 0))
        count = max(len(session.messages) - stored, before)
        if not self._held:
            self._at_end = at_end
            atexit.register(at_end)
        self._held[session.key] = session, count
        self._counters.add(messages_held=count - before)

    def release(self, key: str, *, is_stored: bool) -> None:
        """Hold the session `key` no longer."""
        if key not in self._held:
            return
        _, count = self._held.pop(key)
        if is_stored:
            messages, sessions = self._late
            self._late = messages + count, sessions + 1
            self._counters.add(messages_stored_late=count)
        if not self._held and self._at_end is not None:
            atexit.unregister(self._at_end)
            self._at_end = None

    def log_late(self) -> None:
        """Log how much has been stored that was held, once."""
        messages, sessions = self._late
        if sessions:
            self._late = 0, 0
            log.warning(
                "{} messages of {} sessions were in memory alone and are stored now",
                *(messages, sessions),
            )

    def log_lost(self) -> None:
        """Log the sessions that are still held when the process ends."""
        if self._held:
            lost = sum(count for _, count in self._held.values())
            log.error(
                "{} messages of {} sessions are lost: nanobot ends and the session store does "
                "not take them",
                *(lost, len(self._held)),
            )
