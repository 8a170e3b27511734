"""What a real nanobot tells while it works: to a listener, into a file, and in its counters."""

from __future__ import annotations

from typing import Any

import pytest

from live import BIG, FILES, TALK, TEAM
from played import BEFORE_PRESETS, LIVE, Played
from plays import Result


@pytest.fixture(params=LIVE)
def result(request: pytest.FixtureRequest, played: Played) -> Result:
    """What was played with a release."""
    return played.of(request.param, "live")


def told(result: Result, *kinds: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = result["notes"]["told"]
    return [event for event in events if not kinds or event["kind"] in kinds]


def requests(result: Result, *, accepted: bool) -> list[dict[str, Any]]:
    """Return the requests that passed the guard; the package's own for summaries do not."""
    return [
        request
        for request in result["requests"]
        if request["kind"] != "summary" and (request["about"] != "overflow") == accepted
    ]


def test_every_kind_of_event_is_told_with_the_session_that_it_happened_in(result: Result) -> None:
    sessions = {
        kind: {event["session"] for event in told(result, kind)}
        for kind in ("overflow", "retry", "gave_up", "summary", "compressed", "answered")
    }
    assert sessions["retry"] == sessions["compressed"] == {FILES}
    assert sessions["overflow"] == {FILES, BIG}, "what cannot be cut is sent once"
    assert {TALK} <= sessions["summary"] <= {FILES, TALK}, "what grew long, or had to be cut"
    assert sessions["gave_up"] == {BIG}
    assert sessions["answered"] == {FILES, TALK, TEAM}
    learned = {event["what"] for event in told(result, "learned") if event["session"] == FILES}
    assert "window_tokens" in learned


def test_the_numbers_are_those_of_the_server(result: Result) -> None:
    refused, answered = requests(result, accepted=False), requests(result, accepted=True)
    overflows = told(result, "overflow")
    assert {event["limit_tokens"] for event in overflows} == {result["window"]}
    for event, request in zip(overflows, refused, strict=True):
        assert event["used_tokens"] == request["prompt_tokens"]
    reported = [event["prompt_tokens"] for event in told(result, "answered")]
    assert sorted(reported) == sorted(request["prompt_tokens"] for request in answered)


def test_a_summary_is_told_when_it_is_stored(result: Result) -> None:
    for event in told(result, "summary"):
        assert (event["status"], event["made_by"], event["version"]) == ("stored", "model", 1)
        assert event["covers"] > 0
        assert event["duration_ms"] >= 0


def test_the_file_has_what_the_listener_heard(result: Result) -> None:
    assert told(result) == result["notes"]["written"]
    assert len(told(result)) > 15


def test_no_word_of_the_conversation_is_told(result: Result) -> None:
    text = str(told(result))
    assert "GOAL" not in text
    assert not any(str(value) in text for value in ("Question", "Answer", "SUMMARY", "DONE"))


def test_the_counters_are_the_sums_of_the_events(result: Result) -> None:
    counters = result["notes"]["counters"]
    compressed, answered = told(result, "compressed"), told(result, "answered")
    expected = {
        "overflows": len(told(result, "overflow")),
        "retries_succeeded": sum(event["attempts"] > 1 for event in answered),
        "friendly_errors": len(told(result, "gave_up")),
        "summaries": len(told(result, "summary")),
        "summaries_failed": 0,
        "answers": len(answered),
        "prompt_tokens": sum(event["prompt_tokens"] for event in answered),
        "cached_tokens": sum(event["cached_tokens"] or 0 for event in answered),
        "completion_tokens": sum(event["completion_tokens"] for event in answered),
        "requests": len(answered) + len(told(result, "gave_up")),
    }
    assert {name: counters[name] for name in expected} == expected
    assert counters["retries_succeeded"] > 0
    # A retry that was made smaller is no event of its own.
    assert counters["compressions"] >= len(compressed)
    assert counters["tokens_saved"] == sum(
        record["tokens_before"] - record["prompt_tokens"]
        for record in result["notes"]["records"]
        if record["is_shortened"] and record["outcome"] == "answered"
    )


def test_every_number_of_the_record_is_one_of_the_servers_log(result: Result) -> None:
    records = result["notes"]["records"]
    sent = [
        (attempt["tokens"], attempt["refused"] is None)
        for record in records
        for attempt in record["attempts"]
    ]
    asked = [one for one in result["requests"] if one["kind"] != "summary"]
    logged = [(one["prompt_tokens"], one["about"] == "answered") for one in asked]
    assert sorted(sent) == sorted(logged)
    answered = [record for record in records if record["outcome"] == "answered"]
    assert len(answered) == sum(one["about"] == "answered" for one in asked)
    assert all(record["attempts"][-1]["tokens"] == record["prompt_tokens"] for record in answered)
    stated = {one["limit_tokens"] for record in records for one in record["attempts"]}
    assert stated == {None, result["window"]}
    assert all(record["fixed_tokens"] < record["tokens_before"] for record in records)
    # What was refused as it came is what nanobot's request had.
    assert all(
        record["tokens_before"] == record["attempts"][0]["tokens"]
        for record in records
        if not record["cut_messages"] or record["attempts"][0]["refused"]
    )
    windows = {(record["window_tokens"], record["window_source"]) for record in records[1:]}
    assert (result["window"], "the server said so") in windows


def test_the_record_says_whose_requests_were_cut_and_which_were_a_subagents(
    result: Result,
) -> None:
    records = result["notes"]["records"]
    assert {record["session"] for record in records} == {FILES, TALK, TEAM, BIG}
    subagents = [record for record in records if record["is_subagent"]]
    assert {record["session"] for record in subagents} == {TEAM}
    cut = [record for record in records if record["cut_messages"]]
    assert {record["session"] for record in cut if record["outcome"] == "answered"} == {FILES}
    for record in cut:
        assert record["attempts"][-1]["tokens"] < record["tokens_before"]
        assert all(0 < one["index"] <= record["messages"] for one in record["cuts"])


def test_status_and_inspect_show_the_record(result: Result) -> None:
    notes = result["notes"]
    mine = [record for record in notes["records"] if record["session"] == FILES]
    assert notes["inspected"]["requests"] == mine
    assert notes["status"]["last_request"] in notes["records"]
    counters = notes["status"]["status"]["counters"]
    assert counters == notes["counters"]
    assert counters["requests"] == len(notes["records"])
    refused = [one for record in notes["records"] for one in record["attempts"] if one["refused"]]
    assert counters["overflows"] == len(refused)


def test_the_report_shows_the_record_and_the_lessons_of_its_own_model(result: Result) -> None:
    page = result["notes"]["page"]
    mine = [record for record in result["notes"]["records"] if record["session"] == FILES]
    rows = page["requests"]
    shown = [(row[0], sum(row[4]), sum(row[5]), row[6], row[10]) for row in rows]
    assert shown == [
        (
            *(record["at"], record["tokens_before"], record["attempts"][-1]["tokens"]),
            *(record["window_tokens"], record["outcome"]),
        )
        for record in mine
    ]
    # Each request has its place in the session, and no message of a later one.
    stops = [row[3] for row in rows]
    assert None not in stops
    assert stops == sorted(stops)
    assert stops[-1] <= len(page["messages"])
    cut = [[row[1] for row in page["cuts"] if row[0] == n] for n in range(len(rows))]
    assert [len(one) for one in cut] == [len(record["cuts"]) for record in mine]
    for row, indexes in zip(rows, cut, strict=True):
        assert all(row[2] <= index < row[3] for index in indexes)
    assert page["window"] == result["window"]
    assert {one["model"] for one in page["learned"]} == {mine[-1]["place"]}


def test_another_process_shows_the_same_counters(result: Result) -> None:
    assert result["notes"]["next_process"] == result["notes"]["counters"]


def test_another_process_shows_the_window_that_the_server_stated(result: Result) -> None:
    assert result["notes"]["windows"] == [[result["window"], "the server said so"]] * 2


def test_nanobot_is_asked_where_its_requests_go(result: Result) -> None:
    addresses = result["notes"]["addresses"]
    (given,) = addresses.pop("given")
    assert given.startswith("http://127.0.0.1:")
    assert addresses == {
        "other": ["http://other:1/v1"],
        "usual": [""],
        "nobody": [],
        "custom": ["http://own:1/v1"],
        # A preset that is not the active one; without presets the key makes the file invalid.
        "preset": ["http://own:1/v1"] if result["release"] not in BEFORE_PRESETS else [],
        "damaged": [],
    }
