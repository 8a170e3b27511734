"""Windows and output limits through Python. The table itself: src/window.rs."""

from __future__ import annotations

from typing import Any

import pytest

from nanobot_context import InvalidArgumentError, get_context_window, get_output_limit


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("anthropic/claude-opus-4-5", 200_000),
        ("claude-opus-4-5-20251101", 200_000),
        ("openrouter/anthropic/claude-opus-4-5", 200_000),
        ("Anthropic/Claude-Opus-4-5", 200_000),
        ("gpt-4o", 128_000),
        ("openai/gpt-4o-2024-08-06", 128_000),
        ("gpt-4", 8_192),
        ("no-such-model", 128_000),
        ("", 128_000),
    ],
)
def test_every_form_of_a_name_finds_its_window(model: str, tokens: int) -> None:
    assert get_context_window(model) == tokens
    assert get_context_window(model, None) == tokens


def test_no_model_is_an_unknown_model() -> None:
    assert get_context_window(None) == 128_000
    assert get_output_limit(None) == get_output_limit("no-such-model") > 0


@pytest.mark.parametrize("suffix", [":free", "@20251101", "-20251101"])
def test_suffixes_do_not_hide_a_model(suffix: str) -> None:
    assert get_context_window("anthropic/claude-opus-4-5" + suffix) == 200_000


@pytest.mark.parametrize("override", [0, 1, 65_536, 2**53])
def test_an_override_wins_also_when_it_is_0(override: int) -> None:
    assert get_context_window("gpt-4o", override) == override
    assert get_context_window("gpt-4o", override=override) == override


def test_an_output_limit_is_within_the_window() -> None:
    for model in ("gpt-4o", "claude-opus-4-5", "deepseek-chat", "gemini-2.5-pro", "no-such"):
        assert 0 < get_output_limit(model) <= get_context_window(model)


@pytest.mark.parametrize("model", [5, b"gpt-4o", ["gpt-4o"], "\ud800", 1.5])
@pytest.mark.parametrize("function", [get_context_window, get_output_limit])
def test_a_model_that_is_no_text_is_refused(function: Any, model: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="`model` must be a string or None") as caught:
        function(model)
    assert caught.value.argument == "model"
