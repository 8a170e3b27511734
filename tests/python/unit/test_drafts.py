"""Of a draft that the user shows again the newest version stays, with what has changed."""

from __future__ import annotations

import random

import pytest

from agent_runs import Message, in_steps
from nanobot_context import count_tokens, fit_messages

WORDS = ["amber", "river", "stone", "calm", "paper", "hollow", "maple", "iron", "violet"]
WORDS += ["harbour", "lantern", "orchard"]
OLD = "The key hangs behind the clock in the hall."
NEW = "The key lies under the third flowerpot."


def said(draw: random.Random, sentences: int) -> str:
    """Return sentences of a story."""
    names = [" ".join(draw.choices(WORDS, k=8)).capitalize() + "." for _ in range(sentences)]
    return " ".join(names)


def talk(seed: int) -> list[Message]:
    """Return a talk in which a chapter is shown twice, with one sentence changed."""
    draw = random.Random(seed)
    paragraphs = [said(draw, 9) for _ in range(8)]
    changed = draw.randrange(2, 7)

    def chapter(sentence: str) -> str:
        return "\n\n".join(
            f"{text} {sentence}" if at == changed else text for at, text in enumerate(paragraphs)
        )

    messages: list[Message] = [{"role": "system", "content": "You help a writer."}]
    for turn in range(90):
        user = f"What do you think about the {draw.choice(WORDS)} {turn}?"
        if turn == 20:
            user = chapter(OLD)
        elif turn == 50:
            user = f"Here is my chapter again, one sentence is new:\n\n{chapter(NEW)}"
        messages += [
            {"role": "user", "content": user},
            {"role": "assistant", "content": said(draw, draw.randrange(3, 9))},
        ]
    return [*messages, {"role": "user", "content": "Now write the next chapter."}]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_a_fit_has_what_is_new(seed: int, share: float) -> None:
    messages = talk(seed)
    budget = int(count_tokens(messages, "gpt-4o") * share)
    assert NEW in str(fit_messages(messages, budget, "gpt-4o").messages)


@pytest.mark.parametrize("seed", range(5))
def test_a_step_has_what_is_new(seed: int) -> None:
    assert NEW in str(in_steps(talk(seed), 8_000))
