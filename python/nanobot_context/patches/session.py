"""`Session`: a history whole and within a token budget, and what a summary covers is left out."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from nanobot_context._core import select_history
from nanobot_context.guard.fuse import fused
from nanobot_context.host import stored_calls, stored_rules, stored_summary
from nanobot_context.host.detect import SESSION
from nanobot_context.host.history import History
from nanobot_context.patches.declaration import Context, Patch, then
from nanobot_context.plugins.shared_session import note_cleared
from nanobot_context.summary import Summary
from nanobot_context.types import Message

GetHistory = Callable[..., list[Message]]


def _wrap_budget(original: GetHistory, context: Context) -> GetHistory:
    """Return `get_history` that takes `max_tokens` too, and has the model's reasoning.

    Without a limit, or with `None` or 0 as later releases of nanobot mean it, the messages are
    nanobot's own. With one, the newest whole rounds of them which fit into `max_tokens`.
    """
    own = inspect.signature(original)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    positional = sum(one.kind is kind for one in own.parameters.values()) - 1

    # Not `__wrapped__`: `inspect` is to show the signature with `max_tokens`.
    @functools.wraps(original, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def get_history(
        self: Any, *args: Any, max_tokens: int | None = None, **kwargs: Any
    ) -> list[Message]:
        if len(args) > positional:
            args, max_tokens = args[:positional], args[positional]
        history = original(self, *args, **kwargs)
        if context.active:
            fused("put reasoning back", lambda: _put_reasoning_back(history, self.messages), None)
        if not context.active or not max_tokens:
            return history
        return fused("choose history", lambda: select_history(history, max_tokens), history)

    del get_history.__dict__["__wrapped__"]
    limit = inspect.Parameter("max_tokens", kind, default=None)
    parameters = sorted([*own.parameters.values(), limit], key=lambda one: one.kind)
    shown = own.replace(parameters=parameters)
    get_history.__signature__ = shown  # type: ignore[attr-defined]
    return get_history


def _put_reasoning_back(history: list[Message], kept: list[Message]) -> None:
    """Give the messages of `history`, the newest of `kept`, the reasoning that these have.

    nanobot has it in the session's file and, to 0.1.5.post2, leaves it out of the history: DeepSeek
    and others refuse calls that come back without it.
    """
    for message, original in zip(reversed(history), reversed(kept), strict=False):
        if message.get("role") != original.get("role"):
            break
        if original.get("reasoning_content"):
            message.setdefault("reasoning_content", original["reasoning_content"])


def _wrap_summarised(original: GetHistory, context: Context) -> GetHistory:
    from nanobot_context.plugins.summaries import view_of

    @functools.wraps(original)
    def get_history(self: Any, *args: Any, **kwargs: Any) -> list[Message]:
        if not context.active:
            return original(self, *args, **kwargs)
        without: tuple[Any, Summary | None] = self, None
        view, summary = fused("read a summary", lambda: view_of(self), without)
        return History(original(view, *args, **kwargs), self, summary)

    return get_history


def _wrap_ruled(original: GetHistory, context: Context) -> GetHistory:
    from nanobot_context.plugins.rules import with_rules

    @functools.wraps(original)
    def get_history(self: Any, *args: Any, **kwargs: Any) -> list[Message]:
        history = original(self, *args, **kwargs)
        if not context.active:
            return history
        return fused("keep rules", lambda: with_rules(self, history), history)

    return get_history


def _forget(session: Any) -> None:
    stored_rules.forget(session)
    stored_calls.forget(session)


def _of(act: Callable[[Any], None]) -> Callable[..., None]:
    """Return what `then` takes of a function of the session."""
    return lambda _, session, *__, **___: act(session)


def _added(name: str) -> Callable[[Any, Context], Any]:
    def add(_: object, context: Context) -> Any:
        from nanobot_context.plugins.summaries import added

        return added(context.settings)[name]

    return add


_ADDED = "programs summarise a session by hand"

_patch = functools.partial(Patch, owner=SESSION)

PATCHES = (
    _patch(
        attribute="get_history",
        parameters=("max_messages",),
        why="history within `max_tokens`, with the model's reasoning",
        wrap=_wrap_budget,
        unless="max_tokens",
        until="0.1.5.post2",
    ),
    _patch(
        attribute="get_history",
        why="what a summary covers is not sent again",
        wrap=_wrap_summarised,
        part="summaries",
        needed=True,
    ),
    _patch(
        attribute="clear",
        why="a cleared session has no summary",
        wrap=then("forget a summary", _of(stored_summary.forget)),
        part="summaries",
        needed=True,
    ),
    _patch(
        attribute="clear",
        why="what is cleared while the store is down does not come back",
        wrap=then("note that a session was cleared", _of(note_cleared)),
        part="session store",
        needed=True,
        since="0.3.5",
    ),
    _patch(
        attribute="get_history",
        why="rules of the user, and what was done, outlive what nanobot leaves out",
        wrap=_wrap_ruled,
        part="rules",
        needed=True,
    ),
    _patch(
        attribute="clear",
        why="a cleared session has no rules, and nothing was done in it",
        wrap=then("forget rules and calls", _of(_forget)),
        part="rules",
        needed=True,
    ),
    *(
        _patch(
            attribute=name,
            kind="new",
            why=_ADDED,
            wrap=_added(name),
            part="summaries",
        )
        for name in ("trim_if_needed", "update_summary", "summary")
    ),
)
