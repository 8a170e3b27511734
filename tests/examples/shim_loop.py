"""nanobot's own loop, with `install()`; run with the interpreter of a nanobot environment."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "nanobot"))

from run_example import WITHOUT
from talk import QUESTIONS, SCHEMA, read_log

from drive import prepare
from stage import Stage


def tool() -> Any:
    base: Any = import_module("nanobot.agent.tools.base").Tool
    known: Any = SCHEMA["function"]

    async def execute(self: Any, day: int) -> str:
        return read_log(day)

    def said(name: str) -> property:
        return property(lambda self: known[name])

    members = {name: said(name) for name in known}
    return type("ReadLog", (base,), {**members, "execute": execute})()


async def main(upstream: str) -> None:
    server: Any = SimpleNamespace(base=upstream, turn=0, requests=[], is_awaited=threading.Event())
    package = "off" if os.environ.get(WITHOUT) else "on"
    stage = Stage(Path.cwd(), server, "openai/gpt-4o-mini", defaults={}, package=package)
    stage.loop.tools.register(tool())
    try:
        for question in QUESTIONS:
            print(await stage.say(question))
        await stage.idle()
    finally:
        await stage.close()


if __name__ == "__main__":
    upstream = os.environ["OPENAI_BASE_URL"]
    prepare()
    asyncio.run(main(upstream))
