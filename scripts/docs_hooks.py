"""Hooks of mkdocs (`mkdocs.yml`): what pages say that does not stand in `docs/`.

Links to files of the repository, which the site has not, become the files' names. The page of the
command line is filled in from the commands themselves, which are imported for that.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Any

__all__ = ["on_page_markdown"]

_LINK = re.compile(r"\[([^\]]+)\]\((\.\./[^)#\s]+)(#[^)\s]*)?\)")
_COMMANDS = "[commands]"


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Return the text of a page as it is to be built."""
    folder = posixpath.dirname(page.file.src_uri)

    def plain(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[2]))
        if not target.startswith("../"):
            return link[0]
        name = target.removeprefix("../")
        return f"`{name}`" if link[1].strip("`") == name else f"{link[1]} (`{name}`)"

    if page.file.src_uri == "reference/command-line.md":
        markdown = markdown.replace(_COMMANDS, "\n".join(_command_line()))
    return _LINK.sub(plain, markdown)


def _command_line() -> Iterator[str]:
    import typer

    from nanobot_context.cli.app import app

    yield from _commands("nanobot-context", typer.main.get_command(app))


def _commands(name: str, group: Any) -> Iterator[str]:
    for word, command in group.commands.items():
        own = f"{name} {word}"
        said, _, examples = command.help.partition("\b\n")
        yield from (f"## `{own}`", "", said.strip(), "")
        if hasattr(command, "commands"):
            yield from _commands(own, command)
            continue
        if examples:
            yield from ("```text", examples.strip(), "```", "")
        yield from (f"- {_spelling(parameter)}: {parameter.help}" for parameter in command.params)
        yield ""


def _spelling(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`"
    value = f" {parameter.metavar}" if parameter.metavar else ""
    return ", ".join(
        f"`{option}{value}`" for option in (*parameter.opts, *parameter.secondary_opts)
    )
