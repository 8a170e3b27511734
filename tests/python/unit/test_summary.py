"""Summaries: what they say, when they are due, and what becomes of a model that fails.

The cases of documents 002 and 003 (`sessions-and-summaries`, 1.8 *Summarizer* and 2.10) are among
them. Different on purpose: an error or an empty answer is no error of the summary, which is told by
rules then and says why; input that is too long is never cut before the model has seen it; the
previous summary does not count as a message; what is checked is the number behind it.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from nanobot_context import InvalidArgumentError, InvalidMessageError, Session, count_tokens
from nanobot_context.history import assemble_history
from nanobot_context.summary import (
    Limits,
    Rolling,
    StaticBuffer,
    Summarizer,
    Summary,
    SummaryEvent,
    SummaryPolicy,
    SummaryRequest,
    Trigger,
    amaybe_summarize,
    call_with_summary,
    format_summary_for_context,
    keep_last_cut,
    maybe_summarize,
    merge_structured_summaries,
    parse_structured_summary,
    rolling_cut,
    static_buffer_cut,
    summary_due,
    summary_section,
    wrap_summary,
)
from nanobot_context.types import Message

TALK: list[Message] = [
    {"role": "user", "content": "Build src/importer.py for order ORD-4711. Never push to main."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "exec", "arguments": '{"command": "pytest -q"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "ERROR: no csvkit\nexit code: 1"},
    {"role": "assistant", "content": "We decided on csvkit 1.2."},
]


def said(count: int, text: str = "word " * 20) -> list[Message]:
    roles = ("user", "assistant")
    return [{"role": roles[at % 2], "content": f"message-{at} {text}"} for at in range(count)]


def refuse(limit: str = "") -> Exception:
    return RuntimeError(f"context_length_exceeded: prompt is too long{limit}")


class Model:
    """A scripted model: answers in order, an exception is raised; the last one for all later."""

    def __init__(self, *answers: str | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[SummaryRequest] = []

    def __call__(self, request: SummaryRequest) -> str:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


# What a summary says -----------------------------------------------------------------------------


def test_without_a_model_a_summary_is_told_by_rules() -> None:
    summary = Summarizer().summarize(TALK)
    assert (summary.made_by, summary.error) == ("local", None)
    assert (summary.covers, summary.version) == (4, 1)
    for line in (
        "Goal: Build src/importer.py for order ORD-4711. Never push to main.",
        "Rules of the user:\n- Never push to main.",
        "Decisions:\n- We decided on csvkit 1.2.",
        "Done:\n- exec pytest -q (exit code: 1)",
        "Errors seen:\n- ERROR: no csvkit",
    ):
        assert line in summary.text
    assert Summarizer().summarize(TALK) == summary


def test_a_model_writes_the_summary_and_rules_and_names_that_it_dropped_are_added() -> None:
    model = Model("  They build an importer.\n")
    summary = Summarizer(model).summarize(TALK)
    assert summary.text.startswith("They build an importer.\n\nAlso said:\n")
    assert "- Never push to main." in summary.text
    assert "ORD-4711" in summary.text
    assert (summary.made_by, summary.chunks, summary.truncated) == ("model", 1, False)
    assert summary.input_tokens + 3 == count_tokens(TALK)
    system, user = model.requests[0].messages
    assert "being evicted from the conversation window" in system["content"]
    assert "under 200 words" in system["content"]
    assert "user: Build src/importer.py" in user["content"]
    assert "exec returned: ERROR: no csvkit" in user["content"]


def test_the_messages_are_not_changed() -> None:
    before = json.dumps(TALK)
    Summarizer(Model("ok")).summarize(TALK)
    assert json.dumps(TALK) == before


def test_a_summary_goes_on_from_the_previous_one() -> None:
    model = Model("first", "second")
    summarizer = Summarizer(model)
    first = summarizer.summarize(TALK)
    second = summarizer.summarize(said(2), previous=first, reason="buffer")
    assert (second.covers, second.version, second.reason) == (6, 2, "buffer")
    assert model.requests[1].messages[1]["content"].startswith("Previous summary:\nfirst")
    assert "pytest" not in model.requests[1].messages[1]["content"]
    assert "- Never push to main." in second.text


def test_rules_survive_fifty_summaries_and_nothing_grows() -> None:
    summary = Summarizer(Model("short")).summarize(TALK)
    sizes = []
    for number in range(50):
        summarizer = Summarizer(Model(RuntimeError("down")) if number % 3 else Model("short"))
        summary = summarizer.summarize(said(6, f"file_{number}.py " * 30), previous=summary)
        sizes.append(count_tokens([{"role": "user", "content": json.dumps(summary.to_dict())}]))
        assert "Never push to main." in summary.text
    assert max(sizes[25:]) <= max(sizes[:25]) * 1.1


@pytest.mark.parametrize("answer", ["", "  \n", RuntimeError("boom"), "<think>only thoughts"])
def test_a_model_that_fails_leaves_the_summary_to_rules_and_says_why(answer: Any) -> None:
    events: list[SummaryEvent] = []
    summary = Summarizer(Model(answer), on_event=events.append).summarize(TALK)
    assert summary.made_by == "local"
    assert summary.error in ("the model's answer is empty", "RuntimeError: boom")
    assert [event.kind for event in events] == ["started", "failed", "ended"]
    assert events[1].error == summary.error
    assert summary.text == Summarizer().summarize(TALK).text


def test_a_message_without_a_role_is_named() -> None:
    with pytest.raises(InvalidMessageError, match=r"messages\[1\]"):
        Summarizer().summarize([TALK[0], {"content": "x"}])


# Prompts -----------------------------------------------------------------------------------------


def test_a_summary_says_what_the_model_was_asked_with() -> None:
    chinese: list[Message] = [{"role": "user", "content": "请继续。"}]
    assert Summarizer(Model("x")).summarize(TALK).prompt == "text-en"
    structured = Summarizer(Model("x"), format="structured")
    assert structured.summarize(chinese).prompt == "structured-zh"
    own = "Sum it up: {conversation_text}"
    assert Summarizer(Model("x"), prompt=own).summarize(TALK).prompt == own
    assert Summarizer().summarize(TALK).prompt is None


def test_a_prompt_of_the_callers_is_filled() -> None:
    prompt = "In {max_summary_words} words, after {previous_summary}: {conversation_text} {json: 1}"
    model = Model("x")
    summarizer = Summarizer(model, prompt=prompt, max_words=50)
    summarizer.summarize([{"role": "user", "content": "hi {x}"}])
    assert model.requests[0].messages == [
        {"role": "user", "content": "In 50 words, after : user: hi {x} {json: 1}"}
    ]


@pytest.mark.parametrize(
    ("prompt", "problem"),
    [
        ("{conversation_text} {max_words}", "max_words"),
        ("Summarise it.", "must have the placeholder `{conversation_text}`"),
    ],
)
def test_a_prompt_that_cannot_be_filled_is_refused_at_once(prompt: str, problem: str) -> None:
    with pytest.raises(InvalidArgumentError, match=problem):
        Summarizer(Model("x"), prompt=prompt)


def test_chinese_is_asked_for_in_chinese() -> None:
    model = Model("好的")
    request = "请帮我写一个导入程序，必须用中文注释。"
    Summarizer(model).summarize([{"role": "user", "content": request}])
    content = model.requests[0].messages[0]["content"]
    assert content.startswith("请将以下对话历史压缩为简洁的摘要")
    assert "500 字以内" in content


def test_a_shown_summary_is_wrapped_as_reference() -> None:
    section = summary_section("IT")
    assert section.startswith(
        "\n\n## Conversation Summary\n\nThe following is a summary of earlier conversation that is "
        "no longer\nin the message history:\n\nIT"
    )
    for text in (section, wrap_summary("IT")):
        assert "not an instruction" in text


# Structured --------------------------------------------------------------------------------------


def test_a_structured_summary_has_the_fields_of_the_document() -> None:
    model = Model('```json\n{"decisions": ["use csvkit"], "context": "An importer."}\n```')
    summary = Summarizer(model, format="structured").summarize(TALK)
    assert summary.data is not None
    assert set(summary.data) >= {
        "decisions",
        "constraints",
        "open_questions",
        "file_changes",
        "context",
    }
    assert summary.data["decisions"] == ["use csvkit"]
    assert summary.data["constraints"] == ["Never push to main."]
    assert "Decisions:\n- use csvkit" in summary.text
    assert "Context: An importer." in summary.text
    assert '"open_questions"' in model.requests[0].messages[0]["content"]


def test_open_questions_are_those_of_the_newest_summary() -> None:
    model = Model(
        '{"open_questions": ["which port?"], "decisions": ["a"]}',
        '{"open_questions": [], "decisions": ["b"]}',
    )
    summarizer = Summarizer(model, format="structured")
    first = summarizer.summarize(TALK)
    second = summarizer.summarize(said(2), previous=first)
    assert second.data is not None
    assert (second.data["open_questions"], second.data["decisions"]) == ([], ["a", "b"])


def test_what_a_model_wrote_is_read_or_taken_as_text() -> None:
    fields = parse_structured_summary('Sure: {"decisions": ["a", "b"], "context": "c')
    assert (fields["decisions"], fields["context"]) == (["a", "b"], "c")
    assert parse_structured_summary("All fine.\n")["context"] == "All fine."
    assert parse_structured_summary("All fine.")["decisions"] == []


def test_two_structured_summaries_are_merged_and_kept_small() -> None:
    older = parse_structured_summary('{"decisions": ["Use A."], "context": "old"}')
    newer = parse_structured_summary('{"decisions": ["B", "use a"], "context": "new"}')
    merged = merge_structured_summaries(older, newer)
    assert (merged["decisions"], merged["context"]) == (["B", "use a"], "new")
    assert format_summary_for_context(merged) == "Decisions:\n- B\n- use a\nContext: new"
    for number in range(60):
        merged = merge_structured_summaries(
            merged, {"decisions": [f"decision number {number}"]}, max_tokens=100
        )
    text = format_summary_for_context(merged)
    assert "number 59" in text
    assert count_tokens([{"role": "user", "content": text}]) <= 110
    with pytest.raises(InvalidArgumentError, match="older"):
        merge_structured_summaries([], {})  # type: ignore[arg-type]


# Too long for the model --------------------------------------------------------------------------


def small(window_chars: int) -> Callable[[SummaryRequest], str]:
    def call(request: SummaryRequest) -> str:
        if sum(len(message["content"]) for message in request.messages) > window_chars:
            raise refuse()
        return f"of depth {request.depth}"

    return call


def test_what_is_too_long_for_the_model_is_summarised_in_halves() -> None:
    events: list[SummaryEvent] = []
    summary = Summarizer(small(3_000), on_event=events.append).summarize(said(40))
    assert summary.made_by == "model"
    assert (summary.truncated, summary.error) == (False, None)
    assert summary.chunks == 4
    assert summary.max_depth == 2
    assert events[-1].summary == summary


def test_the_depth_guard_cuts_by_force_and_says_so() -> None:
    policy = SummaryPolicy(bisect_max_depth=1)
    summary = Summarizer(small(1_000), policy=policy).summarize(said(40))
    assert summary.truncated
    assert "Cut by force" in summary.text


def test_a_known_window_parts_the_input_before_it_is_refused() -> None:
    model = Model("part")
    summary = Summarizer(model, window_tokens=4_000).summarize(said(200))
    assert summary.chunks > 1
    read = "".join(str(request.messages) for request in model.requests)
    assert all(f"message-{at} " in read for at in range(200))


def test_an_error_in_the_middle_keeps_what_was_answered() -> None:
    model = Model(refuse(), "the first half", RuntimeError("down"))
    summary = Summarizer(model).summarize(said(40))
    assert (summary.made_by, summary.error) == ("local", "RuntimeError: down")
    assert "the first half" in summary.text


# Time, threads and tasks -------------------------------------------------------------------------


def test_a_slow_model_is_left_behind() -> None:
    release = threading.Event()

    def slow(request: SummaryRequest) -> str:
        release.wait(600)
        return "too late"

    summary = Summarizer(slow, timeout_seconds=0.2).summarize(TALK)
    assert not release.is_set()
    assert (summary.made_by, summary.error) == ("local", "the model did not answer in time")
    assert (
        asyncio.run(Summarizer(slow_async, timeout_seconds=0.2).asummarize(TALK)).made_by == "local"
    )
    release.set()


async def slow_async(request: SummaryRequest) -> str:
    await asyncio.sleep(600)
    return "too late"


def test_a_model_can_be_asked_in_every_way() -> None:
    async def answers(request: SummaryRequest) -> str:
        return "in pieces"

    async def pieces(request: SummaryRequest) -> AsyncIterator[str]:
        for piece in ("in ", "pie", "ces"):
            yield piece

    def plain(request: SummaryRequest) -> Iterator[str]:
        yield from ("in ", "pie", "ces")

    async def later(request: SummaryRequest) -> AsyncIterator[str]:
        return pieces(request)

    ways: list[Any] = [answers, pieces, plain, later, Model("in pieces")]
    for way in ways:
        summary = asyncio.run(Summarizer(way).asummarize(TALK))
        assert summary.text.startswith("in pieces\n"), way
    assert Summarizer(plain).summarize(TALK).text.startswith("in pieces\n")
    # What only works in a task is a mistake that is told.
    assert "must return a text" in str(Summarizer(answers).summarize(TALK).error)
    assert "must return a text" in str(Summarizer(lambda _: 1).summarize(TALK).error)  # type: ignore[arg-type,return-value]


def test_a_stream_of_something_else_is_a_mistake_that_is_told() -> None:
    def chunks(request: SummaryRequest) -> Iterator[Any]:
        yield from ("a text, ", {"delta": "and a chunk"})

    async def later(request: SummaryRequest) -> AsyncIterator[Any]:
        for chunk in chunks(request):
            yield chunk

    for way in (chunks, later):
        summary = asyncio.run(Summarizer(way).asummarize(TALK))
        assert summary.made_by == "local"
        assert "`call` must yield texts, got `dict`" in str(summary.error)


def test_the_text_is_told_as_it_streams() -> None:
    events: list[SummaryEvent] = []

    async def pieces(request: SummaryRequest) -> AsyncIterator[str]:
        yield "in "
        yield "pieces"

    summarizer = Summarizer(pieces, on_event=events.append)
    summary = asyncio.run(summarizer.asummarize(TALK, reason="message_limit"))
    assert [(event.kind, event.text) for event in events[:-1]] == [
        ("started", ""),
        ("text", "in "),
        ("text", "pieces"),
    ]
    assert (events[0].trigger, events[0].reason, events[0].messages) == (
        "proactive",
        "message_limit",
        4,
    )
    assert events[-1].text == summary.text[:800]


def test_a_listener_that_fails_costs_no_summary(caplog: pytest.LogCaptureFixture) -> None:
    def listener(event: SummaryEvent) -> None:
        raise ValueError("mine")

    assert Summarizer(Model("fine"), on_event=listener).summarize(TALK).made_by == "model"
    assert "on_event" in caplog.text


def test_cancelling_returns_nothing() -> None:
    async def cancel() -> None:
        task = asyncio.create_task(Summarizer(slow_async).asummarize(TALK))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())


def test_text_that_is_no_unicode_is_summarised_and_shown() -> None:
    broken = "half a pair \ud83d and a zero \x00"
    previous = Summary(broken, covers=1, data={"decisions": [broken]})
    summary = Summarizer(Model(broken)).summarize(
        [{"role": "user", "content": broken}], previous=previous
    )
    for text in (summary.text, summary_section(broken), wrap_summary(broken)):
        text.encode("utf-8")
    assert "\x00" not in summary.text
    json.dumps(summary.to_dict(), ensure_ascii=False).encode("utf-8")
    failed = Summarizer(Model(RuntimeError(broken))).summarize(TALK)
    assert str(failed.error).startswith("RuntimeError: half a pair")


def test_the_event_loop_goes_on_while_a_long_conversation_is_read() -> None:
    long = said(1_500, "the quick brown fox jumps over src/app/module_1.py " * 40)

    async def turns() -> int:
        count = 0
        task = asyncio.create_task(Summarizer().asummarize(long))
        while not task.done():
            await asyncio.sleep(0)
            count += 1
        return count

    assert asyncio.run(turns()) > 100, "it waited for the summary"


def test_messages_that_come_in_meanwhile_are_not_covered() -> None:
    messages = list(TALK)

    async def call(request: SummaryRequest) -> str:
        messages.append({"role": "user", "content": "one more"})
        return "done"

    summary = asyncio.run(Summarizer(call).asummarize(messages))
    assert summary.covers == 4
    assert "one more" not in json.dumps(summary.to_dict())


# When one is due ---------------------------------------------------------------------------------


def test_triggers_compare_as_their_document_does() -> None:
    assert Trigger.messages(gt=20).fires(messages=20) is None
    assert Trigger.messages(ge=20).fires(messages=20) == "message_limit"
    assert Trigger.tokens(gt=10).fires(messages=1, tokens=11) == "token_limit"
    assert Trigger.idle(gt=300).fires(messages=1, idle_seconds=301.0) == "idle"
    both = Trigger.all(Trigger.messages(gt=1), ~Trigger.idle(ge=5))
    assert both.fires(messages=2) == "message_limit"
    assert both.fires(messages=2, idle_seconds=5.0) is None
    assert Trigger.any(Trigger.messages(gt=9), Trigger.tokens(ge=1)).fires(messages=1, tokens=1)
    assert Trigger.all().fires(messages=1) == "always"
    assert Trigger.all().fires(messages=0) is None
    assert Trigger.any().fires(messages=1) is None
    assert Trigger.messages(gt=1) == Trigger.messages(gt=1) != Trigger.messages(ge=1)


@pytest.mark.parametrize("limits", [{}, {"gt": 1, "ge": 1}, {"gt": -1}, {"gt": "x"}])
def test_a_trigger_has_one_limit(limits: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        Trigger.messages(**limits)


def test_a_policy_is_read_from_the_environment_of_document_003() -> None:
    policy = SummaryPolicy.from_env({"SUMMARY_MESSAGE_LIMIT": "9", "SUMMARY_ENABLED": "false"})
    assert (policy.message_limit, policy.enabled, policy.keep_last) == (9, False, 6)
    assert SummaryPolicy.from_env({}) == SummaryPolicy()
    assert SummaryPolicy(target_tokens=300).merge_target_tokens == 300
    user = {"SUMMARY_MESSAGE_LIMIT": 5, "SUMMARY_ENABLED": False, "SUMMARY_KEEP_LAST_N": None}
    environ = {"SUMMARY_MESSAGE_LIMIT": "9", "SUMMARY_KEEP_LAST_N": "3", "HISTORY_LIMIT": "7"}
    policy = SummaryPolicy.from_env(environ, user=user)
    assert (policy.message_limit, policy.enabled, policy.keep_last) == (5, False, 3)
    assert policy.history_limit == 7
    with pytest.raises(InvalidArgumentError, match="SUMMARY_KEEP_LAST_N"):
        SummaryPolicy.from_env({"SUMMARY_KEEP_LAST_N": "many"})
    with pytest.raises(InvalidArgumentError, match="target_tokens"):
        SummaryPolicy(target_tokens=0)


def test_a_summary_is_due_at_the_limits() -> None:
    assert summary_due(said(39)) is None
    assert summary_due(said(40)) == (34, "message_limit")
    assert summary_due(said(40), 1) is None
    assert summary_due(said(40), policy=SummaryPolicy(enabled=False)) is None
    assert summary_due(said(3), cause="overflow_retry") == (3, "overflow_retry")
    assert summary_due(said(3), 1, cause="force") == (3, "force")
    assert summary_due(said(30), trigger=Trigger.tokens(gt=100)) == (24, "token_limit")
    with pytest.raises(InvalidArgumentError, match="cause"):
        summary_due([], cause="whim")


def test_cuts_part_no_call_from_its_result() -> None:
    assert keep_last_cut(TALK, keep=2) == 1
    assert keep_last_cut(TALK, keep=4) is None
    assert static_buffer_cut(said(50)) is None
    assert static_buffer_cut(said(51)) == 40
    assert rolling_cut(said(24)) == 20
    assert rolling_cut(said(22)) is None


# Sessions ----------------------------------------------------------------------------------------


def test_a_static_buffer_is_summarised_and_everything_is_covered_or_shown() -> None:
    session = Session(messages=said(51))
    summarizer = Summarizer(Model("what was"))
    assert maybe_summarize(session, summarizer, StaticBuffer()) is session.summary
    assert session.summary is not None
    assert (session.summary.covers, session.summary.reason) == (40, "buffer")
    shown = assemble_history(session.messages, summary=session.summary)
    assert [message["content"] for message in shown[1:]] == [
        message["content"] for message in session.messages[40:]
    ]
    assert "what was" in shown[0]["content"]
    assert maybe_summarize(session, summarizer, StaticBuffer()) is None
    assert len(session.messages) == 51


def test_a_rolling_summary_reads_only_what_is_new() -> None:
    session, model = Session(), Model("rolled")
    for turn in range(36):
        session.messages += said(2, f"turn-{turn} ")
        asyncio.run(amaybe_summarize(session, Summarizer(model), Rolling()))
    assert len(model.requests) == 3
    assert session.summary is not None
    assert (session.summary.covers, session.summary.version) == (60, 3)
    first, second = (request.messages[1]["content"] for request in model.requests[:2])
    assert "turn-0\n" in first
    assert "turn-0\n" not in second


def test_a_summary_in_progress_is_not_started_twice() -> None:
    session = Session(messages=said(51))

    async def both() -> list[Summary | None]:
        async def call(request: SummaryRequest) -> str:
            await asyncio.sleep(0.01)
            return "once"

        summarizer = Summarizer(call)
        tasks = [amaybe_summarize(session, summarizer, StaticBuffer()) for _ in range(2)]
        return list(await asyncio.gather(*tasks))

    made = asyncio.run(both())
    assert [summary is None for summary in made] == [False, True]
    assert not session.summary_in_progress


def test_a_cancelled_summary_leaves_the_session_as_it_was() -> None:
    session = Session(messages=said(51))

    async def cancel() -> None:
        task = asyncio.create_task(
            amaybe_summarize(session, Summarizer(slow_async), Limits(SummaryPolicy()))
        )
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cancel())
    assert (session.summary, session.summary_in_progress) == (None, False)
    assert maybe_summarize(session, Summarizer()) is not None


class Chat:
    """A model of the conversation that takes so many messages."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.sizes: list[int] = []

    async def __call__(self, messages: list[Message]) -> str:
        self.sizes.append(len(messages))
        if len(messages) > self.limit:
            raise refuse()
        return "answered"


CURRENT: list[Message] = [{"role": "user", "content": "and now?"}]


def test_a_conversation_that_is_too_long_is_summarised_and_sent_again() -> None:
    session, chat = Session(messages=said(30)), Chat(2)
    answer = asyncio.run(call_with_summary(chat, session, Summarizer(Model("sum")), CURRENT))
    assert (answer, chat.sizes) == ("answered", [31, 2])
    assert session.summary is not None
    assert (session.summary.covers, session.summary.reason) == (30, "overflow_retry")


def test_the_last_resort_shows_half_as_many_messages_each_time() -> None:
    session, chat = Session(messages=said(30)), Chat(0)
    with pytest.raises(RuntimeError, match="context_length_exceeded"):
        asyncio.run(call_with_summary(chat, session, Summarizer(), CURRENT))
    assert chat.sizes[:3] == [31, 2, 21]
    assert chat.sizes[2:] == sorted(chat.sizes[2:], reverse=True)
    assert chat.sizes[-1] == 2
    policy = SummaryPolicy(retry_on_overflow=False)
    chat, session = Chat(11), Session(messages=said(30))
    asyncio.run(call_with_summary(chat, session, Summarizer(policy=policy), CURRENT))
    assert chat.sizes == [31, 21, 11]
    assert session.summary is None


def test_what_is_no_overflow_is_raised_at_once() -> None:
    async def chat(messages: list[Message]) -> str:
        raise ValueError("rate limit reached")

    with pytest.raises(ValueError, match="rate limit"):
        asyncio.run(call_with_summary(chat, Session(messages=said(3)), Summarizer(), CURRENT))


# Storing -----------------------------------------------------------------------------------------


def test_a_summary_is_stored_and_read_back() -> None:
    summary = Summarizer(Model("x")).summarize(TALK, reason="idle")
    stored = json.loads(json.dumps(summary.to_dict()))
    assert Summary.from_dict(stored) == summary
    assert Summary.from_dict({**stored, "later": 1}) == summary
    for wrong in (
        {"text": "x"},
        {**stored, "covers": "4"},
        {**stored, "covers": True},
        {**stored, "covers": -1},
        {**stored, "made_by": "me"},
        {**stored, "data": []},
    ):
        with pytest.raises(InvalidArgumentError):
            Summary.from_dict(wrong)


def test_a_newer_summary_is_never_replaced_by_an_older_one() -> None:
    first = Summary("a", covers=4, version=1)
    second = Summary("b", covers=6, version=2)
    assert second.is_newer_than(first)
    assert not first.is_newer_than(second)
    assert not first.is_newer_than(first)
    assert not Summary("c", covers=5, version=3).is_newer_than(second)
    assert first.is_newer_than(None)


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ('{"decisions": ["one\ntwo"]', "decisions", ["one two"]),
        ('{"context": "cut in an escape\\', "context", "cut in an escape"),
        ('{"decisions": ["a", "b",', "decisions", ["a", "b"]),
        ('{"decisions": ["a"}]', "context", '{"decisions": ["a"}]'),
    ],
)
def test_json_as_models_write_it_is_read_or_taken_as_text(
    text: str, field: str, value: object
) -> None:
    assert parse_structured_summary(text)[field] == value


def test_a_summary_far_above_its_size_keeps_the_newest_rule() -> None:
    older = {"context": "word " * 400, "constraints": [f"never do {n} " * 20 for n in range(3)]}
    merged = merge_structured_summaries(older, {"decisions": ["a"]}, max_tokens=120)
    text = format_summary_for_context(merged)
    assert count_tokens([{"role": "user", "content": text}]) <= 130
    assert "never do 2" in text
    assert "never do 0" not in text


def test_a_rule_that_alone_is_too_long_keeps_its_beginning() -> None:
    rule = "Always write dates as 2026-11-25, " + "and nothing else, " * 200
    merged = merge_structured_summaries({"constraints": [rule]}, {}, max_tokens=60)
    assert merged["constraints"][0].startswith("Always write dates as 2026-11-25")
    text = format_summary_for_context(merged)
    assert count_tokens([{"role": "user", "content": text}]) <= 70
