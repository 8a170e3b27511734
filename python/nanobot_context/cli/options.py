"""Options and arguments shared by several commands."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated, Literal

import typer

from nanobot_context.conversations import nanobot_session_files
from nanobot_context.errors import NanobotContextError

option = functools.partial(typer.Option, show_default=False)
argument = functools.partial(typer.Argument, show_default=False)


def session_keys(incomplete: str) -> list[str]:
    """Return the session keys that begin with `incomplete`, for the shell's completion."""
    try:
        return [key for key in nanobot_session_files() if key.startswith(incomplete)]
    except (NanobotContextError, OSError):
        return []


Lang = Annotated[
    Literal["en", "zh"] | None,
    option("--lang", help="Language of what is said; by default that of the locale."),
]
Config = Annotated[
    Path | None,
    option(
        "--config",
        "-c",
        metavar="FILE",
        help="nanobot's config file, as nanobot's own `--config`; by default the usual one.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
File = Annotated[
    str,
    argument(
        metavar="FILE",
        help="JSON list of messages, request body, JSONL, nanobot's session file, or the key of a "
        "session; `-` is stdin.",
    ),
]
SessionName = Annotated[
    str,
    argument(
        metavar="SESSION",
        help="nanobot's key of a session (`cli:direct`), or a file; `-` is stdin.",
        autocompletion=session_keys,
    ),
]
Model = Annotated[str | None, option("--model", "-m", metavar="NAME", help="Count as this model.")]
Window = Annotated[
    int | None,
    option(
        "--window",
        "-w",
        metavar="TOKENS",
        min=1,
        help="The context window; by default the model's.",
    ),
]
Store = Annotated[
    str | None,
    option(
        "--store",
        metavar="URL",
        help="Session store (sqlite:///…, redis://…); by default the one in nanobot's settings.",
    ),
]
Workspace = Annotated[
    Path | None,
    option(
        "--workspace",
        metavar="DIR",
        help="nanobot's session files of this workspace; by default the configured one.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
