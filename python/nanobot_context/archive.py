"""`Archive`: a directory with the originals of shortened tool results.

A file is named by a hash of its content, so that the same result has the same file in every call
and every process, and is written once. What stands in place of the result names the file, and the
model can read it with whatever tool reads files.

The order in which files were first written stands in the file `.order`; the oldest go first when
a new one would exceed the cap. No clock is asked. The directory itself is what counts: a file that
`.order` does not know is taken for the oldest, a line without its file is dropped.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from nanobot_context._core import archive_directory
from nanobot_context.errors import InvalidArgumentError
from nanobot_context.files import PART, locked, replace_file

__all__ = ["Archive"]

MAX_BYTES = 64 * 1024 * 1024

_NAME = re.compile(r"[0-9a-f]{16}\.txt")
_ORDER = ".order"
_LOCK = ".lock"
# Results may hold what does not belong into a repository.
_GITIGNORE = "*\n"

# Another process holds the lock for as long as it writes: milliseconds. Half a second of a model
# call is the most that waiting for it may cost. Without locks the worst is that two processes
# disagree about which file is the oldest: files are put in place at once in any case.
_LOCK_ATTEMPTS = 50
_LOCK_PAUSE_SECONDS = 0.01


class Archive:
    """A directory in which the originals of shortened tool results are kept.

    Nothing is created before the first result is kept. Files and directories that are created are
    readable by their owner only. Several processes may share a directory. A failure to write is
    logged once and otherwise only means that the result's place names no file.

    Attributes:
        directory: Where the files are.
        shown: The same as the model is to name it.
        max_bytes: Bytes of results that are kept at most; the oldest ones go first.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        shown: str | None = None,
        max_bytes: int = MAX_BYTES,
        warn: Callable[[str], object] | None = None,
    ) -> None:
        """Use `directory`; it need not exist.

        Args:
            directory: The directory; `~` is the user's home.
            shown: How the model is to name it, such as a path relative to the directory that its
                tools start from; `None` is `directory` as given.
            max_bytes: The cap.
            warn: What is told of the first failure; `None` logs it as `nanobot_context`.

        Raises:
            InvalidArgumentError: The cap is no positive integer, or the path cannot stand in a
                message: it is longer than 256 bytes, or has line breaks or quotes in it.
        """
        if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes <= 0:
            raise InvalidArgumentError(
                f"`max_bytes` must be a positive integer, got {max_bytes!r}", argument="max_bytes"
            )
        self.directory = Path(directory).expanduser().absolute()
        self.shown = archive_directory(os.fspath(directory) if shown is None else shown)
        self.max_bytes = max_bytes
        self._warn = warn or logging.getLogger("nanobot_context").warning
        self._has_failed = False
        self._thread_lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_thread_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _thread_lock=threading.Lock())

    def __repr__(self) -> str:
        return f"Archive({str(self.directory)!r}, max_bytes={self.max_bytes})"

    def missing(self, sizes: Mapping[str, int | None]) -> set[str]:
        """Return which of the files `sizes` are not there, or not with so many bytes."""
        return {name for name, size in sizes.items() if not self._is_there(name, size)}

    def write(self, texts: Mapping[str, str], in_use: Collection[str] = ()) -> set[str]:
        """Write each of `texts` under its name, and return the names that are there now.

        A file is there with all of its text or not at all. Where that would exceed the cap, the
        oldest files go, but none of `texts` and of `in_use`; what has no room then is not written.
        """
        for name in texts:
            if not _NAME.fullmatch(name):
                raise InvalidArgumentError(f"`{name}` is no name of a file here", argument="texts")
        contents = {name: text.encode() for name, text in texts.items()}
        with self._thread_lock:
            try:
                self._prepare()
                with locked(
                    self.directory / _LOCK,
                    attempts=_LOCK_ATTEMPTS,
                    pause_seconds=_LOCK_PAUSE_SECONDS,
                ):
                    self._write(contents, {*texts, *in_use})
            except OSError as error:
                self._failed(error)
        return {name for name, content in contents.items() if self._is_there(name, len(content))}

    def _is_there(self, name: str, size: int | None) -> bool:
        try:
            found = os.stat(f"{self.directory}{os.sep}{name}")  # noqa: PTH116 (for each in a call)
        except OSError:
            return False
        # After a crash of the machine a file may be there without its content.
        return size is None or found.st_size == size

    def _prepare(self) -> None:
        if not self.directory.is_dir():
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        ignore = self.directory / ".gitignore"
        if not ignore.exists():
            replace_file(ignore, _GITIGNORE.encode())

    def _write(self, contents: Mapping[str, bytes], keep: Collection[str]) -> None:
        """Write what is not there yet, under the lock."""
        files = self._files()
        total = sum(files.values())
        try:
            for name, content in contents.items():
                if files.get(name) == len(content):
                    continue
                total -= files.pop(name, 0)
                total -= self._evict(files, keep, total + len(content) - self.max_bytes)
                if total + len(content) <= self.max_bytes:
                    replace_file(self.directory / name, content)
                    files[name] = len(content)
                    total += len(content)
        finally:
            replace_file(self.directory / _ORDER, "".join(f"{name}\n" for name in files).encode())

    def _files(self) -> dict[str, int]:
        """Return every file and its bytes, the oldest first."""
        sizes: dict[str, int] = {}
        with os.scandir(self.directory) as entries:
            for entry in entries:
                if _NAME.fullmatch(entry.name):
                    sizes[entry.name] = entry.stat(follow_symlinks=False).st_size
                elif entry.name.endswith(PART):
                    # Under the lock nobody else writes: what is left here is of a process that
                    # ended.
                    Path(entry.path).unlink(missing_ok=True)
        try:
            order = (self.directory / _ORDER).read_text(encoding="ascii", errors="replace")
        except FileNotFoundError:
            order = ""
        known = dict.fromkeys(name for name in order.splitlines() if name in sizes)
        unknown = sorted(sizes.keys() - known.keys())
        return {name: sizes[name] for name in (*unknown, *known)}

    def _evict(self, files: dict[str, int], keep: Collection[str], excess: int) -> int:
        """Remove the oldest files until `excess` bytes are gone, and return how many are."""
        gone = 0
        for name in [name for name in files if name not in keep]:
            if gone >= excess:
                break
            (self.directory / name).unlink(missing_ok=True)
            gone += files.pop(name)
        return gone

    def _failed(self, error: OSError) -> None:
        if not self._has_failed:
            self._has_failed = True
            self._warn(
                f"could not keep the original of a tool result in `{self.directory}`: "
                f"{error.strerror or error}"
            )
