"""Disks of a test's own, where the system lets it have them: Linux, as root."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["mount", "mounted"]


def mount(*words: str | Path) -> None:
    """Mount something; skip the test where that is not allowed."""
    if subprocess.run(["mount", *words], capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting is not allowed here")


@contextmanager
def mounted(*words: str | Path) -> Iterator[None]:
    """Mount something, and take it away again."""
    mount(*words)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", words[-1]], check=True)
