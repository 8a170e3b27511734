"""Make the virtual environment that the examples run in: `python -m scripts.examples_env`.

It is `.cache/examples` and holds what `requirements/examples.txt` pins, with the newest wheel of
dist/ on top; with `--pins`, whatever wheel is there or none: enough for types. A second run that
finds the same pins and the same wheel changes nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import sys

from scripts.nanobot_envs import ROOT, describe, digest, find_package, uv

PINS = ROOT / "requirements" / "examples.txt"
HOME = ROOT / ".cache" / "examples"
PYTHON = HOME / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def main(argv: list[str]) -> None:
    """Bring the environment up to date and say what that took."""
    package = None if "--pins" in argv else find_package(None)
    want = {"pins": digest(PINS), "python": sys.version, "package": describe(package)}
    stamp = HOME / "nanobot-context.stamp.json"
    have = json.loads(stamp.read_text()) if stamp.exists() and PYTHON.exists() else {}
    is_made = {**have, "package": None} == {**want, "package": None}
    if have == want or (is_made and package is None):
        print("examples     as it was")
        return
    stamp.unlink(missing_ok=True)
    if not is_made:
        shutil.rmtree(HOME, ignore_errors=True)
        uv("venv", "--quiet", "--python", sys.executable, str(HOME))
        uv("pip", "sync", "--quiet", "--python", str(PYTHON), str(PINS))
    if package is not None:
        install = ["pip", "install", "--quiet", "--python", str(PYTHON), "--no-deps", "--reinstall"]
        uv(*install, str(package))
    stamp.write_text(json.dumps(want))
    print(f"examples     {'package replaced' if is_made else 'made'}")


if __name__ == "__main__":
    main(sys.argv[1:])
