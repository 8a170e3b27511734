"""Conversations in which the server refuses something, and some in which nothing may change."""

from __future__ import annotations

from functools import partial
from typing import Any

from faults import FAULTS
from refusals import NOT_OVERFLOW, OVERFLOW, Size, capped
from scenario import ANNOUNCED, DONE, WHOLE, Scenario, reads, script, then_ping
from server import SILENT, Answer, Call, Request, Script, content_text
from stage import Stage
from texts import chinese, planted, prose


def wrong_window(form: str, *, streamed: bool = False, **fields: Any) -> Scenario:
    """The server takes 16,000 tokens where the model is thought to take 128,000."""
    names = [f"wrong-{number}.txt" for number in range(3)]

    async def play(stage: Stage) -> None:
        for one in names:
            text = planted(one, 6_000)
            stage.file(one, text.text, text.facts)
        await stage.say("Read the three files. GOAL-wrong", streamed=streamed)
        await then_ping(stage)

    return Scenario(
        fields.pop("name", f"wrong-{form}"),
        play,
        lambda stage: script([*reads(stage.paths(names)), DONE]),
        window=16_000,
        known=None,
        form=form,
        result_chars=WHOLE,
        # A name for each, as a house gateway gives it: nothing learned about one helps another.
        # xAI's body, whose `error` is a text, comes out of litellm's OpenAI client without it.
        **{"model": f"{'xai' if form == 'xai' else 'openai'}/house-{form}", **fields},
    )


def capped_answer() -> Scenario:
    """The model answers with at most 1,000 tokens, and nanobot asks for more with every request."""

    async def play(stage: Stage) -> None:
        stage.remember([prose(f"capped-{number}", 1_000) for number in range(12)])
        for number in range(3):
            await stage.say(f"Please go on, part {number}.", streamed=number == 1)
        await stage.say("[ping] Hello there", "cli:another")

    def model(_: Stage) -> Script:
        said = script(["One.", "Two.", "Three."])

        def answer(request: Request) -> Answer:
            is_refused = not 0 < request.max_tokens <= 1_000
            return capped(1_000, request.max_tokens) if is_refused else said(request)

        return answer

    return Scenario("capped", play, model, known=None, model="openai/house-capped")


def uncountable() -> Scenario:
    """A message of the past has a name that is a number, which the provider takes."""

    async def play(stage: Stage) -> None:
        stage.remember(["Good morning.", "Good morning to you."])
        past = stage.loop.sessions.get_or_create("cli:direct")
        past.messages[0]["name"] = 5
        stage.loop.sessions.save(past)
        await stage.say("Please answer.")
        await stage.say("Please answer, streamed.", streamed=True)
        sent = [
            [m.get("name") for m in r.messages if m["role"] == "user"]
            for r in stage.server.requests
        ]
        stage.notes["names"] = [names[0] for names in sent]

    return Scenario("uncountable", play, lambda _: script(["One.", "Two."]), stopped=True)


def silently_cut() -> Scenario:
    """The server reads the last 16,000 tokens of what comes, where 128,000 were thought to fit."""
    names = [f"cut-{number}.txt" for number in range(3)]

    async def play(stage: Stage) -> None:
        for one in names:
            stage.file(one, planted(one, 12_000).text)
        await stage.say("Read the three files at once.")
        await then_ping(stage)
        await stage.say("Read them once more.")

    def model(stage: Stage) -> Script:
        at_once = [Call("read_file", {"path": str(path)}) for path in stage.paths(names)]
        return script([at_once, DONE, "pong", at_once, DONE])

    return Scenario(
        "cut",
        play,
        model,
        window=16_000,
        known=None,
        form=SILENT,
        model="openai/house-silent",
        result_chars=WHOLE,
    )


def falls_back() -> Scenario:
    """The model fails halfway, and the one that nanobot turns to has a window of 16,385."""
    names = [f"fallback-{number}.txt" for number in range(10)]
    first, second = "gpt-4o-mini", "gpt-3.5-turbo"

    async def play(stage: Stage) -> None:
        for one in names:
            text = planted(one, 4_000)
            stage.file(one, text.text, text.facts)
        await stage.say("Read the ten files. GOAL-fallback")
        await then_ping(stage)

    def model(stage: Stage) -> Script:
        works = script([*reads(stage.paths(names)), DONE])

        def answer(request: Request) -> Answer:
            fails = request.model == first and request.index >= 5
            return FAULTS["500"] if fails else works(request)

        return answer

    return Scenario(
        "fallback",
        play,
        model,
        window=128_000,
        known=None,
        model=first,
        fallback=(second, 16_385),
        result_chars=WHOLE,
    )


def with_digits(number: int) -> int:
    """Return the next number with 503 in it, a transient error for nanobot 0.1.4.post5."""
    while "503" not in str(number):
        number += 1
    return number


def too_large_to_repair() -> Scenario:
    """The user pastes more than the real window takes: nothing can be dropped."""

    async def play(stage: Stage) -> None:
        await stage.say(f"[big] Please read this.\n{prose('paste', 10_000)}")
        await then_ping(stage)
        await stage.say(f"[big] 请阅读以下内容。\n{chinese('paste', 10_000)}", "cli:chinese")
        await stage.say("[ping] 你还在吗？", "cli:chinese")

    return Scenario("twice", play, lambda _: script([]), window=9_000, known=64_000)


def refused_whatever_comes() -> Scenario:
    """The server calls every request of one turn too long and states no number."""

    async def play(stage: Stage) -> None:
        stage.remember([prose(f"talk-{number}", 1_000) for number in range(12)])
        await stage.say("[refuse] Please go on.")
        await then_ping(stage)
        stage.remember([chinese(f"talk-{number}", 1_000) for number in range(12)], "cli:chinese")
        await stage.say("[refuse] 请继续写下去，不要停。", "cli:chinese")
        await stage.say("[ping] 你还在吗？", "cli:chinese")

    def model(_: Stage) -> Script:
        def answer(request: Request) -> Answer:
            if "[refuse]" in request.last_user:
                return OVERFLOW["minimax"](Size(0, 0, 0, 0))
            return script([])(request)

        return answer

    return Scenario("mute", play, model)


def subagent_refused() -> Scenario:
    """Every request of the subagent is too long; it must end and report, not vanish."""

    async def play(stage: Stage) -> None:
        await stage.delegate("Have a subagent do it.")
        await then_ping(stage)

    def refuse(_: Request) -> Answer:
        return OVERFLOW["minimax"](Size(0, 0, 0, 0))

    def model(_: Stage) -> Script:
        spawn = [Call("spawn", {"task": "Do it.", "label": "doer"})]
        asked = partial(announced, otherwise="I have asked a subagent.")
        return script([spawn, asked, announced], [refuse] * 9)

    return Scenario("sub-refused", play, model)


def announced(request: Request, otherwise: str = "The report is LOST.") -> str:
    """Return what nanobot says of the subagent's end, if that is in the prompt."""
    told = [text for m in request.messages if ANNOUNCED in (text := content_text(m))]
    return told[-1] if told else otherwise


def other_errors() -> Scenario:
    """Errors that are no overflow, one a turn, and a short turn after each."""

    async def play(stage: Stage) -> None:
        for kind in NOT_OVERFLOW:
            await stage.say(f"[{kind}] Please answer.")
            await stage.say("[ping] And now?")

    def model(_: Stage) -> Script:
        def answer(request: Request) -> Answer:
            for kind, refusal in NOT_OVERFLOW.items():
                if f"[{kind}]" in request.last_user:
                    return refusal
            return script([])(request)

        return answer

    return Scenario("errors", play, model, stopped=True)


def switched_off() -> Scenario:
    """Chat, reads, streams, overflows and a consolidation, to be compared byte for byte."""
    names = [f"off-{number:02}.txt" for number in range(5)]

    async def play(stage: Stage) -> None:
        for one in names:
            stage.file(one, planted(one, 6_000).text)
        for number in range(3):
            await stage.say(
                f"Question {number}.\n{prose(f'question-{number}', 300)}", streamed=True
            )
        # 0.3.0 and 0.3.5 make room within the turn, the others are refused.
        await stage.say("Read the five files. 读完五个文件。")
        await then_ping(stage)
        # What consolidates beside an answer would come before or behind what follows.
        await stage.idle()
        await stage.say("[refuse] Please go on.", "cli:refused", streamed=True)
        await stage.say("[ping] And now?", "cli:refused", streamed=True)
        stage.remember([prose(f"long-{number}", 900) for number in range(20)], "cli:long")
        # A long session is consolidated beside an answer, a new one is not.
        await stage.say("/new", "cli:long")
        await stage.idle()
        await stage.say("[ping] And now?", "cli:long")

    def model(stage: Stage) -> Script:
        said = script(["One.", "Two.", "Three.", *reads(stage.paths(names)), DONE])

        def answer(request: Request) -> Answer:
            if "[refuse]" in request.last_user:
                return OVERFLOW["openai"](Size(2_000, request.prompt_tokens, 0, 0))
            return said(request)

        return answer

    return Scenario(
        "switched-off",
        play,
        model,
        window=24_000,
        result_chars=WHOLE,
        stopped=True,
    )


def small_talk() -> Scenario:
    """A conversation that fits: the package must send what nanobot would send."""
    names = ["small-0.txt", "small-1.txt"]

    async def play(stage: Stage) -> None:
        for one in names:
            stage.file(one, planted(one, 2_000).text)
        await stage.say("Hello there.")
        await stage.say("Read the two files.")
        await stage.say("那么，谢谢你。")

    def model(stage: Stage) -> Script:
        return script(["Hello.", *reads(stage.paths(names)), DONE, "不客气。"])

    return Scenario("small", play, model, stopped=True)
