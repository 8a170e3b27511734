"""Planning a summary of a long conversation, against putting its text together in plain Python."""

from __future__ import annotations

from conversation import MESSAGES, Message, conversation
from measure import Report, alternate, median
from nanobot_context._core import SummaryRun

TARGET_MS = 20.0
TARGET_GROWTH = 1.5
SIZES = (2_500, 10_000, 40_000)
SIZED = 10_000
# Of the conversation's texts: about 400 bytes a message, as sessions of chats have them.
SCALE = 0.2
WINDOWS = (None, 128_000, 8_000)


def planning(report: Report, *, repetitions: int) -> None:
    """A job from the messages to its first model call, without the call."""
    report.title("Planning a summary")
    turns = conversation(scale=SCALE)
    rows, costs = [], {}
    for size in SIZES:
        messages = (turns * (size // MESSAGES + 1))[:size]
        for window in WINDOWS:

            def ours(messages: list[Message] = messages, window: int | None = window) -> None:
                run = SummaryRun(messages, window_tokens=window)
                assert run.next_call() is not None

            def join(messages: list[Message] = messages) -> str:
                return "\n".join(f"{m['role']}: {m.get('content') or ''}" for m in messages)

            took, theirs = (median(times) / 1e6 for times in alternate((ours, join), repetitions))
            costs[size, window] = took
            rows.append(
                (
                    f"{size:,} messages, window {window or 'unknown'}",
                    f"{took:.1f} ms",
                    f"{theirs:.1f} ms",
                    f"{took / theirs:.1f} x",
                )
            )
    report.table(("", "SummaryRun", "join in Python", "ratio"), rows)
    slowest = max(costs[SIZED, window] for window in WINDOWS)
    report.target(
        f"a job over {SIZED:,} messages planned under {TARGET_MS:.0f} ms ({slowest:.1f} ms)",
        slowest < TARGET_MS,
    )
    least, most = SIZES[0], SIZES[-1]
    growth = max(costs[most, w] / costs[least, w] / (most / least) for w in WINDOWS)
    report.target(
        f"a message costs at most {TARGET_GROWTH} times as much among {most:,} as among {least:,} "
        f"({growth:.2f})",
        growth <= TARGET_GROWTH,
    )
