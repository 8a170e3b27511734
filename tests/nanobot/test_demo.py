"""`make demo` plays three conversations: alone each loses something, with the package none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.timeout(300)
def test_the_demo_shows_what_fails_alone_and_holds_with_the_package(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "demo" / "demo.py"],
        env={**os.environ, "HOME": str(tmp_path), "NANOBOT": "0.3.5"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith("The protected conversations held.")
    rows = [line.split("  ") for line in done.stdout.splitlines()]
    turns = [[cell for cell in row if cell] for row in rows if row[0] == "turns answered"]
    assert len(turns) == 3
    for _, alone, protected in turns:
        assert alone.strip() != "3 of 3"
        assert protected.strip() == "3 of 3"
