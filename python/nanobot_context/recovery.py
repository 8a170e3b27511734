"""What is sent when a provider refuses a request: smaller ones, as long as that helps.

What is sent next is decided by `Recovery` in the core, which does no I/O. `recover` is what drives
it, whoever sends.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from nanobot_context._core import (
    ESSENTIAL_TOKENS,
    MIN_OUTPUT_TOKENS,
    NO_REASONING,
    Compressor,
    Overflow,
    Receipt,
    Recovery,
    answer_reserve,
    compress_messages,
    count_tokens,
    fit_messages,
    fits,
    get_output_limit,
)
from nanobot_context.errors import ContextOverflowError, InvalidMessageError
from nanobot_context.history import SYSTEM_ROLES, system_messages
from nanobot_context.overflow import Usage, is_empty
from nanobot_context.settings import Settings

if TYPE_CHECKING:
    from nanobot_context.archive import Archive
    from nanobot_context.types import Message


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is sent: messages, and the limit for the answer where there is one."""

    messages: list[Message]
    max_tokens: int | None


@dataclass(frozen=True, slots=True)
class Refused:
    """A provider called an attempt too large.

    Attributes:
        overflow: What it said.
        refusal: How it said it: an exception, or a response.
    """

    overflow: Overflow
    refusal: Any

    def hand_on(self) -> Any:
        """Return or raise again what the provider gave."""
        if isinstance(self.refusal, Exception):
            raise self.refusal
        return self.refusal


class GaveUp(Exception):
    """Nothing more is worth sending.

    Attributes:
        reason: `unrelated`, `floor`, `refused` or `useless`: see `Recovery`.
        refused: The last refusal.
        prompt_tokens: Tokens of the prompt that was refused last, by our count.
        floor: What must stay, where that is the reason.
    """

    def __init__(
        self,
        reason: str,
        refused: Refused,
        prompt_tokens: int,
        floor: ContextOverflowError | None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.refused = refused
        self.prompt_tokens = prompt_tokens
        self.floor = floor

    @property
    def answer_stands(self) -> bool:
        """Whether what the provider gave is the answer all the same.

        So it is where a smaller request is no help, and where the prompt was cut in silence.
        """
        return self.reason == "unrelated" or self.refused.overflow.kind == "silent"

    def overflow_error(self, model: str | None) -> ContextOverflowError:
        """Return the exception that tells a caller."""
        overflow = self.refused.overflow
        return ContextOverflowError(
            f"the provider refused the request as too large, and {_WHY[self.reason]}",
            needed_tokens=self.floor.needed_tokens
            if self.floor
            else overflow.used_tokens or self.prompt_tokens,
            limit_tokens=overflow.limit_tokens or 0,
            model=model,
            parts=self.floor.parts if self.floor else {},
        )


_WHY = {
    "floor": "what must stay is as large",
    "refused": "three smaller ones as well",
    "useless": "two compressions in a row freed next to nothing",
}


class Exchange(Protocol):
    """One request, as `recover` needs it."""

    async def send(self, attempt: Attempt) -> Any:
        """Return the response, or `Refused` for one that says that the request was too large."""

    def count(self, messages: list[Message]) -> int:
        """Return the tokens of the prompt, tool schemas included."""

    def fixed(self) -> int:
        """Return the tokens of what is never cut."""

    def shorten(self, max_tokens: int) -> list[Message]:
        """Return the request's messages within `max_tokens`; else raise `ContextOverflowError`."""

    def restored(self, messages: list[Message]) -> list[Message]:
        """Return `messages` with the model's reasoning put back: see `with_reasoning`."""

    def refused(self, refused: Refused, attempt: Attempt) -> None:
        """Take note that `attempt` was refused."""


async def recover(
    exchange: Exchange, attempt: Attempt, *, model: str | None, emergency_ratio: float
) -> Any:
    """Send `attempt`, and after each refusal a smaller one; return the first response that is none.

    Raises:
        GaveUp: Nothing more is worth sending.
    """
    recovery = floor = None
    silent: Refused | None = None
    while True:
        try:
            answer = await exchange.send(attempt)
        except Exception:
            if silent is None:
                raise
            # The prompt was cut, but it was answered, and that is paid for.
            raise GaveUp("unrelated", silent, 0, None) from None
        if not isinstance(answer, Refused):
            if silent is not None and is_empty(answer) and not is_empty(silent.refusal):
                raise GaveUp("unrelated", silent, 0, None)
            return answer
        if answer.overflow.kind == "silent" and (silent is None or not is_empty(answer.refusal)):
            silent = answer
        prompt_tokens = _counted(exchange, attempt)
        if prompt_tokens is None:
            # Nobody can make it smaller; what the provider said is worth more than that.
            raise GaveUp("unrelated", answer, 0, None)
        exchange.refused(answer, attempt)
        recovery = recovery or Recovery(
            prompt_tokens,
            attempt.max_tokens,
            fixed_tokens=exchange.fixed(),
            listed_output_tokens=get_output_limit(model or ""),
            emergency_ratio=emergency_ratio,
        )
        messages = attempt.messages
        limit = _size_limit(answer.overflow)
        if limit is not None:
            recovery.weighs(limit.of(messages))
        repair = recovery.refused(answer.overflow)
        if repair.action == "restore":
            messages = exchange.restored(messages)
            if messages is attempt.messages:
                raise GaveUp("unrelated", answer, prompt_tokens, None)
            attempt = Attempt(messages, attempt.max_tokens)
            continue
        while repair.action == "compress":
            try:
                messages = _shortened(exchange, repair.prompt_tokens, limit)
            except ContextOverflowError as error:
                floor = error.with_traceback(None)
                repair = recovery.floor(error.needed_tokens)
            else:
                repair = recovery.compressed(exchange.count(messages))
        if repair.reason is not None:
            at_floor = floor if repair.reason == "floor" else None
            raise GaveUp(repair.reason, silent or answer, prompt_tokens, at_floor)
        attempt = Attempt(messages, repair.output_tokens)


def _counted(exchange: Exchange, attempt: Attempt) -> int | None:
    """Return the tokens of a prompt; `None` where a message has a shape that we do not know."""
    try:
        return exchange.count(attempt.messages)
    except InvalidMessageError:
        return None


class _SizeLimit(NamedTuple):
    """A limit that is not in tokens, and what measures messages by it."""

    most: int
    of: Callable[[list[Message]], int]


def _size_limit(overflow: Overflow) -> _SizeLimit | None:
    if overflow.limit_bytes is not None:
        return _SizeLimit(overflow.limit_bytes, _bytes_of)
    if overflow.limit_messages is not None:
        return _SizeLimit(overflow.limit_messages, len)
    return None


def _shortened(exchange: Exchange, max_tokens: int, limit: _SizeLimit | None) -> list[Message]:
    """Return the request's messages within `max_tokens`, and within `limit` if that can be.

    An image has few tokens and many bytes, and one result as many as a hundred messages: what
    tokens alone choose may still be too large.
    """
    messages = exchange.shorten(max_tokens)
    for _ in range(_SIZE_ROUNDS if limit else 0):
        if limit is None or (size := limit.of(messages)) <= limit.most:
            break
        max_tokens = exchange.count(messages) * limit.most * 9 // (size * 10)
        messages = exchange.shorten(max_tokens)
    return messages


# Each round takes a tenth more than is needed; after these it is the text that is too large.
_SIZE_ROUNDS = 3


def _bytes_of(messages: list[Message]) -> int:
    """Return the bytes of messages as clients send them, about."""
    text = json.dumps(messages, ensure_ascii=False, default=str, separators=(",", ":"))
    return len(text.encode("utf-8", "surrogatepass"))


_FIXED_STEPS = 64


def never_cut(messages: list[Message]) -> list[Message]:
    """Return those of `messages` that are never cut: of the system, and the last of the user."""
    last = next((m for m in reversed(messages) if m.get("role") == "user"), None)
    return [m for m in messages if m is last or m.get("role") in SYSTEM_ROLES]


# What carries a model's reasoning, in plain text or signed.
_REASONING = (
    *("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks"),
    *("extra_content", "provider_specific_fields"),
)


def with_reasoning(messages: list[Message], given: list[Message]) -> list[Message]:
    """Return `messages` with the reasoning that `given` has for them, a mark where there is none.

    The mark stands in every message of the assistant's, for providers that want reasoning back look
    whether it is there. The very same list comes back where nothing is to be done.
    """
    originals = {_first_call(m): m for m in given if _first_call(m)}
    restored: list[Message] = []
    for message in messages:
        if message.get("role") != "assistant":
            restored.append(message)
            continue
        original = originals.get(_first_call(message), {})
        put = {
            name: original[name]
            for name in _REASONING
            if original.get(name) and original[name] != message.get(name)
        }
        thoughts = {**message, **put}
        if not (thoughts.get("reasoning_content") or thoughts.get("reasoning")):
            put["reasoning_content"] = NO_REASONING
        restored.append({**message, **put} if put else message)
    return messages if is_same(restored, messages) else restored


def is_same(left: list[Message], right: list[Message]) -> bool:
    """Return whether two lists hold the same objects."""
    return len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True))


def _first_call(message: Message) -> str | None:
    calls = message.get("tool_calls")
    call = calls[0] if isinstance(calls, list) and calls else None
    name = call.get("id") if isinstance(call, dict) else None
    return name if isinstance(name, str) and name else None


@dataclass(slots=True)
class Room:
    """What one request has of a window for its messages and for the answer.

    Attributes:
        max_output_tokens: The limit for the answer that is asked for; `None` for none.
        overhead_tokens: What the provider takes for each message beside our count.
    """

    messages: list[Message]
    window_tokens: int
    model: str | None
    tools: list[dict[str, Any]] | None
    max_output_tokens: int | None
    overhead_tokens: int = 0
    _leaves_all: bool = field(init=False)

    def __post_init__(self) -> None:
        self._leaves_all = self._fits(self.messages)

    def _fits(self, messages: list[Message]) -> bool:
        """Return whether the longest answer fits beside `messages`."""
        taken = (self.max_output_tokens or 0) + self.overhead_tokens * len(messages)
        budget = max(self.window_tokens - taken, 0)
        return self.max_output_tokens is None or fits(
            messages, budget, self.model, tools=self.tools
        )

    def reserve(self) -> int | None:
        """Return what to keep free for the answer: all of it, or a share of what is not fixed.

        The share is of the window less the system's messages and tool schemas, in steps, so that a
        clock in the system prompt moves no cut.
        """
        if self.max_output_tokens is None or self._leaves_all:
            return self.max_output_tokens
        system = system_messages(self.messages)
        step = max(self.window_tokens // _FIXED_STEPS, 1)
        fixed = in_steps(count_tokens(system, self.model, tools=self.tools), step)
        return answer_reserve(max(self.window_tokens - fixed, 0), self.max_output_tokens)

    def limit(self, sent: list[Message]) -> int | None:
        """Return the limit for the answer, lowered to what the messages `sent` leave.

        A shorter answer than `MIN_OUTPUT_TOKENS` is of no use: where less is free, the window is
        not what it is thought to be.
        """
        fits_beside = self._leaves_all if sent is self.messages else self._fits(sent)
        if self.max_output_tokens is None or fits_beside:
            return self.max_output_tokens
        overhead = self.overhead_tokens * len(sent)
        free = self.window_tokens - overhead - count_tokens(sent, self.model, tools=self.tools)
        return (
            min(self.max_output_tokens, free)
            if free >= MIN_OUTPUT_TOKENS
            else self.max_output_tokens
        )


def compress(
    messages: list[Message],
    window_tokens: int,
    model: str | None,
    *,
    tools: list[dict[str, Any]] | None,
    max_output_tokens: int | None,
    settings: Settings,
    archive: Archive | None,
) -> list[Message]:
    """Return messages for a first attempt.

    They may take from the reserve what must stay, and what is essential beside it.

    Raises:
        ContextOverflowError: What must stay is larger than the window.
    """
    shorten = partial(
        compress_messages,
        context_window=window_tokens,
        model=model,
        tools=tools,
        max_output_tokens=max_output_tokens,
        settings=settings,
        archive=archive,
    )
    most = window_tokens - kept_free(window_tokens, max_output_tokens, settings)
    overhead = settings.message_overhead_tokens
    short, budget = _enough(shorten, messages, window_tokens, model, tools, most, overhead)
    if budget is None:
        return short
    fitted = fit_messages(messages, budget, model, tools=tools, settings=settings, archive=archive)
    return fitted.messages


def receipt_of(
    messages: list[Message],
    window_tokens: int,
    model: str | None,
    *,
    tools: list[dict[str, Any]] | None,
    max_output_tokens: int | None,
    settings: Settings,
    archive: Archive | None,
) -> Receipt | None:
    """Return what `compress` cuts, `None` for nothing.

    Computed anew: what all stateless calls remember, by which `compress` is quick, has no receipt.
    """
    compressor = Compressor(
        window_tokens,
        model,
        tools=tools,
        max_output_tokens=max_output_tokens,
        settings=settings,
        archive=archive,
    )
    most = window_tokens - kept_free(window_tokens, max_output_tokens, settings)
    overhead = settings.message_overhead_tokens
    shorten = compressor.compress
    _, budget = _enough(shorten, messages, window_tokens, model, tools, most, overhead)
    if budget is None:
        return compressor.receipt
    fitted = fit_messages(messages, budget, model, tools=tools, settings=settings, archive=archive)
    return fitted.receipt


def _enough(
    shorten: Callable[[list[Message]], list[Message]],
    messages: list[Message],
    window_tokens: int,
    model: str | None,
    tools: list[dict[str, Any]] | None,
    most: int,
    overhead_tokens: int,
) -> tuple[list[Message], int | None]:
    """Return what `shorten` makes of the messages, and the budget to fit them to in its place.

    There is none where what is essential has room within `most` tokens.
    """
    try:
        short = shorten(messages)
    except ContextOverflowError as error:
        return messages, _with_essential(error, window_tokens)
    if is_same(short, messages):
        return short, None
    least = _essential(messages, window_tokens, model, tools, overhead_tokens)
    return short, None if least <= most else least


def in_steps(tokens: int, step: int) -> int:
    """Return `tokens` rounded up to whole steps, so that what changes a little moves no cut."""
    return -(-tokens // step) * step


def kept_free(window_tokens: int, max_output_tokens: int | None, settings: Settings) -> int:
    """Return what the reserve for the answer takes of a window, as the core has it."""
    return max(int(window_tokens * settings.context_reserve_ratio), max_output_tokens or 0)


def _essential(
    messages: list[Message],
    window_tokens: int,
    model: str | None,
    tools: list[dict[str, Any]] | None,
    overhead_tokens: int,
) -> int:
    """Return the budget that has what is essential beside what is never cut, and a short answer."""
    fixed = never_cut(messages)
    needed = count_tokens(fixed, model, tools=tools) + overhead_tokens * len(fixed)
    return needed + min(ESSENTIAL_TOKENS, window_tokens - needed - MIN_OUTPUT_TOKENS)


def _with_essential(error: ContextOverflowError, window_tokens: int) -> int:
    """Return the budget where only room for the answer is missing.

    The answer has half of what is left, or what is essential leaves of it.
    """
    left = window_tokens - error.needed_tokens
    if left < 0:
        raise error
    return error.needed_tokens + max(left // 2, min(ESSENTIAL_TOKENS, left - MIN_OUTPUT_TOKENS))


# A text has seldom fewer than three bytes a token, and a prompt that was cut has lost half of it:
# see `detect_silent` of the core.
_BYTES_READ = 6


def says_nothing(read_tokens: int, bound: int | None, window_tokens: int) -> bool:
    """Return whether a prompt of at most `bound` tokens, of which a provider read so many, fits.

    Up to half the window it does, however the provider counts. `window_tokens` is 0 where that is
    not known, and `bound` `None` where none decides.
    """
    most = read_tokens * _BYTES_READ
    return bound is not None and bound <= min(most, window_tokens // 2 or most)


def is_answer(usage: Usage, overflow: Overflow) -> bool:
    """Return whether a silent overflow was answered with all of the prompt read.

    Then the provider counts more than we do, or its window is larger than we think.
    """
    return bool(usage.output_tokens) and overflow.limit_tokens == usage.window_tokens
