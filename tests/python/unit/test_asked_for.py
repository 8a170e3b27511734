"""What the last message of the user asks for by name stays, whoever said it, in little room too."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from nanobot_context import Compressor, compress_messages, count_tokens, fit_messages

NAMED = [
    ("The forwarder lost PO-77120 at the border.", "Where was PO-77120 lost?"),
    ("The fan of web-prod-03 makes a noise.", "What is wrong with web-prod-03?"),
    ("The tickets were booked by Ines Carvalho last night.", "What did Ines Carvalho do?"),
    ("The repair came to $12,480.50 in the end.", "What cost $12,480.50?"),
    ("The parcel went to Lindenstrasse 14 by mistake.", "What went to Lindenstrasse 14?"),
    ("The scale in the shop is 192.168.40.12 on the wall plug.", "What is 192.168.40.12?"),
    ("The bus home leaves at 17:05 behind the school.", "What leaves at 17:05?"),
    ("仓库搬到了浦东大道1200号。", "浦东大道1200号有什么？"),
    ("钥匙放在李秀英那里。", "李秀英那里有什么？"),
]
MAY_BE_NAMES = [
    ("The cousin of the baker lives in Reykjavík now.", "Who lives in Reykjavík?"),
    ("The job at the mill ended with SIGKILL at night.", "What ended with SIGKILL?"),
    ("The hook was skipped with --no-verify by the intern.", "What about --no-verify?"),
    ("The tank behind the barn is at 87% since then.", "What is at 87%?"),
    ("The lease is with O'Brien until autumn.", "What does O'Brien have?"),
    ("The price of blue harvest is thirty since spring.", 'What is the price of "blue harvest"?'),
    ("合同由王建国保管，原件在保险柜里。", "王建国保管什么？"),
    ("周会改到三号会议室开。", "三号会议室有什么？"),
]
WHO = [
    "The harbour office",
    "My cousin",
    "The choir",
    "A tall cyclist",
    "The ferry",
    "The gardener",
]
DOES = ["picked up", "sketched", "opened", "compared", "painted", "returned"]
WHAT = [
    "a basket of apples",
    "two wooden benches",
    "the old maps",
    "the tea cups",
    "a row of lamps",
]
HOW = ["on a mild evening.", "near the station.", "in the usual way.", "as the bells rang."]


def conversation(role: str, facts: list[tuple[str, str]] = NAMED) -> list[dict[str, Any]]:
    """Return a talk in which each sentence is said once, in the middle of a long message."""
    draw = random.Random(role)

    def prose(sentences: int) -> str:
        return " ".join(
            " ".join(draw.choice(part) for part in (WHO, DOES, WHAT, HOW)) for _ in range(sentences)
        )

    messages: list[dict[str, Any]] = [{"role": "system", "content": "You help."}]
    for number, (said, _) in enumerate(facts):
        text = f"{prose(16)} {said} {prose(16)}"
        if role in ("tool", "call"):
            path = f"notes/{number}.txt"
            function = {"name": "read_file", "arguments": json.dumps({"path": path})}
            if role == "call":
                function = {
                    "name": "write_file",
                    "arguments": json.dumps({"path": path, "content": text}, ensure_ascii=False),
                }
                text = "Written."
            call = {"id": f"c{number}", "type": "function", "function": function}
            messages += [
                {"role": "user", "content": "Go on, please."},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"c{number}", "content": text},
            ]
        else:
            messages.append({"role": role, "content": text})
        messages += [
            {"role": "user" if role == "assistant" else "assistant", "content": prose(2)},
            {"role": "user", "content": prose(6)},
            {"role": "assistant", "content": prose(6)},
        ]
    return messages


@pytest.mark.parametrize("role", ["user", "assistant", "tool", "call"])
def test_the_sentence_that_is_asked_for_stays_of_a_long_message(role: str) -> None:
    talk = conversation(role)
    for said, question in NAMED:
        messages = [*talk, {"role": "user", "content": question}]
        fitted = fit_messages(messages, count_tokens(messages) // 8).messages
        assert any(said in str(message) for message in fitted[:-1]), question


@pytest.mark.parametrize("role", ["user", "assistant", "tool"])
def test_so_it_does_where_steps_were_made_before_the_question(role: str) -> None:
    facts = [*NAMED, *MAY_BE_NAMES]
    talk = conversation(role, facts)
    for said, question in facts:
        messages = [*talk, {"role": "user", "content": question}]
        sent = compress_messages(messages, count_tokens(messages) // 6, "gpt-4o")
        assert any(said in str(message["content"]) for message in sent[:-1]), question


def test_a_conversation_that_was_cut_before_the_question_has_its_answer() -> None:
    """Steps are rare, but what is asked for by name is quoted or worth another one."""
    draw = random.Random(7)

    def said(role: str, text: str) -> dict[str, Any]:
        return {"role": role, "content": text}

    def sentence() -> str:
        return " ".join(draw.choice(part) for part in (WHO, DOES, WHAT, HOW))

    talk, facts = [said("system", "You help.")], []
    for number in range(400):
        facts.append(f"{sentence()[:-1]} for OPS-{4_000 + 37 * number}.")
        text = " ".join([sentence(), facts[-1], sentence(), sentence()])
        talk += [said("user", text), said("assistant", "Fine.")]
    compressor = Compressor(6_000, "gpt-4o")
    first = compressor.compress([*talk, said("user", "Please go on.")])
    asked = [*talk, said("user", "And what was it that happened for OPS-4740?")]
    shown = compressor.compress(asked)
    assert facts[20] not in json.dumps(first)
    assert facts[20] in json.dumps(shown)
    # So it is where the name stands in a task.
    task = " ".join([*(sentence() for _ in range(12)), "Begin with OPS-4740."])
    assert facts[20] in json.dumps(compressor.compress([*talk, said("user", task)]))
    # All requests of the turn begin alike, in every process.
    call = {"id": "c", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    asked += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "Nothing."},
    ]
    again = compressor.compress(asked)
    assert again[: len(shown)] == shown
    assert again == compress_messages(asked, 6_000, "gpt-4o")
    # So do those of the next turn.
    later = [*asked, said("assistant", "It was that."), said("user", "Thank you.")]
    assert compressor.compress(later)[: len(again)] == again


def records(form: str) -> tuple[list[dict[str, str]], str]:
    """Return 400 orders, and their text in a form."""
    draw = random.Random(8)
    orders = [
        {
            "id": f"ORD-{41_000 + 7 * number}",
            "customer": f"Customer {number:03}",
            "email": f"p{draw.randint(10_000, 99_999)}@mail.example",
            "city": draw.choice(["Graz", "Lyon", "Oslo"]),
            "amount": f"{draw.uniform(10, 99):.2f}",
            "status": draw.choice(["shipped", "delivered"]),
        }
        for number in range(400)
    ]
    rows = [list(orders[0]), *(list(order.values()) for order in orders)]
    text = {
        "csv": "\n".join(",".join(row) for row in rows),
        "table": "\n".join("| " + " | ".join(row) + " |" for row in rows),
        "lines of JSON": "\n".join(json.dumps(order) for order in orders),
        "yaml": "\n".join(
            "\n".join(f"{'- ' if key == 'id' else '  '}{key}: {value}" for key, value in o.items())
            for o in orders
        ),
    }
    return orders, text[form]


@pytest.mark.parametrize("form", ["csv", "table", "lines of JSON", "yaml"])
@pytest.mark.parametrize("rounds", [0, 1, 4])
def test_the_row_that_is_asked_for_stays_of_pasted_data(form: str, rounds: int) -> None:
    orders, text = records(form)
    messages = [
        {"role": "user", "content": f"Here are our orders:\n\n{text}"},
        {"role": "assistant", "content": "I have read them."},
    ]
    for number in range(rounds):
        messages += [
            {"role": "user", "content": f"Could plan {number} be done in a week?"},
            {"role": "assistant", "content": "It takes ten days, and nothing else changes. " * 9},
        ]
    for place in (60, 200, 390):
        order = orders[place]
        question = {"role": "user", "content": f"What is the e-mail of {order['id']}?"}
        whole = [*messages, question]
        for sent in (
            fit_messages(whole, count_tokens(whole) // 4).messages,
            compress_messages(whole, count_tokens(whole) * 6 // 10),
        ):
            said = "\n".join(str(message["content"]) for message in sent[:-1])
            assert order["id"] in said
            assert order["email"] in said


@pytest.mark.parametrize("reply", ["The second one.", "ok do that", "(b) please", "好的"])
@pytest.mark.parametrize("window", [2_500, 4_000, 9_000])
def test_what_the_model_said_last_stays_before_a_short_reply(reply: str, window: int) -> None:
    draw = random.Random(window)
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You plan trips."}]
    for day in range(300):
        town = draw.choice(["Brixen", "Meran", "Klausen", "Toblach"])
        answer = [" ".join(draw.choice(part) for part in (WHO, DOES, WHAT, HOW)) for _ in range(5)]
        messages += [
            {"role": "user", "content": f"What about {town} on day {day}?"},
            {"role": "assistant", "content": " ".join(answer)},
        ]
    options = "1) the farm 2) the mill 3) the hut. Which of them shall I book?"
    for end in range(401, 601, 20):
        asking = [*messages[:end]]
        asking[-1] = {"role": "assistant", "content": f"{asking[-1]['content']} {options}"}
        asking.append({"role": "user", "content": reply})
        for sent in (
            fit_messages(asking, window).messages,
            compress_messages(asking, window),
        ):
            assert sent[-2]["role"] == "assistant"
            assert options in sent[-2]["content"]


@pytest.mark.parametrize("form", ["csv", "table", "lines of JSON", "yaml"])
@pytest.mark.parametrize("comes_first", [True, False])
def test_each_of_several_names_keeps_its_row(form: str, *, comes_first: bool) -> None:
    orders, text = records(form)
    function = {"name": "query", "arguments": "{}"}
    call = {"id": "q", "type": "function", "function": function}
    result: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "q", "content": text},
    ]
    for number in (3, 5):
        wanted = orders[7 :: 390 // number][:number]
        ids = ", ".join(order["id"] for order in wanted)
        question = {"role": "user", "content": f"Give the e-mail addresses of {ids}."}
        answer = {"role": "assistant", "content": "I have read them."}
        before = [question] if comes_first else [{"role": "user", "content": "Read the orders."}]
        messages = [*before, *result, *([] if comes_first else [answer, question])]
        sent = fit_messages(messages, count_tokens(messages) // 12).messages
        found = next(str(message["content"]) for message in sent if message["role"] == "tool")
        assert all(order["id"] in found and order["email"] in found for order in wanted)


def after(results: list[tuple[str, str, str]], question: str) -> list[dict[str, Any]]:
    """Return results of calls as (tool, argument, text), an answer, and a question on them."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Look at it."}]
    for number, (tool, argument, text) in enumerate(results):
        function = {"name": tool, "arguments": json.dumps({"path": argument})}
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": text})
    answer = {"role": "assistant", "content": "I have read it all."}
    return [*messages, answer, {"role": "user", "content": question}]


def tools_of(messages: list[dict[str, Any]], budget: int) -> str:
    sent = fit_messages(messages, budget).messages
    return "\n".join(str(message["content"]) for message in sent if message["role"] == "tool")


@pytest.mark.parametrize(
    "request_",
    [
        "Change settle so that it logs its arguments.",
        "Change settle in quota_pier.py so that it logs its arguments.",
        "Now change `settle` in lib/batch/quota_pier.py: no stock, no depot, no label.",
        "lib/batch/quota_pier.py: add a parameter to settle for parcels of no weight",
        "现在请修改 lib/batch/quota_pier.py 里的 settle：输入为空时抛出异常。",
    ],
)
def test_a_function_stays_whole_whether_its_file_is_named_or_not(request_: str) -> None:
    rng = random.Random(5)
    words = ["order", "total", "rate", "stock", "parcel", "depot", "label", "batch"]

    def function(name: str) -> str:
        lines = [
            f"    {rng.choice(words)}_{i} = {rng.choice(words)}({i}, {name}_rate)" for i in range(9)
        ]
        return "\n".join(
            [f"def {name}(parcel):", *lines, f"    return {rng.choice(words)}", "", ""]
        )

    halls = ["yard", "dock", "shed", "barn", "lane", "hall", "gate", "pier", "bay", "ramp"]
    folders = [*words, "freight", "claims"]
    files = []
    for area in range(10):
        names = [f"{rng.choice(words)}_{rng.choice(words)}_{area}_{i}" for i in range(12)]
        files.append(
            (
                "read_file",
                f"lib/{folders[area]}/quota_{halls[area]}.py",
                "".join(map(function, names)),
            )
        )
    wanted = function("settle")
    tool, path, text = files[7]
    middle = text.index("def ", len(text) // 2)
    files[7] = (tool, path, text[:middle] + wanted + text[middle:])
    messages = after(files, request_)
    assert wanted.strip() in tools_of(messages, count_tokens(messages) // 8)


@pytest.mark.parametrize(
    "question",
    [
        "Did test_total[137] pass?",
        "Did test_total[137] in tests/test_shop.py pass?",
        "What about test_total[137], in the first file?",
    ],
)
def test_one_of_many_cases_of_a_test_is_found(question: str) -> None:
    lines = [f"tests/test_shop.py::test_total[{i}] PASSED [ {i // 4}%]" for i in range(400)]
    messages = after([("exec", "pytest -v", "\n".join(lines))], question)
    assert "test_total[137] PASSED" in tools_of(messages, count_tokens(messages) // 12)


@pytest.mark.parametrize(
    "question", ["What is wrong in shop.py line 285?", "What is in line 285 of shop.py?"]
)
def test_a_line_that_is_asked_for_in_words_is_found(question: str) -> None:
    lines = [
        f"lib/shop.py:{i}: error: Missing annotation of {i % 7} [no-untyped-def]"
        for i in range(200, 500)
    ]
    messages = after([("exec", "mypy lib", "\n".join(lines))], question)
    assert "lib/shop.py:285:" in tools_of(messages, count_tokens(messages) // 12)


@pytest.mark.parametrize("digits", [7, 8, 10, 12, 40])
def test_a_commit_is_found_by_the_hash_that_the_user_shortened(digits: int) -> None:
    rng = random.Random(7)
    shas = [f"{rng.getrandbits(160):040x}" for _ in range(200)]
    log = "".join(
        f"commit {sha}\nAuthor: Ann <a@b.c>\n\n    Change {i}\n\n" for i, sha in enumerate(shas)
    )
    messages = after([("exec", "git log", log)], f"What was changed in {shas[120][:digits]}?")
    kept = tools_of(messages, count_tokens(messages) // 12)
    assert shas[120] in kept
    assert "Change 120\n" in kept


@pytest.mark.parametrize(
    ("fact", "question"),
    [
        ("我那把伞落在小周办公室了。", "伞呢？"),
        ("昨晚把车放到地下二层了。", "车停哪里了？"),
        ("傘は会社に忘れた。", "あの傘、知らない？"),
    ],
)
def test_a_noun_of_one_character_is_a_name(fact: str, question: str) -> None:
    draw = random.Random(2)
    things = ["窗户", "邻居", "电影", "米饭", "公园", "音乐"]
    says = ["开着很好", "说得不错", "真有意思", "让人高兴", "太长了"]

    def prose(sentences: int) -> str:
        return "".join(f"{draw.choice(things)}{draw.choice(says)}。" for _ in range(sentences))

    messages: list[dict[str, Any]] = []
    for turn in range(60):
        said = prose(3) + (fact if turn == 20 else "") + prose(3)
        messages += [{"role": "user", "content": said}, {"role": "assistant", "content": prose(6)}]
    messages.append({"role": "user", "content": question})
    sent = fit_messages(messages, count_tokens(messages) // 10).messages
    assert any(fact in message["content"] for message in sent)


EVENTS = [(month, day) for month in (5, 6, 7) for day in range(1, 31)]


def calendar(form: str) -> str:
    """Return 90 events, one a day: the result of a tool."""
    titles = {(month, day): f"Choir {100 * month + day}" for month, day in EVENTS}
    if form == "json":
        items = [
            {"summary": title, "start": {"dateTime": f"2026-{month:02}-{day:02}T09:00:00+02:00"}}
            for (month, day), title in titles.items()
        ]
        return json.dumps({"items": items})
    events = [
        f"BEGIN:VEVENT\nUID:{k}@cal\nDTSTART;TZID=Europe/Berlin:2026{month:02}{day:02}T090000\n"
        f"SUMMARY:{title}\nEND:VEVENT\n"
        for k, ((month, day), title) in enumerate(titles.items())
    ]
    return f"BEGIN:VCALENDAR\n{''.join(events)}END:VCALENDAR\n"


@pytest.mark.parametrize(
    "day",
    [
        "June 25",
        "25. Juni",
        "25.6.",
        "25/6",
        "6/25",
        "25-6-2026",
        "2026-06-25",
        "20260625",
        "6月25日",
    ],
)
@pytest.mark.parametrize("form", ["ics", "json"])
def test_what_is_on_a_day_is_found_however_the_day_is_written(form: str, day: str) -> None:
    messages = after([("calendar", "{}", calendar(form))], f"What do I have on {day}?")
    kept = tools_of(messages, count_tokens(messages) // 12)
    assert "Choir 625" in kept


@pytest.mark.parametrize(
    ("said", "later", "question"),
    [
        (
            "ask Marla whether she can water the plants",
            "Odile does it, Marla has no time",
            "Who waters the plants?",
        ),
        (
            "book the table at Corvino for Wednesday",
            "Corvino only has room on Thursday, so that then",
            "Which day is Corvino?",
        ),
        (
            "frag Marla ob sie die Blumen gießt",
            "Marla kann nicht, frag Odile",
            "Wer gießt die Blumen?",
        ),
        ("问问王小明能不能浇花", "王小明没空，让李晓燕来弄", "谁浇花？"),
    ],
)
def test_what_changed_what_is_asked_for_comes_with_it(said: str, later: str, question: str) -> None:
    """A few words amid what the user tells of their days."""
    draw = random.Random(8)
    who = ["sister", "boss", "landlord", "cousin", "plumber", "trainer", "colleague", "neighbour"]
    what = ["bike", "sofa", "kitchen", "roof", "printer", "car", "garden", "boiler"]
    tells = [
        "my {who} keeps telling me about the {what} and honestly i dont mind",
        "i read something about it on monday, the {who} sent it to me",
        "it rained the whole time and the {what} got wet",
        "not sure what to do with the {what}, it was expensive back then",
        "so last week my {who} came by and looked at the {what}, took ages",
    ]

    def chatter(sentences: int) -> str:
        said = (draw.choice(tells) for _ in range(sentences))
        return ", ".join(one.format(who=draw.choice(who), what=draw.choice(what)) for one in said)

    messages: list[dict[str, Any]] = []
    for turn in range(60):
        text = f". {said}. " if turn == 10 else f". {later}. " if turn == 30 else ". "
        rows = [{"id": draw.randrange(10**6), "state": draw.choice("ab")} for _ in range(40)]
        function = {"name": "devices", "arguments": "{}"}
        call = {"id": f"c{turn}", "type": "function", "function": function}
        messages += [
            {"role": "user", "content": f"{chatter(3)}{text}{chatter(4)}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{turn}", "content": json.dumps(rows)},
            {"role": "assistant", "content": chatter(2)},
        ]
    messages.append({"role": "user", "content": question})
    sent = fit_messages(messages, count_tokens(messages) // 24).messages
    assert any(later in str(message["content"]) for message in sent)


@pytest.mark.parametrize("noun", ["dose", "tone", "date", "note", "hats", "wire", "depth"])
def test_a_noun_whose_stem_is_a_stop_word_is_asked_for(noun: str) -> None:
    """`dose` is not Spanish `dos`, and `note` is not `not`."""
    fact = f"The {noun} of the north line is 815 units."
    messages = told({20: ("assistant", fact)}, f"What is the {noun}?")
    assert fact in str(fit_messages(messages, count_tokens(messages) // 10).messages)


def test_what_has_most_of_a_question_stays_beside_a_rare_word_of_it() -> None:
    """Where the user types most of a talk, the newest of that would take the room."""
    fact = "For the knee of my mother the doctor gave us a salve of arnica."
    others = [
        "The doctor said that the knee of the statue was chipped.",
        "My mother sang of a salve for every rusty gate.",
        "The doctor has a boat, and so has my mother.",
        "They had a salve for every knee there.",
    ]
    said = {turn: ("user", others[turn % len(others)]) for turn in range(2, 40, 2)}
    question = (
        "What did the doctor give my mother for her knee? Say it as in: caffeine, from a teapot."
    )
    said |= {5: ("user", fact), 9: ("user", "They drink caffeine from a teapot.")}
    messages = told(said, question)
    for message in messages:
        if message["role"] == "assistant":
            message["content"] = "I see."
    assert fact in str(fit_messages(messages, count_tokens(messages) // 5).messages)


def told(facts: dict[int, tuple[str, str]], question: str) -> list[dict[str, Any]]:
    """Return a talk of forty turns with sentences in the middle of some messages, by turn."""
    draw = random.Random(3)

    def prose(role: str, turn: int) -> str:
        told = [
            " ".join((draw.choice(WHO), draw.choice(DOES), draw.choice(WHAT), draw.choice(HOW)))
            for _ in range(8)
        ]
        who, fact = facts.get(turn, ("", ""))
        return " ".join(told[:4] + [fact] * (who == role) + told[4:])

    messages: list[dict[str, Any]] = []
    for turn in range(40):
        for role in ("user", "assistant"):
            messages.append({"role": role, "content": prose(role, turn)})
    return [*messages, {"role": "user", "content": question}]


def test_what_a_call_reads_of_a_name_stays_though_the_user_said_it_before() -> None:
    columns = [f" {name:<11} | numeric | not null" for name in ("amount", "tax", "booked_on", "kw")]
    schema = [
        '        Table "public.fct_orders"',
        "   Column    |  Type   | Nullable",
        "-------------+---------+----------",
        *columns,
    ]
    draw = random.Random(7)
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Today it is about fct_orders and more."}
    ]

    def call(command: str, result: str) -> None:
        id = f"c{len(messages)}"
        function = {"name": "psql", "arguments": json.dumps({"command": command})}
        calls = [{"id": id, "type": "function", "function": function}]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages.append({"role": "tool", "tool_call_id": id, "content": result})

    call("\\d fct_orders", "\n".join(schema))
    for number in range(12):
        rows = [f" {draw.random():.4f} | {draw.choice(WHAT)}" for _ in range(40)]
        call(f"select * from stg_{number}", "\n".join([" share  | what", "--------+-----", *rows]))
    messages += [
        {"role": "assistant", "content": "Ready."},
        {"role": "user", "content": "Now the monthly totals from fct_orders."},
    ]
    fitted = str(fit_messages(messages, count_tokens(messages) // 8).messages[2]["content"])
    assert all(column in fitted for column in columns)


@pytest.mark.parametrize("share", [25, 50, 90])
@pytest.mark.parametrize(
    ("question", "row", "odd"),
    [
        (
            "Are all windows closed?",
            "{name}, floor {i}, seen at {i}:30 by the cleaner: closed",
            "{name}, floor {i}, seen at {i}:30 by the cleaner: open",
        ),
        (
            "Have I read them all?",
            "{i}. {name} | Your order has shipped | read",
            "{i}. {name} | Your order has shipped | unread",
        ),
        (
            "Wer hat zugesagt?",
            "{name}, Gast {i}, Tisch {i}, gemeldet von Clara: zugesagt",
            "{name}, Gast {i}, Tisch {i}, gemeldet von Clara: abgesagt",
        ),
        (
            "都付款了吗？",
            "订单 {i}，{name}，十月{i}日下单，已付款",
            "订单 {i}，{name}，十月{i}日下单，未付款",
        ),
    ],
)
def test_the_one_row_without_what_all_others_have_stays(
    question: str, row: str, odd: str, share: int
) -> None:
    names = [
        "Anna Becker",
        "Jonas Vogt",
        "Clara Novak",
        "Wim Jansen",
        "Rosa Silva",
        "Lars Dunne",
        "Mona Weiss",
    ]
    rows = [(odd if i == 41 else row).format(i=i, name=names[i * i % 7]) for i in range(60)]
    _, made, result, _, asked = after([("list_all", "{}", "\n".join(rows))], question)
    messages = [asked, made, result]
    budget = count_tokens(messages, None) * share // 100
    assert rows[41] in str(fit_messages(messages, budget, None).messages[-1]["content"])


@pytest.mark.parametrize("city", ["Omaha", "Псков", "成都", "Bielefeld"])
@pytest.mark.parametrize("share", [25, 50])
def test_a_word_that_one_row_has_names_it(city: str, share: int) -> None:
    cities = [
        start + end
        for start in ("Bel", "Dor", "Lan", "Mar", "Os", "Tul", "Wex")
        for end in ("by", "den", "field", "ton", "wick")
    ]
    draw, results, wanted = random.Random(7), [], f"{city};477,92;A-4302"
    for file in range(2):
        rows = [
            f"{draw.choice(cities)};{draw.randrange(900)},{i % 99:02};A-{draw.randrange(9999)}"
            for i in range(120)
        ]
        rows[70] = rows[70] if file else wanted
        results.append(("read_file", json.dumps({"path": f"sales/{file}.csv"}), "\n".join(rows)))
    messages = after(results, f"How much did we sell in {city}?")
    budget = count_tokens(messages, None) * share // 100
    assert wanted in str(fit_messages(messages, budget, None).messages)
