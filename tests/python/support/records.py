"""A request as it is recorded."""

from __future__ import annotations

from nanobot_context.guard.record import RequestRecord, Sent

LAST = RequestRecord(
    at="2026-11-22T10:00:00.000+00:00",
    session="cli:direct",
    is_subagent=False,
    model="qwen",
    place="qwen at host",
    window_tokens=65_536,
    window_source="contextWindowOverride",
    fixed_tokens=6_000,
    answer_tokens=4_000,
    messages=30,
    tokens_before=60_000,
    attempts=(Sent(50_000),),
    outcome="answered",
    is_fixed_known=True,
)
