"""Opens the store of the setting `sessionStore` for this process."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from nanobot_context import log
from nanobot_context._core import without_credentials
from nanobot_context.errors import InvalidArgumentError, SessionStoreError
from nanobot_context.guard.counters import Counters
from nanobot_context.host.detect import find
from nanobot_context.plugins import meanwhile
from nanobot_context.plugins.session_store import SharedSessions, is_own
from nanobot_context.plugins.shared_session import MODULE
from nanobot_context.sessions.service import SessionService

NO_EFFECT = (
    "`sessionStore` has no effect, sessions stay files: nanobot has stores from release 0.3.5 on"
)


def is_supported() -> bool:
    """Return whether this release of nanobot takes sessions from a store. Imports nanobot's."""
    manager = find(MODULE, "SessionManager")
    own = getattr(manager, "__dict__", {})
    return find(MODULE, "SessionStore") is not None and "_cached" in own


# A server that does not answer may take some seconds, and a turn waits for it.
_AGAIN_SECONDS = 60.0


class Opened:
    """The store of this process: opened with the first session manager, or as soon as it can be."""

    def __init__(
        self, url: str, counters: Counters, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._url = url
        self._counters = counters
        self._now = now
        self._service: SessionService | None = None
        self._try_at = -math.inf
        self._gateways: dict[Path, tuple[str, Any]] = {}

    def service(self) -> SessionService | None:
        """Return the service, or `None`, with one warning, where it cannot be opened."""
        if self._service is None and self._now() >= self._try_at:
            is_first, self._try_at = self._try_at == -math.inf, self._now() + _AGAIN_SECONDS
            try:
                # nanobot's files have no limit either.
                self._service = SessionService(self._url, event_limit=0)
            except (SessionStoreError, InvalidArgumentError) as error:
                if isinstance(error, InvalidArgumentError):
                    self._try_at = math.inf
                if is_first:
                    shown = without_credentials(self._url)
                    log.warning("sessions stay files, `{}` cannot be opened: {}", shown, error)
        return self._service

    def take(self, manager: Any) -> None:
        """Make a session manager of nanobot keep its sessions here, unless it has another store."""
        if manager._store is not manager._jsonl_store:
            return
        if service := self.service():
            name, lease = self.gateway(manager.sessions_dir)
            store = SharedSessions(service, manager._jsonl_store, name, lease, self._counters)
            manager._store = store
            store.take_up()

    def before_save(self, manager: Any, session: Any) -> None:
        """Prepare a save: take the store, or note what the file had, to store it later."""
        self.take(manager)
        if manager._store is manager._jsonl_store and not is_own(session.key):
            meanwhile.put_aside(manager._jsonl_store, session)

    def before_delete(self, manager: Any, key: str) -> None:
        """Prepare a deletion: take the store, or note it, to delete from the store later."""
        self.take(manager)
        if manager._store is manager._jsonl_store and not is_own(key):
            meanwhile.note_deleted(manager._jsonl_store, key, time.time())

    def gateway(self, sessions_dir: Path) -> tuple[str, Any]:
        """Return the name of this process, the same after a restart, and the lock that keeps it.

        The name is the workspace's, and where several processes share that, a number that is free.
        """
        if sessions_dir not in self._gateways:
            lock_class, timeout = find("filelock", "FileLock"), find("filelock", "Timeout")
            for number in itertools.count():
                lock = lock_class(str(sessions_dir / f".gateway-{number}.lock"))
                with suppress(timeout):
                    lock.acquire(timeout=0)  # the system gives it back when the process ends
                    self._gateways[sessions_dir] = f"{sessions_dir.name}-{number}", lock
                    break
        return self._gateways[sessions_dir]
