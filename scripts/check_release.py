"""Refuse to publish what is not complete: the release workflow runs `check_release.py v0.1.0`.

What has to be there beside a green build: the repository's address in Cargo.toml, in place of the
placeholder, and a dated section of the changelog for the version that the tag names.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[1]


def problems(root: Path, tag: str) -> list[str]:
    """Return what is missing before `tag` of the repository in `root` may be published."""
    package = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))["package"]
    found = []
    if tag != f"v{package['version']}":
        found.append(f"the tag is `{tag}` but Cargo.toml has the version `{package['version']}`")
    host = urlsplit(package.get("repository", "")).hostname or ""
    if not host or host == "invalid" or host.endswith(".invalid"):
        found.append(
            f"`repository` in Cargo.toml is `{package.get('repository', '')}`, a placeholder\n"
            "hint: fill in where the repository is; the links of the wheel are made of it"
        )
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = rf"^## \[{re.escape(package['version'])}\] - \d{{4}}-\d\d-\d\d$"
    if not re.search(heading, changes, re.MULTILINE):
        found.append(f"CHANGELOG.md has no dated section `## [{package['version']}] - YYYY-MM-DD`")
    return found


def main() -> int:
    """Print what is missing; 1 where something is."""
    if len(sys.argv) != 2:
        print("usage: check_release.py TAG", file=sys.stderr)
        return 2
    found = problems(ROOT, sys.argv[1])
    for problem in found:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
