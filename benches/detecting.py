"""Looking for an overflow in errors that are none, against LiteLLM's own check."""

from __future__ import annotations

from collections.abc import Callable

from litellm.litellm_core_utils.exception_mapping_utils import ExceptionCheckers

from measure import Report, cpu_ns, median
from nanobot_context import detect_overflow

TARGET_US = 5.0
CALLS = 2_000

# Errors of everyday, short and long; each speaks of tokens, prompts or lengths where it can.
ERRORS = {
    "rate limit": (
        "Error code: 429 - {'error': {'message': 'Rate limit reached for gpt-4o in organization "
        "org-x on tokens per min (TPM): Limit 30000, Used 29500, Requested 900. Please try again "
        "in 800ms.', 'type': 'tokens', 'code': 'rate_limit_exceeded'}}"
    ),
    "server error": "Error code: 500 - {'error': {'message': 'The server had an error'}}",
    "bad key": (
        "litellm.AuthenticationError: OpenAIException - Incorrect API key provided: sk-x. You can "
        "find your API key at https://platform.openai.com/account/api-keys."
    ),
    "tool pairing": (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. The following tool_call_ids did not have response messages: call_1"
    ),
    "unsupported": "Unsupported parameter: 'max_tokens' is not supported with this model.",
    "timeout": "Request timed out.",
    "gateway page, 20 kB": "<html><body>" + "<p>Bad gateway</p>\n" * 1_000 + "</body></html>",
}


def errors(report: Report, *, repetitions: int) -> None:
    """One look at an error that is no overflow."""
    report.title("An error that is no overflow")
    rows = []
    slowest = 0.0
    for name, text in ERRORS.items():
        assert detect_overflow(text) is None
        ours = _microseconds(lambda text=text: detect_overflow(text), repetitions)  # type: ignore[misc]
        theirs = _microseconds(
            lambda text=text: ExceptionCheckers.is_error_str_context_window_exceeded(text),  # type: ignore[misc]
            repetitions,
        )
        slowest = max(slowest, ours)
        rows.append((name, f"{ours:.2f} µs", f"{theirs:.2f} µs", f"{theirs / ours:.1f} x"))
    report.table(("", "detect_overflow", "LiteLLM's check", "ratio"), rows)
    report.target(
        f"an error that is no overflow under {TARGET_US:.0f} µs ({slowest:.2f} µs)",
        slowest < TARGET_US,
    )


def _microseconds(look: Callable[[], object], repetitions: int) -> float:
    def many() -> None:
        for _ in range(CALLS):
            look()

    return median(cpu_ns(many) / CALLS / 1_000 for _ in range(repetitions))
