"""The plain `nanobot agent -m` command, after `nanobot-context enable` and after `disable`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

from scenario import WHOLE, reads, script
from server import ModelServer
from stage import RULES, write_config
from texts import planted

WINDOW = 24_000
DONE = "CONSOLE-DONE"
MODEL = "openai/gpt-4o-mini"
COMMAND_SECONDS = 900.0


async def play_console(home: Path) -> dict[str, Any]:
    """Run the commands in their order; return what each printed and what `disable` left behind.

    The hook that `enable` writes belongs to the environment: nothing else may run there then.
    """
    workspace = home / ".nanobot" / "workspace"
    workspace.mkdir(parents=True)
    (workspace / "AGENTS.md").write_text("\n".join(RULES), encoding="utf-8")
    names = [f"console-{number}.txt" for number in range(5)]
    for name in names:
        (workspace / name).write_text(planted(name, 6_000).text, encoding="utf-8")
    before = installed_files()
    steps: dict[str, Any] = {}
    try:
        steps["enable"] = await command("nanobot-context", "enable")
        steps["protected"] = await agent(home, workspace, names)
        steps["saves"] = await command(Path(sys.executable).name, beside("saves.py"))
    finally:
        steps["disable"] = await command("nanobot-context", "disable")
    left_behind = sorted(installed_files() - before)
    steps["unprotected"], after = await asyncio.gather(
        agent(home, workspace, names), switched_off(home.parent)
    )
    return {"steps": steps, "left_behind": left_behind, "switched_off": after}


async def switched_off(root: Path) -> dict[str, Any]:
    """Play the scenario of this name in a process of its own, in the same home as all others."""
    job = ["--root", str(root), "switched-off:off"]
    seen = await command(Path(sys.executable).name, beside("drive.py"), *job)
    result: dict[str, Any] = json.loads(seen["printed"].splitlines()[-1])
    return result


def beside(name: str) -> str:
    """Return the path of a file that is beside this one."""
    return str(Path(__file__).with_name(name))


async def agent(home: Path, workspace: Path, names: list[str]) -> dict[str, Any]:
    """Let the console command read five files with a window that holds three."""
    files = [workspace / name for name in names]
    server = ModelServer(script([*reads(files), DONE]), window=WINDOW)
    with server:
        settings = {"contextWindowOverride": WINDOW, "maxToolResultChars": WHOLE}
        write_config(home, server.base, MODEL, settings)
        chat = ["--session", f"cli:{server.base.split(':')[2].split('/')[0]}", "--no-markdown"]
        seen = await command("nanobot", "agent", "-m", "Read the five files.", *chat)
    return {
        **seen,
        "requests": [request.summary() for request in server.requests],
        "overflows": sum(request.about == "overflow" for request in server.requests),
    }


async def command(name: str, *arguments: str) -> dict[str, Any]:
    """Run a console script of this environment and return its exit code and what it printed."""
    script_path = Path(sys.executable).with_name(name)
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "PYTHONUTF8": "1"}
    process = await asyncio.create_subprocess_exec(
        str(script_path),
        *arguments,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await asyncio.wait_for(process.communicate(), COMMAND_SECONDS)
    return {"code": process.returncode, "printed": printed.decode(errors="replace")}


def installed_files() -> set[str]:
    """Return every file of the environment's site-packages and scripts, compiled ones aside."""
    roots = {
        sysconfig.get_path("purelib"),
        sysconfig.get_path("platlib"),
        sysconfig.get_path("scripts"),
    }
    return {
        os.path.join(folder, name)  # noqa: PTH118 (25,000 files: Path would take seconds)
        for root in roots
        for folder, _, names in os.walk(root)
        if not folder.endswith("__pycache__")
        for name in names
    }
