"""Files that outgrow the window, and then questions about what early ones say."""

from __future__ import annotations

from scenario import DONE, WHOLE, Scenario, Step, reads, script
from server import Script
from stage import Stage
from texts import prose

FILES = 36
TOKENS = 2_400
PARCELS = [f"The parcel of OPS-{4700 + number} waits on quay {number}." for number in range(160)]
SAID = {
    3: "Old rows are deleted by the retention job at 03:25 every Sunday.",
    5: PARCELS[111],
}
"""What a file says that is asked for, by its number; the second is one of many like it."""
TURNS = {
    "When does the retention job run?": "At 03:25.",
    "Thank you.": "Gladly.",
    "Where is OPS-4811?": "On quay 111.",
    "Fine.": "Good.",
}
"""What the user says behind the run, and the model's answers."""
NAMES = [f"{number:02}.txt" for number in range(FILES)]


async def play(stage: Stage) -> None:
    half = TOKENS // 2
    for number, name in enumerate(NAMES):
        text = [prose(f"before {name}", half), SAID.get(number, ""), prose(f"behind {name}", half)]
        stage.file(name, " ".join(PARCELS if number == 5 else text))
    await stage.say(f"Read all {FILES} files, one by one.")
    for said in TURNS:
        await stage.say(said)
        note(stage, said)


def note(stage: Stage, said: str) -> None:
    """Note what the prompt of a turn shows, and whether it begins with the one before."""
    before, last = [request for request in stage.server.requests if request.kind == "main"][-2:]
    stage.notes[said] = {
        "shown": [fact in last.text for fact in SAID.values()],
        "goes on": last.messages[: len(before.messages)] == before.messages,
    }


def recalled() -> Scenario:
    def model(stage: Stage) -> Script:
        steps: list[Step] = [*reads(stage.paths(NAMES)), DONE, *TURNS.values()]
        return script(steps)

    return Scenario("recalled", play, model, window=24_000, result_chars=WHOLE)
