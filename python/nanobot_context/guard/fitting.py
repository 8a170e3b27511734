"""Fits a request: its messages to the window, and the limit for its answer."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nanobot_context._core import (
    ESSENTIAL_TOKENS,
    MIN_OUTPUT_TOKENS,
    answer_reserve,
    count_tokens,
    fits,
    reduce_messages,
    reserve_tokens,
    window_for,
)
from nanobot_context.errors import ContextOverflowError
from nanobot_context.first_attempt import Options, compress
from nanobot_context.guard.windows import Window, WindowResolver, in_steps
from nanobot_context.host.messages import (
    REFLECTION_TOKENS,
    is_consolidation,
    lift_prompts,
    lift_reflections,
    lift_runtime_context,
    restore_prompts,
    restore_reflections,
    shorten_consolidation,
)
from nanobot_context.identity import is_same
from nanobot_context.reasoning import with_reasoning
from nanobot_context.recovery import Attempt
from nanobot_context.tools import shorten_tools
from nanobot_context.types import Message

if TYPE_CHECKING:
    from nanobot_context.archive import Archive
    from nanobot_context.guard.archives import Archives
    from nanobot_context.guard.request import Request, State
    from nanobot_context.settings import Settings

# A conversation's window is taken anew where it is larger by so much, or where what is sent would
# take more than so much of what is kept free for the answer.
_GROWS = 1.15
_OF_ANSWER = 0.25

# What is kept free for what nanobot says itself is at least so much, and doubles: a window that
# changes with every request would move every cut.
_LEAST_RESERVE = 128
_FIXED_STEPS = 64


def _conversation(request: Request) -> tuple[str | None, list[Message], str]:
    """Return the arguments that identify a conversation for `WindowResolver`."""
    return request.model, request.messages, request.endpoint


@functools.lru_cache(maxsize=64)
def _with_overhead(settings: Settings, overhead_tokens: int) -> Settings:
    if overhead_tokens == settings.message_overhead_tokens:
        return settings
    return replace(settings, message_overhead_tokens=overhead_tokens)


@dataclass(frozen=True, slots=True)
class Fitter:
    """Makes requests fit with one set of settings.

    Attributes:
        settings: The settings in force.
        windows: The window of every model.
        archives: Where originals of tool results are kept; `None` where the settings say no.
        prompts: How nanobot's own prompts in the user's name begin.
        context_tag: How the block in the user's newest message begins that nanobot does not save.
    """

    settings: Settings
    windows: WindowResolver
    archives: Archives | None = None
    prompts: tuple[str, ...] = ()
    context_tag: str = ""

    def first(self, request: Request) -> tuple[Attempt, int]:
        """Return the first attempt, and the budget that its messages were fitted to.

        They are the caller's own list when nothing has to be cut. A conversation is cut by the
        window that it was cut by before, as long as that fits: what was sent stays what it was.
        """
        now = self.windows.in_ours_now(self.stated(request).tokens, *_conversation(request))
        attempt, budget = self._first(request, now)
        if self._takes_anew(request, attempt, now):
            attempt, budget = self._first(request, now)
        return attempt, budget

    def stated(self, request: Request) -> Window:
        """Return the window of a request, in the provider's counting."""
        return self.windows.smallest(request.models, request.endpoint, request.asked)

    def _takes_anew(self, request: Request, attempt: Attempt, window_now: int) -> bool:
        """Take the conversation's window anew where `attempt` does not fit, or could be far larger.

        Returns whether it did.
        """
        windows, conversation = self.windows, _conversation(request)
        stated = self.stated(request).tokens
        had = windows.in_ours(stated, *conversation), windows.overhead_tokens(*conversation)
        now = window_now, windows.overhead_now(*conversation)
        has_state = request.state_for(attempt.messages) is not None
        if now == had or (has_state and now[0] >= had[0]):
            return False
        counted = windows.counts_of(request.model, request.endpoint)
        is_cut = not is_same(attempt.messages, request.messages)
        # More room is taken with the next step: before that the prefix would change for nothing.
        grows = is_cut and now[0] > had[0] * _GROWS and not counted.extends_last(attempt.messages)
        if not grows and not has_state:
            free = request.trace.answer_tokens * (1 - _OF_ANSWER)
            if self._most_tokens(request, attempt.messages) + free <= stated:
                return False
        windows.take_anew(*conversation)
        return True

    def _first(self, request: Request, window_now: int) -> tuple[Attempt, int]:
        window, max_tokens = self.window(request), self.output_limit(request)
        if not window.tokens:
            return Attempt(self._with_reasoning(request, request.messages), max_tokens), 0
        is_free = self._leaves(request, window, request.messages, max_tokens)
        reserve = self._reserved(request, window, max_tokens, is_free=is_free)
        request.trace.answer_tokens = self._kept_free(request, window, reserve)
        messages, budget = self.compressed(request, window, reserve)
        messages = self._with_reasoning(request, messages)
        if request.state_for(messages) is None:
            # A conversation's window may be larger than it would be now.
            is_sure = window.tokens <= window_now
            if messages is not request.messages:
                is_free = self._leaves(request, window, messages, max_tokens)
            max_tokens = self._limit(request, window, messages, is_free=is_free, is_sure=is_sure)
        return Attempt(messages, max_tokens), budget

    def _leaves(
        self, request: Request, window: Window, messages: list[Message], max_tokens: int | None
    ) -> bool:
        """Return whether the longest answer fits beside `messages`."""
        return max_tokens is None or self.fits(request, messages, window.tokens - max_tokens)

    def _reserved(
        self, request: Request, window: Window, max_tokens: int | None, *, is_free: bool
    ) -> int | None:
        """Return the tokens to keep free for the answer: its limit, or a share of the unfixed rest.

        The share is of the window less the system's messages and tool schemas, in steps, so that a
        clock in the system prompt moves no cut.
        """
        if max_tokens is None or is_free:
            return max_tokens
        fixed = in_steps(request.fixed_tokens(), max(window.tokens // _FIXED_STEPS, 1))
        return answer_reserve(max(window.tokens - fixed, 0), max_tokens)

    def _limit(
        self,
        request: Request,
        window: Window,
        sent: list[Message],
        *,
        is_free: bool,
        is_sure: bool,
    ) -> int | None:
        """Return the limit for the answer, lowered to what `sent` leaves as the provider counts.

        An answer of less than half of `MIN_OUTPUT_TOKENS` is of no use: where less is free, the
        window is not what it is thought to be.
        """
        asked = self.output_limit(request)
        if asked is None or (is_free and is_sure):
            return asked
        least = MIN_OUTPUT_TOKENS // 2
        if is_sure and not least <= window.tokens - self.count(request, sent) < asked:
            return asked
        free = self.stated(request).tokens - self._most_tokens(request, sent)
        return min(asked, free) if free >= least else asked

    def _most_tokens(self, request: Request, sent: list[Message]) -> int:
        """Return the most that the provider may count of a prompt of the messages `sent`."""
        ours = count_tokens(sent, request.model, tools=request.tools)
        return self.windows.at_most_in_theirs(ours, request.model, sent, request.endpoint)

    def shown_tools(self, request: Request, tools: list[Any], choice: Any) -> list[Any] | None:
        """Return what `tools` become within their share of the window; `None` where they stay."""
        share = self.settings.tool_schema_limit
        if share is None or not tools or not (tokens := self.window(request).tokens):
            return None
        limit = int(tokens * share)
        shown = shorten_tools(tools, limit, request.model, messages=request.messages, choice=choice)
        return None if is_same(shown, tools) else shown

    def _with_reasoning(self, request: Request, messages: list[Message]) -> list[Message]:
        """Return `messages`, with the model's reasoning where it is known to be wanted."""
        if self.windows.learned.wants_reasoning(request.place):
            return with_reasoning(messages, request.messages)
        return messages

    def compressed(
        self, request: Request, window: Window, max_tokens: int | None
    ) -> tuple[list[Message], int]:
        """Return the messages to send, and the budget that they were fitted to."""
        window_tokens = window.tokens
        if window.prompt_tokens is not None:
            window_tokens = min(window_tokens, self.window_for(window.prompt_tokens, max_tokens))
        budget = self._budget(window_tokens, max_tokens)
        state_fits = request.state is None or self._state_fits(request, request.state, budget)
        if request.state and state_fits and not request.fallbacks:
            # The messages are not what goes out; another model would get them.
            return request.messages, budget

        def first(messages: list[Message], reserved: int) -> list[Message]:
            reserved = max(1 << (reserved - 1).bit_length(), _LEAST_RESERVE) if reserved else 0
            room = max(window_tokens - reserved, 1)
            return self.compressed_to(request, messages, room, max_tokens)

        try:
            compressed = self.shorten(request, budget, first)
        except ContextOverflowError as floor:
            compressed = self._smallest(request, floor)
        if is_same(compressed, request.messages):
            # Another list drops the state.
            compressed = request.messages if state_fits else list(request.messages)
        return compressed, budget

    def compressed_to(
        self, request: Request, messages: list[Message], window_tokens: int, max_tokens: int | None
    ) -> list[Message]:
        """Compress for a window, and note in the trace what was cut."""
        options: Options = {
            "tools": request.tools,
            "max_output_tokens": max_tokens,
            "settings": self.settings_of(request),
            "archive": self.archive_of(request),
        }
        shorter, receipt = compress(messages, window_tokens, request.model, **options)
        request.trace.shortened(messages, receipt)
        return shorter

    def _smallest(self, request: Request, floor: ContextOverflowError) -> list[Message]:
        """Return a request of which nothing is left to cut, though it is larger than the window.

        It is sent all the same: the window may have been misread, or be larger than the table has
        it, and only the provider knows. The user's rules and the newest call are few tokens more.
        """
        budget = floor.needed_tokens + ESSENTIAL_TOKENS

        def reduce(messages: list[Message], reserved: int) -> list[Message]:
            return self.reduced(request, messages, budget - min(reserved, ESSENTIAL_TOKENS))

        try:
            return self.shorten(request, budget, reduce)
        except ContextOverflowError:
            return request.messages

    def reduced(
        self, request: Request, messages: list[Message], budget_tokens: int
    ) -> list[Message]:
        """Return `messages` within a budget, and note in the trace what was cut."""
        reduced = reduce_messages(
            messages,
            budget_tokens,
            request.model,
            tools=request.tools,
            settings=self.settings_of(request),
            archive=self.archive_of(request),
        )
        request.trace.shortened(messages, reduced.receipt)
        return reduced.messages

    def shorten(
        self,
        request: Request,
        budget: int,
        shorten: Callable[[list[Message], int], list[Message]],
    ) -> list[Message]:
        """Apply `shorten` without what nanobot says as the user, and know its consolidation."""
        messages, lifted = lift_runtime_context(request.messages, self.context_tag)
        if lifted is None:
            return self._shorten(request, budget, shorten)
        saved, sent = lifted
        # English words and numbers: two bytes a token and more.
        block = (len(str(sent["content"])) - len(str(saved["content"]))) // 2
        request = replace(request, messages=messages)
        shorter = self._shorten(
            request, budget, lambda given, reserved: shorten(given, reserved + block)
        )
        return [sent if message is saved else message for message in shorter]

    def _shorten(
        self,
        request: Request,
        budget: int,
        shorten: Callable[[list[Message], int], list[Message]],
    ) -> list[Message]:
        lifted, reflection = lift_reflections(request.messages)
        if reflection is not None:
            lines = len(request.messages) - len(lifted)
            shorter = shorten(lifted, lines * REFLECTION_TOKENS)
            if is_same(shorter, lifted):
                return request.messages
            return restore_reflections(shorter, reflection)
        lifted, asked = lift_prompts(request.messages, self.prompts)
        if asked:
            is_whole = self.fits(request, request.messages, budget)
            prompts = [] if is_whole else [prompt for _, prompt in asked]
            shorter = shorten(lifted, count_tokens(prompts, request.model) if prompts else 0)
            if is_same(shorter, lifted):
                return request.messages
            return restore_prompts(shorter, asked, lifted[-1])
        try:
            return shorten(request.messages, 0)
        except ContextOverflowError:
            if not is_consolidation(request.messages):
                raise

            def is_short(messages: list[Message]) -> bool:
                return self.fits(request, messages, budget)

            shortened = shorten_consolidation(request.messages, is_short)
            if shortened is None:
                raise
            # It is cut in text of nanobot's own, of which there is no receipt.
            request.trace.shortened([], None)
            return shortened

    def lifted(self, request: Request) -> list[Message]:
        """Return the messages without those that nanobot says in the user's name."""
        lifted, reflection = lift_reflections(request.messages)
        return lifted if reflection else lift_prompts(request.messages, self.prompts)[0]

    def overhead_tokens(self, request: Request) -> int:
        """Return the tokens that the provider adds to our count of each message."""
        learned = self.windows.overhead_tokens(*_conversation(request))
        return max(learned, self.settings.message_overhead_tokens)

    def settings_of(self, request: Request) -> Settings:
        """Return the settings with the overhead that was learned of the provider."""
        return _with_overhead(self.settings, self.overhead_tokens(request))

    def count(self, request: Request, messages: list[Message]) -> int:
        """Return the tokens of a prompt of `messages`, with the provider's overhead for each."""
        overhead = self.overhead_tokens(request) * len(messages)
        return count_tokens(messages, request.model, tools=request.tools) + overhead

    def fits(self, request: Request, messages: list[Message], budget: int) -> bool:
        """Return whether a prompt of `messages` has at most `budget` tokens, counted like that."""
        left = max(budget - self.overhead_tokens(request) * len(messages), 0)
        return fits(messages, left, request.model, tools=request.tools)

    def archive_of(self, request: Request) -> Archive | None:
        """Return where originals of the request's tool results are kept."""
        return self.archives.of(request.messages) if self.archives else None

    def window(self, request: Request) -> Window:
        """Return the window of a request, in our own counting."""
        window = self.stated(request)
        most = window.prompt_tokens
        return replace(
            window,
            tokens=self._in_ours(request, window.tokens),
            prompt_tokens=None if most is None else self._in_ours(request, most),
        )

    def _in_ours(self, request: Request, tokens: int) -> int:
        return self.windows.in_ours(tokens, *_conversation(request))

    def theirs(self, request: Request, messages: list[Message], tokens: int) -> int:
        """Convert our count `tokens` of `messages` into the provider's."""
        return self.windows.in_theirs(tokens, request.model, messages, request.endpoint)

    def window_for(self, prompt_tokens: int, max_tokens: int | None) -> int:
        """Return the window of which a prompt may have `prompt_tokens`, and the answer the rest."""
        return window_for(prompt_tokens, max_tokens, self.settings.context_reserve_ratio)

    def state_tokens(self, request: Request, state: State) -> int:
        """Return the tokens of a request that goes on from a state, in our own counting."""
        tokens = int(state.tokens / self._ratio(request))
        return tokens + count_tokens(state.pending, request.model)

    def _state_fits(self, request: Request, state: State, budget: int) -> bool:
        left = budget - int(state.tokens / self._ratio(request))
        return left >= 0 and fits(state.pending, left, request.model)

    def _ratio(self, request: Request) -> float:
        return self.windows.ratio(request.model, request.messages, request.endpoint)

    def _budget(self, window_tokens: int, max_tokens: int | None) -> int:
        return max(window_tokens - self._reserve(window_tokens, max_tokens), 0)

    def _reserve(self, window_tokens: int, max_tokens: int | None) -> int:
        return reserve_tokens(window_tokens, max_tokens, self.settings.context_reserve_ratio)

    def answer_tokens(self, request: Request) -> int:
        """Return the tokens now kept free for the answer to `request`."""
        window, max_tokens = self.window(request), self.output_limit(request)
        if not window.tokens:
            return 0
        is_free = self._leaves(request, window, request.messages, max_tokens)
        reserve = self._reserved(request, window, max_tokens, is_free=is_free)
        return self._kept_free(request, window, reserve)

    def _kept_free(self, request: Request, window: Window, reserve: int | None) -> int:
        """Return the tokens kept free for the answer, in the provider's counting like the limit."""
        theirs = self.stated(request).tokens
        limit = self.output_limit(request)
        if reserve is not None and limit is not None and reserve < limit:
            reserve = min(round(reserve * theirs / window.tokens), limit)
        return self._reserve(theirs, reserve)

    def output_limit(self, request: Request) -> int | None:
        """Return the output limit of `request`, lowered to what the model is known to accept."""
        learned = self.windows.learned.output_of(request.place)
        known = [limit for limit in (request.max_tokens, learned) if limit is not None]
        return min(known, default=None)
