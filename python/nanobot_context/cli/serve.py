"""`serve`: runs a local proxy between any agent and a model server."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from nanobot_context._core import mask_credentials
from nanobot_context.cli import output
from nanobot_context.cli.options import Json, Window, option
from nanobot_context.cli.output import line, note
from nanobot_context.conversations import configured
from nanobot_context.errors import InvalidArgumentError, NanobotContextError


def serve(
    upstream: Annotated[
        str,
        option(
            metavar="URL",
            help="The model server's address, as clients have it: https://api.openai.com/v1.",
        ),
    ],
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 takes a free one.")] = 8787,
    window: Window = None,
    token: Annotated[
        str | None,
        option(
            metavar="TOKEN",
            envvar="NANOBOT_PROXY_TOKEN",
            help="What clients must send; needed for any other address than this machine's.",
        ),
    ] = None,
    record: Annotated[
        Path | None,
        option(
            metavar="FILE",
            help="Append each request, numbers and names only, one JSON object a line.",
        ),
    ] = None,
    cache_breakpoints: Annotated[
        bool,
        typer.Option(
            "--cache-breakpoints", help="Say where the prefix ends that the provider can cache."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a local proxy that makes each request fit.

    Where the server refuses one all the same, a smaller one is sent.

    It speaks what the model's server speaks: OpenAI's chat completions and Responses, Anthropic's
    messages. Give an agent its address in place of the server's; keys and everything else go
    through. What a server states of its window is remembered.

    \b
    Examples:
      nanobot-context serve --upstream https://api.openai.com/v1
      nanobot-context serve --upstream http://127.0.0.1:11434/v1 --window 16384
    """
    parts = urlsplit(upstream)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidArgumentError(
            "`--upstream` must be an address as `https://api.openai.com/v1`", argument="upstream"
        )
    try:
        import uvicorn

        from nanobot_context.wire.proxy import LOOPBACK, SERVER_OPTIONS, listen, make_app
    except ModuleNotFoundError as error:
        raise NanobotContextError(
            f"the proxy needs `{error.name}`\nhint: run `pip install 'nanobot-context[proxy]'`"
        ) from error
    from nanobot_context.guard.counters import Counters
    from nanobot_context.guard.line_file import LineFile
    from nanobot_context.guard.telemetry import Telemetry
    from nanobot_context.wire.exchange import Protection

    if host not in LOOPBACK and not token:
        raise InvalidArgumentError(
            f"`--host {host}` lets other machines in, which needs a token\n"
            "hint: set NANOBOT_PROXY_TOKEN, and have clients send it: see the documentation",
            argument="token",
        )
    settings = configured().settings
    protection = Protection.by(settings, window, way="serve", cache_breakpoints=cache_breakpoints)
    if record is not None:
        file = LineFile(record.absolute(), settings.events_max_bytes)
        protection = replace(protection, telemetry=Telemetry(Counters(requests=file)))
    app = make_app(upstream, protection, token=token)
    listening = listen(host, port)
    server = uvicorn.Server(uvicorn.Config(app, **SERVER_OPTIONS))
    name, number = listening.getsockname()[:2]
    address = f"http://{f'[{name}]' if ':' in name else name}:{number}/v1"
    if as_json:
        output.print_json({"address": address, "upstream": mask_credentials(upstream)})
    else:
        line(f"{address} -> {mask_credentials(upstream)}")
        note("point OPENAI_BASE_URL, or an agent's base URL, to the first; ctrl-c ends it")
    sys.stdout.flush()
    with listening:
        server.run(sockets=[listening])
