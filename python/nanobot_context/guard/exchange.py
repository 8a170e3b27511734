"""Sends one request, detects refusals and silent cuts, and records what they teach.

Requests of nanobot, `wrap`, `serve` and `call_with_recovery` alike.
"""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nanobot_context import log
from nanobot_context._core import Overflow, count_tokens, silently_cut, token_bound
from nanobot_context.errors import ContextOverflowError
from nanobot_context.first_attempt import never_cut
from nanobot_context.guard.fuse import NOT_OURS, blown, fused
from nanobot_context.guard.limits import LEAST_WINDOW
from nanobot_context.guard.reports import estimated_tokens
from nanobot_context.identity import is_same
from nanobot_context.message_texts import holds_media
from nanobot_context.overflow import CACHED_FIELDS, Usage, detect_overflow
from nanobot_context.reasoning import with_reasoning
from nanobot_context.recovery import Attempt, GaveUp, Refused, recover
from nanobot_context.silent import is_answer, says_nothing

if TYPE_CHECKING:
    from nanobot_context.guard.fitting import Fitter
    from nanobot_context.guard.request import Message, Request
    from nanobot_context.guard.telemetry import Telemetry


async def protected(exchange: Exchange) -> Any:
    """Send a request so that it fits, and return the response; errors are raised as they are.

    Raises:
        GaveUp: Nothing smaller was accepted, and what was given is no answer.
    """
    request = exchange.request
    attempt = fused(
        "compress a request",
        lambda: _first(exchange),
        Attempt(request.messages, request.max_tokens),
    )
    ratio = exchange.fitter.settings.emergency_ratio
    try:
        return await recover(exchange, attempt, model=request.model, emergency_ratio=ratio)
    except GaveUp as gave_up:
        if not gave_up.answer_stands:
            raise
        refused = gave_up.refused
    except NOT_OURS:
        raise
    except BaseException as error:
        if exchange.last is None or error is exchange.raised:
            raise
        # A mistake of ours must not hide what the provider said.
        blown("repair a request that the provider refused", error)
        refused = exchange.last
    return refused.hand_on()


def _first(exchange: Exchange) -> Attempt:
    begun, request = time.perf_counter(), exchange.request
    attempt, budget = exchange.fitter.first(request)
    if not is_same(attempt.messages, request.messages):
        seconds = time.perf_counter() - begun
        exchange.telemetry.compressed(request, attempt.messages, budget, seconds)
    return attempt


class _Unnumbered(NamedTuple):
    """An attempt that was refused without a stated limit, and its prompt's size at the provider."""

    attempt: Attempt
    prompt_tokens: int


def _window_between(accepted_tokens: int, refused_tokens: int) -> int:
    """Return the window of a model that accepted so much and refused so much.

    Nobody knows, but most are a power of two. Where none is between, no request is to be larger
    than what was accepted: it might be refused, too.
    """
    usual = 1 << max(refused_tokens - 1, 1).bit_length() - 1
    return usual if usual >= accepted_tokens else min(accepted_tokens, refused_tokens)


@dataclass(slots=True)
class Exchange:
    """One request of nanobot's, as `recover` drives it.

    Attributes:
        last: The last refusal.
        raised: The exception that nanobot's own provider raised, which is handed on.
    """

    fitter: Fitter
    telemetry: Telemetry
    request: Request
    last: Refused | None = field(default=None, init=False)
    raised: BaseException | None = field(default=None, init=False)
    _capped: bool = field(default=False, init=False)
    _cap: int | None = field(default=None, init=False)
    _refused: list[_Unnumbered] = field(default_factory=list, init=False)
    _read_tokens: int | None = field(default=None, init=False)

    async def send(self, attempt: Attempt) -> Any:
        telemetry = self.telemetry
        if self._capped:
            # A later attempt may have a lower limit for want of room.
            self._cap, self._capped = attempt.max_tokens, False
        telemetry.sends(self.request, attempt, lambda: self._sent_tokens(attempt))
        try:
            response = await self.request.send(attempt.messages, attempt.max_tokens)
        except NOT_OURS:
            telemetry.interrupted(self.request)
            raise
        except Exception as error:
            self.raised = error
            overflow = fused("read an error", functools.partial(self._read_error, error), None)
            if overflow is None:
                raise
            self.last = Refused(overflow, error)
            return self.last
        # It is paid for: from here on nothing of ours may stand between it and nanobot.
        overflow = fused("read an answer", lambda: self._overflow(attempt, response), None)
        if overflow is not None:
            self.last = Refused(overflow, response)
            return self.last
        fused("learn from an answer", lambda: self._learn_from_answer(attempt), None)
        if getattr(response, "is_complete", True):
            telemetry.answered(self.request, response)
        return response

    def learn(self, attempt: Attempt, response: Any) -> None:
        """Learn from the usage of a stream, which is known when it has ended."""
        overflow = self._silent(attempt, response)
        if overflow is not None:
            self.telemetry.overflowed(self.request, overflow, response, overflow.used_tokens or 0)
        elif self._refused:
            # More may have been accepted than it seemed when the first piece came.
            self._learn_from_answer(attempt)

    def failed(self, attempt: Attempt, error: Exception) -> None:
        """Learn from a refusal that comes when it is too late to send the request again."""
        overflow = self._read_error(error)
        if overflow is not None:
            self.refused(Refused(overflow, error), attempt)

    def _read_error(self, error: Exception) -> Overflow | None:
        return detect_overflow(error, provider=self.request.provider)

    def _overflow(self, attempt: Attempt, response: Any) -> Overflow | None:
        return self._refusal(response) or self._silent(attempt, response)

    def count(self, messages: list[Message]) -> int:
        return self.fitter.count(self.request, messages)

    def _counted(self, messages: list[Message]) -> int:
        """Return our own count of a prompt, uncorrected by the provider's reports."""
        return count_tokens(messages, self.request.model, tools=self.request.tools)

    def fixed(self) -> int:
        return self.count(never_cut(self.fitter.lifted(self.request)))

    def restored(self, messages: list[Message]) -> list[Message]:
        return with_reasoning(messages, self.request.messages)

    def shorten(self, max_tokens: int) -> list[Message]:
        def reduce(messages: list[Message], reserved: int) -> list[Message]:
            try:
                return self.fitter.reduced(self.request, messages, max(max_tokens - reserved, 0))
            except ContextOverflowError as floor:
                floor.needed_tokens += reserved
                raise

        shorter = self.fitter.shorten(self.request, max_tokens, reduce)
        is_wanted = self.fitter.windows.learned.wants_reasoning(self.request.place)
        return with_reasoning(shorter, []) if is_wanted else shorter

    def refused(self, refused: Refused, attempt: Attempt) -> None:
        fused("learn from a refusal", lambda: self._learn(refused, attempt), None)

    def _learn(self, refused: Refused, attempt: Attempt) -> None:
        prompt_tokens = self._sent_tokens(attempt)
        overflow, request, windows = refused.overflow, self.request, self.fitter.windows
        limit, used = overflow.limit_tokens, overflow.used_tokens
        self.telemetry.overflowed(request, overflow, refused.refusal, prompt_tokens)
        # As the provider counts, as it is in `status`.
        window = self.fitter.stated(request)
        if overflow.kind == "reasoning":
            log.warning("the provider wants the model's reasoning back: it is sent again with it")
            windows.learned.learn_reasoning(request.place)
            return
        what = f"the provider refused {_said(used, prompt_tokens)}"
        if overflow.kind == "silent":
            # Its limit is the size that was read; the size that was sent is our count.
            read = f"{limit:,}" if limit else "a part"
            what = f"the provider read {read} of {_said(None, prompt_tokens)} and said nothing"
        log.warning(
            "{}, with {} for the answer: {} (window {}, {}; stated limit {})",
            what,
            attempt.max_tokens or "no limit",
            overflow.kind,
            window.tokens,
            window.source,
            (limit if overflow.kind != "silent" else None) or "none",
        )
        model, endpoint = request.model, request.endpoint
        self._capped |= overflow.kind == "output_cap" and used is None
        if overflow.kind == "rate_ceiling" and limit:
            # However long one waits, no request may be larger.
            windows.learn(model, limit, endpoint, needed_tokens=request.fixed_tokens())
        if overflow.kind in ("input", "output_cap"):
            if used:
                windows.counted(
                    model, attempt.messages, prompt_tokens, used, endpoint, refused=True
                )
            theirs = used or self.fitter.theirs(request, attempt.messages, prompt_tokens)
            if overflow.kind == "input":
                windows.learned.refused(request.place, theirs + (attempt.max_tokens or 0))
            # Of an output cap the window, which only a text states that adds prompt and answer up.
            if limit:
                windows.learn(model, limit, endpoint, needed_tokens=request.fixed_tokens())
            elif overflow.kind == "output_cap":
                # A cap of the model's own, not what one prompt happens to leave free.
                if overflow.output_tokens:
                    windows.learned.learn_output(request.place, overflow.output_tokens)
            else:
                self._assume(attempt, theirs)
        elif overflow.kind == "request_bytes" and not any(map(holds_media, attempt.messages)):
            # Of texts a limit in bytes is one in tokens, too, or each turn would be refused first.
            self._assume(attempt, self.fitter.theirs(request, attempt.messages, prompt_tokens))

    def _assume(self, attempt: Attempt, tokens: int) -> None:
        """Assume the size of a request refused without a stated limit as the window.

        A very short request was refused for another reason, and would cut all others to nothing.
        """
        self._refused.append(_Unnumbered(attempt, tokens))
        if tokens >= LEAST_WINDOW:
            learned = self.fitter.windows.learned
            learned.learn_window(self.request.place, tokens, is_stated=False)

    def _sent_tokens(self, attempt: Attempt) -> int:
        """Return the tokens that an attempt sends: its messages, or the state in their place."""
        state = self.request.state_for(attempt.messages)
        if state is not None:
            return self.fitter.state_tokens(self.request, state)
        return self._counted(attempt.messages)

    def _worth_counting(self, attempt: Attempt, theirs: int, window_tokens: int) -> int | None:
        """Return our count of what was sent, of which the provider read `theirs`.

        `None` where counting would load a vocabulary, and nothing can be learned.
        """
        request = self.request
        state = request.state_for(attempt.messages)
        if state is None:
            bound = token_bound(attempt.messages, request.model, tools=request.tools)
        elif (bound := token_bound(state.pending, request.model)) is not None:
            bound += state.tokens
        if says_nothing(theirs, bound, window_tokens):
            return None
        return self._sent_tokens(attempt)

    def _learn_from_answer(self, attempt: Attempt) -> None:
        """Learn the window from a request that passed after a larger one was refused."""
        request, learned = self.request, self.fitter.windows.learned
        if self._cap:
            learned.learn_output(request.place, self._cap)
        if self._refused:
            theirs = self._read_tokens
            if not theirs:
                ours = self._sent_tokens(attempt)
                theirs = self.fitter.theirs(request, attempt.messages, ours)
            least = self.fitter.window_for(theirs, attempt.max_tokens)
            most = assumed = min(refused.prompt_tokens for refused in self._refused)
            answers = [
                refused.attempt.max_tokens or 0
                for refused in self._refused
                if refused.attempt.messages is attempt.messages
            ]
            if answers:
                # A shorter answer was all that it took: prompt and answer are counted together.
                least, most = theirs + (attempt.max_tokens or 0), theirs + min(answers)
            window = _window_between(least, most)
            learned.learn_window(request.place, window, is_stated=False, in_place_of=assumed)

    def _refusal(self, response: Any) -> Overflow | None:
        """Return the overflow that a response reports. Only an error's text is read, no answer."""
        reason = getattr(response, "finish_reason", None)
        if reason == "error":
            # nanobot 0.2.2 and later say what came with an error whose body says nothing.
            status = getattr(response, "error_status_code", None)
            code = getattr(response, "error_code", None)
            text = getattr(response, "content", None) or ""
            found = detect_overflow(
                text,
                status=status if isinstance(status, int) else None,
                provider=self.request.provider,
            )
            return found or (detect_overflow(code) if isinstance(code, str) else None)
        if reason == "model_context_window_exceeded" and not (
            getattr(response, "content", None) or getattr(response, "tool_calls", None)
        ):
            # Anthropic's and z.ai's way to refuse without an error.
            return detect_overflow("model_context_window_exceeded")
        return None

    def _silent(self, attempt: Attempt, response: Any) -> Overflow | None:
        """Return the overflow that the usage of an answer gives away, and learn from the usage."""
        request, windows, messages = self.request, self.fitter.windows, attempt.messages
        usage = _usage_of(response)
        if usage is None:
            return None
        theirs = (usage.input_tokens or 0) + usage.cache_tokens
        length = estimated_tokens(messages)
        usage = replace(usage, window_tokens=self.fitter.stated(request).tokens)
        overflow, ours = self._given_away(attempt, usage, theirs, length)
        if _is_cut(overflow, theirs, ours):
            # The prompt was cut: that says nothing of how the provider counts.
            windows.learned.learn_window(request.place, theirs, is_stated=False)
        else:
            windows.reported(request.model, messages, theirs, request.endpoint)
            if ours is not None and (theirs >= ours or not _has_cached(response)):
                # A size that passed after a refusal is believed at once, too.
                is_sure = self.last is not None and theirs > ours
                windows.counted(
                    request.model, messages, ours, theirs, request.endpoint, refused=is_sure
                )
        if overflow is None or is_answer(usage, overflow):
            windows.learned.accepted(request.place, theirs, length)
            self._read_tokens = theirs
            return None
        if request.is_shown and getattr(response, "content", None):
            # An answer that was streamed to the user cannot be taken back.
            log.warning(
                "the provider read {} of {} and said nothing: the answer stands, and the next "
                "prompts are no larger",
                f"{theirs:,}",
                _said(None, ours or 0),
            )
            self.telemetry.overflowed(request, overflow, response, ours or 0)
            return None
        return overflow

    def _given_away(
        self, attempt: Attempt, usage: Usage, theirs: int, length: int
    ) -> tuple[Overflow | None, int | None]:
        """Return the overflow that `usage` gives away, and our count if it was worth counting."""
        request, windows, messages = self.request, self.fitter.windows, attempt.messages
        could_cut = windows.could_cut_at(request.model, theirs, request.endpoint)
        ours = self._worth_counting(attempt, theirs, usage.window_tokens or 0)
        reads_too_little, unread = False, 0
        counted = windows.counts_of(request.model, request.endpoint)
        has_state = request.state_for(messages) is not None
        if could_cut and not has_state:
            reports = counted.reports
            reads_too_little = windows.reads_no_more(
                request.model, theirs, length, request.endpoint
            ) or reports.reads_less(messages, theirs)
            unread = counted.unread(messages, theirs)
            if ours is None and (
                reads_too_little or unread or reports.grows_little(messages, theirs)
            ):
                ours = self._counted(messages)
            if unread and ours is not None:
                ours = max(ours, theirs + unread)
        # A server that goes by length alone reports less than half of dense text, and cuts nothing.
        if could_cut and ours and theirs < ours and theirs < length:
            usage = replace(usage, counted_tokens=ours)
        overflow = detect_overflow(None, usage=usage)
        if overflow is None and could_cut and ours is not None:
            is_less = reads_too_little and theirs * 10 < ours * 9
            if (
                is_less
                or unread
                or (not has_state and counted.was_cut(messages, ours, theirs, request.tools))
            ):
                overflow = silently_cut(read_tokens=theirs, sent_tokens=ours)
        # No window is smaller than half of what is in every request.
        if _is_cut(overflow, theirs, ours) and not (
            theirs * 2 >= request.fixed_tokens() and counted.could_be_cut(messages, theirs)
        ):
            return None, ours
        return overflow, ours


def _is_cut(overflow: Overflow | None, theirs: int, ours: int | None) -> bool:
    """Return whether `overflow` is a prompt of `ours` tokens that was cut to `theirs`."""
    return overflow is not None and (overflow.limit_tokens, overflow.used_tokens) == (theirs, ours)


def _usage_of(response: Any) -> Usage | None:
    """Return the usage of an answer whose prompt was sent as it was counted; else `None`."""
    if getattr(response, "finish_reason", None) == "error":
        return None
    if getattr(response, "provider_compaction_applied", False):
        # What was counted is not what was sent: the provider made a summary of it (0.3.5).
        return None
    usage = Usage.of(response)
    return None if usage.input_tokens is None else usage


def _said(theirs: int | None, ours: int) -> str:
    """Return how many tokens the provider counted; as counted here where it does not say."""
    return f"{theirs:,} tokens" if theirs else f"about {ours:,} tokens as counted here"


@dataclass(slots=True)
class Answer:
    """An answer of anybody's, in the form that is read here.

    Attributes:
        reply: The answer itself, which is handed on.
        is_complete: Whether it has ended; a stream tells its usage, or that it failed, at the end.
    """

    reply: Any
    content: Any = None
    tool_calls: Any = None
    finish_reason: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    is_complete: bool = True


def _has_cached(response: Any) -> bool:
    """Return whether a part of the prompt came from a cache: it may be missing in the usage."""
    usage = getattr(response, "usage", None)
    values = usage if isinstance(usage, dict) else {}
    return any(values.get(name) or getattr(usage, name, None) for name in CACHED_FIELDS)
