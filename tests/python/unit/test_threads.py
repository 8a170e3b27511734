"""Many threads at once: the same results as one, and nobody waits for long."""

from __future__ import annotations

import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from nanobot_context import (
    Compressor,
    Session,
    compress_messages,
    count_tokens,
    detect_overflow,
    fit_messages,
)

pytestmark = pytest.mark.timeout(60)

Message = dict[str, Any]
THREADS = 16


def conversation(thread: int) -> list[Message]:
    messages: list[Message] = [{"role": "system", "content": "You help."}]
    for n in range(12):
        call = {"id": f"c{n}", "function": {"name": "f", "arguments": f'{{"path": "{n}"}}'}}
        messages += [
            {"role": "user", "content": f"thread {thread} asks 问题 {n}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"line {thread} {n}\n" * 150},
            {"role": "assistant", "content": f"answer {thread} {n} " * 30},
        ]
    return messages


def everything(messages: list[Message], compressor: Compressor | None = None) -> list[Any]:
    """Return what every function makes of `messages`."""
    tokens = count_tokens(messages, "gpt-4o")
    compressor = compressor or Compressor(tokens, "gpt-4o")
    return [
        tokens,
        count_tokens(messages, "claude-opus-4-5"),
        fit_messages(messages, tokens // 2, "gpt-4o").messages,
        compress_messages(messages, tokens // 2, "gpt-4o"),
        compress_messages(messages, tokens * 2, "gpt-4o"),
        compressor.compress(messages),
        compressor.emergency(messages),
        Session(messages=messages, model="gpt-4o").get_history(0, tokens // 3),
        detect_overflow("maximum context length is 4096 tokens, you requested 5000 tokens"),
    ]


def race(work: Callable[[int], Any]) -> list[Any]:
    """Run `work` in all threads, which start together, and return what each returns."""
    barrier = threading.Barrier(THREADS)

    def run(thread: int) -> Any:
        barrier.wait()
        return work(thread)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


def test_threads_with_lists_of_their_own_get_what_one_thread_gets() -> None:
    lists = [conversation(thread) for thread in range(THREADS)]
    raced = race(lambda thread: [everything(lists[thread]) for _ in range(5)])
    for thread, results in enumerate(raced):
        assert results == [everything(conversation(thread))] * 5


def test_threads_that_share_a_list_and_a_compressor_get_the_same() -> None:
    messages = conversation(0)
    compressor = Compressor(count_tokens(messages, "gpt-4o"), "gpt-4o")
    expected = everything(messages)
    for results in race(lambda _: [everything(messages, compressor) for _ in range(5)]):
        assert results == [expected] * 5
    assert compressor.receipt is not None


def test_readers_see_a_whole_list_while_another_thread_writes() -> None:
    messages = conversation(0)
    fresh = [conversation(1)[n % 4 + 1] for n in range(40)]
    counts: list[int] = []

    def work(thread: int) -> None:
        if thread == 0:
            for message in fresh:
                messages.append(dict(message))
                messages[5]["content"] = f"changed {len(messages)} " * 400
                time.sleep(0.0005)
        else:
            for _ in range(20):
                counts.append(count_tokens(messages, "gpt-4o"))
                fitted = fit_messages(list(messages), 3_000, "gpt-4o")
                assert fitted.tokens <= 3_000
                assert compress_messages(messages, 4_000, "gpt-4o")

    race(work)
    assert len(counts) == (THREADS - 1) * 20
    assert all(count > 3_000 for count in counts)
    assert (
        count_tokens(messages, "gpt-4o")
        == sum(count_tokens([message], "gpt-4o") - 3 for message in messages) + 3
    )


def much_text() -> Callable[[], object]:
    text = "a busy thread counts lines in the meantime; 忙 " * 450_000
    return lambda: count_tokens([{"role": "user", "content": text}], "gpt-4o")


def known_conversation() -> Callable[[], object]:
    messages: list[Message] = [{"role": "user", "content": "go"}]
    for n in range(80):
        text = f"line {n} of src/file_{n}.py: worker {n} finished\n" * 160
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": str(n)}]
    count_tokens(messages, "gpt-4o")
    return lambda: fit_messages(messages, 20_000, "gpt-4o")


@pytest.mark.parametrize("make", [much_text, known_conversation], ids=["counted", "planned"])
def test_a_busy_thread_goes_on(make: Callable[[], Callable[[], object]]) -> None:
    work = make()
    steps = 0
    done = threading.Event()

    def busy() -> None:
        nonlocal steps
        while not done.is_set():
            steps += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=busy)
    try:
        # From here on a thread runs only where another one lets it.
        sys.setswitchinterval(1_000)
        thread.start()
        before = steps
        work()
        assert steps > before
    finally:
        sys.setswitchinterval(interval)
        done.set()
        thread.join()


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="for free-threaded builds of Python"
)
def test_importing_the_package_leaves_the_gil_off() -> None:
    assert not sys._is_gil_enabled()  # type: ignore[attr-defined,unused-ignore]
