"""The commands put together."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from nanobot_context._core import mask_credentials
from nanobot_context.cli import conversation, output, protect, rules, serve, sessions
from nanobot_context.errors import ContextOverflowError, NanobotContextError

NAME = "nanobot-context"


class _Commands(TyperGroup):
    """Commands that repeat no password of a URL that stands in the wrong place."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _masking():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        with _masking():
            return super().invoke(ctx)


@contextmanager
def _masking() -> Iterator[None]:
    """Have what is said about the use of a command hold no password."""
    try:
        yield
    except Exception as error:
        # click's or the copy of it that newer releases of typer bring along.
        if isinstance(message := getattr(error, "message", None), str):
            error.message = mask_credentials(message)  # type: ignore[attr-defined]
        raise


app = typer.Typer(
    name=NAME,
    cls=_Commands,
    help="Keep conversations inside the model's context window; nanobot's, and any other.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    "Protect nanobot": (
        *(protect.enable, protect.disable, protect.status, protect.doctor, protect.forget),
    ),
    "Look at conversations": (
        *(conversation.count, conversation.compress, conversation.inspect, conversation.report),
        rules.rules,
    ),
    "Protect any agent": (serve.serve,),
}
SESSION_COMMANDS: tuple[Callable[..., None], ...] = (
    *(sessions.list_, sessions.show, sessions.import_, sessions.export, sessions.delete),
    sessions.prune,
)


def _add(group: typer.Typer, command: Callable[..., None], panel: str | None = None) -> None:
    """Let a group have a command, named as its function and explained by its docstring."""
    # A paragraph is a line for typer, but those that begin with a backspace stand as they are.
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    text = "\n\n".join(
        one if one.startswith("\b") else one.replace("\n", " ") for one in paragraphs
    )
    group.command(command.__name__.rstrip("_"), help=text, rich_help_panel=panel)(command)


for panel, commands in COMMANDS.items():
    for command in commands:
        _add(app, command, panel)
session_app = typer.Typer(help=sessions.HELP, no_args_is_help=True)
for command in SESSION_COMMANDS:
    _add(session_app, command)
app.add_typer(session_app, name="sessions", rich_help_panel="Keep sessions")


def run() -> int:
    """Run the command line with the process's arguments and return the exit code."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the shell: `>&-`
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # Where the locale has no sign for a character, a question mark is better than no answer.
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    if not sys.stdout.isatty():
        # Help without boxes.
        app.rich_markup_mode = None
    try:
        app(prog_name=NAME)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else output.CANNOT
    except ContextOverflowError as error:
        output.show_error(str(error))
        return output.NEGATIVE
    except NanobotContextError as error:
        output.show_error(str(error))
    except OSError as error:
        reason = (error.strerror or str(error)).removeprefix("[Errno None] ")
        where = f"`{mask_credentials(str(error.filename))}`: " if error.filename else ""
        output.show_error(f"{where}{reason[:1].lower()}{reason[1:]}")
    return output.CANNOT
