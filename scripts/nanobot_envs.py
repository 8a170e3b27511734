"""Make one virtual environment for each nanobot release that the real-loop tests and the demo run.

    python scripts/nanobot_envs.py                      # all releases, newest wheel in dist/
    python scripts/nanobot_envs.py 0.1.4.post4          # one release
    python scripts/nanobot_envs.py --package dist/x.whl # this wheel, or a source tree as editable
    python scripts/nanobot_envs.py --package none       # nanobot alone

An environment is `.cache/nanobot/<release>`. What it holds is fixed by the lock
`tests/nanobot/locks/<release>.txt`; the package is put on top without dependencies. A second run
that finds the same lock and the same package changes nothing. A lock is remade with the following,
without litellm and mcp from 0.1.4.post6 on:

    printf 'nanobot-ai==RELEASE\\nlitellm==1.82.6\\nmcp==1.30.0\\n' |
        uv pip compile - --universal --python-version 3.11 \\
            --no-emit-index-url --no-header --no-annotate
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "tests" / "nanobot" / "locks"
CACHE = ROOT / ".cache" / "nanobot"
RELEASES = sorted(lock.stem for lock in LOCKS.glob("*.txt"))


def main(argv: list[str] | None = None) -> int:
    """Make or refresh the environments that `argv` names; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("releases", nargs="*", metavar="release", help="default: all")
    parser.add_argument("--package", help="wheel, source tree or `none`; default: newest in dist/")
    options = parser.parse_args(argv)
    unknown = sorted(set(options.releases) - set(RELEASES))
    if unknown:
        parser.error(f"no lock for {', '.join(unknown)}\nhint: known are {', '.join(RELEASES)}")
    package = find_package(options.package)
    # uv downloads and links in parallel by itself; two at a time hide the start-up of each.
    with ThreadPoolExecutor(max_workers=2) as pool:
        wanted = options.releases or list(RELEASES)
        for release, note in zip(
            wanted, pool.map(lambda one: make(one, package), wanted), strict=True
        ):
            print(f"{release:12} {note}")
    return 0


def find_package(given: str | None) -> Path | None:
    """Return the wheel or source tree to install, or None for nanobot alone."""
    if given == "none":
        return None
    if given:
        path = Path(given).resolve()
        if not path.exists():
            raise SystemExit(f"error: `{given}` does not exist")
        return path
    wheels = sorted((ROOT / "dist").glob("nanobot_context-*.whl"), key=lambda p: p.stat().st_mtime)
    if not wheels:
        raise SystemExit("error: no wheel in dist/\nhint: `make wheel` builds one")
    return wheels[-1]


def make(release: str, package: Path | None) -> str:
    """Bring the environment of `release` up to date and say what that took."""
    home = CACHE / release
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    lock = LOCKS / f"{release}.txt"
    want = {"lock": digest(lock), "python": sys.version, "package": describe(package)}
    stamp = home / "nanobot-context.stamp.json"
    have = json.loads(stamp.read_text()) if stamp.exists() and python.exists() else {}
    if have == want:
        return "as it was"
    stamp.unlink(missing_ok=True)
    if {**have, "package": None} != {**want, "package": None}:
        shutil.rmtree(home, ignore_errors=True)
        uv("venv", "--quiet", "--python", sys.executable, str(home))
        uv("pip", "sync", "--quiet", "--python", str(python), str(lock))
        note = "made"
    else:
        note = "package replaced"
    if package is None:
        uv("pip", "uninstall", "--quiet", "--python", str(python), "nanobot-context")
    else:
        source = [str(package)] if package.suffix == ".whl" else ["--editable", str(package)]
        install = ["pip", "install", "--quiet", "--python", str(python), "--no-deps", "--reinstall"]
        uv(*install, *source)
    stamp.write_text(json.dumps(want))
    return note


def describe(package: Path | None) -> str:
    """Return what tells one package from another: a wheel's hash, or the path of a source tree."""
    if package is None:
        return "none"
    if package.is_dir():
        return f"editable {package}"
    return f"{package.name} {digest(package)}"


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def uv(*arguments: str) -> None:
    """Run uv: `UV` names it, else the project's own, else the one on PATH."""
    own = ROOT / ".venv" / ("Scripts/uv.exe" if os.name == "nt" else "bin/uv")
    command = os.environ.get("UV") or (str(own) if own.exists() else shutil.which("uv"))
    if command is None:
        raise SystemExit("error: `uv` is not there\nhint: `make setup`, or set UV to its path")
    result = subprocess.run([command, *arguments], capture_output=True, text=True, check=False)
    if result.returncode:
        raise SystemExit(f"error: `uv {' '.join(arguments)}` failed\n{result.stderr.strip()}")


if __name__ == "__main__":
    raise SystemExit(main())
