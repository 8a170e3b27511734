"""What messages say, for a person, and what of it is gone."""

from __future__ import annotations

from typing import Any

import pytest

from nanobot_context._core import superseded
from nanobot_context.guard.record import RequestRecord
from nanobot_context.host.message_keys import known_by, message_key
from nanobot_context.message_texts import (
    kept_spans,
    message_text,
    origin_of,
    tool_names,
)
from nanobot_context.report.places import places_of
from nanobot_context.types import Message


def removed_text(before: str, after: str) -> str:
    """Return what lies between the pieces that stay, apart by an empty line."""
    ends = [0, *kept_spans(before, after), len(before)]
    gone = (before[a:b].strip("\n") for a, b in zip(ends[::2], ends[1::2], strict=True))
    return "\n\n".join(piece for piece in gone if piece.strip())


def test_removed_text_is_what_lies_between_the_pieces_that_stay() -> None:
    assert removed_text("one\ntwo\nthree\nfour", "one\n[…2 lines]\nfour") == "two\nthree"
    mark = "[... 1 line, 5 characters left out; all of it: a/0123456789abcdef.txt ...]"
    assert removed_text("a\nb b\nc c\nd d\ne", f"a\n{mark}\nc c\n[…3 characters]\ne") == (
        "b b\n\nd d"
    )
    assert removed_text("all of it", "all of it") == ""
    assert removed_text("all of it", "something else") == "all of it"
    assert removed_text("lone \ud800 one\nand more", "lone \ud800 one\n[…8 characters]") == (
        "and more"
    )


def test_the_text_of_a_message_is_all_that_it_says() -> None:
    call = {"id": "a", "function": {"name": "exec", "arguments": '{"command": "ls"}'}}
    message = {
        "role": "assistant",
        "content": [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {}}, 7],
        "tool_calls": [call, {"id": "b", "name": "flat", "arguments": {"x": 1}}, "no call"],
        "reasoning_content": "Hm.",
    }
    assert message_text(message) == (
        'Look:\n[image_url]\n[int]\nexec({"command": "ls"})\nflat({"x": 1})\n?()\nHm.'
    )


def test_thoughts_are_said_too() -> None:
    blocks = [{"type": "thinking", "thinking": "Let me see."}, {"type": "redacted"}, "odd"]
    assert message_text({"role": "assistant", "content": "A", "thinking_blocks": blocks}) == (
        "A\nLet me see."
    )
    odd_ones: tuple[object, ...] = (None, 7, {}, "text")
    for odd in odd_ones:
        assert message_text({"role": "assistant", "thinking_blocks": odd}) == ""


def test_a_line_that_stays_is_not_found_inside_of_another_one() -> None:
    before = "{\n  first: 1\n  an end\n}\nend\nmore\nlast"
    after = "{\n[…2 lines]\nchanged\nend\n[…1 line]\nlast"
    assert removed_text(before, after) == "  first: 1\n  an end\n}\n\nmore"


def test_the_file_of_an_original_is_named_by_a_mark_that_was_not_there_before() -> None:
    mark = "[... 3 lines left out; all of it: .nanobot-context/results/0123456789abcdef.txt ...]"
    assert origin_of(f"a\n{mark}\nb", "a\nb") == ".nanobot-context/results/0123456789abcdef.txt"
    assert origin_of(f"a\n{mark}\nb", f"a\n{mark}\nc\nb") is None
    assert origin_of("; all of it: somewhere.txt", "") is None


def test_a_result_is_of_the_tool_that_it_names_or_that_was_called() -> None:
    call = {"id": "a", "function": {"name": "exec"}}
    assert tool_names(
        [
            {"role": "assistant", "tool_calls": [call, "odd", {"id": "b"}]},
            {"role": "tool", "tool_call_id": "a"},
            {"role": "tool", "tool_call_id": "b"},
            {"role": "tool", "tool_call_id": "c", "name": "read_file"},
            {"role": "tool", "tool_call_id": None, "name": 7},
            {"role": "user", "name": "exec"},
        ]
    ) == [None, "exec", "?", "read_file", None, None]


def test_a_message_says_what_its_rarer_fields_say() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "refusal": "I cannot.",
        "function_call": {"name": "f", "arguments": '{"path": "a.py"}'},
        "reasoning": "hm",
    }
    assert message_text(message) == 'I cannot.\nf({"path": "a.py"})\nhm'


def test_a_result_that_a_later_one_replaces_names_it() -> None:
    def rounds(*calls: tuple[str, str, str]) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = []
        for number, (name, arguments, result) in enumerate(calls):
            call = {"id": f"c{number}", "function": {"name": name, "arguments": arguments}}
            messages.append({"role": "assistant", "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": result})
        return messages

    a, b = '{"path": "./a.py"}', '{"path": "a.py", "content": "x"}'
    assert superseded(rounds(("read_file", a, "x"), ("read_file", a, "y"))) == [(1, "again", 3)]
    write = ("write_file", b, "ok")
    assert superseded(rounds(("read_file", a, "x"), write)) == [(1, "changed", 3)]
    path = '{"filePath": "a.py"}'
    assert superseded(rounds(("Read", path, "x"), ("Write", path, "ok"))) == [(1, "changed", 3)]
    # It was not written; and what is made is not read.
    assert superseded(rounds(("read_file", a, "x"), ("write_file", b, "permission denied"))) == []
    assert superseded(rounds(("create_spreadsheet", a, "x"), write)) == []
    long = "a line\n" * 20
    again = rounds(("exec", '{"c": 1}', long), ("exec", '{"c": 2}', long))
    assert superseded(again) == [(1, "repeated", 3)]
    # Indexes are those of the messages as they came, wherever a result stands.
    user: dict[str, Any] = {"role": "user", "content": "and?"}
    assert superseded([again[0], user, *again[1:]]) == [(2, "repeated", 4)]
    assert superseded(rounds(("exec", "not json", "1"), ("exec", "not json", "Error: no"))) == []
    assert superseded([{"role": "tool", "tool_call_id": "x", "content": "orphan"}]) == []


def test_a_message_is_known_again_in_its_session() -> None:
    call = {"id": "a", "function": {"name": "exec"}}
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "a", "content": "long"}
    assert message_key(asked) == message_key({**asked, "content": "Hm.", "timestamp": 1}) != ""
    assert message_key(result) == message_key({**result, "content": "cut when it was saved"}) != ""
    said = {"role": "assistant", "content": "Yes."}
    assert message_key(said) != message_key({**said, "content": "No."})
    assert message_key({"role": "user", "content": "Hi"}) == ""
    context = "[Runtime Context — metadata only, not instructions]\nCurrent Time: 10:01\n\n"
    assert known_by({"role": "user", "content": "Hi"}) != ""
    assert known_by({"role": "user", "content": context + "Hi"}) == known_by(
        {"role": "user", "content": "Hi"}
    )
    assert known_by(said) == message_key(said)


# How nanobot sends "Read it." and what it saves of that, by its sources.
BLOCK = "[Runtime Context — metadata only, not instructions]\nCurrent Time: 2026-11-26 00:28"


@pytest.mark.parametrize(
    ("sent", "saved"),
    [
        (f"{BLOCK}\nChannel: cli\nChat ID: direct\n\nRead it.", "Read it."),  # 0.1.4.post1
        (f"{BLOCK}\nGoal: a\n\nb\n[/Runtime Context]\n\nRead it.", "Read it."),  # 0.1.5.post2
        (f"Read it.\n\n{BLOCK}\nSender ID: user\n[/Runtime Context]", "Read it."),  # 0.2.2
        ("[Message Time: 2026-11-26T00:28:16.033872]\nRead it.", "Read it."),
        ("Read it.\n[image: /media/a.png]\n[CLI App Attachment: @a; tool=x]", "Read it."),
        (
            [{"type": "image_url", "image_url": {}}, {"type": "text", "text": "Read it."}],
            [{"type": "text", "text": "[image]"}, {"type": "text", "text": "Read it."}],
        ),
    ],
)
def test_a_message_of_the_user_is_known_again_whatever_nanobot_puts_around_it(
    sent: Any, saved: Any
) -> None:
    as_saved = known_by({"role": "user", "content": saved})
    assert known_by({"role": "user", "content": sent}) == as_saved
    assert as_saved == known_by({"role": "user", "content": "Read it."})


def recorded(messages: list[Message]) -> RequestRecord:
    anchor = next((at for at in range(len(messages), 0, -1) if message_key(messages[at - 1])), 0)
    return RequestRecord(
        *("2026-11-25", "cli:direct", False, "m", "m", 8_000, "told", 10, 10, len(messages), 100),
        attempts=(),
        outcome="answered",
        roles="".join(message["role"][0] for message in messages),
        anchor=anchor,
        anchor_key=message_key(messages[anchor - 1]) if anchor else "",
        keys=tuple(map(known_by, messages[-12:])),
    )


def talk(*said: str) -> list[Message]:
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": text} for n, text in enumerate(said)]


def spans(asked: list[list[Message]], session: list[Message]) -> list[tuple[int, int] | None]:
    """Return where requests with a system prompt and these messages are in a session."""
    system: Message = {"role": "system", "content": "You help."}
    places = places_of([recorded([system, *messages]) for messages in asked], session)
    return [(place.first, place.stop) if place else None for place in places]


def test_a_request_of_before_the_session_was_cleared_is_not_in_the_session() -> None:
    old = talk("My salary is 12345", "Done.", "Send it to Bob")
    new = talk("The project is Zebra", "Fine.", "Read it.", "Done.", "Send it to Bob", "Sent.")
    checkpoint = talk("Create a compact checkpoint.")
    archived = [*old, *new[-1:], *checkpoint]
    asked = [old[:1], old, archived, *(new[:n] for n in (1, 3, 5))]
    assert spans(asked, new) == [None, None, None, (0, 1), (0, 3), (0, 5)]


def test_a_request_is_in_the_session_with_what_only_one_of_them_has() -> None:
    session = talk("One?", "1.", "/status", "Fine.", "Two?", "2.", "Three?", "3.", "Four?")
    prompt: Message = {"role": "user", "content": "Continue."}
    # nanobot sends no commands, and asks by itself; what is older is not in the history.
    asked = [
        [*session[:2], *session[4:7]],
        [*session[4:6], prompt, *session[6:9]],
        [*talk("Zero?", "0."), *session[:2], *session[4:9]],
        [*talk("Zero?", "0."), *session[:1]],
        session[4:5],
    ]
    assert spans(asked, session) == [(0, 7), (4, 9), (0, 9), None, None]
    # The same things were said again and again.
    again = talk(*["More?", "Yes."] * 20)
    assert spans([again[:n] for n in (1, 3, 21, 39)], again) == [(0, 1), (0, 3), (0, 21), (0, 39)]
    # Of many more messages than there are keys of.
    long = talk(*map(str, range(99)))
    assert spans([long, long[:51], long[20:71]], long) == [(0, 99), (0, 51), (20, 71)]
