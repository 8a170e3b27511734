"""Finds the originals of a session's tool results in the workspace that the session is in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from nanobot_context.archive import DIRECTORY, Archive


@dataclass(frozen=True, slots=True)
class Originals:
    """A read-only archive: marks name the files that exist, and none is written."""

    archive: Archive

    @property
    def shown(self) -> str:
        return self.archive.shown

    def missing(self, sizes: Mapping[str, int | None], /) -> set[str]:
        return self.archive.missing(sizes)

    def write(self, texts: Mapping[str, str], in_use: Collection[str], /) -> set[str]:
        return self.archive.held(texts)


def originals_of(source: str) -> Originals | None:
    """Return the originals of the workspace that a session file is in; `None` without any."""
    for folder in Path(source).absolute().parents:
        if folder.name == "sessions" and (folder.parent / DIRECTORY).is_dir():
            archive = Archive(folder.parent / DIRECTORY, shown=DIRECTORY.as_posix())
            return Originals(archive)
    return None
