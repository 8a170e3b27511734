"""Runs an operation: waits for what it asks for, in the thread or in the task.

An operation is a generator that yields what has to be waited for, is sent the outcome or thrown the
error, and returns its result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar

Due = TypeVar("Due")
Result = TypeVar("Result")

# Events that are made into Python's in a moment; more of them are in a thread, beside the loop.
_FEW_EVENTS = 500


class _Ended(Generic[Result]):
    """The result of an operation; `StopIteration` cannot leave a thread."""

    def __init__(self, result: Result) -> None:
        self.result = result


def run_sync(operation: Generator[Due, Any, Result], perform: Callable[[Due], Any]) -> Result:
    """Run `operation` and return its result; `perform` does what it yields."""
    outcome: Any = None
    failure: Exception | None = None
    while not isinstance(due := _advance(operation, outcome, failure), _Ended):
        try:
            outcome, failure = perform(due), None
        except Exception as error:
            failure = error
    return due.result


async def run_async(
    operation: Generator[Due, Any, Result], perform: Callable[[Due], Awaitable[Any]]
) -> Result:
    """Run `operation` and return its result; `perform` is awaited for what it yields."""
    outcome: Any = None
    failure: Exception | None = None
    while True:
        if failure is None and _is_large(outcome):
            due = await asyncio.to_thread(_advance, operation, outcome, failure)
        else:
            due = _advance(operation, outcome, failure)
        if isinstance(due, _Ended):
            return due.result
        try:
            outcome, failure = await perform(due), None
        except Exception as error:
            failure = error


def _advance(
    operation: Generator[Due, Any, Result], outcome: Any, failure: Exception | None
) -> Due | _Ended[Result]:
    try:
        return operation.throw(failure) if failure else operation.send(outcome)
    except StopIteration as stop:
        return _Ended(stop.value)


def _is_large(outcome: Any) -> bool:
    return isinstance(outcome, dict) and len(outcome.get("events", ())) > _FEW_EVENTS
