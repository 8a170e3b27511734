"""Installs what sessions are compared with, pinned, into `.cache/peers`: `python benches/peers.py`.

nanobot is in an environment of its own already, `.cache/nanobot/0.3.5`: see the Makefile.
"""

from __future__ import annotations

import filecmp
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PINS = ROOT / "requirements" / "peers.txt"
ENVIRONMENT = ROOT / ".cache" / "peers"
NANOBOT = ROOT / ".cache" / "nanobot" / "0.3.5"


def is_installed() -> bool:
    """Return whether the environment has the versions that are pinned now."""
    copy = ENVIRONMENT / PINS.name
    return copy.exists() and filecmp.cmp(PINS, copy, shallow=False)


def install() -> None:
    """Make the environment anew where it has other versions. Needs the package index."""
    if is_installed():
        return
    uv = [sys.executable, "-m", "uv"]
    python = ENVIRONMENT / "bin" / "python"
    subprocess.run([*uv, "venv", "--quiet", "--clear", "--python", "3.11", ENVIRONMENT], check=True)
    subprocess.run([*uv, "pip", "sync", "--quiet", "--python", python, PINS], check=True)
    shutil.copy(PINS, ENVIRONMENT)


if __name__ == "__main__":
    install()
