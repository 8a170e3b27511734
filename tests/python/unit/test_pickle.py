"""Errors and results go from process to process, are copied, and are freed."""

from __future__ import annotations

import copy
import gc
import inspect
import multiprocessing
import pickle
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nanobot_context import (
    Archive,
    Compressor,
    ContextOverflowError,
    Fitted,
    Overflow,
    Receipt,
    Settings,
    detect_overflow,
    errors,
    fit_messages,
)
from nanobot_context.summary import SummaryPolicy, Trigger

Message = dict[str, Any]

FIELDS: dict[str, Any] = {
    "needed_tokens": 9,
    "limit_tokens": 7,
    "model": "gpt-4o",
    "parts": {"system": 9},
    "index": 3,
    "field": ".content",
    "argument": "tools",
    "path": "a.json",
    "line": 1,
    "column": 2,
    "retry": "later",
    "expected": "1",
    "actual": "2",
}


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


BY = pytest.mark.parametrize("by", [again, copy.copy, copy.deepcopy])


def conversation() -> list[Message]:
    messages: list[Message] = []
    for n in range(6):
        text = f"line {n} of src/file_{n}.py\n" * 60
        messages += [{"role": "user", "content": str(n)}, {"role": "assistant", "content": text}]
    return [*messages, {"role": "user", "content": "go on"}]


@BY
@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_comes_back_with_its_fields(name: str, by: Callable[[Any], Any]) -> None:
    cls = getattr(errors, name)
    known = set(inspect.signature(cls.__init__).parameters) & set(FIELDS)
    error = cls("what went wrong", **{field: FIELDS[field] for field in known})
    error.add_note("noted")
    back = by(error)
    assert type(back) is cls
    assert str(back) == "what went wrong"
    assert back.args == error.args
    assert vars(back) == vars(error)
    assert set(vars(back)) >= known


def overflowing(_: int) -> Fitted:
    return fit_messages([{"role": "user", "content": "hi"}], 0)


def fitting(tokens: int) -> Fitted:
    return fit_messages(conversation(), tokens)


@pytest.mark.timeout(60)
def test_a_pool_of_processes_hands_on_errors_and_results() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        with pytest.raises(ContextOverflowError) as raised:
            pool.apply_async(overflowing, (1,)).get(50)
        assert raised.value.needed_tokens > raised.value.limit_tokens == 0
        fitted = pool.apply_async(fitting, (300,)).get(50)
    assert fitted.messages == fitting(300).messages
    assert fitted.receipt == fitting(300).receipt


@BY
def test_what_fits_comes_back_with_its_receipt(by: Callable[[Any], Any]) -> None:
    fitted = fitting(300)
    back = by(fitted)
    assert type(back) is Fitted
    assert back.messages == fitted.messages
    assert back.tokens == fitted.tokens
    assert back.receipt == fitted.receipt
    assert back.receipt.source == "exact"
    assert back.receipt.cuts == fitted.receipt.cuts
    assert back.receipt.cuts[0] == by(fitted.receipt.cuts[0])
    assert back.receipt.lost == fitted.receipt.lost
    assert fitted.receipt.lost
    assert by(fitted.receipt.lost[0]) == fitted.receipt.lost[0]


@BY
def test_an_overflow_comes_back(by: Callable[[Any], Any]) -> None:
    overflow = detect_overflow("maximum context length is 4096 tokens, you requested 5000 tokens")
    assert isinstance(overflow, Overflow)
    assert by(overflow) == overflow
    assert by(overflow).kind == "input"


def test_a_pickle_of_an_unknown_kind_of_overflow_is_a_typed_error() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="`later` is none"):
        Overflow._restored("later", None, None, False, None, (None, None))  # type: ignore[attr-defined]


@BY
def test_a_compressor_comes_back_and_compresses_the_same(
    tmp_path: Path, by: Callable[[Any], Any]
) -> None:
    tools = [{"type": "function", "function": {"name": "f", "description": "word " * 20}}]
    settings = Settings(emergency_ratio=0.4, pinned=["a.md"], max_assistant_message_chars=500)
    archive = Archive(tmp_path / "results", shown="results")
    compressor = Compressor(900, "gpt-4o", tools=tools, settings=settings, archive=archive)
    compressed = compressor.compress(conversation())
    back = by(compressor)
    assert back.receipt == compressor.receipt
    assert back.context_window == 900
    assert back.model == "gpt-4o"
    assert back.compress(conversation()) == compressed
    assert back.emergency(conversation()) == compressor.emergency(conversation())


@BY
def test_when_a_summary_is_due_comes_back(by: Callable[[Any], Any]) -> None:
    policy = SummaryPolicy(message_limit=7, temperature=0.5, bisect_enabled=False)
    assert by(policy) == policy
    checks = [Trigger.messages(gt=20), ~Trigger.tokens(ge=9_000), Trigger.idle(gt=1.5)]
    trigger = Trigger.any(*checks, Trigger.all())
    assert by(trigger) == trigger
    assert by(trigger) != Trigger.any(*checks)


class Watched(dict[str, Any]):
    """A dict that a weak reference can watch."""


@pytest.mark.parametrize("held", ["fitted", "receipt"])
def test_a_message_that_holds_its_own_receipt_is_freed(held: str) -> None:
    message = Watched(role="user", content="hi")
    fitted = fit_messages([message], 1_000)
    message["held"] = fitted if held == "fitted" else fitted.receipt
    watch = weakref.ref(message)
    del message, fitted
    gc.collect()
    assert watch() is None


def test_a_compressor_that_is_held_by_its_archive_is_freed() -> None:
    class Holding:
        shown = "results"
        compressor: Compressor

        def missing(self, sizes: dict[str, int | None]) -> set[str]:
            return set()

        def write(self, texts: dict[str, str], in_use: Any) -> set[str]:
            return set()

    archive = Holding()
    archive.compressor = Compressor(1_000, archive=archive)
    watch = weakref.ref(archive)
    del archive
    gc.collect()
    assert watch() is None


def test_a_receipt_says_that_it_is_collected() -> None:
    fitted = fitting(300)
    assert gc.is_tracked(fitted)
    assert gc.is_tracked(fitted.receipt)
    assert isinstance(fitted.receipt, Receipt)
