"""Whether an error or a usage report says that a request was too large, and how large it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nanobot_context._core import MAX_WHOLE, Overflow, classify_error, classify_usage
from nanobot_context.arguments import check_instance, check_whole, invalid

# Exceptions that are looked at: clients wrap an error three or four times, and a loop that retries
# does so with each round.
_MAX_EXCEPTIONS = 64


@dataclass(frozen=True, slots=True)
class Usage:
    """The token usage that a provider reported for an answered call, with the caller's numbers.

    Attributes:
        input_tokens: Tokens of the prompt, `None` where the provider reports none.
        cache_tokens: Tokens of the prompt that went through a cache and are not in `input_tokens`
            (Anthropic, and who else reports only the rest); 0 for providers that include them.
        output_tokens: Tokens of the answer, `None` where the provider reports none.
        finish_reason: Why the answer ended, in the provider's word.
        window_tokens: The model's window; 0 where it is not known.
        counted_tokens: The caller's own count of the prompt; 0 where there is none.
    """

    input_tokens: int | None = None
    cache_tokens: int = 0
    output_tokens: int | None = None
    finish_reason: str | None = None
    window_tokens: int = 0
    counted_tokens: int = 0

    def __post_init__(self) -> None:
        check_whole("input_tokens", self.input_tokens, optional=True)
        check_whole("cache_tokens", self.cache_tokens)
        check_whole("output_tokens", self.output_tokens, optional=True)
        check_instance("finish_reason", self.finish_reason, str, optional=True)
        check_whole("window_tokens", self.window_tokens)
        check_whole("counted_tokens", self.counted_tokens)

    @classmethod
    def of(cls, response: Any, *, window_tokens: int = 0, counted_tokens: int = 0) -> Usage:
        """Read a response of OpenAI's, Anthropic's or Google's client, litellm or nanobot.

        Accepts objects and dicts; missing fields become `None`. A stream has no usage.
        """
        usage = _field(response, "usage", "usage_metadata")
        choices = _field(response, "choices", "candidates")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if _field(usage, "estimated_tokens"):
            usage = None  # nanobot 0.3.5 fills in its own estimate
        prompt = _tokens(usage, "prompt_tokens", "input_tokens", "prompt_token_count")
        details = _field(usage, "prompt_tokens_details", "input_tokens_details")
        cached = max(
            sum(_tokens(usage, name) or 0 for name in _CACHE_FIELDS),
            _tokens(usage, "cached_tokens", "prompt_cache_hit_tokens") or 0,
            _tokens(details, "cached_tokens") or 0,
        )
        return cls(
            input_tokens=prompt,
            # Of a prompt that holds them it could not be more than all.
            cache_tokens=cached if prompt is not None and cached > prompt else 0,
            output_tokens=_tokens(
                usage, "completion_tokens", "output_tokens", "candidates_token_count"
            ),
            finish_reason=_name(
                _field(choice, "finish_reason") or _field(response, "finish_reason", "stop_reason")
            ),
            window_tokens=window_tokens,
            counted_tokens=counted_tokens,
        )


# Anthropic counts these beside the prompt.
_CACHE_FIELDS = ("cache_read_input_tokens", "cache_creation_input_tokens")

CACHED_FIELDS = ("cached_tokens", "cache_read_tokens", "cache_read_input_tokens")
"""Names under which nanobot hands on what a provider read from its cache; its own since 0.1.5."""


def detect_overflow(
    error_or_text: BaseException | str | None,
    *,
    status: int | None = None,
    provider: str | None = None,
    usage: Usage | None = None,
) -> Overflow | None:
    """Return what an error says was too large, or `None` when it says something else.

    Of kind `reasoning` nothing was too large: the provider wants the model's reasoning back with
    the calls that it led to. Only errors may be passed in, never what a user, a tool or a model
    wrote: such text can quote an error. Costs a few microseconds for a text that is no overflow.

    Args:
        error_or_text: An error's text, or an exception of any client. Its text, body, status and
            code are read, and those of the exceptions that it was raised from. `None` where there
            was no error.
        status: The HTTP status, where the text does not come with it.
        provider: The provider's name, its address or the model's name: some say "400 status code
            (no body)" or a bare number for what others say in words.
        usage: What was reported of a call that was answered. It gives away an overflow of kind
            `silent`: a prompt that was cut to less than half of our count, one above the window, or
            one that filled the window and left no answer. No window has fewer than 1,024 tokens: a
            smaller report is not of what was read.

    Raises:
        InvalidArgumentError: An argument cannot be used.
    """
    if not isinstance(error_or_text, BaseException | str | None):
        raise invalid("error_or_text", "an exception, a text or None", error_or_text)
    check_whole("status", status, optional=True)
    check_instance("provider", provider, str, optional=True)
    check_instance("usage", usage, Usage, optional=True)
    if isinstance(error_or_text, str):
        found = classify_error(error_or_text, status=status, provider=_name(provider))
    else:
        errors = (_classify(error, status, provider) for error in _chain(error_or_text))
        found = next(filter(None, errors), None)
    if found is not None or usage is None:
        return found
    return classify_usage(
        input_tokens=usage.input_tokens,
        cache_tokens=usage.cache_tokens,
        output_tokens=usage.output_tokens,
        finish_reason=_name(usage.finish_reason),
        window_tokens=usage.window_tokens,
        counted_tokens=usage.counted_tokens,
    )


def prompt_overflow(error: BaseException | str) -> Overflow | None:
    """Return the overflow that a shorter prompt may repair, with nothing else changed; else `None`.

    None does where reasoning is missed, nor for a rate or a cap on the answer that the prompt is no
    part of.
    """
    overflow = detect_overflow(error)
    if overflow is None or overflow.kind == "reasoning":
        return None
    if overflow.kind in ("output_cap", "rate_ceiling"):
        limit, used = overflow.limit_tokens, overflow.used_tokens
        if limit is None or used is None or (overflow.kind == "rate_ceiling" and used <= limit):
            return None
    return overflow


def is_empty(response: Any) -> bool:
    """Return whether a response is of a known shape and holds neither text nor calls.

    A string, an object or a dict of OpenAI's, Anthropic's or Google's client, litellm or nanobot.
    """
    if response is None or (isinstance(response, str | Mapping | list) and not response):
        return True
    if isinstance(response, str):
        return response.strip() == ""
    choices = _field(response, "choices", "candidates")
    if isinstance(choices, list):
        return all(_says_nothing(_field(choice, "message", "content")) for choice in choices)
    return _says_nothing(response)


def _says_nothing(message: Any) -> bool:
    has = [name for name in _SAID if _has(message, name)]
    return bool(has) and all(_is_blank(_field(message, name)) for name in has)


def _is_blank(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_blank(part) or _says_nothing(part) for part in value)
    return value is None or (isinstance(value, str) and value.strip() == "")


def _has(value: Any, name: str) -> bool:
    return name in value if isinstance(value, Mapping) else hasattr(value, name)


# Where clients put what a model said; `parts` and `output` are lists of such.
_SAID = (
    *("content", "text", "tool_calls", "function_call", "refusal", "audio"),
    *("parts", "output", "output_text", "arguments", "input"),
)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, those that it groups, and those that it was raised from."""
    seen: list[BaseException] = []
    waiting = [error]
    while waiting and len(seen) < _MAX_EXCEPTIONS:
        current = waiting.pop(0)
        if current is None or any(current is one for one in seen):
            continue
        seen.append(current)
        yield current
        waiting += (
            getattr(current, "exceptions", ()) if isinstance(current, BaseExceptionGroup) else ()
        )
        waiting.append(current.__cause__ or current.__context__)


def _classify(error: BaseException, status: int | None, provider: str | None) -> Overflow | None:
    # What litellm, openai, anthropic, google-genai, botocore, httpx and requests give their
    # exceptions; a client that has other things under these names must not make this fail.
    response = _get(error, "response")
    known = (status, _get(error, "status_code"), _get(error, "code"), _status(response))
    fields: dict[str, Any] = {
        "status": next((one for one in known if _is_status(one)), None),
        "code": _name(_get(error, "code")),
        "error_type": _name(_get(error, "type")) or type(error).__name__,
        "provider": _name(provider) or _name(_get(error, "llm_provider")),
    }
    # The same in several forms, of which each alone says all.
    for text in dict.fromkeys((_text(error), _text(_get(error, "body")), _body(response))):
        if found := classify_error(text, **fields):
            return found
    return None


def _is_status(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1000


def _get(value: Any, name: str) -> Any:
    try:
        return getattr(value, name, None)
    except Exception:  # a property may do anything; httpx raises for a body that was not read
        return None


def _body(response: Any) -> str:
    if isinstance(response, Mapping):  # botocore
        return _text(dict(response))
    text = _get(response, "text")
    return text if isinstance(text, str) else ""


def _status(response: Any) -> Any:
    if isinstance(response, Mapping):
        metadata = response.get("ResponseMetadata")
        return metadata.get("HTTPStatusCode") if isinstance(metadata, Mapping) else None
    return _get(response, "status_code")


def _text(value: Any) -> str:
    if value is None:
        return ""
    try:
        return str(value)
    except Exception:  # an exception of a foreign class, whose `__str__` may do anything
        return ""


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and value.isascii() and value else None


def _field(value: Any, *names: str) -> Any:
    """Return the first of these fields of a dict or an object that is there."""
    for name in names:
        found = value.get(name) if isinstance(value, Mapping) else _get(value, name)
        if found is not None:
            return found
    return None


def _tokens(usage: Any, *names: str) -> int | None:
    found = _field(usage, *names)
    if not isinstance(found, int) or isinstance(found, bool):
        return None
    return found if 0 <= found <= MAX_WHOLE else None
