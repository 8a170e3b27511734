"""Whatever comes in, a promise is kept or a typed error says what is wrong; never a panic."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanobot_context import (
    Compressor,
    ContextOverflowError,
    InvalidInputError,
    classify_message,
    compress_messages,
    count_tokens,
    emergency_compress,
    find_last_user_index,
    find_safe_cut_point,
    fit_messages,
)
from nanobot_context._core import fits, prevailing_script, select_history

from .checks import assert_paired
from .odd_forms import OddMaker

FUNCTIONS: dict[str, Callable[[list[Any], int], Any]] = {
    "fit": lambda m, size: fit_messages(m, size, "gpt-4o").messages,
    "compress": lambda m, size: compress_messages(m, size, "gpt-4o"),
    "Compressor": lambda m, size: Compressor(size, "gpt-4o").compress(m),
    "emergency": lambda m, size: emergency_compress(m, size, "gpt-4o"),
    "lost": lambda m, size: fit_messages(m, size, "gpt-4o").receipt.lost,
    "select_history": lambda m, size: select_history(m, size, "gpt-4o"),
    "fits": lambda m, size: fits(m, size, "gpt-4o"),
    "script": lambda m, _: prevailing_script(m),
    "cut point": find_safe_cut_point,
    "last user": lambda m, _: find_last_user_index(m),
    "classify": lambda m, _: [classify_message(message) for message in list(m)],
}
FITTED = ("fit", "compress", "Compressor", "emergency")


def outcome(function: Callable[[list[Any], int], Any], messages: list[Any], size: int) -> Any:
    """Return what comes back, or `None` for a typed error."""
    try:
        return function(messages, size)
    except (InvalidInputError, ContextOverflowError):
        return None


def check(seed: int, odd: float, share: float, *, threaded: bool = False) -> int:
    """Make a conversation, try every function on it, and return how many messages it has."""
    maker = OddMaker(seed, odd)
    messages = maker.conversation()
    count = len(messages)
    tokens = outcome(lambda m, _: count_tokens(m, "gpt-4o"), messages, 0)
    size = int((tokens or 600) * share)
    done = threading.Event()

    def change() -> None:
        while not done.is_set():
            maker.change()

    thread = threading.Thread(target=change)
    if threaded:
        thread.start()
    try:
        for name, function in FUNCTIONS.items():
            given = list(messages)
            result = outcome(function, messages, size)
            # What changes meanwhile is not what it was fitted as.
            if result is None or threaded or list(map(id, messages)) != list(map(id, given)):
                continue
            if name in FITTED:
                again = outcome(lambda m, _: count_tokens(m, "gpt-4o"), result, 0)
                assert again is None or again <= size
                assert_paired(result)
    finally:
        done.set()
        if threaded:
            thread.join()
    return count


seeds = st.integers(0, 2**32 - 1)


@pytest.mark.timeout(600)
@given(seeds, st.sampled_from([0.0, 0.02, 0.1, 0.4]), st.floats(0, 1.2))
def test_every_form_keeps_the_promises_or_raises_a_typed_error(
    seed: int, odd: float, share: float
) -> None:
    check(seed, odd, share)


@pytest.mark.timeout(600)
@given(seeds, st.sampled_from([0.0, 0.02, 0.1]), st.floats(0, 1.2))
def test_a_conversation_that_a_thread_changes_raises_nothing_untyped(
    seed: int, odd: float, share: float
) -> None:
    check(seed, odd, share, threaded=True)
