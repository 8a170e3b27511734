"""Play scenarios with the nanobot of the interpreter that runs this file, one JSON line for each.

    .cache/nanobot/0.1.4.post4/bin/python tests/nanobot/drive.py --package on A B G
    .cache/nanobot/0.1.4.post4/bin/python tests/nanobot/drive.py A:off A:on switched-off:disabled

A job is `scenario:mode`, or a scenario alone, which takes its mode from `--package`. The modes:
`off` plays nanobot as it is, `on` after `nanobot_context.install()`, `disabled` the same with
`contextCompression: false` in nanobot's config, `environment` with a variable that says so,
`removed` after `install()` and `uninstall()`.
Jobs that are off are played first, before the package is imported. `console` is a job of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import copy
import json
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Coroutine
from functools import cache, partial
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from console import play_console
from counting import offline_ranks
from scenario import Scenario, script
from scenarios import SCENARIOS
from server import ModelServer, Request, content_text
from stage import RULES, Stage, session_faults, session_files, stopped_clock

TIME = re.compile(r"_(at|ms)$|^timestamp$")
"""The keys of session files that say when something was or how long it took."""
MODES = ("off", "on", "disabled", "environment", "removed")
JOB_SECONDS = 1_200.0
FILED = ("A", "thinking")
"""Scenarios whose session files are kept as they are."""


def main(argv: list[str] | None = None) -> int:
    """Play the jobs of `argv` and print their results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("jobs", nargs="*", help=f"scenario[:mode] of {', '.join(SCENARIOS)}")
    parser.add_argument("--package", choices=("on", "off"), default="on")
    parser.add_argument(
        "--root", type=Path, help="keep homes here instead of a temporary directory"
    )
    options = parser.parse_args(argv)
    wanted = options.jobs or list(SCENARIOS)
    jobs = [parse(job, options.package) for job in wanted if job != "console"]
    prepare()
    root = options.root or Path(tempfile.mkdtemp(prefix="context-"))
    try:
        for scenario, mode in sorted(jobs, key=lambda job: job[1] != "off"):
            show(run(scenario.name, mode, root / scenario.name, partial(perform, scenario, mode)))
        if "console" in wanted:
            show(run("console", "console", root / "console", play_console))
    finally:
        if options.root is None:
            shutil.rmtree(root, ignore_errors=True)
    return 0


def parse(job: str, package: str) -> tuple[Scenario, str]:
    """Return scenario and mode that `job` names."""
    name, _, mode = job.partition(":")
    mode = mode or package
    if name not in SCENARIOS or mode not in MODES:
        raise SystemExit(f"error: no job `{job}`\nhint: scenario[:mode], modes {', '.join(MODES)}")
    return SCENARIOS[name], mode


def prepare() -> None:
    """Make this process independent of the machine: no network, no settings, no log lines."""
    os.environ["TIKTOKEN_CACHE_DIR"] = str(offline_ranks())
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["NO_PROXY"] = "127.0.0.1"
    for name in list(os.environ):
        if name.startswith(("NANOBOT_", "OPENAI_")):
            del os.environ[name]
    import_module("loguru").logger.remove()
    import_module("nanobot.agent.loop")
    # OpenAI's client pauses before it repeats a request whose connection was closed.
    import_module("openai._base_client").__dict__["MAX_RETRY_DELAY"] = 0
    # Later releases parse the head of every skill several times a request: half of a play's time.
    if find_spec("yaml"):
        yaml: Any = import_module("yaml")
        parsed = cache(yaml.safe_load)
        yaml.safe_load = lambda text: copy.deepcopy(parsed(text))


def show(result: dict[str, Any]) -> None:
    """Print one result as a line of JSON."""
    print(json.dumps(result), flush=True)


def run(
    name: str, mode: str, home: Path, play: Callable[[Path], Coroutine[Any, Any, dict[str, Any]]]
) -> dict[str, Any]:
    """Play one job in a fresh home and return everything that a test may ask about.

    The home's path is part of nanobot's system prompt: a scenario has the same one in every mode,
    so that the requests of two modes can be compared.
    """
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    os.environ["HOME"] = str(home)
    start = time.perf_counter()
    result: dict[str, Any] = {
        "scenario": name,
        "mode": mode,
        "release": version("nanobot-ai"),
        "error": None,
    }
    try:
        result |= asyncio.run(play(home))
    except Exception:
        result["error"] = traceback.format_exc()
    return {**result, "seconds": round(time.perf_counter() - start, 3)}


async def perform(scenario: Scenario, mode: str, home: Path) -> dict[str, Any]:
    """Play one scenario on a new stage, with the package in the state that `mode` asks for."""
    server = ModelServer(
        script([]),
        window=scenario.window,
        form=scenario.form,
        encoding=scenario.encoding,
        say_prompt=scenario.say_prompt,
        factor=scenario.factor,
        framing=scenario.framing,
        windows=dict([scenario.fallback]) if scenario.fallback else {},
    )
    defaults: dict[str, Any] = {**scenario.defaults}
    if scenario.override is not None:
        defaults["contextWindowOverride"] = scenario.override
    if mode == "disabled":
        defaults["contextCompression"] = False
    with server, stopped_clock() if scenario.stopped else contextlib.nullcontext():
        stage = Stage(
            home,
            server,
            scenario.model,
            defaults=defaults,
            presets=scenario.presets,
            memory_window=scenario.memory_window,
            nanobot_window=scenario.in_code or scenario.override,
            provider=scenario.provider,
            gateway=scenario.gateway,
            fallback=scenario.fallback[0] if scenario.fallback else None,
            restricted=scenario.restricted,
            result_chars=scenario.result_chars,
            package=mode,
            settings=scenario.settings,
        )
        server.script = scenario.script(stage)
        try:
            async with asyncio.timeout(JOB_SECONDS):
                await scenario.play(stage)
                await stage.idle()
        finally:
            await stage.close()
    return collect(stage, server, scenario)


def collect(stage: Stage, server: ModelServer, scenario: Scenario) -> dict[str, Any]:
    """Return the findings of a played scenario."""
    accepted = [r for r in server.requests if r.accepted]
    main = [r for r in accepted if r.kind == "main"]
    seen = [fact for fact in stage.facts if any(fact in r.text for r in accepted)]
    kept = [
        file.read_text(encoding="utf-8")
        # In the workspace; `history.jsonl` since 0.1.5.
        for file in (stage.workspace / "memory").glob("*")
        if file.name in ("HISTORY.md", "history.jsonl")
    ]
    return {
        "window": scenario.window,
        "turns": stage.turns,
        "requests": [r.summary() for r in server.requests],
        "accepted": len(accepted),
        "overflows": sum(r.about == "overflow" for r in server.requests),
        "malformed": [r.summary() for r in server.requests if r.about == "shape"],
        "max_prompt_tokens": max((r.prompt_tokens for r in server.requests), default=0),
        "facts": len(stage.facts),
        "facts_seen": len(seen),
        "facts_missing": [fact for fact in stage.facts if fact not in seen],
        "foreign_prompts": sum(
            is_foreign(stage, r)
            for r in server.requests
            # Consolidation is one user message that may itself be longer than the window.
            if r.kind != "memory"
        ),
        "requests_without_the_goal": sum(
            not goal(stage, r)
            for r in server.requests
            if r.kind == "main" and r.turn and r.turn not in stage.dropped
        ),
        "rules_kept": all(rule in r.system for r in main for rule in RULES),
        "calls": stage.calls,
        "lists_changed": stage.lists_changed,
        "session_faults": session_faults(stage.home),
        "saved": saved(stage.home) if scenario.stopped else None,
        "session_files": {
            path.name: path.read_bytes().decode()
            for path in session_files(stage.home)
            if scenario.name in FILED
        },
        "notes": stage.notes,
        "consolidated": any("MEMORY-ENTRY" in text for text in kept),
    }


NOTE = re.compile(
    r"\[[\d,]+ messages? left out(?: here and below)?\]"
    r"|\[已省略 [\d,]+ 条消息(?:，此处及下文)?\]"
    r"|\[(?:earlier parts left out, ledger|前文已省略部分的要点，编号) \w+\]"
    r"(?:\n(?:Names in them: |其中出现的名称：)[^\n]*)?"
    r"(?:\n(?:Done in them:|其中做过的操作：)(?:\n- [^\n]*)+)?"
)


def is_foreign(stage: Stage, request: Request) -> bool:
    """Return whether the system prompt or the last user message is not what nanobot gave.

    From 0.1.4.post6 on nanobot's provider makes one message of neighbours of one role, notes for
    messages left out among them.
    """
    said = {user for system, user in stage.prompts if system == request.system}
    users = [content_text(m) for m in request.messages if m["role"] == "user"]
    last = next((text for text in reversed(users) if not NOTE.fullmatch(text)), "")
    return not any(user in last for user in said) if stage.joins else last not in said


def saved(home: Path) -> dict[str, list[Any]]:
    """Return the lines of the sessions' and the memory's files by name, without times."""
    files = [*session_files(home), *sorted(home.rglob("memory/*.*"))]
    return {
        file.name: [
            timeless(json.loads(line)) if file.suffix == ".jsonl" else line
            for line in file.read_text("utf-8").splitlines()
        ]
        for file in files
    }


def timeless(value: Any) -> Any:
    """Return a JSON value without what differs from one run to the next."""
    if isinstance(value, list):
        return [timeless(one) for one in value]
    if isinstance(value, dict):
        return {key: timeless(one) for key, one in value.items() if not TIME.search(key)}
    return value


def goal(stage: Stage, request: Request) -> bool:
    """Return whether what the user said in this turn is in the prompt, word for word."""
    return stage.said[request.turn - 1] in request.text


if __name__ == "__main__":
    sys.exit(main())
