"""The record of real requests: what it holds, who may write it, and how large it gets."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nanobot_context import count_tokens, installer
from nanobot_context._core import loaded_vocabularies
from nanobot_context.guard.counters import counters_file
from nanobot_context.guard.guard import subagent
from nanobot_context.guard.record import RequestRecord
from nanobot_context.guard.record_file import read_records, record_file
from nanobot_context.host.detect import NanobotClasses
from nanobot_context.host.message_keys import message_key
from nanobot_context.message_texts import message_text
from shim_classes import (
    TOO_LONG,
    LLMResponse,
    Script,
    call,
    consolidation,
    conversation,
    error,
    make_provider,
    streaming_provider,
    with_stream,
)


def recorded(folder: Path) -> list[RequestRecord]:
    """Return what is recorded once everything is saved."""
    installer.uninstall()
    return read_records(folder / "config.json")


def answer(prompt_tokens: int) -> LLMResponse:
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 7}
    return LLMResponse("fine", usage=usage)


def test_a_request_that_fits_is_recorded_with_the_numbers_of_the_provider(
    tmp_path: Path, classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes, context_window_override=50_000)
    loaded = loaded_vocabularies()
    call(make_provider(classes, Script(answer(4_321))), messages=conversation(3, 300))
    (record,) = recorded(tmp_path)
    assert loaded_vocabularies() == loaded, "nothing was counted"
    assert record.tokens_before == record.tokens_after == record.prompt_tokens == 4_321
    assert (record.outcome, record.completion_tokens) == ("answered", 7)
    assert (record.window_tokens, record.cuts, record.gone) == (50_000, (), ())
    assert 0 < record.fixed_tokens < 4_321
    assert record.answer_tokens >= 7_500


def test_a_refusal_and_what_was_sent_then_are_recorded(
    tmp_path: Path, classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes, context_window_override=50_000)
    script = Script(error(TOO_LONG), answer(6_000))
    messages = conversation(20, 600)
    call(make_provider(classes, script), messages=messages)
    (record,) = recorded(tmp_path)
    first, second = record.attempts
    assert (first.refused, second.refused, second.tokens) == ("input", None, 6_000)
    assert first.limit_tokens == record.window_tokens
    assert record.window_source == "the server said so"
    assert record.refusals == (first,)
    assert record.cut_messages == len({cut.index for cut in record.cuts}) > 0
    # What is quoted before the question is joined to the message before it.
    shortened = [cut for cut in record.cuts if cut.reason != "joined"]
    assert all(cut.tokens_after < cut.tokens_before for cut in shortened)
    assert all(messages[cut.index - 1]["role"] == cut.role for cut in record.cuts)


def test_all_tokens_of_a_record_are_the_providers(
    tmp_path: Path, classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes, context_window_override=6_000)
    messages = conversation(20, 600)
    # A provider that counts twice what this package does.
    call(make_provider(classes, Script(answer(8_000))), messages=messages)
    counts = installer.status().counters
    (record,) = recorded(tmp_path)
    assert record.is_shortened
    assert record.tokens_after == record.prompt_tokens == 8_000
    assert sum(cut.tokens_before for cut in record.cuts) <= record.tokens_before
    assert sum(cut.tokens_after for cut in record.cuts) <= record.tokens_after
    assert counts is not None
    assert counts.tokens_saved == record.tokens_before - record.tokens_after


def test_what_was_cut_is_counted_as_the_provider_counts_the_rest(
    tmp_path: Path, classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    system = {"role": "system", "content": "You help with whatever is asked. " * 200}
    fixed = count_tokens([system], "gpt-4o")

    def theirs(messages: list[Any]) -> int:
        # Twice as many of what is in each request, as of tool schemas in JSON, and less of text.
        return 2 * fixed + round((count_tokens(messages, "gpt-4o") - fixed) * 0.75)

    class Counting(Script):
        def next(self, messages: list[Any], max_tokens: int) -> LLMResponse:
            self.sent.append(messages)
            return answer(theirs(messages))

    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    said += conversation(20, 600)[1:]
    asked = [[system, *said[:count]] for count in (1, 5, 43)]
    for messages in asked:
        # Each is of a process of its own.
        install(classes, context_window_override=9_000)
        call(make_provider(classes, Counting()), messages=messages)
        installer.uninstall()
    records = recorded(tmp_path)
    assert [record.is_shortened for record in records] == [False, False, True]
    for record, messages in zip(records, asked, strict=True):
        assert record.tokens_before == pytest.approx(theirs(messages), rel=0.02)
        assert record.fixed_tokens == pytest.approx(2 * fixed, rel=0.02)
    cut = records[-1].cuts[0]
    each = count_tokens([asked[-1][cut.index - 1]], "gpt-4o")
    assert cut.tokens_before == pytest.approx(each * 0.75, rel=0.05)


def test_a_damaged_file_of_records_costs_its_lines_alone(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    file = record_file(config)
    known = ("cli:a", False, "m", "m at host", 9_000, "x", 5_000, 2, 3, 5_100, ())
    good = RequestRecord("2026-01-01", *known, outcome="answered").to_dict()
    file.write(good)
    with file.path.open("ab") as lines:
        for wrong in ({"tokens_before": "abc"}, {"at": 5}, {"window_tokens": -1e999}):
            lines.write(json.dumps(good | wrong).encode() + b"\n")
        lines.write(b"\xff\xfe not UTF-8\n")
        # A power cut left half a line: the next one is whole.
        lines.write(b'{"at": "2026-11-26T05:2')
    file.write(good | {"at": "2026-01-02"})
    assert [one.at for one in read_records(config)] == ["2026-01-01", "2026-01-02"]


def test_what_is_in_every_request_is_told_by_a_refusal_and_an_answer(
    tmp_path: Path, classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    system = {"role": "system", "content": "You help with whatever is asked. " * 200}
    fixed = count_tokens([system], "gpt-4o")

    class Refusing(Script):
        def next(self, messages: list[Any], max_tokens: int) -> LLMResponse:
            # A fifth more of what is in each request.
            tokens = count_tokens(messages, "gpt-4o") + fixed // 5
            if tokens <= 9_000:
                return answer(tokens)
            limit = "This model's maximum context length is 9000 tokens. However, your messages"
            return error(f"{limit} resulted in {tokens} tokens.")

    install(classes, context_window_override=50_000)
    messages = [system, *conversation(40, 600)[1:]]
    call(make_provider(classes, Refusing()), messages=messages, model="gpt-4o")
    (record,) = recorded(tmp_path)
    assert [one.is_reported for one in record.attempts] == [True, True]
    assert record.fixed_tokens == pytest.approx(fixed * 1.2, rel=0.01)
    # It is less than nine tenths of what was counted.
    assert not record.is_fixed_known


def test_what_is_in_every_request_is_known_where_it_is_nearly_all(
    tmp_path: Path, classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes, context_window_override=50_000)
    system = {"role": "system", "content": "You help with whatever is asked. " * 200}
    for question in ("Hello?", "Say it again. " * 400):
        messages = [system, {"role": "user", "content": question}]
        script = Script(answer(count_tokens(messages, "gpt-4o")))
        call(make_provider(classes, script), messages=messages, model="gpt-4o")
    assert [record.is_fixed_known for record in recorded(tmp_path)] == [True, True]


def test_what_is_kept_free_for_the_answer_is_in_the_tokens_of_the_provider(
    tmp_path: Path, classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes, context_window_override=40_000)
    messages = conversation(20, 600)
    theirs = round(count_tokens(messages, "gpt-4o") * 1.3)
    for _ in range(6):
        script = Script(answer(theirs))
        call(make_provider(classes, script), messages=messages, model="gpt-4o")
    call(
        make_provider(classes, Script(answer(theirs))),
        messages=messages,
        model="gpt-4o",
        max_tokens=8_192,
    )
    records = recorded(tmp_path)
    assert [record.answer_tokens for record in records] == [6_000] * 6 + [8_192]
    assert script.limits == [4_096]


def test_a_subagent_has_its_own_number_of_what_is_in_each_request(tmp_path: Path) -> None:
    def record(is_subagent: bool, fixed: int, size: int, before: int) -> dict[str, Any]:
        known = ("m", "m at host", 9_000, "x", fixed, 2, 3, before, ())
        begun = ("2026-01-01", "cli:a", is_subagent, *known)
        return RequestRecord(*begun, "answered", before, fixed_bytes=size).to_dict()

    file = record_file(tmp_path / "config.json")
    for line in (record(False, 7_990, 32_000, 8_000), record(True, 4_900, 16_000, 5_000)):
        file.write(line)
    assert [one.fixed_tokens for one in read_records(tmp_path / "config.json")] == [7_990, 4_900]


def test_what_is_in_each_request_has_one_number(
    tmp_path: Path, classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    # What follows is of another script: bytes say less of tokens with each request.
    system = {"role": "system", "content": "You help with whatever is asked. " * 200}
    tools = [{"type": "function", "function": {"name": "read", "description": "Reads. " * 90}}]
    said = [message for message in conversation(40, 300) if message["role"] != "system"]
    for count, tokens in ((1, 2_000), (5, 3_111), (41, 7_456)):
        # Each is of a process of its own, the last of one that has counted before.
        install(classes, context_window_override=9_000)
        if tokens == 7_456:
            count_tokens([system], "gpt-4o")
        script = Script(answer(tokens))
        call(make_provider(classes, script), messages=[system, *said[:count]], tools=tools)
        installer.uninstall()
    records = recorded(tmp_path)
    assert len(records) == 3
    assert len({(record.fixed_tokens, record.tools) for record in records}) == 1
    # As in the first, of which they are nearly all.
    assert 1_500 < records[0].fixed_tokens < 2_000


def test_what_was_added_to_each_request_is_all_that_its_number_grows_by(tmp_path: Path) -> None:
    def record(at: str, fixed: int, size: int, before: int) -> dict[str, Any]:
        known = ("cli:a", False, "m", "m at host", 9_000, "x", fixed, 2, 3, before, ())
        return RequestRecord(at, *known, "answered", before, fixed_bytes=size).to_dict()

    file = record_file(tmp_path / "config.json")
    for line in (
        record("2026-01-01", 5_000, 20_000, 5_100),
        record("2026-01-02", 3_900, 20_000, 90_000),
        record("2026-01-03", 7_100, 20_040, 80_000),
        record("2026-01-04", 4_000, 20_000, 4_200) | {"prompt_tokens": None},
    ):
        file.write(line)
    assert [one.fixed_tokens for one in read_records(tmp_path / "config.json")] == [
        *(5_000, 5_000, 5_010, 4_200)
    ]


def test_an_image_is_no_part_of_what_is_in_each_request(
    tmp_path: Path, classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes, context_window_override=50_000)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    shown = {"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}
    system: dict[str, Any] = {
        "role": "system",
        "content": "You help with whatever is asked. " * 20,
    }
    messages = [system, shown]
    script = Script(answer(count_tokens(messages, "gpt-4o")))
    call(make_provider(classes, script), messages=messages, model="gpt-4o")
    (record,) = recorded(tmp_path)
    assert abs(record.fixed_tokens - count_tokens([system], "gpt-4o")) < 20


def test_a_cut_says_what_of_its_message_was_sent(
    tmp_path: Path, classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes, context_window_override=6_000)
    messages = conversation(20, 600)
    script = Script(answer(4_000))
    call(make_provider(classes, script), messages=messages)
    (record,) = recorded(tmp_path)
    sent = "".join(str(message["content"]) for message in script.sent[0])
    shortened = [cut for cut in record.cuts if cut.tokens_after]
    for cut in shortened:
        text = message_text(messages[cut.index - 1])
        assert cut.chars == len(text)
        for start, stop in zip(cut.kept[::2], cut.kept[1::2], strict=True):
            assert text[start:stop] in sent
    left_out = [cut.index for cut in record.cuts if not cut.tokens_after]
    assert shortened or left_out
    runs = [run.partition("-") for run in record.left_out.split(",") if run]
    assert left_out == [
        index for first, _, last in runs for index in range(int(first), int(last or first) + 1)
    ]
    assert len(record.roles) == len(messages)
    assert record.anchor_key == message_key(messages[record.anchor - 1]) != ""


def test_a_prompt_cut_in_silence_is_not_called_refused(
    tmp_path: Path,
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    caplog: pytest.LogCaptureFixture,
) -> None:
    install(classes)
    script = Script(answer(1_500), LLMResponse("better"))
    call(make_provider(classes, script), messages=conversation(10, 180))
    (record,) = recorded(tmp_path)
    first = record.attempts[0]
    assert (first.refused, first.limit_tokens) == ("silent", 1_500)
    assert "the provider read 1,500 of about" in caplog.text
    assert "refused" not in caplog.text


def test_an_answer_that_stands_is_recorded_with_all_that_was_sent(
    tmp_path: Path, classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(with_stream(classes), context_window_override=None)
    messages = conversation(10, 180)
    call(
        streaming_provider(classes, Script(answer(1_500))),
        messages=messages,
        on_content_delta=print,
    )
    (record,) = recorded(tmp_path)
    (only,) = record.attempts
    assert (only.refused, only.limit_tokens) == ("silent", 1_500)
    assert record.tokens_before == only.tokens == count_tokens(messages, "gpt-4o")
    assert record.numbers["overflows"] == record.numbers["retries_succeeded"] == 1


def test_what_the_counts_say_is_the_sum_of_the_record(
    tmp_path: Path, classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes, context_window_override=6_000)
    script = Script(answer(900), error(TOO_LONG), answer(2_000), error("bad key"))
    provider = make_provider(classes, script)
    for messages in (conversation(2, 100), conversation(20, 600), conversation(2, 100)):
        call(provider, messages=messages)
    counts = installer.status().counters
    assert counts is not None
    records = recorded(tmp_path)
    assert [record.outcome for record in records] == ["answered", "answered", "failed"]
    assert counts.requests == len(records)
    assert counts.overflows == sum(len(record.refusals) for record in records) == 1
    assert counts.prompt_tokens == sum(record.prompt_tokens or 0 for record in records)
    assert counts.compressions == sum(record.cut_messages > 0 for record in records) == 1


@pytest.mark.parametrize("end", [asyncio.CancelledError, GeneratorExit, KeyboardInterrupt])
def test_a_call_that_is_stopped_before_its_answer_has_not_failed(
    tmp_path: Path,
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    end: type[BaseException],
) -> None:
    install(classes)
    provider = make_provider(classes, Script(end()))
    with subagent(), pytest.raises(end):
        call(provider, messages=conversation(2, 100))
    (record,) = recorded(tmp_path)
    assert (record.outcome, record.is_subagent) == ("interrupted", True)


def test_the_record_holds_names_and_numbers_and_no_text(
    tmp_path: Path, classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes, context_window_override=6_000)
    said = "the quick brown fox looks at /srv/app/config-17.yaml "
    messages = conversation(20, 600)
    messages[1]["content"] = said * 60
    keys = [
        "ghp_abcdefghijklmnop0123",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCY00EXAMPLE",
        "sk-proj-0a1b2c3d4e5f",
    ]
    failed = "ERROR patient Hans Mueller 7 positive"
    many = [f"ghp_{number:024}" for number in range(400)]
    messages[3]["content"] = "\n".join([*keys, failed, *many])
    call(make_provider(classes, Script(answer(900))), messages=messages)
    (record,) = recorded(tmp_path)
    assert record.gone_names >= len(record.gone)
    text = json.dumps(record.to_dict())
    assert "quick brown" not in text
    assert "Hans" not in text
    assert all(key[-12:] not in text for key in keys)
    assert "ghp_…" in record.gone, record.gone
    assert str(messages[-1]["content"])[:40] not in text


def test_counting_begins_with_the_first_request_not_with_its_answer(
    tmp_path: Path, classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    class Slow(Script):
        def next(self, messages: list[Any], max_tokens: int) -> Any:
            time.sleep(1.1)
            return super().next(messages, max_tokens)

    install(classes)
    call(make_provider(classes, Slow(answer(900))), messages=conversation(2, 100))
    counts = installer.status().counters
    (record,) = recorded(tmp_path)
    assert counts is not None
    assert counts.since == f"{record.at[:19]}+00:00"


def test_a_failure_to_record_is_counted_and_costs_no_call(
    tmp_path: Path,
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("on purpose")

    install(classes)
    monkeypatch.setattr("nanobot_context.guard.ended.Ended.record", fail)
    assert (
        call(make_provider(classes, Script(answer(9))), messages=conversation(2, 100)).content
        == "fine"
    )
    counts = installer.status().counters
    assert counts is not None
    assert (counts.requests, counts.failures) == (1, 1)
    assert recorded(tmp_path) == []


def test_a_consolidation_that_was_shortened_is_recorded(
    tmp_path: Path, classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes, context_window_override=8_000)
    messages = consolidation(40, 600)
    script = Script(answer(3_000))
    call(make_provider(classes, script), messages=messages)
    assert len(script.sent[0][1]["content"]) < len(messages[1]["content"]) / 2
    (record,) = recorded(tmp_path)
    assert (record.outcome, record.prompt_tokens) == ("answered", 3_000)
    (cut,) = record.cuts
    assert (cut.index, cut.role, cut.reason) == (2, "user", "long_message")
    assert (cut.tokens_before > 2 * cut.tokens_after > 0, record.cut_messages) == (True, 1)
    assert record.tokens_before > 2 * record.tokens_after


def test_reasoning_that_was_put_back_is_no_cut(
    tmp_path: Path, classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes)
    wants_it = "The `reasoning_content` in the thinking mode must be passed back to the API."
    script = Script(error(wants_it), answer(3_000))
    call(make_provider(classes, script), messages=conversation(3, 20))
    assert len(str(script.sent[1])) > len(str(script.sent[0]))
    (record,) = recorded(tmp_path)
    assert (record.outcome, record.cuts, record.cut_messages) == ("answered", (), 0)


def test_a_line_that_is_torn_or_of_another_version_hides_no_other(tmp_path: Path) -> None:
    file = record_file(tmp_path / "config.json")
    file.path.parent.mkdir()
    mine = RequestRecord(
        *("2026-01-02", "cli:a", False, "m", "m", 9, "x", 1, 2, 3, 4, (), "failed")
    )
    lines = ["{", "[]", '{"at": "2026", "later": 1}', json.dumps(mine.to_dict())]
    file.path.write_text("\n".join(lines), encoding="utf-8")
    assert read_records(tmp_path / "config.json") == [mine]
    assert read_records(tmp_path / "config.json", "cli:b") == []


WRITER = """
import sys
import time
from pathlib import Path
from nanobot_context.guard.guard import subagent
from nanobot_context.guard.record import RequestRecord
from nanobot_context.guard.record_file import record_file
file = record_file(Path(sys.argv[1]))
for number in range(400):
    name = f"{sys.argv[2]}-{number}"
    record = RequestRecord("2026", "s", False, name, "m", 9, "x", 1, 2, 3, 4, (), "failed",
        gone=("n" * 80,) * 20)
    file.write(record.to_dict())
"""


def test_gateways_record_at_once_in_a_ring_of_bounded_size_that_only_the_owner_reads(
    tmp_path: Path,
) -> None:
    config = tmp_path / "config.json"
    run = [sys.executable, "-c", WRITER, str(config)]
    writers = [subprocess.Popen([*run, name]) for name in ("a", "b", "c")]
    assert [writer.wait(120) for writer in writers] == [0, 0, 0]
    files = record_file(config).files()
    assert len(files) == 2
    assert sum(file.stat().st_size for file in files) <= 2 << 20
    for name in ("a", "b", "c"):
        kept = [
            record.model for record in read_records(config) if (record.model or "").startswith(name)
        ]
        first = 400 - len(kept)
        assert kept == [f"{name}-{number}" for number in range(first, 400)], "the newest"
    if sys.platform != "win32":
        assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_without_nanobots_folder_nothing_is_recorded(
    tmp_path: Path,
    classes: NanobotClasses,
    install: Callable[..., installer.Status],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(installer, "nanobot_config_path", lambda: tmp_path / "no" / "config.json")
    install(classes)
    call(make_provider(classes, Script(answer(9))), messages=conversation(2, 100))
    installer.uninstall()
    assert not (tmp_path / "no").exists()
    assert not counters_file(tmp_path / "no" / "config.json").exists()


def test_tokens_that_nobody_reports_are_counted(
    tmp_path: Path, classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes)
    messages = conversation(3, 300)
    call(make_provider(classes, Script(LLMResponse("fine"))), messages=messages, model="gpt-4o")
    (record,) = recorded(tmp_path)
    assert record.tokens_before == record.tokens_after == count_tokens(messages, "gpt-4o")
    assert record.prompt_tokens is None


def test_the_largest_tools_are_named_with_their_share(
    tmp_path: Path, classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes, context_window_override=50_000)
    tools = [
        {"type": "function", "function": {"name": name, "description": "What it does. " * size}}
        for name, size in (("small", 1), ("large", 300), ("middle", 60))
    ]
    provider = make_provider(classes, Script(answer(2_000)))
    call(provider, messages=conversation(2, 50), tools=tools)
    (record,) = recorded(tmp_path)
    assert [name for name, _ in record.tools] == ["large", "middle", "small"]
    assert sum(tokens for _, tokens in record.tools) <= record.fixed_tokens
    assert record.tools[0][1] > record.fixed_tokens / 2
