"""The compressors that are measured, called as the measures do: `compress(messages, tokens)`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nanobot_context
from evaluation.tools import VARIABLE, load
from nanobot_context import _core

Message = dict[str, Any]

# None: the counter of a model that nobody has named, so that no vocabulary is preferred.
MODEL: str | None = None
BUDGET_SHARE = 0.85  # of a window, less the reserve for the answer
REPLY = 3  # tokens that prime the reply: one a prompt, not one a message
MECHANISMS = (
    "learned",
    "relevance",
    "outline",
    "superseded",
    "pinning",
    "ledger",
    "coverage",
    "striking",
)

# `fit_messages` with some of its mechanisms switched off, in builds with the feature `evaluation`.
_fit_without: Callable[..., Any] | None = getattr(_core, "_fit_without", None)


def can_ablate() -> bool:
    """Return whether the installed package can switch mechanisms off."""
    return _fit_without is not None


def count(messages: list[Message]) -> int:
    """Return the tokens of `messages` as a prompt."""
    return nanobot_context.count_tokens(messages, MODEL)


def count_one(message: Message) -> int:
    """Return the tokens that `message` adds to a prompt."""
    return nanobot_context.count_tokens([message], MODEL) - REPLY


class Fitting:
    """`fit_messages`, or the same without some mechanisms. Budgets are in our own tokens."""

    def __init__(self, *without: str) -> None:
        self.without = without

    def __call__(self, messages: list[Message], max_tokens: int) -> list[Message]:
        if not self.without:
            return nanobot_context.fit_messages(messages, max_tokens, MODEL).messages
        if _fit_without is None:
            raise RuntimeError(f"this build of the package can't fit without {self.without}")
        result: list[Message] = _fit_without(
            messages, max_tokens, MODEL, list(self.without)
        ).messages
        return result

    def count_tokens(self, message: Message) -> int:
        """The measures look for this name and then count budgets with it."""
        return count_one(message)


class CompressingOnce:
    """`compress_messages` of a whole conversation at once, in a window with such a budget."""

    def __call__(self, messages: list[Message], max_tokens: int) -> list[Message]:
        window_tokens = int(max_tokens / BUDGET_SHARE)
        return nanobot_context.compress_messages(messages, window_tokens, MODEL)

    def count_tokens(self, message: Message) -> int:
        return count_one(message)


class CompressingInSteps:
    """A `Compressor` that sees every request of a conversation, in a window with such a budget."""

    def __call__(self, messages: list[Message], max_tokens: int) -> list[Message]:
        compress = conversation(int(max_tokens / BUDGET_SHARE))
        for end, message in enumerate(messages):
            if message["role"] == "assistant" and end > 1:
                compress(messages[:end])
        return compress(messages)


class Baseline:
    """A baseline of `future_reference.py` whose budgets are in our tokens, as for ours.

    By itself it counts four characters a token.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, messages: list[Message], max_tokens: int) -> list[Message]:
        # A copy of the script, so that the measures go on counting in their own way.
        script = load(Path(os.environ[VARIABLE], "future_reference.py"), "in_our_tokens")
        script.est_tokens = count_one  # type: ignore[attr-defined]
        result: list[Message] = script.BASELINES[self.name](messages, max_tokens)
        return result

    def count_tokens(self, message: Message) -> int:
        return count_one(message)


# The measures find a compressor by module and name, also in another process.
ours = Fitting()
without_learned = Fitting("learned")
without_relevance = Fitting("relevance")
without_outline = Fitting("outline")
without_superseded = Fitting("superseded")
without_pinning = Fitting("pinning")
without_ledger = Fitting("ledger")
without_coverage = Fitting("coverage")
without_striking = Fitting("striking")
without_all = Fitting(*MECHANISMS)
compressed_once = CompressingOnce()
in_steps = CompressingInSteps()
sliding_window = Baseline("sliding_window")
protected_window = Baseline("protected_window")
protected_truncate_window = Baseline("protected_truncate_window")


def conversation(window_tokens: int) -> Callable[[list[Message]], list[Message]]:
    """Return what compresses the requests of one conversation and remembers its decisions."""
    return nanobot_context.Compressor(window_tokens, MODEL).compress


def each_request_anew(window_tokens: int) -> Callable[[list[Message]], list[Message]]:
    """Return `fit_messages` to the same budget, which remembers nothing."""
    return lambda messages: ours(messages, int(window_tokens * BUDGET_SHARE))


def window_of_each_request(window_tokens: int) -> Callable[[list[Message]], list[Message]]:
    """Return the baseline that keeps what ours keeps, to the same budget."""
    return lambda messages: protected_window(messages, int(window_tokens * BUDGET_SHARE))
