"""What providers taught is used, kept and forgotten as it should be."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from endings import exit_code
from nanobot_context import count_tokens
from nanobot_context.cli.app import app
from nanobot_context.files import locked
from nanobot_context.guard.counted import Counted
from nanobot_context.guard.counters import Counters
from nanobot_context.guard.limits import ProviderLimits, learned_file, name_of
from nanobot_context.guard.ratios import Ratio, fixed_of, framing_of
from nanobot_context.guard.state_file import unreadable
from nanobot_context.guard.windows import WindowResolver
from nanobot_context.settings import LoadedSettings, Settings

NAME = "m at host:1/v1"


def ratio_of(learned: ProviderLimits, name: str) -> Ratio:
    return learned.of(name).ratios["western"]


def test_a_ratio_is_believed_after_three_counts_or_one_refusal() -> None:
    learned = ProviderLimits()
    for _ in range(2):
        learned.counted(NAME, "western", 10_000, 12_000)
        assert ratio_of(learned, NAME).used == 1.0
    learned.counted(NAME, "western", 10_000, 12_000)
    assert ratio_of(learned, NAME).used == 1.2
    learned.counted("other", "western", 10_000, 15_000, refused=True)
    assert ratio_of(learned, "other").used == 1.5
    assert learned.of("nobody").ratios == {}


def test_a_ratio_moves_in_steps_and_stays_within_bounds() -> None:
    learned = ProviderLimits()
    seen = []
    for theirs in [12_000, 12_100, 12_050, 12_150, 11_900, 12_000] * 5:
        learned.counted(NAME, "western", 10_000, theirs)
        seen.append(ratio_of(learned, NAME).used)
    assert set(seen[2:]) == {1.25}
    for _ in range(40):
        learned.counted(NAME, "western", 10_000, 90_000)
    assert ratio_of(learned, NAME).used == 2.0


def test_a_ratio_below_1_is_believed_late_and_stays_above_the_largest_count() -> None:
    learned = ProviderLimits()
    for number, theirs in enumerate([7_400, 7_700, 7_300, 7_500] * 3):
        learned.counted(NAME, "western", 10_000, theirs)
        assert ratio_of(learned, NAME).used == (1.0 if number < 7 else 0.85), number
    learned.counted(NAME, "western", 10_000, 9_100)
    assert ratio_of(learned, NAME).used == 1.0, "one prompt that counts more is enough"


def test_a_refusal_ends_a_ratio_below_1() -> None:
    learned = ProviderLimits()
    for _ in range(8):
        learned.counted(NAME, "western", 10_000, 7_400)
    assert ratio_of(learned, NAME).used == 0.8
    learned.counted(NAME, "western", 10_000, 11_800, refused=True)
    assert ratio_of(learned, NAME).used == 1.2


def test_far_less_than_half_again_is_no_count_of_what_was_read() -> None:
    learned = ProviderLimits()
    for _ in range(20):
        learned.counted(NAME, "western", 10_000, 5_900)
    assert learned.of(NAME).ratios == {}


def prompts(text: float, framing: float) -> list[tuple[int, int, int]]:
    """Return (ours, messages, theirs) of a growing conversation."""
    sizes = [(7_000, 2), (7_200, 6), (7_900, 14), (9_000, 30), (14_000, 34), (21_000, 80)]
    return [(ours, n, int(text * ours + framing * n)) for ours, n in sizes]


@pytest.mark.parametrize(("text", "framing"), [(1.0, 13), (1.2, 13), (0.8, 5)])
def test_framing_and_text_are_learned_apart(text: float, framing: int) -> None:
    learned = ProviderLimits()
    for ours, messages, theirs in prompts(text, framing):
        learned.counted(NAME, "western", ours, theirs, messages=messages)
    lesson = learned.of(NAME)
    assert lesson.framing_tokens == framing
    assert lesson.ratios["western"].average == pytest.approx(text, abs=0.01)
    assert lesson.ratios["western"].used == max(text, 1.0)


def test_texts_that_differ_are_no_framing() -> None:
    learned = ProviderLimits()
    for number, (ours, messages, theirs) in enumerate(prompts(1.1, 0)):
        uneven = int(theirs * (1.0, 1.03, 0.98, 1.04, 1.01, 0.97)[number])
        learned.counted(NAME, "western", ours, uneven, messages=messages)
    assert learned.of(NAME).framing_tokens == 0
    assert framing_of([(7_000, 2, 9_000)]) is None
    same = [(1_000 * n, 2 * n, 1_300 * n) for n in range(1, 9)]
    assert framing_of(same) is None, "what always grows together cannot be told apart"


def test_what_every_request_has_is_no_framing() -> None:
    learned = ProviderLimits()
    # As a server counts that takes 549 tokens less for the tool schemas.
    for ours, messages in [
        (6_330, 2),
        (7_561, 4),
        (8_791, 6),
        (10_022, 8),
        (18_152, 16),
        (17_775, 8),
    ]:
        learned.counted(NAME, "western", ours, ours - 549, messages=messages)
    assert learned.of(NAME).framing_tokens == 0


@pytest.mark.parametrize(("text", "fixed"), [(1.0, 1_350), (1.2, 1_350), (1.0, 0)])
def test_what_every_request_has_is_learned_apart_from_text(text: float, fixed: int) -> None:
    windows = WindowResolver(LoadedSettings(Settings()))
    # Tool schemas as JSON: they are most of the first prompts.
    for number in range(8):
        ours = 6_000 + number * 3_000
        theirs = int(text * ours) + fixed
        windows.counted("m", [message(f"{number}")] * (2 + 2 * number), ours, theirs)
    lesson = windows.learned.of("m")
    assert lesson.fixed_tokens == pytest.approx(fixed, abs=64)
    assert ratio_of(windows.learned, "m").used == text
    talk = [message("so")]
    assert windows.in_ours(120_000, "m", talk) == pytest.approx((120_000 - fixed) / text, rel=0.002)
    assert windows.in_theirs(100_000, "m", talk) == pytest.approx(100_000 * text + fixed, rel=0.002)


def test_texts_that_are_not_on_one_line_say_nothing_of_what_every_request_has() -> None:
    assert fixed_of([(7_000, 2, 9_000)] * 3, 0) is None
    assert fixed_of([(7_000 + n, 2, 9_000) for n in range(8)], 0) is None, "all of one size"
    uneven = [(5_000 * n, n, int(5_000 * n * (1.3, 1.0)[n % 2])) for n in range(1, 9)]
    assert fixed_of(uneven, 0) is None


def test_framing_that_was_taken_for_text_is_put_right() -> None:
    learned = ProviderLimits()
    learned.counted(NAME, "western", 10_000, 13_500, messages=270, refused=True)
    assert ratio_of(learned, NAME).used == 1.35
    for ours, messages, theirs in prompts(1.0, 13):
        learned.counted(NAME, "western", ours, theirs, messages=messages)
    assert learned.of(NAME).framing_tokens == 13
    assert ratio_of(learned, NAME).used == 1.0


def test_framing_is_there_in_the_next_process_and_is_not_lost_where_nothing_tells_it(
    tmp_path: Path,
) -> None:
    file = learned_file(tmp_path / "config.json")
    first = ProviderLimits.load(file)
    for _ in range(20):
        first.counted(NAME, "western", 10_000, 12_990, messages=230)
    for ours, messages, theirs in prompts(1.0, 13) * 3:
        first.counted(NAME, "western", ours, theirs, messages=messages)
    assert first.of(NAME).framing_tokens == 13
    second = ProviderLimits.load(file)
    assert second.to_dict() == first.to_dict()
    for number in range(1, 9):
        second.counted(NAME, "western", 1_000 * number, 1_026 * number, messages=2 * number)
    assert second.of(NAME).framing_tokens == 13


def message(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def test_what_a_provider_has_not_counted_yet_is_taken_as_we_count_it() -> None:
    windows = WindowResolver(LoadedSettings(Settings()))
    known = [message(f"part {number} " * 500) for number in range(8)]
    assert windows.in_ours_now(32_000, "house", known) == 32_000
    for count in range(1, 9):
        ours = count_tokens(known[:count], "house") + 7_000
        windows.counted("house", known[:count], ours, int(ours * 0.74))
    assert windows.ratio("house", known) == 0.8
    assert windows.in_ours_now(32_000, "house", known) == 40_000
    new = [*known, message("quite another text " * 2_000)]
    uncounted = count_tokens(new[8:], "house")
    room = windows.in_ours_now(32_000, "house", new)
    assert room < 40_000
    # However much of it the provider counts, up to our count, the whole stays within the window.
    assert uncounted + 0.8 * (room - uncounted) <= 32_000
    chinese = [message("好的。" * 2_000)]
    assert windows.in_ours_now(32_000, "house", chinese) == 32_000


def test_what_a_prompt_begins_with_is_known_from_the_first_report_on() -> None:
    windows = WindowResolver(LoadedSettings(Settings()))
    rules = {"role": "system", "content": "Be careful with what you are told. " * 900}

    def most(*said: str) -> tuple[int, int]:
        messages = [rules, *map(message, said)]
        ours = count_tokens(messages, "house")
        return windows.at_most_in_theirs(ours, "house", messages), ours

    bound, ours = most("Hello.")
    assert bound == ours
    sent = [rules, message("[at ten] Hello.")]
    windows.counted("house", sent, count_tokens(sent, "house"), int(ours * 0.74))
    # The newest message is saved in another form than it was sent in.
    bound, ours = most("Hello.", "Hi.", "How are you?")
    assert int(ours * 0.74) <= bound <= ours * 0.75
    # What is new is counted as higher than here as any vocabulary may.
    long = "zxqv " * 3_000
    bound, with_new = most("Hello.", long)
    assert bound >= with_new - ours + int(ours * 0.74)
    # A report of what was in no cache says little of what was sent.
    windows.counted("house", sent, count_tokens(sent, "house"), ours // 3)
    bound, ours = most("Hello.", "Hi.", "How are you?")
    assert bound == ours


def test_what_prompts_with_one_beginning_have_in_common_is_known_to_the_token() -> None:
    windows = WindowResolver(LoadedSettings(Settings()))
    rules = {"role": "system", "content": "Be careful with what you are told. " * 900}
    fixed = 7_000

    def sent(turn: int, texts: int) -> tuple[list[dict[str, str]], int, int]:
        # All is cut anew in each turn; the provider writes the tools shorter than they are here.
        talk = [message(f"part {number} of turn {turn} " * 300) for number in range(texts)]
        ours = count_tokens([rules, *talk], "house") + fixed
        return [rules, *talk], ours, ours - 1_100

    for turn, texts in enumerate((0, 2, 3, 2)):
        windows.counted("house", *sent(turn, texts))
    messages, ours, theirs = sent(9, 3)
    too_few = windows.at_most_in_theirs(ours, "house", messages)
    windows.counted("house", *sent(4, 3))
    bound = windows.at_most_in_theirs(ours, "house", messages)
    assert theirs <= bound <= theirs * 1.03 < too_few
    # However often the same prompt is counted, the smallest is not forgotten.
    for _ in range(40):
        windows.counted("house", *sent(4, 3))
    assert windows.at_most_in_theirs(ours, "house", messages) == bound
    # Sizes with another first message say nothing of this one.
    other = [message("Sum this up."), *messages[1:]]
    assert windows.at_most_in_theirs(ours, "house", other) >= ours


def test_reports_of_far_less_than_was_sent_make_no_prompt_small() -> None:
    windows = WindowResolver(LoadedSettings(Settings()))
    talk = [message(f"part {number} " * 500) for number in range(12)]
    for count in range(1, 12):
        ours = count_tokens(talk[:count], "house")
        windows.counted("house", talk[:count], ours, 100)
    ours = count_tokens(talk, "house")
    assert windows.at_most_in_theirs(ours, "house", talk) == ours


@pytest.mark.parametrize("before", [2, 4, 9])
def test_a_prompt_that_is_read_as_shorter_than_those_before_was_cut(before: int) -> None:
    windows = WindowResolver(LoadedSettings(Settings()))
    talk = [message(f"part {number} " * 500) for number in range(12)]
    for count in range(1, before + 2):
        windows.reported("m", talk[:count], 1_500 * count)
        windows.counted("m", talk[:count], 1_500 * count, 1_500 * count)
    longer = 1_500 * (before + 2)
    assert windows.counts_of("m").was_cut(talk[: before + 2], longer, longer * 6 // 10) is (
        before >= 4
    )
    # Of a provider whose reports have been of the rest before, that is one of them.
    for count, ours, theirs in ((2, longer, longer // 3), (3, longer + 1_500, longer // 4)):
        windows.reported("m", talk[: before + count], theirs)
        windows.counted("m", talk[: before + count], ours, theirs)
    assert not windows.counts_of("m").was_cut(talk[: before + 3], longer + 1_500, longer // 5)


def test_a_report_that_may_be_of_what_was_new_leaves_a_doubt_until_the_next() -> None:
    windows = WindowResolver(LoadedSettings(Settings()))
    log = message("GET /orders 200 OK " * 1_200)
    new = count_tokens([log], "m")
    talk: list[dict[str, str]] = [message("Be careful with what you are told. " * 2_000)]
    for turn in range(8):
        windows.reported("m", talk, 14_000 + 20 * turn)
        assert windows.could_cut_at("m", 14_000 + 20 * turn)
        talk = [*talk, message(f"And now? {turn}")]
    longer = [*talk, log]
    assert windows.counts_of("m").reports.are_of_all
    assert not windows.counts_of("m").could_be_cut(longer, new), "it may be what was in no cache"
    windows.reported("m", longer, new)
    # But that would be little of the next.
    assert windows.could_cut_at("m", new + 20)
    assert windows.counts_of("m").could_be_cut([*longer, message("And now?")], new + 20)


def test_a_prompt_that_was_not_counted_here_is_known_to_be_cut_as_well() -> None:
    windows = WindowResolver(LoadedSettings(Settings()))
    rules = {"role": "system", "content": "Be careful with what you are told. " * 900}
    talk = [rules]
    for turn in range(3):
        # The newest message is sent in another form than it is saved in.
        sent = [*talk, message(f"[at ten] Question {turn}?")]
        log = message(f"GET /orders/{turn} 200 OK " * 800)
        windows.reported("m", sent, 7_000 + 5_800 * turn)
        windows.reported("m", [*sent, log], 12_800 + 5_800 * turn)
        talk += [message(f"Question {turn}?"), log, {"role": "assistant", "content": "Fine."}]
        # What is new may be all that was reported.
        windows.reported("m", [*talk, message("Go on.")], 12_830 + 5_800 * turn)
    longer = [*talk, message("Go on."), message("And now?" * 100)]
    assert windows.counts_of("m").reports.reads_less(longer, 12_000)
    assert not windows.counts_of("m").reports.reads_less(longer, 24_000)
    # Others have other texts, and what is shorter may be read as less.
    assert not windows.counts_of("m").reports.reads_less(
        [message("Another talk. " * 5_000)], 12_000
    )
    assert not windows.counts_of("m").reports.reads_less(talk[:5], 12_000)
    # A template may leave earlier thoughts out.
    thought = {"role": "assistant", "content": "Fine.", "reasoning_content": "Well. " * 9_000}
    assert not windows.counts_of("m").reports.reads_less([*longer, thought], 12_000)


def test_a_prompt_that_is_read_as_the_shorter_one_before_was_cut() -> None:
    windows = WindowResolver(LoadedSettings(Settings()))
    counts = windows.counts_of("m")
    talk = [message("Be careful with what you are told. " * 2_000)]
    for turn in range(9):
        # By its length, too: what is missing of 14,000 tokens is less than one word in a hundred.
        windows.reported("m", talk, min(14_000 + 90 * turn, 14_600))
        talk += [message(f"Question {turn}, and some words more to read. " * 8)]
    assert counts.unread(talk, 14_600) >= 80
    assert counts.could_be_cut(talk, 14_600)
    assert not counts.could_be_cut(talk, 14_690)
    # Hardly more than before may be the same number by chance.
    assert not counts.unread([*talk[:-1], message("And now?")], 14_600)
    last = talk[-2]["content"]
    assert not counts.unread([*talk[:-2], message(f"{last} And now, please?")], 14_600)
    assert not counts.unread([message("Another talk. " * 9_000)], 14_600)
    # Who reports what was in no cache reports as much of each page of one size.
    rest = WindowResolver(LoadedSettings(Settings())).counts_of("m")
    for turn in range(4):
        rest.reports.add(talk[: 1 + turn], 14_000 if turn == 0 else 90)
    assert not rest.could_be_cut(talk[:5], 90)


def test_a_window_that_is_reported_again_and_again_is_no_report_of_what_was_new() -> None:
    def talked(pages: list[str]) -> tuple[Counted, list[dict[str, str]]]:
        reports = WindowResolver(LoadedSettings(Settings())).counts_of("m")
        talk = [message("Be careful with what you are told.")]
        for page in pages:
            talk = [*talk, message(page)]
            # What is new in each is about as much as the window.
            reports.reports.add(talk, 4_096)
        return reports, talk

    pages = [f"{number} is on page {page}. " * 420 for number, page in enumerate((7, 12, 33, 48))]
    reports, talk = talked(pages[:1])
    assert not reports.could_be_cut([*talk, message(pages[1])], 4_096), "it may be what was new"
    reports, talk = talked(pages[:2])
    assert reports.could_be_cut([*talk, message(pages[2] + "And more. " * 40)], 4_096)
    # The same page again may be the same number of tokens that no cache held.
    reports, talk = talked(pages[:1] * 3)
    assert not reports.could_be_cut([*talk, message(pages[0])], 4_096)


def test_who_reports_what_was_in_no_cache_is_not_taken_to_have_cut() -> None:
    windows = WindowResolver(LoadedSettings(Settings()))
    talk = [message("Be careful with what you are told. " * 900)]
    for turn in range(9):
        windows.reported("m", talk, 7_000 if turn == 0 else 90)
        talk += [message(f"Question {turn}, and some words more to read. " * 10)]
        assert not windows.counts_of("m").reports.reads_less(talk, 90)


def test_a_provider_that_reports_what_was_not_in_its_cache_teaches_no_ratio_below_1() -> None:
    windows = WindowResolver(LoadedSettings(Settings()))
    talk = [message(f"part {number} " * 500) for number in range(40)]
    for count in range(1, 40):
        ours = count_tokens(talk[:count], "house") + 7_000
        windows.counted("house", talk[:count], ours, ours if count == 1 else int(ours * 0.7))
    assert windows.ratio("house", talk) == 1.0


@pytest.mark.parametrize(
    ("ours", "theirs", "is_cut"),
    [
        (64_000, 64_000, False),
        (70_000, 65_536, True),
        (63_000, 60_000, True),
        (60_050, 60_000, False),
        (70_000, 68_500, False),
        (70_000, 10_000, False),
        (140_000, 70_000, True),
        (140_000, 75_000, False),
    ],
    ids=[
        "whole",
        "less than it grew",
        "as much as before",
        "hardly grown",
        "texts that differ",
        "the rest of a cache",
        "far more than before, less than its length",
        "far more than before, of rare characters",
    ],
)
def test_a_prompt_cut_by_less_than_half_is_noticed_where_it_was_counted_before(
    ours: int, theirs: int, is_cut: bool
) -> None:
    windows = WindowResolver(LoadedSettings(Settings()))
    talk = [message("one"), message("two")]
    # Rare characters are counted here as several tokens each, and elsewhere as fewer.
    new = "龘" * 26_000 if theirs == 75_000 else "three " * (ours - 60_000)
    longer = [*map(dict, talk), message(new)]
    assert not windows.counts_of("m").was_cut(longer, ours, theirs), "nothing was counted before"
    windows.reported("m", talk, 60_000)
    assert windows.counts_of("m").was_cut(longer, ours, theirs) is is_cut
    assert not windows.counts_of("m").was_cut([message("another"), *longer], ours, theirs)
    thought = [*talk, {**longer[-1], "reasoning_content": "hm"}]
    assert not windows.counts_of("m").was_cut(thought, ours, theirs), "a template may leave it out"


@pytest.mark.parametrize("share", [1.0, 0.6], ids=["whole", "cut by four tenths of what is new"])
def test_a_server_that_goes_by_length_cuts_nothing(share: float) -> None:
    windows = WindowResolver(LoadedSettings(Settings()))
    talk = [message("Please think about the organisation of the migration. " * 400)]
    longer = [*talk, message("2026-11-25T01:48:06Z 10.0.0.17 GET /a/8812 200 41ms 0x7f3a\n" * 40)]
    tools = [{"type": "function", "function": {"name": f"tool_{n}"}} for n in range(20)]
    longer_ours = count_tokens(longer, "gpt-4o", tools=tools)
    theirs, longer_theirs = (len(json.dumps([part, tools])) / 3.6 for part in (talk, longer))
    windows.reported("m", talk, int(theirs))
    read = int(theirs + (longer_theirs - theirs) * share)
    assert windows.counts_of("m").was_cut(longer, longer_ours, read, tools=tools) is (share < 1)


def test_tables_are_not_cut_where_the_provider_has_another_vocabulary() -> None:
    windows = WindowResolver(LoadedSettings(Settings()))
    talk = [message("Please think about the organisation of the migration. " * 400)]
    longer = [*talk, message("20261125 88120041 100017 4417 906552 31 7 204\n" * 60)]
    (ours, longer_ours), (theirs, longer_theirs) = (
        [count_tokens(part, name) for part in (talk, longer)] for name in ("qwen3-32b", "gpt-4o")
    )
    assert longer_theirs - theirs < 0.6 * (longer_ours - ours), "or the case shows nothing"
    windows.reported("m", talk, theirs)
    assert not windows.counts_of("m").was_cut(longer, longer_ours, longer_theirs)
    assert windows.counts_of("m").was_cut(longer, longer_ours, theirs + 100)
    # The list is the caller's, who goes on with it.
    talk += longer[1:]
    assert windows.counts_of("m").was_cut(talk, longer_ours, theirs + 100)


def test_a_server_that_has_stated_its_limit_cuts_nothing() -> None:
    windows = WindowResolver(LoadedSettings(Settings()))
    assert windows.could_cut_at("m", 4_000)
    windows.learn("m", 8_000)
    assert not windows.could_cut_at("m", 4_000)
    windows.learned.now = lambda: time.time() + 2 * 24 * 3_600
    assert windows.could_cut_at("m", 4_000), "it may be another server by then"


def test_small_prompts_and_empty_counts_say_nothing() -> None:
    learned = ProviderLimits()
    for ours, theirs in [(999, 1_998), (10_000, 0), (10_000, -1)] * 3:
        learned.counted(NAME, "western", ours, theirs)
    assert learned.of(NAME).ratios == {}


def test_limits_only_get_lower() -> None:
    learned = ProviderLimits()
    for limit in (8_000, 9_000, 7_000, 7_500):
        learned.learn_window(NAME, limit)
        learned.learn_output(NAME, limit // 10)
    assert (learned.of(NAME).window_tokens, learned.of(NAME).output_tokens) == (7_000, 700)


def test_lessons_are_there_in_the_next_process(tmp_path: Path) -> None:
    file = learned_file(tmp_path / "config.json")
    first = ProviderLimits.load(file)
    assert not file.exists()
    first.learn_window(NAME, 7_000)
    first.counted(NAME, "western", 10_000, 13_000, refused=True)
    second = ProviderLimits.load(file)
    assert second.of(NAME) == first.of(NAME)
    names = {path.name for path in file.parent.iterdir()}
    assert names == {"learned.json", "learned.json.lock"}


def test_one_wrong_lesson_takes_no_other_away(tmp_path: Path) -> None:
    file = learned_file(tmp_path / "config.json")
    ProviderLimits.load(file).learn_window(NAME, 7_000)
    given = json.loads(file.read_text())
    given["models"]["other"] = {"window_tokens": 9_000}
    file.write_text(json.dumps(given))
    assert list(ProviderLimits.load(file).lessons) == [NAME]
    assert str(unreadable(file)).startswith(f"`{file}` is read without `other`: ")


def test_processes_do_not_take_each_others_lessons_away(tmp_path: Path) -> None:
    file = learned_file(tmp_path / "config.json")
    first, second = ProviderLimits.load(file), ProviderLimits.load(file)
    first.learn_window(NAME, 7_000)
    second.learn_window("other", 9_000)
    second.counted(NAME, "east_asian", 10_000, 13_000, refused=True)
    first.counted(NAME, "western", 10_000, 12_000, refused=True)
    first.learn_output(NAME, 500)
    third = ProviderLimits.load(file)
    assert third.of("other").window_tokens == 9_000
    lesson = third.of(NAME)
    assert (lesson.window_tokens, lesson.output_tokens) == (7_000, 500)
    assert {script: ratio.used for script, ratio in lesson.ratios.items()} == {
        "western": 1.2,
        "east_asian": 1.3,
    }


def test_each_script_has_a_ratio_of_its_own() -> None:
    windows = WindowResolver(LoadedSettings(Settings()))
    english, chinese = ([{"role": "user", "content": text * 50}] for text in ("ok so. ", "好的。"))
    for _ in range(3):
        windows.counted("m", english, 10_000, 10_000)
    assert windows.ratio("m", chinese) == 1.0
    windows.counted("m", chinese, 10_000, 15_000, refused=True)
    assert windows.ratio("m", english) == 1.0
    assert windows.ratio("m", chinese) == 1.5
    russian = [{"role": "user", "content": "Проверь журналы. " * 50}]
    assert windows.ratio("m", russian) == 1.5, "the worst that is known"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"models": []}',
        '{"models": {"a": 1}}',
        '{"models": {"a": {"unknown": 1}}}',
        '{"models": {"a": {"window_tokens": -1}}}',
        '{"models": {"a": {"window_tokens": "1"}}}',
        '{"models": {"a": {"ratios": []}}}',
        '{"models": {"a": {"ratios": {"western": {"used": 90}}}}}',
        '{"models": {"a": {"ratios": {"western": {"used": "1"}}}}}',
        '{"models": {"a": {"ratios": {"western": {"counts": -1}}}}}',
        "\udcff",
    ],
)
def test_a_file_that_is_not_ours_is_made_anew(tmp_path: Path, text: str) -> None:
    file = tmp_path / "learned.json"
    file.write_text(text, encoding="utf-8", errors="surrogateescape")
    learned = ProviderLimits.load(file)
    assert learned.lessons == {}
    learned.learn_window(NAME, 5_000)
    assert json.loads(file.read_text(encoding="utf-8"))["models"][NAME]["window_tokens"] == 5_000


def test_a_file_that_cannot_be_written_costs_no_lesson(tmp_path: Path) -> None:
    blocked = tmp_path / "nanobot-context"
    blocked.write_text("a file where the folder should be", encoding="utf-8")
    learned = ProviderLimits(learned_file(tmp_path / "config.json"))
    learned.learn_window(NAME, 5_000)
    assert learned.of(NAME).window_tokens == 5_000
    assert list(tmp_path.iterdir()) == [blocked]


@pytest.mark.parametrize(
    ("endpoint", "name"),
    [
        ("", "gpt-4o"),
        ("http://127.0.0.1:8000/v1/", "gpt-4o at 127.0.0.1:8000/v1"),
        ("https://user:secret@host.example/v1?key=secret", "gpt-4o at host.example/v1"),
        ("https://gw.example/sk-live-secret/v1", "gpt-4o at gw.example/…a03d43d2/v1"),
        ("https://gw.example/openai/tenantsecret", "gpt-4o at gw.example/openai/…ce15d353"),
        ("http://[broken", "gpt-4o"),
        ("http://host:notaport/v1", "gpt-4o"),
    ],
)
def test_no_secret_of_an_address_is_kept(endpoint: str, name: str) -> None:
    assert name_of("gpt-4o", endpoint) == name


def test_a_key_that_an_earlier_release_kept_leaves_the_file(tmp_path: Path) -> None:
    file = learned_file(tmp_path / "config.json")
    ProviderLimits(file).learn_window("gpt-4o at gw.example/sk-live-secret/v1", 8_000)
    learned = ProviderLimits.load(file)
    name = name_of("gpt-4o", "https://gw.example/sk-live-secret/v1")
    assert learned.of(name).window_tokens == 8_000
    learned.learn_window(name, 7_000)
    assert "sk-live-secret" not in file.read_text(encoding="utf-8")


def test_forget_removes_the_file_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "nanobot_context.host.config.nanobot_config_path", lambda: tmp_path / "c.json"
    )
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = learned_file(tmp_path / "c.json")
    ProviderLimits(file).learn_window(NAME, 5_000)
    runner = CliRunner()
    removed = runner.invoke(app, ["forget"])
    assert (removed.exit_code, removed.output) == (0, f"removed: {file}\n")
    assert not file.exists()
    again = runner.invoke(app, ["forget"])
    assert (again.exit_code, again.output) == (0, "nothing to forget\n")


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


def test_a_window_is_never_below_what_was_accepted() -> None:
    learned = ProviderLimits()
    learned.accepted(NAME, 30_000)
    learned.learn_window(NAME, 8_000)
    assert learned.window_of(NAME) == (30_000, True)


def test_what_is_accepted_is_written_when_it_has_grown_by_a_quarter(tmp_path: Path) -> None:
    file = learned_file(tmp_path / "config.json")
    learned = ProviderLimits.load(file)
    written = set()
    for tokens in range(10_000, 20_000, 100):
        learned.accepted(NAME, tokens)
        written.add(ProviderLimits.load(file).of(NAME).accepted_tokens)
    assert written == {10_000, 12_600, 15_800, 19_800}
    learned.learn_window(NAME, 8_000)
    assert learned.window_of(NAME) == (19_900, True)


def test_a_server_that_was_started_anew_is_believed() -> None:
    learned = ProviderLimits()
    learned.accepted(NAME, 100_000)
    learned.refused(NAME, 110_000)
    learned.learn_window(NAME, 40_000)
    assert learned.window_of(NAME) == (100_000, True), "a number that was misread"
    learned.refused(NAME, 90_000)
    learned.learn_window(NAME, 40_000)
    assert learned.window_of(NAME) == (40_000, True)


def test_what_was_accepted_before_a_new_start_does_not_come_back_from_the_file(
    tmp_path: Path,
) -> None:
    file = learned_file(tmp_path / "config.json")
    learned = ProviderLimits.load(file)
    learned.accepted(NAME, 100_000)
    learned.refused(NAME, 90_000)
    learned.learn_window(NAME, 40_000)
    assert ProviderLimits.load(file).of(NAME).accepted_tokens == 0


def test_what_nobody_stated_is_tried_again_after_an_hour() -> None:
    clock = Clock()
    learned = ProviderLimits(now=clock)
    learned.learn_window(NAME, 60_000, is_stated=False)
    assert learned.window_of(NAME) == (60_000, False)
    clock.seconds += 3_600
    assert learned.window_of(NAME) is None


def test_a_longer_prompt_that_is_accepted_ends_a_window() -> None:
    learned = ProviderLimits()
    learned.learn_window(NAME, 8_000)
    learned.accepted(NAME, 8_000)
    assert learned.window_of(NAME) == (8_000, True)
    learned.accepted(NAME, 8_001)
    assert learned.window_of(NAME) is None


def test_a_window_has_a_floor() -> None:
    learned = ProviderLimits()
    learned.learn_window(NAME, 512)
    assert learned.window_of(NAME) == (1_024, True)
    learned.learn_output(NAME, 16)
    assert learned.output_of(NAME) is None


@pytest.mark.parametrize("passed", [24 * 3600, -24 * 3600], ids=["later", "a clock put back"])
def test_limits_are_tried_again_after_a_day(passed: float) -> None:
    clock = Clock()
    learned = ProviderLimits(now=clock)
    learned.learn_window(NAME, 8_000)
    learned.learn_output(NAME, 1_000)
    clock.seconds += passed * 0.99
    assert (learned.window_of(NAME), learned.output_of(NAME)) == ((8_000, True), 1_000)
    clock.seconds += passed * 0.01
    assert (learned.window_of(NAME), learned.output_of(NAME)) == (None, None)
    learned.learn_window(NAME, 9_000)
    assert learned.window_of(NAME) == (9_000, True), "what is stated anew may be more"


def test_a_limit_that_is_stated_again_lasts_another_day() -> None:
    clock = Clock()
    learned = ProviderLimits(now=clock)
    learned.learn_window(NAME, 8_000)
    clock.seconds += 20 * 3600
    learned.learn_window(NAME, 8_000)
    clock.seconds += 20 * 3600
    assert learned.window_of(NAME) == (8_000, True)


def test_what_was_disproved_stays_so_for_other_processes(tmp_path: Path) -> None:
    file, clock = learned_file(tmp_path / "config.json"), Clock()
    first = ProviderLimits(file, now=clock)
    first.learn_window(NAME, 8_000)
    clock.seconds += 1
    second = ProviderLimits.load(file)
    second.now = clock
    second.accepted(NAME, 20_000)
    clock.seconds += 1
    first.learn_output(NAME, 1_000)
    assert first.window_of(NAME) is None
    assert ProviderLimits.load(file).of(NAME).accepted_tokens == 20_000
    first.learn_window(NAME, 8_000)
    assert first.window_of(NAME) == (20_000, True)


def test_gateways_that_learn_at_once_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "learned.json"
    names = [f"model-{number}" for number in range(24)]
    together = threading.Barrier(4)

    def learn(part: int) -> None:
        limits = ProviderLimits.load(file)
        together.wait()
        for name in names[part::4]:
            limits.learn_window(name, 50_000)

    threads = [threading.Thread(target=learn, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ProviderLimits.load(file).to_dict()) == sorted(names)


def test_an_address_that_is_no_text_of_unicode_has_a_name() -> None:
    assert name_of("m", "http://x/\ud800") == name_of("m", "http://x/\ud800")


# Away from the event loop -------------------------------------------------------------------------


def test_a_lesson_holds_at_once_and_is_written_by_the_counters_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nanobot_context.guard.counters._SAVE_SECONDS", 0.05)
    file = learned_file(tmp_path / "config.json")
    file.parent.mkdir()
    learned = ProviderLimits.load(file, later=Counters().also)
    with locked(file.with_name(f"{file.name}.lock"), timeout_seconds=1):
        # A model call waits for nobody else's lock.
        began = time.monotonic()
        learned.learn_window(NAME, 7_000)
        learned.learn_output(NAME, 700)
        assert time.monotonic() - began < 0.2
        assert learned.window_of(NAME) == (7_000, True)
        assert not file.exists()
        time.sleep(0.1)
    deadline = time.monotonic() + 10
    while not file.exists():
        assert time.monotonic() < deadline
        learned.learn_reasoning(NAME)
        time.sleep(0.02)
    assert ProviderLimits.load(file).of(NAME).output_tokens == 700


def test_what_is_learned_while_the_file_is_written_is_written_next(tmp_path: Path) -> None:
    file = learned_file(tmp_path / "config.json")
    counters = Counters()
    first = ProviderLimits.load(file, later=counters.also)
    other = ProviderLimits.load(file)
    first.learn_window(NAME, 7_000)
    other.learn_window("other", 9_000)
    counters.save()
    first.learn_window(NAME, 6_000)
    assert ProviderLimits.load(file).of(NAME).window_tokens == 7_000
    counters.close()
    third = ProviderLimits.load(file)
    assert (third.of(NAME).window_tokens, third.of("other").window_tokens) == (6_000, 9_000)


LEARNER = """
from nanobot_context.guard.counters import Counters
from nanobot_context.guard.limits import ProviderLimits, learned_file
learned = ProviderLimits.load(learned_file(folder / "config.json"), later=Counters().also)
learned.learn_window("parent", 8_000)
def in_child():
    assert learned.window_of("parent") == (8_000, True)
    learned.learn_window("child", 9_000)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks, and kills")
@pytest.mark.parametrize(
    ("how", "names"),
    [("ends", ["parent"]), ("killed", ["parent"]), ("forks", ["child", "parent"])],
)
def test_what_was_learned_outlives_the_process(tmp_path: Path, how: str, names: list[str]) -> None:
    assert exit_code(LEARNER, tmp_path, how) == (-9 if how == "killed" else 0)
    lessons = ProviderLimits.load(learned_file(tmp_path / "config.json")).lessons
    assert sorted(lessons) == names
