"""A nanobot in which everything happens that the package tells of, and what it told."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import partial
from importlib import import_module
from typing import Any

from refused import announced
from scenario import DONE, WHOLE, Scenario, reads, script
from server import Answer, Call, Request, Script
from stage import Stage
from summarised import SHORT, good
from texts import planted, prose

FILE = "logs/events.jsonl"
FILES, TALK, TEAM, BIG = "cli:files", "cli:talk", "cli:team", "cli:big"
TURNS = 7
"""Questions and answers until the session is summarised."""
ADDRESSES = """
import json, sys
from pathlib import Path
from nanobot_context.host.config import configured_addresses
print(json.dumps([configured_addresses(Path(path), sys.argv[1]) for path in sys.argv[2:]]))
"""
MODEL = "openai/house-live"
STATUS = "import json, nanobot_context; print(json.dumps(nanobot_context.install().to_dict()))"


def tells() -> Scenario:
    """An overflow, its repair, a restart, a summary, a subagent, and a message that is too long."""
    names = [f"live-{number}.txt" for number in range(4)]

    async def play(stage: Stage) -> None:
        told: list[dict[str, Any]] = []
        package = import_module("nanobot_context")
        stop = package.subscribe(lambda event: told.append(event.to_dict()))
        for one in names:
            text = planted(one, 6_000)
            stage.file(one, text.text, text.facts)
        await stage.say("Read the four files. GOAL-live", FILES)
        stage.start()
        await stage.say("And now? GOAL-live", FILES)
        for number in range(TURNS):
            await stage.say(f"Question {number}. GOAL-live", TALK)
        await stage.idle()
        await stage.delegate("Have a subagent do it. GOAL-live", TEAM)
        await stage.say(f"Please read this. GOAL-live\n{prose('paste', 20_000)}", BIG)
        stop()
        status = package.status()
        records = import_module("nanobot_context.guard.record_file").read_records
        # Saves the counts, and the file is at its end.
        package.uninstall()
        written = (stage.home / ".nanobot" / FILE).read_text(encoding="utf-8").splitlines()
        stage.notes |= {
            "told": told,
            "written": [json.loads(line) for line in written],
            "counters": status.counters.to_dict(),
            "records": [
                record.to_dict() for record in records(stage.home / ".nanobot" / "config.json")
            ],
            "inspected": asked("-m", "nanobot_context", "inspect", FILES, "--json"),
            "page": page_of(stage, FILES),
            "status": asked("-m", "nanobot_context", "status", "--json"),
            "next_process": shown_by_another_process(),
            "windows": [
                [shown["window_tokens"], shown["window_source"]]
                for shown in (
                    asked("-m", "nanobot_context", "status", "--json")["status"],
                    asked("-m", "nanobot_context", "inspect", FILES, "--json"),
                )
            ],
            "addresses": addresses(stage),
        }

    def model(stage: Stage) -> Script:
        answers = [f"Answer {number}." for number in range(TURNS)]
        spawn = [Call("spawn", {"task": "Do it.", "label": "doer"})]
        asked = partial(announced, otherwise="I have asked a subagent.")
        works = script(
            [*reads(stage.paths(names)), DONE, "Nothing more.", *answers, spawn, asked, asked],
            [DONE],
        )

        def answer(request: Request) -> Answer:
            return good(request, request.index) if request.kind == "summary" else works(request)

        return answer

    return Scenario(
        "live",
        play,
        model,
        window=16_000,
        known=None,
        model=MODEL,
        memory_window=1_000,
        result_chars=WHOLE,
        settings={**SHORT, "events": FILE},
    )


def shown_by_another_process() -> dict[str, Any]:
    """Return the counters in the status of a process of its own, which counts nothing itself."""
    counters: dict[str, Any] = asked("-c", STATUS)["counters"]
    return counters


def page_of(stage: Stage, session: str) -> Any:
    """Return the data of the report page of a session."""
    file = stage.home / "report.html"
    asked("-m", "nanobot_context", "report", session, "-o", str(file), "--json")
    found = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', file.read_text("utf-8")
    )
    assert found is not None
    return json.loads(found[1])


def addresses(stage: Stage) -> Any:
    """Return where requests go with the play's config file, then with others, by what they say."""
    config = stage.home / ".nanobot" / "config.json"
    given = json.loads(config.read_text(encoding="utf-8"))
    own, other = ({"apiKey": "k", "apiBase": f"http://{name}:1/v1"} for name in ("own", "other"))
    defaults = {**given["agents"]["defaults"], "provider": "custom"}
    presets = {"mine": {"model": MODEL, "provider": "custom"}}
    files = {"given": config}
    others: dict[str, dict[str, Any]] = {
        "other": {"providers": {"openai": other}},
        "usual": {"providers": {"openai": {"apiKey": "k"}}},
        "nobody": {"providers": {}},
        "custom": {"providers": {"openai": other, "custom": own}, "agents": {"defaults": defaults}},
        "preset": {
            "providers": {"openai": other, "custom": own},
            "modelPresets": presets,
            "agents": {"defaults": {"model": "openai/gpt-4o"}},
        },
        "damaged": {"providers": 7},
    }
    for name, changes in others.items():
        files[name] = config.with_name(f"{name}.json")
        files[name].write_text(json.dumps({**given, **changes}), encoding="utf-8")
    found = asked("-c", ADDRESSES, MODEL, *map(str, files.values()))
    return dict(zip(files, found, strict=True))


def asked(*arguments: str) -> Any:
    """Return what a process of its own prints as JSON; `status` exits with 1 without a hook."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    )
    return json.loads(done.stdout)
