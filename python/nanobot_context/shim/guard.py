"""Protection of one model request: compress a copy, send it, recover once from a refusal.

Everything that differs between nanobot's releases is in the generation modules; they hand a
`Request` to `Guard.run`. A request is protected once: a provider that calls another one, or
`super().chat()`, passes through.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nanobot_context._core import (
    compress_messages,
    count_tokens,
    fit_messages,
    fits,
    get_output_limit,
)
from nanobot_context.errors import ContextOverflowError
from nanobot_context.overflow import detect_overflow
from nanobot_context.shim import friendly, log
from nanobot_context.shim.nanobot_messages import (
    REFLECTION_TOKENS,
    is_consolidation,
    lift_reflections,
    restore_reflections,
    shorten_consolidation,
)
from nanobot_context.shim.windows import Window, Windows

if TYPE_CHECKING:
    from nanobot_context.archive import Archive
    from nanobot_context.overflow import Overflow
    from nanobot_context.settings import Settings
    from nanobot_context.shim.archives import Archives
    from nanobot_context.shim.request import Message, Request

__all__ = ["Guard", "in_flight", "subagent"]

logger = logging.getLogger("nanobot_context")

_in_flight: ContextVar[bool] = ContextVar("nanobot_context_in_flight", default=False)
_in_subagent: ContextVar[bool] = ContextVar("nanobot_context_in_subagent", default=False)

# Of the window a provider states, the answer may take what the request asks for, but no more than
# half; the rest loses a tenth, because our count and the provider's differ by some per cent.
_STATED_LIMIT_SHARE = 0.9
# A retry must be smaller than what was refused by more than counting noise.
_STRICTLY_SMALLER = 0.95
# Below this an answer is of no use, so that an output cap of less means that the input is too long.
_SMALLEST_OUTPUT_TOKENS = 256
# What is kept free for nanobot's reflection lines grows by this share of the window at a time: a
# window that changes with every request would move every cut.
_RESERVE_STEPS = 32
# 8,192 may be lowered to 1,024.
_MOST_OUTPUT_REPAIRS = 3


class _ProviderOverflowError(ContextOverflowError):
    """The provider refused a request as too long."""

    def __init__(self, overflow: Overflow, *, refusal: Any, model: str | None) -> None:
        super().__init__(
            "the provider refused the request as too long",
            needed_tokens=overflow.used_tokens or 0,
            limit_tokens=overflow.limit_tokens or 0,
            model=model,
            parts={},
        )
        self.overflow = overflow
        self.refusal = refusal  # nanobot's error response, or the exception


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What is sent next."""

    messages: list[Message]
    max_tokens: int | None


@dataclass(frozen=True, slots=True)
class Guard:
    """Protects requests with one set of settings.

    Attributes:
        settings: The settings in force.
        windows: The window of every model.
        clear_command: The command that clears a session in this release of nanobot.
        error_response: Makes nanobot's own error response from a text.
        archives: Where originals of tool results are kept; `None` where the settings say no.
    """

    settings: Settings
    windows: Windows
    clear_command: str
    error_response: Callable[[str], Any]
    archives: Archives | None = None

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
            attempt = _Attempt(self._compressed(request), self._output_limit(request))
        except ContextOverflowError as error:
            # What must stay is larger than the window: sending it would only be refused.
            return self._give_up(request, error)
        inputs = outputs = 0
        while True:
            try:
                return await self._send(request, attempt)
            except _ProviderOverflowError as error:
                repair = self._repair(error, attempt)
                if repair == "none" or (repair == "output" and outputs == _MOST_OUTPUT_REPAIRS):
                    return _unchanged(error)
                if repair == "input" and inputs:
                    return self._give_up(request, error)
                if repair == "output":
                    outputs += 1
                    lower = _lower_output(error, attempt)
                    attempt = replace(attempt, max_tokens=lower)
                    if lower and error.overflow.used_tokens is None:
                        # A cap of the model's own, not what this request happens to leave free.
                        self.windows.learn_output(request.model, lower, request.endpoint)
                    log.warning(
                        "the provider caps the output; trying again with max_tokens {}",
                        attempt.max_tokens,
                    )
                    continue
                inputs += 1
                try:
                    attempt = self._shrunk(request, attempt, error)
                except ContextOverflowError as floor:
                    return self._give_up(request, floor)
                except Exception:
                    log.exception("could not compress a request that the provider refused")
                    return _unchanged(error)

    async def _send(self, request: Request, attempt: _Attempt) -> Any:
        """Send one attempt; an overflow in whatever form raises `ContextOverflowError`."""
        try:
            response = await request.send(attempt.messages, attempt.max_tokens)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            overflow = detect_overflow(error)
            if overflow is None:
                raise
            raise _ProviderOverflowError(overflow, refusal=error, model=request.model) from error
        overflow = _overflow_of(response)
        if overflow is None:
            self._learn_ratio(request, attempt, response)
            return response
        # Raised here, around the provider's own `except Exception`, which would swallow it inside.
        raise _ProviderOverflowError(overflow, refusal=response, model=request.model)

    def _repair(self, error: _ProviderOverflowError, attempt: _Attempt) -> str:
        """Return the repair for a refusal: lower the `output`, shrink the `input`, or `none`."""
        overflow = error.overflow
        limit, used = overflow.limit_tokens, overflow.used_tokens
        if overflow.kind == "output_cap":
            lower = _lower_output(error, attempt)
            if lower is not None and lower >= _SMALLEST_OUTPUT_TOKENS:
                return "output"
            # The prompt leaves next to nothing for an answer.
            return "input" if limit and used else "none"
        if overflow.kind == "rate_ceiling":
            # A request above what a minute allows can only be made smaller; any other may be sent
            # again later.
            return "input" if limit and used and used > limit else "none"
        return "input"

    def _compressed(self, request: Request) -> list[Message]:
        """Return the messages to send: the caller's own list when nothing has to be cut."""
        window = self._window(request)
        if window.tokens == 0:
            return request.messages
        max_tokens = _prompt_first(self._output_limit(request), window.tokens)
        budget = self._budget(window.tokens, max_tokens)

        def compress(messages: list[Message], reserved: int) -> list[Message]:
            step = max(window.tokens // _RESERVE_STEPS, 1)
            kept_free = min(-(-reserved // step) * step, window.tokens)
            try:
                return compress_messages(
                    messages,
                    window.tokens - kept_free,
                    request.model,
                    tools=request.tools,
                    max_output_tokens=max_tokens,
                    settings=self.settings,
                    archive=self._archive(request),
                )
            except ContextOverflowError as error:
                # Only the reserve for the answer is missing: the provider may still take it.
                if error.needed_tokens + reserved > window.tokens:
                    raise
                return self._fit(request, messages, error.needed_tokens)

        try:
            compressed = self._shorten(request, budget, compress)
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

    def _shrunk(
        self, request: Request, attempt: _Attempt, error: _ProviderOverflowError
    ) -> _Attempt:
        """Return the emergency retry: messages strictly smaller than what was refused."""
        overflow = error.overflow
        max_tokens = attempt.max_tokens
        stated = overflow.limit_tokens if overflow.kind == "input" else None
        if stated and max_tokens and max_tokens > stated // 2:
            # nanobot asks for 8,192 tokens of answer whatever the model; half of a small window is
            # the prompt's.
            max_tokens = stated // 2
            self.windows.learn_output(request.model, max_tokens, request.endpoint)
        window = self._window(request)
        counted = count_tokens(attempt.messages, request.model, tools=request.tools)
        budget = self._emergency_budget(overflow, counted, window.tokens, max_tokens)
        if stated:
            self.windows.learn(request.model, stated, request.endpoint)
        elif overflow.kind == "input" and not overflow.used_tokens:
            self.windows.assume(request.model, counted, request.endpoint)
        if overflow.kind == "input" and overflow.used_tokens:
            self.windows.counted(
                request.model, counted, overflow.used_tokens, request.endpoint, refused=True
            )
        log.warning(
            "the provider refused {} tokens as too long (window {}, {}; stated limit {}); "
            "compressing to {} and trying once more",
            overflow.used_tokens or counted,
            window.tokens,
            window.source,
            overflow.limit_tokens or "none",
            budget,
        )

        def fit(messages: list[Message], reserved: int) -> list[Message]:
            nonlocal max_tokens
            messages = _without_old_reasoning(messages)
            try:
                return self._fit(request, messages, budget - reserved)
            except ContextOverflowError as floor:
                # What must stay is above the target. It is worth the one retry when it is less than
                # what was refused, or when a shorter answer makes room for it.
                needed = floor.needed_tokens + reserved
                room = int((stated or 0) * _STRICTLY_SMALLER) - needed
                if max_tokens and _SMALLEST_OUTPUT_TOKENS <= room < max_tokens:
                    max_tokens = room
                elif needed > counted * _STRICTLY_SMALLER:
                    raise
                return self._fit(request, messages, floor.needed_tokens)

        messages = self._shorten(request, budget, fit)
        return _Attempt(messages, max_tokens)

    def _shorten(
        self,
        request: Request,
        budget: int,
        shorten: Callable[[list[Message], int], list[Message]],
    ) -> list[Message]:
        """Apply `shorten` without nanobot's reflection lines, and with its consolidation known."""
        lifted, reflection = lift_reflections(request.messages)
        if reflection is not None:
            lines = len(request.messages) - len(lifted)
            shorter = shorten(lifted, lines * REFLECTION_TOKENS)
            if _same(shorter, lifted):
                return request.messages
            return restore_reflections(shorter, reflection)
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

    def _fit(self, request: Request, messages: list[Message], max_tokens: int) -> list[Message]:
        fitted = fit_messages(
            messages,
            max(max_tokens, 0),
            request.model,
            tools=request.tools,
            archive=self._archive(request),
        )
        return fitted.messages

    def _archive(self, request: Request) -> Archive | None:
        return self.archives.of(request.messages) if self.archives else None

    def _window(self, request: Request) -> Window:
        """Return the window of a request, in our own counting."""
        window = self.windows.smallest((request.model, *request.fallbacks), request.endpoint)
        ratio = self.windows.ratio(request.model, request.endpoint)
        return replace(window, tokens=int(window.tokens / ratio))

    def _learn_ratio(self, request: Request, attempt: _Attempt, response: Any) -> None:
        """Compare the provider's count of an accepted prompt with ours."""
        theirs = _prompt_tokens(getattr(response, "usage", None))
        if theirs:
            ours = count_tokens(attempt.messages, request.model, tools=request.tools)
            self.windows.counted(request.model, ours, theirs, request.endpoint)

    def _budget(self, window_tokens: int, max_tokens: int | None) -> int:
        reserve = int(window_tokens * self.settings.context_reserve_ratio)
        return max(window_tokens - max(reserve, max_tokens or 0), 0)

    def _output_limit(self, request: Request) -> int | None:
        """Return the output limit of `request`, lowered to what the model is known to accept."""
        learned = self.windows.output_of(request.model, request.endpoint)
        if learned is None or request.max_tokens is None:
            return request.max_tokens
        return min(request.max_tokens, learned)

    def _emergency_budget(
        self, overflow: Overflow, counted: int, window_tokens: int, max_tokens: int | None
    ) -> int:
        """Return the tokens, in our own counting, that the emergency retry may have."""
        limit, used = overflow.limit_tokens, overflow.used_tokens
        if limit:
            budget = (limit - (_prompt_first(max_tokens, limit) or 0)) * _STATED_LIMIT_SHARE
            if used and used > counted:
                # The provider counts more than we do. `used` may include the output or be
                # misread, so that the correction is bounded: no vocabulary is wrong by more than
                # a factor of two.
                budget *= max(counted / used, 0.5)
        else:
            budget = counted * self.settings.emergency_ratio
        if window_tokens:
            budget = min(budget, window_tokens * self.settings.emergency_ratio)
        return int(min(budget, counted * _STRICTLY_SMALLER))

    def _give_up(self, request: Request, error: ContextOverflowError) -> Any:
        """End the request with words a user can act on; the sizes go to the log."""
        window = self._window(request)
        log.error(
            "the request cannot be made small enough: it needs {} tokens of at most {} "
            "(model {}, window {}, {}; parts {})",
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


def _overflow_of(response: Any) -> Overflow | None:
    """Return the overflow that a response reports. Only an error's text is read, no answer."""
    reason = getattr(response, "finish_reason", None)
    if reason == "error":
        return detect_overflow(getattr(response, "content", None) or "")
    if reason == "model_context_window_exceeded" and not (
        getattr(response, "content", None) or getattr(response, "tool_calls", None)
    ):
        # Anthropic's and z.ai's way to refuse without an error.
        return detect_overflow("model_context_window_exceeded")
    return None


def _prompt_tokens(usage: Any) -> int:
    """Return the prompt's tokens by nanobot's record of a response's usage; 0 for none."""
    if isinstance(usage, dict):
        tokens = usage.get("prompt_tokens")
    else:
        tokens = getattr(usage, "input_tokens", None)  # 0.3.5
    return tokens if isinstance(tokens, int) else 0


def _unchanged(error: _ProviderOverflowError) -> Any:
    """Return or raise again what the provider gave."""
    if isinstance(error.refusal, Exception):
        raise error.refusal
    return error.refusal


def _prompt_first(max_tokens: int | None, window_tokens: int) -> int | None:
    """Return what to keep free for the answer: as asked for, but at most half the window."""
    return None if max_tokens is None else max(min(max_tokens, window_tokens // 2), 0)


def _lower_output(error: _ProviderOverflowError, attempt: _Attempt) -> int | None:
    """Return a smaller output limit, or `None` when there is nothing to lower."""
    limit, used = error.overflow.limit_tokens, error.overflow.used_tokens
    current = attempt.max_tokens
    # With the prompt's size stated the limit is the window; alone it is the cap.
    stated = limit - used if limit and used else limit
    if stated is None:
        # Not every provider says what it accepts: the table's number, else half, then half of that.
        listed = get_output_limit(error.model or "")
        stated = listed if current and listed < current else (current or 0) // 2
    return stated if stated > 0 and (current is None or stated < current) else None


def _without_old_reasoning(messages: list[Message]) -> list[Message]:
    """Return `messages` without `reasoning_content` before the last user message.

    Behind it the provider may insist on it: DeepSeek and Kimi refuse a tool result whose call has
    lost its reasoning. The caller's dicts are not changed.
    """
    last_user = max(
        (index for index, message in enumerate(messages) if message.get("role") == "user"),
        default=len(messages),
    )
    return [
        {key: value for key, value in message.items() if key != "reasoning_content"}
        if index < last_user and "reasoning_content" in message
        else message
        for index, message in enumerate(messages)
    ]


def _same(left: list[Message], right: list[Message]) -> bool:
    return len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True))
