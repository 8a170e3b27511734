"""Someone who reads a page and does what it says: home, environment, and what has been run."""

from __future__ import annotations

import contextlib
import ensurepip
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from nanobot_context.settings import load_settings
from scenario import script
from server import Call, ModelServer
from stage import write_config

from .blocks import ROOT, Block

RELEASE = "0.3.5"
MODEL = "openai/gpt-4o-mini"
LOCK = ROOT / "tests" / "nanobot" / "locks" / f"{RELEASE}.txt"
UV = str(Path(sys.executable).with_name("uv"))
SECONDS = 180.0


def make_environment(folder: Path) -> Path:
    """Make a clean environment with pip and nanobot, as users have it; return its `bin`."""
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
    inside = folder / ("Scripts" if os.name == "nt" else "bin")
    install(inside, f"pip=={ensurepip.version()}", "-r", str(LOCK))
    return inside


def install(inside: Path, *what: str) -> None:
    """Install into the environment of `inside` by the project's uv."""
    python = str(inside / "python")
    subprocess.run([UV, "pip", "install", "--quiet", "--python", python, *what], check=True)


def wheel() -> Path:
    """Return the wheel that `make build` left."""
    found = sorted((ROOT / "dist").glob("nanobot_context-*.whl"))
    assert found, "no wheel in dist/; hint: `make build`"
    return found[-1]


def environment(inside: Path, home: Path) -> dict[str, str]:
    """Return the variables of a shell in which the environment of `inside` is active."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("NANOBOT_", "OPENAI_", "VIRTUAL_ENV"))
    }
    return {
        **kept,
        "PATH": f"{inside}{os.pathsep}{kept['PATH']}",
        "HOME": str(home),
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "PYTHONUTF8": "1",
        # `pip install nanobot-context` gets the wheel that was built, and nothing from elsewhere.
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheel().parent),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
    }


def set_up_nanobot(home: Path, server: ModelServer, **defaults: Any) -> Path:
    """Write the config of a nanobot that has been set up, and let the model read `big.log` once."""
    workspace = home / ".nanobot" / "workspace"
    workspace.mkdir(parents=True)
    write_config(home, server.base, MODEL, defaults)
    path = str(workspace / "big.log")
    server.script = script([[Call("read_file", {"path": path})], "The last line is an error."])
    return workspace


class Reader:
    """Runs the blocks of one page in their order, in one folder and one Python namespace."""

    def __init__(self, inside: Path, home: Path) -> None:
        self.variables = environment(inside, home)
        self.folder = home
        self.namespace: dict[str, Any] = {"__name__": "__page__"}

    def follow(self, block: Block) -> str:
        """Do what `block` says and return what it printed."""
        if block.not_run or block.example or block.language == "text":
            return ""
        return {
            "python": self.python,
            "sh": self.shell,
            "console": self.console,
            "json": self.settings,
        }[block.language](block)

    def python(self, block: Block) -> str:
        source = "\n" * (block.line - 1) + block.text
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, str(block.page), "exec"), self.namespace)
        said = printed.getvalue()
        # `print(...)  # text` promises what is printed.
        promised = re.findall(r"^ *print\(.*\)  # (.+)$", block.text, re.MULTILINE)
        assert [line for line in said.splitlines() if line in promised] == promised, (
            f"{block.place} printed:\n{said}"
        )
        return said

    def shell(self, block: Block) -> str:
        if block.own_commands:
            targets = (ROOT / "Makefile").read_text(encoding="utf-8")
            for target, script in block.own_commands:
                assert f"\n{target}:" in targets if target else (ROOT / script).is_file(), (
                    block.place
                )
            return ""
        code, said = self.command(block.text)
        assert code == 0, f"{block.place} ended with {code}:\n{said}"
        return said

    def console(self, block: Block) -> str:
        """Run what stands behind `$ `, and compare what each prints with what stands below it."""
        everything = ""
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            line, _, shown = part.partition("\n")
            _, said = self.command(line)
            pattern = ".*".join(re.escape(part) for part in aligned(shown).split("…"))
            assert re.fullmatch(pattern, aligned(said), re.DOTALL), (
                f"{block.place}: `{line}` printed:\n{said}"
            )
            everything += said
        return everything

    def settings(self, block: Block) -> str:
        """Read a settings file as nanobot-context does; other JSON has to be JSON."""
        data = json.loads(block.text)
        files = {"config.json", "nanobot-context.json"}
        if (name := Path(block.title).name) not in files:
            return ""
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / name).write_text(block.text, encoding="utf-8")
            loaded = load_settings(Path(folder) / "config.json", {})
            if name == "nanobot-context.json":
                assert len(loaded.sources) == len(data), f"{block.place}: a key is not read"
        target = self.folder / ".nanobot" / name
        if name == "nanobot-context.json":
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        return ""

    def command(self, text: str) -> tuple[int, str]:
        """Run `text` by the shell and return its exit code and what it printed."""
        done = subprocess.run(
            ["sh", "-e", "-c", text],
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=False,
        )
        return done.returncode, done.stdout.decode(errors="replace")


def aligned(text: str) -> str:
    """Return `text` without what lines up its columns: their width follows from the longest."""
    return "\n".join(re.sub(r" {2,}", "  ", line.rstrip()) for line in text.strip().splitlines())
