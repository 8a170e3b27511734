"""What a nanobot counts, over all its processes, and where that is kept."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nanobot_context import count_tokens, installer
from nanobot_context.guard.counters import Counters, Counts, counters_file
from nanobot_context.guard.record_file import read_records
from nanobot_context.host.detect import NanobotClasses
from shim_classes import (
    TOO_LONG,
    LLMResponse,
    Script,
    call,
    conversation,
    error,
    make_provider,
    shaped,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return counters_file(tmp_path / "config.json")


def saved(file: Path) -> dict[str, Any]:
    counts: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return counts


def numbers(counts: Counts | None) -> dict[str, int]:
    """Return what is not 0."""
    assert counts is not None
    return {name: n for name, n in counts.to_dict().items() if name != "since" and n}


def test_a_count_that_nobody_knows_is_a_mistake(file: Path) -> None:
    with pytest.raises(KeyError, match="miracles"):
        Counters(file).add(miracles=1)


def test_processes_add_up_what_they_count(file: Path) -> None:
    first, second = Counters(file), Counters(file)
    first.add(requests=2, tokens_saved=70)
    second.add(requests=1, overflows=1)
    assert numbers(first.total()) == {"requests": 2, "tokens_saved": 70}
    for _ in range(2):
        first.save()
        second.save()
    expected = {"requests": 3, "tokens_saved": 70, "overflows": 1}
    assert numbers(first.total()) == numbers(second.total()) == expected
    first.add(requests=1)
    assert numbers(first.total()) == expected | {"requests": 4}
    assert numbers(second.total()) == expected
    first.close()
    assert numbers(second.total()) == expected | {"requests": 4}


def test_the_beginning_is_the_earliest_of_all(file: Path) -> None:
    early, late = "2026-01-02T03:04:05+00:00", "2026-02-02T03:04:05+00:00"
    assert Counts(late, requests=1).plus(Counts(early)) == Counts(early, requests=1)
    assert Counts(None).plus(Counts(late)).since == late
    assert Counts().plus(Counts()).since is None
    counters = Counters(file)
    assert counters.total() == Counts()
    counters.add(requests=1)
    since = counters.total().since
    assert since is not None
    assert since.endswith("+00:00")
    counters.close()
    assert saved(file)["since"] == since


def test_what_is_counted_is_saved_before_long_and_by_a_thread_of_its_own(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nanobot_context.guard.counters._SAVE_SECONDS", 0.0)
    counters = Counters(file)
    counters.add(requests=1)
    timer = counters._timer
    if timer is not None:
        timer.join(30)
    assert saved(file)["requests"] == 1
    counters.close()


def test_a_request_that_ends_while_others_are_saved_is_counted(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = SimpleNamespace(at="2026-01-01T00:00:00+00:00", is_subagent=False)
    ended: Any = SimpleNamespace(trace=trace, place="")
    counters = Counters(file)
    counters.add_request(ended)
    work_off = counters._work_off

    def and_one_more() -> None:
        work_off()
        counters.add_request(ended)

    with monkeypatch.context() as patch:
        patch.setattr(counters, "_work_off", and_one_more)
        counters.save()
    counters.close()
    assert saved(file)["requests"] == 2


WRITER = """
import sys
from pathlib import Path
from nanobot_context.guard.counters import Counters
counters = Counters(Path(sys.argv[1]))
for _ in range(20):
    counters.add(requests=1, prompt_tokens=7)
    counters.save()
counters.add(answers=1)
"""


def test_processes_that_save_at_once_lose_nothing_and_the_last_is_saved_at_exit(
    file: Path,
) -> None:
    run = [sys.executable, "-c", WRITER, str(file)]
    writers = [subprocess.Popen(run) for _ in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    total = Counters(file).total()
    assert numbers(total) == {"requests": 60, "prompt_tokens": 420, "answers": 3}


FORK = """
import os, sys
from pathlib import Path
from nanobot_context.guard.counters import Counters
counters = Counters(Path(sys.argv[1]))
counters.add(requests=1)
child = os.fork()
if not child and sys.argv[2] == "counts":
    counters.add(requests=10)
if child:
    os.waitpid(child, 0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
@pytest.mark.parametrize(("child", "expected"), [("idle", 1), ("counts", 11)])
def test_a_process_that_forks_is_counted_once(file: Path, child: str, expected: int) -> None:
    subprocess.run([sys.executable, "-c", FORK, str(file), child], check=True)
    assert saved(file)["requests"] == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"requests": "1"}',
        '{"requests": -1}',
        '{"requests": null}',
        '{"since": 3}',
        "[" * 100_000,
        "\udcff",
    ],
    ids=range(8),
)
def test_a_file_that_is_not_ours_is_made_anew(file: Path, text: str) -> None:
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8", errors="surrogateescape")
    counters = Counters(file)
    counters.add(requests=5)
    counters.close()
    assert saved(file)["requests"] == 5


@pytest.mark.parametrize("text", ["null", "[]", "5"])
def test_what_is_wrong_with_a_file_is_said(
    file: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    file.parent.mkdir()
    file.write_text(text)
    assert Counters(file).total() == Counts()
    assert "it must hold a JSON object, got " in caplog.text


def test_what_a_later_version_counts_does_not_void_the_rest(file: Path) -> None:
    file.parent.mkdir()
    file.write_text('{"since": null, "requests": 4, "miracles": 1}')
    assert Counters(file).total() == Counts(requests=4)


def test_a_file_that_cannot_be_written_is_logged_once_and_costs_no_count(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file.parent.write_text("a file where the folder should be")
    counters = Counters(file)
    for _ in range(3):
        counters.add(requests=1)
        counters.save()
    assert caplog.text.count("cannot be written") == 1
    file.parent.unlink()
    counters.close()
    assert saved(file)["requests"] == 3


def test_where_there_is_no_folder_of_nanobots_none_is_made(tmp_path: Path) -> None:
    counters = Counters(counters_file(tmp_path / "gone" / "config.json"))
    counters.add(requests=1)
    counters.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="modes are Unix's")
def test_only_the_owner_may_read_it(file: Path) -> None:
    counters = Counters(file)
    counters.add(requests=1)
    counters.close()
    assert {path.stat().st_mode & 0o777 for path in file.parent.iterdir()} == {0o600}


# The shim ----------------------------------------------------------------------------------------


def usage(**tokens: int) -> LLMResponse:
    return LLMResponse("fine", usage=tokens)


def tokens(messages: list[dict[str, Any]]) -> int:
    return count_tokens(messages, "gpt-4o")


def test_status_shows_what_this_nanobot_did(
    tmp_path: Path,
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    generation: str,
) -> None:
    assert install(shaped(classes, generation)).counters == Counts()
    long, short = conversation(20, 300), conversation(2, 10)
    answer = usage(prompt_tokens=4_000, completion_tokens=7, cached_tokens=3_000)
    script = Script(
        answer,
        *(error(TOO_LONG), answer),
        LLMResponse("of a provider that reports nothing"),
        *[error(TOO_LONG)] * 4,
        error("Error: 500 the server had an error"),
    )
    provider = make_provider(classes, script)
    refused = conversation(8, 150)
    for messages in (long, short, short, refused, short):
        call(provider, messages=messages)
    assert script.answers == []
    counters = installer.status().counters
    records = read_records(tmp_path / "config.json")
    # The first was made smaller before it was sent, the refused ones after.
    assert sum(record.is_shortened for record in records) == 3
    assert tokens(script.sent[7]) < tokens(script.sent[4]) == tokens(refused)
    assert numbers(counters) == {
        "requests": 5,
        "compressions": 3,
        "tokens_saved": sum(
            record.tokens_before - record.prompt_tokens
            for record in records
            if record.is_shortened and record.prompt_tokens
        ),
        "overflows": 5,
        "retries_succeeded": 1,
        "friendly_errors": 1,
        "answers": 2,
        "prompt_tokens": 8_000,
        "cached_tokens": 6_000,
        "completion_tokens": 14,
    }
    assert counters is not None
    assert installer.status().to_dict()["counters"] == counters.to_dict()


def test_the_next_process_shows_what_the_last_one_counted(
    tmp_path: Path, classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes)
    call(make_provider(classes, Script(LLMResponse("fine"))), messages=conversation(2, 10))
    installer.uninstall()
    assert installer.status().counters is None
    assert numbers(install(classes).counters) == {"requests": 1}
    counters_file(tmp_path / "config.json").unlink()
    assert installer.status().counters == Counts()


def test_what_is_counted_has_no_names_and_no_words(
    file: Path, classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes)
    call(make_provider(classes, Script(LLMResponse("fine"))), messages=conversation(20, 300))
    installer.uninstall()
    values = saved(file)
    since = values.pop("since")
    assert {type(value) for value in values.values()} == {int}
    assert Counts(since, **values).requests == 1
