"""A result that only says it would be the same as an earlier one: that one stands there, too."""

from __future__ import annotations

import random

import pytest

from agent_runs import Message, called, in_steps
from nanobot_context import count_tokens, fit_messages

MODEL = "gpt-4o"
UNCHANGED = "[File unchanged since last read: {}]"


def settings(draw: random.Random, service: str) -> str:
    """Return a file of 45 lines."""
    return "\n".join(
        [f"# settings of {service}"]
        + [
            f"{service}_{i}: {{limit: {draw.randrange(9999)}, host: {draw.randrange(99)}.example}}"
            for i in range(44)
        ]
    )


def log(draw: random.Random) -> str:
    """Return a log of 90 lines."""
    return "\n".join(
        f"10:{i % 60:02d} INFO GET /users/{draw.randrange(99999)} {draw.randrange(900)} ms"
        for i in range(90)
    )


def talk(draw: random.Random) -> tuple[list[Message], dict[str, str]]:
    """Return a talk in which files are read, then logs, then the files once more."""
    files = {f"{name}.yaml": settings(draw, name) for name in ("billing", "orders", "search")}
    logs = {f"l{i}.log": log(draw) for i in range(8)}
    messages: list[Message] = [{"role": "system", "content": "You are nanobot."}]
    for name, text in [*files.items(), *logs.items()]:
        messages.append({"role": "user", "content": f"Read {name}, please."})
        messages += called(len(messages), "read_file", {"path": name}, text)
        messages.append({"role": "assistant", "content": "Nothing odd."})
    for name in files:
        messages.append({"role": "user", "content": "Once more, line by line."})
        again = UNCHANGED.format(name)
        messages += called(len(messages), "read_file", {"path": name}, again)
        messages.append({"role": "assistant", "content": "Checked."})
    return messages, files


def text_of(messages: list[Message]) -> str:
    """Return what messages say."""
    return "\n".join(str(message["content"]) for message in messages)


@pytest.mark.parametrize("seed", range(4))
def test_what_a_result_refers_to_stands_behind_a_step(seed: int) -> None:
    messages, files = talk(random.Random(seed))
    for name, text in files.items():
        end = messages.index(next(m for m in messages if m["content"] == UNCHANGED.format(name)))
        request = in_steps(messages[: end + 1], 10_000)
        assert str(request[-1]["content"]).startswith(UNCHANGED.format(name))
        assert text in text_of(request), name


@pytest.mark.parametrize("share", [0.35, 0.6])
def test_what_the_newest_result_refers_to_stays_in_a_fit(share: float) -> None:
    messages, files = talk(random.Random(0))
    name = "orders.yaml"
    end = messages.index(next(m for m in messages if m["content"] == UNCHANGED.format(name)))
    budget = int(count_tokens(messages, MODEL) * share)
    request = fit_messages(messages[: end + 1], budget, MODEL).messages
    assert files[name] in text_of(request)
    # It replaces nothing, so the older one is worth no less for it.
    assert "superseded" not in text_of(request)
