"""Finds the originals of a session's tool results in the workspace that the session is in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from nanobot_context.archive import DIRECTORY, Archive


class Originals(Archive):
    """A read-only archive: marks name the files that exist, and none is written."""

    def write(self, texts: Mapping[str, str], in_use: Collection[str] = ()) -> set[str]:
        """Return the names of `texts` whose files hold them."""
        return self.held(texts)


def originals_of(source: str) -> Originals | None:
    """Return the originals of the workspace that a session file is in; `None` without any."""
    for folder in Path(source).absolute().parents:
        if folder.name == "sessions" and (folder.parent / DIRECTORY).is_dir():
            return Originals(folder.parent / DIRECTORY, shown=DIRECTORY.as_posix())
    return None
