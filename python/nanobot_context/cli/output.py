"""Prints text and tables for people, JSON for programs, errors, questions and progress.

Results go to standard output, everything else to standard error. In a pipe there are no colours,
no wrapping and no cutting; a reader that goes away early (`| head`) is no error.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn

import typer
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from nanobot_context._core import mask_credentials
from nanobot_context.files import replace_file
from nanobot_context.words import shown

NEGATIVE = 1
CANNOT = 2

STDOUT = "-"

# Work that is done sooner shows no progress.
_PATIENCE_SECONDS = 1.0
# So that nothing is cut or wrapped in a pipe.
_ENDLESS = 1 << 16
_GAP = "  "
_LABEL = 17
# What stays of a column where the terminal is too narrow.
_LEAST = 8

# What a terminal would obey, and what turns text around: shown as a box. A tab and a newline are
# left, half a character (a lone surrogate) is not.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
# The same for JSON, which has escapes for all of them: no data is changed.
_ESCAPED = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# A word or a Chinese sign, with the marks that no line begins with and the white space behind it.
_WORD = re.compile(
    r"(?:[\u3001-\u9fff\uff00-\uffef]|[^\s\u3001-\u9fff\uff00-\uffef]+)"
    r"[\u3001\u3002\uff09\uff0c\uff1a\uff1b\uff1f]*\s*"
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: Its heading.
        side: `right` for numbers.
        style: rich's name of the colour.
        flexible: Whether it is cut where the terminal is too narrow; the widest such column first.
    """

    name: str
    side: Literal["left", "right"] = "left"
    style: str = ""
    flexible: bool = False


class _Console(Console):
    """A console that goes silent when its reader goes away, and lets the command finish."""

    def on_broken_pipe(self) -> None:
        _go_silent()


def width() -> int:
    """Return the columns of the terminal; as good as endless in a pipe."""
    console = _Console()
    return console.width if console.is_terminal else _ENDLESS


def line(text: str = "", style: str = "") -> None:
    """Print a line of ours to standard output, whole: not wrapped and not cut."""
    _out().print(Text(readable(shown(text)), style), soft_wrap=True)


def fitting(text: str) -> str:
    """Return the part of `text` that fits on one line behind a label; all of it in a pipe."""
    room = width() - _LABEL
    return text if cell_len(text) <= room else set_cell_size(text, room - 1) + "…"


def prose(text: str) -> None:
    """Print a text untranslated; in a terminal its lines wrap between words."""
    console = _out()
    console.print(Text(readable(text)), soft_wrap=not console.is_terminal)


def about(tokens: int, is_reported: bool) -> str:
    """Return a number of tokens, marked "about" unless a provider reported it."""
    return f"{tokens:,}" if is_reported else shown(f"about {tokens:,}")


def labelled(label: str, text: str, style: str = "") -> None:
    """Print a text behind a label; in a terminal its lines wrap between words."""
    lines = _wrapped(readable(shown(text)), width() - _LABEL)
    label = shown(label)
    head = Text(label + " " * (_LABEL - cell_len(label)), style or "dim")
    _out().print(head + Text(("\n" + " " * _LABEL).join(lines)), soft_wrap=True)


def _wrapped(text: str, room: int) -> list[str]:
    """Return `text` in lines of at most `room` columns, except for a word that is longer.

    Paths stay whole, so that they can be copied. A Chinese sentence has no spaces: it may end a
    line before any of its signs but those that belong to the one before.
    """
    lines, current = [], ""
    for word in _WORD.findall(re.sub(r"\s", " ", text).strip()):
        if current and cell_len(current + word.rstrip()) > room:
            lines.append(current.rstrip())
            current = ""
        current += word
    return [*lines, current.rstrip()]


def note(text: str) -> None:
    """Print a line to standard error."""
    _Console(stderr=True).print(Text(readable(shown(text))), soft_wrap=True)


def fail(message: str) -> NoReturn:
    """Print an error and exit with `CANNOT`; a line that begins with `hint:` says what helps."""
    show_error(message)
    raise typer.Exit(CANNOT)


def show_error(message: str) -> None:
    """Print an error to standard error."""
    head, *rest = readable(shown(message)).splitlines()
    console = _Console(stderr=True)
    console.print(
        Text(shown("error:") + " ", "bold red") + Text(head, "not bold default"), soft_wrap=True
    )
    for more in rest:
        console.print(Text(more), soft_wrap=True)


def reason_of(error: OSError) -> str:
    """Return the operating system's reason and the file, worded like our own errors."""
    reason = (error.strerror or str(error)).removeprefix("[Errno None] ")
    where = f"`{mask_credentials(str(error.filename))}`: " if error.filename else ""
    return f"{where}{reason[:1].lower()}{reason[1:]}"


def print_json(value: Any) -> None:
    """Print `value` as JSON in UTF-8, whatever the locale says."""
    write(STDOUT, json_bytes(value))


def json_bytes(value: Any) -> bytes:
    """Return `value` as indented JSON text in UTF-8; what a terminal would obey is escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return (_ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n").encode()


def write(path: str, content: bytes) -> None:
    """Put `content` into a file at once, readable by its owner alone; `-` is standard output.

    What is not a regular file, such as `/dev/null` or a FIFO, is written to as it is.

    Raises:
        OSError: It cannot be written; a file that was there is as it was.
    """
    if path == STDOUT:
        try:
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            _go_silent()
        return
    target = Path(path).resolve()
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                file.write(content)
        else:
            replace_file(target, content)
    except BrokenPipeError:
        pass
    except OSError as error:
        raise type(error)(error.errno, error.strerror, path) from error


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
    """Print rows, untranslated, under translated headings.

    One line each; in a terminal none is longer than that.
    """
    cells = [[one_line(cell) for cell in row] for row in rows]
    names = [shown(column.name) for column in columns]
    widths = [
        max([cell_len(names[at]), *(cell_len(row[at]) for row in cells)])
        for at, column in enumerate(columns)
    ]
    room = width() - len(_GAP) * (len(columns) - 1)
    # The widest gives way first, so that of two long ones each keeps half.
    flexible = [at for at, column in enumerate(columns) if column.flexible]
    while flexible and sum(widths) > room:
        widest = max(flexible, key=widths.__getitem__)
        if widths[widest] <= _LEAST:
            break
        widths[widest] -= 1
    console = _out()
    console.print(_row(columns, widths, names, header=True), soft_wrap=True)
    for row in cells:
        console.print(_row(columns, widths, row), soft_wrap=True)


def _row(
    columns: Sequence[Column], widths: Sequence[int], cells: Sequence[str], *, header: bool = False
) -> Text:
    made = Text()
    for at, (column, room, cell) in enumerate(zip(columns, widths, cells, strict=True)):
        text = cell if cell_len(cell) <= room else set_cell_size(cell, room - 1) + "…"
        pad = " " * (room - cell_len(text))
        is_last = at == len(columns) - 1
        text = pad + text if column.side == "right" else text + ("" if is_last else pad)
        made.append(text, "bold" if header else column.style)
        if not is_last:
            made.append(_GAP)
    made.rstrip()
    return made


def readable(text: str) -> str:
    """Return `text` without the control characters that a terminal would obey."""
    return _UNSAFE.sub("\ufffd", text)


def one_line(text: str) -> str:
    """Return `text` with every run of white space as one space."""
    return readable(" ".join(text.split()))


def number_of(count: int, what: str) -> str:
    """Return a number of things, in the singular for one."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def ask(question: str, *, yes: bool) -> None:
    """Return if the user says yes, or has said so with `--yes`; else exit with 1.

    Without a terminal to ask in, fail.
    """
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        fail(f"not done without an answer: {question}\nhint: `--yes` answers it")
    if not typer.confirm(readable(shown(question)), err=True):
        note("nothing was changed")
        raise typer.Exit(NEGATIVE)


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar for work that takes over a second, in a terminal only.

    Yields a function that takes the number done and the total.
    """
    console = _Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, of: None
        return
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    task = bar.add_task(shown(what), total=None)
    # By a thread, because some work is a single call.
    start = threading.Timer(_PATIENCE_SECONDS, bar.start)
    start.daemon = True
    start.start()
    try:
        yield lambda done, of: bar.update(task, completed=done, total=of)
    finally:
        start.cancel()
        start.join()
        bar.stop()


def _out() -> Console:
    return _Console(highlight=False)


def _go_silent() -> None:
    """Discard all further output, so that the command ends normally."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
