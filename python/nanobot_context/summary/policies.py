"""When a session is summarised: a static buffer, every so many rounds, at limits, or on overflow.

    summary = maybe_summarize(session, summarizer, StaticBuffer())

A policy says how many messages the next summary covers, and why. `maybe_summarize` makes it of what
is new and hands it to the session, which takes it only if it is newer. `call_with_summary` sends a
request, and where it is too long summarises, then shows less and less.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from nanobot_context._core import (
    SummaryPolicy,
    Trigger,
    count_tokens,
    keep_last_cut,
    rolling_cut,
    static_buffer_cut,
    summary_due,
)
from nanobot_context.arguments import check_messages, check_whole, invalid
from nanobot_context.history import assemble_history, history_ladder
from nanobot_context.overflow import prompt_overflow
from nanobot_context.types import Message

if TYPE_CHECKING:
    from nanobot_context.session import Session
    from nanobot_context.summary.record import Summary
    from nanobot_context.summary.summarizer import Summarizer

logger = logging.getLogger("nanobot_context")

Response = TypeVar("Response")


class When(Protocol):
    """Says when a summary is due."""

    def due(self, messages: list[Message], covered: int) -> tuple[int, str] | None:
        """Return how many messages the next summary covers, and why; `None` while it is not due."""


@dataclass(frozen=True, slots=True)
class StaticBuffer:
    """Due when more than `limit` messages are shown; all but the last `keep` are covered then.

    Source: document 000.
    """

    limit: int = 50
    keep: int = 10

    def __post_init__(self) -> None:
        check_whole("limit", self.limit)
        check_whole("keep", self.keep)

    def due(self, messages: list[Message], covered: int) -> tuple[int, str] | None:
        """Return how many messages the next summary covers, and "buffer"."""
        cut = static_buffer_cut(messages, covered, limit=self.limit, keep=self.keep)
        return None if cut is None else (cut, "buffer")


@dataclass(frozen=True, slots=True)
class Rolling:
    """Due when there are `interval` rounds before the newest `keep_rounds`.

    Source: document 001, stage eight.
    """

    interval: int = 10
    keep_rounds: int = 2

    def __post_init__(self) -> None:
        check_whole("interval", self.interval)
        check_whole("keep_rounds", self.keep_rounds)

    def due(self, messages: list[Message], covered: int) -> tuple[int, str] | None:
        """Return how many messages the next summary covers, and "rolling"."""
        cut = rolling_cut(messages, covered, interval=self.interval, keep_rounds=self.keep_rounds)
        return None if cut is None else (cut, "rolling")


@dataclass(frozen=True, slots=True)
class Observed:
    """What a trigger of the caller's own is told of a conversation.

    Attributes:
        messages: Those that no summary covers.
        idle_seconds: How long nobody said anything.
        model: The model whose tokens are counted.
        session: The `StoredSession`, with its state; `None` outside of a session service.
    """

    messages: list[Message]
    idle_seconds: float = 0.0
    model: str | None = None
    session: Any = None

    @property
    def tokens(self) -> int:
        """Tokens of the messages, as a prompt."""
        return count_tokens(self.messages, self.model)


@dataclass(frozen=True, slots=True)
class Limits:
    """Due when `trigger` fires, or without one at the policy's message or token limit.

    Attributes:
        policy: The limits, and how many messages stay.
        trigger: A check in place of them; of its seconds of silence it is told `idle_seconds`. A
            function of `Observed` is one, too: what it returns is whether a summary is due, or why.
        idle_seconds: How long nobody said anything.
        model: The model whose tokens are counted.
        session: What a function is told of the session.

    Source: documents 002 and 003.
    """

    policy: SummaryPolicy | None = None
    trigger: Trigger | Callable[[Observed], bool | str | None] | None = None
    idle_seconds: float = 0.0
    model: str | None = None
    session: Any = None

    @property
    def watches_silence(self) -> bool:
        """Whether it may become due because time passes."""
        return (
            self.trigger.watches_silence
            if isinstance(self.trigger, Trigger)
            else bool(self.trigger)
        )

    def due(self, messages: list[Message], covered: int) -> tuple[int, str] | None:
        """Return how many messages the next summary covers, and which check fired."""
        if callable(self.trigger):
            return self._due_by(self.trigger, messages, covered)
        return summary_due(
            messages,
            covered,
            policy=self.policy,
            trigger=self.trigger,
            idle_seconds=self.idle_seconds,
            model=self.model,
        )

    def _due_by(
        self,
        trigger: Callable[[Observed], bool | str | None],
        messages: list[Message],
        covered: int,
    ) -> tuple[int, str] | None:
        policy = self.policy or SummaryPolicy()
        new = messages[covered:]
        if not (new and policy.enabled):
            return None
        try:
            fired = trigger(Observed(new, self.idle_seconds, self.model, self.session))
            if isinstance(fired, Coroutine):
                fired.close()
                raise invalid("trigger", "a function that is not async", trigger)
        except Exception:
            # Beside a turn nobody else says so.
            logger.exception("`trigger` failed, so that nothing is summarised")
            raise
        cut = keep_last_cut(messages, covered, keep=policy.keep_last) if fired else None
        return None if cut is None else (cut, fired if isinstance(fired, str) else "custom")


@dataclass(frozen=True, slots=True)
class All:
    """Due at once, for all there is: on demand, or after an overflow."""

    cause: str = "force"
    policy: SummaryPolicy | None = None

    def due(self, messages: list[Message], covered: int) -> tuple[int, str] | None:
        return summary_due(messages, covered, policy=self.policy, cause=self.cause)


def maybe_summarize(
    session: Session, summarizer: Summarizer, when: When | None = None
) -> Summary | None:
    """Summarise a session if that is due, and return the new summary; `None` where it is not.

    Nothing is due while another summary of the session is in progress.

    Args:
        session: The session; the new summary extends its `summary` and replaces it.
        summarizer: Makes the summary.
        when: When it is due; `None`: now, for all messages.

    Raises:
        InvalidMessageError: A message is of a shape that no provider accepts.
    """
    with _summarizing(session, summarizer, when) as due:
        if due is not None:
            due.made = summarizer.summarize(due.messages, previous=due.previous, reason=due.reason)
    return due.made if due else None


async def amaybe_summarize(
    session: Session, summarizer: Summarizer, when: When | None = None
) -> Summary | None:
    """As `maybe_summarize`, in a task; cancelling it leaves the session as it was."""
    with _summarizing(session, summarizer, when) as due:
        if due is not None:
            due.made = await summarizer.asummarize(
                due.messages, previous=due.previous, reason=due.reason
            )
    return due.made if due else None


@dataclass(slots=True)
class _Due:
    messages: list[Message]
    previous: Summary | None
    reason: str
    made: Summary | None = None


def _check(session: object, summarizer: object, when: object) -> None:
    """Raise `InvalidArgumentError` unless all three have the methods called here."""
    if not hasattr(session, "summary_in_progress"):
        raise invalid("session", "a `Session`", session)
    if not hasattr(summarizer, "summarize"):
        raise invalid("summarizer", "a `Summarizer`", summarizer)
    if not hasattr(when, "due"):
        raise invalid("when", "a policy such as `StaticBuffer()`", when)


@contextmanager
def _summarizing(
    session: Session, summarizer: Summarizer, when: When | None
) -> Iterator[_Due | None]:
    """Yield what to summarise; offer the summary `made` of it to the session."""
    when = All() if when is None else when
    _check(session, summarizer, when)
    previous = session.summary
    covered = previous.covers if previous else 0
    cut = None if session.summary_in_progress else when.due(session.messages, covered)
    if cut is None:
        yield None
        return
    session.summary_in_progress = True
    due = _Due(session.messages[covered : cut[0]], previous, cut[1])
    try:
        yield due
    except BaseException:
        session.summary_failed()
        raise
    if due.made is not None and not session.update_summary(due.made):
        due.made = None


async def call_with_summary(
    chat: Callable[[list[Message]], Awaitable[Response]],
    session: Session,
    summarizer: Summarizer,
    current: list[Message],
) -> Response:
    """Return what `chat` answers to the session and the messages of the present request.

    Where that is refused as too long, all of the session is summarised and sent once more; then
    half as many of its newest messages each time, down to one: 20, 10, 5, 2, 1.

    Args:
        chat: The call of the model: `await chat(messages)`.
        session: The conversation before `current`.
        summarizer: Makes the summary; its policy says whether, and where the halving begins.
        current: The messages of the present request; they are sent whole.

    Raises:
        Exception: What `chat` raised last, where nothing was accepted, or what is not an overflow.

    Source: document 003, sections 1.4 and 1.5.
    """
    _check(session, summarizer, All())
    check_messages("current", current)
    if not callable(chat):
        raise invalid("chat", "callable", chat)
    refusal: Exception | None = None
    async for messages in _shorter_and_shorter(session, summarizer, current):
        try:
            return await chat(messages)
        except Exception as error:
            if prompt_overflow(error) is None:
                raise
            refusal = error
    assert refusal is not None
    raise refusal


async def _shorter_and_shorter(
    session: Session, summarizer: Summarizer, current: list[Message]
) -> AsyncIterator[list[Message]]:
    def with_summary() -> list[Message]:
        return assemble_history(session.messages, summary=session.summary, current=current)

    yield with_summary()
    policy = summarizer.policy
    if await amaybe_summarize(session, summarizer, All("overflow_retry", policy)):
        yield with_summary()
    limit: int | None = policy.history_limit
    while limit:
        yield assemble_history(session.messages, mode="recent", max_messages=limit, current=current)
        limit = history_ladder(limit)
