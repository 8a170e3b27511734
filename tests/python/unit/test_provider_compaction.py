"""What a provider has compacted itself is all that the model knows of what came before."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from nanobot_context import (
    Compressor,
    compress_messages,
    count_tokens,
    emergency_compress,
    find_last_user_index,
    find_safe_cut_point,
    fit_messages,
)

Message = dict[str, Any]
ITEM: Message = {"type": "compaction", "id": "cmp_1", "encrypted_content": "Zm9v" * 300}
BLOCK: Message = {"type": "compaction", "content": "Deploy on Fridays only. " * 20}
ASKED: Message = {"role": "user", "content": "And now?"}
MODELS = {"item": "gpt-5", "block": "claude-opus-4-6"}


def talk(turns: int) -> list[Message]:
    return [
        {"role": role, "content": f"{role} {n} " + "word data " * 200}
        for n in range(turns)
        for role in ("user", "assistant")
    ]


def said(*blocks: Message) -> Message:
    return {"role": "assistant", "content": list(blocks)}


TEXT: Message = {"type": "text", "text": "I go on. " * 40}
GIVEN = {
    "item": [*talk(6), ITEM, {"role": "assistant", "content": "I go on."}, *talk(12), ASKED],
    "block": [*talk(6), ASKED, said(BLOCK, TEXT), *talk(12), ASKED],
}
EACH = pytest.mark.parametrize("name", GIVEN)


def is_kept(messages: list[Message]) -> bool:
    contents = [one["content"] for one in messages if isinstance(one.get("content"), list)]
    return ITEM in messages or any(BLOCK in content for content in contents)


@EACH
@pytest.mark.parametrize("share", [0.9, 0.6, 0.4, 0.2])
def test_it_stays_and_what_stands_before_it_goes_first(name: str, share: float) -> None:
    given, model = GIVEN[name], MODELS[name]
    before = json.dumps(given)
    tokens = int(count_tokens(given, model) * share)
    compressor = Compressor(tokens, model)
    for made in (
        fit_messages(given, tokens, model).messages,
        compress_messages(given, tokens, model),
        emergency_compress(given, tokens, model),
        compressor.compress(given),
    ):
        assert is_kept(made)
        assert made[-1] is ASKED
        assert count_tokens(made, model) <= tokens
        assert len(made) < len(given)
        # Of what the model said before it nothing is left.
        front = next(n for n, one in enumerate(made) if is_kept([one]))
        assert {one["role"] for one in made[:front]} <= ({"user"} if name == "item" else set())
        roles = [one.get("role") for one in made]
        assert ("assistant", "assistant") not in pairwise(roles)
    assert json.dumps(given) == before


@EACH
def test_what_fits_comes_back_as_it_came(name: str) -> None:
    given, model = GIVEN[name], MODELS[name]
    made = fit_messages(given, 1_000_000, model).messages
    assert [id(one) for one in made] == [id(one) for one in given]
    assert all(isinstance(find_safe_cut_point(given, n), int) for n in range(len(given)))
    assert find_last_user_index(given) == len(given) - 1


def test_only_what_the_server_reads_counts() -> None:
    for name, given in GIVEN.items():
        at = next(n for n, one in enumerate(given) if is_kept([one]))
        users = [one for one in given[:at] if one["role"] == "user"] if name == "item" else []
        expected = count_tokens([*users, *given[at:]], MODELS[name])
        assert count_tokens(given, MODELS[name]) == expected


def test_a_list_of_nothing_but_a_compaction_and_messages_is_one_of_items() -> None:
    assert count_tokens([ITEM, ASKED], "gpt-5") > count_tokens([ASKED], "gpt-5") + 100
    approval = {"type": "mcp_approval_request", "id": "a", "name": "x", "arguments": "{}"}
    tools = {"type": "mcp_list_tools", "id": "t", "server_label": "s", "tools": []}
    for item in (approval, tools, {"type": "item_reference", "id": "msg_1"}):
        assert fit_messages([item, ASKED], 1_000, "gpt-5").messages == [item, ASKED]


def test_a_turn_under_way_goes_on_behind_it() -> None:
    call = {"type": "tool_use", "id": "t", "name": "read", "input": {"path": "a.log"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "line of a log\n" * 900}
    given = [*talk(3), ASKED, said(BLOCK, call), {"role": "user", "content": [result]}]
    tokens = count_tokens(given, MODELS["block"])
    made = fit_messages(given, tokens // 2, MODELS["block"]).messages
    assert made[-2] is given[-2]
    assert made[-1]["content"][0]["tool_use_id"] == "t"


def test_the_newest_of_several_is_what_stays() -> None:
    newest = {**ITEM, "id": "cmp_2", "encrypted_content": "YmFy" * 300}
    given = [ITEM, *talk(3), newest, *talk(12), ASKED]
    made = fit_messages(given, count_tokens(given, "gpt-5") // 2, "gpt-5").messages
    assert newest in made
    assert ITEM not in made


def test_one_that_failed_holds_nothing() -> None:
    failed = {"type": "compaction", "content": None}
    given = [*talk(2), said(failed, TEXT), ASKED]
    assert count_tokens(given, MODELS["block"]) > count_tokens(talk(2), MODELS["block"])
