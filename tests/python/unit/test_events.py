"""What a running nanobot tells: to listeners, to the log, and to a file of JSON lines."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import nanobot_context
from endings import exit_code
from nanobot_context import InvalidArgumentError, count_tokens, installer
from nanobot_context.events import (
    AnsweredEvent,
    CompressedEvent,
    LearnedEvent,
    OverflowEvent,
    RetryEvent,
    TelemetryEvent,
    current_session,
    emit,
    is_wanted,
    subscribe,
)
from nanobot_context.file_checks import check_files
from nanobot_context.files import locked
from nanobot_context.guard import telemetry
from nanobot_context.guard.line_file import LineFile
from nanobot_context.host.detect import NanobotClasses
from shim_classes import (
    TOO_LONG,
    WINDOW,
    LLMResponse,
    Script,
    call,
    conversation,
    error,
    make_provider,
    shaped,
)

unix = pytest.mark.skipif(sys.platform == "win32", reason="of Unix")
Heard = list[TelemetryEvent]


@pytest.fixture
def heard() -> Iterator[Heard]:
    """The events of a test, without content."""
    events: Heard = []
    stop = subscribe(events.append)
    yield events
    stop()


def retry(number: int = 2) -> RetryEvent:
    return RetryEvent(model="m", session=None, attempt=number, tokens=10, max_tokens=None)


def kinds(events: Heard) -> list[str]:
    return [event.kind for event in events]


# Listening ---------------------------------------------------------------------------------------


def test_a_listener_hears_everything_until_it_stops() -> None:
    first, second = Heard(), Heard()
    stop, stop_second = subscribe(first.append), nanobot_context.subscribe(second.append)
    emit(retry(2))
    stop()
    stop()
    emit(retry(3))
    stop_second()
    emit(retry(4))
    assert first == [second[0]]
    assert [event.to_dict()["attempt"] for event in second] == [2, 3]


def test_the_same_callback_twice_is_two_listeners() -> None:
    events = Heard()
    stops = [subscribe(events.append) for _ in range(2)]
    emit(retry())
    stops[0]()
    emit(retry())
    stops[1]()
    assert len(events) == 3


def test_a_listener_that_raises_is_logged_once_and_stops_nobody(
    heard: Heard, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(event: TelemetryEvent) -> None:
        raise RuntimeError("on purpose")

    stop, late = subscribe(fail), Heard()
    stop_late = subscribe(late.append)
    for _ in range(3):
        emit(retry())
    stop()
    stop_late()
    assert len(heard) == len(late) == 3
    assert caplog.text.count("a listener to events failed") == 1
    assert caplog.text.count("RuntimeError: on purpose") == 1


@pytest.mark.parametrize("wrong", ["x", 1, [], None])
def test_what_is_no_function_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="`callback` must be a function"):
        subscribe(wrong)


def test_a_coroutine_function_is_refused_because_nobody_would_wait_for_it() -> None:
    async def listen(event: TelemetryEvent) -> None: ...

    with pytest.raises(InvalidArgumentError, match="queue") as caught:
        subscribe(listen)
    assert caught.value.argument == "callback"
    assert not is_wanted(RetryEvent)


def test_content_is_made_once_and_only_for_those_who_asked(heard: Heard) -> None:
    made = []

    def content() -> dict[str, Any]:
        made.append(1)
        return {"text": "secret"}

    emit(retry(), content)
    assert made == []
    asked: list[Heard] = [[], []]
    stops = [subscribe(events.append, include_content=True) for events in asked]
    emit(retry(), content)
    for stop in stops:
        stop()
    assert made == [1]
    assert [event.content for events in asked for event in events] == [{"text": "secret"}] * 2
    assert [event.content for event in heard] == [None, None]
    assert "content" not in heard[0].to_dict()
    assert asked[0][0].to_dict()["content"] == {"text": "secret"}


def test_an_event_begins_with_its_session_its_time_and_its_kind() -> None:
    event = RetryEvent(model="m", session="cli:direct", attempt=2, tokens=10, max_tokens=99)
    assert list(event.to_dict()) == [
        *("session", "at", "kind", "model", "attempt", "tokens", "max_tokens"),
    ]
    assert event.to_dict() | {"at": ""} == {
        **{"session": "cli:direct", "at": "", "kind": "retry", "model": "m"},
        **{"attempt": 2, "tokens": 10, "max_tokens": 99},
    }
    assert event.at.endswith("+00:00")
    assert len(event.at) == len("2026-01-02T03:04:05.678+00:00")


def test_an_event_has_the_session_of_the_current_task() -> None:
    def told() -> str | None:
        current_session.set("cli:one")
        return RetryEvent(attempt=2, tokens=1, max_tokens=None).session

    assert copy_context().run(told) == "cli:one"
    assert RetryEvent(attempt=2, tokens=1, max_tokens=None).session is None


# The log -----------------------------------------------------------------------------------------


def test_the_log_has_a_line_with_the_fields_of_each_event(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "nanobot_context.events"):
        emit(retry(), lambda: {"text": "secret"})
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("nanobot_context.events", "INFO")
    assert record.getMessage() == "attempt 2 with 10 tokens (session None, model m)"
    assert record.__dict__["nanobot_context"]["kind"] == "retry"
    assert "content" not in record.__dict__["nanobot_context"]


@pytest.mark.parametrize(
    ("event", "level"),
    [(CompressedEvent, "DEBUG"), (AnsweredEvent, "DEBUG"), (OverflowEvent, "INFO")],
)
def test_what_happens_in_every_request_is_logged_at_debug_only(
    caplog: pytest.LogCaptureFixture, event: type[TelemetryEvent], level: str
) -> None:
    assert not is_wanted(event), "an ordinary program logs warnings"
    with caplog.at_level(logging.INFO, "nanobot_context.events"):
        assert is_wanted(event) == (level == "INFO")
    with caplog.at_level(logging.DEBUG, "nanobot_context.events"):
        assert is_wanted(event)


# The file ----------------------------------------------------------------------------------------


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_file_has_one_line_for_each_event(tmp_path: Path) -> None:
    file = LineFile(tmp_path / "logs" / "events.jsonl", 10_000)
    odd = "cli:\u2028\ud800\n\x00中"
    events = [retry(2), RetryEvent(session=odd, attempt=3, tokens=1, max_tokens=None)]
    for event in events:
        file.write(event.to_dict())
    assert lines(file.path) == [event.to_dict() for event in events]
    if sys.platform != "win32":
        assert file.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_that_nobody_reads_is_not_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    os.mkfifo(tmp_path / "events.jsonl")
    file = LineFile(tmp_path / "events.jsonl", 1_000)
    file.write({"number": 1})
    assert list(file.lines()) == []
    assert "events cannot be written" in caplog.text


def test_the_file_is_put_aside_when_it_is_full_and_three_older_ones_are_kept(
    tmp_path: Path,
) -> None:
    file = LineFile(tmp_path / "events.jsonl", 1_000)
    for number in range(100):
        file.write(retry(number).to_dict())
    names = [path.name for path in sorted(tmp_path.iterdir()) if path.suffix != ".lock"]
    assert names == [*("events.jsonl", "events.jsonl.1", "events.jsonl.2", "events.jsonl.3")]
    assert all((tmp_path / name).stat().st_size <= 1_000 for name in names)
    kept = [line["attempt"] for name in reversed(names) for line in lines(tmp_path / name)]
    assert kept == list(range(100 - len(kept), 100))
    assert len(kept) > 20


def test_an_event_that_is_larger_than_the_file_may_be_is_written_all_the_same(
    tmp_path: Path,
) -> None:
    file = LineFile(tmp_path / "events.jsonl", 10)
    file.write(retry(1).to_dict())
    file.write(retry(2).to_dict())
    assert [line["attempt"] for line in lines(file.path)] == [2]
    assert [line["attempt"] for line in lines(tmp_path / "events.jsonl.1")] == [1]


WRITER = """
import sys
from pathlib import Path
from nanobot_context.events import RetryEvent
from nanobot_context.guard.line_file import LineFile
file = LineFile(Path(sys.argv[1]), int(sys.argv[2]))
for number in range(int(sys.argv[3]), int(sys.argv[3]) + 200):
    event = RetryEvent(model="m" * (number % 50), attempt=number, tokens=1, max_tokens=None)
    file.write(event.to_dict())
"""


def test_many_processes_and_threads_write_one_file_and_no_line_is_torn(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    run = [sys.executable, "-c", WRITER, str(path), "60000"]
    writers = [subprocess.Popen([*run, str(first)]) for first in (1000, 2000, 3000)]
    mine = LineFile(path, 60_000)
    threads = [threading.Thread(target=write_many, args=(mine, 4000 + 100 * n)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    files = [path, *(tmp_path / f"events.jsonl.{number}" for number in (1, 2, 3))]
    written = [line["attempt"] for file in files if file.exists() for line in lines(file)]
    assert (tmp_path / "events.jsonl.1").exists(), "it was put aside among all that"
    wanted = [first + n for first in (1000, 2000, 3000, 4000) for n in range(200)]
    assert sorted(written) == wanted


def write_many(file: LineFile, first: int) -> None:
    for number in range(first, first + 100):
        file.write(retry(number).to_dict())


FULL_DISK = """
import resource, sys
from pathlib import Path
from nanobot_context.events import RetryEvent
from nanobot_context.guard.line_file import LineFile
file = LineFile(Path(sys.argv[1]), 100_000)
for number in range(3):
    # The system writes a part of the line that crosses the limit, as on a disk that gets full.
    resource.setrlimit(resource.RLIMIT_FSIZE, (400, resource.RLIM_INFINITY))
    for _ in range(5):
        file.write(RetryEvent(model="m", attempt=number, tokens=1, max_tokens=None).to_dict())
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
file.write(RetryEvent(model="m", attempt=9, tokens=1, max_tokens=None).to_dict())
"""


@unix
def test_a_disk_that_gets_full_tears_no_line_and_is_logged_once(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, check=True
    )
    assert [line["attempt"] for line in lines(path)] == [0, 0, 9]
    assert done.stderr.count("events cannot be written to") == 1


@unix
def test_a_lock_that_nobody_lets_go_costs_neither_the_event_nor_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import fcntl

    monkeypatch.setattr("nanobot_context.guard.line_file._LOCK_SECONDS", 0.01)
    file = LineFile(tmp_path / "events.jsonl", 250)
    file.write(retry(2).to_dict())
    with (tmp_path / "events.jsonl.lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        for number in (3, 4, 5):
            file.write(retry(number).to_dict())
    assert [line["attempt"] for line in lines(file.path)] == [2, 3, 4, 5], "it grew on"
    file.write(retry(6).to_dict())
    assert [line["attempt"] for line in lines(file.path)] == [6]
    assert caplog.text == ""


def test_a_folder_in_the_way_is_logged_once_and_costs_no_call(
    tmp_path: Path,
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "events.jsonl").mkdir()
    install(classes, events="events.jsonl")
    answers = [LLMResponse("fine", usage={"prompt_tokens": 20}) for _ in range(3)]
    provider = make_provider(classes, Script(*answers))
    for answer in answers:
        assert call(provider, messages=conversation(2, 10)) is answer
    installer.uninstall()
    assert caplog.text.count("events cannot be written to") == 1


def test_the_event_loop_writes_nothing_and_waits_for_no_lock(
    tmp_path: Path,
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    monkeypatch: pytest.MonkeyPatch,
    heard: Heard,
) -> None:
    monkeypatch.setattr("nanobot_context.guard.counters._SAVE_SECONDS", 0.05)
    writers, write = set[int](), LineFile.write

    def noted(file: LineFile, value: dict[str, Any]) -> None:
        writers.add(threading.get_ident())
        write(file, value)

    monkeypatch.setattr(LineFile, "write", noted)
    install(classes, events="events.jsonl")
    file = tmp_path / "events.jsonl"
    with locked(tmp_path / "events.jsonl.lock", timeout_seconds=1):
        began = time.monotonic()
        for number in range(2, 102):
            emit(retry(number))
        assert time.monotonic() - began < 0.2
    deadline = time.monotonic() + 10
    while not file.exists() or len(lines(file)) < 100:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert lines(file) == [event.to_dict() for event in heard]
    assert writers
    assert threading.get_ident() not in writers


EMITTER = """
from nanobot_context.events import RetryEvent, emit
from nanobot_context.guard.telemetry import Telemetry
from nanobot_context.settings import Settings
Telemetry().open_file(Settings(events="events.jsonl"), folder)
emit(RetryEvent(model="parent", attempt=2, tokens=1, max_tokens=None))
def in_child():
    emit(RetryEvent(model="child", attempt=2, tokens=1, max_tokens=None))
"""


@unix
@pytest.mark.parametrize(
    ("how", "code", "models"),
    [
        ("ends", 0, ["parent"]),
        ("raises", 1, ["parent"]),
        ("killed", -9, ["parent"]),
        ("forks", 0, ["child", "parent"]),
    ],
)
def test_events_outlive_the_process_and_each_is_written_once(
    tmp_path: Path, how: str, code: int, models: list[str]
) -> None:
    assert exit_code(EMITTER, tmp_path, how) == code
    assert [line["model"] for line in lines(tmp_path / "events.jsonl")] == models


# The shim ----------------------------------------------------------------------------------------


def usage(**tokens: int) -> LLMResponse:
    return LLMResponse("fine", usage=tokens)


def test_a_request_that_was_made_to_fit_is_told_with_its_numbers(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str, heard: Heard
) -> None:
    install(shaped(classes, generation))
    messages = conversation(20, 300)
    script = Script(usage(prompt_tokens=4_000, completion_tokens=7))
    call(make_provider(classes, script), messages=messages, max_tokens=500)
    compressed, answered = heard
    assert isinstance(compressed, CompressedEvent)
    sent = script.sent[0]
    assert compressed.tokens_before == count_tokens(messages, "gpt-4o")
    assert compressed.tokens_after == count_tokens(sent, "gpt-4o") <= compressed.budget_tokens
    assert compressed.budget_tokens == WINDOW - int(WINDOW * 0.15)
    assert compressed.cuts == sum(not any(one is m for m in sent) for one in messages) > 0
    assert compressed.duration_us > 0
    assert (compressed.model, compressed.session) == ("gpt-4o", None)
    assert isinstance(answered, AnsweredEvent)
    assert answered.attempts == 1
    assert (answered.prompt_tokens, answered.completion_tokens) == (4_000, 7)
    assert answered.cached_tokens is None


def test_a_message_that_stands_in_a_request_twice_is_cut_once_or_twice(
    classes: NanobotClasses, install: Callable[..., installer.Status], heard: Heard
) -> None:
    install(classes)
    first, *rounds, last = conversation(2, 300)
    messages = [first, *rounds * 10, last]
    script = Script(LLMResponse("fine"))
    call(make_provider(classes, script), messages=messages)
    kept = sum(any(one is message for message in messages) for one in script.sent[0])
    compressed = heard[0]
    assert isinstance(compressed, CompressedEvent)
    assert compressed.cuts == len(messages) - kept > 0


def test_a_request_that_fits_is_only_told_to_be_answered(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str, heard: Heard
) -> None:
    install(shaped(classes, generation))
    call(make_provider(classes, Script(LLMResponse("fine"))), messages=conversation(2, 10))
    (answered,) = heard
    assert answered == AnsweredEvent(
        model="gpt-4o",
        at=answered.at,
        attempts=1,
        prompt_tokens=None,
        cached_tokens=None,
        completion_tokens=None,
    )


def test_an_overflow_its_lesson_and_its_repair_are_told_in_order(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str, heard: Heard
) -> None:
    install(shaped(classes, generation), context_window_override=None)
    script = Script(error(TOO_LONG), usage(prompt_tokens=5_000))
    messages = conversation(8, 150)
    call(make_provider(classes, script), messages=messages)
    assert kinds(heard) == ["overflow", "learned", "learned", "retry", "answered"]
    overflow, ratio, window, again, answered = heard
    assert isinstance(overflow, OverflowEvent)
    assert overflow.overflow_kind == "input"
    assert overflow.sent_tokens == count_tokens(messages, "gpt-4o")
    assert (overflow.limit_tokens, overflow.used_tokens, overflow.status) == (8_000, 9_000, None)
    assert isinstance(ratio, LearnedEvent)
    assert (ratio.what, ratio.script) == ("ratio", "western")
    assert ratio.value == installer.status().learned["gpt-4o"]["ratios"]["western"]  # type: ignore[index]
    assert isinstance(window, LearnedEvent)
    assert (window.model, window.what, window.value) == ("gpt-4o", "window_tokens", 8_000)
    assert isinstance(again, RetryEvent)
    assert (again.attempt, again.tokens) == (2, count_tokens(script.sent[1], "gpt-4o"))
    assert again.tokens < overflow.sent_tokens
    assert isinstance(answered, AnsweredEvent)
    assert answered.attempts == 2


class Refusal(RuntimeError):
    status_code = 413


def test_the_status_of_a_refusal_is_told(
    classes: NanobotClasses, install: Callable[..., installer.Status], heard: Heard
) -> None:
    install(classes)
    response = error(TOO_LONG)
    response.error_status_code = 400  # type: ignore[attr-defined]
    script = Script(Refusal(TOO_LONG), response, LLMResponse("fine"))
    call(make_provider(classes, script), messages=conversation(8, 150))
    told = [event.status for event in heard if isinstance(event, OverflowEvent)]
    assert told == [413, 400]


def test_when_nothing_helps_that_is_told_too(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str, heard: Heard
) -> None:
    install(shaped(classes, generation))
    script = Script(*[error(TOO_LONG)] * 4)
    call(make_provider(classes, script), messages=conversation(8, 150))
    assert kinds(heard)[-2:] == ["overflow", "gave_up"]
    assert kinds(heard).count("overflow") == 4
    assert heard[-1].to_dict()["limit_tokens"] == 8_000
    assert "answered" not in kinds(heard)


def test_an_error_that_is_no_overflow_is_no_event(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str, heard: Heard
) -> None:
    install(shaped(classes, generation))
    script = Script(error("Error: 500 the server had an error"))
    call(make_provider(classes, script), messages=conversation(2, 10))
    assert heard == []


@pytest.mark.parametrize(
    ("reported", "prompt", "cached"),
    [
        ({"prompt_tokens": 90, "cached_tokens": 60}, 90, 60),
        ({"input_tokens": 90, "cache_read_tokens": 0}, 90, 0),
        ({"prompt_tokens": 30, "cache_read_input_tokens": 60}, 90, 60),
        ({"prompt_tokens": 30, "cached_tokens": None}, 30, None),
        ({"cached_tokens": 60}, None, None),
        ({}, None, None),
    ],
)
def test_what_came_out_of_the_providers_cache_is_told_as_it_is_reported(
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    heard: Heard,
    reported: dict[str, Any],
    prompt: int | None,
    cached: int | None,
) -> None:
    install(classes)
    script = Script(LLMResponse("fine", usage=reported))
    call(make_provider(classes, script), messages=conversation(2, 10))
    (answered,) = heard
    assert isinstance(answered, AnsweredEvent)
    assert (answered.prompt_tokens, answered.cached_tokens) == (prompt, cached)


SECRET = "the launch code is alpha-bravo"


def all_told(classes: NanobotClasses) -> None:
    """Have a request compressed, refused, repaired, answered, and another one given up."""
    messages = conversation(20, 300)
    messages[2]["content"] = SECRET + messages[2]["content"]
    refusal = error(f"{TOO_LONG} It began with: {SECRET}")
    script = Script(refusal, usage(prompt_tokens=10), *[refusal] * 4)
    provider = make_provider(classes, script)
    for _ in range(2):
        call(provider, messages=messages)


def test_without_being_asked_no_event_has_a_word_of_the_conversation_or_of_an_error(
    tmp_path: Path,
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    heard: Heard,
    caplog: pytest.LogCaptureFixture,
) -> None:
    install(classes, events="events.jsonl")
    with caplog.at_level(logging.DEBUG, "nanobot_context.events"):
        all_told(classes)
    assert {"compressed", "overflow", "retry", "answered", "gave_up"} <= set(kinds(heard))
    installer.uninstall()
    written = (tmp_path / "events.jsonl").read_text()
    logged = [record for record in caplog.records if record.name == "nanobot_context.events"]
    assert len(heard) == len(logged) == written.count("\n")
    for text in (*map(repr, heard), *(str(record.__dict__) for record in logged), written):
        assert "alpha" not in text


def test_who_asks_gets_what_was_removed_what_came_in_its_place_and_the_errors(
    tmp_path: Path, classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes, events="logs/events.jsonl", events_include_content=True)
    all_told(classes)
    installer.uninstall()
    told = {
        line["kind"]: line["content"]
        for line in lines(tmp_path / "logs" / "events.jsonl")
        if "content" in line
    }
    assert SECRET in str(told["compressed"]["removed"])
    assert SECRET not in str(told["compressed"]["added"])
    assert told["compressed"]["added"][0]["role"] in ("user", "assistant")
    assert SECRET in told["overflow"]["error"]
    assert "refused the request" in told["gave_up"]["error"]


def test_what_came_with_a_prompt_that_was_cut_in_silence_is_no_error(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes)
    events = Heard()
    stop = subscribe(events.append, include_content=True)
    script = Script(usage(prompt_tokens=1_500, completion_tokens=7), LLMResponse("better"))
    call(make_provider(classes, script), messages=conversation(10, 180))
    stop()
    overflow = next(event for event in events if isinstance(event, OverflowEvent))
    assert overflow.overflow_kind == "silent"
    assert overflow.content == {"error": None}


def test_a_listener_that_changes_the_content_changes_nothing_that_is_sent(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    def spoil(event: TelemetryEvent) -> None:
        for message in (event.content or {}).get("added", []):
            message["content"] = "spoilt"

    install(classes)
    script = Script(LLMResponse("fine"))
    stop = subscribe(spoil, include_content=True)
    call(make_provider(classes, script), messages=conversation(20, 300))
    stop()
    assert "spoilt" not in str(script.sent)


def test_without_a_listener_no_event_is_made(
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = []
    for event in TelemetryEvent.__subclasses__():
        monkeypatch.setattr(event, "__init__", lambda *_, **__: made.append(1))
    install(classes)
    all_told(classes)
    assert made == []


def test_a_fault_of_ours_in_telling_costs_no_call(
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    heard: Heard,
) -> None:
    install(classes)
    answers = [LLMResponse("fine") for _ in range(2)]
    provider = make_provider(classes, Script(*answers))

    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(telemetry, "count_tokens", fail)
    for answer in answers:
        assert call(provider, messages=conversation(20, 300)) is answer
    assert caplog.text.count("could not report an event") == 1


def test_uninstalling_ends_the_file_and_not_the_listeners(
    tmp_path: Path, classes: NanobotClasses, install: Callable[..., installer.Status], heard: Heard
) -> None:
    install(classes, events="events.jsonl")
    emit(retry())
    installer.uninstall()
    emit(retry())
    assert len(lines(tmp_path / "events.jsonl")) == 1
    assert len(heard) == 2


def test_a_path_with_a_user_that_nobody_knows_is_a_folder_of_that_name(tmp_path: Path) -> None:
    assert telemetry.events_file("~no-such-user/e", tmp_path) == tmp_path / "~no-such-user" / "e"
    assert telemetry.events_file("/var/log/e", tmp_path) == Path("/var/log/e")
    assert telemetry.events_file("~/e", tmp_path) == Path.home() / "e"


@pytest.mark.parametrize(("path", "is_fine"), [("new/events.jsonl", True), ("taken/e", False)])
def test_the_doctor_says_when_the_file_cannot_be_written(
    tmp_path: Path,
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    path: str,
    is_fine: bool,
) -> None:
    (tmp_path / "taken").write_text("a file where the folder should be")
    status = install(classes, events=path)
    assert status.settings is not None
    findings = check_files(tmp_path / "config.json", status.settings)
    assert [str(tmp_path / path) in finding.problem for finding in findings] == [True] * (
        not is_fine
    )
    assert not (tmp_path / "new").exists()


# Sessions ----------------------------------------------------------------------------------------


@dataclass
class Message:
    """As `InboundMessage` of 0.1.3.post7, which knows of no override."""

    channel: str
    chat_id: str

    @property
    def session_key(self) -> str:
        return f"{self.channel}:{self.chat_id}"


@dataclass
class Overridden(Message):
    session_key_override: str | None = None

    @property
    def session_key(self) -> str:
        return self.session_key_override or super().session_key


@dataclass
class Input(Overridden):
    """As that of 0.3.5, in which a message of nanobot's own may be the user's input."""

    is_user_input: bool = True


SESSIONS: list[tuple[Any, str | None, str | None]] = [
    (Message("telegram", "7"), None, "telegram:7"),
    (Message("telegram", "7"), "heartbeat", "heartbeat"),
    (Message("system", "telegram:7"), None, "telegram:7"),
    (Message("system", "direct"), None, "cli:direct"),
    (Overridden("telegram", "7", "unified:default"), None, "unified:default"),
    (Overridden("system", "telegram:7", "telegram:7:topic"), None, "telegram:7:topic"),
    (Overridden("system", "telegram:7", "telegram:7:topic"), "cron:1", "cron:1"),
    (Input("system", "telegram:7", None, is_user_input=True), None, "system:telegram:7"),
    (Input("cli", "direct", None, is_user_input=False), None, "cli:direct"),
    (None, None, None),
]


@pytest.mark.parametrize(("message", "session_key", "expected"), SESSIONS)
def test_the_session_of_a_turn_is_the_one_that_nanobot_takes(
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    monkeypatch: pytest.MonkeyPatch,
    heard: Heard,
    message: Any,
    session_key: str | None,
    expected: str | None,
) -> None:
    class AgentLoop:
        async def _process_message(self, msg: Any, session_key: str | None = None) -> None:
            await provider.chat(messages=conversation(2, 10))
            # A subagent, or a consolidation.
            await asyncio.create_task(provider.chat(messages=conversation(2, 10)))

    for name in ("nanobot", "nanobot.agent", "nanobot.agent.loop"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(sys.modules["nanobot.agent.loop"], "AgentLoop", AgentLoop, raising=False)
    original = AgentLoop._process_message
    status = install(classes)
    named = {point.name.rpartition(".")[2]: point.state for point in status.points}
    assert named["_process_message"] == "patched"
    provider = make_provider(classes, Script(*[LLMResponse("fine")] * 3))

    async def scene() -> None:
        await AgentLoop()._process_message(message, session_key=session_key)
        await provider.chat(messages=conversation(2, 10))

    asyncio.run(scene())
    assert [event.session for event in heard] == [expected, expected, None]
    installer.uninstall()
    assert AgentLoop._process_message is original
