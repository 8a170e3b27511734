"""Makes summaries: drives the core's state machine with a caller's model, or does without one."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Literal

from nanobot_context._core import SummaryDraft, SummaryPolicy, SummaryRun
from nanobot_context.arguments import (
    as_json,
    check_callable,
    check_choice,
    check_instance,
    check_timeout,
    text_of,
)
from nanobot_context.overflow import prompt_overflow
from nanobot_context.summary.record import Summary, SummaryEvent, SummaryRequest
from nanobot_context.types import Message

logger = logging.getLogger("nanobot_context")

Answer = str | Iterator[str] | AsyncIterator[str] | Awaitable[str | AsyncIterator[str]]

# Characters of a summary that a user interface is shown at its end. Source: document 003's server.
_PREVIEW_CHARS = 800


class Summarizer:
    """Makes summaries of conversations with a model, or by rules alone.

    `call` is how the model is asked: a function of a `SummaryRequest` that returns the text, or an
    iterator of its pieces, plain or async. An exception that says that the request was too long
    makes it ask for halves; any other one, an empty answer or the timeout ends in the summary that
    is written by rules, with the error in it. Whoever wrote the text: rules of the user and exact
    names that it dropped are added back.

    Args:
        call: Asks the model; `None` for summaries by rules.
        policy: How hard to try.
        format: "text", or "structured": decisions, constraints, open questions, changed files and
            context, merged from one summary to the next.
        prompt: A prompt in place of the documents', with `{conversation_text}` and, if wanted,
            `{max_summary_words}` and `{previous_summary}`.
        max_words: Words that the prompt asks for; `None` for the documents' 200, 500 characters of
            Chinese, Japanese and Korean.
        model: The model, for its tokens and for `SummaryRequest`.
        window_tokens: The model's window; what is longer is summarised in chunks. `None`: the first
            refusal says it.
        max_result_tokens: Tokens of a tool result that the model is shown, shortened by its content
            with marks; 0 for all of it.
        timeout_seconds: Seconds for all calls of one summary together; `None` for no limit.
        on_event: Called with each `SummaryEvent`, in the thread or task that makes the summary.

    Raises:
        InvalidArgumentError: An argument cannot be used, a placeholder is unknown.
    """

    def __init__(
        self,
        call: Callable[[SummaryRequest], Answer] | None = None,
        *,
        policy: SummaryPolicy | None = None,
        format: Literal["text", "structured"] = "text",
        prompt: str | None = None,
        max_words: int | None = None,
        model: str | None = None,
        window_tokens: int | None = None,
        max_result_tokens: int | None = None,
        timeout_seconds: float | None = 30.0,
        on_event: Callable[[SummaryEvent], None] | None = None,
    ) -> None:
        check_callable("call", call)
        check_callable("on_event", on_event)
        check_instance("policy", policy, SummaryPolicy, optional=True)
        check_choice("format", format, ("text", "structured"))
        if prompt is not None:
            text_of("prompt", prompt)
        check_timeout(timeout_seconds)
        self._call = call
        self.timeout_seconds = timeout_seconds
        self._on_event = on_event
        self.model = model
        self.policy = policy or SummaryPolicy()
        self._options: dict[str, Any] = {
            "model": model,
            "policy": self.policy,
            "format": format,
            "prompt": prompt,
            "max_words": max_words,
            "window_tokens": window_tokens,
            "max_result_tokens": max_result_tokens,
        }
        SummaryRun([], **self._options)  # what cannot be used is said here, not with the first job

    @property
    def made_with(self) -> dict[str, Any]:
        """How it makes summaries, as JSON values: `temperature` and `target_tokens`."""
        return {
            "temperature": self.policy.temperature,
            "target_tokens": self.policy.target_tokens,
        }

    def summarize(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        previous: Summary | None = None,
        reason: str = "force",
    ) -> Summary:
        """Return a summary of `previous` and of the `messages` behind it.

        A model that hangs is left behind after the timeout, in a thread of its own.

        Raises:
            InvalidMessageError: A message is of a shape that no provider accepts.
        """
        job = self._start(messages, previous, reason)
        job.report("started")
        deadline = None if self.timeout_seconds is None else time.monotonic() + self.timeout_seconds
        while (request := job.next_request()) is not None:
            with job.asking():
                job.run.answered(_within(deadline, self._ask, request, job))
        return job.ended(job.run.finish())

    async def asummarize(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        previous: Summary | None = None,
        reason: str = "force",
    ) -> Summary:
        """As `summarize`, in a task; a plain `call` runs in a thread.

        Raises:
            InvalidMessageError: A message is of a shape that no provider accepts.
            asyncio.CancelledError: The task was cancelled; nothing is returned of the summary.
        """
        # Long conversations are read and counted for half a second: not in the event loop.
        job = await asyncio.to_thread(self._start, list(messages), previous, reason)
        job.report("started")
        loop = asyncio.get_running_loop()
        deadline = None if self.timeout_seconds is None else loop.time() + self.timeout_seconds
        while (request := await asyncio.to_thread(job.next_request)) is not None:
            with job.asking():
                async with asyncio.timeout_at(deadline):
                    job.run.answered(await self._aask(request, job))
        return job.ended(await asyncio.to_thread(job.run.finish))

    def _start(
        self, messages: Sequence[Mapping[str, Any]], previous: Summary | None, reason: str
    ) -> _Job:
        check_instance("previous", previous, Summary, optional=True)
        check_instance("reason", reason, str)
        data = previous.data if previous else None
        run = SummaryRun(
            messages,
            previous=previous.text if previous else None,
            previous_data=None if data is None else as_json("previous.data", data),
            **self._options,
        )
        if self._call is None:
            run.by_rules()
        return _Job(run, len(messages), previous, reason, self.model, self._on_event)

    def _ask(self, request: SummaryRequest, job: _Job) -> str:
        assert self._call is not None
        answer = self._call(request)
        if isinstance(answer, str):
            return answer
        if isinstance(answer, Iterator):
            return "".join(job.streamed(piece, request) for piece in answer)
        if inspect.iscoroutine(answer):
            answer.close()
        raise TypeError(f"`call` must return a text, got `{type(answer).__name__}`")

    async def _aask(self, request: SummaryRequest, job: _Job) -> str:
        assert self._call is not None
        if inspect.iscoroutinefunction(self._call) or inspect.isasyncgenfunction(self._call):
            answer: Any = self._call(request)
        else:
            answer = await asyncio.to_thread(self._call, request)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, AsyncIterator):
            return "".join([job.streamed(piece, request) async for piece in answer])
        if isinstance(answer, Iterator):
            return await asyncio.to_thread(
                lambda: "".join(job.streamed(piece, request) for piece in answer)
            )
        if not isinstance(answer, str):
            raise TypeError(f"`call` must return a text, got `{type(answer).__name__}`")
        return answer


@dataclass(slots=True)
class _Job:
    """One summary in the making."""

    run: SummaryRun
    messages: int
    previous: Summary | None
    reason: str
    model: str | None
    on_event: Callable[[SummaryEvent], None] | None

    def next_request(self) -> SummaryRequest | None:
        call = self.run.next_call()
        if call is None:
            return None
        prompt: list[Message] = [{"role": role, "content": text} for role, text in call.messages]
        return SummaryRequest(prompt, call.max_tokens, call.temperature, self.model, call.depth)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Tell the run how a call of the model failed, if it did."""
        try:
            yield
        except Exception as error:
            if isinstance(error, TimeoutError) and not str(error):
                self.run.failed("the model did not answer in time")
            elif overflow := prompt_overflow(error):
                self.run.refused(overflow.limit_tokens)
            else:
                self.run.failed(f"{type(error).__name__}: {error}")

    def streamed(self, piece: str, request: SummaryRequest) -> str:
        if not isinstance(piece, str):
            raise TypeError(f"`call` must yield texts, got `{type(piece).__name__}`")
        if request.depth == 0:
            self.report("text", text=piece)
        return piece

    def ended(self, draft: SummaryDraft) -> Summary:
        """Return the summary that was drafted, and report it."""
        previous = self.previous
        summary = Summary(
            text=draft.text,
            covers=(previous.covers if previous else 0) + self.messages,
            version=(previous.version if previous else 0) + 1,
            made_by="model" if draft.by_model else "local",
            data=json.loads(draft.data),
            error=draft.error,
            reason=self.reason,
            model=self.model if draft.by_model else None,
            prompt=draft.prompt if draft.by_model else None,
            truncated=draft.truncated,
            chunks=draft.chunks,
            max_depth=draft.max_depth,
            input_tokens=draft.input_tokens,
            output_tokens=draft.output_tokens,
        )
        if summary.error is not None:
            self.report("failed", error=summary.error)
        self.report("ended", text=summary.text[:_PREVIEW_CHARS], summary=summary)
        return summary

    def report(self, kind: Literal["started", "text", "failed", "ended"], **more: Any) -> None:
        if self.on_event is None:
            return
        trigger = _TRIGGERS.get(self.reason, "proactive")
        event = SummaryEvent(kind, trigger, self.reason, self.messages, **more)
        try:
            self.on_event(event)
        except Exception:
            logger.exception("`on_event` failed for a summary that has %s", kind)


_TRIGGERS = {"overflow_retry": "overflow_retry", "force": "manual"}


def _within(deadline: float | None, work: Callable[..., str], *args: Any) -> str:
    """Return what `work` returns, or raise `TimeoutError` when it takes longer.

    A thread cannot be stopped; a later result is dropped.
    """
    if deadline is None:
        return work(*args)
    outcome: list[str] = []
    failure: list[BaseException] = []
    context = copy_context()

    def run() -> None:
        try:
            outcome.append(context.run(work, *args))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, name="nanobot-context-summary", daemon=True)
    thread.start()
    thread.join(max(deadline - time.monotonic(), 0))
    if thread.is_alive():
        raise TimeoutError
    if failure:
        raise failure[0]
    return outcome[0]
