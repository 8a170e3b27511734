"""Every release has all of the table of patches that it should have."""

from __future__ import annotations

import subprocess
import sys

from plays import ENVIRONMENTS, ROOT


def test_nothing_of_the_table_is_missing_or_changed(release: str) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "patched.py"), str(ENVIRONMENTS / release)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    # What is no release says of which it is to become one.
    assert done.stdout.startswith(release) or release == "main"
