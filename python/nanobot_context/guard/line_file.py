"""Appends JSON objects to a file, one a line, which other gateways may write at the same time.

A line is appended by one write, which the system does not mix with another's; under a lock the file
is put aside when it is full, and a line that does not fit on the disk is taken back. So no line is
torn, and `tail -F` follows the file over its rotation.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nanobot_context import log
from nanobot_context.files import locked
from nanobot_context.forks import ThreadLock

# Another process holds the lock for the time of one write. A stopped one costs so much only once:
# from then on nobody waits for it, and the file grows on.
_LOCK_SECONDS = 0.25

_FLAGS = os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
# A pipe that nobody reads is not waited for.
_FLAGS |= getattr(os, "O_NONBLOCK", 0)


class LineFile:
    """A file that only its owner may read; when it is full a new one is begun.

    A line that cannot be written is lost; the first of a row of such failures is logged.
    """

    def __init__(self, path: Path, max_bytes: int, *, older: int = 3, what: str = "events") -> None:
        """Write `what` to `path`, and a new file where it would grow beyond `max_bytes`.

        So many `older` ones are kept, as `events.jsonl.1` (the newest of them) and so on.
        """
        self.path = path
        self.max_bytes = max_bytes
        self.older = older
        self.what = what
        self._lock_path = path.parent / f"{path.name}.lock"
        self._thread_lock = ThreadLock()
        self._patience_seconds = _LOCK_SECONDS
        self._has_failed = False

    def write(self, value: Mapping[str, Any]) -> None:
        """Append `value`. Costs some 50 microseconds; raises nothing."""
        # ASCII: a lone surrogate has no UTF-8, and some readers take U+2028 for the end of a line.
        line = json.dumps(value, default=repr).encode() + b"\n"
        with self._thread_lock:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._append(line)
            except OSError as error:
                self._failed(error)
            else:
                self._has_failed = False

    def files(self) -> list[Path]:
        """Return the files that are there, the oldest first."""
        names = [*map(self._older, range(self.older, 0, -1)), self.path]
        return [file for file in names if file.is_file()]

    def lines(self) -> Iterator[str]:
        """Yield every line, the oldest first; none of a file that cannot be read."""
        for file in self.files():
            try:
                yield from file.read_text(encoding="utf-8", errors="replace").splitlines()
            except OSError:
                continue

    def _append(self, line: bytes) -> None:
        try:
            with locked(self._lock_path, timeout_seconds=self._patience_seconds):
                self._patience_seconds = _LOCK_SECONDS
                with contextlib.suppress(FileNotFoundError):
                    size = self.path.stat().st_size
                    if size and size + len(line) > self.max_bytes:
                        self._rotate()
                self._write(line, is_alone=True)
        except TimeoutError:
            self._patience_seconds = 0.0
            self._write(line, is_alone=False)

    def _write(self, line: bytes, *, is_alone: bool) -> None:
        """Write `line`, all of it or, where `is_alone` says that nobody else writes, nothing."""
        # A pipe that is open for reading, too, always has a reader.
        flags = os.O_WRONLY if self.path.is_fifo() else os.O_RDWR
        handle = os.open(self.path, _FLAGS | flags, 0o600)
        try:
            size = os.fstat(handle).st_size
            if is_alone and size:
                os.lseek(handle, -1, os.SEEK_END)
                if os.read(handle, 1) != b"\n":  # a power cut may leave half of a line
                    line = b"\n" + line
            if os.write(handle, line) < len(line):
                if is_alone:
                    os.ftruncate(handle, size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(handle)

    def _rotate(self) -> None:
        """Rename each file to the next number; where one cannot be renamed, the file grows on."""
        with contextlib.suppress(OSError):
            for number in range(self.older - 1, 0, -1):
                if (older := self._older(number)).exists():
                    older.replace(self._older(number + 1))
            self.path.replace(self._older(1))

    def _older(self, number: int) -> Path:
        return self.path.parent / f"{self.path.name}.{number}"

    def _failed(self, error: OSError) -> None:
        if not self._has_failed:
            self._has_failed = True
            reason = error.strerror or error
            log.warning("{} cannot be written to `{}`: {}", self.what, self.path, reason)
