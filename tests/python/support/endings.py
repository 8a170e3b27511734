"""A process that leaves something to be saved, and then ends in one of several ways."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_BEFORE = """
import os, signal, sys, time
from pathlib import Path
from nanobot_context.guard import counters
folder, how = Path(sys.argv[1]), sys.argv[2]
counters._SAVE_SECONDS = 0.05 if how == "killed" else 60.0
"""
_BEHIND = """
if how == "raises":
    raise ValueError("on purpose")
if how == "killed":
    time.sleep(2)
    os.kill(os.getpid(), signal.SIGKILL)
if how == "forks":
    child = os.fork()
    if not child:
        in_child()
        sys.exit()
    os.waitpid(child, 0)
"""


def exit_code(script: str, folder: Path, how: str) -> int:
    """Run `script`, which has `folder` and defines `in_child`, to its end; return the exit code.

    `how` it does: it "ends", "raises", is "killed", or "forks" first.
    """
    run = [sys.executable, "-c", _BEFORE + script + _BEHIND, str(folder), how]
    return subprocess.run(run, capture_output=True, check=False, timeout=60).returncode
