"""`detect_overflow` through Python: texts, exceptions, chains. Every provider: tests/rust."""

from __future__ import annotations

from typing import Any

import pytest

from nanobot_context import Overflow, detect_overflow
from nanobot_context.overflow import prompt_overflow

OPENAI = (
    "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 "
    "tokens. Please reduce the length of the messages."
)
ANTHROPIC = "prompt is too long: 204857 tokens > 200000 maximum"


class ApiError(Exception):
    """An exception with the attributes that clients give theirs."""

    def __init__(self, text: str, **attributes: Any) -> None:
        super().__init__(text)
        vars(self).update(attributes)


@pytest.mark.parametrize(
    ("text", "limit", "used"), [(OPENAI, 4_096, 5_000), (ANTHROPIC, 200_000, 204_857)]
)
def test_a_text_gives_its_numbers(text: str, limit: int, used: int) -> None:
    for error in (text, ApiError(text), ApiError("Error code: 400", body={"message": text})):
        found = detect_overflow(error)
        assert found is not None
        assert (found.kind, found.limit_tokens, found.used_tokens) == ("input", limit, used)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Rate limit reached for gpt-4o: Limit 30000, Used 29000, Requested 2000.",
        "Connection reset by peer",
        "Invalid API key",
        "tokens " * 10_000,
        "\x00",
    ],
)
def test_other_errors_are_no_overflow(text: str) -> None:
    assert detect_overflow(text) is None
    assert detect_overflow(ApiError(text)) is None


def test_what_only_one_provider_means_is_told_by_its_name() -> None:
    empty = "400 status code (no body)"
    assert detect_overflow(empty) is None
    assert detect_overflow(empty, provider="openai/gpt-4o https://api.openai.com/v1") is None
    for provider in ("cerebras", "llama-3.3-70b https://api.cerebras.ai/v1"):
        assert detect_overflow(empty, provider=provider) is not None
        assert detect_overflow(ApiError(empty), provider=provider) is not None


def test_numbers_that_look_like_a_status_are_no_status() -> None:
    text = "maximum context length is 4290 tokens, however you requested 5030 tokens"
    found = detect_overflow(text)
    assert found is not None
    assert (found.limit_tokens, found.used_tokens) == (4_290, 5_030)


def test_a_cause_is_followed_and_so_is_a_context() -> None:
    for chain in ("__cause__", "__context__"):
        outer, middle = ApiError("call failed"), ApiError("request failed")
        setattr(outer, chain, middle)
        setattr(middle, chain, ApiError(OPENAI))
        found = detect_overflow(outer)
        assert found is not None
        assert found.limit_tokens == 4_096


def test_a_real_chain_is_followed() -> None:
    def call() -> None:
        try:
            raise ApiError(ANTHROPIC, status_code=400)
        except ApiError as error:
            raise RuntimeError("the model call failed") from error

    with pytest.raises(RuntimeError) as caught:
        call()
    assert detect_overflow(caught.value) == detect_overflow(ANTHROPIC)


def test_causes_are_followed_as_deep_as_a_loop_of_retries_makes_them() -> None:
    error: Exception = ApiError(OPENAI)
    for number in range(30):
        outer = ApiError(f"attempt {number} failed")
        outer.__context__ = error
        error = outer
    assert detect_overflow(error) is not None


def test_a_circle_of_causes_ends() -> None:
    first, second = ApiError("one"), ApiError("two")
    first.__cause__, second.__cause__ = second, first
    assert detect_overflow(first) is None


def test_attributes_of_other_types_do_no_harm() -> None:
    error = ApiError(OPENAI, status_code="400", code=7, type=[], llm_provider=object(), body=5)
    assert detect_overflow(error) == detect_overflow(OPENAI)
    for status in (-1, 0, 10**9, True):
        assert detect_overflow(ApiError(OPENAI, status_code=status)) is not None


def test_lone_surrogates_do_not_raise() -> None:
    assert detect_overflow("\ud800 Invalid API key") is None
    found = detect_overflow(f"{OPENAI} your text: \udc80")
    assert found is not None
    assert found.limit_tokens == 4_096
    assert detect_overflow(ApiError("quoted \ud800", code="\ud800")) is None


def test_an_exception_that_cannot_be_shown_is_no_overflow() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    assert detect_overflow(Mute()) is None


def test_overflows_compare_and_show_themselves() -> None:
    found, again = detect_overflow(OPENAI), detect_overflow(OPENAI)
    assert isinstance(found, Overflow)
    assert found == again
    assert found != detect_overflow(ANTHROPIC)
    assert repr(found) == (
        "Overflow(kind='input', limit_tokens=4096, used_tokens=5000, output_tokens=None, "
        "limit_bytes=None, limit_messages=None)"
    )
    with pytest.raises(AttributeError):
        found.kind = "output_cap"  # type: ignore[misc]


@pytest.mark.timeout(30)
def test_a_text_of_10_mb_is_read_in_time() -> None:
    repeated = detect_overflow(f"{OPENAI} " * 80_000)
    assert repeated is not None
    assert repeated.limit_tokens == 4_096
    assert detect_overflow("x" * 10_000_000) is None


@pytest.mark.parametrize(
    ("text", "helps"),
    [
        ("prompt is too long: 9000 tokens > 4000 maximum", True),
        ("Request size exceeds 32 MB: request_too_large", True),
        ("Invalid 'messages': array too long. Expected an array with maximum length 2.", True),
        ("Request too large for gpt-4o on TPM: Limit 30000, Requested 45000.", True),
        ("Rate limit reached for gpt-4o on TPM: Limit 30000, Used 29000, Requested 800.", False),
        ("max_tokens is too large: 9000. This model supports at most 4096", False),
        ("The reasoning_content in the thinking mode must be passed back to the API.", False),
    ],
)
def test_a_shorter_prompt_is_tried_where_it_may_help(text: str, helps: bool) -> None:
    assert (prompt_overflow(text) is not None) is helps


@pytest.mark.parametrize(
    "around", ["“{}”", "‘{}’", "「{}」", "字" * 20_000 + "{}", "{}" + "字" * 20_000]
)
def test_quotes_and_long_texts_of_other_scripts_hide_nothing(around: str) -> None:
    text = OPENAI.replace("'", "’")
    found = detect_overflow(around.format(text))
    assert found is not None
    assert (found.kind, found.limit_tokens, found.used_tokens) == ("input", 4_096, 5_000)
