"""A talk whose first rules nanobot moves out of the history, as its consolidation does."""

from __future__ import annotations

import asyncio
import os
import sys

from scenario import Scenario, memory
from server import Answer, Call, Request
from stage import Stage
from texts import prose

SESSION = "cli:direct"
RULE = "Never push to main."
FACT = "My name is Ada and I am allergic to peanuts."
DONE = "echo paid INV-7"


async def play(stage: Stage) -> None:
    await stage.say(f"{RULE} What is the weather like? {FACT}", SESSION)
    await stage.say("And tomorrow?", SESSION)
    session = stage.loop.sessions.get_or_create(SESSION)
    # The first releases keep what was said alone.
    stage.notes["calls are kept"] = any(message.get("tool_calls") for message in session.messages)
    note(stage, "in the history")
    leave_out(stage)
    stage.start()
    await stage.say("What is for dinner?", SESSION)
    note(stage, "left out")
    drop(stage)
    stage.start()
    await stage.say("And for lunch?", SESSION)
    note(stage, "dropped")
    await stage.say(f"As I said: {RULE.lower()}", SESSION)
    note(stage, "said again")
    listed = await command(stage)
    stage.notes["listed"] = listed
    await command(
        stage, "--forget", str(1 + next(i for i, one in enumerate(listed) if FACT in one))
    )
    await stage.say("What is for breakfast?", SESSION)
    note(stage, "taken back")
    await stage.say("/new", SESSION)
    await stage.idle()
    await stage.say("Hello again.", SESSION)
    note(stage, "cleared")


def note(stage: Stage, when: str) -> None:
    """Note how often the last request has each sentence, and how often its system prompt has."""
    request = next(r for r in reversed(stage.server.requests) if r.kind == "main")
    stage.notes[when] = {
        text: [request.text.lower().count(text.lower()), request.system.lower().count(text.lower())]
        for text in (RULE, FACT)
    }
    stage.notes[f"done, {when}"] = request.system.count(DONE)


def leave_out(stage: Stage) -> None:
    """Have the history begin behind what was said, as nanobot's consolidation does."""
    session = stage.loop.sessions.get_or_create(SESSION)
    if hasattr(session, "last_consolidated"):
        session.last_consolidated = len(session.messages)
    else:
        session.messages = session.messages[-2:]
    stage.loop.sessions.save(session)


def drop(stage: Stage) -> None:
    """Have the session keep its newest messages only, as nanobot does with one that is idle."""
    session = stage.loop.sessions.get_or_create(SESSION)
    session.messages = session.messages[-2:]
    if hasattr(session, "last_consolidated"):
        session.last_consolidated = 0
    stage.loop.sessions.save(session)


async def command(stage: Stage, *options: str) -> list[str]:
    """Return the lines of `nanobot-context rules`."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "nanobot_context", "rules", SESSION, *options),
        env={**os.environ, "HOME": str(stage.home)},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output
    return output.decode().splitlines()


def answer(request: Request) -> Answer:
    return memory(request) if request.kind == "memory" else "As you like."


def pays(request: Request) -> Answer:
    """Make one call in the first turn."""
    is_first = request.kind == "main" and request.index == 0
    return [Call("exec", {"command": DONE})] if is_first else answer(request)


def ruled() -> Scenario:
    return Scenario("ruled", play, lambda _: pays)


TURNS = 60
RESTARTS = (15, 30, 45)


async def sixty_turns(stage: Stage) -> None:
    """Talk for long enough that nanobot consolidates by itself, over three restarts."""
    for turn in range(TURNS):
        if turn in RESTARTS:
            await stage.idle()
            stage.start()
        said = prose(f"sixty-{turn}", 600) if turn else RULE
        await stage.say(f"Turn {turn}. {said}", SESSION)
        await stage.idle()
    requests = [r for r in stage.server.requests if r.kind == "main"]
    stage.notes["ruled"] = [RULE in request.text for request in requests]


def sixty() -> Scenario:
    def model(request: Request) -> Answer:
        return answer(request) if request.kind == "memory" else prose(f"{request.index}", 600)

    return Scenario("sixty", sixty_turns, lambda _: model, window=32_000)
