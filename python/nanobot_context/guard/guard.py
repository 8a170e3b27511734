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
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nanobot_context._core import count_tokens, fits, reduce_messages
from nanobot_context.errors import ContextOverflowError
from nanobot_context.guard import friendly, log
from nanobot_context.guard.exchange import Exchange
from nanobot_context.guard.fuse import NOT_OURS, blown, fused
from nanobot_context.guard.telemetry import Live
from nanobot_context.guard.windows import Window, Windows
from nanobot_context.host.messages import (
    REFLECTION_TOKENS,
    is_consolidation,
    lift_prompts,
    lift_reflections,
    restore_prompts,
    restore_reflections,
    shorten_consolidation,
)
from nanobot_context.recovery import Attempt, GaveUp, Refused, compress, recover

if TYPE_CHECKING:
    from nanobot_context.archive import Archive
    from nanobot_context.guard.archives import Archives
    from nanobot_context.guard.request import Message, Request, State
    from nanobot_context.settings import Settings

__all__ = ["Guard", "in_flight", "subagent", "unguarded"]

_in_flight: ContextVar[bool] = ContextVar("nanobot_context_in_flight", default=False)
_in_subagent: ContextVar[bool] = ContextVar("nanobot_context_in_subagent", default=False)

# What is kept free for nanobot's reflection lines grows by this share of the window at a time: a
# window that changes with every request would move every cut.
_RESERVE_STEPS = 32


@dataclass(frozen=True, slots=True)
class Guard:
    """Protects requests with one set of settings.

    Attributes:
        settings: The settings in force.
        windows: The window of every model.
        clear_command: The command that clears a session in this release of nanobot.
        error_response: Makes nanobot's own error response from a text.
        archives: Where originals of tool results are kept; `None` where the settings say no.
        prompts: How nanobot's own prompts in the user's name begin.
        live: Where what happens is counted and told.
    """

    settings: Settings
    windows: Windows
    clear_command: str
    error_response: Callable[[str], Any]
    archives: Archives | None = None
    prompts: tuple[str, ...] = ()
    live: Live = field(default_factory=Live)

    async def run(self, request: Request) -> Any:
        """Send `request` so that it fits, and return nanobot's response.

        The request's messages are not changed. What is no overflow, errors included, comes back
        as it is. When nothing smaller is accepted, the response is an error with a friendly text;
        inside a subagent `ContextOverflowError` is raised instead, which nanobot reports as the
        subagent's failure.
        """
        token = _in_flight.set(True)
        try:
            return await self._run(request)
        finally:
            _in_flight.reset(token)

    async def _run(self, request: Request) -> Any:
        self.live.requested()
        attempt = fused(
            "compress a request",
            lambda: Attempt(self._compressed(request), self._output_limit(request)),
            Attempt(request.messages, request.max_tokens),
        )
        exchange = Exchange(self, request)
        ratio = self.settings.emergency_ratio
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

    def _compressed(self, request: Request) -> list[Message]:
        """Return the messages to send: the caller's own list when nothing has to be cut."""
        window = self.window(request)
        if window.tokens == 0:
            return request.messages
        max_tokens = _prompt_first(self._output_limit(request), window.tokens)
        budget = self._budget(window.tokens, max_tokens)
        state_fits = request.state is None or self.state_tokens(request, request.state) <= budget
        if request.state and state_fits and not request.fallbacks:
            # The messages are not what goes out; another model would get them.
            return request.messages

        def first(messages: list[Message], reserved: int) -> list[Message]:
            step = max(window.tokens // _RESERVE_STEPS, 1)
            kept_free = min(-(-reserved // step) * step, window.tokens)
            return compress(
                messages,
                window.tokens - kept_free,
                request.model,
                tools=request.tools,
                max_output_tokens=max_tokens,
                settings=self.settings,
                archive=self.archive_of(request),
            )

        begun = time.perf_counter()
        try:
            compressed = self.shorten(request, budget, first)
        except ContextOverflowError as floor:
            compressed = self._smallest(request, floor)
        if _same(compressed, request.messages):
            # Another list drops the state.
            return request.messages if state_fits else list(request.messages)
        self.live.compressed(request, compressed, budget, time.perf_counter() - begun)
        return compressed

    def _smallest(self, request: Request, floor: ContextOverflowError) -> list[Message]:
        """Return a request of which nothing is left to cut, though it is larger than the window.

        It is sent all the same: the window may have been misread, or be larger than the table has
        it, and only the provider knows.
        """

        def reduce(messages: list[Message], _: int) -> list[Message]:
            reduced = reduce_messages(
                messages,
                floor.needed_tokens,
                request.model,
                tools=request.tools,
                newest_only=True,
                archive=self.archive_of(request),
            )
            return reduced.messages

        try:
            return self.shorten(request, floor.needed_tokens, reduce)
        except ContextOverflowError:
            return request.messages

    def shorten(
        self,
        request: Request,
        budget: int,
        shorten: Callable[[list[Message], int], list[Message]],
    ) -> list[Message]:
        """Apply `shorten` without what nanobot says as the user, and know its consolidation."""
        lifted, reflection = lift_reflections(request.messages)
        if reflection is not None:
            lines = len(request.messages) - len(lifted)
            shorter = shorten(lifted, lines * REFLECTION_TOKENS)
            if _same(shorter, lifted):
                return request.messages
            return restore_reflections(shorter, reflection)
        lifted, asked = lift_prompts(request.messages, self.prompts)
        if asked:
            prompts = [prompt for _, prompt in asked]
            shorter = shorten(lifted, count_tokens(prompts, request.model))
            if _same(shorter, lifted):
                return request.messages
            return restore_prompts(shorter, asked, lifted[-1])
        try:
            return shorten(request.messages, 0)
        except ContextOverflowError:
            if not is_consolidation(request.messages):
                raise

            def is_short(messages: list[Message]) -> bool:
                return fits(messages, budget, request.model, tools=request.tools)

            shortened = shorten_consolidation(request.messages, is_short)
            if shortened is None:
                raise
            return shortened

    def archive_of(self, request: Request) -> Archive | None:
        """Return where originals of the request's tool results are kept."""
        return self.archives.of(request.messages) if self.archives else None

    def window(self, request: Request) -> Window:
        """Return the window of a request, in our own counting."""
        window = self.windows.smallest(request.models, request.endpoint)
        return replace(window, tokens=int(window.tokens / self._ratio(request)))

    def state_tokens(self, request: Request, state: State) -> int:
        """Return the tokens of a request that goes on from a state, in our own counting."""
        tokens = int(state.tokens / self._ratio(request))
        return tokens + count_tokens(state.pending, request.model)

    def _ratio(self, request: Request) -> float:
        return self.windows.ratio(request.model, request.messages, request.endpoint)

    def _budget(self, window_tokens: int, max_tokens: int | None) -> int:
        reserve = int(window_tokens * self.settings.context_reserve_ratio)
        return max(window_tokens - max(reserve, max_tokens or 0), 0)

    def _output_limit(self, request: Request) -> int | None:
        """Return the output limit of `request`, lowered to what the model is known to accept."""
        learned = self.windows.output_of(request.model, request.endpoint)
        if request.max_tokens is None:
            return learned
        half = self.windows.half_of(request.model, request.endpoint)
        return min(limit for limit in (request.max_tokens, learned, half) if limit is not None)

    def _give_up(self, request: Request, error: ContextOverflowError, refused: Refused) -> Any:
        """End the request with words a user can act on; the sizes go to the log."""
        fused("log a failure", lambda: self._log_failure(request, error), None)
        self.live.gave_up(request, error)
        if _in_subagent.get():
            raise ContextOverflowError(
                friendly.subagent_too_long(request.messages),
                needed_tokens=error.needed_tokens,
                limit_tokens=error.limit_tokens,
                model=request.model,
                parts=error.parts,
            ) from error
        response = fused("tell the user", lambda: self._told(request, error), None)
        return refused.hand_on() if response is None else response

    def _told(self, request: Request, error: ContextOverflowError) -> Any:
        if max(error.parts, key=lambda name: error.parts[name], default="") == "last_user":
            return self.error_response(friendly.message_too_long(request.messages))
        return self.error_response(
            friendly.conversation_too_long(request.messages, self.clear_command)
        )

    def _log_failure(self, request: Request, error: ContextOverflowError) -> None:
        window = self.window(request)
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


def _prompt_first(max_tokens: int | None, window_tokens: int) -> int | None:
    """Return what to keep free for the answer: as asked for, but at most half the window."""
    return None if max_tokens is None else max(min(max_tokens, window_tokens // 2), 0)


def _same(left: list[Message], right: list[Message]) -> bool:
    return len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True))
