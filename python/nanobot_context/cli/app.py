"""Assembles the commands, and runs them in the language of the locale or of `--lang`."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from nanobot_context._core import mask_credentials
from nanobot_context.cli import conversation, output, protect, rules, serve, sessions
from nanobot_context.cli.options import Config, Lang
from nanobot_context.errors import ContextOverflowError, NanobotContextError
from nanobot_context.host.config import choose_config
from nanobot_context.words import Language, choose, shown

NAME = "nanobot-context"


class _Command(TyperCommand):
    """A command that is explained in the user's language."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _in_words(super().get_params(ctx))


class _Commands(TyperGroup):
    """Commands that are explained in the user's language.

    What is said of their use repeats no password of a URL that stands in the wrong place.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        return _in_words(super().get_params(ctx))

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _masking():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        with _masking():
            return super().invoke(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command: Any = super().get_command(ctx, cmd_name)
        if command is not None:
            command.help = shown(command.help)
            command.rich_help_panel = shown(command.rich_help_panel or "") or None
        return command


def _in_words(parameters: list[Any]) -> list[Any]:
    """Return parameters of a command with their help in the user's language."""
    for parameter in parameters:
        if text := getattr(parameter, "help", None):
            parameter.help = shown(text)
    return parameters


@contextmanager
def _masking() -> Iterator[None]:
    """Mask passwords in the errors about a command's usage."""
    try:
        yield
    except Exception as error:
        # click's or the copy of it that newer releases of typer bring along.
        if isinstance(message := getattr(error, "message", None), str):
            # The message of a command without arguments is its help.
            said = message if "\n" in message else shown(message)
            error.message = mask_credentials(said)  # type: ignore[attr-defined]
        raise


app = typer.Typer(
    name=NAME,
    cls=_Commands,
    help="Keep conversations inside the model's context window; nanobot's, and any other.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _options(lang: Lang = None) -> None:
    """Take what stands before a command's name: see `run`."""


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
    """Add a command to a group, named after its function and explained by its docstring."""
    # A paragraph is a line for typer, but those that begin with a backspace stand as they are.
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    text = "\n\n".join(
        one if one.startswith("\b") else one.replace("\n", " ") for one in paragraphs
    )
    name = command.__name__.rstrip("_")
    group.command(name, cls=_Command, help=text, rich_help_panel=panel)(_with_common(command))


def _with_common(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with `--config` and `--lang` added; `run` reads the latter itself."""

    @functools.wraps(command)
    def run_command(
        *args: Any, config: Path | None = None, lang: Language | None = None, **options: Any
    ) -> None:
        if config is not None and not config.expanduser().is_file():
            if config.expanduser().exists():
                output.fail(f"`{config}` is not a regular file")
            output.fail(f"`{config}`: no such file or directory")
        choose_config(config)
        command(*args, **options)

    common = {"config": Config, "lang": Lang}
    hints = {**get_type_hints(command, include_extras=True), **common}
    known = inspect.signature(command).parameters.values()
    kept = [one.replace(annotation=hints[one.name]) for one in known]
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in common.items()
    ]
    run_command.__annotations__ = hints
    run_command.__signature__ = inspect.Signature([*kept, *more])  # type: ignore[attr-defined]
    return run_command


for panel, commands in COMMANDS.items():
    for command in commands:
        _add(app, command, panel)
session_app = typer.Typer(cls=_Commands, help=sessions.HELP, no_args_is_help=True)
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
    choose(_asked_language(sys.argv))
    app.info.help = shown(app.info.help or "")
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
        output.show_error(output.reason_of(error))
    return output.CANNOT


def _asked_language(arguments: list[str]) -> Language | None:
    """Return what `--lang` says: before all else is read, because errors in it are said in it."""
    for at, argument in enumerate(arguments):
        given = argument.removeprefix("--lang=")
        if argument == "--lang":
            given = "".join(arguments[at + 1 : at + 2])
        if given != argument and given in ("en", "zh"):
            return "zh" if given == "zh" else "en"
    return None
