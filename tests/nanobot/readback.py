"""The model reads a shortened result back, from the path that stands in its place."""

from __future__ import annotations

import re
from pathlib import Path

from scenario import DONE, Scenario, Step, reads, script, then_ping
from server import Answer, Call, Request, Script, content_text
from stage import Stage
from texts import planted

PATH = re.compile(r"; all of it: (\S+?)(?: \.\.\.)?\]")
RESULTS = Path(".nanobot-context", "results")


def read_back(name: str = "readback") -> Scenario:
    """Eight files, then the first result once more from where it is kept, then five more files.

    nanobot is restricted to its workspace, so that the path must lie inside.
    """
    names = [f"{name}-{number:02}.txt" for number in range(13)]

    async def play(stage: Stage) -> None:
        for one in names:
            text = planted(one, 4_000)
            stage.file(one, text.text, text.facts)
        await stage.say("Read the files, and the first one twice. GOAL-READBACK")
        await then_ping(stage)

    def model(stage: Stage) -> Script:
        notes = stage.notes
        steps: list[Step] = [*reads(stage.paths(names))]

        def second(request: Request) -> Answer:
            notes["original"] = results(request, stage.facts[0])[0]
            return [Call("read_file", {"path": str(stage.paths(names)[1])})]

        def again(request: Request) -> Answer:
            short = results(request, stage.facts[0])[0]
            found = PATH.search(short)
            if found is None:
                return f"No path stands in: {short[:300]}"
            notes["path"] = found[1]
            return [Call("read_file", {"path": found[1]})]

        def check(request: Request) -> Answer:
            notes["read"] = results(request, stage.facts[0])[-1]
            return [Call("read_file", {"path": str(stage.paths(names)[8])})]

        def last(request: Request) -> Answer:
            notes["shortened_again"] = results(request, stage.facts[0])[-1]
            kept = sorted((stage.workspace / RESULTS).glob("*.txt"))
            notes["kept"] = {file.name: file.read_text(encoding="utf-8") for file in kept}
            notes["modes"] = sorted({file.stat().st_mode & 0o777 for file in kept})
            return DONE

        return script([steps[0], second, *steps[2:8], again, check, *steps[9:], last])

    return Scenario(name, play, model, window=24_000, restricted=True)


def results(request: Request, fact: str) -> list[str]:
    """Return the results with `fact` in them; nanobot gives calls ids of its own."""
    said = [content_text(m) for m in request.messages if m["role"] == "tool"]
    return [text for text in said if fact in text]
