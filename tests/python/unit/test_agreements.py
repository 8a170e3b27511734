"""What the user agrees to stays with the word that agrees, whether the model asked or not."""

from __future__ import annotations

import random
from typing import Any

import pytest

from nanobot_context import count_tokens, fit_messages

Message = dict[str, Any]

SUBJECTS = ["the ferry", "our shed", "the choir", "my van", "the bakery", "grandma's lamp"]
REMARKS = ["leaks again", "looks better than in spring", "is older than I thought", "was shut"]
AGREED = [
    ("My plan: you pay the deposit now and I pay the rest in May.", "deal", "deposit now"),
    ("Ich würde den Ersatzschlüssel bei Bettine lassen.", "abgemacht", "Ersatzschlüssel"),
    ("我建议备用钥匙放在楼下。", "就这么定了", "备用钥匙"),
    ("We take either the ferry on the 4th or the night train.", "the latter", "night train"),
    ("Shall I put the spare key into the shed?", "yes do that", "spare key"),
]


def talk(seed: int, proposal: str, agreement: str) -> list[Message]:
    """Return a talk in which both say as much, with what they agreed on in its first third."""
    draw = random.Random(seed)

    def remark() -> str:
        said = f"{draw.choice(SUBJECTS)} {draw.choice(REMARKS)}, about {draw.randrange(10**6)}."
        return said.capitalize()

    def said(sentences: int) -> str:
        return " ".join(remark() for _ in range(sentences))

    messages: list[Message] = []
    for turn in range(60):
        behind = f" {proposal}" if turn == 20 else ""
        asked = agreement if turn == 21 else said(draw.randint(2, 5))
        messages.append({"role": "user", "content": asked})
        messages.append({"role": "assistant", "content": said(4) + behind})
    return [*messages, {"role": "user", "content": "What a day."}]


@pytest.mark.parametrize(("proposal", "agreement", "kept"), AGREED)
def test_what_was_agreed_stays_with_the_word(proposal: str, agreement: str, kept: str) -> None:
    lost = 0
    for seed in range(8):
        messages = talk(seed, proposal, agreement)
        budget = count_tokens(messages, "gpt-4o") // 4
        fitted = fit_messages(messages, budget, "gpt-4o").messages
        lost += not any(kept in str(message["content"]) for message in fitted)
    assert lost <= 1
