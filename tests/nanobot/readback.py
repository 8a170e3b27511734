"""The model reads a shortened result back, from the path that stands in its place."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from scenario import DONE, WHOLE, Scenario, script, then_ping
from server import Answer, Call, Request, Script, content_text
from stage import Stage
from texts import planted

PATH = re.compile(r"; all of it: (\S+?)(?: \.\.\.)?\]")
RESULTS = Path(".nanobot-context", "results")


def read_back(name: str = "readback") -> Scenario:
    """Eight files, then a shortened result once more from where it is kept, then five more files.

    nanobot is restricted to its workspace, so that the path must lie inside.
    """
    names = [f"{name}-{number:02}.txt" for number in range(13)]

    async def play(stage: Stage) -> None:
        for number, one in enumerate(names):
            # The last are short, so that what was read back gives way to them and is not left out.
            text = planted(one, 4_000 if number < 9 else 2_000)
            stage.file(one, text.text, text.facts)
        await stage.say("Read the files, and one of them twice. GOAL-READBACK")
        await then_ping(stage)

    def model(stage: Stage) -> Script:
        notes = stage.notes
        first_seen: dict[str, str] = {}

        def read(number: int) -> Callable[[Request], Answer]:
            def step(request: Request) -> Answer:
                note(request, number)
                return [Call("read_file", {"path": str(stage.paths(names)[number])})]

            return step

        def note(request: Request, number: int) -> None:
            """Keep how a result is first seen, and how the one read back is once it is short."""
            if "read" in notes:
                again = results(request, notes["head"])
                if again and len(again[-1]) < len(notes["read"]) / 2:
                    notes.setdefault("shortened_again", again[-1])
            elif number:
                head = stage.facts[3 * number - 3]
                first_seen[head] = results(request, head)[-1]

        def again(request: Request) -> Answer:
            short = {head: results(request, head) for head in first_seen}
            paths = {head: PATH.search(text[0]) for head, text in short.items() if text}
            named = {head: path[1] for head, path in paths.items() if path}
            if not named:
                return f"No path stands in: {short}"
            notes["head"], notes["path"] = next(iter(named.items()))
            notes["original"] = first_seen[notes["head"]]
            return [Call("read_file", {"path": notes["path"]})]

        def check(request: Request) -> Answer:
            notes["read"] = results(request, notes["head"])[-1]
            return read(8)(request)

        def last(request: Request) -> Answer:
            note(request, len(names))
            kept = sorted((stage.workspace / RESULTS).glob("*.txt"))
            notes["kept"] = {file.name: file.read_text(encoding="utf-8") for file in kept}
            notes["modes"] = sorted({file.stat().st_mode & 0o777 for file in kept})
            return DONE

        return script([*map(read, range(8)), again, check, *map(read, range(9, 13)), last])

    return Scenario(name, play, model, window=24_000, restricted=True, result_chars=WHOLE)


def results(request: Request, fact: str) -> list[str]:
    """Return the results with `fact` in them; nanobot gives calls ids of its own."""
    said = [content_text(m) for m in request.messages if m["role"] == "tool"]
    return [text for text in said if fact in text]
