"""Whether an error says that a request was too large, and how large it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nanobot_context._core import Overflow, classify_error

__all__ = ["Overflow", "detect_overflow"]

# Exceptions are followed this far through `__cause__`; clients wrap an error three or four times.
_MAX_DEPTH = 8


def detect_overflow(
    error_or_text: BaseException | str, *, status: int | None = None
) -> Overflow | None:
    """Return what an error says was too large, or `None` when it says something else.

    Only errors may be passed in, never what a user, a tool or a model wrote: such text can quote an
    error. Costs a few microseconds for a text that is no overflow.

    Args:
        error_or_text: An error's text, or an exception of any client. Its text, body, status and
            code are read, and those of the exceptions that it was raised from.
        status: The HTTP status, where the text does not come with it.
    """
    if isinstance(error_or_text, str):
        return classify_error(error_or_text, status=status)
    for error in _chain(error_or_text):
        found = _classify(error, status)
        if found is not None:
            return found
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and len(seen) < _MAX_DEPTH and current not in seen:
        seen.append(current)
        yield current
        current = current.__cause__ or current.__context__


def _classify(error: BaseException, status: int | None) -> Overflow | None:
    # The attributes that litellm, openai, anthropic and httpx give their exceptions; a client that
    # has other things under these names must not make this fail.
    text = f"{_text(error)}\n{_text(getattr(error, 'body', None))}"
    known = getattr(error, "status_code", None)
    return classify_error(
        text,
        status=status or (known if isinstance(known, int) and 0 < known < 1000 else None),
        code=_name(getattr(error, "code", None)),
        error_type=_name(getattr(error, "type", None)) or type(error).__name__,
        provider=_name(getattr(error, "llm_provider", None)),
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    try:
        return str(value)
    except Exception:  # an exception of a foreign class, whose `__str__` may do anything
        return ""


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and value.isascii() and value else None
