"""One home of the budget: Python takes the reserve of the core, and has no sum of its own."""

from __future__ import annotations

import pytest

from nanobot_context import ContextOverflowError, Settings, compress_messages
from nanobot_context._core import reserve_tokens, window_for
from nanobot_context.guard.fitting import Fitter
from nanobot_context.guard.limits import ProviderLimits
from nanobot_context.guard.windows import WindowResolver
from nanobot_context.replay import replay
from nanobot_context.settings import LoadedSettings

SETTINGS = Settings()
RATIO = SETTINGS.context_reserve_ratio


def budget(window_tokens: int, max_output_tokens: int | None = None) -> int:
    return max(window_tokens - reserve_tokens(window_tokens, max_output_tokens, RATIO), 0)


def allowed_by_the_core(window_tokens: int) -> int:
    never_cut = [{"role": "system", "content": "a b " * 3_000}]
    with pytest.raises(ContextOverflowError) as raised:
        compress_messages(never_cut, window_tokens, "gpt-4o", settings=SETTINGS)
    return raised.value.limit_tokens


def test_the_core_the_guard_and_a_replay_have_one_budget_for_every_window() -> None:
    fitter = Fitter(
        SETTINGS, WindowResolver(LoadedSettings(SETTINGS, {}), learned=ProviderLimits())
    )
    for window in range(1, 5_001):
        expected = allowed_by_the_core(window)
        assert budget(window) == expected
        assert fitter._budget(window, None) == expected
        assert replay([], window, settings=SETTINGS).budget_tokens == expected


@pytest.mark.parametrize("output", [None, 700])
def test_the_window_for_a_prompt_is_the_smallest_that_leaves_it(output: int | None) -> None:
    for prompt in range(1, 5_001):
        window = window_for(prompt, output, RATIO)
        assert budget(window, output) >= prompt > budget(window - 1, output)
