"""LiteLLM: its completions, and a callback for its proxy and its router.

In the proxy's `config.yaml`; the second repairs a request that was refused, with what it taught:

litellm_settings: {callbacks: nanobot_context.adapters.litellm.fit_context}
router_settings: {retry_policy: {BadRequestErrorRetries: 1}}
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NoReturn

import litellm
from litellm.integrations.custom_logger import CustomLogger

from nanobot_context.calls import call_with_recovery, call_with_recovery_sync
from nanobot_context.guard.exchange import Exchange
from nanobot_context.guard.fuse import fused
from nanobot_context.guard.request import Request
from nanobot_context.recovery import Attempt
from nanobot_context.settings import Settings
from nanobot_context.types import Message
from nanobot_context.wire.exchange import Protection, request_of
from nanobot_context.wire.forms import form_of
from nanobot_context.wire.forms.form import Form
from nanobot_context.wire.streams import holds_roles_alone

__all__ = ["FitContext", "acompletion", "completion", "fit_context"]


class FitContext(CustomLogger):  # type: ignore[misc]
    """Makes each request fit that LiteLLM's proxy sends, and its router with `acompletion`.

    Of a call that is not async LiteLLM tells no callback in time: there `completion` is the way.

    It learns from refusals and from the usage of answers. A callback cannot send a request again:
    LiteLLM does, where its `retry_policy` says so.

    Args:
        context_window: The window of every model in tokens; `None` is what is known of each.
        settings: Limits of the compression.
    """

    def __init__(
        self, *, context_window: int | None = None, settings: Settings | None = None
    ) -> None:
        super().__init__()
        self._protection = Protection.by(settings or Settings(), context_window)

    async def async_pre_call_deployment_hook(
        self, kwargs: dict[str, Any], call_type: Any
    ) -> dict[str, Any] | None:
        """Return the arguments of a call with messages that fit."""

        def fitted() -> dict[str, Any] | None:
            form = _form(kwargs, call_type)
            if form is None:
                return None
            attempt, _ = self._protection.fitter.first(_request(form))
            return form.replaced(attempt.messages, attempt.max_tokens)

        changed: dict[str, Any] | None = fused("compress a request", fitted, None)
        return changed

    async def async_post_call_failure_deployment_hook(
        self,
        request_data: Mapping[str, Any],
        exception: Exception,
        call_type: Any,
        fallback_depth: int | None = None,
    ) -> None:
        """Learn from a refusal."""

        def learn() -> None:
            form = _form(dict(request_data), call_type)
            if form is not None:
                self._exchange(form).failed(Attempt(form.messages, form.max_tokens), exception)

        fused("learn from a refusal", learn, None)

    async def async_post_call_success_deployment_hook(
        self, request_data: dict[str, Any], response: Any, call_type: Any
    ) -> None:
        """Learn from the usage of an answer."""

        def learn() -> None:
            form = _form(request_data, call_type)
            if form is not None:
                self._exchange(form).learn(Attempt(form.messages, form.max_tokens), response)

        fused("learn from an answer", learn, None)

    def _exchange(self, form: Form) -> Exchange:
        return Exchange(self._protection.fitter, self._protection.telemetry, _request(form))


fit_context = FitContext()
"""The callback with the settings that it has by itself."""


async def acompletion(
    model: str,
    messages: list[Message],
    *,
    context_window: int | None = None,
    settings: Settings | None = None,
    **options: Any,
) -> Any:
    """Return what `litellm.acompletion` answers to messages that fit: see `call_with_recovery`.

    Args:
        model: The model, as LiteLLM names it.
        messages: The conversation. It is not changed.
        context_window: The model's window in tokens; `None` is what is known of it.
        settings: Limits of the compression.
        **options: Whatever `litellm.acompletion` takes.
    """
    name, known = _known(options)

    async def send(given: list[Message], max_tokens: int | None) -> Any:
        limit = {} if max_tokens is None else {name: max_tokens}
        answer = await litellm.acompletion(model=model, messages=given, **{**options, **limit})
        if not options.get("stream"):
            return answer
        pieces = aiter(answer)
        read: list[Any] = []
        while not _has_begun(read):
            read.append(await anext(pieces, None))
        return _again(answer, read)

    return await call_with_recovery(
        send, messages, context_window=context_window, model=model, settings=settings, **known
    )


def completion(
    model: str,
    messages: list[Message],
    *,
    context_window: int | None = None,
    settings: Settings | None = None,
    **options: Any,
) -> Any:
    """Return what `litellm.completion` answers: as `acompletion` does."""
    name, known = _known(options)

    def send(given: list[Message], max_tokens: int | None) -> Any:
        limit = {} if max_tokens is None else {name: max_tokens}
        answer = litellm.completion(model=model, messages=given, **{**options, **limit})
        if not options.get("stream"):
            return answer
        pieces = iter(answer)
        read: list[Any] = []
        while not _has_begun(read):
            read.append(next(pieces, None))
        return _again(answer, read)

    return call_with_recovery_sync(
        send, messages, context_window=context_window, model=model, settings=settings, **known
    )


def _has_begun(read: list[Any]) -> bool:
    """Return whether the pieces of a stream, or its end, say that the request was not refused."""
    return bool(read) and (
        read[-1] is None or not holds_roles_alone(read[-1].model_dump()["choices"])
    )


def _again(stream: Any, read: list[Any]) -> Any:
    """Return a stream of LiteLLM's that begins anew with what has been read of it."""
    kind: Any = type(stream)
    stream.__class__ = _begun_class(kind)
    stream.nanobot_context_read = [piece for piece in reversed(read) if piece is not None]
    return stream


@cache
def _begun_class(base: Any) -> Any:
    class Begun(base):  # type: ignore[misc]
        nanobot_context_read: list[Any]

        def __next__(self) -> Any:
            read = self.nanobot_context_read
            return read.pop() if read else super().__next__()

        async def __anext__(self) -> Any:
            read = self.nanobot_context_read
            return read.pop() if read else await super().__anext__()

    Begun.__name__ = base.__name__
    return Begun


def _known(options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of the limit for the answer, and what else a call says of itself."""
    name = "max_completion_tokens" if "max_completion_tokens" in options else "max_tokens"
    return name, {
        "tools": options.get("tools"),
        "max_output_tokens": options.get(name),
        "endpoint": str(options.get("api_base") or options.get("base_url") or ""),
    }


# What LiteLLM calls the three APIs.
_PATHS = {
    **{"completion": "/chat/completions", "acompletion": "/chat/completions"},
    **{"responses": "/responses", "aresponses": "/responses"},
    **{"anthropic_messages": "/messages"},
}


def _form(kwargs: dict[str, Any], call_type: Any) -> Form | None:
    path = _PATHS.get(str(getattr(call_type, "value", call_type)))
    return form_of(path, kwargs) if path else None


def _request(form: Form) -> Request:
    return request_of(form, _sends_nothing, str(form.body.get("api_base") or ""))


async def _sends_nothing(messages: list[Message], max_tokens: int | None) -> NoReturn:
    raise AssertionError("LiteLLM sends its requests")
