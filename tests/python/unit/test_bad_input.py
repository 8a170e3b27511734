"""Input that cannot be used: a typed error that names the place, or the documented repair.

Never a panic (a `BaseException`, which `pytest.raises` of these classes does not catch), a hang
(every test here has a time limit) or a count of nothing.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections import UserDict, UserList, deque
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any

import pytest

import nanobot_context
from nanobot_context import (
    Compressor,
    ContextOverflowError,
    InvalidArgumentError,
    InvalidMessageError,
    Session,
    Settings,
    classify_message,
    compress_messages,
    count_tokens,
    emergency_compress,
    find_last_user_index,
    find_safe_cut_point,
    fit_messages,
    get_context_window,
    trim_tool_result,
)
from odd_values import HUGE, Raising, Text, Unprintable, nested

pytestmark = pytest.mark.timeout(60)

Message = dict[str, Any]
USER: Message = {"role": "user", "content": "hi"}


class Spy(dict[str, Any]):
    """A subclass whose methods say something else than the dict."""

    def __getitem__(self, key: str) -> Any:
        raise RuntimeError("no item")

    def get(self, *_: Any) -> Any:
        raise RuntimeError("no item")


class Touchy:
    """A key that equals nothing, and raises once it is armed."""

    armed = False

    def __init__(self, like: str) -> None:
        self._hash = hash(like)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if Touchy.armed:
            raise RuntimeError("no equality")
        return False


@pytest.fixture
def touchy() -> Iterator[Callable[[str], Any]]:
    def make(like: str) -> Any:
        return Touchy(like)

    yield make
    Touchy.armed = False


READERS: list[Callable[[Any], Any]] = [
    count_tokens,
    lambda messages: compress_messages(messages, 1_000),
    lambda messages: emergency_compress(messages, 1_000),
    lambda messages: fit_messages(messages, 1_000),
    lambda messages: Compressor(1_000).compress(messages),
    lambda messages: Compressor(1_000).emergency(messages),
    lambda messages: find_safe_cut_point(messages, 1),
    find_last_user_index,
]


def calling(*calls: Any) -> list[Message]:
    return [USER, {"role": "assistant", "content": None, "tool_calls": list(calls)}]


def call(arguments: Any, **fields: Any) -> Message:
    function = {"name": "f", "arguments": arguments}
    return {"id": "a", "type": "function", "function": function, **fields}


def wrong_message(messages: Any, index: int, field: str, problem: str) -> None:
    """Assert that every function refuses `messages` with the same words."""
    for read in READERS:
        with pytest.raises(InvalidMessageError) as caught:
            read(messages)
        assert (caught.value.index, caught.value.field) == (index, field)
        assert str(caught.value) == f"`messages[{index}]{field}` {problem}"


# Messages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "shown"),
    [
        (None, "None"),
        ("hi", "'hi'"),
        ({}, "{}"),
        (5, "5"),
        (b"hi", "b'hi'"),
        ({5}, "{5}"),
        (Unprintable(), "`Unprintable`"),
        pytest.param(HUGE, "`int`", id="huge"),
    ],
)
@pytest.mark.parametrize("read", READERS)
def test_what_is_no_list_is_refused(read: Callable[[Any], Any], messages: Any, shown: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        read(messages)
    assert caught.value.argument == "messages"
    assert str(caught.value) == f"`messages` must be a list of dicts, got {shown}"


@pytest.mark.parametrize(
    "of",
    [
        tuple,
        deque,
        UserList,
        lambda messages: [MappingProxyType(one) for one in messages],
        lambda messages: tuple(UserDict(one) for one in messages),
    ],
)
@pytest.mark.parametrize("read", READERS)
def test_any_sequence_of_mappings_is_read_as_a_list_of_dicts(
    read: Callable[[Any], Any], of: Callable[[Any], Any]
) -> None:
    messages = [USER, {"role": "assistant", "content": "fine"}, USER]
    assert repr(read(of(messages))) == repr(read(messages))


def test_an_iterator_is_not_used_up() -> None:
    iterator = iter([USER])
    with pytest.raises(InvalidArgumentError, match="must be a list of dicts"):
        count_tokens(iterator)  # type: ignore[arg-type]
    assert next(iterator) is USER


@pytest.mark.parametrize(
    ("item", "shown"),
    [
        (None, "None"),
        (5, "5"),
        ("hi", "'hi'"),
        ([USER], "[{'role': 'user', 'content': 'hi'}]"),
        (dict, "<class 'dict'>"),
        (Unprintable(), "`Unprintable`"),
    ],
)
def test_an_item_that_is_no_dict_is_named(item: Any, shown: str) -> None:
    wrong_message([USER, item], 1, "", f"must be a dict, got {shown}")
    with pytest.raises(InvalidMessageError, match="must be a dict"):
        classify_message(item)


@pytest.mark.parametrize("message", [{}, {"content": "hi"}, {"Role": "user"}, {1: 2}])
def test_a_message_without_a_role_is_named(message: Any) -> None:
    wrong_message([USER, USER, message], 2, "", "has no `role`")


@pytest.mark.parametrize(
    ("role", "shown"),
    [
        ("bot", "'bot'"),
        ("User", "'User'"),
        ("", "''"),
        ("us\ud800", "'us\\ud800'"),
        ("x" * 100, "`str`"),
        (None, "None"),
        (5, "5"),
        (["user"], "['user']"),
        (Unprintable(), "`Unprintable`"),
    ],
)
def test_an_unknown_role_is_named(role: Any, shown: str) -> None:
    roles = "system, developer, user, assistant, tool, function"
    wrong_message([{"role": role}], 0, ".role", f"must be one of {roles}, got {shown}")


@pytest.mark.parametrize("content", [5, 1.5, True, b"hi", ("hi",), {1, 2}, object, Unprintable()])
def test_content_of_a_wrong_type_is_named(content: Any) -> None:
    shown = "`Unprintable`" if isinstance(content, Unprintable) else repr(content)
    problem = f"must be a string, a list of parts or None, got {shown}"
    wrong_message([USER, {"role": "user", "content": content}], 1, ".content", problem)


@pytest.mark.parametrize("part", [5, None, b"hi", ["hi"], True, ()])
def test_a_part_of_a_wrong_type_is_named(part: Any) -> None:
    messages = [{"role": "user", "content": ["fine", part]}]
    wrong_message(messages, 0, ".content[1]", f"must be a string or a dict, got {part!r}")


def test_a_text_part_whose_text_is_none_is_named() -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": 5}]}]
    wrong_message(messages, 0, ".content[0].text", "must be a string or None, got 5")


@pytest.mark.parametrize(
    "part",
    [
        {},
        {"type": 5},
        {"type": None},
        {"type": "image_url"},
        {"type": "image_url", "image_url": 5},
        {"type": "image_url", "image_url": {"url": 5}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,!!!"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
        {"type": "input_audio", "input_audio": {"data": "\ud800"}},
        {"type": "file", "file": {"file_data": "data:;base64,"}},
    ],
)
def test_a_part_with_broken_fields_still_costs_something(part: Any) -> None:
    bare = count_tokens([{"role": "user", "content": []}])
    assert count_tokens([{"role": "user", "content": [part]}]) > bare
    assert fit_messages([{"role": "user", "content": [part]}], 100_000).messages[0]["content"]


def test_a_single_part_without_its_list_is_read_as_one() -> None:
    message = {"role": "assistant", "content": {"type": "text", "text": "word " * 500}}
    assert count_tokens([message]) > 500
    fitted = fit_messages([message, USER], 100)
    assert fitted.tokens <= 100


@pytest.mark.parametrize("name", [5, [], {"a": 1}, Unprintable()])
def test_a_name_of_a_wrong_type_is_named(name: Any) -> None:
    shown = "`Unprintable`" if isinstance(name, Unprintable) else repr(name)
    messages = [{**USER, "name": name}]
    wrong_message(messages, 0, ".name", f"must be a string or None, got {shown}")


@pytest.mark.parametrize("key", ["reasoning_content", "thinking_blocks"])
def test_thoughts_that_are_no_json_are_named(key: str) -> None:
    message = {"role": "assistant", "content": "ok", key: [Unprintable()]}
    problem = "cannot be written as JSON: Object of type Unprintable is not JSON serializable"
    wrong_message([message], 0, f".{key}", problem)


# Calls and results -------------------------------------------------------------------------------


@pytest.mark.parametrize("calls", [5, {}, "f", (), True])
def test_calls_that_are_no_list_are_named(calls: Any) -> None:
    messages = [USER, {"role": "assistant", "tool_calls": calls}]
    wrong_message(messages, 1, ".tool_calls", f"must be a list or None, got {calls!r}")


@pytest.mark.parametrize("entry", [5, None, "f", [], ()])
def test_a_call_that_is_no_dict_is_named(entry: Any) -> None:
    messages = calling(call("{}"), entry)
    wrong_message(messages, 1, ".tool_calls[1]", f"must be a dict, got {entry!r}")


@pytest.mark.parametrize("kind", ["function", "custom"])
def test_a_function_that_is_no_dict_is_named(kind: str) -> None:
    wrong_message(calling({kind: 5}), 1, f".tool_calls[0].{kind}", "must be a dict, got 5")


@pytest.mark.parametrize("flaw", [{}, {"id": None}, {"id": ""}, {"id": 7}, {"id": ["a"]}])
def test_a_missing_id_is_made(flaw: Message) -> None:
    broken = {"function": {"name": "f", "arguments": "{}"}, **flaw}
    result = fit_messages(calling(broken), 1_000).messages
    assert result[1]["tool_calls"][0]["id"] == result[2]["tool_call_id"] == "call_1_0"
    assert broken == {"function": {"name": "f", "arguments": "{}"}, **flaw}


@pytest.mark.parametrize("flaw", [{}, {"name": None}, {"name": ""}, {"name": 7}])
def test_a_missing_name_is_made(flaw: Message) -> None:
    result = fit_messages(calling({"id": "a", "function": {"arguments": "{}", **flaw}}), 1_000)
    assert result.messages[1]["tool_calls"][0]["function"]["name"] == "unknown_tool"
    assert result.messages[2]["name"] == "unknown_tool"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (None, "{}"),
        ("", "{}"),
        (" \n", "{}"),
        ({}, "{}"),
        ({"a": [1, 2.5, None], "b": "文"}, '{"a":[1,2.5,null],"b":"文"}'),
        (["x"], '["x"]'),
        (5, "5"),
        ('{"a": ', '{"invalid_json": "{\\"a\\": "}'),
        ("{'a': 1}", '{"invalid_json": "{\'a\': 1}"}'),
        ('{"a": NaN}', '{"invalid_json": "{\\"a\\": NaN}"}'),
        ("{} {}", '{"invalid_json": "{} {}"}'),
        ("\x00", '{"invalid_json": "\\u0000"}'),
    ],
)
def test_arguments_become_json_text(arguments: Any, expected: str) -> None:
    result = fit_messages(calling(call(arguments)), 1_000).messages
    assert result[1]["tool_calls"][0]["function"]["arguments"] == expected


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_does_not_have_never_reach_a_provider(number: float) -> None:
    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} is no JSON")

    with contextlib.suppress(InvalidMessageError):
        result = fit_messages(calling(call({"a": number})), 1_000).messages
        sent = result[1]["tool_calls"][0]["function"]["arguments"]
        json.loads(sent, parse_constant=refuse)


def test_arguments_that_cannot_be_json_are_named() -> None:
    problem = "cannot be written as JSON: Object of type Unprintable is not JSON serializable"
    messages = calling(call({"a": Unprintable()}))
    wrong_message(messages, 1, ".tool_calls[0].function.arguments", problem)


def test_an_id_that_is_used_twice_is_made_new_with_its_result() -> None:
    results = [{"role": "tool", "tool_call_id": "a", "content": text} for text in ("one", "two")]
    messages = [*calling(call("{}"), call("[]")), *results]
    result = fit_messages(messages, 1_000).messages
    assert [entry["id"] for entry in result[1]["tool_calls"]] == ["a", "call_1_1"]
    assert [message["tool_call_id"] for message in result[2:]] == ["a", "call_1_1"]
    assert [message["content"] for message in result[2:]] == ["one", "two"]
    assert result[2] is messages[2]


def test_a_result_before_its_call_is_left_out_and_the_call_answered() -> None:
    early = {"role": "tool", "tool_call_id": "a", "content": "early"}
    result = fit_messages([USER, early, *calling(call("{}"))[1:]], 1_000).messages
    assert [message["role"] for message in result] == ["user", "assistant", "tool"]
    assert result[2]["content"] == "[no result was recorded for this call]"


def test_a_second_answer_is_left_out() -> None:
    answer = {"role": "tool", "tool_call_id": "a", "content": "one"}
    messages = [*calling(call("{}")), answer, {**answer, "content": "two"}]
    assert fit_messages(messages, 1_000).messages == messages[:3]


@pytest.mark.parametrize("call_id", [None, 5, [], Unprintable()])
def test_a_result_that_names_no_call_is_left_out(call_id: Any) -> None:
    orphan = {"role": "tool", "tool_call_id": call_id, "content": "lost"}
    assert fit_messages([USER, orphan, USER], 1_000).messages == [USER, USER]


# Texts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["\ud800", "a\udc00b", "\x00", "<|endoftext|>", "\ud83d\ude00"])
def test_any_text_can_be_counted_and_cut(text: str) -> None:
    long = {"role": "assistant", "content": text * 3_000}
    fitted = fit_messages([long, USER], 100)
    assert fitted.tokens == count_tokens(fitted.messages) <= 100
    assert fit_messages([{**USER, "content": text}], 100).messages[0]["content"] is text
    arguments = json.dumps({"a": text * 3_000}, ensure_ascii=False)
    fitted = fit_messages([*calling(call(arguments)), USER], 100)
    assert fitted.tokens == count_tokens(fitted.messages) <= 100


def test_a_trimmed_result_counts_the_characters_of_the_text_it_was_given() -> None:
    trimmed = trim_tool_result("a\udc00b" * 100, 60)
    assert len(trimmed) <= 60
    head, tail = trimmed.split("\n[... ")
    gone, tail = tail.split(" characters left out ...]\n")
    assert int(gone) == 300 - len(head) - len(tail)
    assert "😀" in trim_tool_result("\ud83d\ude00" * 100, 60)


def test_a_text_of_50_mb_is_counted_and_cut() -> None:
    text = "lorem ipsum dolor " * (50_000_000 // 18)
    big = {"role": "assistant", "content": text}
    assert count_tokens([big]) > 5_000_000
    fitted = fit_messages([USER, big, USER], 1_000)
    assert 900 <= fitted.tokens <= 1_000
    assert len(trim_tool_result(text)) == 15_000
    with pytest.raises(ContextOverflowError) as caught:
        fit_messages([{"role": "system", "content": text}, USER], 1_000)
    assert caught.value.parts["system"] > 5_000_000
    assert count_tokens([{"role": "user", "content": " " * 50_000_000}]) > 5


def test_arguments_of_50_mb_stay_json() -> None:
    messages = [*calling(call('{"path": "a", "content": "' + "lorem " * 8_000_000 + '"}')), USER]
    fitted = fit_messages(messages, 1_000)
    assert fitted.tokens <= 1_000
    arguments = json.loads(fitted.messages[1]["tool_calls"][0]["function"]["arguments"])
    assert arguments["path"] == "a"


def test_100_000_messages_are_compressed() -> None:
    messages = [
        {"role": ("user", "assistant")[n % 2], "content": f"message {n}"} for n in range(100_000)
    ]
    tokens = count_tokens(messages)
    assert tokens > 700_000
    assert len(compress_messages(messages, 2 * tokens)) == 100_000
    fitted = fit_messages(messages, 50_000)
    assert 45_000 <= fitted.tokens <= 50_000
    assert fitted.messages[-1] is messages[-2] or fitted.messages[-1] is messages[-1]
    assert count_tokens(emergency_compress(messages, 128_000)) < 0.6 * 128_000
    assert Session(messages=messages).get_history(0, 10_000)


def test_20_000_calls_in_one_message_are_paired() -> None:
    calls = [call("{}", id=str(n)) for n in range(20_000)]
    results = [{"role": "tool", "tool_call_id": str(n), "content": "ok"} for n in range(20_000)]
    fitted = fit_messages([*calling(*calls), *reversed(results)], 10_000_000)
    assert len(fitted.messages) == 20_002
    assert fitted.receipt.cuts == []


# Nesting and circles -----------------------------------------------------------------------------

DEEP = "cannot be written as JSON: maximum recursion depth exceeded"


@pytest.mark.parametrize("depth", [1_000, 20_000])
def test_arguments_that_are_nested_as_text_are_valid(depth: int) -> None:
    arguments = '{"a":' * depth + "1" + "}" * depth
    messages = [*calling(call(arguments)), {"role": "tool", "tool_call_id": "a", "content": "ok"}]
    assert count_tokens(messages) > depth
    fitted = fit_messages(messages, 10_000_000)
    assert fitted.messages[1] is messages[1]
    assert fit_messages([*messages, USER], 100).tokens <= 100


@pytest.mark.parametrize("depth", [1_000, 20_000])
@pytest.mark.parametrize(
    ("place", "field"),
    [
        (lambda value: calling(call(value)), ".tool_calls[0].function.arguments"),
        (lambda value: [USER, {**USER, "content": [{"type": "x", "v": value}]}], ".content[0]"),
        (lambda value: [USER, {**USER, "content": {"type": "x", "v": value}}], ".content"),
        (lambda value: [USER, {**USER, "thinking_blocks": value}], ".thinking_blocks"),
    ],
)
def test_objects_that_are_nested_too_deep_are_named(
    place: Callable[[Any], Any], field: str, depth: int
) -> None:
    is_written = goes_as_deep(depth)
    for read in READERS:
        if is_written:
            with contextlib.suppress(ContextOverflowError):
                read(place(nested(depth)))
            continue
        with pytest.raises(InvalidMessageError, match=DEEP) as caught:
            read(place(nested(depth)))
        assert (caught.value.index, caught.value.field) == (1, field)


def goes_as_deep(depth: int) -> bool:
    """Return whether this Python writes JSON so deep: from 3.14 on, as deep as its stack is."""
    try:
        json.dumps(nested(depth))
    except RecursionError:
        return False
    return True


@pytest.mark.parametrize("depth", [100, 900])
def test_objects_that_are_nested_less_deep_are_counted(depth: int) -> None:
    assert count_tokens(calling(call(nested(depth)))) > depth
    assert count_tokens([{**USER, "content": [{"type": "x", "v": nested(depth)}]}]) > depth
    assert count_tokens([USER], tools=[{"name": "f", "parameters": nested(depth)}]) > depth


def test_unknown_keys_may_hold_anything() -> None:
    circle: list[Any] = []
    circle.append(circle)
    message = {"role": "assistant", "content": "word " * 900, "x": circle, "y": nested(100_000)}
    fitted = fit_messages([message, USER], 100)
    assert fitted.messages[0]["x"] is circle
    assert fitted.messages[0]["y"] is message["y"]
    whole = [message, USER]
    assert compress_messages(whole, 100_000) == compress_messages(whole, 100_000)


def test_circles_are_named() -> None:
    circle: Message = {"type": "x"}
    circle["self"] = circle
    problem = "cannot be written as JSON: Circular reference detected"
    wrong_message([{**USER, "content": [circle]}], 0, ".content[0]", problem)
    arguments = ".tool_calls[0].function.arguments"
    wrong_message(calling(call(circle)), 1, arguments, problem)
    message: Message = {"role": "user"}
    message["content"] = message
    wrong_message([message], 0, ".content", problem)
    messages: list[Any] = []
    messages.append(messages)
    wrong_message(messages, 0, "", "must be a dict, got [[...]]")
    with pytest.raises(InvalidArgumentError) as caught:
        count_tokens([USER], tools=[circle])
    assert str(caught.value) == f"`tools` {problem}"


# Strange objects ---------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["message", "call", "part"])
def test_a_dict_that_cannot_be_copied_is_named_by_its_index(field: str) -> None:
    text = "word " * 3_000
    message: Message = {"role": "assistant", "content": text}
    if field == "call":
        message["tool_calls"] = [Raising(call(json.dumps({"text": text})))]
    elif field == "part":
        message["content"] = [Raising(type="text", text=text)]
    else:
        message = Raising(message)
    messages = [USER, message, {"role": "user", "content": "go on"}]
    for cut in (fit_messages, emergency_compress, compress_messages):
        with pytest.raises(InvalidMessageError, match="cannot be copied: no items") as caught:
            cut(messages, 2_000)
        assert caught.value.index == 1


def test_objects_of_a_client_are_named_with_the_way_to_dicts() -> None:
    class Object:
        def model_dump(self) -> Message:
            return USER

    for messages in ([Object()], calling(Object())):
        with pytest.raises(InvalidMessageError, match=r"\nhint: pass what its `model_dump\("):
            count_tokens(messages)  # type: ignore[arg-type]


def test_subclasses_are_read_as_what_they_are() -> None:
    plain = [{"role": "assistant", "content": "word " * 500}, USER]
    strange: list[Any] = [
        Spy({Text("role"): Text("assistant"), Text("content"): Text("word " * 500)}),
        Spy({"role": "user", "content": "hi"}),
    ]
    assert count_tokens(type("Messages", (list,), {})(strange)) == count_tokens(plain)
    fitted = fit_messages(strange, 100)
    assert fitted.tokens == fit_messages(plain, 100).tokens
    assert type(fitted.messages[0]) is dict
    assert fitted.messages[1] is strange[1]


def test_keys_that_are_no_strings_are_kept() -> None:
    keys: Message = {1: "a", None: "b", (1, 2): "c"}  # type: ignore[dict-item]
    message = {**keys, "role": "assistant", "content": "word " * 500}
    fitted = fit_messages([message, USER], 100)
    assert list(fitted.messages[0]) == list(message)


@pytest.mark.parametrize(
    "like",
    ["role", "content", "tool_calls", "tool_call_id", "name", "reasoning_content", "id", "type"],
)
def test_keys_that_cannot_be_compared_are_kept_or_raise_their_own_error(
    like: str, touchy: Callable[[str], Any]
) -> None:
    part = {"type": "text", "text": "word " * 500, touchy(like): 1}
    function = {"name": "f", "arguments": "{", touchy("arguments"): 1}
    entry = {"id": "a", touchy(like): 1, "function": function}
    messages: list[Message] = [
        {touchy(like): 1, "role": "assistant", "content": "word " * 500, "reasoning_content": "x"},
        {"role": "assistant", "content": [part], touchy(like): 1},
        {"role": "assistant", "tool_calls": [entry], touchy(like): 1},
        {"role": "user", "content": "hi", touchy(like): 1},
    ]
    Touchy.armed = True
    for read in READERS:
        with contextlib.suppress(RuntimeError, InvalidMessageError):
            assert read(messages) is not None
    Touchy.armed = False
    assert count_tokens([USER]) == 8, "the next call is as good as new"


# Other arguments ---------------------------------------------------------------------------------

NUMBERS: list[tuple[str, Callable[[Any], Any]]] = [
    ("context_window", lambda value: compress_messages([USER], value)),
    ("context_window", lambda value: emergency_compress([USER], value)),
    ("context_window", Compressor),
    ("max_tokens", lambda value: fit_messages([USER], value)),
    ("keep_last", lambda value: find_safe_cut_point([USER], value)),
    ("max_output_tokens", lambda value: compress_messages([USER], 9, max_output_tokens=value)),
    ("override", lambda value: get_context_window("gpt-4o", value)),
    ("max_chars", lambda value: trim_tool_result("x", value)),
    ("head_lines", lambda value: trim_tool_result("x", head_lines=value)),
    ("tail_lines", lambda value: trim_tool_result("x", tail_lines=value)),
]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (-1, "must be a non-negative integer, got -1"),
        (-(2**70), f"must be a non-negative integer, got {-(2**70)}"),
        (2**53 + 1, "must be at most 9007199254740992, got 9007199254740993"),
        (2**64, "must be at most 9007199254740992, got 18446744073709551616"),
        pytest.param(HUGE, "must be at most 9007199254740992, got `int`", id="huge"),
        pytest.param(-HUGE, "must be a non-negative integer, got `int`", id="-huge"),
        (1.0, "must be a non-negative integer, got 1.0"),
        (math.nan, "must be a non-negative integer, got nan"),
        (math.inf, "must be a non-negative integer, got inf"),
        (True, "must be a non-negative integer, got True"),
        ("5", "must be a non-negative integer, got '5'"),
        ([], "must be a non-negative integer, got []"),
        (Unprintable(), "must be a non-negative integer, got `Unprintable`"),
    ],
)
@pytest.mark.parametrize(("argument", "use"), NUMBERS)
def test_numbers_that_cannot_be_used_are_refused(
    argument: str, use: Callable[[Any], Any], value: Any, problem: str
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        use(value)
    assert caught.value.argument == argument
    assert str(caught.value) == f"`{argument}` {problem}"


@pytest.mark.parametrize("window", [0, 1, 2**53])
def test_the_smallest_and_the_largest_window(window: int) -> None:
    for read in (compress_messages, emergency_compress):
        assert read([], 2**53) == []
        if window == 2**53:
            assert read([USER], window) == [USER]
        else:
            with pytest.raises(ContextOverflowError):
                read([USER], window)


@pytest.mark.parametrize("model", [5, b"gpt-4o", ["gpt-4o"], "\ud800", Unprintable()])
def test_a_model_that_is_no_text_is_refused(model: Any) -> None:
    shown = "`Unprintable`" if isinstance(model, Unprintable) else repr(model)
    for use in (
        lambda: count_tokens([USER], model),
        lambda: compress_messages([USER], 100, model),
        lambda: fit_messages([USER], 100, model),
        lambda: Compressor(100, model),
    ):
        with pytest.raises(InvalidArgumentError) as caught:
            use()
        assert str(caught.value) == f"`model` must be a string or None, got {shown}"


@pytest.mark.parametrize(
    "model", ["", "x" * 1_000_000, "\x00", "模型", pytest.param(Text("gpt-4o"), id="subclass")]
)
def test_any_text_is_a_model(model: str) -> None:
    assert count_tokens([USER], model) >= 8


def test_tools_may_be_a_tuple() -> None:
    tool = {"type": "function", "function": {"name": "look"}}
    assert count_tokens([USER], tools=(tool,)) == count_tokens([USER], tools=[tool])
    assert Compressor(100, tools=(tool,)).compress([USER]) == [USER]


@pytest.mark.parametrize("tools", [5, "f", {}, {"name"}])
def test_tools_that_are_no_list_are_refused(tools: Any) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        count_tokens([USER], tools=tools)
    assert caught.value.argument == "tools"
    assert str(caught.value) == f"`tools` must be a list, a tuple or None, got {tools!r}"


@pytest.mark.parametrize("tool", [Unprintable(), {(1,): 2}, nested(100_000), {1, 2}, b"x"])
def test_tools_that_are_no_json_are_refused(tool: Any) -> None:
    for use in (
        lambda: count_tokens([USER], tools=[tool]),
        lambda: compress_messages([USER], 100, tools=[tool]),
        lambda: Compressor(100, tools=[tool]),
    ):
        with pytest.raises(InvalidArgumentError, match="`tools` cannot be written as JSON: "):
            use()


@pytest.mark.parametrize("tool", [None, 5, "f", [], {}, {"function": 5}, {"name": 5}, {1: 2}])
def test_tools_of_an_unknown_form_still_cost_something(tool: Any) -> None:
    assert count_tokens([USER], tools=[tool]) > count_tokens([USER])


class Knobs:
    """The attributes of `Settings`, unchecked."""

    def __init__(self, **changed: Any) -> None:
        vars(self).update(Settings().to_dict() | changed)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("tool_result_soft_limit", 2, "must be from 0 to 1, got 2"),
        ("tool_result_hard_limit", -0.1, "must be from 0 to 1, got -0.1"),
        ("context_reserve_ratio", math.nan, "must be from 0 to 1, got NaN"),
        ("emergency_ratio", math.inf, "must be from 0 to 1, got inf"),
        ("emergency_ratio", None, "must be a number, got None"),
        ("emergency_ratio", "0.5", "must be a number, got '0.5'"),
        ("emergency_ratio", Unprintable(), "must be a number, got `Unprintable`"),
        ("pinned", "a.md", "must be a list of file names or patterns, got 'a.md'"),
        ("pinned", [1], "must be a list of file names or patterns, got [1]"),
        ("reasoning_keep_chars", -1, "must be a non-negative integer, got -1"),
        ("max_user_message_chars", 1.5, "must be a non-negative integer, got 1.5"),
        ("max_assistant_message_chars", True, "must be a non-negative integer, got True"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(name: str, value: Any, problem: str) -> None:
    knobs: Any = Knobs(**{name: value})
    for use in (
        lambda: compress_messages([USER], 100, settings=knobs),
        lambda: emergency_compress([USER], 100, settings=knobs),
        lambda: Compressor(100, settings=knobs),
    ):
        with pytest.raises(InvalidArgumentError) as caught:
            use()
        assert caught.value.argument == f"settings.{name}"
        assert str(caught.value) == f"`settings.{name}` {problem}"


@pytest.mark.parametrize("settings", [5, "x", {}, object(), Unprintable()])
def test_settings_of_a_wrong_type_are_refused(settings: Any) -> None:
    for use in (
        lambda: compress_messages([USER], 100, settings=settings),
        lambda: Compressor(100, settings=settings),
    ):
        with pytest.raises(InvalidArgumentError) as caught:
            use()
        assert caught.value.argument.startswith("settings")


@pytest.mark.parametrize("result", [5, None, b"x", ["x"], Unprintable()])
def test_a_result_that_is_no_text_is_refused(result: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="`result` must be a string, got ") as caught:
        trim_tool_result(result)
    assert caught.value.argument == "result"


def test_errors_can_be_caught_as_value_errors() -> None:
    with pytest.raises(ValueError, match="must be a list"):
        count_tokens(5)  # type: ignore[arg-type]
    with pytest.raises(nanobot_context.NanobotContextError):
        count_tokens([5])  # type: ignore[list-item]
