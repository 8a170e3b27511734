"""Long talks whose old turns are summarised, and what every request of one showed of it.

Each question and its answer has a number. With the session as it is in the end, and the text of
each summary that it had, a request can be read: which summary stood in its system prompt, how many
messages that covers, and which questions and answers it showed.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

from faults import FAULTS, Fault
from refusals import OVERFLOW, Refusal, Size
from scenario import Scenario, memory
from server import SUMMARIES, Answer, Call, Late, Request, Script, content_text
from stage import Stage, session_files
from texts import prose

SESSION = "cli:direct"
TURNS = 200
LATE_TURNS = 150
SETTLE_SECONDS = 600.0
FEW_TURNS = 8
ENGLISH = "in kilograms. " + "Tell me of it, please. " * 4
CHINESE = "这批货有多重？请用公斤告诉我，并且看看日志里有没有报错。"
NUMBERED = re.compile(r"\b(Question|Answer) (\d{3})\b")
MARK = re.compile(r"messages? left out|已省略 [\d,]+ 条消息")
SECTION = "## Conversation Summary"
SWITCHED_ON = {"enableHistorySummarization": True, "summaryModel": f"openai/{SUMMARIES}"}

Summarised = Callable[[Request, int], Answer]


class Talk:
    """One talk as the user sees it, and the summaries that its session has had."""

    def __init__(self, stage: Stage, words: str = ENGLISH) -> None:
        self.stage = stage
        self.words = words
        self.asked = 0
        self.summaries: dict[int, dict[str, Any]] = {}
        self.without_skills()

    def restart(self) -> None:
        """Have a loop that knows no more than what is in the files."""
        self.stage.start()
        self.without_skills()

    def without_skills(self) -> None:
        """Take away nanobot's own skills: later releases read them for each request, in 50 ms."""
        self.stage.loop.context.skills.builtin_skills = self.stage.home / "no-skills"

    @property
    def session(self) -> Any:
        return self.stage.loop.sessions.get_or_create(SESSION)

    async def ask(self, times: int = 1) -> None:
        """Ask the next questions and note the summary that there is behind each answer."""
        for _ in range(times):
            await self.stage.say(f"Question {self.asked:03} {self.words}", SESSION)
            self.asked += 1
            self.note()

    def note(self) -> None:
        """Note the summary of the session, if it is another one than before."""
        metadata = self.session.metadata
        state = metadata.get("summary_state")
        if state and state["version"] not in self.summaries:
            section = import_module("nanobot_context.summary").summary_section
            shown = {"section": section(metadata["summary"])}
            self.summaries[state["version"]] = {**state, **shown}

    async def settle(self) -> None:
        """Wait until no summary is made."""
        self.stage.server.is_awaited.set()
        own = [task for task in asyncio.all_tasks() if "Jobs._run" in repr(task)]
        if own:
            await asyncio.wait(own, timeout=SETTLE_SECONDS)
        self.note()

    def report(self) -> dict[str, Any]:
        """Return what the talk has shown, for tests."""
        messages = self.session.messages
        requests = [r for r in self.stage.server.requests if r.kind == "main"]
        return {
            "asked": self.asked,
            "summaries": [
                {name: one[name] for name in ("version", "covers", "made_by", "error", "chunks")}
                for one in self.summaries.values()
            ],
            "injected": [self.injected(request) for request in requests],
            "turns_late": [
                request.answered_in - request.turn
                for request in self.stage.server.requests
                if request.kind == "summary" and request.turn < TURNS
            ],
            "faults": list(self.faults(requests, messages)),
            "in_file": self.in_file(),
        }

    def injected(self, request: Request) -> int:
        """Return the version of the summary in the system prompt; 0 for none, -1 for another."""
        if SECTION not in request.system:
            return 0
        found = [v for v, one in self.summaries.items() if one["section"] in request.system]
        return found[0] if len(found) == 1 else -1

    def faults(self, requests: list[Request], messages: list[dict[str, Any]]) -> Iterator[str]:
        """Yield each message that was covered and shown, or neither, and each step back."""
        before = 0
        said = [numbered([message]) for message in messages]
        all_said = set().union(*said)
        for number, request in enumerate(requests):
            version = self.injected(request)
            if version < before:
                yield f"request {number} goes back from summary {before} to {version}"
            before = max(version, before)
            covers = self.summaries[version]["covers"] if version > 0 else 0
            given = numbered(request.messages)
            past = {one for one in all_said if one[1] < newest(given)}
            covered = set().union(*said[:covers]) & past
            shown = given & past
            if both := covered & shown:
                yield f"request {number} covers and shows {len(both)}, {min(both)} first"
            if neither := past - covered - shown:
                yield f"request {number} has neither of {len(neither)}, {min(neither)} first"

    def in_file(self) -> dict[str, Any]:
        """Return what the session's file holds."""
        (path,) = session_files(self.stage.home)
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        messages = [line for line in lines if "_type" not in line]
        metadata = lines[0]["metadata"]
        return {
            "root": sorted(set(lines[0]) & {"summary", "summary_state"}),
            "version": metadata.get("summary_state", {}).get("version", 0),
            "has_text": bool(metadata.get("summary")),
            "questions": sum(word == "Question" for word, _ in numbered(messages)),
            "answers": sum(word == "Answer" for word, _ in numbered(messages)),
        }


def numbered(messages: list[dict[str, Any]]) -> set[tuple[str, int]]:
    """Return the questions and answers in `messages`, those in a summary aside."""
    said = [content_text(message) for message in messages if message["role"] != "system"]
    return {(word, int(number)) for word, number in NUMBERED.findall("\n".join(said))}


def newest(said: set[tuple[str, int]]) -> int:
    """Return the number of the newest question; 0.1.3.post7 says more behind it."""
    return max(number for word, number in said if word == "Question")


def model(stage: Stage, summarised: Summarised) -> Script:
    """Answer each question with its number, every tenth after a look into the workspace."""

    def answer(request: Request) -> Answer:
        if request.kind == "memory":
            return memory(request)
        if request.kind == "summary":
            return summarised(request, request.index)
        if "[ping]" in request.last_user:
            return "pong"
        number = newest(numbered(request.messages))
        if number % 10 == 9 and not looked(request):
            return [Call("list_dir", {"path": str(stage.workspace)})]
        return f"Answer {number:03}. It weighs {number} kilograms."

    return answer


def looked(request: Request) -> bool:
    """Return whether the model has called a tool for the newest question."""
    asked = max(n for n, m in enumerate(request.messages) if numbered([m]) and m["role"] == "user")
    return any(message["role"] == "tool" for message in request.messages[asked:])


def good(request: Request, index: int) -> Answer:
    return text_of(index)


def text_of(index: int) -> str:
    return f"SUMMARY-{index:03}. The user asked for weights, all in kilograms."


def late(request: Request, index: int) -> Answer:
    """Answer the second one late."""
    return Late(LATE_TURNS, text_of(index)) if index == 1 else text_of(index)


def troubled() -> Summarised:
    """Let each summary meet another trouble, and every seventh none; all come a turn late.

    The requests for one follow each other within few turns: a server that fails is asked again, and
    one that refuses is asked for halves, which it answers.
    """
    turns: list[int] = []
    first: list[int] = []

    def answer(request: Request, index: int) -> Answer:
        if not turns or request.turn > turns[-1] + FEW_TURNS:
            first.append(request.prompt_tokens)
        turns.append(request.turn)
        size = Size(request.prompt_tokens - 1, request.prompt_tokens, 0, request.max_tokens)
        is_whole = request.prompt_tokens >= first[-1]
        troubles: tuple[str | list[Call] | Refusal | Fault, ...] = (
            FAULTS["500"],
            OVERFLOW["openai"](size) if is_whole else text_of(index),
            "",
            [Call("exec", {"command": "true"})],
            f'\ufffd{{"a": [{index}',
            f"blah {index} " * 20_000,
            text_of(index),
        )
        return Late(1, troubles[(len(first) - 1) % len(troubles)])

    return answer


async def long_talk(stage: Stage, turns: int) -> None:
    """Talk, wait for the last summary, go on after a restart, and then without the package."""
    talk = Talk(stage)
    await talk.ask(turns)
    await talk.settle()
    await talk.ask()
    talk.restart()
    await talk.ask()
    await talk.settle()
    stage.notes |= talk.report()
    await go_on_without_the_package(stage)
    stage.notes["afterwards"] = {"in_file": talk.in_file(), "injected": last_injected(talk)}


async def go_on_without_the_package(stage: Stage) -> None:
    """Let nanobot, as it is without us, read the file and answer; the package is on afterwards."""
    package = import_module("nanobot_context")
    package.uninstall()
    stage.start()
    await stage.say("[ping] Are you still there?", SESSION)
    package.install()


def last_injected(talk: Talk) -> int:
    return talk.injected(talk.stage.server.requests[-1])


async def short_talk(stage: Stage) -> None:
    """Some summaries, a restart, a fork and idle time where nanobot knows of them, and `/new`."""
    talk = Talk(stage)
    for _ in range(24):
        await talk.ask()
        await talk.settle()
    talk.restart()
    await talk.ask(2)
    await talk.settle()
    stage.notes |= talk.report()
    stage.notes["fork"] = forked(stage)
    if hasattr(stage.loop, "auto_compact"):
        await stage.compact_idle(SESSION)
        await talk.ask()
        stage.notes["after_idle"] = last_injected(talk)
        await talk.settle()
    await stage.say("/new", SESSION)
    await stage.idle()
    await stage.say("[ping] Do you know me?", SESSION)
    stage.notes["after_new"] = {
        "injected": last_injected(talk),
        "metadata": sorted({"summary", "summary_state"} & set(talk.session.metadata)),
    }


async def chinese_talk(stage: Stage) -> None:
    """Talk in Chinese of what a tool says in English."""
    for number in range(200):
        stage.file(f"error-could-not-import-order-{number:03}.log", "")
    talk = Talk(stage, CHINESE)
    await talk.ask(22)
    await talk.settle()
    requests = [request for request in stage.server.requests if request.kind == "summary"]
    stage.notes["prompts"] = [request.text.splitlines()[0] for request in requests]
    stage.notes["english"] = ["could-not-import-order" in request.text for request in requests]


async def settled_talk(stage: Stage, words: str = ENGLISH) -> None:
    """Talk for 24 rounds, each begun when the summary of the one before is there."""
    talk = Talk(stage, words)
    for _ in range(24):
        await talk.ask()
        await talk.settle()
    stage.notes |= talk.report()
    stage.notes["reasons"] = [one["reason"] for one in talk.summaries.values()]
    requests = [request for request in stage.server.requests if request.kind == "main"]
    stage.notes["marked"] = [bool(MARK.search(request.text)) for request in requests]


def forked(stage: Stage) -> list[list[str]] | None:
    """Fork the session before its second question and before its last; return what is shown."""
    fork = getattr(stage.loop.sessions, "fork_session_before_user_index", None)
    if fork is None:
        return None
    shown = []
    for index in (1, 25):
        session = fork(SESSION, f"cli:fork-{index}", index)
        shown.append([content_text(message) for message in session.get_history()][:1])
    return shown


def talk(
    name: str, summarised: Callable[[], Summarised], *, turns: int = TURNS, **fields: Any
) -> Scenario:
    """A talk of so many turns, whose summaries are answered as `summarised` says."""
    fields.setdefault("settings", SWITCHED_ON)
    # nanobot's own consolidation is out of the way, where it goes by the number of messages.
    fields.setdefault("memory_window", 1_000)
    play = fields.pop("play", partial(long_talk, turns=turns))
    return Scenario(name, play, lambda stage: model(stage, summarised()), **fields)


SHORT = {**SWITCHED_ON, "messageBufferLimit": 12, "messageBufferMin": 4}

TALKS = (
    talk("talk-plain", lambda: good, turns=60, settings={}),
    talk("talk-troubled", troubled),
    talk("talk-late", lambda: late),
    talk(
        "talk-thinking",
        lambda: good,
        turns=30,
        settings=SHORT,
        provider="responses",
        model="gpt-5",
    ),
    talk("talk-chinese", lambda: good, play=chinese_talk, settings=SHORT),
    talk(
        "talk-rolling",
        lambda: good,
        play=settled_talk,
        settings={**SWITCHED_ON, "summaryInterval": 10},
    ),
    talk(
        "talk-window",
        lambda: good,
        play=partial(settled_talk, words=ENGLISH + prose("manuals", 1_000)),
        settings=SWITCHED_ON,
        window=16_000,
        defaults={"maxTokens": 1_024},
    ),
    talk("talk-short", lambda: good, play=short_talk, settings=SHORT),
    talk("talk-both", lambda: good, play=short_talk, settings=SHORT, memory_window=20),
)
