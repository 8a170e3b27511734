"""The caches of the process are within their limit, and can be seen and emptied."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nanobot_context import Settings, compress_messages, count_tokens, fit_messages
from nanobot_context.caches import (
    cache_limit_bytes,
    cache_sizes,
    clear_caches,
    set_cache_limit,
)
from nanobot_context.errors import InvalidArgumentError


@pytest.fixture(autouse=True)
def default_limit() -> Iterator[None]:
    yield
    set_cache_limit(Settings().cache_mb)


def conversation(number: int, lines: int = 40) -> list[dict[str, Any]]:
    result = "\n".join(f"{number} line {i} names src/part_{i * number}.py" for i in range(lines))
    call = {"name": "exec", "arguments": json.dumps({"command": f"run {number}"})}
    return [
        {"role": "user", "content": f"question {number}, which has words enough to be hashed"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": "c", "content": result},
        {"role": "user", "content": f"and now {number}?"},
    ]


def work(numbers: range) -> None:
    for number in numbers:
        messages = conversation(number)
        fit_messages(messages, 250, "gpt-4o")
        compress_messages(messages, 400, "gpt-4o")
        compress_messages(messages, 100_000, "gpt-4o")


def test_the_default_limit_is_that_of_the_settings() -> None:
    assert cache_limit_bytes() == Settings().cache_mb << 20


def test_every_cache_takes_something_and_nothing_after_it_was_emptied() -> None:
    clear_caches()
    work(range(3))
    sizes = cache_sizes()
    assert set(sizes) == {
        *("analyses", "commitments", "said", "counts", "cuts", "shortened", "steps"),
        *("strings", "conversations"),
    }
    used = {name for name, size in sizes.items() if size > 0}
    assert used >= {"analyses", "counts", "strings", "conversations"}
    assert clear_caches() == sum(sizes.values())
    assert not any(cache_sizes().values())


def test_results_are_the_same_with_and_without_caches() -> None:
    messages = conversation(7, lines=300)
    with_caches = [fit_messages(messages, budget, "gpt-4o") for budget in (300, 900)]
    set_cache_limit(0)
    assert not any(cache_sizes().values())
    for fitted, budget in zip(with_caches, (300, 900), strict=True):
        again = fit_messages(conversation(7, lines=300), budget, "gpt-4o")
        assert (again.messages, again.tokens) == (fitted.messages, fitted.tokens)
        assert count_tokens(again.messages, "gpt-4o") == fitted.tokens
    assert not any(cache_sizes().values())


def test_a_conversation_of_many_small_dicts_is_charged_with_its_dicts() -> None:
    clear_caches()
    messages = [{"role": "user", "content": "x", "meta": {"at": str(i)}} for i in range(2_000)]
    compress_messages(messages, 1_000_000, "gpt-4o")
    compress_messages(messages, 1_000_000, "gpt-4o")
    least = sum(sys.getsizeof(message) + sys.getsizeof(message["meta"]) for message in messages)
    assert cache_sizes()["conversations"] > least


@pytest.mark.parametrize("wrong", [-1, 1.5, "8", None, 2**53 + 1])
def test_a_limit_that_is_no_number_of_megabytes_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="megabytes"):
        set_cache_limit(wrong)


@pytest.mark.parametrize(
    ("variable", "megabytes"), [("8", 8), (" 0 ", 0), ("", 128), ("many", 128), ("-1", 128)]
)
def test_the_variable_sets_the_limit_of_any_program(variable: str, megabytes: int) -> None:
    code = "from nanobot_context.caches import *; print(cache_limit_bytes())"
    environment = os.environ | {"NANOBOT_CONTEXT_CACHE_MB": variable}
    shown = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
    assert int(shown) == megabytes << 20


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="there is no /proc")
def test_memory_stays_within_the_limit_and_is_given_back() -> None:
    code = f"""
import gc, json, os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_caches import cache_sizes, clear_caches, work
def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
work(range(20))
clear_caches()
before = resident()
work(range(20, 1_500))
booked, full = sum(cache_sizes().values()), resident()
clear_caches()
print(json.dumps([booked, full - before, resident() - before]))
"""
    environment = os.environ | {"NANOBOT_CONTEXT_CACHE_MB": "12"}
    shown = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
    booked, taken, left = json.loads(shown)
    megabyte = 1 << 20
    assert 3 * megabyte < booked <= 12 * megabyte
    assert taken <= 24 * megabyte, "twice the limit: what the allocator wastes"
    assert left <= 8 * megabyte
