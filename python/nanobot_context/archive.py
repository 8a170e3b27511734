"""`Archive`: a directory with the originals of shortened tool results.

A file is named by a hash of its content, so that the same result has the same file in every call
and every process, and is written once. What stands in place of the result names the file, and the
model can read it with whatever tool reads files.

The order in which files were first written stands in the file `.order`; the oldest go first when
a new one would exceed the cap. No clock is asked. The directory itself is what counts: a file that
`.order` does not know is taken for the oldest, a line without its file is dropped.

The directory is in a workspace whose files may come from anybody: a link is not followed, neither
in place of the directory nor of a file, and a file counts as the original only once its content has
been compared.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import stat
from collections.abc import Callable, Collection, Mapping
from pathlib import Path, PurePath
from typing import Any

from nanobot_context._core import archive_directory, archive_name
from nanobot_context.arguments import check_callable, check_whole, format_value, invalid, text_of
from nanobot_context.errors import InvalidArgumentError
from nanobot_context.files import is_part, locked, replace_file
from nanobot_context.forks import ThreadLock

MAX_BYTES = 64 * 1024 * 1024

DIRECTORY = Path(".nanobot-context", "results")
"""Where a workspace of nanobot's has it: inside, so that a restricted nanobot reads it, too."""

_NAME = re.compile(r"[0-9a-f]{16}\.txt")
_ORDER = ".order"
_LOCK = ".lock"
# Results may hold what does not belong into a repository.
_GITIGNORE = "*\n"

# Another process holds the lock for as long as it writes: milliseconds. Half a second of a model
# call is the most that waiting for it may cost. Without locks the worst is that two processes
# disagree about which file is the oldest: files are put in place at once in any case.
_LOCK_SECONDS = 0.5


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
            warn: Called with the first failure; `None` logs it as `nanobot_context`.

        Raises:
            InvalidArgumentError: The cap is not a positive integer, or the path is not a path or
                cannot stand in a message: over 256 bytes, or with line breaks or quotes.
        """
        if not isinstance(directory, str | os.PathLike):
            raise invalid("directory", "a path", directory)
        text = text_of("directory", os.fspath(directory)) if shown is None else shown
        check_callable("warn", warn)
        check_whole("max_bytes", max_bytes, least=1)
        self.directory = Path(directory).expanduser().absolute()
        self.shown = archive_directory(text_of("shown", text))
        self.max_bytes = max_bytes
        self._warn = warn or logging.getLogger("nanobot_context").warning
        self._has_failed = False
        self._thread_lock = ThreadLock()
        # The parts that tools see are in the workspace; above them a link is the user's.
        relative = not (PurePath(self.shown).is_absolute() or self.shown.startswith("~"))
        own = len(PurePath(self.shown).parts) if relative else 1
        self._own = (self.directory, *self.directory.parents[: own - 1])
        # What each file was when its content was compared.
        self._compared: dict[str, tuple[int, ...]] = {}

    def __repr__(self) -> str:
        return f"Archive({str(self.directory)!r}, max_bytes={self.max_bytes})"

    def missing(self, sizes: Mapping[str, int | None]) -> set[str]:
        """Return the files of `sizes` that do not exist, or have another size.

        A file that this process has neither written nor compared is missing where its size is
        given, and read and compared with its name where it is not.
        """
        _check_names("sizes", sizes)
        for size in sizes.values():
            if size is not None:
                check_whole("sizes", size, least=0)
        if self._is_link():
            return set(sizes)
        return {name for name, size in sizes.items() if not self._is_original(name, size)}

    def write(self, texts: Mapping[str, str], in_use: Collection[str] = ()) -> set[str]:
        """Write each of `texts` under its name, and return the names that are there now.

        A file is there with all of its text or not at all. Where that would exceed the cap, the
        oldest files go, but none of `texts` and of `in_use`; what has no room then is not written.
        """
        contents = _contents(texts)
        if not isinstance(in_use, Collection) or not all(isinstance(one, str) for one in in_use):
            raise invalid("in_use", "names of archived results", in_use)
        sizes = {name: len(content) for name, content in contents.items()}
        with self._thread_lock:
            try:
                self._prepare()
                with locked(self.directory / _LOCK, timeout_seconds=_LOCK_SECONDS):
                    self._write(contents, {*texts, *in_use})
                    # Before another process lets them go for its own.
                    return sizes.keys() - self.missing(sizes)
            except OSError as error:
                self._failed(error)
        return sizes.keys() - self.missing(sizes)

    def held(self, texts: Mapping[str, str]) -> set[str]:
        """Return the names of `texts` whose files hold them. Reads each file, and writes none."""
        contents = _contents(texts)
        if self._is_link():
            return set()
        return {name for name, content in contents.items() if self._holds(name, content)}

    def _is_link(self) -> bool:
        return any(map(os.path.islink, self._own))

    def _stat(self, name: str) -> tuple[int, ...] | None:
        """Return a key that changes when the file is replaced or written; `None` without one."""
        try:
            found = os.lstat(f"{self.directory}{os.sep}{name}")
        except OSError:
            return None
        if not stat.S_ISREG(found.st_mode):
            return None
        return found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns

    def _is_original(self, name: str, size: int | None) -> bool:
        found = self._stat(name)
        # After a crash of the machine a file may be there without its content.
        if found is None or (size is not None and found[0] != size):
            return False
        if self._compared.get(name) == found:
            return True
        return size is None and self._holds(name, None)

    def _holds(self, name: str, content: bytes | None) -> bool:
        """Compare a file with `content`, or with its name where that is `None`; note the result."""
        before = self._stat(name)
        if before is None:
            return False
        try:
            found = (self.directory / name).read_bytes()
            same = archive_name(found.decode()) == name if content is None else found == content
        except (OSError, UnicodeDecodeError):
            return False
        if same and self._stat(name) == before:
            self._compared[name] = before
        return same

    def _prepare(self) -> None:
        if self._is_link():
            raise OSError(errno.ELOOP, "it is a link, which a workspace may have from anybody")
        if not self.directory.is_dir():
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _write(self, contents: Mapping[str, bytes], keep: Collection[str]) -> None:
        """Write the missing files under the lock; a half-written file is removed."""
        ignore = self.directory / ".gitignore"
        if not ignore.exists():
            replace_file(ignore, _GITIGNORE.encode())
        files = self._files()
        total = sum(files.values())
        try:
            for name, content in contents.items():
                if files.get(name) == len(content) and self._holds(name, content):
                    continue
                total -= files.pop(name, 0)
                total -= self._evict(files, keep, total + len(content) - self.max_bytes)
                if total + len(content) <= self.max_bytes:
                    replace_file(self.directory / name, content)
                    if (written := self._stat(name)) is not None:
                        self._compared[name] = written
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
                elif is_part(entry.name):
                    # Under the lock nobody else writes: this is of a process that was killed.
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
            self._compared.pop(name, None)
            gone += files.pop(name)
        return gone

    def _failed(self, error: OSError) -> None:
        if not self._has_failed:
            self._has_failed = True
            self._warn(
                f"could not keep the original of a tool result in `{self.directory}`: "
                f"{error.strerror or error}"
            )


def _check_names(argument: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise invalid(argument, "a dict by names of archived results", value)
    for name in value:
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            raise InvalidArgumentError(
                f"{format_value(name)} is not the name of an archived result", argument=argument
            )


def _contents(texts: Mapping[str, str]) -> dict[str, bytes]:
    _check_names("texts", texts)
    return {name: text_of(f"texts[{name!r}]", text).encode() for name, text in texts.items()}
