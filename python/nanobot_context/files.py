"""Files that are there whole or not at all, and one process at a time."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["PART", "locked", "replace_file"]

PART = ".part"
"""What the name of a file ends in that is not whole yet; a killed process may leave one."""


def replace_file(path: Path, content: bytes) -> None:
    """Put `content` into the file `path` at once. The new file is the owner's only.

    Raises:
        OSError: The file could not be written; the old one is as it was.
    """
    handle, temporary = tempfile.mkstemp(suffix=PART, prefix=".", dir=path.parent)
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
def locked(path: Path, *, attempts: int, pause_seconds: float) -> Iterator[None]:
    """Hold the lock file `path` against other processes; the system frees it if this one ends.

    Where the file system knows no locks nothing is held.

    Raises:
        OSError: The file cannot be made, or, as `TimeoutError`, somebody else holds it all the
            while.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        for _ in range(attempts):
            if _lock(handle):
                break
            time.sleep(pause_seconds)
        else:
            raise TimeoutError(f"another process holds `{path}`")
        yield
    finally:
        os.close(handle)


if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> bool:
        """Lock an open file if nobody else has; closing it lets go."""
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _lock(handle: int) -> bool:
        """Lock an open file if nobody else has; closing it lets go."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True
