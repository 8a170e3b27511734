"""Cases of our own: conversations in which one thing matters, for what recordings seldom have."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from statistics import fmean
from typing import Any

from evaluation import adapters
from evaluation.adapters import Message
from evaluation.page import Page, percent, share
from evaluation.recall import OURS
from evaluation.work import Job

WINDOW = "evaluation.adapters:protected_window"
STEPS = "evaluation.adapters:in_steps"
SEEDS = range(10)
BUDGETS = (0.12, 0.25, 0.5)
IN_STEPS = 0.25
ABLATED = 0.12


@dataclass
class Talk:
    """A conversation being written, and what matters in it.

    Attributes:
        needed: Exact texts that the next answer needs.
        outdated: What they replace: without them it misleads.
    """

    random: Random
    messages: list[Message] = field(default_factory=list)
    needed: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)

    def say(self, role: str, text: str) -> None:
        self.messages.append({"role": role, "content": text})

    def call(self, tool: str, arguments: Mapping[str, Any], result: str, said: str = "") -> None:
        identifier = f"call_{len(self.messages)}"
        function = {"name": tool, "arguments": json.dumps(arguments)}
        calls = [{"id": identifier, "type": "function", "function": function}]
        self.messages += [
            {"role": "assistant", "content": said or None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": identifier, "content": result},
        ]

    def look(self, number: int, said: str = "") -> None:
        """Add a look into a file or a log that nothing needs."""
        if self.random.random() < 0.5:
            self.call("read_file", {"path": f"src/part_{number}.py"}, self.code(), said)
        else:
            self.call("exec", {"command": f"logs worker-{number}"}, self.log(), said)

    # Texts that fill ---------------------------------------------------------------------------

    def word(self) -> str:
        return self.random.choice(WORDS)

    def code(self, functions: int = 8) -> str:
        return "\n\n".join(self.function(f"{self.word()}_{self.word()}") for _ in range(functions))

    def function(self, name: str) -> str:
        limit, factor = self.random.randrange(10, 99), self.random.randrange(100, 999)
        return (
            f"def {name}(self, {self.word()}, limit={limit}):\n"
            f"    {self.word()} = self.{self.word()}.load({self.word()!r}) * {factor}\n"
            f"    if {self.word()} > {limit}:\n"
            f"        raise ValueError({self.word()!r})\n"
            f"    return {self.word()}"
        )

    def log(self, lines: int = 30) -> str:
        def line() -> str:
            clock = f"{self.random.randrange(24):02}:{self.random.randrange(60):02}"
            took = self.random.randrange(2, 90)
            return f"2026-11-20T{clock} INFO {self.word()} {self.word()} took={took}ms"

        return "\n".join(line() for _ in range(lines))

    def prose(self, sentences: int) -> str:
        def sentence() -> str:
            shape = self.random.choice(SENTENCES)
            return shape.format(*(self.word() for _ in range(4)))

        return " ".join(sentence() for _ in range(sentences))

    def answer(self, *within: str) -> str:
        """Return an answer of four paragraphs with some texts among them."""
        before, behind = ([self.prose(4) for _ in range(2)] for _ in range(2))
        return "\n\n".join([*before, *within, *behind])


WORDS = (
    "retry",
    "cursor",
    "payload",
    "shard",
    "lease",
    "broker",
    "ingest",
    "worker",
    "batch",
    "quota",
    "bucket",
    "token",
    "epoch",
    "vector",
    "stream",
    "policy",
    "mirror",
    "replica",
    "gateway",
    "index",
)
SENTENCES = (
    "The {} of a {} is as old as its {}, which few people know.",
    "In most places a {} comes before the {}, and the {} is left to the {}.",
    "What the {} needs is a {} that does not depend on the {}.",
    "Some say that a {} with a good {} needs no {} at all.",
    "Think of the {} as a {}: it holds the {} together.",
)
ODD_LINES = (
    ("ok {2} - {0} keeps its {1}", "not ok {2} - {0} loses its {1} on restart"),
    ("\tmodified:   src/{0}/{1}_{2}.ts", "\tboth modified:   src/{0}/{1}_{2}.ts"),
    ("{0}_{1}[{2}]: Refreshing state...", "  # {0}_{1}[{2}] will be destroyed"),
    ("-rw-r--r-- 1 app app {2} {0}-{1}.json", "-rw-r--r-- 1 root root {2} {0}-{1}.json"),
)
SHORT = ("And then?", "Why?", "I see.", "What else?", "Tell me more.")


# Families of cases --------------------------------------------------------------------------------


def odd_result(talk: Talk) -> None:
    """One of many short results of a tool says something else."""
    talk.say("user", "Check all hosts of the fleet, then report.")
    odd = talk.random.randrange(20, 150)
    for host in range(180):
        latency = talk.random.randrange(2, 30)
        result = f"host-{host}: up, {latency} ms"
        if host == odd:
            result = f"host-{host}: certificate belongs to vault-{latency + 300}"
            talk.needed.append(result)
        talk.call("probe", {"host": f"host-{host}"}, result)


def odd_lines(talk: Talk) -> None:
    """Three of the many lines of each result are of another kind."""
    talk.say("user", "Run all checks, then tell me what is wrong.")
    for check in range(8):
        usual, odd = ODD_LINES[check % len(ODD_LINES)]
        numbers = talk.random.sample(range(1_000, 9_999), 203)
        lines = [usual.format(talk.word(), talk.word(), number) for number in numbers[3:]]
        for number in numbers[:3]:
            line = odd.format(talk.word(), talk.word(), number)
            lines.insert(talk.random.randrange(10, 190), line)
            talk.needed.append(line.strip())
        talk.call("exec", {"command": f"make check-{check}"}, "\n".join(lines))


def newest_version(talk: Talk) -> None:
    """The model writes a function, and again, as the user asks for changes."""
    name = f"price_{talk.word()}"
    versions = [f"```python\n{talk.function(name)}\n```" for _ in range(3)]
    for turn in range(36):
        if turn % 9 == 4 and turn < 30:
            talk.say("user", f"Change {name}, please: another factor.")
            talk.say("assistant", talk.answer(versions[turn // 9 % 3]))
        else:
            talk.say("user", talk.random.choice(SHORT))
            talk.say("assistant", talk.answer())
    talk.say("user", f"Add a test for {name}.")
    *talk.outdated, newest = (version.split("\n")[2].strip() for version in versions)
    talk.needed.append(newest)


def conclusions(talk: Talk) -> None:
    """What the model finds out beside calls, one in three."""
    talk.say("user", "Find out why orders are slow and fix it.")
    for number in range(90):
        found = ""
        if number % 3 == 0:
            found = f"The {talk.word()} of node-{number} drops packets since kernel {number}.4."
            talk.needed.append(found)
        talk.look(number, found)


def decisions(talk: Talk) -> None:
    """What the model promises, decides and leaves open inside long answers."""
    said = (
        "I promise to check the tide tables for you next time.",
        "So the decision is: oak floor, laid diagonally.",
        "Open question: who pays for the shuttle bus?",
        "I was wrong earlier: the answer is 42, not 36.",
        "We agreed that the budget stays below 4,200 euros.",
    )
    for turn in range(30):
        within = said[turn // 5 :][:1] if turn % 5 == 2 and turn < 25 else ()
        talk.say("user", talk.random.choice(SHORT))
        talk.say("assistant", talk.answer(*(f"{one} {talk.prose(2)}" for one in within)))
    talk.say("user", "Go on.")
    talk.needed += said


def newest_value(talk: Talk) -> None:
    """The model states a number, and corrects it much later."""
    talk.say("user", "Count the orphaned rows and report.")
    old, new = talk.random.randrange(1_000, 9_999), talk.random.randrange(10_000, 99_999)
    for number in range(90):
        said = {10: f"There are {old} orphaned rows.", 40: f"Corrected: {new} orphaned rows."}
        talk.look(number, said.get(number, ""))
    talk.needed.append(str(new))
    talk.outdated.append(str(old))


def asked_by_place(talk: Talk) -> None:
    """The user asks for what the model listed, by its place."""
    options = [f"{talk.word().title()} in {place}" for place in ("Graz", "Turin", "Bergen")]
    for turn in range(24):
        listed = "\n".join(f"{i}. {option}" for i, option in enumerate(options, 1))
        talk.say("user", talk.random.choice(SHORT))
        talk.say("assistant", talk.answer(*([listed] if turn == 8 else [])))
    talk.say("user", "Tell me more about the second option you gave me.")
    talk.needed.append(options[1])


def asked_by_name(talk: Talk) -> None:
    """The user asks for a function of a file that was read long ago, and that others call."""
    talk.say("user", "Review the code.")
    name = "settle_ledger"
    signature, *body = talk.function(name).split("\n")
    steps = (f"    {talk.word()}_{i} = self.load({talk.word()!r})" for i in range(15))
    wanted = "\n".join([signature, *steps, *body])
    for number in range(70):
        if number == 15:
            parts = [talk.code(6), wanted, talk.code(6)]
            talk.call("read_file", {"path": "src/books.py"}, "\n\n".join(parts))
        elif number in range(20, 50, 6):
            call = f"{talk.word()} = books.{name}({number})"
            talk.call("read_file", {"path": f"src/use_{number}.py"}, f"{talk.code(5)}\n\n{call}")
        else:
            talk.look(number)
    talk.say("assistant", "Done.")
    talk.say("user", f"What does {name} do?")
    talk.needed += [line.strip() for line in wanted.split("\n")]


def plan(talk: Talk) -> None:
    """The model keeps a list of what is done and what is open."""
    talk.say("user", "Move the service to the new cluster, step by step.")
    steps = [f"move {talk.word()} {letter}" for letter in "ABCDEFGH"]
    lists: list[str] = []
    for number in range(80):
        if number % 10 == 0 and number < 50:
            done = number // 10
            boxes = ("x" if i < done else " " for i in range(len(steps)))
            listed = (f"- [{box}] {step}" for box, step in zip(boxes, steps, strict=True))
            lists.append("\n".join(listed))
            talk.call("write_plan", {"text": lists[-1]}, "ok")
        talk.look(number)
    *_, before, newest = lists
    talk.needed.append(newest)
    talk.outdated.append(before)


def edited_file(talk: Talk) -> None:
    """A function is read, changed, and asked for long after."""
    talk.say("user", "Make the billing job faster.")
    name = f"bill_{talk.word()}"
    old = talk.function(name)
    line = old.split("\n")[1].strip()
    new = line.partition("*")[0] + "* 7_700"
    for number in range(80):
        if number == 12:
            read = "\n\n".join([talk.code(5), old, talk.code(5)])
            talk.call("read_file", {"path": "src/billing.py"}, read)
        if number == 16:
            edit = {"path": "src/billing.py", "old_text": line, "new_text": new}
            talk.call("edit_file", edit, "Successfully edited src/billing.py")
        talk.look(number)
    talk.say("assistant", "Done.")
    talk.say("user", f"What is the factor in {name} now?")
    talk.needed.append(new)
    talk.outdated.append(line)


def changed_page(talk: Talk) -> None:
    """A page is read twice, and the user asks what has changed."""
    talk.say("user", "Watch the board of ferries.")
    board = {
        f"{talk.word()} {number}": f"{talk.random.randrange(24):02}:{talk.random.randrange(60):02}"
        for number in range(60)
    }
    changed = talk.random.choice(list(board))
    for number in range(80):
        if number in (16, 40):
            if number == 40:
                talk.needed.append(f"{changed} leaves {board[changed]}")
                board[changed] = "in the evening"
            shown = "\n".join(f"{ferry} leaves {time}" for ferry, time in board.items())
            talk.call("fetch", {"url": "https://ferries.example/board"}, shown)
        talk.look(number)
    talk.needed.append(f"{changed} leaves {board[changed]}")
    talk.say("assistant", "Done.")
    talk.say("user", "What has changed on the board?")


def failed_call(talk: Talk) -> None:
    """A command fails, and nothing is done about it for long."""
    talk.say("user", "Prepare the release: tests, docs, changelog.")
    test = f"test_{talk.word()}_{talk.word()}"
    for number in range(80):
        if number == 20:
            shown = f"{talk.log(20)}\nFAILED tests/test_{talk.word()}.py::{test} - assert 41 == 42"
            talk.call("exec", {"command": "pytest -q"}, f"{shown}\n1 failed, 230 passed")
        talk.look(number)
    talk.needed += [test, "assert 41 == 42"]


def corrected_by_user(talk: Talk) -> None:
    """Beside work with tools the user states a fact, and corrects it later."""
    old, new = (
        f"{talk.random.randrange(100, 400)} euros",
        f"{talk.random.randrange(500, 900)} euros",
    )
    for turn in range(60):
        said = {6: f"Our budget for the roof is {old}.", 21: f"Make that {new}, not {old}."}
        talk.say("user", said.get(turn, f"Look at part {turn}, please."))
        if turn not in said:
            talk.look(turn)
        talk.say("assistant", "Noted." if turn in said else "Nothing unusual there.")
    talk.say("user", "Go on.")
    talk.needed.append(f"Make that {new}")
    talk.outdated.append(f"roof is {old}")


FAMILIES: dict[str, Callable[[Talk], None]] = {
    "odd result": odd_result,
    "odd lines": odd_lines,
    "newest version": newest_version,
    "conclusions": conclusions,
    "decisions": decisions,
    "newest value": newest_value,
    "asked by place": asked_by_place,
    "asked by name": asked_by_name,
    "plan": plan,
    "edited file": edited_file,
    "changed page": changed_page,
    "failed call": failed_call,
    "corrected by the user": corrected_by_user,
}


# Measuring ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """Of one family at one budget: the share of what is needed, and of cases that mislead."""

    kept: float
    misleads: float


def talks(family: str) -> Iterator[Talk]:
    for seed in SEEDS:
        talk = Talk(Random(f"{family}-{seed}"))
        talk.say("system", "You are a helpful assistant.")
        FAMILIES[family](talk)
        yield talk


def measure(spec: str, family: str) -> dict[float, Found]:
    """Return what a compressor finds at each budget."""
    compress = getattr(adapters, spec.rpartition(":")[2])
    found: dict[float, list[tuple[float, bool]]] = {budget: [] for budget in BUDGETS}
    for talk in talks(family):
        for budget, of_budget in found.items():
            room = int(adapters.count(talk.messages) * budget)
            text = text_of(compress(talk.messages, room), talk.messages[-1])
            kept = fmean(needed in text for needed in talk.needed)
            of_budget.append((kept, kept < 1 and any(old in text for old in talk.outdated)))
    return {
        budget: Found(fmean(kept for kept, _ in of), fmean(misleads for _, misleads in of))
        for budget, of in found.items()
    }


def text_of(messages: list[Message], last: Message) -> str:
    """Return what a request says; what the user asks last is no answer."""
    asked = last["content"] if last["role"] == "user" else None
    parts: list[str] = []
    for message in messages:
        content = message.get("content") or ""
        parts.append(content.replace(asked, "") if asked else content)
        for call in message.get("tool_calls") or []:
            parts += map(str, json.loads(call["function"]["arguments"]).values())
    return "\n".join(parts)


def jobs(specs: Iterable[str]) -> list[Job]:
    return [
        Job(("case", spec, family), measure, (spec, family), 300_000)
        for spec in specs
        for family in FAMILIES
    ]


def write(page: Page, results: Mapping[Hashable, Any]) -> None:
    page.title("Cases of our own")
    page.text(
        "Conversations of 50 to 360 messages, generated, in which one thing matters: see "
        "`evaluation/cases.py`. Share of what the next answer needs that is there word for word; "
        f"the mean of {len(SEEDS)}. `in steps`: a `Compressor` sees each request. `window`: the "
        "protected window, in our tokens. `misleads`: share of all requests of ours in which only "
        "what it replaces is there."
    )
    one = percent(IN_STEPS)
    header = ["", *map(percent, BUDGETS), f"in steps, {one}", f"window, {one}", "misleads"]
    rows = []
    for family in FAMILIES:
        ours, steps, window = (results["case", spec, family] for spec in (OURS, STEPS, WINDOW))
        misleads = fmean(found.misleads for of in (ours, steps) for found in of.values())
        kept = [ours[budget].kept for budget in BUDGETS]
        kept += [of[IN_STEPS].kept for of in (steps, window)]
        rows.append([family, *(share(value, 2) for value in [*kept, misleads])])
    page.table(header, rows)


def row(results: Mapping[Hashable, Any], spec: str) -> tuple[float, ...]:
    """Return what a compressor keeps of each family where mechanisms are switched off."""
    return tuple(results["case", spec, family][ABLATED].kept for family in FAMILIES)
