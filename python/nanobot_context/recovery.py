"""Sends smaller requests after a refusal, as long as that helps.

What is sent next is decided by `Recovery` in the core, which does no I/O. `recover` is what drives
it, whoever sends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from nanobot_context._core import Overflow, Recovery, get_output_limit
from nanobot_context.errors import ContextOverflowError, InvalidMessageError
from nanobot_context.overflow import is_empty
from nanobot_context.types import GiveUpReason, Message


@dataclass(frozen=True, slots=True)
class Attempt:
    """The messages of one attempt, and its limit for the answer if any."""

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
        reason: GiveUpReason,
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

        It is if a smaller request is no help, or the prompt was cut silently.
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
        """Return the tokens of the messages that are never cut."""

    def shorten(self, max_tokens: int) -> list[Message]:
        """Return the request's messages within `max_tokens`; else raise `ContextOverflowError`."""

    def restored(self, messages: list[Message]) -> list[Message]:
        """Return `messages` with the model's reasoning put back: see `with_reasoning`."""

    def refused(self, refused: Refused, attempt: Attempt) -> None:
        """Take note that `attempt` was refused."""


async def recover(
    exchange: Exchange, attempt: Attempt, *, model: str | None, emergency_ratio: float
) -> Any:
    """Send `attempt`, and a smaller one after each refusal; return the first other response.

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


def run_unawaited(call: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that never waits, and return its result."""
    try:
        call.send(None)
    except StopIteration as ended:
        return ended.value
    raise AssertionError(call)


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
