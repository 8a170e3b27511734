"""The demo's three conversations with a model of 64,000 tokens; `demo.py` has their titles.

Run by `demo.py` with the interpreter of a nanobot environment: `conversation.py ACT on|off [PAGE]`.
Prints one JSON object, and writes the report page to `PAGE`. nanobot and the HTTP are real; the
model is a script that answers only from what its prompt holds, behind a server that refuses longer
prompts in OpenAI's words.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "nanobot"))

from drive import prepare
from refused import announced
from scenario import memory
from server import Answer, Call, ModelServer, Request
from stage import Stage
from texts import PLACES, code, log_lines

WINDOW = 64_000
MODEL = "openai/house-64k"
STILL_THERE = "Hello?"
SESSION = "cli:direct"
CHARS_A_TOKEN = 2.2
"""Of `log_lines`, by o200k_base."""


@dataclass(frozen=True)
class Act:
    """One conversation.

    Attributes:
        said: The first thing that the user says.
        files: How many files are read.
        tokens: Tokens of each.
        told_window: Whether nanobot's config says how large the window is.
        is_delegated: Whether a subagent reads them.
    """

    said: str
    files: int
    tokens: int
    told_window: bool = True
    is_delegated: bool = False


ACTS = (
    Act(
        "Read the eight logs and tell me the codes.",
        8,
        13_800,
    ),
    Act(
        "Have a subagent read the eight logs and tell me the codes.",
        8,
        13_800,
        is_delegated=True,
    ),
    Act(
        "Read the two logs and tell me the codes.",
        2,
        30_000,
        told_window=False,
    ),
)


async def converse(home: Path, act: Act, package: str, report: str | None) -> dict[str, Any]:
    """Hold the conversation and return what the user saw and what it cost."""
    with ModelServer(lambda request: "", window=WINDOW) as server:
        defaults = {"contextWindowTokens": WINDOW} if act.told_window else {}
        window = WINDOW if act.told_window else None
        stage = Stage(
            home, server, MODEL, defaults=defaults, nanobot_window=window, package=package
        )
        names = [f"log-{number}.txt" for number in range(1, act.files + 1)]
        for name in names:
            log, codes = log_of(name, act.tokens)
            stage.file(name, log, codes)
        server.script = Model(stage, act, [str(path) for path in stage.paths(names)])
        start = time.perf_counter()
        if act.is_delegated:
            await stage.delegate(act.said)
        else:
            await stage.say(act.said)
        for _ in range(2):
            await stage.say(STILL_THERE)
        seconds = time.perf_counter() - start
        await stage.idle()
        await stage.close()
    if report is not None:
        write_report(report)
    accepted = [request for request in server.requests if request.accepted]
    return {
        "turns": stage.turns,
        "refused": len(server.requests) - len(accepted),
        "tokens": sum(request.prompt_tokens for request in accepted),
        "facts": len(stage.facts),
        "facts_seen": sum(any(fact in r.text for r in accepted) for fact in stage.facts),
        "seconds": round(seconds, 1),
    }


def write_report(path: str) -> None:
    """Write the page of what was sent, once all of it is recorded."""
    # Only here: without the package nothing of it may be there.
    import_module("nanobot_context").uninstall()
    command = [sys.executable, "-m", "nanobot_context", "report", SESSION, "-o", path]
    subprocess.run([*command, "--lang", "en"], check=True, stdout=subprocess.DEVNULL)


def log_of(name: str, tokens: int) -> tuple[str, tuple[str, ...]]:
    """Return a log of about so many tokens, and the three errors in it, each with a code."""
    lines = log_lines(name, int(tokens * CHARS_A_TOKEN)).split("\n")
    codes = tuple(f"ERROR code {code(name, place)}" for place in PLACES)
    for at, error in zip((0, len(lines) // 2, -1), codes, strict=True):
        lines[at] = f"2026-01-02T03:04:05Z {error}"
    return "\n".join(lines), codes


class Model:
    """The script: reads the files, and says how many codes its prompt holds."""

    def __init__(self, stage: Stage, act: Act, paths: list[str]) -> None:
        self.stage = stage
        self.act = act
        self.reads = [Call("read_file", {"path": path}) for path in paths]
        self.is_spawned = False
        self.has_read = False

    def __call__(self, request: Request) -> Answer:
        if request.kind == "memory":
            return memory(request)
        if self.stage.said[-1] == STILL_THERE:
            return "Yes, I am here."
        if request.kind == "main" and self.act.is_delegated:
            if not self.is_spawned:
                self.is_spawned = True
                return [Call("spawn", {"task": self.act.said, "label": "reader"})]
            return announced(request, "A subagent is reading the logs.")
        if not self.has_read:
            self.has_read = True
            return self.reads
        seen = sum(fact in request.text for fact in self.stage.facts)
        return f"All files are read; I see {seen} of {len(self.stage.facts)} codes."


def main() -> int:
    """Hold one conversation with the package `on` or `off`."""
    prepare()
    root = Path(tempfile.mkdtemp(prefix="context-demo-"))
    try:
        act = ACTS[int(sys.argv[1])]
        report = sys.argv[3] if len(sys.argv) > 3 else None
        print(json.dumps(asyncio.run(converse(root / "home", act, sys.argv[2], report))))
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
