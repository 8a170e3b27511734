"""A window that is smaller than the conversation: what the model must know all the same."""

from __future__ import annotations

import json

from scenario import DONE, WHOLE, Scenario, Step, script, then_ping
from server import Answer, Call, Request, Script
from stage import Stage
from texts import planted

RULE = "Please call me Captain from now on."
TASK = "Write one and two into the log, and read both files. GOAL-forgetting"
WINDOWS = (8_192, 12_000, 16_000, 32_000)
TOLD = 200_000
"""What nanobot is told where the window is not known."""


def forgetting(window: int, told: int) -> Scenario:
    """The user gives a rule and a task, of which one result alone may be too large."""

    async def play(stage: Stage) -> None:
        for name in ("a.txt", "b.txt"):
            stage.file(name, planted(name, 9_000).text)
        await stage.say(RULE)
        await stage.say(TASK)
        await then_ping(stage)
        log = stage.workspace / "log.txt"
        stage.notes["log"] = log.read_text("utf-8").split() if log.exists() else []

    def model(stage: Stage) -> Script:
        log = stage.workspace / "log.txt"
        calls = [
            Call("exec", {"command": f"echo one >> {log}"}),
            Call("read_file", {"path": str(stage.workspace / "a.txt")}),
            Call("exec", {"command": f"echo two >> {log}"}),
            Call("read_file", {"path": str(stage.workspace / "b.txt")}),
        ]
        steps: list[Step] = ["Yes, Captain.", *([call] for call in calls), DONE]
        said = script(steps)
        stage.notes["missing"] = []

        def answer(request: Request) -> Answer:
            if request.kind == "main" and request.turn == 2:
                done = calls[: request.index - 1]
                stage.notes["missing"] += missing(request, done)
            return said(request)

        return answer

    return Scenario(
        name_of(window, told), play, model, window=window, known=told, result_chars=WHOLE
    )


def missing(request: Request, done: list[Call]) -> list[str]:
    """Return what a prompt does not say of the rule, the task, and the calls that ran."""
    shown = json.dumps(request.messages, ensure_ascii=False)
    wanted = [RULE, TASK]
    for call in done:
        [argument] = call.arguments.values()
        wanted += [call.name, argument.partition(" >> ")[0]]
    return [f"request {request.index}: {one}" for one in wanted if one not in shown]


def name_of(window: int, told: int) -> str:
    """Return the name of a scenario."""
    return f"forgetting-{window}-{told}"


FORGETTING = [
    forgetting(window, told) for window in WINDOWS for told in dict.fromkeys((window, TOLD))
]
