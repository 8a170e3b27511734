"""Summaries of nanobot's sessions, on classes shaped like those around them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanobot_context import installer
from nanobot_context.events import SummarisedEvent, TelemetryEvent, subscribe
from nanobot_context.host import stored_summary
from nanobot_context.host.detect import NanobotClasses
from nanobot_context.settings import Settings
from nanobot_context.summary import Summary, summary_section
from nanobot_sessions import (
    KEY,
    AgentLoop,
    ContextBuilder,
    Provider,
    Session,
    SessionManager,
    TranscriptBuilder,
    TranscriptInput,
)
from shim_classes import LLMResponse, Message, error, make_classes

LIMIT, KEEP = 12, 4
SETTINGS = {
    "enable_history_summarization": True,
    "message_buffer_limit": LIMIT,
    "message_buffer_min": KEEP,
}
TOO_LONG = "This model's maximum context length is 300 tokens. However, you requested 900 tokens."


@pytest.fixture(params=[ContextBuilder, TranscriptBuilder], ids=["0.1.4", "0.3.5"])
def builder(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def nanobot(
    monkeypatch: pytest.MonkeyPatch,
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    builder: Any,
) -> Callable[..., AgentLoop]:
    """Install the shim on nanobot's classes and return how a loop is made."""
    place_classes(monkeypatch, builder)
    classes = replace(classes, session=Session)

    def make(provider: Provider, **settings: Any) -> AgentLoop:
        install(classes, **{**SETTINGS, **settings})
        return AgentLoop(provider, builder())

    return make


def place_classes(monkeypatch: pytest.MonkeyPatch, builder: type) -> None:
    for name in ("nanobot", "nanobot.agent", "nanobot.session"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    for name, attribute, cls in (
        ("nanobot.session.manager", "SessionManager", SessionManager),
        ("nanobot.agent.loop", "AgentLoop", AgentLoop),
        ("nanobot.agent.context", "ContextBuilder", builder),
    ):
        module = ModuleType(name)
        setattr(module, attribute, cls)
        monkeypatch.setitem(sys.modules, name, module)


def play(scene: Callable[[], Awaitable[Any]]) -> None:
    asyncio.run(scene())  # type: ignore[arg-type]


async def talk(loop: AgentLoop, first: int, last: int) -> None:
    """Say the numbers from `first` to `last`, and let what runs in the background begin."""
    for number in range(first, last + 1):
        await loop._process_message(f"number {number}")
        await asyncio.sleep(0)


async def settled() -> None:
    """Wait until the event loop has nothing to do but this."""
    while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(tasks)


async def asked(provider: Provider, count: int) -> None:
    """Wait until the provider was asked `count` times."""
    async with asyncio.timeout(30):
        while len(provider.asked) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


def shown(prompt: list[Message]) -> list[str]:
    """Return the user's numbers of a prompt, the current one aside."""
    said = [message["content"] for message in prompt if message["role"] == "user"]
    return [text.removeprefix("number ") for text in said[:-1]]


def numbers(first: int, last: int) -> list[str]:
    return [str(number) for number in range(first, last + 1)]


def test_a_summary_is_made_kept_and_shown_with_all_that_it_does_not_cover(
    nanobot: Callable[..., AgentLoop],
) -> None:
    loop = nanobot(Provider("The user counts."))

    async def scene() -> None:
        await talk(loop, 1, 7)
        await settled()
        metadata = loop.session.metadata
        assert metadata["summary"] == stored_summary.read(loop.session).text  # type: ignore[union-attr]
        assert metadata["summary"].startswith("The user counts.")
        assert metadata["summary_state"]["covers"] == 10
        assert "text" not in metadata["summary_state"]
        assert len(loop.session.messages) == 14
        loop.sessions.invalidate(KEY)
        prompt = await loop._process_message("number 8")
        assert prompt[0]["content"] == "You are nanobot." + summary_section(metadata["summary"])
        assert shown(prompt) == numbers(6, 7)

    play(scene)


def test_while_a_summary_is_made_the_one_before_and_everything_behind_it_are_shown(
    nanobot: Callable[..., AgentLoop],
) -> None:
    async def scene() -> None:
        late = asyncio.Event()
        loop = nanobot(Provider("The user counts.", late))
        await talk(loop, 1, 7)
        await settled()
        await talk(loop, 8, 30)
        await asked(loop.provider, 2)
        assert "counts, late" not in loop.prompts[-1][0]["content"]
        assert summary_section(loop.session.metadata["summary"]) in loop.prompts[-1][0]["content"]
        assert shown(loop.prompts[-1]) == numbers(6, 29)
        late.set()
        await settled()
        state = loop.session.metadata["summary_state"]
        assert state["version"] == 2
        prompt = await loop._process_message("number 31")
        assert "counts, late" in prompt[0]["content"]
        assert shown(prompt) == numbers(state["covers"] // 2 + 1, 30)

    play(scene)


def test_what_nanobot_consolidated_stays_out_and_options_keep_their_meaning(
    nanobot: Callable[..., AgentLoop],
) -> None:
    loop = nanobot(Provider())

    async def scene() -> None:
        await talk(loop, 1, 7)
        await settled()
        session = loop.session
        assert len(session.get_history()) == 4
        assert len(session.get_history(3)) == 3
        session.last_consolidated = 8
        assert len(session.get_history()) == 4
        session.last_consolidated = 12
        assert [message["content"] for message in session.get_history()][:1] == ["number 7"]
        assert session.last_consolidated == 12
        assert len(session.messages) == 14

    play(scene)


def test_history_within_tokens_is_taken_of_what_is_behind_the_summary(
    nanobot: Callable[..., AgentLoop],
) -> None:
    loop = nanobot(Provider())

    async def scene() -> None:
        await talk(loop, 1, 7)
        await settled()
        get_history: Any = loop.session.get_history
        assert get_history(max_tokens=10_000)[0]["content"] == "number 6"
        assert get_history(max_tokens=25)[0]["content"] == "number 7"

    play(scene)


def test_a_session_can_be_summarised_by_hand(nanobot: Callable[..., AgentLoop]) -> None:
    nanobot(Provider([]))
    session: Any = Session(KEY)
    assert (session.trim_if_needed(), session.summary) == (([], False), "")
    for number in range(LIMIT + 1):
        session.add("user" if number % 2 == 0 else "assistant", f"message {number}")
    evicted, did_trim = session.trim_if_needed()
    assert (did_trim, len(evicted), len(session.messages)) == (True, 8, LIMIT + 1)
    assert len(session.get_history()) == LIMIT + 1, "shown until the summary is there"
    assert not session.update_summary(" ")
    session.trim_if_needed()
    assert session.update_summary("They talked.")
    assert (session.summary, session.metadata["summary"]) == ("They talked.", "They talked.")
    assert len(session.get_history()) == LIMIT + 1 - 8
    assert not session.update_summary("Of nothing."), "it covers nothing"
    assert session.trim_if_needed(limit=3, min_keep=1) == (session.messages[8:12], True)
    installer.uninstall()
    assert not hasattr(Session, "trim_if_needed")


@pytest.fixture
def told() -> Iterator[list[SummarisedEvent]]:
    """The events of summaries, with content."""
    events: list[SummarisedEvent] = []

    def listen(event: TelemetryEvent) -> None:
        assert isinstance(event, SummarisedEvent)
        events.append(event)

    stop = subscribe(listen, include_content=True)
    yield events
    stop()


def counted() -> tuple[int, int]:
    """Return how many summaries were stored, and how many failed."""
    counters = installer.status().counters
    assert counters is not None
    return counters.summaries, counters.summaries_failed


@pytest.mark.parametrize(
    ("answer", "made_by", "failed", "reason"),
    [("The user counts.", "model", 0, None), (error("no such model"), "local", 1, "no such model")],
)
def test_a_summary_that_is_stored_is_told_with_who_made_it(
    nanobot: Callable[..., AgentLoop],
    told: list[SummarisedEvent],
    answer: Any,
    made_by: str,
    failed: int,
    reason: str | None,
) -> None:
    loop = nanobot(Provider(answer))

    async def scene() -> None:
        await talk(loop, 1, 7)
        await settled()

    play(scene)
    (event,) = told
    stored = stored_summary.read(loop.session)
    assert stored is not None
    assert (event.session, event.status, event.made_by) == (KEY, "stored", made_by)
    assert (event.version, event.covers, event.model) == (1, stored.covers, stored.model)
    assert event.content is not None
    assert event.content["text"] == stored.text
    assert (reason or "") in (event.content["error"] or "")
    assert bool(reason) == bool(event.content["error"])
    assert counted() == (1, failed)


def test_a_summary_that_comes_too_late_is_told_and_not_counted(
    nanobot: Callable[..., AgentLoop], told: list[SummarisedEvent]
) -> None:
    async def scene() -> None:
        late = asyncio.Event()
        loop = nanobot(Provider(late))
        await talk(loop, 1, 7)
        stored_summary.write(loop.session, Summary("The other.", 12))
        late.set()
        await settled()

    play(scene)
    assert [(event.status, event.made_by) for event in told] == [("outdated", "model")]
    assert counted() == (0, 0)


def test_a_summary_that_cannot_be_saved_is_told_as_failed(
    nanobot: Callable[..., AgentLoop], told: list[SummarisedEvent]
) -> None:
    loop = nanobot(Provider())

    async def scene() -> None:
        await talk(loop, 1, 7)
        loop.sessions.files = None  # type: ignore[assignment]
        await settled()

    play(scene)
    (event,) = told
    assert (event.status, event.made_by, event.version) == ("failed", None, None)
    assert event.content is not None
    assert "item assignment" in event.content["error"]
    assert counted() == (0, 1)


def test_without_the_setting_nothing_is_patched_for_it(
    nanobot: Callable[..., AgentLoop], builder: type
) -> None:
    def attributes() -> list[dict[str, Any]]:
        return [dict(vars(cls)) for cls in (SessionManager, AgentLoop, builder)]

    before = attributes()
    clear = Session.clear
    loop = nanobot(Provider(), enable_history_summarization=False, keep_rules=False)
    # Events name the session of a turn.
    wrapped = {"_process_message": vars(AgentLoop)["_process_message"]}
    assert attributes() == [before[0], before[1] | wrapped, before[2]]
    assert Session.clear is clear

    async def scene() -> None:
        await talk(loop, 1, 20)
        await settled()
        assert loop.provider.asked == []
        assert loop.session.metadata == {}
        assert type(loop.session.get_history()) is list

    play(scene)


def test_uninstalling_puts_everything_back(
    nanobot: Callable[..., AgentLoop], builder: type
) -> None:
    before = [dict(vars(cls)) for cls in (Session, SessionManager, AgentLoop, builder)]
    nanobot(Provider())
    names = {point.name.rpartition(".")[2] for point in installer.status().points if patched(point)}
    assert {"save", "clear", "get_history", "_process_message"} < names
    installer.uninstall()
    assert [dict(vars(cls)) for cls in (Session, SessionManager, AgentLoop, builder)] == before


def patched(point: Any) -> bool:
    return bool(point.state == "patched")


def test_without_a_running_event_loop_a_save_is_only_a_save(
    nanobot: Callable[..., AgentLoop],
) -> None:
    loop = nanobot(Provider())
    play(lambda: talk(loop, 1, 6))
    session = loop.session
    session.add("user", "number 7")
    loop.sessions.save(session)
    assert loop.provider.asked == []
    assert len(json.loads(loop.sessions.files[KEY])[0]) == 13


def test_a_task_that_is_cancelled_stores_nothing_and_the_next_begins_anew(
    nanobot: Callable[..., AgentLoop],
) -> None:
    async def cancelled() -> None:
        await talk(loop, 1, 7)
        await asked(loop.provider, 1)

    loop = nanobot(Provider(asyncio.Event(), "The user counts."))
    play(cancelled)  # the end of `asyncio.run` cancels what is left
    assert loop.session.metadata == {}

    async def again() -> None:
        await talk(loop, 8, 8)
        await settled()

    play(again)
    assert loop.session.metadata["summary_state"]["version"] == 1


@pytest.mark.parametrize("way", ["clear", "invalidate"])
def test_a_summary_of_a_session_that_is_gone_is_not_stored(
    nanobot: Callable[..., AgentLoop], way: str
) -> None:
    async def scene() -> None:
        late = asyncio.Event()
        loop = nanobot(Provider(late))
        await talk(loop, 1, 7)
        session = loop.session
        session.clear() if way == "clear" else loop.sessions.invalidate(KEY)
        files = dict(loop.sessions.files)
        late.set()
        await settled()
        assert loop.sessions.files == files
        assert session.metadata == {}

    play(scene)


def test_a_cleared_session_shows_no_summary_of_what_it_was(
    nanobot: Callable[..., AgentLoop],
) -> None:
    loop = nanobot(Provider())

    async def scene() -> None:
        await talk(loop, 1, 7)
        await settled()
        loop.session.clear()
        assert loop.session.metadata == {}
        prompt = await loop._process_message("number 1")
        assert prompt[0]["content"] == "You are nanobot."

    play(scene)


def test_messages_that_nanobot_drops_meanwhile_move_what_is_covered(
    nanobot: Callable[..., AgentLoop],
) -> None:
    async def scene() -> None:
        late = asyncio.Event()
        loop = nanobot(Provider(late))
        await talk(loop, 1, 7)
        del loop.session.messages[:6]
        late.set()
        await settled()
        assert loop.session.metadata["summary_state"]["covers"] == 4
        assert shown(await loop._process_message("number 8")) == numbers(6, 7)

    play(scene)


def test_a_summary_whose_last_message_is_gone_is_void_and_the_next_one_is_newer(
    nanobot: Callable[..., AgentLoop],
) -> None:
    loop = nanobot(Provider())

    async def scene() -> None:
        await talk(loop, 1, 7)
        await settled()
        del loop.session.messages[:11]
        prompt = await loop._process_message("number 8")
        assert prompt[0]["content"] == "You are nanobot."
        assert len(shown(prompt)) == 1
        await talk(loop, 9, 14)
        await settled()
        assert loop.session.metadata["summary_state"]["version"] == 2
        assert "counts" in (await loop._process_message("number 15"))[0]["content"]

    play(scene)


def test_a_refusal_comes_to_the_summary_and_the_guard_lets_it_through(
    nanobot: Callable[..., AgentLoop], classes: NanobotClasses, caplog: pytest.LogCaptureFixture
) -> None:
    class Guarded(Provider, classes.provider):  # type: ignore[name-defined, misc]
        async def chat(self, **asked: Any) -> LLMResponse:
            return await super().chat(**asked)

        def get_default_model(self) -> str:
            return "gpt-4o"

    provider = Guarded(error(TOO_LONG), "First half.", "Second half.", "Both halves.")
    loop = nanobot(provider)

    async def scene() -> None:
        await talk(loop, 1, 7)
        await settled()
        state = loop.session.metadata["summary_state"]
        assert (state["made_by"], state["error"]) == ("model", None)
        assert state["chunks"] >= 2
        assert len(provider.asked) >= 3
        assert "cannot be made small enough" not in caplog.text

    play(scene)


@pytest.mark.parametrize(
    "answer", [error("Error: no credit left"), RuntimeError("no credit left"), "", None]
)
def test_without_an_answer_of_the_model_the_summary_is_made_by_rules(
    nanobot: Callable[..., AgentLoop], answer: Any
) -> None:
    loop = nanobot(Provider(LLMResponse(None) if answer is None else answer))

    async def scene() -> None:
        await talk(loop, 1, 7)
        await settled()
        state = loop.session.metadata["summary_state"]
        assert state["made_by"] == "local"
        assert "credit" in state["error"] if answer else "empty" in state["error"]
        assert loop.session.metadata["summary"]

    play(scene)


@pytest.mark.parametrize(
    ("names", "model"),
    [
        ({}, "gpt-4o"),
        ({"compression_model": "small"}, "small"),
        ({"summary_model": "tiny", "compression_model": "small"}, "tiny"),
    ],
)
def test_the_model_for_summaries_is_asked_else_the_one_that_compresses_else_nanobots(
    nanobot: Callable[..., AgentLoop], names: dict[str, str], model: str
) -> None:
    loop = nanobot(Provider(), **names)

    async def scene() -> None:
        await talk(loop, 1, 7)
        await settled()
        assert {asked["model"] for asked in loop.provider.asked} == {model}
        assert {asked["tools"] for asked in loop.provider.asked} == {None}

    play(scene)


def test_the_settings_say_what_the_model_is_asked_for(nanobot: Callable[..., AgentLoop]) -> None:
    prompt = "In {max_summary_words} words: {conversation_text}"
    loop = nanobot(
        Provider('{"decisions": ["count"], "context": "They count."}'),
        summary_format="structured",
        summary_prompt=prompt,
        summary_max_words=80,
    )

    async def scene() -> None:
        await talk(loop, 1, 7)
        await settled()

    play(scene)
    (request,) = loop.provider.asked
    assert request["messages"][0]["content"].startswith("In 80 words: user: number 1")
    stored = stored_summary.read(loop.session)
    assert stored is not None
    assert stored.data is not None
    assert stored.data["decisions"] == ["count"]
    assert "Decisions:" in stored.text


def test_a_model_that_hangs_is_left_when_its_time_is_over(
    nanobot: Callable[..., AgentLoop],
) -> None:
    async def scene() -> None:
        loop = nanobot(Provider(asyncio.Event()), summary_timeout_seconds=0.05)
        await talk(loop, 1, 7)
        await settled()
        state = loop.session.metadata["summary_state"]
        assert (state["made_by"], state["error"]) == ("local", "the model did not answer in time")

    play(scene)


def test_a_summary_that_another_has_overtaken_is_not_stored(
    nanobot: Callable[..., AgentLoop],
) -> None:
    async def scene() -> None:
        late = asyncio.Event()
        loop = nanobot(Provider(late))
        await talk(loop, 1, 7)
        stored_summary.write(loop.session, Summary("The other.", 12))
        late.set()
        await settled()
        assert loop.session.metadata["summary"] == "The other."

    play(scene)


def test_a_session_that_cannot_be_read_is_saved_and_left_alone(
    nanobot: Callable[..., AgentLoop], caplog: pytest.LogCaptureFixture
) -> None:
    loop = nanobot(Provider())

    async def scene() -> None:
        await talk(loop, 1, 6)
        loop.session.add("user", 7)
        loop.sessions.save(loop.session)
        await settled()
        await talk(loop, 8, 9)
        await settled()
        assert len(json.loads(loop.sessions.files[KEY])[0]) == len(loop.session.messages) == 17
        assert loop.session.metadata == {}
        assert caplog.text.count("could not summarise cli:direct") == 1

    play(scene)


def test_answers_to_commands_are_covered_and_not_summarised(
    nanobot: Callable[..., AgentLoop],
) -> None:
    loop = nanobot(Provider())

    async def scene() -> None:
        await talk(loop, 1, 1)
        loop.session.add("assistant", "STATUS: all is well")
        loop.session.messages[-1]["_command"] = True
        await talk(loop, 2, 7)
        await settled()
        (asked,) = loop.provider.asked
        assert "STATUS" not in str(asked["messages"])
        assert "number 4" in str(asked["messages"])
        assert loop.session.metadata["summary_state"]["covers"] == 9

    play(scene)


def test_requests_without_a_history_of_a_session_have_no_summary(
    nanobot: Callable[..., AgentLoop], builder: type
) -> None:
    loop = nanobot(Provider())

    async def scene() -> None:
        await talk(loop, 1, 7)
        await settled()
        await talk(loop, 8, 8)
        if builder is TranscriptBuilder:
            given = TranscriptInput([{"role": "user", "content": "old"}], None)
            prompt = loop.context.build_transcript(given)
        else:
            prompt = loop.context.build_messages([], "What does the subagent say?")
        assert prompt[0]["content"] == "You are nanobot."

    play(scene)


@pytest.mark.parametrize("builder", [TranscriptBuilder], indirect=True)
def test_a_prompt_that_is_made_anew_within_a_turn_keeps_the_summary(
    nanobot: Callable[..., AgentLoop],
) -> None:
    loop = nanobot(Provider())

    async def scene() -> None:
        await talk(loop, 1, 7)
        await settled()
        given = TranscriptInput(loop.session.get_history(), "number 8")
        (first, *_) = loop.context.build_transcript(given)
        assert loop.context.build_transcript(given.checkpointed()) == [first]
        assert "counts" in first["content"]

    play(scene)


@pytest.mark.parametrize("builder", [TranscriptBuilder], indirect=True)
def test_a_state_is_dropped_when_another_summary_is_shown_than_the_one_it_was_made_with(
    nanobot: Callable[..., AgentLoop],
) -> None:
    loop = nanobot(Provider())

    def goes_on() -> bool:
        loop.session.get_history()
        return loop.session.provider_state is not None

    async def scene() -> None:
        await talk(loop, 1, 6)
        assert goes_on()
        await talk(loop, 7, 7)
        await settled()
        assert not goes_on()
        await talk(loop, 8, 8)
        assert goes_on()
        # After a restart nobody knows what it was made with.
        state = loop.session.provider_state
        loop.sessions.invalidate(KEY)
        loop.session.provider_state = state
        assert not goes_on()
        await talk(loop, 9, 9)
        assert goes_on()
        loop.session.clear()
        assert not goes_on()

    play(scene)


def test_another_nanobot_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
) -> None:
    place_classes(monkeypatch, ContextBuilder)
    monkeypatch.delattr(AgentLoop, "_process_message")
    before = dict(SessionManager.__dict__)
    state = install(replace(classes, session=Session), keep_rules=False, **SETTINGS)
    assert state.installed
    assert dict(SessionManager.__dict__) == before
    assert not hasattr(Session, "summary")
    assert "no _process_message" in caplog.text


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {},
        {"summary": "text"},
        {"summary": "", "summary_state": {"covers": 1}},
        {"summary": 3, "summary_state": {"covers": 1}},
        {"summary": "text", "summary_state": {"covers": "1", "last": {}}},
        {"summary": "text", "summary_state": {"covers": 1}},
        {"summary": "text", "summary_state": {"covers": 1, "last": {"timestamp": "x"}}},
    ],
)
def test_metadata_that_holds_no_summary_of_ours_is_none(metadata: Any) -> None:
    session = Session(KEY, metadata=metadata)
    session.add("user", "number 1")
    assert stored_summary.read(session) is None
    stored_summary.forget(session)


def test_a_message_is_known_again_by_time_and_words_together() -> None:
    session = Session(KEY)
    for text in ("ok", "ok", "\ud800 ok"):
        session.add("user", text)
    for covers in (1, 2, 3):
        stored_summary.write(session, Summary("text", covers))
        found = stored_summary.read(session)
        assert found is not None
        assert found.covers == covers
    session.messages[2]["content"] = "no"
    assert stored_summary.read(session) is None
    # With a clock that stands still the first one counts: rather shown twice than lost.
    same = [{"role": "user", "content": "ok", "timestamp": "x"}] * 3
    assert stored_summary.position(same, stored_summary.mark_of(same[0]), 9) == 1


STEPS = st.lists(
    st.sampled_from(["turn", "turn", "turn", "done", "fail", "restart", "drop", "hide", "clear"]),
    min_size=20,
    max_size=80,
)


@given(STEPS)
def test_each_message_is_covered_or_shown_whatever_happens_meanwhile(steps: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patching:
        place_classes(patching, ContextBuilder)
        classes = replace(make_classes(), session=Session)
        patching.setattr(installer, "load_classes", lambda: classes)
        with TemporaryDirectory() as folder:
            config = Path(folder) / "config.json"
            patching.setattr(installer, "nanobot_config_path", lambda: config)
            installer.install(Settings(**SETTINGS))  # type: ignore[arg-type]
            try:
                asyncio.run(schedule(steps))
            finally:
                installer.uninstall()


async def schedule(steps: list[str]) -> None:
    """Play `steps`; after each turn compare its prompt with what the session holds."""
    provider = Waiting()
    loop, asked, newest = AgentLoop(provider), 0, 0
    for step in steps:
        session = loop.session
        if step == "turn":
            asked += 1
            state, before = stored_summary.read(session), list(session.messages)
            prompt = await loop._process_message(f"number {asked}")
            covers = state.covers if state else 0
            expected = [m["content"] for m in before[covers:]]
            assert [m["content"] for m in prompt[1:-1]] == expected
            assert ("## Conversation Summary" in prompt[0]["content"]) == (state is not None)
            if state:
                assert state.version >= newest
                newest = state.version
            await asyncio.sleep(0)
        elif step in ("done", "fail"):
            await provider.go_on(step == "done")
        elif step == "restart":
            loop.sessions.invalidate(KEY)
        elif step == "drop":
            del session.messages[: len(session.messages) // 4]
            loop.sessions.save(session)
        elif step == "hide":
            at = len(session.messages) // 2
            session.messages.insert(at, {"role": "user", "content": f"marker {at} {asked}"})
        else:
            session.clear()
            loop.sessions.save(session)
            newest = 0


class Waiting:
    """A provider whose answers wait until the schedule says so."""

    def __init__(self) -> None:
        self.waiting: list[asyncio.Future[str]] = []

    async def chat(self, **_: Any) -> LLMResponse:
        future = asyncio.get_running_loop().create_future()
        self.waiting.append(future)
        return LLMResponse(await future)

    async def go_on(self, well: bool) -> None:
        for future in self.waiting:
            if well:
                future.set_result("The user counts.")
            else:
                future.set_exception(RuntimeError("out of order"))
        self.waiting.clear()
        for _ in range(5):
            await asyncio.sleep(0)
