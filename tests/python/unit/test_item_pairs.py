"""Calls and results of Responses that are such by their form: both stay, or both go."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from nanobot_context import compress_messages, count_tokens, emergency_compress, fit_messages
from nanobot_context.wire.forms import form_of

Item = dict[str, Any]
MODEL = "gpt-5"
LOG = "GET /items/42 200 in 3 ms\n" * 120
SHOT = {"type": "computer_screenshot", "image_url": "data:image/png;base64," + "iVBO" * 400}


def local_shell(n: int) -> list[Item]:
    action = {"type": "exec", "command": ["cat", f"log{n}"], "env": {}}
    call = {"type": "local_shell_call", "id": f"l{n}", "call_id": f"c{n}", "action": action}
    return [call, {"type": "local_shell_call_output", "call_id": f"c{n}", "output": LOG}]


def shell(n: int) -> list[Item]:
    call = {"type": "shell_call", "call_id": f"c{n}", "action": {"commands": [f"cat log{n}"]}}
    outcome = {"type": "exit", "exit_code": 0}
    output = [{"stdout": LOG, "stderr": "", "outcome": outcome}]
    return [call, {"type": "shell_call_output", "call_id": f"c{n}", "output": output}]


def apply_patch(n: int) -> list[Item]:
    operation = {"type": "update_file", "path": f"src/{n}.py", "diff": "@@\n+x = 1\n" * 200}
    thought = {"type": "reasoning", "id": f"r{n}", "summary": [], "encrypted_content": "E" * 300}
    call = {"type": "apply_patch_call", "id": f"p{n}", "call_id": f"c{n}", "operation": operation}
    result = {"type": "apply_patch_call_output", "call_id": f"c{n}", "status": "completed"}
    return [thought, call, {**result, "output": "Done"}]


def computer(n: int) -> list[Item]:
    call = {"type": "computer_call", "id": f"u{n}", "call_id": f"c{n}", "action": {"type": "wait"}}
    return [call, {"type": "computer_call_output", "call_id": f"c{n}", "output": SHOT}]


def approval(n: int) -> list[Item]:
    asked = json.dumps({"text": "long " * 300})
    call = {"type": "mcp_approval_request", "id": f"a{n}", "name": "pay", "arguments": asked}
    response = {"type": "mcp_approval_response", "approval_request_id": f"a{n}", "approve": True}
    return [{**call, "server_label": "bank"}, response]


def unknown(n: int) -> list[Item]:
    """Return what no API has today."""
    call = {"type": "quantum_call", "call_id": f"c{n}", "circuit": {"gates": ["h"] * 200}}
    seen = {"state": {"said": LOG, "sealed": "x" * 3_000}, "shots": 100}
    return [call, {"type": "quantum_call_output", "call_id": f"c{n}", **seen}]


def both(n: int) -> list[Item]:
    call = {"type": "function_call", "id": f"f{n}", "call_id": f"d{n}", "name": "look"}
    said = {"type": "message", "role": "assistant", "content": "I look at both. " * 40}
    mine, result = shell(n)
    output = {"type": "function_call_output", "call_id": f"d{n}", "output": LOG}
    return [said, mine, {**call, "arguments": "{}"}, result, output]


KINDS: list[Callable[[int], list[Item]]] = [
    local_shell,
    shell,
    apply_patch,
    computer,
    approval,
    unknown,
    both,
]
EACH = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def conversation(kind: Callable[[int], list[Item]]) -> list[Item]:
    items: list[Item] = []
    for n in range(12):
        items += [{"role": "user", "content": f"What of {n}? " * 20}, *kind(n)]
        items.append({"type": "message", "role": "assistant", "content": f"All is well at {n}."})
    return [*items, {"role": "user", "content": "And now?"}]


def halves(items: list[Item]) -> tuple[list[str], list[str]]:
    """Return what calls are named, and what results say that they answer."""
    calls, results = [], []
    for item in items:
        kind = item.get("type", "message")
        if kind.endswith("_call"):
            calls.append(item["call_id"])
        elif kind == "mcp_approval_request":
            calls.append(item["id"])
        elif kind.endswith("_output"):
            results.append(item["call_id"])
        elif kind == "mcp_approval_response":
            results.append(item["approval_request_id"])
    return calls, results


def functions(items: list[Item], tokens: int) -> list[list[Item]]:
    return [
        fit_messages(items, tokens, MODEL).messages,
        compress_messages(items, tokens, MODEL),
        emergency_compress(items, tokens, MODEL),
    ]


@EACH
def test_a_call_and_its_result_stay_or_go_together(kind: Callable[[int], list[Item]]) -> None:
    given = conversation(kind)
    before = json.dumps(given)
    tokens = count_tokens(given, MODEL)
    kept = 0
    for share in (0.9, 0.7, 0.5, 0.35):
        for items in functions(given, int(tokens * share)):
            calls, results = halves(items)
            assert calls == results
            kept += len(calls)
            thoughts = [item for item in given if item.get("type") == "reasoning"]
            for place, item in enumerate(items):
                own = str(item.get("type"))
                if own.endswith(("_call", "_request")) and own != "function_call":
                    assert item in given
                    assert kind is not apply_patch or items[place - 1] in thoughts
    assert kept > 10
    assert json.dumps(given) == before


@EACH
def test_what_is_written_is_as_large_as_what_was_fitted(
    kind: Callable[[int], list[Item]],
) -> None:
    given = conversation(kind)
    tokens = count_tokens(given, MODEL)
    for budget in range(tokens // 5, tokens, tokens // 25):
        fitted = fit_messages(given, budget, MODEL)
        # Half of a pair that has become text costs no more than the whole.
        assert count_tokens(fitted.messages, MODEL) <= budget + 30


@EACH
def test_what_fits_comes_back_as_the_same_objects(kind: Callable[[int], list[Item]]) -> None:
    given = conversation(kind)
    items = fit_messages(given, 1_000_000, MODEL).messages
    assert [id(item) for item in items] == [id(item) for item in given]


@pytest.mark.parametrize("kind", [shell, unknown])
def test_a_long_result_is_shortened_where_its_texts_stand(
    kind: Callable[[int], list[Item]],
) -> None:
    call, result = kind(0)
    given = [{"role": "user", "content": "Look."}, call, result]
    asked = {"role": "user", "content": "And now?"}
    tokens = count_tokens([*given, asked], MODEL)
    kept = fit_messages([*given, asked], tokens - 500, MODEL).messages
    short = kept[2]
    assert kept[1] is call
    assert short != result
    if kind is shell:
        assert short["output"][0]["outcome"] == {"type": "exit", "exit_code": 0}
        assert 0 < len(short["output"][0]["stdout"]) < len(LOG)
    else:
        assert short["state"]["sealed"] == "x" * 3_000
        assert 0 < len(short["state"]["said"]) < len(LOG)


def test_an_image_that_goes_takes_the_form_of_its_call_with_it() -> None:
    given = conversation(computer)
    form = form_of("/v1/responses", {"model": MODEL, "input": given})
    assert form is not None
    shown = [dict(message) for message in form.messages]
    at = next(n for n, message in enumerate(shown) if message["role"] == "tool")
    shown[at]["content"] = [{"type": "text", "text": "[an image left out]"}]
    items = form.replaced(shown, None)["input"]
    assert halves(items)[0] == halves(items)[1] == [f"c{n}" for n in range(1, 12)]
    assert [item["role"] for item in items[:4]] == ["user", "assistant", "assistant", "assistant"]
    assert items[2]["content"] == "[an image left out]"


def test_a_call_that_has_no_result_stays_what_it_was() -> None:
    search = {"type": "tool_search_call", "call_id": None, "arguments": {"query": "x"}}
    found: Item = {"type": "tool_search_output", "call_id": None, "tools": []}
    open_ = {"type": "computer_call", "id": "u", "call_id": "k", "action": {"type": "wait"}}
    given = [*conversation(shell), search, found, open_, {"role": "user", "content": "Go."}]
    items = fit_messages(given, count_tokens(given, MODEL) - 500, MODEL).messages
    assert items[-4:] == given[-4:]


def test_a_name_that_is_used_again_pairs_with_the_call_before() -> None:
    first, second = shell(1), shell(1)
    asked = {"role": "user", "content": "And now?"}
    form = form_of("/responses", {"model": MODEL, "input": [asked, *first, *second, asked]})
    assert form is not None
    shown = [dict(message) for message in form.messages]
    shown[3]["tool_calls"] = [{**shown[3]["tool_calls"][0], "id": "new"}]
    shown[4]["tool_call_id"] = "new"
    items = form.replaced(shown, None)["input"]
    assert halves(items) == (["c1", "new"], ["c1", "new"])


BETWEEN: dict[str, Item] = {
    "thoughts": {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "E" * 60},
    "a search": {"type": "web_search_call", "id": "w", "status": "completed"},
    "the model": {"role": "assistant", "content": "Reading."},
    "the user": {"role": "user", "content": "And quickly."},
    "the developer": {"role": "developer", "content": "It is Monday."},
}


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("kind", [local_shell, approval, None])
def test_what_stands_between_a_call_and_its_result_tears_no_pair(
    kind: Callable[[int], list[Item]] | None, between: str
) -> None:
    def pair(n: int) -> list[Item]:
        call = {"type": "function_call", "call_id": f"c{n}", "name": "read", "arguments": "{}"}
        result = {"type": "function_call_output", "call_id": f"c{n}", "output": f"{n} {LOG}"}
        call, result = kind(n) if kind else [call, result]
        return [call, BETWEEN[between], result]

    items: list[Item] = [{"role": "user", "content": "Go."}]
    items += [item for n in range(12) for item in pair(n)]
    items.append({"role": "user", "content": "And?"})
    tokens = count_tokens(items, MODEL)
    assert compress_messages(items, 4 * tokens, MODEL) == items
    asked = set(map(name, filter(is_call, items)))
    for fitted in (
        fit_messages(items, tokens // 2, MODEL).messages,
        compress_messages(items, tokens // 2, MODEL),
    ):
        shown: list[Item] = [*fitted]
        calls = [name(item) for item in shown if is_call(item)]
        results = [name(item) for item in shown if is_result(item)]
        assert calls == results
        assert set(calls) <= asked
        assert "no result was recorded" not in json.dumps(shown)


def name(item: Item) -> str:
    return str(item.get("call_id") or item.get("approval_request_id") or item["id"])


def is_call(item: Item) -> bool:
    kind = str(item.get("type"))
    return kind.endswith(("_call", "_request")) and kind != "web_search_call"


def is_result(item: Item) -> bool:
    return str(item.get("type")).endswith(("_output", "_response"))
