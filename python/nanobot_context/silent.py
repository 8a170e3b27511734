"""Judges from the reported prompt size whether a prompt was cut in silence."""

from __future__ import annotations

from nanobot_context._core import Overflow
from nanobot_context.overflow import Usage

# A text has seldom fewer than three bytes a token, and a prompt that was cut has lost half of it:
# see `detect_silent` of the core.
_BYTES_READ = 6


def says_nothing(read_tokens: int, bound: int | None, window_tokens: int) -> bool:
    """Return whether a prompt of at most `bound` tokens fits, given how many a provider read.

    Up to half the window it does, however the provider counts. `window_tokens` is 0 where that is
    not known, and `bound` `None` where none decides.
    """
    most = read_tokens * _BYTES_READ
    return bound is not None and bound <= min(most, window_tokens // 2 or most)


def is_answer(usage: Usage, overflow: Overflow) -> bool:
    """Return whether a prompt that seemed cut silently was read whole and answered.

    Then the provider counts more than we do, or its window is larger than we think.
    """
    return bool(usage.output_tokens) and overflow.limit_tokens == usage.window_tokens
