"""Protection of model requests: a copy is compressed, sent, and repaired where it is refused.

Everything that differs between nanobot's releases is in the generation modules; they hand a
`Request` to `Guard.run`. A request is protected once: a provider that calls another one, or
`super().chat()`, passes through.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nanobot_context.errors import ContextOverflowError
from nanobot_context.guard import friendly, log
from nanobot_context.guard.exchange import Exchange
from nanobot_context.guard.fitting import Fitter, is_same
from nanobot_context.guard.fuse import NOT_OURS, blown, fused
from nanobot_context.guard.telemetry import Telemetry
from nanobot_context.recovery import Attempt, GaveUp, Refused, recover

if TYPE_CHECKING:
    from nanobot_context.guard.request import Request

_in_flight: ContextVar[bool] = ContextVar("nanobot_context_in_flight", default=False)
_in_subagent: ContextVar[bool] = ContextVar("nanobot_context_in_subagent", default=False)


@dataclass(frozen=True, slots=True)
class Guard:
    """Protects requests with one set of settings.

    Attributes:
        fitter: Makes requests fit.
        clear_command: The command that clears a session in this release of nanobot.
        error_response: Makes nanobot's own error response from a text.
        telemetry: Where what happens is counted and told.
    """

    fitter: Fitter
    clear_command: str
    error_response: Callable[[str], Any]
    telemetry: Telemetry = field(default_factory=Telemetry)

    async def run(self, request: Request) -> Any:
        """Send `request` so that it fits, and return nanobot's response.

        The request's messages are not changed. What is no overflow, errors included, comes back
        as it is. When nothing smaller is accepted, the response is an error with a friendly text;
        inside a subagent `ContextOverflowError` is raised instead, which nanobot reports as the
        subagent's failure.
        """
        token = _in_flight.set(True)
        request.trace.is_subagent = _in_subagent.get()
        try:
            return await self._run(request)
        finally:
            _in_flight.reset(token)
            self.telemetry.ended(request, self.fitter)

    async def _run(self, request: Request) -> Any:
        attempt = fused(
            "compress a request",
            lambda: self._first(request),
            Attempt(request.messages, request.max_tokens),
        )
        exchange = Exchange(self.fitter, self.telemetry, request)
        ratio = self.fitter.settings.emergency_ratio
        try:
            return await recover(exchange, attempt, model=request.model, emergency_ratio=ratio)
        except GaveUp as gave_up:
            refused = gave_up.refused
            if not gave_up.answer_stands:
                return self._give_up(request, gave_up.overflow_error(request.model), refused)
        except NOT_OURS:
            raise
        except BaseException as error:
            if exchange.last is None or error is exchange.raised:
                raise
            # A mistake of ours must not hide what the provider said.
            blown("repair a request that the provider refused", error)
            refused = exchange.last
        return refused.hand_on()

    def _first(self, request: Request) -> Attempt:
        begun = time.perf_counter()
        attempt, budget = self.fitter.first(request)
        if not is_same(attempt.messages, request.messages):
            seconds = time.perf_counter() - begun
            self.telemetry.compressed(request, attempt.messages, budget, seconds)
        return attempt

    def _give_up(self, request: Request, error: ContextOverflowError, refused: Refused) -> Any:
        """End the request with words a user can act on; the sizes go to the log."""
        fused("log a failure", lambda: self._log_failure(request, error), None)
        self.telemetry.gave_up(request, error)
        if _in_subagent.get():
            raise ContextOverflowError(
                friendly.subagent_too_long(request.messages),
                needed_tokens=error.needed_tokens,
                limit_tokens=error.limit_tokens,
                model=request.model,
                parts=error.parts,
            ) from error
        response = fused("tell the user", lambda: self._friendly_response(request, error), None)
        return refused.hand_on() if response is None else response

    def _friendly_response(self, request: Request, error: ContextOverflowError) -> Any:
        if max(error.parts, key=lambda name: error.parts[name], default="") == "last_user":
            return self.error_response(friendly.message_too_long(request.messages))
        return self.error_response(
            friendly.conversation_too_long(request.messages, self.clear_command)
        )

    def _log_failure(self, request: Request, error: ContextOverflowError) -> None:
        window = self.fitter.window(request)
        log.error(
            "the request cannot be made small enough: {}; it needs {} tokens of at most {} "
            "(model {}, window {}, {}; parts {})",
            error,
            error.needed_tokens or "an unknown number of",
            error.limit_tokens or "an unknown number",
            request.model or "default",
            window.tokens,
            window.source,
            error.parts or "unknown",
        )


def in_flight() -> bool:
    """Return whether the current task is inside a request that is protected already."""
    return _in_flight.get()


@contextmanager
def unguarded() -> Iterator[None]:
    """Let the model calls of the current task pass as they are; refusals come back to it."""
    token = _in_flight.set(True)
    try:
        yield
    finally:
        _in_flight.reset(token)


@contextmanager
def subagent() -> Iterator[None]:
    """Mark the current task as a subagent's, which fails by an exception, not by a response."""
    token = _in_subagent.set(True)
    try:
        yield
    finally:
        _in_subagent.reset(token)
