"""What a step left out is quoted before the message that asks for it, and the prefix stays."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

from nanobot_context import Compressor, compress_messages, count_tokens, fit_messages

Message = dict[str, Any]

WINDOW = 12_000
QUOTED = ("About the next message in them:", "其中与下一条消息有关的内容：")
ASKED = [
    (
        "Old rows go with the retention job at 03:25 every Sunday.",
        "When does the retention job run?",
    ),
    ("The lease of the boathouse ends in the spring.", "And when does the lease end?"),
    ("The password of the printer is under its lid.", "where is the printer's password"),
    ("旧数据由清理任务在每周日凌晨删除。", "清理任务什么时候运行？"),
    ("船屋的租约到春天为止。", "租约到什么时候？"),
]
ENGLISH = ["amber", "river", "stone", "calm", "paper", "hollow", "maple", "iron", "violet"]
CHINESE = ["花园", "河边", "石头", "纸张", "枫树", "铁门", "柠檬", "玻璃", "北方", "邻居"]


def prose(draw: random.Random, sentences: int, *, is_chinese: bool = False) -> str:
    """Return sentences that say nothing, and are no more alike than those of a text."""
    words, between, end = (CHINESE, "", "。") if is_chinese else (ENGLISH, " ", ".")

    def sentence() -> str:
        said = [draw.choice(words) for _ in range(draw.randint(6, 12))]
        said[draw.randrange(1, len(said))] += draw.choice(["", "", ",", " 7", " 12:40"])
        return between.join(said).capitalize() + end

    return " ".join(sentence() for _ in range(sentences))


def run(said: str, number: int = 90, seed: int = 1) -> list[Message]:
    """Return an agent's run; one of its results has a sentence in its middle."""
    draw, is_chinese = random.Random(seed), not said.isascii()
    messages: list[Message] = [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "Go through the notes, one by one."},
    ]
    for index in range(number):
        function = {"name": "read_file", "arguments": json.dumps({"path": f"notes/{index}.txt"})}
        call = {"id": f"c{index}", "type": "function", "function": function}
        before, behind = (prose(draw, 20, is_chinese=is_chinese) for _ in range(2))
        text = f"{before} {said if index == number // 4 else ''} {behind}"
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{index}", "content": text},
        ]
    return [*messages, {"role": "assistant", "content": "I have read them all."}]


def asked(history: list[Message], question: str) -> list[Message]:
    """Return the request for a question."""
    return [*history, {"role": "user", "content": question}]


def has_quotes(message: Message) -> bool:
    """Return whether a message ends with quotes."""
    return any(words in str(message["content"]) for words in QUOTED)


@pytest.mark.parametrize(("said", "question"), ASKED)
def test_what_is_asked_for_in_words_is_quoted(said: str, question: str) -> None:
    for seed in range(4):
        history = run(said, seed=seed)
        before = compress_messages(asked(history, "Thank you."), WINDOW)
        sent = compress_messages(asked(history, question), WINDOW)
        assert not any(said in str(message) for message in before)
        assert any(said in str(message["content"]) for message in sent[:-1])
        # The prefix that the provider has cached is as it was, and the question byte for byte.
        assert sent[:-2] == before[:-2]
        assert sent[-1] == {"role": "user", "content": question}
        assert count_tokens(sent) <= WINDOW * 0.85


POINTED_TO = [
    (
        "1. A kiln in Graz\n2. Rowing in Turin\n3. A choir in Bergen",
        "Tell me more about the second option.",
    ),
    ("1. Töpfern in Graz\n2. Rudern in Turin", "Erzähl mir mehr über den zweiten Vorschlag."),
    ("| trip | price |\n|---|--:|\n| Rowing in Turin | 480 |", "Show me the table from before."),
    ("```python\ndef settle(rows):\n    return rows[7:]\n```", "Add a docstring to your function."),
]


@pytest.mark.parametrize(("thing", "question"), POINTED_TO)
def test_what_is_pointed_to_by_place_or_form_is_quoted(thing: str, question: str) -> None:
    draw = random.Random(7)
    history: list[Message] = [{"role": "system", "content": "You help."}]
    for turn in range(60):
        listed = f"\n\n{thing}\n\n" if turn == 12 else " "
        said = f"{prose(draw, 12)}{listed}{prose(draw, 12)}"
        history.append({"role": "user", "content": prose(draw, 1)})
        history.append({"role": "assistant", "content": said})
    lines = thing.split("\n")
    before = compress_messages(asked(history, "Thank you."), WINDOW)
    sent = compress_messages(asked(history, question), WINDOW)
    assert not all(line in str(before) for line in lines)
    assert all(f"> {line}" in str(sent[-2]["content"]) for line in lines)
    assert sent[:-2] == before[:-2]


def test_nothing_that_the_newest_answer_has_is_quoted_where_it_is_pointed_to() -> None:
    thing, question = POINTED_TO[0]
    history = [*run(""), {"role": "user", "content": "And?"}]
    history.append({"role": "assistant", "content": thing})
    sent = compress_messages(asked(history, question), WINDOW)
    assert not any(has_quotes(message) for message in sent)


def put_call(
    history: list[Message], place: int, name: str, arguments: dict[str, str], result: str
) -> None:
    """Put a call with its result at a place of an agent's run."""
    call_id = f"{name}-{place}"
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": call_id, "type": "function", "function": function}
    history[place:place] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
    ]


def client(name: str, number: int) -> str:
    """Return the change of a file that is called as a client is."""
    return (
        f"diff --git a/conf/{name}.toml b/conf/{name}.toml\n--- a/conf/{name}.toml\n"
        f"+++ b/conf/{name}.toml\n@@ -1,3 +1,3 @@\n [client]\n"
        f"-settlement = {number - 7}\n+settlement = {number}\n retries = 3\n"
    )


@pytest.mark.parametrize(
    "question",
    [
        "What is the settlement number of Orlazen?",
        "orlazen的结算编号是多少？",
        "Wie lautet die Settlement-Nummer von orlazen?",
    ],
)
def test_what_stands_below_the_name_is_quoted_with_it(question: str) -> None:
    history = run("", 160)
    for place in range(80, 19, -10):
        names = [f"vel{place}{number:02}dale" for number in range(20)]
        if place == 20:
            names[9] = "orlazen"
        diff = "".join(client(name, 481_516 + 97 * at + place) for at, name in enumerate(names))
        put_call(history, place, "exec", {"command": f"git diff v{place}"}, diff)
    sent = compress_messages(asked(history, question), WINDOW)
    assert f"settlement = {481_516 + 97 * 9 + 20}" in str(sent[-2]["content"])


@pytest.mark.parametrize("question", ["Open orlazen.yaml once more.", "What is in orlazen.yaml?"])
def test_an_empty_text_beside_a_call_is_no_answer(question: str) -> None:
    history = run("", 160)
    history[20:20] = [
        {"role": "user", "content": "Read orlazen.yaml, please."},
        {"role": "assistant", "content": "Done (request 3)."},
        {"role": "user", "content": "Go on with the notes."},
    ]
    put_call(history, 21, "read_file", {"path": "orlazen.yaml"}, prose(random.Random(0), 30))
    history[21]["content"] = ""
    sent = compress_messages(asked(history, question), WINDOW)
    quotes = str(sent[-2]["content"])
    assert "read_file orlazen.yaml:\n> " in quotes
    assert not any(line.startswith("assistant:") for line in quotes.splitlines()[3:-1])


def order(number: int, draw: random.Random) -> dict[str, Any]:
    """Return an order as a shop's tool shows it."""
    items = [
        {"sku": f"Q{draw.randrange(10**5):05}", "title": draw.choice(ENGLISH), "qty": item}
        for item in range(1, draw.randint(2, 5))
    ]
    return {
        "order_id": f"SO-{number}",
        "placed": f"2026-0{draw.randint(1, 6)}-{draw.randint(10, 28)}T10:00:00Z",
        "status": draw.choice(["paid", "packed", "shipped", "refunded"]),
        "customer": {"name": draw.choice(ENGLISH), "email": f"{number}@mail.example"},
        "ship_to": {"street": f"{draw.randrange(99)} Osprey Road", "city": draw.choice(ENGLISH)},
        "items": items,
        "carrier": draw.choice(["DHL", "UPS", "GLS"]),
        "tracking": f"JG{draw.randrange(10**10):010}",
    }


@pytest.mark.parametrize("indent", [2, None])
@pytest.mark.parametrize("seed", range(4))
def test_what_a_wide_record_says_is_quoted_by_its_name(seed: int, indent: int | None) -> None:
    draw = random.Random(seed)
    orders = [order(52_000 + 97 * at, draw) for at in range(36)]
    history = run("", 160, seed)
    put_call(history, 40, "list_orders", {"year": "2026"}, json.dumps(orders, indent=indent))
    one = orders[draw.randrange(36)]
    question = f"What is the tracking number of {one['order_id']}?"
    sent = compress_messages(asked(history, question), WINDOW)
    assert one["tracking"] in str(sent[-2]["content"])


@pytest.mark.parametrize(
    ("sign", "question"),
    [("C++", "What was it about C++ again?"), ("No. 5", "No. 5?"), ("π", "Who sent π?")],
)
def test_a_sign_is_found(sign: str, question: str) -> None:
    said = f"They hired Ottilie for {sign} in May."
    sent = compress_messages(asked(run(said), question), WINDOW)
    assert said in str(sent[-2]["content"])


@pytest.mark.parametrize(
    ("code", "question"),
    [
        ("WLR39TEBL18F87519", "Which car was it that ends in F87519?"),
        ("IMO 6274953", "Where is IMO6274953 now?"),
        ("D-URUR", "Who flies DURUR?"),
        ("1307.24.37", "What is under 13072437?"),
    ],
)
def test_a_code_is_found_in_part_and_in_another_spelling(code: str, question: str) -> None:
    history, said = run(""), f"The yard has {code} on its list."
    draw = random.Random(4)
    text = f"{prose(draw, 20)} {said} {prose(draw, 20)}"
    put_call(history, 40, "read_file", {"path": "notes/yard.txt"}, text)
    history = asked(history, question)
    for sent in (compress_messages(history, WINDOW), fit_messages(history, 6_000).messages):
        assert said in str(sent[:-1])


@pytest.mark.parametrize("is_changed", [False, True])
@pytest.mark.parametrize(
    "question", ["What does settle_row do?", "Well done. What is left? And show me settle_row."]
)
def test_a_function_is_quoted_whole_rather_than_its_callers(
    question: str, *, is_changed: bool
) -> None:
    history, draw = run(""), random.Random(3)
    lines = [
        f"    {draw.choice(ENGLISH)}_{number} = load({draw.choice(ENGLISH)!r})"
        for number in range(24)
    ]
    function = "\n".join(["def settle_row(self, limit=7):", *lines, "    return limit"])

    def code(number: int, middle: str) -> str:
        others = [f"def part_{number}_{other}(self):\n    return {other}" for other in range(9)]
        return "\n\n".join([*others, middle, *others[::-1]])

    put_call(history, 20, "read_file", {"path": "src/books.py"}, code(20, function))
    for place in range(30, 70, 8):
        caller = f"def call_{place}(self):\n    return self.settle_row({place})"
        put_call(history, place, "read_file", {"path": f"src/use_{place}.py"}, code(place, caller))
    if is_changed:
        old, function = function, function.replace("limit=7", "limit=9")
        edit = {"path": "src/books.py", "old_text": old, "new_text": function}
        put_call(history, 25, "edit_file", edit, "Successfully edited src/books.py")
    sent = str(compress_messages(asked(history, question), WINDOW)[-2]["content"])
    assert all(line.strip().replace("'", "\\'") in sent.replace("'", "\\'") for line in lines)
    assert function.split("\n", 1)[0] in sent


@pytest.mark.parametrize(
    "question",
    [
        "When does the retention job run? Which pier has the ferry? Until when is the lease?",
        "When does the retention job run, which pier has the ferry and until when is the lease?",
    ],
)
def test_each_of_several_questions_is_answered(question: str) -> None:
    draw = random.Random(2)
    answers = {9: ASKED[0][0], 20: "The ferry waits at pier E7.", 31: ASKED[1][0]}
    history: list[Message] = [{"role": "system", "content": "You help."}]
    for turn in range(60):
        said = f"{prose(draw, 12)} {answers.get(turn, '')} {prose(draw, 12)}"
        history += [
            {"role": "user", "content": "Tell me more."},
            {"role": "assistant", "content": said},
        ]
    history.append({"role": "user", "content": question})
    for sent in (compress_messages(history, WINDOW), fit_messages(history, 3_000).messages):
        before = str(sent[:-1])
        assert all(answer in before for answer in answers.values())


def test_later_requests_have_the_same_quotes() -> None:
    said, question = ASKED[0]
    history = asked(run(said), question)
    sent = compress_messages(history, WINDOW)
    assert has_quotes(sent[-2])
    history += [
        {"role": "assistant", "content": "At 03:25."},
        {"role": "user", "content": "Thanks."},
    ]
    later = compress_messages(history, WINDOW)
    assert later[: len(sent)] == sent
    assert not any(has_quotes(message) for message in later[len(sent) :])
    function = {"name": "look", "arguments": "{}"}
    call = {"id": "x", "type": "function", "function": function}
    history += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "x", "content": "Nothing."},
    ]
    assert compress_messages(history, WINDOW)[: len(later)] == later


@pytest.mark.parametrize(
    "question", ["Go on.", "Thank you!", "继续。", "What is the capital of Peru?"]
)
def test_nothing_is_quoted_for_what_nobody_said(question: str) -> None:
    sent = compress_messages(asked(run(ASKED[0][0]), question), WINDOW)
    assert not any(has_quotes(message) for message in sent)


def test_nothing_is_quoted_for_what_all_the_talk_is_about() -> None:
    """Statements of one kind share words with many others and ask for none of them."""
    draw = random.Random(5)
    who = ["The bakery", "A neighbour", "The night shift", "Our choir", "The workshop", "A visitor"]
    did = ["counted", "moved", "painted", "sorted", "described", "finished"]
    what = ["the chairs", "the shelves", "the plain drafts", "some boxes", "the lower hall"]
    when = ["before the rain came", "at an easy pace", "in good spirits", "with the windows open"]
    history: list[Message] = [{"role": "system", "content": "You help."}]
    for _ in range(1_500):
        said = " ".join(draw.choice(part) for part in (who, did, what, when)) + "."
        history += [{"role": "user", "content": said}, {"role": "assistant", "content": "OK."}]
    history[101]["content"] = "The spare key hangs behind the barometer."
    question = "Where does the spare key hang?"
    sent = compress_messages(asked(history, question), 8_000)
    assert has_quotes(sent[-2]), "what one message says is found among them"
    assert sum(has_quotes(message) for message in sent[:-2]) * 20 < len(sent)


def test_nothing_is_quoted_that_the_request_shows() -> None:
    said, question = ASKED[0]
    history = run("", seed=2)
    history += [{"role": "user", "content": said}, {"role": "assistant", "content": "I see."}]
    sent = compress_messages(asked(history, question), WINDOW)
    assert any(said == message["content"] for message in sent)
    assert not any(has_quotes(message) for message in sent)


def test_nothing_is_quoted_that_a_newer_message_says() -> None:
    history = run("The budget of the boathouse is 3,400.")
    asking = asked(history, "What is the budget of the boathouse?")
    assert has_quotes(compress_messages(asking, WINDOW)[-2])
    history += [{"role": "user", "content": "The budget of the boathouse is 4,300 now."}]
    history += [{"role": "assistant", "content": "I see."}]
    sent = compress_messages(asked(history, "What is the budget of the boathouse?"), WINDOW)
    assert not has_quotes(sent[-2]), "the older one would stand behind the newer"


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        ("Freeze starts on 14 June.", "Freeze moved to 21 June.", "When does the freeze start?"),
        (
            "The plumber comes Monday at eight.",
            "Correction, Tuesday at eight for the plumber.",
            "When does the plumber come?",
        ),
        (
            "The warehouse door code is 7719.",
            "They changed the code of the warehouse door, it's 3302.",
            "What's the code of the warehouse door?",
        ),
    ],
)
def test_what_is_outdated_is_not_quoted_alone(older: str, newer: str, question: str) -> None:
    """The quotes stand behind all else, so a correction further up would read as the older one."""
    for seed in range(6):
        draw = random.Random(seed)
        history: list[Message] = [{"role": "system", "content": "You help."}]
        for number in range(80):
            words = {3: older, 16: newer}.get(number, f"What about the {draw.choice(ENGLISH)}?")
            history += [
                {"role": "user", "content": words},
                {"role": "assistant", "content": prose(draw, 7)},
            ]
        sent = compress_messages(asked(history, question), 3_600)
        quotes = str(sent[-2]["content"]).partition("About the next message")[2]
        assert newer in quotes or older not in quotes
        assert any(newer in str(message["content"]) for message in sent)


def test_the_line_that_a_short_answer_sums_up_is_quoted() -> None:
    """The answer names what is asked for, and the log that it is about says more."""
    draw = random.Random(3)
    history: list[Message] = [{"role": "system", "content": "You read logs."}]
    for day in range(60):
        lines = [
            f"2026-05-{1 + day % 28:02} 11:{draw.randrange(60):02} web{day % 6} nginx: "
            f"GET /items/{draw.randrange(9_999)} 200 {draw.randrange(90)}ms"
            for _ in range(30)
        ]
        lines.insert(
            9, f"2026-05-{1 + day % 28:02} 03:07 web{day % 6} ERROR E{2_000 + day} M-{500 + day}"
        )
        history += [
            {"role": "user", "content": f"web{day % 6}, day {day}:\n" + "\n".join(lines)},
            {"role": "assistant", "content": f"One error: E{2_000 + day}, a merchant was refused."},
        ]
    for day in (3, 20, 40):
        sent = compress_messages(asked(history, f"Which merchant was in E{2_000 + day}?"), 8_000)
        assert any(f"M-{500 + day}" in str(message["content"]) for message in sent)
    # A paste asks for nothing that others of its kind have.
    assert sum(has_quotes(message) for message in sent) == 1


def test_what_is_asked_for_again_is_quoted_once() -> None:
    said, question = ASKED[0]
    history = asked(run(said), question)
    history += [{"role": "assistant", "content": "I do not know."}]
    sent = compress_messages(asked(history, question), WINDOW)
    assert sum(has_quotes(message) for message in sent) == 1


def answered(content: Any, **fields: Any) -> list[Message]:
    """Return a run whose last answer has another form."""
    history = run(ASKED[0][0])
    history[-1] = {"role": "assistant", "content": content, **fields}
    return asked(history, ASKED[0][1])


def test_quotes_join_the_last_text_of_a_list() -> None:
    parts = [{"type": "text", "text": "I have read"}, {"type": "text", "text": "them all."}]
    sent = compress_messages(answered(parts), WINDOW)
    assert sent[-2]["content"][0] == parts[0]
    assert has_quotes(sent[-2])
    assert sent[-2]["content"][1]["text"].startswith("them all.\n\n[")
    assert parts[1] == {"type": "text", "text": "them all."}, "the caller's own"


def test_a_signed_answer_stays_as_it_is() -> None:
    signed = [{"type": "thinking", "thinking": "…", "signature": "abc"}]
    request = answered("I have read them all.", thinking_blocks=signed)
    sent = compress_messages(request, WINDOW)
    assert sent[-3] == request[-2]
    assert sent[-2]["role"] == "user"
    assert has_quotes(sent[-2])
    assert sent[-1] == request[-1]


def test_between_a_result_and_the_user_quotes_are_a_turn() -> None:
    request = run(ASKED[0][0])[:-1]
    request.append({"role": "user", "content": ASKED[0][1]})
    sent = compress_messages(request, WINDOW)
    assert any(ASKED[0][0] in str(message["content"]) for message in sent[:-1])
    roles = [message["role"] for message in sent]
    assert not any(one == other == "user" for one, other in itertools.pairwise(roles))


def test_what_a_call_made_is_quoted_with_the_call() -> None:
    history = run("")
    function = {
        "name": "open_ticket",
        "arguments": json.dumps({"title": "Disk full", "body": prose(random.Random(0), 12)}),
    }
    made = json.dumps({"state": "new", "queue": "infra", "watchers": ["a", "b"], "no": "TCK-88213"})
    history[20:20] = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "t", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "t", "content": made},
    ]
    sent = compress_messages(
        asked(history, "Which ticket did you open about the full disk?"), WINDOW
    )
    assert any("TCK-88213" in str(message["content"]) for message in sent[:-1])


def test_quotes_are_no_words_of_the_user_when_they_come_back() -> None:
    """A caller may keep what was sent; a later cut lifts the quotes out like any ledger."""
    said, question = ASKED[0]
    sent = compress_messages(asked(run(said), question), WINDOW)
    later = [*sent, {"role": "assistant", "content": "At 03:25."}, *run("", 30)[2:]]
    fitted = fit_messages(asked(later, "Go on."), 4_000).messages
    assert not any("About the next message" in str(message) for message in fitted)


def put_table(history: list[Message], place: int, names: list[str], number: int) -> None:
    """Put a call that reads a table of clients at a place of an agent's run."""
    arguments = {"path": f"lists/{place}.csv"}
    put_call(history, place, "read_file", arguments, table(names, number))


def table(names: list[str], number: int) -> str:
    """Return a table of clients."""
    rows = [f"{name},Porto,{number + 97 * at}" for at, name in enumerate(names)]
    return "\n".join(["client,city,settlement", *rows])


@pytest.mark.parametrize(
    "question",
    [
        "Compare the settlement numbers of Orlazen, Kelvano and Tursimo.",
        "比较一下Orlazen、Kelvano和Tursimo的结算编号。",
        "Wer hat die kleinere Nummer: Orlazen, Kelvano oder Tursimo?",
    ],
)
def test_each_of_several_names_is_quoted(question: str) -> None:
    history = run("")
    wanted = []
    for place in (60, 40, 20):
        names = [f"Vel{place}{number:02}dale" for number in range(40)]
        names[17] = {60: "Orlazen", 40: "Kelvano", 20: "Tursimo"}[place]
        put_table(history, place, names, 600_000 + 7_919 * place)
        wanted.append(f"{names[17]},Porto,{600_000 + 7_919 * place + 97 * 17}")
    sent = str(compress_messages(asked(history, question), WINDOW))
    assert [row for row in wanted if row not in sent] == []


def test_an_older_passage_comes_with_the_newest_about_its_name() -> None:
    history = run("Orlazen has the settlement number 481516 and sits in the old harbour.")
    names = [f"Vel{number:02}dale" for number in range(40)]
    names[17] = "Orlazen"
    put_table(history, 80, names, 600_000)
    sent = compress_messages(asked(history, "What is the settlement number of Orlazen?"), WINDOW)
    text = str(sent)
    assert text.index("481516") < text.index("Orlazen,Porto,601649")
    assert "(older, named again later)" in text


@pytest.mark.parametrize(
    ("said", "answer", "question"),
    [
        (
            "Which doctor for my knee?",
            "I'd see Dr. Lindqvist.",
            "Whom did you recommend for my knee?",
        ),
        (
            "Get me offers for the movers.",
            "1. Becker\n2. Kranich",
            "Which offers did the movers make?",
        ),
        (
            "推荐一家适合带父母去的餐厅。",
            "福满楼，靠窗有包间。",
            "你上次推荐的带父母去的餐厅叫什么？",
        ),
    ],
)
def test_what_the_user_said_is_quoted_with_the_answer(
    said: str, answer: str, question: str
) -> None:
    history = run("")
    history[30:30] = [
        {"role": "assistant", "content": "I have read some."},
        {"role": "user", "content": said},
        {"role": "assistant", "content": answer},
        {"role": "user", "content": "Go on with the notes."},
    ]
    sent = compress_messages(asked(history, question), WINDOW)
    text = "\n".join(str(message["content"]) for message in sent)
    assert [line for line in answer.split("\n") if line not in text] == []


def test_a_question_without_room_makes_one_step() -> None:
    history, draw, changed, before = run(""), random.Random(3), 0, None
    names = [f"Vel{number:03}dale" for number in range(400)]
    for place in range(20, 150, 10):
        put_table(history, place, names[2 * place : 2 * place + 20], 600_000)
    for _ in range(60):
        name = names[2 * draw.randrange(20, 150, 10) + draw.randrange(20)]
        sent = compress_messages(asked(history, f"What is the settlement of {name}?"), WINDOW)
        changed += before is not None and sent[: len(before)] != before
        before = sent
        history = [
            *asked(history, f"What is the settlement of {name}?"),
            {"role": "assistant", "content": prose(draw, 3)},
        ]
    assert changed <= 4


@pytest.mark.parametrize("sentences", [4, 16])
def test_where_quotes_bring_steps_about_the_prefix_changes_for_want_of_room(sentences: int) -> None:
    draw, window = random.Random(1), 2_000 * sentences
    compressor = Compressor(window, "gpt-4o")
    messages: list[Message] = []
    before: list[Message] = []
    changes = needless = 0
    for number in range(200):
        older = [f"Vel{draw.randrange(number // 2 + 1):03}dale" for _ in range(2)]
        asked = " ".join(f"What did we say of {name}?" for name in older)
        messages.append({"role": "user", "content": f"And Vel{number:03}dale? {asked}"})
        request = compressor.compress(messages)
        if before and request[: len(before)] != before:
            changes += 1
            needless += count_tokens(before + messages[-2:], "gpt-4o") < 0.8 * window
        before = request
        about = f"Vel{number:03}dale settles on {prose(draw, 2)}"
        said = f"{prose(draw, sentences)} {about} {prose(draw, sentences)}"
        messages.append({"role": "assistant", "content": said})
    assert changes > 5
    assert needless <= 3


def test_all_that_a_question_counts_is_quoted() -> None:
    draw = random.Random(5)
    books = [
        f"I finished {title} yesterday."
        for title in ("Oaks", "Tides", "Salt", "Looms", "Bees", "Fog")
    ]
    history: list[Message] = [{"role": "system", "content": "You help."}]
    for turn in range(160):
        said = prose(draw, 6)
        if turn % 9 == 4 and turn // 9 < len(books):
            said = f"{said} {books[turn // 9]} {prose(draw, 2)}"
        history += [
            {"role": "user", "content": said},
            {"role": "assistant", "content": prose(draw, 8)},
        ]
    before = compress_messages(asked(history, "Thank you."), WINDOW)
    sent = compress_messages(asked(history, "How many books have I finished?"), WINDOW)
    assert sum(book in str(before) for book in books) <= 1
    assert all(book in str(sent[:-1]) for book in books)
    assert count_tokens(sent) <= WINDOW * 0.85


def test_what_the_user_said_later_of_it_is_quoted_with_it() -> None:
    """It has no word of the question, but a name of what answers it."""
    draw = random.Random(4)
    messages: list[Message] = []
    for turn in range(120):
        said = prose(draw, 3)
        if turn == 20:
            said += " ask Marla whether she can water the plants. " + prose(draw, 3)
        if turn == 40:
            said += " Odile does it, Marla has no time. " + prose(draw, 3)
        messages += [
            {"role": "user", "content": said},
            {"role": "assistant", "content": prose(draw, 14)},
        ]
    compressor = Compressor(4_000)
    for end in range(1, len(messages), 2):
        compressor.compress(messages[:end])
    asked = [*messages, {"role": "user", "content": "Who waters the plants?"}]
    assert "Odile does it" in str(compressor.compress(asked))


@pytest.mark.parametrize(
    ("heading", "question"),
    [("Parking", "At Millbrook: parking?"), ("停车", "Millbrook关于停车怎么说？")],
)
def test_of_many_documents_the_section_of_the_one_that_is_named_is_quoted(
    heading: str, question: str
) -> None:
    draw, is_chinese = random.Random(heading), not heading.isascii()
    messages: list[Message] = [{"role": "user", "content": "Read the pages of all museums."}]

    def page(name: str, said: str) -> None:
        url = f"https://www.{name.lower()}.example.com/visit"
        function = {"name": "web_fetch", "arguments": json.dumps({"url": url})}
        call = {"id": name, "type": "function", "function": function}
        menu = " | ".join(f"[{item}]({url}/{item})" for item in ENGLISH)
        text = [f"URL: {url}", menu, f"# {name}"]
        for title in ("Tickets", "History", heading, "Rooms"):
            text += [f"## {title}", prose(draw, 12, is_chinese=is_chinese)]
            text += [said] if title == heading else []
            text += [prose(draw, 12, is_chinese=is_chinese)]
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": name, "content": "\n\n".join(text)})

    names = ["Hollowell", "Millbrook", "Ashcombe", "Penrith", "Larkhill", "Dunmore", "Wexford"]
    who = ["teachers", "sailors", "nurses", "painters", "farmers", "students", "bakers"]
    of = ["教师", "水手", "护士", "画家", "农民", "学生", "面包师"]
    said = (
        [f"只有{one}可以免费停放。" for one in of]
        if is_chinese
        else [f"It is free for {one} only." for one in who]
    )
    for name, one in zip(names, said, strict=True):
        page(name, one)
    history = [*messages, *run("", number=140)[2:]]
    before, sent = (
        compress_messages(asked(history, last), WINDOW) for last in ("Thank you.", question)
    )
    assert said[1] not in str(before)
    assert said[1] in str(sent[-2]["content"])


@pytest.mark.parametrize(
    "question",
    ["When did Annika say she'd arrive?", "What did Annika say?", "When does Annika arrive again?"],
)
def test_the_line_of_the_person_who_is_named_is_quoted(question: str) -> None:
    history, draw = run(""), random.Random(5)
    said = [
        "the doctor says my knee is fine",
        "they say it rains on Sunday",
        "did the parcel arrive",
        "as I said, I have no time",
        "the choir arrives at noon",
    ]
    lines = [
        f"[{number // 6 + 1:02}.11.26, 10:{number % 60:02}] {draw.choice(['Bo', 'Cid', 'Dee'])}: "
        f"{draw.choice(said)} ({prose(draw, 1)})"
        for number in range(130)
    ]
    lines[70] = "[12.11.26, 10:10] Annika: my train gets in at 19:34, platform 7"
    put_call(history, 30, "chat_export", {"chat": "Family"}, "\n".join(lines))
    sent = compress_messages(asked(history, question), WINDOW)
    assert "19:34, platform 7" in str(sent)


def put_request(
    history: list[Message], place: int, request: str, arguments: str, rows: str
) -> None:
    """Put a request of the user, the call that answers it and its result at a place of a run."""
    put_call(history, place, "exec", {"command": arguments}, rows)
    history.insert(place, {"role": "user", "content": request})
    history[place + 3 : place + 3] = [
        {"role": "assistant", "content": "Read."},
        {"role": "user", "content": "Go on."},
    ]


@pytest.mark.parametrize(
    ("request_", "command", "question"),
    [
        ("Look around.", "hotels --near fair", "Book the cheapest hotel near the fair."),
        ("Read the invoices of the north.", "cat n.md", "Which invoices of the north are open?"),
        ("Look around.", "search city=Porto", "Show me what you found for Porto."),
    ],
)
def test_the_rows_that_a_call_or_a_request_names_are_quoted(
    request_: str, command: str, question: str
) -> None:
    for seed in range(4):
        draw = random.Random(seed)
        rows = [
            f"| {word}-{n} | {draw.randint(40, 400)}.50 |" for n in range(3) for word in ENGLISH
        ]
        history = run("", seed=seed)
        put_request(history, 22, request_, command, "\n".join(["| item | price |", *rows]))
        before = compress_messages(asked(history, "Thank you."), WINDOW)
        sent = compress_messages(asked(history, question), WINDOW)
        quoted = str(sent[-2]["content"])
        assert not any(all(row in str(message) for row in rows) for message in before)
        assert all(f"> {row}" in quoted for row in rows), quoted
        assert sent[:-2] == before[:-2]


def test_before_a_message_that_names_something_new_no_result_is_quoted_as_a_whole() -> None:
    draw = random.Random(3)
    names = ("payments", "billing", "mailer", "search")
    compressor = Compressor(16_000, "gpt-4o")
    messages: list[Message] = []
    quoted = changes = 0
    before: list[Message] = []
    for number in range(60):
        name, day = draw.choice(names), f"2026-0{1 + number // 28}-{1 + number % 28:02}"
        path = f"logs/{name}-{day}.log"
        rows = [
            f"{day}T{row:02}:00 {name} INFO GET /{draw.randrange(10**6)} 200" for row in range(80)
        ]
        said = f"Tom says {name} was odd on {day}. Read {path} and tell me what broke."
        messages.append({"role": "user", "content": said})
        sent = compressor.compress(messages)
        changes += bool(before) and sent[: len(before)] != before
        quoted = max(quoted, count_tokens(sent[-2:-1], "gpt-4o") if len(sent) > 1 else 0)
        call = {"name": "read_file", "arguments": json.dumps({"path": path})}
        calls = [{"id": f"c{number}", "type": "function", "function": call}]
        messages += [
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": f"c{number}", "content": "\n".join(rows)},
        ]
        before = compressor.compress(messages)
        messages.append({"role": "assistant", "content": f"Nothing broke in {path}."})
    assert quoted < 600
    assert changes <= 2


def test_the_day_of_a_date_is_no_name_by_itself() -> None:
    compressor = Compressor(8_000, "gpt-4o")
    messages: list[Message] = []
    for day in range(1, 13):
        messages.append({"role": "user", "content": f"What failed on March {day}?"})
        sent = compressor.compress(messages)
        assert "About the next message" not in str(sent[:-1]), day
        rows = [f"2026-03-{day:02} node-{at % 9} GET /items/{at * day} 200" for at in range(160)]
        call = {"name": "read_log", "arguments": json.dumps({"day": day})}
        messages += [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{day}", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": f"c{day}", "content": "\n".join(rows)},
            {"role": "assistant", "content": "Nothing."},
        ]
        compressor.compress(messages[:-1])


EVENTS = [
    {
        "id": f"e{day}{hour}",
        "title": f"{name} {day} with {person}",
        "start": f"2026-10-{day:02}T{hour:02}:15",
    }
    for day in range(12, 28)
    for hour, name, person in ((9, "Meeting", "Ann"), (17, "Course", "Bo"))
]


@pytest.mark.parametrize("is_step", [False, True])
@pytest.mark.parametrize(
    ("question", "day"),
    [
        ("What's on on Thursday?", 15),
        ("What is on the 21st?", 21),
        ("Was steht morgen an?", 13),
        ("星期四有什么安排?", 15),
        ("Qu'est-ce que j'ai après-demain ?", 14),
    ],
)
def test_a_day_is_found_by_its_name_where_the_host_says_what_day_it_is(
    question: str, day: int, is_step: bool
) -> None:
    call = {"name": "calendar_list", "arguments": "{}"}
    calls = [{"id": "c", "type": "function", "function": call}]
    messages: list[Message] = [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "Show me the next weeks."},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c", "content": json.dumps(EVENTS)},
        {"role": "assistant", "content": "Quite full."},
    ]
    for at in range(30):
        says = f"It has {at} sides, and each of them is worth a look. " * 20
        messages += [
            {"role": "user", "content": f"Tell me something about subject {at}."},
            {"role": "assistant", "content": f"Subject {at} is wide. {says}"},
        ]
    now = "[Runtime Context — metadata only]\nCurrent Time: 2026-10-12 09:30 (Monday)\n"
    messages.append({"role": "user", "content": f"{question}\n\n{now}[/Runtime Context]"})
    budget = count_tokens(messages, "gpt-4o") // (4 if is_step else 7)
    if is_step:
        sent = Compressor(budget, "gpt-4o", max_output_tokens=64).compress(messages)
    else:
        sent = fit_messages(messages, budget, "gpt-4o").messages
    assert f"Meeting {day} with Ann" in str(sent)
    assert f"Course {day} with Bo" in str(sent)
