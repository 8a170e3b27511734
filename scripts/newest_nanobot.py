"""Lock the newest nanobot release, so that its loops can be played; print its version.

python scripts/newest_nanobot.py    # tests/nanobot/locks/<release>.txt, if there is none yet
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "tests" / "nanobot" / "locks"


def main() -> int:
    """Write the lock and return the exit code."""
    options = ["--universal", "--python-version", "3.11", "--no-emit-index-url", "--no-header"]
    done = subprocess.run(
        [str(ROOT / ".venv/bin/uv"), "pip", "compile", "-", *options, "--no-annotate", "--quiet"],
        input="nanobot-ai\n",
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"^nanobot-ai==(\S+)", done.stdout, re.MULTILINE)
    if done.returncode or not found:
        print(f"error: no release could be resolved\n{done.stderr.strip()}", file=sys.stderr)
        return 1
    lock = LOCKS / f"{found[1]}.txt"
    if not lock.exists():
        lock.write_text(done.stdout, "utf-8")
    print(found[1])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
