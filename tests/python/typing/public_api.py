"""Read by mypy, never run: the types that users see."""

from __future__ import annotations

from typing import Any, TypedDict, assert_type

import nanobot_context
from nanobot_context import (
    Archive,
    AsyncSessionService,
    Compressor,
    ContextOverflowError,
    Cut,
    Fitted,
    InvalidArgumentError,
    InvalidMessageError,
    Message,
    Overflow,
    Priority,
    Receipt,
    Session,
    SessionService,
    Settings,
    SettingsError,
    Summarizer,
    Summary,
    call_with_recovery,
    call_with_recovery_sync,
    classify_message,
    compress_messages,
    count_tokens,
    detect_overflow,
    emergency_compress,
    find_last_user_index,
    find_safe_cut_point,
    fit_messages,
    get_context_window,
    get_output_limit,
    trim_tool_result,
    wrap,
)
from nanobot_context.history import assemble_history, drop_duplicate_tail, ensure_tool_responses
from nanobot_context.replay import Replay, replay
from nanobot_context.responses import to_response_items
from nanobot_context.sessions import StoredSession
from nanobot_context.types import CountSource, CutReason, OverflowKind

messages: list[Message] = [{"role": "user", "content": "hi"}]
tools: list[Any] = []

assert_type(nanobot_context.__version__, str)
assert_type(count_tokens(messages), int)
assert_type(count_tokens(messages, "gpt-4o", tools=tools), int)
assert_type(get_context_window("gpt-4o"), int)
assert_type(get_context_window(None, 0), int)
assert_type(get_output_limit("gpt-4o"), int)
assert_type(trim_tool_result("text", 100, head_lines=1, tail_lines=1), str)
assert_type(find_safe_cut_point(messages, 3), int)
assert_type(find_last_user_index(messages), int)
assert_type(classify_message(messages[0]), Priority)
assert_type(emergency_compress(messages, 100, "gpt-4o", tools=tools), list[Message])

# The package's own settings are what the functions take.
compressed = compress_messages(
    messages, 100, "gpt-4o", tools=None, max_output_tokens=10, settings=Settings()
)
assert_type(compressed, list[Message])

fitted = fit_messages(messages, 100)
assert_type(fitted, Fitted)
assert_type(fitted.messages, list[Message])
assert_type(fitted.tokens, int)
assert_type(fitted.receipt, Receipt)
assert_type(fitted.receipt.tokens_before, int | None)
assert_type(fitted.receipt.tokens_after, int | None)
assert_type(fitted.receipt.source, CountSource | None)
assert_type(fitted.receipt.cuts, list[Cut])
cut = fitted.receipt.cuts[0]
assert_type((cut.index, cut.reason), tuple[int, CutReason])
assert_type((cut.tokens_before, cut.tokens_after), tuple[int, int])
fitted.tokens = 5  # type: ignore[misc]

compressor = Compressor(100, "gpt-4o", tools=tools, settings=Settings())
assert_type(compressor, Compressor)
assert_type(compressor.context_window, int)
assert_type(compressor.model, str | None)
assert_type(compressor.compress(messages), list[Message])
assert_type(compressor.emergency(messages), list[Message])
assert_type(compressor.receipt, Receipt | None)

archive = Archive("results", shown="results", max_bytes=100)
assert_type(archive.missing({"a.txt": 5, "b.txt": None}), set[str])
assert_type(archive.write({"a.txt": "text"}, in_use=["b.txt"]), set[str])
assert_type(fit_messages(messages, 100, archive=archive), Fitted)
assert_type(emergency_compress(messages, 100, archive=archive), list[Message])
assert_type(compress_messages(messages, 100, archive=archive), list[Message])
assert_type(Compressor(100, archive=archive), Compressor)

found = detect_overflow(ValueError("text"), status=400)
assert_type(found, Overflow | None)
if found:
    assert_type(found.kind, OverflowKind)
    assert_type(found.limit_tokens, int | None)
    assert_type(found.used_tokens, int | None)

session = Session(key="cli:direct", messages=messages, model=None)
session.add_message("user", "hi", timestamp="now")
assert_type(session.get_history(), list[Message])
assert_type(session.get_history(50, max_tokens=100), list[Message])


def fields(
    overflow: ContextOverflowError,
    message: InvalidMessageError,
    argument: InvalidArgumentError,
    setting: SettingsError,
) -> None:
    assert_type(overflow.needed_tokens, int)
    assert_type(overflow.limit_tokens, int)
    assert_type(overflow.model, str | None)
    assert_type(overflow.parts, dict[str, int])
    assert_type((message.index, message.field), tuple[int, str])
    assert_type(argument.argument, str)
    assert_type(setting.path, str)


class Param(TypedDict, total=False):
    """A message as a client's own types have it."""

    role: str
    content: str


params: list[Param] = [{"role": "user", "content": "hi"}]
assert_type(count_tokens(params, tools=params), int)
assert_type(compress_messages(params, 100, tools=params), list[Message])
assert_type(emergency_compress(params, 100), list[Message])
assert_type(fit_messages(params, 100), Fitted)
assert_type(compressor.compress(params), list[Message])
assert_type(classify_message(params[0]), Priority)


def answer(messages: list[Message], *, max_tokens: int | None) -> bytes:
    return b""


async def aanswer(messages: list[Message], *, max_tokens: int | None) -> bytes:
    return b""


class Client:
    """Of a class that the package does not know."""


async def recovered() -> None:
    assert_type(await call_with_recovery(aanswer, params, context_window=100), bytes)
    assert_type(await call_with_recovery(aanswer, params, compressor=compressor), bytes)


assert_type(wrap(Client(), context_window=100), Client)
assert_type(call_with_recovery_sync(answer, params, context_window=100, tools=params), bytes)
assert_type(SessionService("memory:", event_limit=3), SessionService)
assert_type(Summarizer().summarize(params), Summary)
assert_type(assemble_history(params, current=params), list[Message])
assert_type(drop_duplicate_tail(params, params), list[Message])
assert_type(ensure_tool_responses(params), list[Message])
assert_type(to_response_items(params, current=params), list[Message])
assert_type(replay(params, 100), Replay)
assert_type(emergency_compress(params, 100, max_output_tokens=50), list[Message])
assert_type(SessionService().get("app", "me", "s", last=3), StoredSession | None)


async def stored() -> None:
    assert_type(await AsyncSessionService().get("app", "me", "s", last=3), StoredSession | None)
    await AsyncSessionService().create("app", "me", evnts=3)  # type: ignore[call-arg]


# What must not type-check.
SessionService(evnt_limit=3)  # type: ignore[call-arg]
AsyncSessionService(evnt_limit=3)  # type: ignore[call-arg]
count_tokens("hi")  # type: ignore[arg-type]
count_tokens(messages, 5)  # type: ignore[arg-type]
count_tokens(messages, "gpt-4o", tools)  # type: ignore[call-arg]
compress_messages(messages)  # type: ignore[call-arg]
compress_messages(messages, "100")  # type: ignore[arg-type]
compress_messages(messages, 100, settings=5)  # type: ignore[arg-type]
fit_messages(messages, 1.5)  # type: ignore[arg-type]
fit_messages(messages, 100, archive="results")  # type: ignore[arg-type]
detect_overflow(5)  # type: ignore[arg-type]
