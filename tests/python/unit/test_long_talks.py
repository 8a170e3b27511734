"""Long talks without tools, in which what the model said matters as much as what the user did."""

import random
from collections.abc import Callable

import pytest

from nanobot_context import compress_messages, count_tokens, fit_messages

Message = dict[str, object]
Cut = Callable[[list[Message]], str]

WHO = {
    "en": ["Tomas", "the old ferryman", "her brother", "Wren", "the miller's widow", "Odile"],
    "zh": ["陈默", "老船夫", "她的弟弟", "阿蛮", "磨坊的寡妇", "画师"],
}
DID = {
    "en": [
        "waited by the window",
        "counted the coins again",
        "walked down to the water",
        "closed the shutters",
        "lit a second candle",
        "looked at the hills",
        "let the rope slip",
        "broke the bread in two",
        "asked for more time",
    ],
    "zh": [
        "在窗前等了很久",
        "又数了一遍铜钱",
        "慢慢走到水边",
        "关上了木窗",
        "点起第二支蜡烛",
        "望着远处的山",
        "松开了缆绳",
        "把饼掰成两半",
    ],
}
WHEN = {
    "en": ["while the rain fell", "and the dog barked", "until the lamps went out", "at noon"],
    "zh": ["雨正落在青瓦上", "远处的狗叫了两声", "直到灯火熄灭", "天色像一块旧锡"],
}
GO_ON = {
    "en": ["Continue.", "Go on.", "And then?", "Next."],
    "zh": ["继续。", "然后呢？", "下一段。", "接着写。"],
}


def prose(language: str, draw: random.Random, sentences: int) -> str:
    def one() -> str:
        who, did, when = (draw.choice(words[language]) for words in (WHO, DID, WHEN))
        return f"{who}{did}，{when}。" if language == "zh" else f"{who.capitalize()} {did} {when}."

    said = [one() for _ in range(sentences)]
    return "".join(said) if language == "zh" else " ".join(said)


def talk(language: str, seed: str, turns: int = 60) -> list[Message]:
    draw = random.Random(f"{language} {seed}")
    messages: list[Message] = [{"role": "system", "content": "You write with the user."}]
    for _ in range(turns):
        messages.append({"role": "user", "content": draw.choice(GO_ON[language])})
        said = prose(language, draw, draw.randint(6, 14))
        messages.append({"role": "assistant", "content": said})
    return messages


def behind(messages: list[Message], at: int, text: str) -> None:
    messages[at]["content"] = f"{messages[at]['content']}\n\n{text}"


def to_share(share: float) -> Cut:
    def cut(messages: list[Message]) -> str:
        budget = int(count_tokens(messages) * share)
        return "\n".join(str(one["content"]) for one in fit_messages(messages, budget).messages)

    return cut


def in_steps(messages: list[Message]) -> str:
    sent = compress_messages(messages, 8_000)
    return "\n".join(str(one["content"]) for one in sent)


CUTS = pytest.mark.parametrize(
    "cut", [to_share(0.1), to_share(0.25), in_steps], ids=["tenth", "quarter", "steps"]
)
LANGUAGES = pytest.mark.parametrize("language", ["en", "zh"])


@LANGUAGES
@pytest.mark.parametrize("share", [0.05, 0.1, 0.25])
def test_who_goes_on_has_the_end_of_the_last_reply(language: str, share: float) -> None:
    for seed in range(5):
        messages = talk(language, f"last {seed}")
        ending = str(messages[-1]["content"])[-25:]
        messages.append({"role": "user", "content": GO_ON[language][0]})
        assert ending in to_share(share)(messages)


@LANGUAGES
def test_the_reply_before_a_question_in_between_is_there(language: str) -> None:
    for seed in range(5):
        messages = talk(language, f"between {seed}")
        ending = str(messages[-1]["content"])[-25:]
        aside = {"en": ("How is Wren spelled?", "W-r-e-n."), "zh": ("阿蛮怎么写？", "“阿蛮”。")}
        question, answer = aside[language]
        messages.append({"role": "user", "content": question})
        messages.append({"role": "assistant", "content": answer})
        messages.append({"role": "user", "content": GO_ON[language][0]})
        assert ending in to_share(0.25)(messages)


SECTIONS = {
    "en": [
        ("## Chapter {n}", "What happened in chapter {n}?"),
        ("**Lesson {n}**", "Repeat lesson {word} with me."),
        ("Day {n}:", "What do we do on the {place} day?"),
    ],
    "zh": [("## 第{n}章", "第{n}章讲了什么？"), ("**第{n}课**", "和我复习第{word}课。")],
}
NUMBERS = {"en": ["two", "three", "four", "five"], "zh": ["二", "三", "四", "五"]}
PLACES = ["second", "third", "fourth", "fifth"]


@CUTS
@LANGUAGES
def test_a_part_is_found_by_its_number(language: str, cut: Cut) -> None:
    fact = {"en": "There was a fox with a torn ear.", "zh": "那里有一只破耳朵的狐狸。"}[language]
    for seed, (heading, question) in enumerate(SECTIONS[language]):
        messages = talk(language, f"section {seed}")
        wanted = 2 + seed
        for number in range(1, 9):
            reply = messages[12 * number]
            told = f"{reply['content']}\n\n{fact if number == wanted else ''}"
            reply["content"] = f"{heading.format(n=number)}\n\n{told}".strip()
        names = {"n": wanted, "word": NUMBERS[language][seed], "place": PLACES[seed]}
        messages.append({"role": "user", "content": question.format(**names)})
        assert fact in cut(messages)


ENTRIES = ["- {one}: {other}", "{one} → {other}", "| {one} | {other} |", "**{one}** = {other}"]
TERMS = {
    "en": [("Windrift", "Windscheid"), ("Ashwarden", "Ascheh\u00fcter"), ("Wrathmoss", "Grimmoos")],
    "zh": [("雾议会", "Mistcouncil"), ("怒苔原", "Wrathmoss"), ("守烬人", "Ashwarden")],
}


@LANGUAGES
@pytest.mark.parametrize("cut", [to_share(0.25), in_steps], ids=["quarter", "steps"])
@pytest.mark.parametrize("entry", ENTRIES)
def test_the_agreed_terms_of_what_is_handed_over_are_there(
    language: str, cut: Cut, entry: str
) -> None:
    messages = talk(language, f"terms {entry}")
    terms = TERMS[language]
    if entry.startswith("|"):
        behind(messages, 10, "| | |\n|---|---|")
    for at, (one, other) in zip((10, 22, 34), terms, strict=True):
        behind(messages, at, entry.format(one=one, other=other))
    handed = {"en": "Translate: Beyond {} lay {}, and {}.", "zh": "翻译：{}后面是{}和{}。"}
    draw = random.Random(entry)
    asked = handed[language].format(*(one for one, _ in terms))
    text = f"{asked}\n\n{prose(language, draw, 4)}"
    messages.append({"role": "user", "content": text})
    sent = cut(messages)
    assert [other for _, other in terms if other not in sent] == []


@LANGUAGES
@CUTS
@pytest.mark.parametrize("answer", ["go", "1", "knock"])
def test_who_goes_on_has_what_was_said_of_the_name_in_the_last_reply(
    language: str, cut: Cut, answer: str
) -> None:
    name, fact, ends, knock = {
        "en": (
            "Halda Brook",
            "Halda Brook had lost two fingers in the fire.",
            "What do you do?\n1. Visit {}\n2. Sleep",
            "I knock.",
        ),
        "zh": (
            "焦大海",
            "焦大海在大火里失去了两根手指。",
            "你怎么做？\n1. 拜访{}\n2. 睡觉",
            "我敲门。",
        ),
    }[language]
    messages = talk(language, f"goes on {answer}")
    behind(messages, 10, fact)
    behind(messages, -1, ends.format(name))
    says = {"go": GO_ON[language][0], "1": "1", "knock": knock}[answer]
    messages.append({"role": "user", "content": says})
    assert fact in cut(messages)


IN_PASSING = (
    "Service done at 43,210 km, brake pads are next time.",
    "Guests get the wifi with 512-883, not the long one.",
    "The new sofa takes 7 weeks, they told me in the shop.",
    "The man from the chimney firm came by, Haddad, 0161-4455.",
    "新沙发要等9周，店里的人跟我说的，到时候再联系。",
)


@pytest.mark.parametrize("said", IN_PASSING)
def test_what_is_said_in_passing_goes_after_questions_that_say_nothing(said: str) -> None:
    pick = random.Random(said)
    syllables = ["ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro", "tu"]
    asks = (
        "Any advice on the {}?",
        "Tell me something about {}.",
        "I was thinking about {} again.",
    )
    messages: list[Message] = [{"role": "system", "content": "You help."}]
    for at in range(110):
        topic = "".join(pick.choices(syllables, k=3))
        asked = said if at == 20 else asks[at % 3].format(topic)
        answer = f"The {topic} can wait for a dry day, and most people leave it until then. " * 4
        messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]
    messages.append({"role": "user", "content": "Where were we?"})
    budget = count_tokens(messages, "gpt-4o") // 14
    assert said in str(fit_messages(messages, budget, "gpt-4o").messages)
