"""Say what of the table of patches a nanobot environment has; 1 where something is not as expected.

python scripts/patched.py .cache/nanobot/0.3.5
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# With every setting that a part of the table waits for.
CODE = """
from nanobot_context import Settings, install
from nanobot_context.plugins.opened_store import is_supported
store = "sqlite:///unused.db" if is_supported() else None
state = install(Settings(enable_history_summarization=True, session_store=store))
print(state.nanobot_version, state.generation, state.reason, *state.unguarded)
for point in state.points:
    print(f"{point.state:8} {point.name}  {point.why}")
for fuse in state.fuses:
    print(f"failed   {fuse.what}  {fuse.error}")
broken = [point for point in state.points if point.state != "patched"]
raise SystemExit(bool(broken or state.fuses or not state.protected))
"""


def main(home: str) -> int:
    """Look at the environment in `home`, and return the exit code."""
    # litellm otherwise asks the network for its price table at import.
    environ = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command = [str(Path(home) / "bin" / "python"), "-c", CODE]
    return subprocess.run(command, env=environ, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
