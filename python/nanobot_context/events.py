"""Events of a protected nanobot, reported as they happen.

    import nanobot_context

    nanobot_context.install()
    stop = nanobot_context.subscribe(print)  # each event of this process, until `stop()`

Every event is also a line of the logger `nanobot_context.events`, whose record carries the same
fields as `record.nanobot_context`: at DEBUG what happens in every request once a conversation is
large (`compressed`, `answered`), at INFO everything else. The setting `events` writes them to a
file of JSON lines. An event that nobody listens to is not made.

Events hold numbers and names. What was said in the conversation, and what a provider wrote in an
error, which may quote it, is in `content`, and only for a listener that asked for it.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, TypeAlias

from nanobot_context import log
from nanobot_context.arguments import invalid
from nanobot_context.errors import InvalidArgumentError
from nanobot_context.forks import ThreadLock

__all__ = [
    "AnsweredEvent",
    "CompressedEvent",
    "GaveUpEvent",
    "LearnedEvent",
    "OverflowEvent",
    "RetryEvent",
    "SummarisedEvent",
    "TelemetryEvent",
    "current_session",
    "emit",
    "is_wanted",
    "subscribe",
]

logger = logging.getLogger("nanobot_context.events")

current_session: ContextVar[str | None] = ContextVar("nanobot_context_session", default=None)
"""The key of the session that the current task works for; tasks that it starts have the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryEvent:
    """Base of all events.

    Attributes:
        kind: What happened, one word; it never changes its meaning.
        level: The level that it is logged at.
        at: When, in UTC, ISO 8601 with milliseconds.
        session: nanobot's key of the session (`cli:direct`); a subagent's and a consolidation's is
            that of the turn that started it. `None` for calls outside of any turn: the heartbeat's
            look whether there is work, and the compaction of idle sessions.
        model: The model as nanobot names it, the first where it may turn to another; `None` where
            the provider chooses.
        content: Texts, for a listener that asked for them; `None` for all others.
    """

    kind: ClassVar[str]
    level: ClassVar[int] = logging.INFO

    model: str | None = None
    session: str | None = field(default_factory=current_session.get)
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))
    content: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values, `session`, `at` and `kind` first."""
        front = {"session": self.session, "at": self.at, "kind": self.kind, "model": self.model}
        rest = {item.name: getattr(self, item.name) for item in fields(self)}
        if self.content is None:
            del rest["content"]
        return front | rest


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedEvent(TelemetryEvent):
    """A request was made to fit before it was sent.

    Attributes:
        tokens_before: Tokens of nanobot's request, tool schemas included, as this package counts.
        tokens_after: Tokens of what is sent.
        budget_tokens: What it had to fit into: the window less the room for the answer.
        cuts: How many of nanobot's messages are not sent as they were: shortened or left out.
        duration_us: Microseconds that it took.
        content: `removed`: copies of those messages; `added`: of what is sent in their place.
    """

    kind: ClassVar[str] = "compressed"
    level: ClassVar[int] = logging.DEBUG

    tokens_before: int
    tokens_after: int
    budget_tokens: int
    cuts: int
    duration_us: int

    def __str__(self) -> str:
        return (
            f"compressed {self.tokens_before:,} tokens to {self.tokens_after:,} for a budget of "
            f"{self.budget_tokens:,}, {self.cuts} messages cut"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OverflowEvent(TelemetryEvent):
    """The provider called a request too large, or cut it in silence.

    Attributes:
        overflow_kind: What was too large: `Overflow.kind`.
        sent_tokens: Tokens of what was sent, as this package counts.
        limit_tokens: The limit that the provider stated, else `None`.
        used_tokens: The tokens that it counted, else `None`.
        status: The HTTP status of the refusal, where it is known.
        content: `error`: the provider's words; `None` where it cut in silence.
    """

    kind: ClassVar[str] = "overflow"

    overflow_kind: str
    sent_tokens: int
    limit_tokens: int | None
    used_tokens: int | None
    status: int | None

    def __str__(self) -> str:
        limit = "none stated" if self.limit_tokens is None else f"{self.limit_tokens:,}"
        if self.overflow_kind == "silent":
            return f"cut in silence: of {self.sent_tokens:,} tokens, as counted here, read {limit}"
        sent = f"{self.sent_tokens:,} tokens as counted here"
        if self.used_tokens is not None:
            sent = f"{self.used_tokens:,} tokens"
        return f"refused {sent}: {self.overflow_kind}, limit {limit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryEvent(TelemetryEvent):
    """A request that was refused is sent again, smaller.

    Attributes:
        attempt: Which one it is; the refused first one was 1.
        tokens: Its tokens, as this package counts.
        max_tokens: The limit for the answer, `None` for none.
    """

    kind: ClassVar[str] = "retry"

    attempt: int
    tokens: int
    max_tokens: int | None

    def __str__(self) -> str:
        return f"attempt {self.attempt} with {self.tokens:,} tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredEvent(TelemetryEvent):
    """The model answered. The numbers are the provider's; `None` where it reports none.

    Attributes:
        attempts: How many requests it took.
        prompt_tokens: Tokens of the prompt, those that came out of a cache included.
        cached_tokens: Those of them that were read from the provider's prompt cache.
        completion_tokens: Tokens of the answer.
    """

    kind: ClassVar[str] = "answered"
    level: ClassVar[int] = logging.DEBUG

    attempts: int
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None

    def __str__(self) -> str:
        return (
            f"answered: {self.prompt_tokens} tokens of prompt, {self.cached_tokens} of them "
            f"cached, {self.completion_tokens} of answer"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GaveUpEvent(TelemetryEvent):
    """Nothing that is small enough was left to send: the user reads so in plain words.

    Attributes:
        needed_tokens: Tokens of what must stay, or of the last request that was refused.
        limit_tokens: What would have been accepted, where it is known.
        content: `error`: why, in the words of the log.
    """

    kind: ClassVar[str] = "gave_up"

    needed_tokens: int | None
    limit_tokens: int | None

    def __str__(self) -> str:
        return f"gave up: {self.needed_tokens} tokens needed, {self.limit_tokens} accepted"


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarisedEvent(TelemetryEvent):
    """A summary of a session was made in the background, or could not be made.

    `model` is the one that wrote it, `None` where none did.

    Attributes:
        status: `stored`; `outdated` where the session went another way meanwhile and nothing was
            stored; `failed` where nothing was made.
        made_by: Who wrote it: `model`, or `local` for rules in place of a model that failed.
        version: Its number in the session, from 1.
        covers: The number of messages from the start that it covers.
        duration_ms: Milliseconds from its beginning; no turn waits for it.
        content: `text`, and `error`: why the model's was not taken, or none was made.
    """

    kind: ClassVar[str] = "summary"

    status: str
    made_by: str | None
    version: int | None
    covers: int | None
    duration_ms: int

    def __str__(self) -> str:
        if self.status == "failed":
            return f"summary failed after {self.duration_ms:,} ms"
        return (
            f"summary {self.version} {self.status}, of {self.covers} messages, made by "
            f"{self.made_by} in {self.duration_ms:,} ms"
        )


Learned: TypeAlias = Literal["window_tokens", "output_tokens", "ratio"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedEvent(TelemetryEvent):
    """A provider taught something about its model, which holds from now on.

    `model` is the model with the provider's address, as `status` shows it.

    Attributes:
        what: `window_tokens`, `output_tokens`, or `ratio`: how many tokens the provider counts
            where this package counts one.
        value: What it is now.
        script: The script of the prompts that a ratio is for, else `None`.
    """

    kind: ClassVar[str] = "learned"

    what: Learned
    value: float
    script: str | None = None

    def __str__(self) -> str:
        script = f" of {self.script}" if self.script else ""
        return f"learned of {self.model}: {self.what}{script} is {self.value:,}"


@dataclass(slots=True, eq=False)
class _Listener:
    callback: Callable[[TelemetryEvent], object]
    include_content: bool
    has_failed: bool = False


# Replaced as a whole, never changed: an event goes to those who listened when it happened.
_listeners: tuple[_Listener, ...] = ()
_changing = ThreadLock()


def subscribe(
    callback: Callable[[TelemetryEvent], object], *, include_content: bool = False
) -> Callable[[], None]:
    """Call `callback` with each event of this process from now on; return what ends that.

    It is called where the event happens, mostly on the event loop, inside the model call, but on
    any thread that makes one: it must be quick, and must not wait for anything. Its exceptions are
    logged once and go nowhere else. Listeners may come before `install` and stay after `uninstall`.

    Args:
        callback: A plain function of one event; its result is ignored.
        include_content: Whether its events have `content`: texts of the conversation.

    Raises:
        InvalidArgumentError: `callback` is no function, or a coroutine function, which nobody would
            wait for.
    """
    global _listeners
    if not callable(callback):
        raise invalid("callback", "a function of one event", callback)
    if inspect.iscoroutinefunction(callback):
        raise InvalidArgumentError(
            "`callback` must be a plain function, got a coroutine function\n"
            "hint: put the event into a queue, as in `subscribe(queue.put_nowait)`",
            argument="callback",
        )
    listener = _Listener(callback, include_content)
    with _changing:
        _listeners = (*_listeners, listener)

    def stop() -> None:
        global _listeners
        with _changing:
            _listeners = tuple(one for one in _listeners if one is not listener)

    return stop


def is_wanted(event: type[TelemetryEvent]) -> bool:
    """Return whether anybody would see an event of this class; without one, make none."""
    return bool(_listeners) or logger.isEnabledFor(event.level)


def emit(event: TelemetryEvent, content: Callable[[], Mapping[str, Any]] | None = None) -> None:
    """Give `event` to the log and to every listener; `content` makes what some of them asked for.

    Raises nothing that a listener raises.
    """
    if logger.isEnabledFor(event.level):
        logger.log(
            event.level,
            "%s (session %s, model %s)",
            *(event, event.session, event.model),
            extra={"nanobot_context": event.to_dict()},
        )
    full: TelemetryEvent | None = None
    for listener in _listeners:
        if listener.include_content and content is not None:
            full = full or replace(event, content=content())
        shown = full if listener.include_content and full else event
        try:
            listener.callback(shown)
        except Exception:
            if not listener.has_failed:
                listener.has_failed = True
                log.exception("a listener to events failed; its errors are not logged again")
