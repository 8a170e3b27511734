"""Replaces files atomically, and locks them against other processes."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from nanobot_context._core import lock_file

_PART = ".part"
_PART_NAME = re.compile(r"\.[a-z0-9_]{8}\.part")


def is_part(name: str) -> bool:
    """Return whether `replace_file` makes files of that name; a killed process may leave one."""
    return _PART_NAME.fullmatch(name) is not None


def replace_file(path: Path, content: bytes) -> None:
    """Put `content` into the file `path` at once. The new file is the owner's only.

    Raises:
        OSError: The file could not be written; the old one is as it was.
    """
    handle, temporary = tempfile.mkstemp(suffix=_PART, prefix=".", dir=path.parent)
    try:
        with os.fdopen(handle, "wb", buffering=0) as file:
            rest = memoryview(content)
            while rest:
                rest = rest[file.write(rest) or 0 :]
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


@contextlib.contextmanager
def locked(path: Path, *, timeout_seconds: float) -> Iterator[None]:
    """Hold the lock file `path` against other processes; the system frees it if this one ends.

    First come, first served. On a file system without locks nothing is held.

    Raises:
        OSError: The file cannot be made, is a link, or, as `TimeoutError`, somebody else holds it
            all the while.
    """
    if path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    lock = lock_file(path, timeout_seconds)
    if lock is None:
        raise TimeoutError(f"another process holds `{path}`")
    try:
        yield
    finally:
        lock.release()
