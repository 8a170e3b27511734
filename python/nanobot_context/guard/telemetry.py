"""Counts and records what happens to requests, and emits it as events.

Nothing here may cost a model call: what goes wrong here is logged once.
"""

from __future__ import annotations

import copy
import functools
import os
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from nanobot_context._core import count_tokens
from nanobot_context.events import (
    AnsweredEvent,
    CompressedEvent,
    GaveUpEvent,
    OverflowEvent,
    RetryEvent,
    SummarisedEvent,
    TelemetryEvent,
    current_session,
    emit,
    is_wanted,
    subscribe,
)
from nanobot_context.forks import begin_in_children
from nanobot_context.guard.counters import Counters
from nanobot_context.guard.ended import Ended
from nanobot_context.guard.fuse import fused
from nanobot_context.guard.line_file import LineFile
from nanobot_context.identity import is_same, without
from nanobot_context.overflow import CACHED_FIELDS, Usage

if TYPE_CHECKING:
    from nanobot_context._core import Overflow
    from nanobot_context.errors import ContextOverflowError
    from nanobot_context.guard.fitting import Fitter
    from nanobot_context.guard.request import Message, Request
    from nanobot_context.recovery import Attempt
    from nanobot_context.settings import Settings
    from nanobot_context.summary import Summary

# Where OpenAI's two APIs have it.
_DETAILS = ("prompt_tokens_details", "input_tokens_details")

P = ParamSpec("P")
Report = Callable[Concatenate["Telemetry", P], None]


def _harmless(report: Report[P]) -> Report[P]:
    """Return `report` so that its exceptions are logged and dropped."""

    @functools.wraps(report)
    def harmless(self: Telemetry, /, *args: P.args, **kwargs: P.kwargs) -> None:
        fused("report an event", lambda: report(self, *args, **kwargs), None)

    return harmless


class _EventFile:
    """Queues events, and writes them with the counts: in their order, away from the event loop."""

    def __init__(self, file: LineFile, counters: Counters) -> None:
        self._file = file
        self._counters = counters
        self._queued: deque[TelemetryEvent] = deque()
        begin_in_children(self)

    def add(self, event: TelemetryEvent) -> None:
        self._queued.append(event)
        self._counters.also(self._write)

    def _write(self) -> None:
        while self._queued:
            event = self._queued.popleft()
            fused("report an event", functools.partial(self._file.write, event.to_dict()), None)

    def begin_in_child(self) -> None:
        """Forget what the parent writes."""
        self._queued.clear()


@dataclass(slots=True)
class Telemetry:
    """Counts and reports each request.

    Attributes:
        rooms: For each session with a cut request, the tokens its conversation may have in one;
            `None` if nobody needs them.
    """

    counters: Counters = field(default_factory=Counters)
    rooms: dict[str, int] | None = None
    _stop: Callable[[], None] | None = None

    def open_file(self, settings: Settings, folder: Path) -> None:
        """Begin the file that the settings name, relative to `folder`; without one do nothing."""
        if settings.events is None:
            return
        file = LineFile(events_file(settings.events, folder), settings.events_max_bytes)
        self._stop = subscribe(
            _EventFile(file, self.counters).add, include_content=settings.events_include_content
        )

    def close(self) -> None:
        """End the file, and save the counts."""
        if self._stop is not None:
            self._stop()
        self.counters.close()

    @_harmless
    def ended(self, request: Request, fitter: Fitter) -> None:
        """Queue a finished request to be counted and recorded."""
        trace, messages = request.trace, request.messages
        if any(one.overflow is not None for one in trace.tries):
            trace.answer_tokens = fitter.answer_tokens(request)
        ended = Ended(
            trace,
            # nanobot goes on with its own list.
            list(messages),
            request.tools,
            request.model,
            request.place,
            fitter.stated(request),
            tuple(is_same(one.messages, messages) for one in trace.tries),
            fitter.windows.ratio(request.model, messages, request.endpoint),
        )
        for one in trace.tries:
            one.messages = list(one.messages)
        self.counters.add_request(ended)

    @_harmless
    def compressed(
        self, request: Request, sent: list[Message], budget_tokens: int, seconds: float
    ) -> None:
        """Report that `sent` goes out in place of the messages of `request`."""
        session = current_session.get()
        if self.rooms is not None and session is not None:
            system = [one for one in request.messages if one.get("role") == "system"]
            fixed = count_tokens(system, request.model, tools=request.tools)
            self.rooms[session] = max(budget_tokens - fixed, 0)
        if not is_wanted(CompressedEvent):
            return
        before = count_tokens(request.messages, request.model, tools=request.tools)
        after = count_tokens(sent, request.model, tools=request.tools)
        event = CompressedEvent(
            model=request.model,
            tokens_before=before,
            tokens_after=after,
            budget_tokens=budget_tokens,
            cuts=len(_not_in(sent, request.messages)),
            duration_us=round(seconds * 1e6),
        )

        def content() -> dict[str, Any]:
            removed, added = _not_in(sent, request.messages), _not_in(request.messages, sent)
            # Copies: the originals are nanobot's, and go out.
            return {"removed": copy.deepcopy(removed), "added": copy.deepcopy(added)}

        emit(event, content)

    @_harmless
    def overflowed(
        self, request: Request, overflow: Overflow, refusal: Any, sent_tokens: int
    ) -> None:
        """Report that the provider gave `refusal` to a request of so many tokens."""
        request.trace.refused(overflow)
        if not is_wanted(OverflowEvent):
            return
        event = OverflowEvent(
            model=request.model,
            overflow_kind=overflow.kind,
            sent_tokens=sent_tokens,
            limit_tokens=overflow.limit_tokens,
            used_tokens=overflow.used_tokens,
            status=_status(refusal),
        )
        # The response to a silent overflow is an answer.
        error = None if overflow.kind == "silent" else refusal
        said = str(error) if isinstance(error, Exception) else getattr(error, "content", None)
        emit(event, lambda: {"error": said})

    @_harmless
    def sends(self, request: Request, attempt: Attempt, count: Callable[[], int]) -> None:
        """Report that `attempt` goes out; `count` counts it."""
        request.trace.sends(attempt.messages, attempt.max_tokens)
        number = len(request.trace.tries)
        if number > 1 and is_wanted(RetryEvent):
            emit(
                RetryEvent(
                    model=request.model,
                    attempt=number,
                    tokens=count(),
                    max_tokens=attempt.max_tokens,
                )
            )

    @_harmless
    def answered(self, request: Request, response: Any) -> None:
        """Report that the last attempt was answered; a response of kind "error" does not count."""
        if getattr(response, "finish_reason", None) == "error":
            return
        usage = Usage.of(response)
        prompt, answer, cached = usage.input_tokens, usage.output_tokens, None
        if prompt is not None:
            prompt += usage.cache_tokens
            cached = _cached(response)
        request.trace.outcome, request.trace.usage = "answered", (prompt, cached, answer)
        if is_wanted(AnsweredEvent):
            emit(
                AnsweredEvent(
                    model=request.model,
                    attempts=len(request.trace.tries),
                    prompt_tokens=prompt,
                    cached_tokens=cached,
                    completion_tokens=answer,
                )
            )

    @_harmless
    def interrupted(self, request: Request) -> None:
        """Note that the task or the program ended before there was an answer."""
        request.trace.outcome = "interrupted"

    @_harmless
    def gave_up(self, request: Request, error: ContextOverflowError) -> None:
        """Report that nothing smaller was accepted; the user reads a friendly error."""
        request.trace.outcome = "gave up"
        if not is_wanted(GaveUpEvent):
            return
        event = GaveUpEvent(
            model=request.model,
            needed_tokens=error.needed_tokens or None,
            limit_tokens=error.limit_tokens or None,
        )
        emit(event, lambda: {"error": str(error)})

    @_harmless
    def summarised(
        self,
        session: str,
        summary: Summary | None,
        failure: Exception | None,
        seconds: float,
        is_stored: bool,
    ) -> None:
        """Report whether a summary of `session` was stored, outdated, or failed with `failure`."""
        made = None if failure else summary
        status = "failed" if made is None else "stored" if is_stored else "outdated"
        reason = str(failure) if made is None else made.error
        self.counters.add(summaries=int(status == "stored"), summaries_failed=int(bool(reason)))
        if not is_wanted(SummarisedEvent):
            return
        event = SummarisedEvent(
            session=session,
            model=made.model if made else None,
            status=status,
            made_by=made.made_by if made else None,
            version=made.version if made else None,
            covers=made.covers if made else None,
            duration_ms=round(seconds * 1e3),
        )
        emit(event, lambda: {"text": made.text if made else None, "error": reason})


def events_file(setting: str, folder: Path) -> Path:
    """Return the file that the setting `events` means, for a config file in `folder`."""
    # Not `Path.expanduser`, which raises for a user that nobody knows.
    return folder / os.path.expanduser(setting)  # noqa: PTH111


def _not_in(other: list[Message], messages: list[Message]) -> list[Message]:
    """Return the objects of `messages` that are not in `other`.

    Compares by identity: kept messages are the same objects. A repeated object counts each time.
    """
    return without(messages, map(id, other), id)


def _status(refusal: Any) -> int | None:
    """Return the HTTP status of an exception, or of a response of nanobot 0.1.5.post3 and later."""
    response = getattr(refusal, "response", None)
    found = (
        getattr(refusal, "status_code", None),
        getattr(refusal, "error_status_code", None),
        getattr(response, "status_code", None),
    )
    return next((one for one in found if isinstance(one, int)), None)


def _cached(response: Any) -> int | None:
    usage = getattr(response, "usage", None)
    if isinstance(usage, Mapping):
        details = [usage.get(name) for name in _DETAILS]
        usage = {**next((one for one in details if isinstance(one, Mapping)), {}), **usage}
    for name in CACHED_FIELDS:
        found = usage.get(name) if isinstance(usage, Mapping) else getattr(usage, name, None)
        if isinstance(found, int) and not isinstance(found, bool) and found >= 0:
            return found
    return None
