"""The command line: protect the environment's nanobot, and say what is protected and what is not.

Imported by `__main__` only, so that the package itself needs neither typer nor rich. Exit codes:
0 when all is well, 1 when nanobot is not protected or `doctor` found a problem, 2 when a command
could not do its work.
"""

from __future__ import annotations

import json
import sys
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from nanobot_context import activation
from nanobot_context.shim.config import nanobot_config_path
from nanobot_context.shim.doctor import Finding, Report, examine
from nanobot_context.shim.learned import learned_file

__all__ = ["app", "run"]

app = typer.Typer(
    name="nanobot-context",
    help="Keep nanobot's conversations inside the model's context window.",
    no_args_is_help=True,
    add_completion=False,
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def run() -> int:
    """Run the command line with the process's arguments and return the exit code."""
    try:
        app()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


@app.command()
def enable() -> None:
    """Protect every nanobot started in this environment, until `disable`."""
    try:
        path = activation.enable()
    except OSError as error:
        _fail(error)
    typer.echo(f"enabled: {path}")


@app.command()
def disable() -> None:
    """Undo `enable` completely."""
    try:
        removed = activation.disable()
    except OSError as error:
        _fail(error)
    for path in removed:
        typer.echo(f"removed: {path}")
    if not removed:
        typer.echo("nothing to remove: not enabled in this environment")


@app.command()
def status(as_json: Json = False) -> None:
    """Say what would be patched in nanobot here, and what not. Imports nanobot."""
    report = examine()
    if as_json:
        _print_json(report)
    else:
        _print_status(Console(), report)
    raise typer.Exit(0 if report.protected else 1)


@app.command()
def forget() -> None:
    """Forget what providers taught: windows, limits of answers, and how they count."""
    file = learned_file(nanobot_config_path())
    try:
        file.unlink()
    except FileNotFoundError:
        typer.echo("nothing to forget")
    except OSError as error:
        _fail(error)
    else:
        typer.echo(f"removed: {file}")


@app.command()
def doctor(as_json: Json = False) -> None:
    """Look for common problems and name the fix for each. Imports nanobot."""
    report = examine()
    if as_json:
        _print_json(report)
    else:
        console = Console()
        _print_versions(console, report)
        _print_status(console, report)
        for finding in report.findings:
            _print_finding(console, finding)
        if not report.findings:
            console.print("no problems found")
    raise typer.Exit(1 if report.findings else 0)


def _print_json(report: Report) -> None:
    # Not through rich, which would wrap and colour it.
    sys.stdout.write(json.dumps(report.to_dict(), ensure_ascii=False, indent=2) + "\n")


def _print_versions(console: Console, report: Report) -> None:
    for name, version in report.versions.items():
        _print_row(console, name, version or "not installed")


def _print_status(console: Console, report: Report) -> None:
    shim = report.status
    generation = f" (generation {shim.generation})" if shim.generation else ""
    _print_row(console, "start-up hook", ", ".join(report.hook_files) or "not enabled")
    _print_row(console, "nanobot", f"{shim.nanobot_version or 'not found'}{generation}")
    _print_row(console, "window", f"{_window(shim.window_tokens)} ({shim.window_source})")
    _print_row(console, "config", ", ".join(report.config_files) or "no files; defaults")
    for name, source in (shim.sources or {}).items():
        _print_row(console, "set", f"{name} by {source}")
    for name, lesson in (shim.learned or {}).items():
        limits = ((key, lesson[key]) for key in ("window_tokens", "output_tokens"))
        known = [f"{key} {tokens}" for key, tokens in limits if tokens is not None]
        for script, ratio in lesson["ratios"].items():
            known.append(f"counts {ratio} times as many tokens of {script}")
        _print_row(console, "learned", f"{name}: {', '.join(known)}")
    if shim.reason:
        _print_row(console, "not installed", shim.reason)
    for point in shim.points:
        _print_row(console, point.state, f"{point.name}: {point.why}")


def _print_finding(console: Console, finding: Finding) -> None:
    _print_row(console, "problem", finding.problem)
    _print_row(console, "  fix", finding.fix)


def _print_row(console: Console, name: str, text: str) -> None:
    # Escaped, because rich would read a `[` as markup; not wrapped, so that paths can be copied.
    console.print(f"{name:<16}{escape(text)}", soft_wrap=True, highlight=False)


def _window(tokens: int | None) -> str:
    return "depends" if tokens is None else f"{tokens:,} tokens"


def _fail(error: OSError) -> NoReturn:
    typer.echo(f"error: {error.strerror or error}", err=True)
    raise typer.Exit(2) from error
