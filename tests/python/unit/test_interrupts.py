"""Signals end long calls, and a fork beside busy threads leaves a child that works."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from nanobot_context import compress_messages, count_tokens, fit_messages
from nanobot_context.caches import clear_caches

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="for systems with signals and forks"),
]

Message = dict[str, Any]


class Interrupted(Exception):
    """What the handler raises."""


@pytest.fixture
def alarm() -> Iterator[Callable[[Callable[[], Any], float], None]]:
    """Returns a function that has the given one called by a signal, after so much CPU time."""
    before = signal.getsignal(signal.SIGPROF)

    def call(handler: Callable[[], Any], seconds: float) -> None:
        signal.signal(signal.SIGPROF, lambda *_: handler())
        signal.setitimer(signal.ITIMER_PROF, seconds)

    yield call
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


def words(seed: int, count: int) -> str:
    """Return text that no cache knows."""
    numbers = random.Random(seed)
    word = ["alpha", "src/app.py", "error:", "please", "value", "x=1", "report"]
    line = " ".join(f"{numbers.choice(word)}{numbers.randrange(10**6)}" for _ in range(1_000))
    return "".join(f"{n} {line}\n" for n in range(count // 1_000))


def one_text(seed: int) -> list[Message]:
    # Signals are looked for ten times a second: this takes half a second and more.
    return [{"role": "user", "content": words(seed, 12_000_000)}]


def many_texts(seed: int) -> list[Message]:
    messages: list[Message] = []
    for n in range(1_200):  # half a second and more, as above
        messages += [
            {"role": "user", "content": str(n)},
            {"role": "assistant", "content": words(seed * 1_000 + n, 1_000)},
        ]
    return [*messages, {"role": "user", "content": "go on"}]


def known_texts(seed: int) -> list[Message]:
    """Return texts that were counted and looked through before: what is left is to choose."""
    messages = many_texts(seed)
    fit_messages(messages, 290_000, "gpt-4o")
    return messages


@pytest.mark.parametrize(
    ("function", "make"),
    [
        (lambda messages: count_tokens(messages, "gpt-4o"), one_text),
        (lambda messages: count_tokens(messages, "deepseek-chat"), one_text),
        (lambda messages: fit_messages(messages, 300_000, "gpt-4o"), many_texts),
        (lambda messages: fit_messages(messages, 300_000, "gpt-4o"), known_texts),
        (lambda messages: compress_messages(messages, 400_000, "gpt-4o"), many_texts),
    ],
    ids=["count", "count by tiktoken", "fit", "fit what is known", "compress"],
)
def test_what_a_handler_raises_ends_the_call(
    alarm: Callable[[Callable[[], Any], float], None],
    function: Callable[[list[Message]], Any],
    make: Callable[[int], list[Message]],
) -> None:
    count_tokens([{"role": "user", "content": "loads the vocabulary"}], "gpt-4o")
    count_tokens([{"role": "user", "content": "loads the vocabulary"}], "deepseek-chat")
    known, new = make(1), make(2)
    start = time.process_time()
    function(known)
    whole = time.process_time() - start

    def interrupt() -> None:
        raise Interrupted

    alarm(interrupt, whole / 20)
    start = time.process_time()
    with pytest.raises(Interrupted):
        function(new)
    # Without a look for signals it would be all of the time.
    assert time.process_time() - start < 0.6 * whole


def test_a_handler_may_call_in_again(alarm: Callable[[Callable[[], Any], float], None]) -> None:
    counts: list[int] = []

    def count() -> None:
        counts.append(count_tokens([{"role": "user", "content": "hello " * 30_000}], "gpt-4o"))

    messages = one_text(3)
    alarm(count, 0.02)
    tokens = count_tokens(messages, "gpt-4o")
    while not counts:
        pass  # the time of the CPU has to go on
    assert counts == [count_tokens([{"role": "user", "content": "hello " * 30_000}], "gpt-4o")]
    assert tokens > 10_000_000


@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_children_forked_beside_busy_threads_count_and_fit() -> None:
    done = threading.Event()

    def busy(seed: int) -> None:
        number = 0
        while not done.is_set():
            number += 1
            text = words(seed * 10_000 + number, 8_000)
            messages: list[Message] = [{"role": "assistant", "content": text}]
            messages.append({"role": "user", "content": "go on"})
            fit_messages(messages, 5_000, "gpt-4o")

    def clearing() -> None:
        while not done.is_set():
            clear_caches()

    threads = [threading.Thread(target=busy, args=(seed,)) for seed in range(1, 3)]
    threads.append(threading.Thread(target=clearing))
    for thread in threads:
        thread.start()
    try:
        for number in range(40):
            child = os.fork()
            if child == 0:
                text = words(-number - 1, 8_000)
                messages = [{"role": "assistant", "content": text}]
                tokens = fit_messages(messages, 4_000, "gpt-4o").tokens
                os._exit(0 if 0 < tokens <= 4_000 else 1)
            limit = time.monotonic() + 60
            while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
                if time.monotonic() > limit:
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                    pytest.fail(f"child {number} hangs")
                time.sleep(0.005)
            assert os.waitstatus_to_exitcode(ended[1]) == 0
    finally:
        done.set()
        for thread in threads:
            thread.join()
