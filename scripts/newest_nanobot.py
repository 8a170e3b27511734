"""Lock the newest nanobot release, or its main, so that its loops can be played; print its name.

python scripts/newest_nanobot.py        # tests/nanobot/locks/<release>.txt, if there is none yet
python scripts/newest_nanobot.py ADDRESS # tests/nanobot/locks/main.txt, of a repository or a file
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "tests" / "nanobot" / "locks"


def main(source: str | None = None) -> int:
    """Write the lock and return the exit code; `source` is what `uv` may have behind an `@`."""
    options = ["--universal", "--python-version", "3.11", "--no-emit-index-url", "--no-header"]
    done = subprocess.run(
        [str(ROOT / ".venv/bin/uv"), "pip", "compile", "-", *options, "--no-annotate", "--quiet"],
        input=f"nanobot-ai @ {source}\n" if source else "nanobot-ai\n",
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"^nanobot-ai(?:==(\S+)| @ )", done.stdout, re.MULTILINE)
    if done.returncode or not found:
        print(f"error: nanobot could not be resolved\n{done.stderr.strip()}", file=sys.stderr)
        return 1
    name = found[1] or "main"
    lock = LOCKS / f"{name}.txt"
    if source or not lock.exists():
        lock.write_text(done.stdout, "utf-8")
    print(name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:2]))
