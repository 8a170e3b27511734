"""Summarises nanobot's sessions in the background.

    save()            is one due? -> one task, which nothing waits for
    the task          asks nanobot's own provider -> metadata of the session -> save()
    get_history()     what the summary covers stays out -> a list that knows the summary
    build_messages()  such a list as `history` -> the summary at the end of the system prompt

One is due when more than 50 messages are behind the last one (document 000), after so many rounds
(document 001, stage eight), or when a request had to be cut: what is cut out is what a summary is
for, so that from then on it stands where notes of what is missing stood.

While a summary is made, the one before and everything behind it are shown. No message is ever
removed from a session. What nanobot consolidates by itself stays out of the history as without us.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import time
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary, ref

from nanobot_context import log
from nanobot_context._core import fits, select_history
from nanobot_context.guard.guard import unguarded
from nanobot_context.guard.telemetry import Telemetry
from nanobot_context.guard.windows import WindowResolver
from nanobot_context.host import stored_summary
from nanobot_context.host.config import address_of
from nanobot_context.host.detect import find
from nanobot_context.host.history import History, Section
from nanobot_context.host.messages import PUBLIC
from nanobot_context.settings import Settings
from nanobot_context.summary import (
    Rolling,
    StaticBuffer,
    Summarizer,
    Summary,
    SummaryRequest,
    static_buffer_cut,
    summary_section,
)
from nanobot_context.types import Message

# What is remembered of a session: the version that its last turn was shown, and how many messages
# it had when a summary of it failed beyond repair.
_SHOWN, _GAVE_UP_AT = "_nanobot_context_shown", "_nanobot_context_gave_up_at"

# Of the room that a conversation has in a request: the share above which it is summarised, before
# the next request would be cut, and what stays whole.
_OUTGROWN, _STAYS = 0.75, 0.4

_TRIMMED = "_nanobot_context_trimmed"
"""Where it notes how far what `trim_if_needed` returned reaches. The same."""


def added(settings: Settings) -> dict[str, Any]:
    """Return what document 000 adds to nanobot's session, for programs that summarise by hand."""

    def trim_if_needed(
        self: Any,
        limit: int = settings.message_buffer_limit,
        min_keep: int = settings.message_buffer_min,
    ) -> tuple[list[Message], bool]:
        """Return the messages to summarise now, and whether there are any.

        Nothing is removed: it is shown until `update_summary` brings what covers it.
        """
        summary = stored_summary.read(self)
        covered = summary.covers if summary else 0
        cut = static_buffer_cut(self.messages, covered, limit=limit, keep=min_keep)
        vars(self)[_TRIMMED] = cut
        return ([], False) if cut is None else (self.messages[covered:cut], True)

    def update_summary(self: Any, text: str) -> bool:
        """Take the summary of what `trim_if_needed` returned last; save the session afterwards.

        `False`, and nothing is taken, where it returned nothing, or what it covers is shorter than
        the summary that was stored meanwhile.
        """
        cut = vars(self).pop(_TRIMMED, None)
        current = stored_summary.read(self)
        covered = current.covers if current else 0
        if not text.strip() or cut is None or not covered < cut <= len(self.messages):
            return False
        version = stored_summary.version_of(self) + 1
        stored_summary.write(self, Summary(text, covers=cut, version=version, reason="buffer"))
        return True

    return {
        "trim_if_needed": trim_if_needed,
        "update_summary": update_summary,
        "summary": _SummaryText(),
    }


class _SummaryText:
    """The text of a session's summary, empty without one.

    It has no setter, so that a field of that name, which a later nanobot may have, works as ever:
    what an instance has of its own comes first.
    """

    def __get__(self, session: Any, owner: type | None = None) -> Any:
        if session is None:
            return self
        found = stored_summary.read(session)
        return found.text if found else ""


def view_of(session: Any) -> tuple[Any, Summary | None]:
    """Return the session view that nanobot takes its history from, and the summary before it."""
    summary = stored_summary.read(session)
    _drop_stale_state(session, summary)
    if summary is None:
        return session, None
    # nanobot's own function, and so every option of it, on what is behind the summary.
    view = copy.copy(session)
    view.messages = session.messages[summary.covers :]
    if hasattr(session, "last_consolidated"):
        view.last_consolidated = max(session.last_consolidated - summary.covers, 0)
    return view, summary


def _drop_stale_state(session: Any, summary: Summary | None) -> None:
    """Drop the provider state of a session if it holds messages that the summary now covers.

    That is nanobot 0.3.5 with a provider that goes on from a state. It reads the state right behind
    its call of `get_history`.
    """
    if getattr(session, "provider_state", None) is None:
        return
    if _notes(session).get(_SHOWN) != (summary.version if summary else None):
        session.provider_state = None


def _section_of(history: History) -> str:
    summary = history.summary
    _notes(history.session)[_SHOWN] = summary.version if summary else None
    return summary_section(summary.text) if summary else ""


show = Section("summary_section", _section_of).show
"""Puts the summary behind the system prompt of messages, which nanobot built of a history."""


@dataclass(slots=True)
class SummaryJobs:
    """The summaries that are being made, one at a time for each session.

    Attributes:
        is_stopped: Whether what is being made is to be thrown away.
        loops: The agent loop of every session manager; its provider and model are asked.
        running: The task of each session.
    """

    windows: WindowResolver
    settings: Settings
    telemetry: Telemetry
    is_stopped: bool = False
    loops: WeakKeyDictionary[Any, ref[Any]] = field(default_factory=WeakKeyDictionary)
    running: WeakKeyDictionary[Any, dict[str, asyncio.Task[None]]] = field(
        default_factory=WeakKeyDictionary
    )

    def __post_init__(self) -> None:
        self.telemetry.rooms = {}

    def remember(self, loop: Any) -> None:
        """Remember the agent loop that the sessions of its manager belong to."""
        self.loops[loop.sessions] = ref(loop)

    def begin_if_due(self, manager: Any, session: Any) -> None:
        """Begin the next summary of `session` in the running event loop; nothing without one."""
        loop = self.loops.get(manager, lambda: None)()
        if loop is None or not isinstance(session.metadata, dict):
            return
        try:
            event_loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        running = self.running.setdefault(manager, {})
        task = running.get(session.key)
        # One of an event loop that was closed never ends.
        if task is not None and task.get_loop() is event_loop:
            return
        try:
            previous = stored_summary.read(session)
            model = getattr(loop, "model", None)
            due = self._due(session, previous.covers if previous else 0, model)
        except Exception:
            self._give_up(session)
            return
        if due is None:
            return
        task = event_loop.create_task(self._run(SummaryJob(loop, manager, session, previous, *due)))
        running[session.key] = task
        task.add_done_callback(lambda _: running.pop(session.key, None))

    def _due(self, session: Any, covered: int, model: str | None) -> tuple[int, str] | None:
        """Return how many messages the next summary covers, and why; `None` while it is not due."""
        settings, messages = self.settings, session.messages
        limit, keep = settings.message_buffer_limit, settings.message_buffer_min
        gave_up_at = _notes(session).get(_GAVE_UP_AT, 0)
        if gave_up_at and len(messages) - gave_up_at <= limit:
            return None
        if len(messages) - covered > limit:
            due = StaticBuffer(limit, keep).due(messages, covered)
            if due is not None:
                return due
        if settings.summary_interval:
            due = Rolling(settings.summary_interval).due(messages, covered)
            if due is not None:
                return due
        room = (self.telemetry.rooms or {}).get(session.key)
        if not room or fits(messages[covered:], int(room * _OUTGROWN), model):
            return None
        kept = select_history(messages[covered:], max(int(room * _STAYS), 1), model)
        cut = static_buffer_cut(messages, covered, limit=0, keep=max(len(kept), 1))
        return None if cut is None else (cut, "token_limit")

    def _give_up(self, session: Any) -> None:
        """Log the exception that is handled, and leave `session` alone for a buffer's length."""
        _notes(session)[_GAVE_UP_AT] = len(session.messages)
        log.exception("could not summarise {}", session.key)

    async def _run(self, job: SummaryJob) -> None:
        begun = time.perf_counter()
        made: Summary | None = None
        stored: Summary | None = None
        failure: Exception | None = None
        try:
            with unguarded():
                made = await self._make(job)
            if not self.is_stopped:
                stored = job.store(made)
        except Exception as error:
            failure = error
            self._give_up(job.session)
        seconds = time.perf_counter() - begun
        self.telemetry.summarised(
            job.session.key, stored or made, failure, seconds, stored is not None
        )

    async def _make(self, job: SummaryJob) -> Summary:
        """Ask nanobot's provider; without an answer of its, the summary is made without a model."""
        settings, runtime = self.settings, job.runtime()
        model = settings.summary_model or settings.compression_model or runtime.model
        window = self.windows.of(model, address_of(runtime.provider), runtime.provider)
        summarizer = Summarizer(
            functools.partial(_ask, runtime.provider, model),
            format="structured" if settings.summary_format == "structured" else "text",
            prompt=settings.summary_prompt,
            max_words=settings.summary_max_words,
            model=model,
            window_tokens=window.tokens or None,
            timeout_seconds=settings.summary_timeout_seconds,
        )
        summary = await summarizer.asummarize(
            job.messages(), previous=job.previous, reason=job.reason
        )
        if summary.error:
            log.warning("summary of {} made without a model: {}", job.session.key, summary.error)
        return summary


async def _ask(provider: Any, model: str, request: SummaryRequest) -> str:
    """Return a model's answer as nanobot gets it: with its retries from 0.1.4.post5 on."""
    chat = getattr(provider, "chat_with_retry", None) or provider.chat
    response = await chat(
        messages=request.messages,
        tools=None,
        model=request.model or model,
        max_tokens=request.max_tokens,
        temperature=request.temperature,
    )
    text = response.content or ""
    if response.finish_reason == "error":
        raise RuntimeError(text or "the provider answered with an error")
    return str(text)


class SummaryJob:
    """One summary to make: of everything behind `previous` up to message `cut` of a session."""

    def __init__(
        self,
        loop: Any,
        manager: Any,
        session: Any,
        previous: Summary | None,
        cut: int,
        reason: str,
    ) -> None:
        self.reason = reason
        self.loop, self.manager, self.session = loop, manager, session
        self.previous = previous
        self.begun_at = stored_summary.version_of(session)
        self._cut = cut
        self._last = stored_summary.mark_of(session.messages[cut - 1])
        self._said = session.messages[previous.covers if previous else 0 : cut]

    def runtime(self) -> Any:
        """Return the object with the session's provider and model: from 0.3.0 on it may have its
        own.
        """
        own = getattr(self.loop, "runtime_for_session", None)
        return own(self.session) if own else self.loop

    def messages(self) -> list[Message]:
        """Return the messages to summarise, without commands and their answers."""
        public = find(*PUBLIC) or dict
        return [public(message) for message in self._said if not message.get("_command")]

    def store(self, summary: Summary) -> Summary | None:
        """Put `summary` into the session and save that, unless the talk went another way.

        It did where the session was cleared, deleted or loaded anew, where the last message that is
        covered is gone, or where another summary has been stored. Returns what is stored.
        """
        session = self.session
        covers = stored_summary.position(session.messages, self._last, self._cut)
        is_current = _cached(self.manager, session.key) is session
        if covers is None or not is_current or stored_summary.version_of(session) != self.begun_at:
            return None
        stored = replace(summary, covers=covers, version=self.begun_at + 1)
        stored_summary.write(session, stored)
        self.manager.save(session)
        return stored


def _notes(session: Any) -> dict[str, Any]:
    """Return the attributes of a session in memory, where our notes are kept."""
    notes: dict[str, Any] = getattr(session, "__dict__", {})
    return notes


def _cached(manager: Any, key: str) -> Any:
    """Return the session that nanobot works with, without loading one."""
    get_cached = getattr(manager, "get_cached", None)
    return get_cached(key) if get_cached else manager._cache.get(key)
