"""Turns of a shortened conversation: roles alternate, and answers keep their questions."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest

from nanobot_context import compress_messages, count_tokens, fit_messages

Message = dict[str, Any]

THINGS = ["iron", "parcel", "router", "ladder", "fridge", "tent", "printer", "camera", "stove"]
QUESTIONS = ["Is the {} paid?", "Did you cancel the {}?", "What did the {} cost?"]
FACTS = ["Our cat's chip ends with {}.", "The lease of box {} ends in May.", "Room {} is locked."]


def conversation(seed: int, turns: int) -> list[Message]:
    """Return short questions with short answers, and between them what the user tells."""
    draw, messages = random.Random(seed), []
    for number in range(turns):
        if number % 4 == 3:
            said, answer = draw.choice(FACTS).format(4_000 + 37 * number), "Noted."
        else:
            said = draw.choice(QUESTIONS).format(draw.choice(THINGS))
            answer = draw.choice(
                ["No.", "Yes.", "No, not yet.", f"{draw.randrange(900)}.50 euros."]
            )
        messages += [{"role": "user", "content": said}, {"role": "assistant", "content": answer}]
    return [*messages, {"role": "user", "content": "Go on."}]


def as_string(text: str) -> Any:
    """Return a content as OpenAI's clients write it."""
    return text


def as_list(text: str) -> Any:
    """Return a content as Anthropic's clients write it."""
    return [{"type": "text", "text": text}]


def text_of(message: Message) -> str:
    """Return the text of a message."""
    content = message["content"]
    return content if isinstance(content, str) else "\n\n".join(part["text"] for part in content)


@pytest.mark.parametrize("form", [as_string, as_list])
@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_roles_alternate_in_each_form_of_content(form: Callable[[str], Any], share: float) -> None:
    for seed in range(4):
        messages = conversation(seed, 300)
        messages = [{**message, "content": form(message["content"])} for message in messages]
        window = int(count_tokens(messages) * share)
        for sent in (compress_messages(messages, window), fit_messages(messages, window).messages):
            roles = [message["role"] for message in sent]
            assert all(one != other for one, other in itertools.pairwise(roles))


def test_lists_of_one_text_keep_what_strings_keep() -> None:
    messages = conversation(5, 300)
    lists = [{**message, "content": as_list(message["content"])} for message in messages]
    for window in (900, 2_000, 4_000):
        sent = compress_messages(messages, window)
        assert [text_of(message) for message in compress_messages(lists, window)] == [
            text_of(message) for message in sent
        ]


def test_an_answer_stands_below_its_question_or_a_mark() -> None:
    for seed in range(6):
        messages = conversation(seed, 300)
        answers = {
            (one["content"], other["content"]) for one, other in itertools.pairwise(messages)
        }
        kept = {id(message) for message in messages}
        sent = compress_messages(messages, 1_600)
        for one, other in itertools.pairwise(sent):
            if other["role"] == "assistant" and id(other) in kept:
                last = one["content"].split("\n\n")[-1]
                is_mark = last.startswith(("[", "Names in them", "Done in them"))
                assert is_mark or "\n- " in last or (last, other["content"]) in answers, last


@pytest.mark.parametrize("looked_at", ["I looked at it.", "It stands in the yard. " * 40])
@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_a_question_that_is_shown_has_its_answer(looked_at: str, share: float) -> None:
    messages, answers = [{"role": "user", "content": "Let us tidy up."}], {}
    for number in range(120):
        question = f"May I sell {THINGS[number % len(THINGS)]} {number:03} now?"
        answers[question] = ["yes", "no", "not yet", "go ahead"][number * 7 % 11 % 4]
        messages += [
            {"role": "assistant", "content": f"I counted pile {number}."},
            {"role": "user", "content": f"Tell me something about pile {number * 31 % 97}."},
            {"role": "assistant", "content": f"{looked_at}\n\n{question}"},
            {"role": "user", "content": answers[question]},
        ]
    messages.append({"role": "user", "content": "What did I allow?"})
    budget = int(count_tokens(messages) * share)
    window = int(budget / 0.85)
    for sent in (fit_messages(messages, budget).messages, compress_messages(messages, window)):
        texts = [text_of(message) for message in sent]
        shown = [
            (text.rpartition("\n\n")[2], behind)
            for text, behind in itertools.pairwise(texts)
            if text.rpartition("\n\n")[2] in answers
        ]
        assert shown
        assert [q for q, behind in shown if not behind.startswith(answers[q])] == []


def test_what_the_user_says_again_takes_room_once() -> None:
    routine = ["Any new mail?", "What is on my calendar tomorrow?", "Is it going to rain?"]
    draw, messages, facts = random.Random(4), [], []
    for number in range(300):
        said = draw.choice(routine)
        if number % 9 == 4:
            facts.append(draw.choice(FACTS).format(4_000 + 37 * number))
            said = facts[-1]
        answer = " ".join(draw.choice(THINGS) for _ in range(12)) + "."
        messages += [{"role": "user", "content": said}, {"role": "assistant", "content": answer}]
    sent = compress_messages([*messages, {"role": "user", "content": "Thanks."}], 2000)
    text = "\n".join(text_of(message) for message in sent)
    assert [fact for fact in facts if fact not in text] == []
