"""Summaries of stored sessions: what trpc-agent-go's tests check of its summary service.

The list is in spec/sessions-and-summaries.md, 1.8. Here otherwise, on purpose (4.3 there):

- the text of a summary is always read from the store, since another process may have made a newer
  one; there, the caller's session is asked first;
- a summary covers positions, not times, so none is set because its clock is later;
- a model that fails, answers nothing or takes too long leaves its error in `summaries(failed=True)`
  and a summary that is told by rules; there, nothing is stored and nobody is told;
- a summary of a branch is also that of all contents where there is no other branch: one call;
- jobs of one session that wait are merged (see `test_jobs`);
- what is not summarised any more after a deletion is said to the caller.
"""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from nanobot_context import (
    ContextOverflowError,
    InvalidArgumentError,
    SessionGoneError,
    SessionNotFoundError,
)
from nanobot_context.sessions import SessionEvent, SessionService
from nanobot_context.summary import (
    Limits,
    Observed,
    Rolling,
    Summarizer,
    SummaryPolicy,
    SummaryRequest,
    Trigger,
)
from pace import unhurried
from session_cases import answered, at_once, ids, read, said

if TYPE_CHECKING:
    from nanobot_context.types import Message
    from session_cases import Store

CURRENT: list[Message] = [{"role": "user", "content": "and now?"}]

pytest_plugins = ("session_fixtures",)
pytestmark = pytest.mark.timeout(120)


class Model:
    """Answers "summary 1", "summary 2", …, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.lock = threading.Lock()

    def __call__(self, request: SummaryRequest) -> str:
        with self.lock:
            self.asked.append("\n".join(str(message["content"]) for message in request.messages))
            return f"summary {len(self.asked)}"


class Held(Model):
    """A model that answers when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.began = threading.Event()
        self.may_answer = threading.Event()

    def __call__(self, request: SummaryRequest) -> str:
        self.began.set()
        assert self.may_answer.wait(30)
        return super().__call__(request)


def summarised(store: Store, call: Callable[[SummaryRequest], Any], **options: Any) -> Any:
    """Return a service that summarises by `call` where it is asked to and has two messages."""
    options.setdefault("auto_summary", False)
    options.setdefault("trigger", Trigger.messages(gt=1))
    options.setdefault("policy", SummaryPolicy(keep_last=0))
    summarizer = Summarizer(call, timeout_seconds=options.pop("timeout_seconds", 30.0))
    return store.open(summarizer=summarizer, user_first="off", **options)


def until(holds: Callable[[], bool]) -> None:
    """Wait for something that another thread is about to do."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.005)


def test_without_a_summarizer_nothing_happens(store: Store) -> None:
    service = store.open()
    session = service.create("app", "me")
    service.append(session, [said(str(at)) for at in range(100)])
    assert service.summarize(session, force=True) is None
    assert service.enqueue_summary(session, force=True).result(30) is None
    assert service.summaries(session) == service.summaries(session, failed=True) == []
    assert service.summary_text(session) is None


def test_a_summary_that_could_not_be_made_is_among_the_errors_of_the_service(store: Store) -> None:
    def check(_: Observed) -> bool:
        raise LookupError("a check of the caller's")

    service = summarised(store, Model(), trigger=check)
    assert (service.summary_errors, service.summary_counts.queued) == ((), 0)
    session = service.create("app", "me")
    service.append(session, [said("a"), answered("b")])
    with pytest.raises(LookupError):
        service.enqueue_summary(session).result(30)
    service.enqueue_summary(session, force=True).result(30)
    (error,) = service.summary_errors
    assert (error.key, error.state) == (session.key, "failed")
    assert error.error == "LookupError: a check of the caller's"
    assert (service.summary_counts.failed, service.summary_counts.done) == (1, 1)


def test_no_more_than_the_newest_hundred_errors_are_kept(store: Store) -> None:
    service = summarised(store, Model())
    sessions = [service.create("app", "me", session_id=f"s{at}") for at in range(101)]
    for session in sessions:
        service.delete(*session.key)
        with pytest.raises(SessionNotFoundError):
            service.enqueue_summary(session, force=True).result(30)
    kept = [error.key for error in service.summary_errors]
    assert kept == [session.key for session in sessions[1:]]
    assert service.summary_counts.failed == 101


def test_a_summary_that_is_not_due_is_not_stored(store: Store) -> None:
    model = Model()
    service = summarised(store, model, trigger=Trigger.messages(gt=3))
    session = service.create("app", "me")
    service.append(session, [said("a"), answered("b"), said("c")])
    assert service.summarize(session) is None
    service.append(session, [said("a piece", partial=True), SessionEvent({"progress": 1})])
    assert service.summarize(session) is None, "neither is a message"
    assert (model.asked, service.summaries(session)) == ([], [])
    service.append(session, [answered("d")])
    assert service.summarize(session).text == "summary 1"
    assert service.summarize(session) is None, "nothing is new"
    assert len(model.asked) == 1


def test_no_events_need_no_summary_even_by_force(store: Store) -> None:
    model = Model()
    service = summarised(store, model)
    session = service.create("app", "me")
    assert service.summarize(session, force=True) is None
    service.append(session, [said("a"), answered("b")])
    made = service.summarize(session, force=True)
    assert made.version == 1
    assert service.summarize(session, force=True) == made, "the summary that stands"
    assert len(model.asked) == 1


def test_a_forced_summary_right_behind_a_turn_is_that_of_the_turn(store: Store) -> None:
    service = summarised(store, Model(), auto_summary=True)
    for at in range(60):
        key = "shop" if at % 2 else ""
        session = service.create("app", "me", f"s{at}")
        service.append(session, [said("a", filter_key=key), answered("b", filter_key=key)])
        made = service.enqueue_summary(session, key, force=True).result(30)
        assert (made.version, made.last_seq, made.filter_key) == (1, 2, key)


def test_a_summary_is_stored_and_read_back(store: Store) -> None:
    model = Model()
    service = summarised(store, model)
    session = service.create("app", "me")
    service.append(session, [said("apples"), answered("pears")])
    made = service.summarize(session)
    assert (made.text, made.version, made.first_seq, made.last_seq) == ("summary 1", 1, 1, 2)
    assert made.events == [(1, "apples"), (2, "pears")]
    assert made.record["made_by"] == "model"
    found = read(service, session)
    assert found.summaries[""].text == service.summary_text(session) == "summary 1"
    assert ids(found) == ["apples", "pears"], "it takes no event away"
    again = store.open_again(service)
    assert again.summaries(found, links=True) == [made]


def test_the_next_summary_goes_on_from_the_last(store: Store) -> None:
    model = Model()
    service = summarised(store, model)
    session = service.create("app", "me")
    service.append(session, [said("apples"), answered("pears")])
    service.summarize(session)
    service.append(session, [said("cherries"), answered("plums")])
    made = service.summarize(session)
    assert (made.text, made.version, made.first_seq, made.last_seq) == ("summary 2", 2, 1, 4)
    assert made.events == [(3, "cherries"), (4, "plums")]
    assert "apples" not in model.asked[1]
    for known in ("summary 1", "cherries", "plums"):
        assert known in model.asked[1]
    texts = [summary.text for summary in service.summaries(session)]
    assert texts == ["summary 2", "summary 1"], "newest first; the older one is kept"
    assert [one.text for one in service.summaries(session, last=1)] == ["summary 2"]


def test_equal_and_decreasing_times_leave_no_event_out(store: Store) -> None:
    model = Model()
    service = summarised(store, model)
    session = service.create("app", "me")
    service.append(session, [said("apples", time=9_000.0), answered("pears", time=9_000.0)])
    service.summarize(session)
    service.append(session, [said("cherries", time=9_000.0), answered("plums", time=1.0)])
    assert service.summarize(session).last_seq == 4
    for text in ("cherries", "plums"):
        assert text in model.asked[1]


def test_an_older_summary_takes_no_newer_ones_place(store: Store) -> None:
    model = Held()
    service = summarised(store, model)
    session = service.create("app", "me")
    service.append(session, [said("a"), answered("b")])
    slow = service.enqueue_summary(session)
    assert model.began.wait(30)
    # Another process is faster, and covers more.
    quick = summarised(store, lambda request: "quick") if store.is_shared else None
    other = quick or service
    other.append(read(other, session), [said("c")])
    if quick is None:
        model.may_answer.set()
        assert slow.result(30).text == "summary 1"
        return
    assert quick.summarize(session, force=True).last_seq == 3
    model.may_answer.set()
    assert slow.result(30) is None
    assert [summary.text for summary in service.summaries(session)] == ["quick"]


def test_a_session_that_was_fetched_again_is_summarised(store: Store) -> None:
    model = Model()
    service = summarised(store, model)
    service.append(service.create("app", "me", "s"), [said("a"), answered("b")])
    windowed = service.get("app", "me", "s", last=1)
    assert service.summarize(windowed).last_seq == 2, "what it holds is read anew"
    [head] = service.list_sessions("app", "me")
    service.append(head, [said("c"), answered("d")])
    assert service.summarize(head).last_seq == 4


def test_a_session_that_is_not_there_cannot_be_summarised(store: Store) -> None:
    service = summarised(store, Model())
    session = service.create("app", "me", "s")
    service.append(session, [said("a"), answered("b")])
    service.delete(*session.key)
    with pytest.raises(SessionNotFoundError):
        service.summarize(session)
    service.create("app", "me", "s")
    with pytest.raises(SessionGoneError):
        service.summarize(session)


def test_a_session_that_is_deleted_meanwhile_gets_no_summary(store: Store) -> None:
    model = Held()
    service = summarised(store, model)
    session = service.create("app", "me", "s")
    service.append(session, [said("a"), answered("b")])
    job = service.enqueue_summary(session)
    assert model.began.wait(30)
    new = service.create("app", "me", "s", overwrite=True)
    service.append(new, [said("c"), answered("d")])
    model.may_answer.set()
    with pytest.raises(SessionGoneError):
        job.result(30)
    assert service.summaries(new) == []


def test_a_summary_lives_as_long_as_its_session(store: Store) -> None:
    def story(slower: float) -> None:
        service = summarised(store, Model(), session_ttl_seconds=0.4 * slower)
        session = service.create("app", f"me-{slower}", "s")
        service.append(session, [said("a"), answered("b")])
        assert service.summarize(session) is not None
        time.sleep(0.6 * slower)
        assert service.summaries(session) == []
        assert service.summary_text(session) is None
        new = service.create(*session.key)
        assert (new.summaries, service.summaries(new)) == ({}, [])

    unhurried(story)


def test_what_comes_in_while_a_summary_is_made_is_in_the_next(store: Store) -> None:
    model = Held()
    service = summarised(store, model)
    session = service.create("app", "me")
    service.append(session, [said("apples"), answered("pears")])
    job = service.enqueue_summary(session)
    assert model.began.wait(30)
    service.append(session, [said("cherries"), answered("plums")])
    model.may_answer.set()
    assert job.result(30).last_seq == 2
    made = service.summarize(session)
    assert made.events == [(3, "cherries"), (4, "plums")]
    assert service.context(session) != []


def test_jobs_that_wait_give_each_caller_the_summary_of_its_branch(store: Store) -> None:
    model = Held()
    service = summarised(store, model)
    session = service.create("app", "me")
    service.append(session, [said("a", filter_key="one"), answered("b", filter_key="other")])
    running = service.enqueue_summary(session)
    assert model.began.wait(30)
    of_one = service.enqueue_summary(session, "one", force=True)
    of_other = service.enqueue_summary(session, "other", force=True)
    model.may_answer.set()
    jobs = (running, of_one, of_other)
    assert [job.result(30).filter_key for job in jobs] == ["", "one", "other"]


# Branches -----------------------------------------------------------------------------------------


def test_a_branch_is_summarised_by_itself_and_within_all_contents(store: Store) -> None:
    model = Model()
    service = summarised(store, model)
    session = service.create("app", "me")
    service.append(session, [said("apples", filter_key="a"), said("bolts", filter_key="b")])
    service.append(session, [answered("pears", filter_key="a/x"), answered("nuts")])
    made = service.summarize(session, "a")
    assert (made.text, made.filter_key) == ("summary 1", "a")
    assert [id_ for _, id_ in made.events] == ["apples", "pears", "nuts"]
    assert "bolts" not in model.asked[0]
    assert "bolts" in model.asked[1]
    assert (service.summary_text(session, "a"), service.summary_text(session)) == (
        "summary 1",
        "summary 2",
    )
    assert service.summary_text(session, "b") == "summary 2", "without one, that of all contents"
    assert {key: one.text for key, one in read(service, session).summaries.items()} == {
        "a": "summary 1",
        "": "summary 2",
    }


def test_the_only_branch_costs_one_call(store: Store) -> None:
    model = Model()
    service = summarised(store, model)
    session = service.create("app", "me")
    for turn in (1, 2):
        events = [said(f"u{turn}", filter_key="a"), answered(f"a{turn}", filter_key="a")]
        service.append(session, events)
        assert service.summarize(session, "a").text == f"summary {turn}"
        assert service.summary_text(session) == f"summary {turn}"
    assert len(model.asked) == 2
    assert [one.text for one in service.summaries(session, "")] == ["summary 2", "summary 1"]


# In the background --------------------------------------------------------------------------------


def test_a_summary_is_made_in_the_background(store: Store) -> None:
    model = Held()
    service = summarised(store, model)
    session = service.create("app", "me")
    service.append(session, [said("a"), answered("b")])
    job = service.enqueue_summary(session)
    assert model.began.wait(30), "nobody has waited for it"
    assert service.summary_text(session) is None
    model.may_answer.set()
    until(lambda: service.summary_text(session) == "summary 1")
    assert job.result(30).version == 1


def test_a_turn_that_has_ended_is_summarised_by_itself(store: Store) -> None:
    model = Model()
    service = summarised(store, model, auto_summary=True)
    session = service.create("app", "me")
    calls = {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]}
    result = {"role": "tool", "tool_call_id": "1", "content": "sunny"}
    for event in (said("weather?"), SessionEvent(calls), SessionEvent(result)):
        service.append(session, [event])
    time.sleep(0.1)
    assert service.summaries(session) == [], "the turn goes on"
    service.append(session, [answered("sunny")])
    until(lambda: service.summary_text(session) == "summary 1")
    assert service.summaries(session)[0].last_seq == 4


def test_the_silence_before_a_turn_is_looked_at_when_it_begins(store: Store) -> None:
    service = summarised(store, Model(), trigger=Trigger.idle(gt=1.0), auto_summary=True)
    session = service.create("app", "me")
    for at in range(3):
        time.sleep(1.5 if at else 0)
        service.append(session, [said(f"question {at}")])
        service.append(session, [answered(f"answer {at}")])
    until(lambda: service.summaries(session) != [])
    made = service.summaries(session)
    assert {one.record["reason"] for one in made} == {"idle"}


@pytest.mark.parametrize("check", [Trigger.idle(gt=0.05), lambda seen: seen.idle_seconds > 0.05])
@pytest.mark.parametrize("wrapped", [lambda check: check, lambda check: Limits(trigger=check)])
def test_a_check_that_fires_needs_no_policy_to_have_few_messages_summarised(
    store: Store, check: Any, wrapped: Callable[[Any], Any]
) -> None:
    service = store.open(summarizer=Summarizer(Model()), trigger=wrapped(check))
    session = service.create("app", "me")
    for at in range(3):
        time.sleep(0.1 if at else 0)
        service.append(session, [said(f"question {at}")])
        service.append(session, [answered(f"answer {at}")])
    until(lambda: service.summaries(session) != [])


def test_a_session_that_fell_silent_is_summarised_though_nobody_speaks(store: Store) -> None:
    model = Model()
    service = summarised(
        store,
        model,
        trigger=Trigger.any(Trigger.messages(gt=99), Trigger.idle(gt=0.3)),
        auto_summary=True,
        cleanup_interval_seconds=0.1,
    )
    session = service.create("app", "me")
    service.append(session, [said("a"), answered("b")])
    until(lambda: service.summaries(session) != [])
    assert service.summaries(session)[0].record["reason"] == "idle"
    time.sleep(0.5)
    assert len(model.asked) == 1, "nothing is new"


def test_a_silence_is_summarised_once(store: Store) -> None:
    model = Model()
    policy = SummaryPolicy(keep_last=3)
    trigger = Trigger.idle(gt=60)
    service = summarised(store, model, trigger=trigger, policy=policy, auto_summary=True)
    session = service.create("app", "me")
    now = time.time()
    service.append(session, [said("a", time=now - 100), answered("b", time=now - 100)])
    for at in range(3):
        later = now + at
        turn = [said(f"question {at}", time=later), answered(f"answer {at}", time=later)]
        service.append(session, turn)
        service.enqueue_summary(session).result(30)
    assert len(model.asked) == 1


def test_a_trigger_may_be_a_function_of_the_session(store: Store) -> None:
    seen: list[Observed] = []

    def urgent(observed: Observed) -> str | None:
        seen.append(observed)
        assert observed.session is not None
        return "urgent" if observed.session.state.get("is_urgent") else None

    service = summarised(store, Model(), trigger=urgent)
    session = service.create("app", "me")
    service.append(session, [said("a"), answered("b")])
    assert service.summarize(session) is None
    assert (len(seen[0].messages), seen[0].tokens > 2, seen[0].idle_seconds < 30) == (2, True, True)
    service.update_session_state(session, {"is_urgent": True})
    assert service.summarize(session).record["reason"] == "urgent"
    assert service.summarize(session) is None, "nothing is new"
    assert len(seen) == 2


def test_a_trigger_that_is_async_is_refused(store: Store) -> None:
    async def never(seen: Observed) -> bool:
        return False

    service = summarised(store, Model(), trigger=never)
    session = service.create("app", "me")
    service.append(session, [said("a"), answered("b")])
    with pytest.raises(InvalidArgumentError, match="that is not async"):
        service.summarize(session)


def test_a_trigger_that_fails_is_named_in_the_log(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    def wrong(seen: Observed) -> bool:
        raise ValueError("a mistake in it")

    service = summarised(store, Model(), trigger=wrong)
    session = service.create("app", "me")
    service.append(session, [said("a"), answered("b")])
    with pytest.raises(ValueError, match="a mistake"):
        service.summarize(session)
    assert "`trigger` failed" in caplog.text


def test_a_trigger_may_be_a_policy_of_its_own(store: Store) -> None:
    rolling = Rolling(interval=3, keep_rounds=1)
    service = summarised(store, Model(), trigger=rolling, auto_summary=True)
    session = service.create("app", "me")
    for at in range(1, 12):
        service.append(session, [said(f"question {at}"), answered(f"answer {at}")])
        service.enqueue_summary(session).result(30)
    made = service.summaries(session)
    # Every three rounds, what is new of the oldest; the newest round stays.
    assert [(one.version, one.last_seq) for one in made] == [(3, 18), (2, 12), (1, 6)]
    assert {one.record["reason"] for one in made} == {"rolling"}
    switched_off = summarised(store, Model(), trigger=rolling, policy=SummaryPolicy(enabled=False))
    if store.is_shared:
        assert switched_off.summarize(session) is None


TOKENS = "context_length_exceeded: This model's maximum context length is 8192 tokens."
ENTRIES = "Invalid 'messages': array too long. Expected an array with maximum length 2."
RATE = "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 45000."


class Narrow:
    """A model whose window has so many messages; plain, and awaited where its answer is."""

    def __init__(self, limit: int, store: Store, refusal: str = TOKENS) -> None:
        self.limit = limit
        self.refusal = refusal
        self.asked: list[list[Message]] = []
        self.chat = self.achat if store.is_async else self.plain

    def plain(self, messages: list[Message]) -> str:
        self.asked.append(messages)
        if len(messages) > self.limit:
            raise RuntimeError(self.refusal)
        return "answered"

    async def achat(self, messages: list[Message]) -> str:
        return self.plain(messages)


@pytest.mark.parametrize("refusal", [TOKENS, ENTRIES, RATE])
def test_an_overflow_is_answered_with_a_summary_and_one_retry(store: Store, refusal: str) -> None:
    service, narrow = summarised(store, Model()), Narrow(2, store, refusal)
    session = service.create("app", "me")
    for at in range(8):
        service.append(session, [said(f"question {at}"), answered(f"answer {at}")])
    service.append(session, [said("and now?")])
    assert service.call_with_summary(session, narrow.chat) == "answered"
    assert [len(messages) for messages in narrow.asked] == [17, 2]
    assert narrow.asked[1][0]["role"] == "system"
    assert narrow.asked[1][1]["content"] == "and now?"
    (made,) = service.summaries(session)
    assert (made.record["reason"], made.last_seq) == ("overflow_retry", 16), "not the question"
    again = Narrow(2, store)
    assert service.call_with_summary(session, again.chat) == "answered"
    assert again.asked == [narrow.asked[1]], "the summary stands"


def test_a_question_that_waits_for_its_answer_is_in_no_summary_but_a_forced_one(
    store: Store,
) -> None:
    service = summarised(store, Model(), trigger=Trigger.messages(gt=2), auto_summary=False)
    session = service.create("app", "me")
    call = {"id": "c", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
    steps = [
        SessionEvent({"role": "assistant", "content": None, "tool_calls": [call]}),
        SessionEvent({"role": "tool", "tool_call_id": "c", "content": "a file"}),
    ]
    service.append(session, [said("a"), answered("b"), said("c")])
    assert service.summarize(session).last_seq == 2
    service.append(session, steps)
    assert service.summarize(session) is None
    assert [message["role"] for message in service.context(session)][1:] == [
        *("user", "assistant", "tool")
    ]
    service.append(session, [answered("d")])
    assert service.summarize(session).last_seq == 6
    service.append(session, [said("e")])
    assert service.summarize(session, force=True).last_seq == 7


def test_an_overflow_that_stays_is_a_typed_error(store: Store) -> None:
    service, narrow = summarised(store, Model()), Narrow(0, store)
    session = service.create("app", "me")
    service.append(session, [said("question"), answered("answer")])
    with pytest.raises(ContextOverflowError) as caught:
        service.call_with_summary(session, narrow.chat, current=CURRENT)
    assert (len(narrow.asked), caught.value.limit_tokens) == (2, 8_192)
    assert isinstance(caught.value.__cause__, RuntimeError)
    with pytest.raises(ContextOverflowError):
        service.call_with_summary(session, narrow.chat, current=CURRENT)
    assert len(narrow.asked) == 3, "nothing is new: the same request is not sent twice"


def test_without_the_policys_leave_an_overflow_makes_no_summary(store: Store) -> None:
    policy = SummaryPolicy(retry_on_overflow=False)
    service, narrow = summarised(store, Model(), policy=policy), Narrow(0, store)
    session = service.create("app", "me")
    service.append(session, [said("question"), answered("answer")])
    with pytest.raises(ContextOverflowError):
        service.call_with_summary(session, narrow.chat, current=CURRENT)
    assert (len(narrow.asked), service.summaries(session)) == (1, [])


def test_a_summary_for_an_overflow_is_made_of_halves_where_it_must(store: Store) -> None:
    def call(request: SummaryRequest) -> str:
        if len(str(request.messages)) > 4_000:
            raise RuntimeError("context_length_exceeded")
        return "part"

    service, narrow = summarised(store, call), Narrow(2, store)
    session = service.create("app", "me")
    service.append(session, [said(f"{at} {'word ' * 60}") for at in range(40)])
    assert service.call_with_summary(session, narrow.chat, current=CURRENT) == "answered"
    (made,) = service.summaries(session)
    assert made.record["chunks"] > 1
    assert made.record["max_depth"] >= 1


def test_another_error_of_the_model_is_raised_as_it_is(store: Store) -> None:
    service = summarised(store, Model())
    session = service.create("app", "me")
    narrow = Narrow(0, store)
    narrow.limit = None  # type: ignore[assignment]
    with pytest.raises(TypeError):
        service.call_with_summary(session, narrow.chat, current=CURRENT)
    assert service.summaries(session) == []


def test_what_is_no_trigger_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="trigger"):
        SessionService(trigger=5)  # type: ignore[arg-type]


def test_by_default_the_background_is_not_forced(store: Store) -> None:
    model = Model()
    service = summarised(store, model)
    session = service.create("app", "me")
    service.append(session, [said("a")])
    assert service.enqueue_summary(session).result(30) is None
    assert service.enqueue_summary(session, force=True).result(30).text == "summary 1"


def test_sessions_are_summarised_at_the_same_time(store: Store) -> None:
    both = threading.Barrier(2)

    def call(request: SummaryRequest) -> str:
        both.wait(30)
        return "together"

    service = summarised(store, call)
    jobs = []
    for name in ("s", "t"):
        session = service.create("app", "me", name)
        service.append(session, [said("a"), answered("b")])
        jobs.append(service.enqueue_summary(session))
    assert [job.result(30).text for job in jobs] == ["together"] * 2


def test_where_the_queue_is_full_the_caller_makes_the_summary(store: Store) -> None:
    model = Held()
    service = summarised(store, model, summary_workers=1, summary_queue=0)
    sessions = [service.create("app", "me", name) for name in "st"]
    for session in sessions:
        service.append(session, [said("a"), answered("b")])
    waiting = service.enqueue_summary(sessions[0])
    assert model.began.wait(30)
    threading.Timer(0.2, model.may_answer.set).start()
    job = service.enqueue_summary(sessions[1])
    assert model.may_answer.is_set(), "it returned before the summary was made"
    assert service.summary_text(sessions[1]) is not None
    assert job.result(5).version == waiting.result(30).version == 1


def test_without_workers_the_caller_makes_every_summary(store: Store) -> None:
    service = summarised(store, Model(), summary_workers=0)
    session = service.create("app", "me")
    service.append(session, [said("a"), answered("b")])
    service.enqueue_summary(session)
    assert service.summary_text(session) == "summary 1"


def test_a_model_that_takes_too_long_leaves_its_error_and_a_summary_by_rules(store: Store) -> None:
    model = Held()
    service = summarised(store, model, timeout_seconds=0.2)
    session = service.create("app", "me")
    service.append(session, [said("My name is Ada."), answered("Hello Ada.")])
    made = service.enqueue_summary(session).result(30)
    model.may_answer.set()
    assert made.record["made_by"] == "local"
    [failed] = service.summaries(session, failed=True)
    assert "in time" in failed.text
    assert [one.version for one in service.summaries(session)] == [1]


def test_a_model_that_fails_is_told_and_changes_no_history(store: Store) -> None:
    answers: list[Any] = [RuntimeError("quota"), ""]

    def call(request: SummaryRequest) -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    service = summarised(store, call)
    session = service.create("app", "me")
    for turn in (1, 2):
        service.append(session, [said(f"u{turn}"), answered(f"a{turn}")])
        assert service.summarize(session).record["made_by"] == "local"
    failed = service.summaries(session, failed=True)
    assert len(failed) == 2
    assert "quota" in failed[1].text
    assert ids(read(service, session)) == ["u1", "a1", "u2", "a2"]
    assert "quota" not in str(service.summary_text(session)), "an error is no content"


def test_close_waits_for_what_is_being_made(store: Store) -> None:
    model = Held()
    service = summarised(store, model)
    session = service.create("app", "me")
    service.append(session, [said("a"), answered("b")])
    job = service.enqueue_summary(session)
    assert model.began.wait(30)
    threading.Timer(0.2, model.may_answer.set).start()
    service.close()
    assert job.result(5).text == "summary 1"
    if store.is_shared:
        assert store.open().summary_text(session) == "summary 1"


def test_what_is_not_made_by_the_deadline_of_close_stores_nothing(store: Store) -> None:
    model = Held()
    service = summarised(store, model)
    session = service.create("app", "me")
    service.append(session, [said("a"), answered("b")])
    job = service.enqueue_summary(session)
    assert model.began.wait(30)
    service.close(0.1)
    model.may_answer.set()
    with pytest.raises((concurrent.futures.CancelledError, SessionGoneError)):
        job.result(30)
    if store.is_shared:
        again = store.open()
        assert again.summaries(session) == again.summaries(session, failed=True) == []


def test_a_job_that_is_cancelled_stores_nothing(store: Store) -> None:
    model = Held()
    service = summarised(store, model)
    session = service.create("app", "me")
    service.append(session, [said("a"), answered("b")])
    job = service.enqueue_summary(session)
    assert model.began.wait(30)
    assert job.cancel()
    model.may_answer.set()
    time.sleep(0.3)
    assert service.summaries(session) == service.summaries(session, failed=True) == []
    assert service.summarize(session).version == 1


def test_two_that_summarise_the_same_at_once_store_one_summary(store: Store) -> None:
    first = summarised(store, Model())
    second = summarised(store, Model()) if store.is_shared else first
    session = first.create("app", "me")
    for turn in range(1, 6):
        first.append(session, [said(f"u{turn}"), answered(f"a{turn}")])
        at_once([lambda: first.summarize(session), lambda: second.summarize(session)])
        newest = first.summaries(session, links=True)
        assert [one.version for one in newest] == list(range(turn, 0, -1))
        assert newest[0].last_seq == 2 * turn
        covered = [seq for one in reversed(newest) for seq, _ in one.events]
        assert covered == list(range(1, 2 * turn + 1)), "every event once"


# What the model is shown --------------------------------------------------------------------------


def test_the_context_is_the_summary_and_all_that_it_does_not_cover(store: Store) -> None:
    service = summarised(store, Model(), policy=SummaryPolicy(keep_last=1))
    session = service.create("app", "me")
    service.append(session, [said("a"), answered("b"), said("c")])
    assert service.summarize(session).last_seq == 2
    service.append(session, [answered("d"), said("e")])
    shown = service.context(session)
    assert "summary 1" in str(shown[0]["content"])
    assert [message["content"] for message in shown[1:]] == ["c", "d", "e"]
    recent = service.context(session, mode="recent", max_messages=3)
    assert [message["content"] for message in recent] == ["c", "d", "e"]


def test_a_placeholder_is_shown_to_people_and_not_summarised(store: Store) -> None:
    model = Model()
    service = summarised(store, model, placeholder=True)
    session = service.create("app", "me")
    service.append(session, [said("a"), answered("b")])
    service.summarize(session)
    found = read(service, session)
    assert [event.is_summary for event in found.events] == [False, False, True]
    assert found.events[2].payload["summary"] == "summary 1"
    assert [message["content"] for message in found.messages] == ["a", "b"]
    service.append(found, [said("c"), answered("d")])
    assert service.summarize(session).events == [(4, "c"), (5, "d")]
    assert "Context summarised" not in model.asked[1]
