"""Options and arguments shared by several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from nanobot_context.conversations import nanobot_session_files
from nanobot_context.errors import NanobotContextError


def session_keys(incomplete: str) -> list[str]:
    """Return the session keys that begin with `incomplete`, for the shell's completion."""
    try:
        return [key for key in nanobot_session_files() if key.startswith(incomplete)]
    except (NanobotContextError, OSError):
        return []


Lang = Annotated[
    Literal["en", "zh"] | None,
    typer.Option(
        "--lang",
        help="Language of what is said; by default that of the locale.",
        show_default=False,
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="nanobot's config file, as nanobot's own `--config`; by default the usual one.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="JSON list of messages, request body, JSONL, or nanobot's session file; `-` is stdin.",
        show_default=False,
    ),
]
SessionName = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        help="nanobot's key of a session (`cli:direct`), or a file; `-` is stdin.",
        show_default=False,
        autocompletion=session_keys,
    ),
]
Model = Annotated[
    str | None,
    typer.Option("--model", "-m", metavar="NAME", help="Count as this model.", show_default=False),
]
Window = Annotated[
    int | None,
    typer.Option(
        "--window",
        "-w",
        metavar="TOKENS",
        min=1,
        help="The context window; by default the model's.",
        show_default=False,
    ),
]
Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Session store (sqlite:///…, redis://…); by default the one in nanobot's settings.",
        show_default=False,
    ),
]
Workspace = Annotated[
    Path | None,
    typer.Option(
        "--workspace",
        metavar="DIR",
        help="nanobot's session files of this workspace; by default the configured one.",
        show_default=False,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
