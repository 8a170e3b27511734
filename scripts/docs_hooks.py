"""Hooks of mkdocs (`mkdocs.yml`): pages link to files of the repository, which the site has not."""

from __future__ import annotations

import posixpath
import re
from typing import Any

__all__ = ["on_page_markdown"]

_LINK = re.compile(r"\[([^\]]+)\]\((\.\./[^)#\s]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Return `markdown` with what links out of `docs/` as the name of the file."""
    folder = posixpath.dirname(page.file.src_uri)

    def plain(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[2]))
        if not target.startswith("../"):
            return link[0]
        name = target.removeprefix("../")
        return f"`{name}`" if link[1].strip("`") == name else f"{link[1]} (`{name}`)"

    return _LINK.sub(plain, markdown)
