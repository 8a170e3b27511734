"""Protection of one model request: compress a copy, send it, recover once from a refusal.

Everything that differs between nanobot's releases is in the generation modules; they hand a
`Request` to `Guard.run`. A request is protected once: a provider that calls another one, or
`super().chat()`, passes through.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nanobot_context._core import count_tokens, fits, reduce_messages
from nanobot_context.errors import ContextOverflowError
from nanobot_context.overflow import Overflow, Usage, detect_overflow
from nanobot_context.recovery import Attempt, GaveUp, Refused, compress, is_answer, recover
from nanobot_context.shim import friendly, log
from nanobot_context.shim.nanobot_messages import (
    REFLECTION_TOKENS,
    is_consolidation,
    lift_prompts,
    lift_reflections,
    restore_prompts,
    restore_reflections,
    shorten_consolidation,
)
from nanobot_context.shim.windows import Window, Windows

if TYPE_CHECKING:
    from nanobot_context.archive import Archive
    from nanobot_context.settings import Settings
    from nanobot_context.shim.archives import Archives
    from nanobot_context.shim.request import Message, Request

__all__ = ["Guard", "in_flight", "subagent"]

logger = logging.getLogger("nanobot_context")

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
    """

    settings: Settings
    windows: Windows
    clear_command: str
    error_response: Callable[[str], Any]
    archives: Archives | None = None
    prompts: tuple[str, ...] = ()

    async def run(self, request: Request) -> Any:
        """Send `request` so that it fits, and return nanobot's response.

        The request's messages are not changed. What is no overflow, errors included, comes back
        as it is. When even the emergency retry is refused, the response is an error with a
        friendly text; inside a subagent `ContextOverflowError` is raised instead, which nanobot
        reports as the subagent's failure.
        """
        token = _in_flight.set(True)
        try:
            return await self._run(request)
        finally:
            _in_flight.reset(token)

    async def _run(self, request: Request) -> Any:
        try:
            attempt = Attempt(self._compressed(request), self._output_limit(request))
        except ContextOverflowError as error:
            # What must stay is larger than the window: sending it would only be refused.
            return self._give_up(request, error)
        exchange = _Exchange(self, request)
        ratio = self.settings.emergency_ratio
        try:
            return await recover(exchange, attempt, model=request.model, emergency_ratio=ratio)
        except GaveUp as gave_up:
            if gave_up.reason == "unrelated" or gave_up.refused.overflow.kind == "silent":
                return gave_up.refused.hand_on()
            return self._give_up(request, gave_up.overflow_error(request.model))

    def _compressed(self, request: Request) -> list[Message]:
        """Return the messages to send: the caller's own list when nothing has to be cut."""
        window = self.window(request)
        if window.tokens == 0:
            return request.messages
        max_tokens = _prompt_first(self._output_limit(request), window.tokens)
        budget = self._budget(window.tokens, max_tokens)

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

        try:
            compressed = self.shorten(request, budget, first)
        except ContextOverflowError:
            raise
        except Exception:
            # A mistake of ours must not cost the user's turn: nanobot's own request goes out.
            log.exception("could not compress a request; it is sent as it is")
            return request.messages
        if _same(compressed, request.messages):
            return request.messages
        logger.debug(
            "compressed %d messages to %d for a window of %d tokens",
            len(request.messages),
            len(compressed),
            window.tokens,
        )
        return compressed

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
        ratio = self.windows.ratio(request.model, request.messages, request.endpoint)
        return replace(window, tokens=int(window.tokens / ratio))

    def _budget(self, window_tokens: int, max_tokens: int | None) -> int:
        reserve = int(window_tokens * self.settings.context_reserve_ratio)
        return max(window_tokens - max(reserve, max_tokens or 0), 0)

    def _output_limit(self, request: Request) -> int | None:
        """Return the output limit of `request`, lowered to what the model is known to accept."""
        learned = self.windows.output_of(request.model, request.endpoint)
        if learned is None or request.max_tokens is None:
            return request.max_tokens
        return min(request.max_tokens, learned)

    def _give_up(self, request: Request, error: ContextOverflowError) -> Any:
        """End the request with words a user can act on; the sizes go to the log."""
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
        if _in_subagent.get():
            raise ContextOverflowError(
                friendly.subagent_too_long(request.messages),
                needed_tokens=error.needed_tokens,
                limit_tokens=error.limit_tokens,
                model=request.model,
                parts=error.parts,
            ) from error
        if max(error.parts, key=lambda name: error.parts[name], default="") == "last_user":
            return self.error_response(friendly.message_too_long(request.messages))
        return self.error_response(
            friendly.conversation_too_long(request.messages, self.clear_command)
        )


@dataclass(slots=True)
class _Exchange:
    """One request of nanobot's, as `recover` drives it."""

    guard: Guard
    request: Request
    last: Refused | None = field(default=None, init=False)

    async def send(self, attempt: Attempt) -> Any:
        try:
            response = await self.request.send(attempt.messages, attempt.max_tokens)
        except Exception as error:
            overflow = detect_overflow(error, provider=self.request.provider)
            if overflow is None:
                raise
            return Refused(overflow, error)
        overflow = self._refusal(response) or self._silent(attempt, response)
        if overflow is not None:
            return Refused(overflow, response)
        self._learn_output(attempt)
        return response

    def count(self, messages: list[Message]) -> int:
        return count_tokens(messages, self.request.model, tools=self.request.tools)

    def shorten(self, max_tokens: int, *, newest_only: bool) -> list[Message]:
        def reduce(messages: list[Message], reserved: int) -> list[Message]:
            try:
                reduced = reduce_messages(
                    messages,
                    max(max_tokens - reserved, 0),
                    self.request.model,
                    tools=self.request.tools,
                    newest_only=newest_only,
                    archive=self.guard.archive_of(self.request),
                )
            except ContextOverflowError as floor:
                floor.needed_tokens += reserved
                raise
            return reduced.messages

        try:
            return self.guard.shorten(self.request, max_tokens, reduce)
        except ContextOverflowError:
            raise
        except Exception:
            # A mistake of ours must not hide what the provider said.
            log.exception("could not compress a request that the provider refused")
            assert self.last is not None
            raise GaveUp("unrelated", self.last, 0, None) from None

    def refused(self, refused: Refused, attempt: Attempt, prompt_tokens: int) -> None:
        self.last = refused
        overflow, request, windows = refused.overflow, self.request, self.guard.windows
        limit, used = overflow.limit_tokens, overflow.used_tokens
        window = self.guard.window(request)
        log.warning(
            "the provider refused {} tokens, with {} for the answer: {} (window {}, {}; stated "
            "limit {})",
            used or prompt_tokens,
            attempt.max_tokens or "no limit",
            overflow.kind,
            window.tokens,
            window.source,
            limit or "none",
        )
        model, endpoint = request.model, request.endpoint
        if overflow.kind == "input":
            if used:
                windows.counted(
                    model, attempt.messages, prompt_tokens, used, endpoint, refused=True
                )
            if limit:
                windows.learn(model, limit, endpoint)
            elif not used:
                windows.assume(model, prompt_tokens, endpoint)

    def _learn_output(self, attempt: Attempt) -> None:
        """Remember the limit for the answer that was accepted after a longer one was refused."""
        overflow = self.last.overflow if self.last else None
        # A cap of the model's own, not what one prompt happens to leave free.
        if overflow and overflow.kind == "output_cap" and overflow.used_tokens is None:
            limit = attempt.max_tokens or 0
            self.guard.windows.learn_output(self.request.model, limit, self.request.endpoint)

    def _refusal(self, response: Any) -> Overflow | None:
        """Return the overflow that a response reports. Only an error's text is read, no answer."""
        reason = getattr(response, "finish_reason", None)
        if reason == "error":
            text = getattr(response, "content", None) or ""
            return detect_overflow(text, provider=self.request.provider)
        if reason == "model_context_window_exceeded" and not (
            getattr(response, "content", None) or getattr(response, "tool_calls", None)
        ):
            # Anthropic's and z.ai's way to refuse without an error.
            return detect_overflow("model_context_window_exceeded")
        return None

    def _silent(self, attempt: Attempt, response: Any) -> Overflow | None:
        """Return the overflow that the usage of an answer gives away, and learn from the usage."""
        request, windows = self.request, self.guard.windows
        usage = Usage.of(response)
        if usage.input_tokens is None or getattr(response, "finish_reason", None) == "error":
            return None
        ours, theirs = self.count(attempt.messages), usage.input_tokens + usage.cache_tokens
        windows.counted(request.model, attempt.messages, ours, theirs, request.endpoint)
        could_cut = windows.could_cut_at(request.model, theirs, request.endpoint)
        usage = replace(
            usage,
            window_tokens=windows.smallest(request.models, request.endpoint).tokens,
            counted_tokens=ours if could_cut else 0,
        )
        overflow = detect_overflow(None, usage=usage)
        if overflow is None or is_answer(usage, overflow):
            return None
        if overflow.used_tokens == ours and overflow.limit_tokens == theirs:
            windows.assume(request.model, theirs, request.endpoint)
        # What the user has seen on the screen cannot be taken back.
        return None if request.is_shown and getattr(response, "content", None) else overflow


def in_flight() -> bool:
    """Return whether the current task is inside a request that is protected already."""
    return _in_flight.get()


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
