"""Make the README's links absolute, for the page of a package index: the release workflow does.

Relative links are right in a clone, and lead nowhere from an index. They are made of `repository`
and `version` in Cargo.toml, as GitHub has the files of a tag.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]

# `![text](file)` and `[text](file)`; one with a scheme or of the page itself stays.
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^]]*)\]\((?!#|[a-z][a-z0-9+.-]*:)(?P<file>[^)\s]+)\)")


def absolute(text: str, repository: str, tag: str) -> str:
    """Return Markdown whose links to files lead to those files of `tag`."""

    def link(found: re.Match[str]) -> str:
        kind = "raw" if found["image"] else "blob"
        address = f"{repository.rstrip('/')}/{kind}/{tag}/{found['file']}"
        return f"{found['image']}[{found['text']}]({address})"

    return _LINK.sub(link, text)


def main() -> int:
    """Write the README anew."""
    package = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["package"]
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    made = absolute(text, package["repository"], f"v{package['version']}")
    readme.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
