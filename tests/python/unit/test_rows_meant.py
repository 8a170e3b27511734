"""Questions that mean rows of a list without their names."""

import json
import random
from collections.abc import Callable

import pytest

from nanobot_context import compress_messages, count_tokens, fit_messages

Message = dict[str, object]
Row = dict[str, str]

STREETS = ("Mill Lane", "Oak Road", "Quay", "Elm Court", "Hill Rise", "Park Row", "Dock Street")
WINDOW = 8_000


def flats(draw: random.Random) -> list[Row]:
    return [
        {
            "address": f"{number} {draw.choice(STREETS)}",
            "rooms": str(draw.randint(2, 5)),
            "rent": str(draw.randint(700, 2_400)),
            "agent": f"Agent {draw.randint(100, 999)}",
            "available": f"2026-{draw.choice([1, 2, 3, 6, 9]):02}-{draw.randint(1, 28):02}",
        }
        for number in draw.sample(range(1, 400), 60)
    ]


def as_csv(rows: list[Row]) -> str:
    return "\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)])


def as_markdown(rows: list[Row]) -> str:
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def as_blocks(rows: list[Row]) -> str:
    return "\n\n".join("\n".join(f"{key}: {value}" for key, value in row.items()) for row in rows)


def as_json(rows: list[Row]) -> str:
    return json.dumps({"items": rows}, indent=2)


def as_one_line(rows: list[Row]) -> str:
    return json.dumps(rows)


FORMS = [as_csv, as_markdown, as_blocks, as_json, as_one_line]


def fetched(number: int, tool: str, ask: str, text: str) -> list[Message]:
    call = {
        "id": f"c{number}",
        "type": "function",
        "function": {"name": tool, "arguments": json.dumps({"page": 1})},
    }
    return [
        {"role": "user", "content": ask},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": text},
        {"role": "assistant", "content": "I have it."},
    ]


def talk(draw: random.Random, text: str, question: str) -> list[Message]:
    def orders() -> str:
        rows = [
            {"order": f"SO-{draw.randint(10_000, 99_999)}", "total": str(draw.randint(5, 900))}
            for _ in range(120)
        ]
        return as_csv(rows)

    messages: list[Message] = []
    for number in range(8):
        if number == 3:
            messages += fetched(number, "realty_search", "Search the flats near the harbour.", text)
        else:
            messages += fetched(number, "shop_orders", f"Show page {number} of orders.", orders())
    return [*messages, {"role": "user", "content": question}]


def by_rent(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: int(row["rent"]))


QUESTIONS: list[tuple[str, Callable[[list[Row]], Row]]] = [
    ("Which flat has the lowest rent?", lambda rows: by_rent(rows)[0]),
    ("What is the highest rent among the flats?", lambda rows: by_rent(rows)[-1]),
    ("Of the two cheapest flats by rent, which is larger?", lambda rows: by_rent(rows)[1]),
    ("Who is the agent of the fourth flat in the list?", lambda rows: rows[3]),
    ("What is in row 31 of the flats?", lambda rows: rows[30]),
    ("And the last flat?", lambda rows: rows[-1]),
    ("Which flats are available in May?", lambda rows: rows[17]),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize(("question", "meant"), QUESTIONS, ids=[case[0] for case in QUESTIONS])
def test_the_row_that_a_question_means_is_there(
    question: str, meant: Callable[[list[Row]], Row], form: Callable[[list[Row]], str]
) -> None:
    sent: list[Message]
    for seed in range(4):
        draw = random.Random(seed)
        rows = flats(draw)
        rows[17]["available"] = "2026-05-13"
        row = meant(rows)
        messages = talk(draw, form(rows), question)
        budget = count_tokens(messages) // 8
        for sent in (fit_messages(messages, budget).messages, compress_messages(messages, WINDOW)):
            shown = str(sent)
            assert all(row[key] in shown for key in ("address", "rent", "available")), (seed, row)
