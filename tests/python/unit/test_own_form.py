"""Lists of messages in Anthropic's form, and of items of Responses, come back in their own form."""

from __future__ import annotations

import asyncio
import json
import pickle
import random
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import pytest

from nanobot_context import (
    Compressor,
    ContextOverflowError,
    InvalidMessageError,
    call_with_recovery,
    call_with_recovery_sync,
    compress_messages,
    count_tokens,
    emergency_compress,
    find_last_user_index,
    find_safe_cut_point,
    fit_messages,
    fits,
)

Message = dict[str, Any]
CLAUDE = "claude-sonnet-4-5"
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}}
MARK = {"cache_control": {"type": "ephemeral"}}
SAID = [
    "All is well. ",
    "节点 7 磁盘已满。",
    "GET /items/42 200\n",
    "ERROR E1234 in src/app_7.py\n",
    "x\U0001f600 ",
]


class Talk:
    """A conversation as Anthropic has it, made up of a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._number = 0

    def _is(self, share: float) -> bool:
        return self._random.random() < share

    def _text(self) -> str:
        return self._random.choice(SAID) * self._random.randint(1, 60)

    def _mark(self) -> Message:
        return MARK if self._is(0.1) else {}

    def _result(self, id_: str) -> Message:
        block: Message = {"type": "tool_result", "tool_use_id": id_, **self._mark()}
        if self._is(0.1):
            block["is_error"] = True
        if self._is(0.3):
            return {**block, "content": [{"type": "text", "text": self._text()}, IMAGE]}
        return {**block, "content": self._text()} if self._is(0.95) else block

    def _calls(self) -> list[Message]:
        blocks: list[Message] = []
        answers: list[Message] = []
        for _ in range(self._random.randint(1, 3)):
            self._number += 1
            if self._is(0.4):
                blocks.append(
                    {
                        "type": "thinking",
                        "thinking": self._text(),
                        "signature": f"s{self._number}",
                    }
                )
            if self._is(0.4):
                blocks.append({"type": "text", "text": self._text(), **self._mark()})
            given = {"path": f"/var/{self._number}", "text": self._text()[:90]}
            call = {"type": "tool_use", "id": f"t{self._number}", "name": "f", "input": given}
            blocks.append({**call, **self._mark()})
            answers.append(self._result(f"t{self._number}"))
        if self._is(0.3):
            answers.append({"type": "text", "text": "Go on.", **self._mark()})
        return [{"role": "assistant", "content": blocks}, {"role": "user", "content": answers}]

    def _answer(self) -> Message:
        if self._is(0.3):
            return {"role": "assistant", "content": self._text()}
        blocks: list[Message] = []
        if self._is(0.3):
            self._number += 1
            blocks.append({"type": "redacted_thinking", "data": f"d{self._number}"})
        if self._is(0.2):
            self._number += 1
            id_ = f"srv{self._number}"
            found = {"type": "web_search_result", "url": "u", "encrypted_content": self._text()}
            blocks += [
                {"type": "server_tool_use", "id": id_, "name": "web_search", "input": {}},
                {"type": "web_search_tool_result", "tool_use_id": id_, "content": [found]},
            ]
        blocks.append({"type": "text", "text": self._text(), **self._mark()})
        return {"role": "assistant", "content": blocks}

    def messages(self) -> list[Message]:
        messages: list[Message] = []
        for _ in range(self._random.randint(1, 5)):
            said: Any = self._text()
            if self._is(0.3):
                said = [IMAGE, {"type": "text", "text": said, **self._mark()}]
            messages.append({"role": "user", "content": said})
            for _ in range(self._random.randint(0, 3)):
                messages += self._calls()
            messages.append(self._answer())
        if self._is(0.5):
            messages.append({"role": "user", "content": "And now?"})
        elif self._is(0.7):
            messages.pop()
        return messages


def blocks_of(message: Message) -> list[Message]:
    content = message["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def check_pairs(messages: list[Message]) -> None:
    """Each call is answered in the message behind it, before anything else is said there."""
    waiting: list[str] = []
    for message in messages:
        blocks = blocks_of(message)
        assert blocks
        assert set(message) == {"role", "content"}
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert results == waiting
        assert all(block["type"] == "tool_result" for block in blocks[: len(results)])
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        servers = [block["id"] for block in blocks if block["type"] == "server_tool_use"]
        found = [b["tool_use_id"] for b in blocks if b["type"] == "web_search_tool_result"]
        assert servers == found
        assert message["role"] == "assistant" or not waiting
        assert all(block["text"].strip() for block in blocks if block["type"] == "text")
    assert not waiting


def unsigned(messages: list[Message]) -> set[str]:
    """Return the calls of the round under way that have no thoughts before them."""
    found: set[str] = set()
    for message in reversed(messages):
        blocks = blocks_of(message)
        if message["role"] == "user" and any(b["type"] != "tool_result" for b in blocks):
            break
        if message["role"] == "assistant" and "thinking" not in blocks[0]["type"]:
            found |= {block["id"] for block in blocks if block["type"] == "tool_use"}
    return found


def marks(messages: list[Message]) -> int:
    inner = [b for m in messages for b in blocks_of(m)]
    return sum("cache_control" in block for block in inner)


FITS: dict[str, Callable[[list[Message], int], list[Message]]] = {
    "fit_messages": lambda messages, tokens: fit_messages(messages, tokens, CLAUDE).messages,
    "compress_messages": lambda messages, tokens: compress_messages(messages, tokens, CLAUDE),
}


@pytest.mark.parametrize("name", FITS)
def test_what_is_cut_of_anthropics_messages_is_still_what_its_server_takes(name: str) -> None:
    cut = 0
    for seed in range(2_000):
        messages = Talk(seed).messages()
        before = json.dumps(messages)
        budget = int(count_tokens(messages, CLAUDE) * (0.9, 0.5, 0.25)[seed % 3])
        try:
            made = FITS[name](messages, budget)
        except ContextOverflowError:
            continue
        cut += made != messages
        assert json.dumps(messages) == before
        assert count_tokens(made, CLAUDE) <= budget
        check_pairs(made)
        assert unsigned(made) <= unsigned(messages)
        assert marks(made) <= marks(messages)
        whole = {id(message) for message in messages}
        assert all(id(message) in whole for message in made if message in messages)
        given = {id(block) for message in messages for block in blocks_of(message)}
        for block in (block for message in made for block in blocks_of(message)):
            is_cut = block["type"] in ("text", "tool_use", "tool_result")
            assert is_cut or id(block) in given
    assert cut > 1_000


def test_a_call_without_a_name_gets_one() -> None:
    nameless = {"type": "tool_use", "id": "a", "name": None, "input": {}, **MARK}
    given = [ASKED, {"role": "assistant", "content": [nameless]}, answered("a"), SAYS, NOW]
    (block,) = fit_messages(given, 3_000, CLAUDE).messages[1]["content"]
    assert block == {**nameless, "name": block["name"]}
    assert block["name"]


# Each function -----------------------------------------------------------------------------------


def used(id_: str, text: str = "x") -> Message:
    call = {"type": "tool_use", "id": id_, "name": "read_file", "input": {"path": text}}
    return {"role": "assistant", "content": [call]}


def answered(*ids: str, content: Any = "ok", beside: str | None = None) -> Message:
    blocks: list[Message] = [
        {"type": "tool_result", "tool_use_id": id_, "content": content} for id_ in ids
    ]
    if beside is not None:
        blocks.append({"type": "text", "text": beside})
    return {"role": "user", "content": blocks}


LOG = "".join(f"line {n} of src/app.py is well\n" for n in range(400))
ASKED: Message = {"role": "user", "content": "Read it."}
NOW: Message = {"role": "user", "content": "And now?"}
SAYS: Message = {"role": "assistant", "content": "It is well."}
CLAUDES: list[Message] = [
    ASKED,
    used("a"),
    answered("a", content=LOG + "ERROR E4711: disk 9 is gone\n"),
    SAYS,
    ASKED,
    used("b"),
    answered("b", content=LOG.replace("app", "web"), beside="Be quick."),
    SAYS,
    NOW,
]
ITEMS: list[Message] = [
    {"role": "user", "content": "Read it."},
    {"type": "reasoning", "id": "rs1", "summary": [], "encrypted_content": "x"},
    {"type": "function_call", "call_id": "a", "id": "fc1", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "a", "output": LOG},
    {"role": "assistant", "content": "It is well."},
    {"role": "user", "content": "Again."},
    {"type": "function_call", "call_id": "b", "id": "fc2", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "b", "output": LOG.replace("app", "web")},
    NOW,
]
BOTH = pytest.mark.parametrize("given", [CLAUDES, ITEMS], ids=["anthropic", "responses"])


def chat_form(given: list[Message]) -> list[Message]:
    """Return either list as OpenAI's chat messages."""
    messages: list[Message] = []
    for one in given:
        kind = one.get("type")
        blocks = one["content"] if isinstance(one.get("content"), list) else []
        if kind == "function_call" or any(b["type"] == "tool_use" for b in blocks):
            id_ = one.get("call_id") or blocks[0]["id"]
            name, text = one.get("name"), one.get("arguments")
            if blocks:
                name, text = blocks[0]["name"], json.dumps(blocks[0]["input"])
            function = {"name": name, "arguments": text}
            call = {"id": id_, "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        elif kind == "function_call_output":
            messages.append({"role": "tool", "tool_call_id": one["call_id"], "content": LOG})
        elif blocks:
            for block in blocks:
                if block["type"] == "text":
                    messages.append({"role": "user", "content": block["text"]})
                else:
                    id_, text = block["tool_use_id"], block["content"]
                    messages.append({"role": "tool", "tool_call_id": id_, "content": text})
        elif kind != "reasoning":
            messages.append(one)
    return messages


def test_anthropics_messages_count_as_they_do_in_openais_form() -> None:
    assert count_tokens(CLAUDES, CLAUDE) == count_tokens(chat_form(CLAUDES), CLAUDE)


def test_an_image_in_a_result_counts_as_an_image() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "iVBO" * 9_000}
    shown = answered("a", content=[{"type": "image", "source": source}])
    assert count_tokens([ASKED, used("a"), shown], CLAUDE) < 5_000


def test_items_of_responses_count_with_their_thoughts() -> None:
    without = [item for item in ITEMS if item.get("type") != "reasoning"]
    assert count_tokens(without, "gpt-5") == count_tokens(chat_form(ITEMS), "gpt-5")
    assert count_tokens(ITEMS, "gpt-5") > count_tokens(without, "gpt-5")


@BOTH
def test_what_fits_is_what_is_counted(given: list[Message]) -> None:
    tokens = count_tokens(given, "gpt-4o")
    assert fits(given, tokens, "gpt-4o")
    assert not fits(given, tokens - 1, "gpt-4o")


def test_a_sequence_of_mappings_is_read_too() -> None:
    given = deque(MappingProxyType(message) for message in CLAUDES)
    assert fit_messages(given, 500, CLAUDE).messages == fit_messages(CLAUDES, 500, CLAUDE).messages


def results_of(messages: list[Message]) -> list[str]:
    return [
        block.get("tool_use_id") or block["call_id"]
        for message in messages
        for block in (message["content"] if "tool_result" in str(message) else [message])
        if str(block.get("type")) in ("tool_result", "function_call_output")
    ]


def calls_of(messages: list[Message]) -> list[str]:
    return [
        block.get("call_id") or block["id"]
        for message in messages
        for block in (message["content"] if "tool_use'" in str(message) else [message])
        if str(block.get("type")) in ("tool_use", "function_call")
    ]


@BOTH
@pytest.mark.parametrize("by_name", [False, True])
def test_messages_are_fitted_in_their_own_form(given: list[Message], by_name: bool) -> None:
    budget = count_tokens(given, "gpt-4o") // 3
    if by_name:
        fitted = fit_messages(messages=given, max_tokens=budget, model="gpt-4o")
    else:
        fitted = fit_messages(given, budget, "gpt-4o")
    assert fitted.tokens == count_tokens(fitted.messages, "gpt-4o") <= budget
    assert calls_of(fitted.messages) == results_of(fitted.messages)
    assert fitted.messages[-1] is given[-1]
    assert fitted.receipt.tokens_before == count_tokens(given, "gpt-4o")


@BOTH
def test_a_receipt_names_places_in_the_list_that_came_in(given: list[Message]) -> None:
    fitted = fit_messages(given, count_tokens(given, "gpt-4o") // 3, "gpt-4o")
    receipt = pickle.loads(pickle.dumps(fitted)).receipt
    assert receipt == fitted.receipt
    large = [at for at, one in enumerate(given) if len(json.dumps(one)) > 5_000]
    assert {cut.index for cut in receipt.cuts} >= set(large)
    assert all(cut.index < len(given) for cut in receipt.cuts)


def test_what_is_lost_of_a_result_is_found_where_it_stood() -> None:
    lost = fit_messages(CLAUDES, 90, CLAUDE).receipt.lost
    assert {one.index: one.text for one in lost if one.kind == "error"} == {
        2: "ERROR E4711: disk 9 is gone"
    }
    paths = {one.text: one.index for one in lost if one.kind == "path"}
    assert paths == {"src/app.py": 2, "src/web.py": 6}


@BOTH
def test_only_what_is_above_a_place_is_cut(given: list[Message]) -> None:
    # The second result, and what follows it, stays.
    above = next(at for at in range(len(given) - 1, 0, -1) if len(json.dumps(given[at])) > 5_000)
    budget = count_tokens(given, "gpt-4o") * 2 // 3
    fitted = fit_messages(given, budget, "gpt-4o", above=above)
    assert fitted.messages[-len(given[above:]) :] == given[above:]
    assert {cut.index for cut in fitted.receipt.cuts} <= set(range(above))


@BOTH
@pytest.mark.parametrize(
    "function",
    [
        compress_messages,
        emergency_compress,
        lambda *given: Compressor(*given[1:]).compress(given[0]),
        lambda *given: Compressor(*given[1:]).emergency(given[0]),
    ],
)
def test_messages_are_compressed_in_their_own_form(
    given: list[Message], function: Callable[..., list[Message]]
) -> None:
    window = count_tokens(given, "gpt-4o") // 2
    made = function(given, window, "gpt-4o")
    assert made != given
    assert count_tokens(made, "gpt-4o") <= window
    assert calls_of(made) == results_of(made) != []
    assert made[-1] is given[-1]


@BOTH
def test_what_fits_comes_back_as_the_same_objects(given: list[Message]) -> None:
    compressor = Compressor(100_000, "gpt-4o")
    for made in (
        compress_messages(given, 100_000, "gpt-4o"),
        fit_messages(given, 100_000, "gpt-4o").messages,
        compressor.compress(given),
    ):
        assert [id(one) for one in made] == [id(one) for one in given]
    assert compressor.receipt is None


@BOTH
def test_a_compressors_receipt_names_places_in_the_list_that_came_in(given: list[Message]) -> None:
    compressor = Compressor(count_tokens(given, "gpt-4o") // 2, "gpt-4o")
    compressor.compress(given)
    large = {at for at, one in enumerate(given) if len(json.dumps(one)) > 5_000}
    receipt = compressor.receipt
    assert receipt is not None
    assert {cut.index for cut in receipt.cuts} <= large


def test_a_conversation_is_cut_off_between_messages_of_the_list() -> None:
    cuts = [find_safe_cut_point(CLAUDES, keep) for keep in range(len(CLAUDES) + 2)]
    # Not at 6, where something is said beside a result.
    assert cuts == [9, 8, 7, 4, 4, 4, 3, 0, 0, 0, 0]
    items = [find_safe_cut_point(ITEMS, keep) for keep in range(len(ITEMS) + 1)]
    assert items == [9, 8, 5, 5, 5, 4, 0, 0, 0, 0]


def test_no_item_is_cut_off_from_the_thoughts_that_led_to_it() -> None:
    search = {"type": "web_search_call", "id": "ws1", "status": "completed"}
    items = [NOW, ITEMS[1], search, SAYS, *ITEMS[1:4], NOW]
    assert [find_safe_cut_point(items, keep) for keep in range(9)] == [8, 7, 1, 1, 1, 1, 1, 1, 0]


def test_no_thoughts_stay_without_what_they_led_to() -> None:
    given: list[Message] = []
    for n in range(8):
        thought = {"type": "reasoning", "id": f"rs{n}", "summary": [], "encrypted_content": "x"}
        action = {"query": f"how is node {n} " * 20}
        search = {"type": "web_search_call", "id": f"ws{n}", "status": "completed"}
        answer = {"type": "message", "role": "assistant", "content": LOG[:900]}
        given += [ASKED, thought, {**search, "action": action}, answer]
    given += [NOW]
    kept = 0
    for budget in range(150, count_tokens(given, "gpt-5"), 25):
        items = fit_messages(given, budget, "gpt-5").messages
        for item, following in pairwise(items):
            if item.get("type") == "reasoning":
                kept += 1
                assert following.get("role", "assistant") == "assistant"
    assert kept > 50


def test_the_last_message_of_the_user_is_where_something_is_said() -> None:
    assert find_last_user_index(CLAUDES) == 8
    assert find_last_user_index(CLAUDES[:8]) == 6
    assert find_last_user_index(CLAUDES[:3]) == 0
    assert find_last_user_index(CLAUDES[1:3]) == 2
    assert find_last_user_index(ITEMS[:5]) == 0


class TooLong(Exception):
    pass


def server(limit: int, sent: list[list[Message]]) -> Callable[..., str]:
    def chat(messages: list[Message], *, max_tokens: int | None) -> str:
        sent.append(messages)
        tokens = count_tokens(messages, "gpt-4o")
        if tokens > limit:
            raise TooLong(f"prompt is too long: {tokens} tokens > {limit} maximum")
        return "ok"

    return chat


@BOTH
@pytest.mark.parametrize("own", [False, True])
def test_a_refused_call_is_sent_again_in_its_own_form(given: list[Message], own: bool) -> None:
    whole = count_tokens(given, "gpt-4o")
    sent: list[list[Message]] = []
    compressor = Compressor(100_000, "gpt-4o") if own else None
    chat = server(whole // 2, sent)
    options: dict[str, Any] = {"compressor": compressor, "endpoint": f"{own} {given is ITEMS}"}
    answer = call_with_recovery_sync(chat, given, context_window=100_000, model="m", **options)
    assert answer == "ok"
    first, second = sent
    assert [id(one) for one in first] == [id(one) for one in given]
    assert calls_of(second) == results_of(second)
    assert second[-1] is given[-1]


def test_a_call_is_made_to_fit_in_its_own_form() -> None:
    sent: list[list[Message]] = []
    window = count_tokens(CLAUDES, "gpt-4o") // 2
    call = server(window, sent)

    async def chat(messages: list[Message], *, max_tokens: int | None) -> str:
        return call(messages, max_tokens=max_tokens)

    answer = call_with_recovery(chat, CLAUDES, context_window=window, model="gpt-4o")
    assert asyncio.run(answer) == "ok"
    assert len(sent) == 1
    check_pairs(sent[0])


# What is of no form ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({"role": "user", "content": ["text", 5]}, ".content[1]"),
        ({"role": "nobody", "content": "x"}, ".role"),
        ({"role": "user", "content": ["a text alone"]}, ".content"),
        (answered("b", content=5), ".content"),
        (answered("b", content=["a text alone"]), ".content"),
        ({"role": "user", "content": [{"type": "image", "source": "x"}]}, ".content"),
    ],
)
def test_an_error_names_the_place_in_the_list_that_came_in(bad: Message, field: str) -> None:
    given = [ASKED, used("a"), answered("a", beside="Go on."), SAYS, bad]
    with pytest.raises(InvalidMessageError, match=r"`messages\[4\]") as error:
        count_tokens(given)
    assert (error.value.index, error.value.field) == (4, field)


def test_an_error_names_the_place_of_an_item() -> None:
    given = [*ITEMS[:4], {"type": "message", "content": "x"}]
    with pytest.raises(InvalidMessageError, match=r"`messages\[4\].role`") as error:
        count_tokens(given)
    assert error.value.index == 4


@pytest.mark.parametrize(
    "given",
    [
        [{"type": "text", "text": "a part, no message"}],
        [*ITEMS, {"role": "tool", "tool_call_id": "a", "content": "ok"}],
    ],
)
def test_what_is_neither_form_is_refused_as_before(given: list[Message]) -> None:
    with pytest.raises(InvalidMessageError, match="has no `role`"):
        count_tokens(given)
