"""Conversations in which answers are spoilt on their way, alike with the package and without."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from faults import FAULTS
from scenario import Scenario, script, then_ping
from server import Answer, Request, Script
from stage import Stage
from texts import prose

TIMES = {"thrice": 3, "ever": 99}
"""How many requests of a turn meet a fault: OpenAI's client makes three, nanobot starts up to four.
"""
PAST = [prose(f"past-{number}", 1_200) for number in range(16)]
"""More than the package believes that gpt-3.5-turbo takes: it shortens this, nobody else does."""


async def play(stage: Stage, ways: tuple[str, ...], past: list[str]) -> None:
    """Have a session for each case, with a past; where the fault stays, one more turn."""
    for case in (f"{fault}-{times}" for fault in FAULTS for times in TIMES):
        for way in ways:
            session, streamed = f"cli:{case}-{way}", way == "streamed"
            stage.remember(past, session)
            await stage.say(f"[{case}] Please answer ({way}).", session, streamed=streamed)
            if case.endswith("-ever"):
                await stage.say(f"[ping] And after {case}?", session, streamed=streamed)


def model(_: Stage) -> Script:
    met = Counter[int]()

    def answer(request: Request) -> Answer:
        asked, _, _ = request.last_user.rpartition("] Please answer")
        fault, _, times = asked.rpartition("[")[2].partition("-")
        if fault not in FAULTS:
            return script([])(request)
        met[request.turn] += 1
        return FAULTS[fault] if met[request.turn] <= TIMES[times] else "It is answered."

    return answer


def faulty(name: str, *ways: str, past: list[str], **fields: Any) -> Scenario:
    """Each fault in sessions of their own, with a past, in each of `ways`."""
    return Scenario(name, partial(play, ways=ways, past=past), model, stopped=True, **fields)


def refused_then_faulty(fault: str) -> Scenario:
    """The provider refuses a request as too long, and what is sent in its place meets a fault."""

    async def play(stage: Stage) -> None:
        stage.remember(PAST)
        await stage.say("Please answer.")
        await then_ping(stage)

    def model(stage: Stage) -> Script:
        def answer(request: Request) -> Answer:
            turn = [one.about for one in stage.server.requests if one.turn == request.turn]
            return FAULTS[fault] if "overflow" in turn else script([])(request)

        return answer

    return Scenario(f"refused-then-{fault}", play, model, window=16_000, known=None)
