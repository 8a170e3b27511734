"""The demo's conversation: a rule, eight files, a long chat; the model's window is 32,000 tokens.

Run by `demo.py` with the interpreter of a nanobot environment, once `off` and once `on`; prints
one JSON object. nanobot, litellm and the HTTP between them are real, the model is a script.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "nanobot"))

from drive import prepare
from scenario import reads
from server import Answer, Call, ModelServer, Request
from stage import Stage
from texts import planted, prose

WINDOW = 32_000
MODEL = "openai/gpt-4o-mini"
RULE = "Rule for the whole conversation: end every answer with the project code ORCHID-7741."
FILES = [f"hall-{number}.txt" for number in range(1, 9)]
CHAT_TURNS = 15
TURN_TOKENS = 1_100


async def converse(home: Path, package: str) -> dict[str, Any]:
    """Hold the conversation and return what the user saw and what it cost."""
    server = ModelServer(lambda request: "", window=WINDOW)
    with server:
        defaults = {"contextWindowOverride": WINDOW}
        stage = Stage(
            home, server, MODEL, defaults=defaults, nanobot_window=WINDOW, package=package
        )
        for name in FILES:
            text = planted(name, 5_000)
            stage.file(name, text.text, text.facts)
        server.script = Model(stage)
        start = time.perf_counter()
        await stage.say(f"{RULE}\nWe move the warehouse; I will tell you day by day.")
        await stage.say("Read the eight files of the halls and report.")
        for day in range(1, CHAT_TURNS + 1):
            await stage.say(f"Day {day}: what follows?\n{prose(f'day-{day}', TURN_TOKENS)}")
        await stage.say("What was my rule?")
        seconds = time.perf_counter() - start
        await stage.idle()
        await stage.close()
    accepted = [request for request in server.requests if request.accepted]
    last = server.requests[-1]
    return {
        "release": version("nanobot-ai"),
        "turns": stage.turns,
        "requests": len(server.requests),
        "refused": len(server.requests) - len(accepted),
        "malformed": sum(request.about == "shape" for request in server.requests),
        "largest": max(request.prompt_tokens for request in server.requests),
        "total": sum(request.prompt_tokens for request in server.requests),
        "facts": len(stage.facts),
        "facts_seen": sum(any(fact in r.text for r in accepted) for fact in stage.facts),
        "rule_in_last_prompt": ("yes" if rule_seen(last) else "no")
        + ("" if last.accepted else ", but refused"),
        "seconds": round(seconds, 1),
    }


class Model:
    """The script: reads all files when asked, talks otherwise, and keeps the rule if it sees it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.reads = reads(stage.paths(FILES))
        self.done = 0

    def __call__(self, request: Request) -> Answer:
        if request.kind == "memory":
            return consolidate(request)
        said = self.stage.said[-1]
        sign = "ORCHID-7741" if rule_seen(request) else "(no code: I see no rule)"
        if said.startswith("Read"):
            self.done += 1
            if self.done <= len(self.reads):
                step = self.reads[self.done - 1]
                return step(request) if callable(step) else step
            return f"All {len(self.reads)} files are read. {sign}"
        if said.startswith("What was my rule"):
            return f"To end with the project code. {sign}"
        if said.startswith("Day"):
            day = said.partition(":")[0].lower()
            return f"Plan for {day} is made. {sign}\n{prose(f'plan-{day}', TURN_TOKENS)}\n{sign}"
        return f"Understood. {sign}"


def consolidate(request: Request) -> Answer:
    """Return nanobot's memory of a part of the conversation; the rule is worth remembering."""
    kept = {
        "history_entry": "[2026-01-01 00:00] The move of the warehouse was planned.",
        "memory_update": RULE if RULE in request.text else "",
    }
    return [Call("save_memory", kept)] if request.tools else json.dumps(kept)


def rule_seen(request: Request) -> bool:
    """Return whether the user's rule is in this prompt: his own words, or nanobot's memory."""
    return RULE in request.text


def main() -> int:
    """Hold the conversation with the package `on` or `off`."""
    prepare()
    root = Path(tempfile.mkdtemp(prefix="context-demo-"))
    try:
        print(json.dumps(asyncio.run(converse(root / "home", sys.argv[1]))))
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
