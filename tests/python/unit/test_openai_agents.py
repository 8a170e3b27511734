"""Sessions of OpenAI's Agents SDK, and its items made to fit. With the SDK: tests/examples."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Awaitable, Callable, Iterable
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanobot_context import (
    Archive,
    ContextOverflowError,
    InvalidArgumentError,
    SessionService,
    StoreClosedError,
    count_tokens,
)
from nanobot_context.openai_agents import OpenAIAgentsSession, compress_items
from nanobot_context.responses import from_response_items
from nanobot_context.sessions import AsyncSessionService
from nanobot_context.summary import Summarizer, SummaryPolicy, SummaryRequest

if TYPE_CHECKING:
    from pathlib import Path

    from session_cases import Store

pytest_plugins = ("session_fixtures",)
pytestmark = pytest.mark.timeout(120)

Item = dict[str, Any]
MODEL = "gpt-4o"
ENCRYPTED = "gAAAAABo" * 400
"""Of about 600 tokens."""


def user(text: str) -> Item:
    return {"role": "user", "content": text}


def answer(text: str, id_: str = "msg_1") -> Item:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {
        "id": id_,
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def thought(id_: str) -> Item:
    return {"id": id_, "type": "reasoning", "summary": [], "encrypted_content": ENCRYPTED}


def call(id_: str, **arguments: Any) -> Item:
    return {
        "id": f"fc_{id_}",
        "type": "function_call",
        "call_id": id_,
        "name": "read_log",
        "arguments": json.dumps(arguments),
        "status": "completed",
    }


def result(id_: str, output: Any) -> Item:
    return {"type": "function_call_output", "call_id": id_, "output": output}


def log(day: int, lines: int = 100) -> str:
    return "\n".join(
        f"day {day} line {at}: node-{at % 9} answered in {at} ms" for at in range(lines)
    )


def round_of(day: int) -> list[Item]:
    """A question, a thought, a call, its long result, a thought and the answer."""
    return [
        user(f"What failed on day {day}?"),
        thought(f"rs_{day}_0"),
        call(f"call_{day}", day=day),
        result(f"call_{day}", log(day)),
        thought(f"rs_{day}_1"),
        answer(f"Nothing failed on day {day}.", f"msg_{day}"),
    ]


def rounds(count: int) -> list[Item]:
    return [item for day in range(count) for item in round_of(day)]


WEB_SEARCH = {
    "id": "ws_1",
    "type": "web_search_call",
    "status": "completed",
    "action": {"type": "search", "query": "disk full", "sources": None},
}
ODD: list[Item] = [
    {"role": "user", "content": ""},
    {"role": "user", "content": None},
    {"role": "user", "content": []},
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AA"}]},
    {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
    answer(""),
    thought("rs_odd"),
    call("call_odd", note="\ud800 half"),
    result(
        "call_odd", [{"type": "input_text", "text": "one"}, {"type": "input_text", "text": "two"}]
    ),
    {"type": "custom_tool_call", "call_id": "c", "name": "sh", "input": "ls", "id": None},
    {"type": "custom_tool_call_output", "call_id": "c", "output": "a\nb"},
    WEB_SEARCH,
    {"type": "item_reference", "id": "msg_9"},
    {"type": "compaction", "encrypted_content": ENCRYPTED},
    result("call_none", ""),
]


def unpaired(items: Iterable[Item]) -> list[str]:
    """Return the calls and the results that stand alone."""
    waiting: list[str] = []
    alone = []
    for item in items:
        if item.get("type") == "function_call":
            waiting.append(item["call_id"])
        elif item.get("type") == "function_call_output":
            if item["call_id"] in waiting:
                waiting.remove(item["call_id"])
            else:
                alone.append(item["call_id"])
    return alone + waiting


def lone_thoughts(items: list[Item]) -> list[str]:
    """Return the thoughts behind which nothing of the model's follows."""
    behind = [*items[1:], user("")]
    return [
        item["id"]
        for item, after in zip(items, behind, strict=True)
        if item.get("type") == "reasoning"
        and after.get("type") not in ("function_call", "reasoning")
        and after.get("role") != "assistant"
    ]


def with_session(
    url: str | AsyncSessionService,
    test: Callable[[OpenAIAgentsSession], Awaitable[None]],
    **options: Any,
) -> None:
    async def run() -> None:
        async with OpenAIAgentsSession(url, "s", **options) as session:
            await test(session)

    asyncio.run(run())


# The session -------------------------------------------------------------------------------------


def test_every_item_comes_back_as_it_was_added(plain_store: Store) -> None:
    async def test(session: OpenAIAgentsSession) -> None:
        assert await session.get_items() == []
        given = [*ODD, *rounds(2)]
        await session.add_items(given)
        found = await session.get_items()
        assert found == given
        assert [list(item) for item in found] == [list(item) for item in given]
        assert await session.get_items(limit=0) == []

    with_session(plain_store.url, test)


def test_two_sessions_of_one_store_are_apart(tmp_path: Path) -> None:
    async def run() -> None:
        url = f"sqlite:///{tmp_path}/agents.db"
        async with OpenAIAgentsSession(url, "a") as one, OpenAIAgentsSession(url, "b") as other:
            await one.add_items([user("to a")])
            await other.add_items([user("to b")])
            assert await one.get_items() == [user("to a")]
            await one.clear_session()
            assert await one.get_items() == []
            assert await other.get_items() == [user("to b")]
            await one.add_items([user("again")])
            assert await one.get_items() == [user("again")]

    asyncio.run(run())


def test_a_session_that_another_process_cleared_goes_on(plain_store: Store) -> None:
    async def run() -> None:
        async with AsyncSessionService(plain_store.url) as service:
            mine, other = (OpenAIAgentsSession(service, "s") for _ in range(2))
            await mine.add_items([user("1")])
            await other.clear_session()
            await mine.add_items([user("2")])
            await other.clear_session()
            await other.add_items([user("3")])
            await mine.add_items([user("4")])
            assert await other.get_items() == [user("3"), user("4")]

    asyncio.run(run())


def test_the_newest_item_is_popped_and_the_next_one_takes_its_place(plain_store: Store) -> None:
    async def test(session: OpenAIAgentsSession) -> None:
        assert await session.pop_item() is None
        await session.add_items(rounds(1))
        popped = [await session.pop_item() for _ in range(2)]
        assert popped == rounds(1)[:-3:-1]
        await session.add_items([answer("Another one.")])
        assert await session.get_items() == [*rounds(1)[:-2], answer("Another one.")]

    with_session(plain_store.url, test)


def test_tasks_that_pop_at_once_get_each_item_once(plain_store: Store) -> None:
    async def test(session: OpenAIAgentsSession) -> None:
        await session.add_items([user(str(at)) for at in range(20)])
        popped = await asyncio.gather(*(session.pop_item() for _ in range(25)))
        assert sorted(int(item["content"]) for item in popped if item) == list(range(20))
        assert popped.count(None) == 5
        assert await session.get_items() == []

    with_session(plain_store.url, test)


def test_tasks_that_add_at_once_keep_what_each_adds_together(plain_store: Store) -> None:
    async def test(session: OpenAIAgentsSession) -> None:
        await asyncio.gather(*(session.add_items(round_of(day)) for day in range(10)))
        items = await session.get_items()
        assert len(items) == 60
        for start in range(0, 60, 6):
            [day] = {day for day in range(10) if items[start] == round_of(day)[0]}
            assert items[start : start + 6] == round_of(day)

    with_session(plain_store.url, test)


def test_the_limit_of_the_settings_is_that_of_the_session() -> None:
    async def test(session: OpenAIAgentsSession) -> None:
        await session.add_items(rounds(3))
        session.session_settings = SimpleNamespace(limit=2)
        assert await session.get_items() == rounds(3)[-2:]
        assert await session.get_items(limit=4) == rounds(3)[-4:]
        session.session_settings = SimpleNamespace(limit=None)
        assert await session.get_items() == rounds(3)

    with_session("memory:", test)


def test_a_session_that_is_closed_does_nothing_more() -> None:
    async def test() -> None:
        async with AsyncSessionService() as service:
            session = OpenAIAgentsSession(service, "s")
            await session.add_items(rounds(1))
            await session.close()
            for work in (
                lambda: session.get_items(),
                lambda: session.add_items([]),
                lambda: session.pop_item(),
                lambda: session.clear_session(),
            ):
                with pytest.raises(StoreClosedError):
                    await work()
            assert await OpenAIAgentsSession(service, "s").get_items() == rounds(1)

    asyncio.run(test())


def test_the_newest_items_are_those_that_were_added_last() -> None:
    async def test(session: OpenAIAgentsSession) -> None:
        await session.add_items(rounds(3))
        for limit in range(1, 20):
            assert await session.get_items(limit) == rounds(3)[-limit:]
        assert await session.get_items(limit=3) == rounds(3)[-3:], "a result without its call"

    with_session("memory:", test)


def test_items_within_a_budget_keep_their_pairs(plain_store: Store) -> None:
    async def test(session: OpenAIAgentsSession) -> None:
        await session.add_items(rounds(12))
        items = await session.get_items()
        assert count_tokens(from_response_items(items), MODEL) <= 6_000
        assert unpaired(items) == [] == lone_thoughts(items)
        assert items[-1] == rounds(12)[-1], "the newest stay"
        assert result("call_11", log(11)) in items
        assert result("call_0", log(0)) not in items
        assert await session.get_items() == items
        newest = await session.get_items(limit=15)
        assert unpaired(newest) == [], "a budget keeps pairs, with a limit, too"

    with_session(plain_store.url, test, max_tokens=6_000, model=MODEL)


def test_what_is_within_the_budget_comes_back_as_it_is() -> None:
    given = [
        *(user("a" * 40_000), call("c"), result("c", log(1, 300)), answer("b" * 40_000)),
        *(user("Again."), call("waits for an approval")),
    ]

    async def test(session: OpenAIAgentsSession) -> None:
        await session.add_items(given)
        assert await session.get_items() == given

    tokens = count_tokens(from_response_items([*given, user("")]), MODEL)
    with_session("memory:", test, max_tokens=tokens, model=MODEL)


def test_a_call_that_waits_gets_no_result_that_nobody_gave() -> None:
    async def test(session: OpenAIAgentsSession) -> None:
        await session.add_items([*rounds(8), user("Delete it."), call("waits")])
        items = await session.get_items()
        assert items[-1] == call("waits")
        assert unpaired(items) == ["waits"]
        assert len(json.dumps(items)) < len(json.dumps(rounds(8))) / 2

    with_session("memory:", test, max_tokens=4_000, model=MODEL)


def test_a_paste_that_is_larger_than_the_budget_does_not_end_the_session() -> None:
    async def test(session: OpenAIAgentsSession) -> None:
        await session.add_items([user(log(1, 2_000)), answer("Long.")])
        items = await session.get_items()
        assert 0 < count_tokens(from_response_items(items), MODEL) <= 2_000
        await session.add_items([{"role": "system", "content": log(2, 2_000)}])
        with pytest.raises(ContextOverflowError):
            await session.get_items()

    with_session("memory:", test, max_tokens=2_000, model=MODEL)


def test_most_requests_of_a_growing_session_begin_as_the_one_before() -> None:
    """So that the provider's prompt cache is of use."""

    async def test(session: OpenAIAgentsSession) -> None:
        before: list[Item] = []
        kept = 0
        for day in range(40):
            await session.add_items(round_of(day))
            items = await session.get_items()
            kept += items[: len(before)] == before
            before = items
        assert kept >= 20

    with_session("memory:", test, max_tokens=12_000, model=MODEL)


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "9"])
def test_a_budget_that_is_no_positive_integer_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="max_tokens"):
        OpenAIAgentsSession("memory:", "s", max_tokens=wrong)


def test_a_service_that_was_handed_in_stays_open() -> None:
    async def run() -> None:
        async with AsyncSessionService() as service:
            async with OpenAIAgentsSession(service, "s", app="a", user="u") as session:
                await session.add_items([user("1")])
            stored = await service.get("a", "u", "s")
            assert stored is not None
            assert stored.messages[0]["content"] == "1"

    asyncio.run(run())


def test_more_items_than_a_service_keeps_events_by_default_are_kept() -> None:
    async def test(session: OpenAIAgentsSession) -> None:
        given = [user(str(at)) for at in range(2_500)]
        await session.add_items(given)
        assert await session.get_items() == given

    with_session("memory:", test)


def test_an_item_that_is_no_json_is_refused_and_nothing_is_stored() -> None:
    async def test(session: OpenAIAgentsSession) -> None:
        with pytest.raises(InvalidArgumentError):
            await session.add_items([user("1"), {"role": "user", "content": object()}])
        assert await session.get_items() == []

    with_session("memory:", test)


# What the service makes of it --------------------------------------------------------------------


def test_the_service_shows_a_session_as_chat_messages(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/agents.db"

    async def test(session: OpenAIAgentsSession) -> None:
        await session.add_items(rounds(1))

    with_session(url, test)
    with SessionService(url) as service:
        stored = service.get("openai-agents", "user", "s")
        assert stored is not None
        shown = [{k: v for k, v in message.items() if k != "item"} for message in stored.messages]
    assert shown == from_response_items(rounds(1))


def test_long_texts_are_stored_once(tmp_path: Path) -> None:
    path = tmp_path / "agents.db"

    async def test(session: OpenAIAgentsSession) -> None:
        await session.add_items([user("u" * 500_000), result("c", "r" * 500_000)])

    with_session(f"sqlite:///{path}", test)
    assert 1_000_000 < path.stat().st_size < 1_900_000


def test_a_summary_stands_in_front_of_what_it_does_not_cover() -> None:
    async def summarise(request: SummaryRequest) -> str:
        return "Days 0 to 7 were calm."

    async def run() -> None:
        summarizer = Summarizer(summarise)
        policy = SummaryPolicy(keep_last=9)
        async with AsyncSessionService(
            summarizer=summarizer, policy=policy, auto_summary=False
        ) as service:
            session = OpenAIAgentsSession(service, "s")
            await session.add_items(rounds(10))
            [head] = await service.list_sessions("openai-agents", "user")
            made = await service.summarize(head, force=True)
            assert made is not None
            await session.add_items(round_of(10))
            first, *others = await session.get_items()
            assert first["role"] == "system"
            assert "Days 0 to 7 were calm." in first["content"][0]["text"]
            assert others == round_of(10)
            assert await session.get_items(limit=7) == [*rounds(10)[-1:], *round_of(10)]
            for item in reversed(round_of(10)):
                assert await session.pop_item() == item
            assert await session.pop_item() == rounds(10)[-1]
            assert await session.get_items() == rounds(10)[:-1], "the summary went with it"

    asyncio.run(run())


# Items -------------------------------------------------------------------------------------------


def test_what_fits_comes_back_as_the_same_objects() -> None:
    items = [*rounds(3), WEB_SEARCH, answer("Found."), user("Thanks.")]
    before = copy.deepcopy(items)
    shown = compress_items(items, 200_000, MODEL)
    assert all(one is other for one, other in zip(shown, items, strict=True))
    assert items == before


def test_a_long_result_is_shortened_and_the_rest_of_its_item_stays() -> None:
    items = [user("Go."), call("c", day=1), {**result("c", log(1, 3_000)), "id": "fco_1"}]
    shown = compress_items([*items, user("And?")], 10_000, MODEL)
    assert shown[:2] == items[:2]
    assert {**shown[2], "output": ""} == {**items[2], "output": ""}
    assert len(shown[2]["output"]) < len(items[2]["output"]) / 2
    assert shown[2]["output"].startswith("day 1 line 0")


def test_of_an_answer_in_parts_the_parts_stay_parts() -> None:
    items = [user("Write."), answer(log(1, 3_000)), user("Thanks.")]
    [_, shown, _] = compress_items(items, 10_000, MODEL)
    assert shown["id"] == "msg_1"
    [part] = shown["content"]
    assert part["type"] == "output_text"
    assert len(part["text"]) < len(log(1, 3_000)) / 2


def test_instructions_and_tools_count() -> None:
    items = [*rounds(8), user("And now?")]
    tools = [{"type": "function", "function": {"name": "f", "description": "word " * 20_000}}]
    assert compress_items(items, 40_000, MODEL) == items
    told = compress_items(items, 40_000, MODEL, instructions="word " * 20_000)
    equipped = compress_items(items, 40_000, MODEL, tools=tools)
    for shown in (told, equipped):
        assert count_tokens(from_response_items(shown), MODEL) + 20_000 < 40_000 * 0.85
    assert all(item.get("role") != "system" for item in told)


def test_thoughts_of_older_rounds_go_first_and_take_the_ids_of_what_they_led_to() -> None:
    items = [*rounds(6), user("And now?")]
    shown = compress_items(items, 14_000, MODEL)
    led_to = [
        (before.get("type") == "reasoning", "id" in item)
        for before, item in pairwise(shown)
        if item.get("type") == "function_call" or item.get("role") == "assistant"
    ]
    assert (False, False) in led_to
    assert set(led_to) <= {(True, True), (False, False)}, "the provider would ask for the thought"


def test_an_original_is_kept_where_there_is_an_archive(tmp_path: Path) -> None:
    items = [user("Go."), call("c", day=1), result("c", log(1, 3_000)), user("And?")]
    shown = compress_items(items, 10_000, MODEL, archive=Archive(tmp_path / "results"))
    [file] = (path for path in (tmp_path / "results").rglob("*") if path.suffix == ".txt")
    assert file.read_text() == log(1, 3_000)
    assert file.name in shown[2]["output"]


def test_what_must_stay_and_is_too_large_is_an_overflow() -> None:
    with pytest.raises(ContextOverflowError) as caught:
        compress_items([user(log(1, 3_000))], 10_000, MODEL)
    assert caught.value.parts["last_user"] > 10_000


def test_a_call_of_a_custom_tool_that_has_no_result_gets_one_of_its_kind() -> None:
    custom = {"type": "custom_tool_call", "call_id": "c", "name": "sh", "input": "ls"}
    shown = compress_items([user("Go."), custom, user("Well?")], 100_000, MODEL)
    assert [item.get("type") for item in shown[1:3]] == [
        "custom_tool_call",
        "custom_tool_call_output",
    ]


def test_calls_and_results_that_stand_alone_are_repaired() -> None:
    items = [
        user("Go."),
        result("call_gone", "a"),
        call("call_1"),
        call("call_2"),
        result("call_2", "b"),
        result("call_2", "b again"),
        user("And?"),
        call("call_3"),
        answer("No."),
        result("call_3", "late"),
        user("Now?"),
    ]
    shown = compress_items(items, 100_000, MODEL)
    assert unpaired(shown) == []
    assert [item for item in shown if item in items and "role" in item] == [
        item for item in items if "role" in item
    ]
    assert {item["call_id"] for item in shown if "call_id" in item} == {
        "call_1",
        "call_2",
        "call_3",
    }
    assert result("call_2", "b") in shown


SCREENSHOT = {
    "type": "computer_call_output",
    "call_id": "cc",
    "output": {
        "type": "computer_screenshot",
        "image_url": "data:image/png;base64," + "A" * 900_000,
    },
}


def test_a_screenshot_counts_as_an_image_and_not_as_its_letters() -> None:
    items = [user("Look."), SCREENSHOT, answer("A window."), user("And?")]
    assert compress_items(items, 8_000, MODEL) == items


@st.composite
def conversations(draw: st.DrawFn) -> list[Item]:
    """Rounds of thoughts, parallel calls, results of any length, other items and answers.

    Left out are results without calls and calls without results: see the tests of repairs.
    """
    items: list[Item] = []
    for at in range(draw(st.integers(1, 8))):
        items.append(user(draw(st.sampled_from(["Go on.", log(at, 30), "以后都用中文。"]))))
        for step in range(draw(st.integers(0, 3))):
            if draw(st.booleans()):
                items.append(thought(f"rs_{at}_{step}"))
            ids = [f"call_{at}_{step}_{n}" for n in range(draw(st.integers(1, 3)))]
            items += [
                call(id_, path="a/b.py", text=draw(st.sampled_from(["", log(9, 40)])))
                for id_ in ids
            ]
            items += [result(id_, log(at, draw(st.integers(0, 150)))) for id_ in ids]
        if draw(st.booleans()):
            items.append({**WEB_SEARCH, "id": f"ws_{at}"})
        items.append(answer(draw(st.sampled_from(["Done.", log(at, 60)])), f"msg_{at}"))
    return [*items, user("And now?")]


@given(conversations(), st.integers(3_000, 20_000))
def test_compressed_items_fit_and_pair(items: list[Item], window: int) -> None:
    before = copy.deepcopy(items)
    shown = compress_items(items, window, MODEL)
    assert items == before
    assert count_tokens(from_response_items(shown), MODEL) <= window * 0.85
    assert unpaired(shown) == []
    assert lone_thoughts(shown) == []
    assert shown[-1] is items[-1]
    own = {id(item) for item in items}
    order = [id(item) for item in shown if id(item) in own]
    assert order == [id(item) for item in items if id(item) in set(order)], "nothing changes places"
    assert compress_items(shown, window, MODEL) == shown


def test_what_the_provider_has_compacted_is_never_cut() -> None:
    compacted = {"type": "compaction", "id": "cmp_1", "encrypted_content": "Zm9v" * 300}
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    talk = [
        item for n in range(40) for item in (user(f"What of {n}? " * 90), answer("Well. " * 90))
    ]
    items = [user("Go."), thought, compacted, answer("I go on."), *talk, user("And?")]
    shown = compress_items(items, 8_000, MODEL)
    assert len(shown) < len(items)
    assert compacted in shown
    assert compress_items(items[:4], 100_000, MODEL) == items[:4]
