"""Of many short results of a tool the one that failed, or says something else, stays."""

from __future__ import annotations

import random

import pytest

from agent_runs import Message, called
from nanobot_context import compress_messages, count_tokens, fit_messages

BROKEN = [
    "ERROR disk 98% full, inode table damaged",
    "Error: connection refused (inode table damaged)",
    '{"ok": false, "error": {"message": "inode table damaged"}}',
    "exit code 1\nstderr: inode table damaged",
    "Permission denied: inode table damaged",
    "FAILED: inode table damaged",
    "down, load -, inode table damaged",
]


def checks(broken: str, at: int, number: int = 150) -> list[Message]:
    """Return a run that checks hosts, one of which is broken."""
    draw = random.Random(at)
    messages: list[Message] = [{"role": "user", "content": "Check all hosts, then report."}]
    for host in range(number):
        load, days = draw.randrange(90), draw.randrange(90)
        fine = f"web-{host:03} ok, load 0.{load}, uptime {days} days"
        arguments = {"host": f"web-{host:03}"}
        messages += called(host, "check_host", arguments, broken if host == at else fine)
    return messages


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("at", [8, 50, 100])
def test_the_one_that_is_broken_stays_among_fine_ones(broken: str, at: int) -> None:
    messages = checks(broken, at)
    tokens = count_tokens(messages)
    for sent in (
        fit_messages(messages, tokens // 8).messages,
        fit_messages(messages, tokens // 4).messages,
        compress_messages(messages, tokens // 2),
    ):
        call = next(
            index for index, m in enumerate(sent) if f"web-{at:03}" in str(m.get("tool_calls"))
        )
        # The first result that stays takes the note on what was left out before it.
        assert f"{sent[call + 1]['content']}\n\n[".startswith(f"{broken}\n\n[")


def test_where_all_fail_the_others_stay_too() -> None:
    messages = [m | {"content": "exit code 1"} if m["role"] == "tool" else m for m in checks("", 0)]
    sent = fit_messages(messages, count_tokens(messages) // 4).messages
    assert sum("tool_calls" in message for message in sent) > 8
    assert "web-149" in str(sent[-2])


def test_what_was_done_has_a_line_before_what_was_read() -> None:
    messages: list[Message] = [{"role": "user", "content": "Do what the runbook says."}]
    messages += called(900, "transfer_money", {"to": "B-200", "amount": 930}, "ok, TX-99812")
    messages += called(901, "send_email", {"to": "fi@example.org", "subject": "Paid"}, "sent")
    for number in range(150):
        path = f"/srv/f{number}.txt"
        messages += called(number, "read_file", {"path": path}, f"{number} lines, fine")
    for share in (8, 4):
        sent = str(fit_messages(messages, count_tokens(messages) // share).messages)
        assert "B-200" in sent
        assert "fi@example.org" in sent
