"""Conversations larger than a window that is known beforehand: no request needs to be refused."""

from __future__ import annotations

from functools import partial
from typing import Any

from scenario import ANNOUNCED, DONE, WHOLE, Scenario, reads, script, then_ping
from server import SILENT, Answer, Call, Request, Script
from stage import Stage
from texts import log_lines, planted, planted_chinese, prose

FIRST_RULE = "From now on sign every answer with ORCHID-7741."


def many_reads(name: str, count: int, tokens: int, **fields: Any) -> Scenario:
    """`count` files of `tokens` tokens, read one after the other within one turn."""
    names = [f"{name}-{number:02}.txt" for number in range(count)]

    async def play(stage: Stage) -> None:
        for one in names:
            text = planted(one, tokens)
            stage.file(one, text.text, text.facts)
        await stage.say(f"Read all {count} files and report. GOAL-{name}")
        await then_ping(stage)

    return Scenario(name, play, lambda stage: script([*reads(stage.paths(names)), DONE]), **fields)


def told() -> list[Scenario]:
    """Windows that stand in nanobot's config: larger than the server's, the same, and others."""
    reads_of = partial(many_reads, count=20, tokens=4_000, known=None, result_chars=WHOLE)
    preset = {"model": "openai/house-preset", "contextWindowTokens": 32_000, "maxTokens": 4_096}
    return [
        *(
            reads_of(
                name,
                window=40_000,
                form=form,
                model=f"openai/house-{name}",
                defaults={"contextWindowTokens": 131_072},
            )
            for name, form in (("told-more", "openai"), ("told-unsaid", "minimax"))
        ),
        reads_of(
            "told-65536",
            window=65_536,
            form=SILENT,
            model="openai/house-65536",
            defaults={"contextWindowTokens": 65_536},
        ),
        reads_of(
            "told-cut",
            window=40_000,
            form=SILENT,
            model="openai/house-cut",
            defaults={"contextWindowTokens": 131_072},
        ),
        reads_of(
            "counts-less",
            window=32_000,
            factor=0.75,
            model="openai/house-less",
            defaults={"contextWindowTokens": 32_000},
        ),
        reads_of(
            "frames-more",
            window=32_000,
            framing=13,
            model="openai/house-frames",
            defaults={"contextWindowTokens": 32_000},
        ),
        reads_of(
            "told-preset",
            window=32_000,
            model="openai/house-preset",
            defaults={"modelPreset": "small", "contextWindowTokens": 200_000},
            presets={"small": preset, "large": {**preset, "contextWindowTokens": 200_000}},
        ),
        reads_of("told-code", window=40_000, model="openai/gpt-4.1", in_code=40_000),
        reads_of("told-block", window=128_000, defaults={"contextBlockLimit": 15_000}),
    ]


def long_chat(name: str, turns: int, tokens: int, **fields: Any) -> Scenario:
    """`turns` turns of `tokens` tokens from each side; a rule stands in the first."""

    async def play(stage: Stage) -> None:
        await stage.say(f"{FIRST_RULE}\n{prose(f'{name}-first', tokens)}")
        for number in range(1, turns):
            await stage.say(f"Turn {number}.\n{prose(f'{name}-user-{number}', tokens)}")
        await then_ping(stage)

    def model(stage: Stage) -> Script:
        return script(
            [f"Answer {n}. {DONE}\n{prose(f'{name}-model-{n}', tokens)}" for n in range(turns)]
        )

    return Scenario(name, play, model, **fields)


def subagent() -> Scenario:
    """A subagent reads 13 files; its report comes back as a system message."""
    names = [f"sub-{number:02}.txt" for number in range(13)]

    async def play(stage: Stage) -> None:
        for one in names:
            text = planted(one, 6_000)
            stage.file(one, text.text, text.facts)
        await stage.delegate("Have a subagent read the 13 files. GOAL-C")
        await then_ping(stage)

    def asked(request: Request) -> Answer:
        return report(request) if ANNOUNCED in request.text else "I have asked a subagent. DONE"

    def report(request: Request) -> Answer:
        return DONE if "SUB-REPORT" in request.text else "The subagent has FAILED."

    def model(stage: Stage) -> Script:
        spawn = [Call("spawn", {"task": "Read the 13 files. GOAL-SUB", "label": "reader"})]
        return script(
            [spawn, asked, report],
            [*reads(stage.paths(names)), "SUB-REPORT: all 13 files are read."],
        )

    return Scenario("C", play, model)


def announcement() -> Scenario:
    """A subagent reports 8,000 tokens to a session that already holds 58,000."""

    async def play(stage: Stage) -> None:
        stage.remember([prose(f"past-{number}", 1_450) for number in range(40)])
        # Text that spells a special token: nanobot 0.1.4.post5 cannot count it and gives up.
        news = f"<|endoftext|>\n{prose('news', 8_000)}"
        await stage.announce(f"[Subagent 'reader' completed successfully]\n{news}")
        await then_ping(stage)

    return Scenario("D", play, lambda _: script([DONE]))


def one_huge_result() -> Scenario:
    """One tool result of 300,000 characters, as an MCP tool may return it."""

    async def play(stage: Stage) -> None:
        head, tail = "dump head code 4be1a7c2", "dump tail code 90d3f5b6"
        stage.facts.extend((head, tail))
        middle = log_lines("dump", 300_000 - len(head) - len(tail) - 2)
        stage.loop.tools.register(dump_tool(f"{head}\n{middle}\n{tail}"))
        await stage.say("Show me the dump. GOAL-E2")
        await then_ping(stage)

    return Scenario("E2", play, lambda _: script([[Call("dump", {"what": "all"})], DONE]))


def dump_tool(text: str) -> Any:
    """Return a tool that always returns `text`."""
    from nanobot.agent.tools.base import Tool  # type: ignore[import-not-found]

    class Dump(Tool):  # type: ignore[misc]
        name = "dump"
        description = "Return a dump of the system."
        parameters = {  # noqa: RUF012
            "type": "object",
            "properties": {"what": {"type": "string", "description": "What to dump"}},
            "required": ["what"],
        }

        async def execute(self, **_: Any) -> str:
            return text

    return Dump()


def chinese_reads() -> Scenario:
    """Ten Chinese files of 6,000 characters, asked for in Chinese."""
    names = [f"wen-{number:02}.txt" for number in range(10)]

    async def play(stage: Stage) -> None:
        for one in names:
            text = planted_chinese(one, 6_000)
            stage.file(one, text.text, text.facts)
        await stage.say("请阅读全部十个文件，然后写一份报告。GOAL-F")
        await then_ping(stage)

    return Scenario("F", play, lambda stage: script([*reads(stage.paths(names)), DONE]))


def parallel_reads() -> Scenario:
    """Eight files of 9,000 tokens read by one message with eight calls."""
    names = [f"par-{number}.txt" for number in range(8)]

    async def play(stage: Stage) -> None:
        for one in names:
            text = planted(one, 9_000)
            stage.file(one, text.text, text.facts)
        await stage.say("Read the eight files at once. GOAL-G")
        await then_ping(stage)

    def model(stage: Stage) -> Script:
        calls = [Call("read_file", {"path": str(path)}) for path in stage.paths(names)]
        return script([calls, DONE])

    return Scenario("G", play, model)


def consolidation() -> Scenario:
    """A past so long that nanobot's own consolidation request does not fit."""

    async def play(stage: Stage) -> None:
        stage.remember([prose(f"long-{number}", 4_000) for number in range(30)])
        await stage.say("What did we talk about?")
        await stage.idle()
        await then_ping(stage)
        await stage.idle()

    return Scenario("memory", play, lambda _: script([DONE]), memory_window=20)


def idle_session() -> Scenario:
    """A past so long that the request by which nanobot compacts an idle session does not fit."""

    async def play(stage: Stage) -> None:
        await stage.say("Hello there.")
        stage.remember([prose(f"idle-{number}", 4_000) for number in range(30)])
        await stage.compact_idle()
        await stage.say("What did we talk about?")
        await then_ping(stage)

    return Scenario("idle", play, lambda _: script(["Hello.", DONE]))
