"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

__all__ = ["PART", "replace_file"]

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
