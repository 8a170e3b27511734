"""Every parameter of the public surface, given what it is not made for.

A call returns, or raises an error of ours. The compiled half, which only the package calls, may
also raise what its binding does, with the name of the parameter.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import nanobot_context
from nanobot_context import (
    Archive,
    AsyncSessionService,
    Compressor,
    NanobotContextError,
    Session,
    SessionEvent,
    SessionService,
    Summarizer,
    Summary,
    Usage,
    _core,
    call_with_recovery,
    detect_overflow,
)
from nanobot_context.history import assemble_history
from nanobot_context.replay import replay
from nanobot_context.summary import SummaryPolicy, Trigger, parse_structured_summary
from odd_values import HUGE, Broken, Raising, Text, Unprintable, nested

pytestmark = pytest.mark.timeout(120)

USER = {"role": "user", "content": "hi"}
WRONG: dict[str, Any] = {
    "None": None,
    "True": True,
    "5": 5,
    "-1": -1,
    "10**30": 10**30,
    "10**5000": HUGE,
    "1.5": 1.5,
    "nan": float("nan"),
    "text": "x",
    "surrogate": "\ud800",
    "Text": Text("user"),
    "bytes": b"x",
    "list": [5],
    "messages": [USER],
    "dict": {"a": 1},
    "Raising": Raising(a=1),
    "deep": nested(100_000),
    "object": object(),
    "Unprintable": Unprintable(),
    "class": int,
}


async def chat(messages: Any, *, max_tokens: Any) -> str:
    return "fine"


def calling(**arguments: Any) -> Any:
    given = {"chat": chat, "messages": [USER], "context_window": 1_000, **arguments}
    return asyncio.run(call_with_recovery(**given))


def calling_sync(**arguments: Any) -> Any:
    def fine(messages: Any, *, max_tokens: Any) -> str:
        return "fine"

    given = {"chat": fine, "messages": [USER], "context_window": 1_000, **arguments}
    return nanobot_context.call_with_recovery_sync(**given)


def in_session(method: str) -> Callable[..., Any]:
    def call(**arguments: Any) -> Any:
        session = Session(messages=[USER, {"role": "assistant", "content": "fine"}])
        return getattr(session, method)(**arguments)

    return call


def in_archive(method: str) -> Callable[..., Any]:
    def call(**arguments: Any) -> Any:
        with TemporaryDirectory() as folder:
            return getattr(Archive(folder), method)(**arguments)

    return call


def with_service(method: str) -> Callable[..., Any]:
    def call(**arguments: Any) -> Any:
        with SessionService(summarizer=Summarizer()) as service:
            session = service.create("app", "user", "id")
            service.append(session, [SessionEvent(USER)])
            given = {"session": session, **arguments} if "session" in usual else arguments
            return getattr(service, method)(**given)

    usual = SERVICE[method]
    return call


def of_event(**fields: Any) -> Any:
    with SessionService() as service:
        return service.append(service.create("app", "user", "id"), [SessionEvent(**fields)])


def summarized(**arguments: Any) -> Any:
    return Summarizer().summarize(**arguments)


SERVICE: dict[str, dict[str, Any]] = {
    "create": {"app": "a", "user": "u", "session_id": "s", "state": {}, "meta": {}}
    | {"overwrite": False},
    "get": {"app": "a", "user": "u", "session_id": "s", "last": 1, "since": 1.0, "after": 0}
    | {"user_first": "off"},
    "get_or_create": {"app": "a", "user": "u", "session_id": "s", "state": {}},
    "list_sessions": {"app": "a", "user": "u", "offset": 0, "limit": 1},
    "delete": {"app": "a", "user": "u", "session_id": "s"},
    "append": {"session": None, "events": [], "expected": 1},
    "replace_tail": {"session": None, "after": 0, "events": []},
    "set_meta": {"session": None, "meta": {}, "force": True},
    "app_state": {"app": "a"},
    "user_state": {"app": "a", "user": "u"},
    "session_state": {"session": None},
    "update_app_state": {"app": "a", "delta": {}},
    "update_user_state": {"app": "a", "user": "u", "delta": {}},
    "update_session_state": {"session": None, "delta": {}},
    "summarize": {"session": None, "key": "", "force": False},
    "summary_text": {"session": None, "key": ""},
    "summaries": {"session": None, "key": None, "failed": True, "links": True, "last": 1},
    "context": {"session": None, "mode": "summary", "key": "", "style": "chat"}
    | {"max_messages": 1, "rounds": 1, "current": []},
    "call_with_summary": {"session": None, "chat": len, "key": "", "current": []},
}
SERVICE_ARGUMENTS = {
    **{"url": "memory:", "event_limit": 0, "session_ttl_seconds": 0, "app_state_ttl_seconds": 0},
    **{"user_state_ttl_seconds": 0, "refresh": "write", "routing": "raw", "user_first": "off"},
    **{"summarizer": None, "policy": None, "trigger": None, "placeholder": False},
    **{"auto_summary": False, "summary_workers": 0, "summary_queue": 0},
    **{"store_options": None, "cleanup_interval_seconds": 0},
}
REQUEST = {"messages": [USER], "model": None, "tools": None}
WINDOW = {**REQUEST, "context_window": 1_000, "settings": None, "archive": None}

# What is called, and each of its parameters with a value that it takes.
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "count_tokens": (nanobot_context.count_tokens, REQUEST),
    "fits": (nanobot_context.fits, {**REQUEST, "max_tokens": 9}),
    "fit_messages": (
        nanobot_context.fit_messages,
        {**REQUEST, "max_tokens": 1_000, "archive": None},
    ),
    "compress_messages": (
        nanobot_context.compress_messages,
        {**WINDOW, "max_output_tokens": 100},
    ),
    "emergency_compress": (
        nanobot_context.emergency_compress,
        {**WINDOW, "max_output_tokens": 100},
    ),
    "classify_message": (nanobot_context.classify_message, {"message": USER, "call": None}),
    "find_last_user_index": (nanobot_context.find_last_user_index, {"messages": [USER]}),
    "find_safe_cut_point": (
        nanobot_context.find_safe_cut_point,
        {"messages": [USER], "keep_last": 1},
    ),
    "get_context_window": (nanobot_context.get_context_window, {"model": "m", "override": 5}),
    "get_output_limit": (nanobot_context.get_output_limit, {"model": "m"}),
    "trim_tool_result": (
        nanobot_context.trim_tool_result,
        {"result": "x", "max_chars": 9, "head_lines": 1, "tail_lines": 1},
    ),
    "detect_overflow": (
        detect_overflow,
        {"error_or_text": "too long", "status": 400, "provider": "p", "usage": Usage()},
    ),
    "Usage": (
        lambda **fields: detect_overflow(None, usage=Usage(**fields)),
        {"input_tokens": 1, "cache_tokens": 1, "output_tokens": 1, "finish_reason": "stop"}
        | {"window_tokens": 1, "counted_tokens": 1},
    ),
    "Usage.of": (Usage.of, {"response": {}, "window_tokens": 1, "counted_tokens": 1}),
    "call_with_recovery_sync": (
        calling_sync,
        {**WINDOW, "chat": chat, "max_output_tokens": 9, "on_overflow": None}
        | {"compressor": None},
    ),
    "call_with_recovery": (
        calling,
        {**WINDOW, "chat": chat, "max_output_tokens": 9, "on_overflow": None}
        | {"compressor": None},
    ),
    "call_with_recovery, no window": (
        lambda **arguments: calling(context_window=0, **arguments),
        {**REQUEST, "chat": chat, "settings": None, "archive": None, "max_output_tokens": 9},
    ),
    "Compressor": (
        Compressor,
        {"context_window": 9, "model": "m", "tools": [], "settings": None, "archive": None}
        | {"max_output_tokens": 3},
    ),
    "Compressor.compress": (
        lambda **arguments: Compressor(1_000).compress(**arguments),
        {"messages": [USER], "context_window": 1_000, "max_output_tokens": 3},
    ),
    "Compressor.emergency": (
        lambda **arguments: Compressor(1_000).emergency(**arguments),
        {"messages": [USER]},
    ),
    "Archive": (Archive, {"directory": "x", "shown": "x", "max_bytes": 9, "warn": None}),
    "Archive.missing": (in_archive("missing"), {"sizes": {}}),
    "Archive.write": (in_archive("write"), {"texts": {}, "in_use": ()}),
    "Archive.held": (in_archive("held"), {"texts": {}}),
    "Session": (
        lambda **fields: Session(**fields).get_history(max_tokens=100),
        {"key": "", "messages": [USER], "model": None, "summary": None}
        | {"summary_in_progress": False},
    ),
    "Session.get_history": (in_session("get_history"), {"max_messages": 1, "max_tokens": 9}),
    "Session.trim_if_needed": (in_session("trim_if_needed"), {"limit": 9, "min_keep": 1}),
    "Session.update_summary": (in_session("update_summary"), {"summary": "x"}),
    "Session.add_message": (in_session("add_message"), {"role": "user", "content": "x"}),
    "assemble_history": (
        assemble_history,
        {"messages": [USER], "summary": None, "mode": "recent", "max_messages": 1, "rounds": 1}
        | {"current": []},
    ),
    "replay": (replay, {**WINDOW, "max_output_tokens": 9, "on_request": None}),
    "Summarizer": (
        Summarizer,
        {"call": None, "policy": None, "format": "text", "prompt": None, "max_words": None}
        | {"model": None, "window_tokens": None, "max_result_tokens": None, "timeout_seconds": None}
        | {"on_event": None},
    ),
    "Summarizer.summarize": (
        summarized,
        {"messages": [USER], "previous": None, "reason": "force"},
    ),
    "Summary": (
        Summary,
        {"text": "x", "covers": 0, "version": 1, "made_by": "local", "data": None, "error": None}
        | {"reason": "force", "model": None, "truncated": False, "chunks": 1, "max_depth": 0}
        | {"input_tokens": 0, "output_tokens": 0},
    ),
    "Summary.from_dict": (Summary.from_dict, {"data": {"text": "x", "covers": 0}}),
    "parse_structured_summary": (parse_structured_summary, {"raw": "x"}),
    "SessionEvent": (
        of_event,
        {"payload": USER, "id": "x", "author": "x", "filter_key": "x", "time": 1.0}
        | {"state": {}, "partial": False, "raw": None},
    ),
    "SessionService": (lambda **given: SessionService(**given).close(), SERVICE_ARGUMENTS),
    **{
        f"SessionService.{method}": (with_service(method), usual)
        for method, usual in SERVICE.items()
    },
    "load_settings": (
        nanobot_context.load_settings,
        {"nanobot_config": Path("none.json"), "environ": {}},
    ),
}

# What is called, which is the caller's own.
CALLED = ("chat", "call", "warn", "on_request", "on_event", "on_overflow")

# What is no function to be called with arguments, is called with the same as another, or touches
# nanobot.
OTHERS = {
    *("AsyncSessionService", "Cut", "Fitted", "Lost", "Message", "Overflow", "Priority", "Receipt"),
    *("Settings", "__version__", "install", "status", "subscribe", "uninstall"),
    # Of clients only: `test_wrap.py`.
    "wrap",
}


def test_every_public_callable_is_in_the_table() -> None:
    public = {name for name in nanobot_context.__all__ if not name.endswith("Error")}
    assert public - OTHERS == {name for name in CALLS if name in public}
    assert inspect.signature(AsyncSessionService) == inspect.signature(SessionService)


def cases() -> Iterator[Any]:
    for name, (function, usual) in CALLS.items():
        for parameter in usual:
            yield pytest.param(function, usual, parameter, id=f"{name} {parameter}")


@pytest.mark.parametrize(("function", "usual", "parameter"), list(cases()))
def test_a_value_of_a_wrong_type_is_taken_or_named(
    function: Callable[..., Any], usual: dict[str, Any], parameter: str
) -> None:
    for name, value in WRONG.items():
        if value is int and parameter in CALLED:
            continue
        try:
            function(**{**usual, parameter: value})
        except NanobotContextError:
            pass
        except BaseException as error:
            # What is read by its methods raises what those raise.
            if isinstance(error, Broken) and name == "Raising" and parameter != "messages":
                continue
            pytest.fail(f"`{parameter}`={name}: {type(error).__name__}: {error}")


# The compiled half ------------------------------------------------------------------------------

STUB = Path(_core.__file__).with_name("_core.pyi")
# What the binding raises where a value has not the type of its parameter.
CONVERSION = (TypeError, OverflowError, UnicodeEncodeError)
# They wait, write, or set what all tests share.
LEFT_OUT = {"lock_file", "clear_caches", "set_cache_limit"}
BY_NAME: dict[str, Any] = {
    **WINDOW,
    **{"message": USER, "result": "x", "text": "x", "path": "x", "value": 1, "argument": "x"},
    **{"keep_last": 1, "max_tokens": 1_000, "prompt_tokens": 5, "listed_output_tokens": 5},
    **{"window_tokens": 1_000, "max_output_tokens": 5, "context_reserve_ratio": 0.15},
    **{"fixed_tokens": 5, "left_tokens": 5, "asked_tokens": 5, "sent_bytes": 5},
    **{"read_tokens": 5, "sent_tokens": 5, "rules": [], "shown": [], "max_bytes": 5},
    **{"needed_tokens": 5, "input_tokens": 5, "emergency_ratio": 0.5, "covered": 0, "keep": 1},
    **{"without": [], "used": [], "raw": "{}", "older": "{}", "newer": "{}", "fields": "{}"},
    **{"event": "a", "wanted": "a", "error": "x", "overflow": detect_overflow("prompt too long")},
}


# What methods are called on.
MADE: dict[str, dict[str, Any]] = {
    "Recovery": {"prompt_tokens": 5, "fixed_tokens": 5, "listed_output_tokens": 5},
    "SummaryRun": {"messages": [USER]},
    "Compressor": {"context_window": 1_000},
}


def method_of(name: str, method: str) -> Callable[..., Any]:
    class_ = getattr(_core, name)
    if method == "__new__":
        return class_  # type: ignore[no-any-return]
    return lambda **arguments: getattr(class_(**MADE[name]) if name in MADE else class_, method)(
        **arguments
    )


def functions() -> Iterator[tuple[str, Callable[..., Any], ast.arguments]]:
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name not in LEFT_OUT:
            yield node.name, getattr(_core, node.name), node.args
        if not isinstance(node, ast.ClassDef) or not hasattr(_core, node.name):
            continue
        if node.name in ("SessionStoreHandle", "Trigger", "FileLock"):
            continue
        for item in node.body:
            if not isinstance(item, ast.FunctionDef):
                continue
            if item.name == "__new__" or not item.name.startswith("_"):
                yield f"{node.name}.{item.name}", method_of(node.name, item.name), item.args


@pytest.mark.parametrize(
    ("function", "arguments"),
    [pytest.param(function, arguments, id=name) for name, function, arguments in functions()],
)
def test_the_compiled_half_raises_errors_of_ours_or_type_errors(
    function: Callable[..., Any], arguments: ast.arguments
) -> None:
    names = [one.arg for one in (*arguments.args, *arguments.kwonlyargs)]
    names = [name for name in names if name not in ("self", "cls")]
    usual = {name: BY_NAME[name] for name in names if name in BY_NAME}
    for parameter in names:
        for name, value in WRONG.items():
            try:
                function(**{**usual, parameter: value})
            except NanobotContextError:
                pass
            except BaseException as error:
                said = " ".join([str(error), *getattr(error, "__notes__", ())])
                if isinstance(error, CONVERSION) and parameter in said:
                    continue
                pytest.fail(f"`{parameter}`={name}: {type(error).__name__}: {error}")


@pytest.mark.parametrize("name", [name for name in vars(Trigger) if name in ("tokens", "idle")])
def test_a_trigger_names_its_wrong_limit(name: str) -> None:
    for value in WRONG.values():
        if isinstance(value, int | float | None):
            continue
        with pytest.raises((NanobotContextError, TypeError)):
            getattr(Trigger, name)(gt=value)


def test_a_policy_names_its_wrong_limit() -> None:
    for value in (-1, 10**30, HUGE, 1.5, "x", [5]):
        with pytest.raises((NanobotContextError, TypeError)):
            SummaryPolicy(message_limit=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("settings", [{"keep_rules": True}, 5, "x", b"x", [], object()])
def test_settings_of_another_type_are_named_before_anything_is_patched(settings: Any) -> None:
    with pytest.raises(NanobotContextError, match="`settings`"):
        nanobot_context.install(settings)
