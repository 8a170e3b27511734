"""What tells the model how to work stays whole: a skill, the rules of a repository, a policy."""

from __future__ import annotations

import random
from typing import Any

import pytest

from agent_runs import Message, called, in_steps
from nanobot_context import Compressor, count_tokens, fit_messages

STEPS = [
    "Run `weather-cli fetch --zone DE-NW` before anything else.",
    "Write the report to reports/daily.md, not to the root of the workspace.",
    "Round all temperatures to half degrees.",
    "If the feed is older than 4 hours, stop and tell the user.",
    "Send the summary only to the channel #wx.",
    "At most 5 sentences a section.",
    "Ask before you delete old reports; keep the last 21.",
    "When wind is above 34 knots add the line 'GALE'.",
]


def run(name: str, arguments: dict[str, Any], seed: int) -> list[Message]:
    """Return a run in which instructions were read before many tables."""
    draw = random.Random(seed)
    steps = [f"{number}. {step}" for number, step in enumerate(STEPS, 1)]
    messages: list[Message] = [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "Prepare for the report; we write it after the other work."},
        *called(0, name, arguments, "\n".join(["# Weather report", "", *steps, ""])),
        {"role": "assistant", "content": "I have read it."},
    ]
    for number in range(1, 13):
        rows = [
            f"2026-03-{draw.randrange(1, 29):02},{draw.choice('ABCD')}{draw.randrange(1000)},"
            f"{draw.randrange(9999) / 100}"
            for _ in range(40)
        ]
        table = "\n".join(["date,item,amount", *rows])
        messages += [
            {"role": "user", "content": f"What is in table {number}?"},
            *called(number, "read_file", {"path": f"tables/{number}.csv"}, table),
            {"role": "assistant", "content": f"It has 40 rows of {draw.randrange(3, 9)} items."},
        ]
    return [*messages, {"role": "user", "content": "Now write it, please."}]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read_file", {"path": "skills/weather/SKILL.md"}),
        ("exec", {"command": "cat AGENTS.md"}),
        ("get_policy", {}),
    ],
)
def test_instructions_stay_whole(name: str, arguments: dict[str, Any], seed: int) -> None:
    messages = run(name, arguments, seed)
    quarter = fit_messages(messages, count_tokens(messages, "gpt-4o") // 4, "gpt-4o").messages
    for request in (quarter, in_steps(messages, 8_000)):
        assert [step for step in STEPS if step not in str(request).replace("\\'", "'")] == []


def test_of_two_readings_the_newer_one_stays() -> None:
    messages = run("read_file", {"path": "AGENTS.md"}, 1)
    again = called(
        99, "read_file", {"path": "AGENTS.md"}, "# Weather report\n\nNo rules any more.\n"
    )
    messages[-1:-1] = [*again, {"role": "assistant", "content": "Read."}]
    fitted = str(fit_messages(messages, count_tokens(messages, "gpt-4o") // 4, "gpt-4o").messages)
    assert "No rules any more." in fitted
    assert STEPS[0] not in fitted


@pytest.mark.parametrize("seed", range(4))
def test_a_step_in_a_small_window_leaves_room_for_a_skill(seed: int) -> None:
    draw = random.Random(seed)
    words = ["alpha", "beta", "gamma", "delta", "keep", "note", "item", "line", "mode", "tool"]
    steps = [
        f"{number}. Check the seal of gate {draw.randrange(99)} (mark Q{draw.randrange(100, 999)})"
        + " unless the owner says otherwise" * 12
        for number in range(1, 9)
    ]
    messages: list[Message] = [
        {"role": "system", "content": " ".join(draw.choices(words, k=5_600))}
    ]
    requests = []
    for number in range(7):
        lines = steps
        if number:
            lines = [
                f"2026-11-02 10:{minute // 60:02}:{minute % 60:02} INFO worker-{draw.randrange(9)} "
                f"GET /v1/items/{draw.randrange(9_999)} 200 {draw.randrange(90)}ms"
                for minute in range(draw.choice([60, 120]))
            ]
        path = f"s{number}.log" if number else "skills/harbour/SKILL.md"
        messages.append({"role": "user", "content": f"Next step: look at {path}."})
        asked = list(messages)
        messages += called(number, "read_file", {"path": path}, "\n".join(lines))
        requests += [asked, list(messages)]
        messages.append({"role": "assistant", "content": f"Done with {path}."})
    compressor = Compressor(12_000, "gpt-4o")
    sent = [str(compressor.compress(request)) for request in requests[2:]]
    # Beside the newest log, of which a request may have 3,600 tokens, some are too small.
    assert sum(all(step in request for step in steps) for request in sent) >= 8
