"""The proxy in this process, on a free port of the loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from nanobot_context.settings import Settings
from nanobot_context.wire.exchange import Protection
from nanobot_context.wire.proxy import SERVER_OPTIONS, listen, make_app


@contextmanager
def proxying(
    upstream: str, *, window: int | None = None, token: str | None = None
) -> Iterator[str]:
    """Run the proxy until the end of the block; give its address."""
    app = make_app(upstream, Protection.by(Settings(), window), token=token)
    server = uvicorn.Server(uvicorn.Config(app, **SERVER_OPTIONS))
    listening = listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
