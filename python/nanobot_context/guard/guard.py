"""Compresses a copy of each model request, sends it, and repairs it if it is refused.

Everything that differs between nanobot's releases is in `patches/`, which hands a `Request` to
`Guard.run`. A request is protected once: a provider that calls another one, or
`super().chat()`, passes through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from nanobot_context import log
from nanobot_context._core import MIN_OUTPUT_TOKENS
from nanobot_context.errors import ContextOverflowError
from nanobot_context.guard.exchange import Exchange, protected
from nanobot_context.guard.fitting import Fitter
from nanobot_context.guard.friendly import Problem, friendly_text
from nanobot_context.guard.fuse import fused
from nanobot_context.guard.request import Request
from nanobot_context.guard.telemetry import Telemetry
from nanobot_context.recovery import GaveUp, Refused

_in_flight: ContextVar[bool] = ContextVar("nanobot_context_in_flight", default=False)
_in_subagent: ContextVar[bool] = ContextVar("nanobot_context_in_subagent", default=False)


@dataclass(frozen=True, slots=True)
class Guard:
    """Protects requests with one set of settings.

    Attributes:
        error_response: Makes nanobot's own error response from a text.
    """

    fitter: Fitter
    error_response: Callable[[str], Any]
    telemetry: Telemetry = field(default_factory=Telemetry)

    async def run(self, request: Request) -> Any:
        """Send `request` so that it fits, and return nanobot's response.

        The request's messages are not changed. Answers and errors other than overflows come back
        as they are. When nothing smaller is accepted, the response is an error with a friendly
        text; inside a subagent `ContextOverflowError` is raised instead, which nanobot reports as
        the subagent's failure.
        """
        request = fused("shorten tool schemas", lambda: self._offered(request), request)
        request.trace.is_subagent = _in_subagent.get()
        try:
            with unguarded():
                return await self._run(request)
        finally:
            self.telemetry.ended(request, self.fitter)

    def _offered(self, request: Request) -> Request:
        shown = self.fitter.shown_tools(request, request.tools or [], request.choice)
        return request if shown is None else request.offering(shown)

    async def _run(self, request: Request) -> Any:
        try:
            return await protected(Exchange(self.fitter, self.telemetry, request))
        except GaveUp as gave_up:
            refused = gave_up.refused
            return self._give_up(request, gave_up.overflow_error(request.model), refused)

    def _give_up(self, request: Request, error: ContextOverflowError, refused: Refused) -> Any:
        """End the request with words a user can act on; the sizes go to the log."""
        fused("log a failure", lambda: self._log_failure(request, error), None)
        self.telemetry.gave_up(request, error)
        if _in_subagent.get():
            raise ContextOverflowError(
                friendly_text("subagent", request.messages),
                needed_tokens=error.needed_tokens,
                limit_tokens=error.limit_tokens,
                model=request.model,
                parts=error.parts,
            ) from error
        response = fused("tell the user", lambda: self._friendly_response(request, error), None)
        return refused.hand_on() if response is None else response

    def _friendly_response(self, request: Request, error: ContextOverflowError) -> Any:
        if max(error.parts, key=lambda name: error.parts[name], default="") == "last_user":
            return self.error_response(friendly_text("message", request.messages))
        window_tokens = self.fitter.window(request).tokens
        stated_tokens = error.limit_tokens or window_tokens
        left = min(window_tokens, stated_tokens) - request.fixed_tokens()
        problem: Problem = "window" if left < MIN_OUTPUT_TOKENS else "conversation"
        return self.error_response(friendly_text(problem, request.messages))

    def _log_failure(self, request: Request, error: ContextOverflowError) -> None:
        # As the provider counts, as it is in `status`.
        window = self.fitter.stated(request)
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


def unguarded() -> AbstractContextManager[None]:
    """Pass the model calls of the current task on unchanged, refusals included."""
    return _marked(_in_flight)


def subagent() -> AbstractContextManager[None]:
    """Mark the current task as a subagent's, which fails by an exception, not by a response."""
    return _marked(_in_subagent)


@contextmanager
def _marked(mark: ContextVar[bool]) -> Iterator[None]:
    token = mark.set(True)
    try:
        yield
    finally:
        mark.reset(token)
