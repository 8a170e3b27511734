"""A model call of any program that gets through: made to fit, repaired where it is refused.

What a refusal teaches holds for the calls that follow, by model and address.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from nanobot_context._core import Overflow, token_bound
from nanobot_context.arguments import (
    check_callable,
    check_instance,
    check_messages,
    check_whole,
    invalid,
)
from nanobot_context.errors import ContextOverflowError
from nanobot_context.guard.exchange import Exchange
from nanobot_context.guard.fitting import Fitter
from nanobot_context.guard.limits import name_of
from nanobot_context.guard.request import Request
from nanobot_context.guard.shared import shared_telemetry, shared_windows
from nanobot_context.guard.windows import Window
from nanobot_context.own_form import Compressor, own_form
from nanobot_context.recovery import Attempt, GaveUp, Refused, recover, run_unawaited
from nanobot_context.settings import Settings

if TYPE_CHECKING:
    from nanobot_context.archive import Archive
    from nanobot_context.types import Message
    from nanobot_context.wire.forms.form import Form

Response = TypeVar("Response")

_log = logging.getLogger("nanobot_context")


@dataclass(frozen=True, slots=True)
class _Fitter(Fitter):
    """Makes one call fit, with the archive or the compressor that it names."""

    archive: Archive | None = None
    compressor: Compressor | None = None

    def archive_of(self, request: Request) -> Archive | None:
        return self.archive

    def compressed(
        self, request: Request, window: Window, max_tokens: int | None
    ) -> tuple[list[Message], int]:
        """Compress as `compress_messages` does; raise where the result would not fit.

        A window that nobody stated refuses nothing: only the provider knows.
        """
        try:
            return self._compressed(request, window, max_tokens), 0
        except ContextOverflowError as floor:
            if not window.is_assumed:
                raise
            return self._smallest(request, floor), 0

    def _compressed(
        self, request: Request, window: Window, max_tokens: int | None
    ) -> list[Message]:
        given, compressor = request.messages, self.compressor
        if compressor is None:
            return self.compressed_to(request, given, window.tokens, max_tokens)
        messages = compressor.compress(
            given,
            context_window=window.tokens,
            max_output_tokens=max_tokens,
            message_overhead_tokens=self.overhead_tokens(request) or None,
        )
        request.trace.shortened(given, compressor.receipt)
        return messages


@dataclass(slots=True)
class _Call(Exchange):
    """The exchange of `call_with_recovery`."""

    on_overflow: Callable[[Overflow], None] | None = None

    def refused(self, refused: Refused, attempt: Attempt) -> None:
        super(_Call, self).refused(refused, attempt)
        if self.on_overflow is not None:
            try:
                self.on_overflow(refused.overflow)
            except Exception:
                # Who listens must not cost the call.
                _log.exception("`on_overflow` failed")


async def call_with_recovery(
    chat: Callable[..., Awaitable[Response]],
    messages: Sequence[Mapping[str, Any]],
    *,
    context_window: int | None = None,
    model: str | None = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    max_output_tokens: int | None = None,
    settings: Settings | None = None,
    archive: Archive | None = None,
    compressor: Compressor | None = None,
    on_overflow: Callable[[Overflow], None] | None = None,
    endpoint: str = "",
) -> Response:
    """Return what `chat` answers to `messages`, which are made to fit and sent smaller if refused.

    The messages are compressed as `compress_messages` does. When the provider refuses them as too
    long, by an exception or by the usage that it reports, they are compressed to the limit that it
    states, or else to 60 % of what was refused; each attempt is smaller than the one before, and
    after three there is no other. A stated limit counts from 256 tokens on. An output cap lowers
    `max_tokens` only, and so does a sum of prompt and answer that leaves room for a short answer.
    What the provider states holds for later calls of this process (with nanobot beside it, of all
    processes) to the same model and `endpoint` for a day: the same overflow is not sent twice.
    System messages, the last message of the user, the user's rules and the newest calls stay in
    each attempt. A provider that wants the model's reasoning back gets it, with nothing cut.
    Where a prompt that was cut in silence is sent again and comes back empty, the first answer is
    returned. Everything else that `chat` returns or raises comes back as it is. Calls no model but
    through `chat`; the list that came in is not changed.

    Args:
        chat: The call of the model: `await chat(messages, max_tokens=...)`, where `max_tokens` is
            the limit for the answer, `None` for none. Of a function that is not async, what it
            returns is the answer; other tasks wait while it runs. A stream must be read to its
            first piece inside, or else its refusal comes too late.
        messages: The conversation.
        context_window: The model's window in tokens: see `get_context_window`. 0 where it is not
            known: then only a refusal shortens anything. `None` is that of `compressor`, or else
            what is known of `model`. A smaller one that the provider has stated counts.
        model: The model that tokens are counted for.
        tools: The tool schemas that `chat` sends along, for they count.
        max_output_tokens: The limit for the answer.
        settings: Limits of the compression.
        archive: Where originals of shortened tool results are kept.
        compressor: Compresses in place of `compress_messages`, with its own settings and archive:
            that of the conversation, which keeps its prefix steady.
        on_overflow: Called for each refusal with what the provider said. What it raises is logged.
        endpoint: The address that `chat` sends to, where several serve a model of that name.

    Raises:
        ContextOverflowError: What must stay is larger than the window, or nothing that is small
            enough was accepted.
        InvalidMessageError: A message is of a shape that cannot be counted; nothing was sent.
        InvalidArgumentError: Another argument cannot be used.
    """
    if not callable(chat):
        raise invalid("chat", "callable", chat)
    if _yields(chat):
        raise invalid("chat", "a function that returns its answer, none that yields", chat)
    check_instance("compressor", compressor, Compressor, optional=True)
    if context_window is None:
        if compressor is not None:
            context_window = compressor.context_window
        elif model is None:
            problem = "a whole number, where there is no `compressor` and no `model`"
            raise invalid("context_window", problem, None)
    check_whole("context_window", context_window, optional=True)
    check_whole("max_output_tokens", max_output_tokens, optional=True)
    check_callable("on_overflow", on_overflow)
    check_instance("settings", settings, Settings, optional=True)
    given: list[Message] = check_messages("messages", messages)
    schemas = cast("list[dict[str, Any]] | None", tools)
    for index, tool in enumerate(tools if isinstance(tools, list) else ()):
        check_instance(f"tools[{index}]", tool, dict)
    if model is None and compressor is not None:
        model = compressor.model
    token_bound([], model, tools=tools)  # what cannot be used is said before anything is paid for
    check_instance("endpoint", endpoint, str)
    settings = settings or Settings()
    # Of a call that names nothing there is nothing to learn: it may be of any model.
    windows = shared_windows(settings, context_window, is_named=bool(model or endpoint))
    if context_window == 0 and (stated := windows.learned.window_of(name_of(model, endpoint))):
        windows = shared_windows(settings, stated[0])
    fitter = _Fitter(settings, windows, archive=archive, compressor=compressor)
    form = own_form(given)
    request = Request(
        form.messages if form else given,
        schemas,
        model,
        max_output_tokens,
        _sender(chat, form),
        endpoint=endpoint,
    )
    first, _ = fitter.first(request)
    request.trace.session = "call_with_recovery"
    telemetry = shared_telemetry()
    call = _Call(fitter, telemetry, request, on_overflow=on_overflow)
    try:
        answer: Response = await recover(
            call,
            first,
            model=model,
            emergency_ratio=settings.emergency_ratio,
        )
    except GaveUp as gave_up:
        if not gave_up.answer_stands:
            error = gave_up.overflow_error(model)
            telemetry.gave_up(request, error)
            raise error from gave_up.refused.refusal
        answer = gave_up.refused.hand_on()
    finally:
        telemetry.ended(request, fitter)
    return answer


def _sender(
    chat: Callable[..., Any], form: Form | None
) -> Callable[[list[Message], int | None], Awaitable[Any]]:
    async def send(messages: list[Message], max_tokens: int | None) -> Any:
        if form is not None:
            messages = form.written(messages)
        try:
            response = chat(messages, max_tokens=max_tokens)
            # What a function that is not async answers is paid for, too.
            return await response if inspect.isawaitable(response) else response
        except StopIteration as error:
            raise RuntimeError(
                "`chat` raised StopIteration, which no coroutine can hand on\n"
                "hint: `call_with_recovery_sync` does"
            ) from error

    return send


def _yields(chat: object) -> bool:
    """Return whether a call would only make a generator, which nothing has been sent for."""
    function = chat if inspect.isroutine(chat) else getattr(chat, "__call__", chat)  # noqa: B004
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


class _Stopped(Exception):
    """`chat` raised `StopIteration`, which no coroutine may."""

    def __init__(self, error: StopIteration) -> None:
        super().__init__(str(error))
        self.error = error


def call_with_recovery_sync(
    chat: Callable[..., Response],
    messages: Sequence[Mapping[str, Any]],
    *,
    context_window: int | None = None,
    model: str | None = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    max_output_tokens: int | None = None,
    settings: Settings | None = None,
    archive: Archive | None = None,
    compressor: Compressor | None = None,
    on_overflow: Callable[[Overflow], None] | None = None,
    endpoint: str = "",
) -> Response:
    """Return what `chat`, which is not async, answers: as `call_with_recovery` does.

    Raises:
        ContextOverflowError: What must stay is larger than the window, or nothing that is small
            enough was accepted.
        InvalidMessageError: A message is of a shape that cannot be counted; nothing was sent.
        InvalidArgumentError: Another argument cannot be used; `chat` is async, for one.
    """

    def asked(sent: list[Message], *, max_tokens: int | None) -> Response:
        try:
            answer = chat(sent, max_tokens=max_tokens)
        except StopIteration as error:
            raise _Stopped(error) from error
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            raise invalid("chat", "a function that is not async", chat)
        return answer

    if inspect.iscoroutinefunction(chat):
        raise invalid("chat", "a function that is not async", chat)
    call = call_with_recovery(
        cast("Any", asked if callable(chat) and not _yields(chat) else chat),
        messages,
        context_window=context_window,
        model=model,
        tools=tools,
        max_output_tokens=max_output_tokens,
        settings=settings,
        archive=archive,
        compressor=compressor,
        on_overflow=on_overflow,
        endpoint=endpoint,
    )
    try:
        answer: Response = run_unawaited(call)
    except _Stopped as stopped:
        raise stopped.error from None
    return answer
