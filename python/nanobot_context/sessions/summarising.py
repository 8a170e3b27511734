"""Makes the summaries of a session service, and the contexts that a model is shown."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from nanobot_context._core import (
    Overflow,
    SessionStoreHandle,
    SummaryPolicy,
    count_tokens,
    filter_key_belongs,
)
from nanobot_context.arguments import check_choice, check_flag, invalid, text_of
from nanobot_context.errors import ContextOverflowError, SessionGoneError
from nanobot_context.history import assemble_history
from nanobot_context.overflow import prompt_overflow
from nanobot_context.responses import to_response_items
from nanobot_context.sessions.operations import (
    Events,
    Messages,
    Operation,
    SessionOperations,
    Summarise,
    check_session,
)
from nanobot_context.sessions.records import (
    SessionEvent,
    SessionHead,
    SessionSummary,
    StoredSession,
    not_found,
)
from nanobot_context.summary import Limits, Summarizer, Summary, When
from nanobot_context.summary.policies import All
from nanobot_context.types import Message

Due = tuple[StoredSession, SessionSummary | None, Events, str]


class Operations(SessionOperations):
    """All operations on the sessions of one store.

    Attributes:
        policy: Whether anything is summarised without being asked to.
        when: When a summary is due, by the messages that no summary covers.
        placeholder: Whether an event is stored where a summary was made.
    """

    def __init__(
        self,
        handle: SessionStoreHandle,
        summarizer: Summarizer | None,
        policy: SummaryPolicy,
        when: When,
        *,
        placeholder: bool,
        user_first: str,
    ) -> None:
        super().__init__(handle, user_first)
        self.summarizer = summarizer
        self.policy, self.when, self.placeholder = policy, when, placeholder

    def summary_text(self, session: SessionHead, key: str) -> Operation[str | None]:
        text_of("key", key)
        newest = yield from self._newest_summary(session, key)
        return newest.text if newest else None

    def _newest_summary(self, session: SessionHead, key: str) -> Operation[SessionSummary | None]:
        """The newest of the key, else of all contents; none of an earlier generation is left."""
        for wanted in dict.fromkeys((key, "")):
            found = yield from self.summaries(session, wanted, last=1)
            if found:
                return found[0]
        return None

    def summarize(
        self,
        session: SessionHead,
        key: str,
        force: bool,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Operation[SessionSummary | None]:
        """Summarise a branch and all contents; one call of the model where they are the same.

        Stores nothing if `is_wanted` is false once the model has answered.
        """
        check_session(session)
        text_of("key", key)
        check_flag("force", force)
        cause = "force" if force else "proactive"
        return (yield from self._summarize(session, key, cause, is_wanted, is_whole=force))

    def _summarize(
        self,
        session: SessionHead,
        key: str,
        cause: str,
        is_wanted: Callable[[], bool],
        *,
        is_whole: bool = False,
    ) -> Operation[SessionSummary | None]:
        """Summarise for a `cause`; what waits for its answer stays unless it `is_whole`."""
        made = yield from self._summarize_one(session, key, cause, is_wanted, is_whole)
        if key and is_wanted():
            whole = yield from self._copy_of_only_branch(session, key, made)
            if not whole:
                yield from self._summarize_one(session, "", cause, is_wanted, is_whole)
        if made is None and cause == "force" and self.summarizer and is_wanted():
            # Nothing was new: another job was first, such as that of the turn that has just ended.
            standing = yield from self.summaries(session, key, links=True, last=1)
            made = standing[0] if standing else None
        return made

    def _summarize_one(
        self,
        head: SessionHead,
        key: str,
        cause: str,
        is_wanted: Callable[[], bool],
        is_whole: bool,
    ) -> Operation[SessionSummary | None]:
        # Once more where another writer's summary came in between; by then it is mostly not due.
        for _ in range(2):
            due = yield from self._due(head, key, cause, is_whole)
            if due is None:
                return None
            session, newest, events, reason = due
            messages = [event.payload for event in events]
            previous = newest.summary if newest else None
            summary: Summary = yield Summarise(messages, previous, reason)
            if not is_wanted():
                return None
            if summary.error is not None:
                yield from self._put(session, key, newest, events, summary, failed=True)
            outcome, version = yield from self._put(session, key, newest, events, summary)
            if outcome == "accepted":
                return (yield from self._stored(session, key, version))
            if outcome == "gone":
                raise SessionGoneError(
                    f"session `{'/'.join(session.key)}` was deleted while it was summarised",
                    retry="after_reading",
                )
        return None

    def _stored(
        self, session: SessionHead, key: str, version: int
    ) -> Operation[SessionSummary | None]:
        """The summary of this version: the newest, unless another writer has gone on from it."""
        for last in (1, None):
            found = yield from self.summaries(session, key, links=True, last=last)
            if made := next((one for one in found if one.version == version), None):
                return made
        return None

    def _due(
        self, head: SessionHead, key: str, cause: str, is_whole: bool
    ) -> Operation[Due | None]:
        if self.summarizer is None:
            return None
        # Its boundary first, so that no more than what is new is read.
        newest = yield from self.summaries(head, key, last=1)
        after = newest[0].last_seq if newest else 0
        session = yield from self.get(*head.key, after=after, user_first="off")
        if session is None:
            raise not_found(head)
        if session.generation != head.generation:
            raise SessionGoneError(
                f"session `{'/'.join(head.key)}` was created anew", retry="after_reading"
            )
        summary = session.summaries.get(key)
        if summary and summary.last_seq > after:
            session.events = [e for e in session.events if (e.seq or 0) > summary.last_seq]
        events = _of_branch(session.events, key)
        is_proactive = cause == "proactive"
        when = self.when if is_proactive else All(cause, self.policy)
        if isinstance(when, Limits):
            idle_seconds = _idle_seconds(events, summary.created if summary else 0.0)
            when = replace(when, idle_seconds=idle_seconds, session=session)
        is_on = self.policy.enabled or not is_proactive
        due = when.due([event.payload for event in events], 0) if is_on else None
        if due is None:
            return None
        covers, reason = due
        if not is_whole:
            covers = min(covers, _answered(events))
        return (session, summary, events[:covers], reason) if covers else None

    def _put(
        self,
        session: StoredSession,
        key: str,
        newest: SessionSummary | None,
        events: Events,
        summary: Summary,
        *,
        failed: bool = False,
        copied: bool = False,
    ) -> Operation[tuple[str, int]]:
        record = summary.to_dict()
        del record["text"]
        if self.summarizer is not None:
            record |= self.summarizer.made_with | {"keep_last": self.policy.keep_last}
        id_ = str(uuid.uuid4())
        has_placeholder = self.placeholder and not (failed or copied)
        outcome = yield partial(
            self.handle.put_summary,
            *session.key,
            {
                "id": id_,
                "generation": session.generation,
                "filter_key": key,
                "expected_version": newest.version if newest else 0,
                "first_seq": newest.first_seq if newest else events[0].seq,
                "last_seq": events[-1].seq,
                "text": summary.error if failed else summary.text,
                "record": json.dumps(record, ensure_ascii=False),
                "failed": failed,
                "links": [(event.seq, event.id) for event in events],
                "placeholder": (f"summary-{id_}", _placeholder(id_, summary))
                if has_placeholder
                else None,
            },
        )
        name, version = outcome
        return name, version

    def _copy_of_only_branch(
        self, head: SessionHead, key: str, made: SessionSummary | None
    ) -> Operation[bool]:
        """Store the summary of a branch as that of all contents, if there is no other branch."""
        if made is None:
            return False
        newest = yield from self._newest_summary(head, "")
        after = newest.last_seq if newest else 0
        # The branch's summary must begin where the other one ends.
        if after != (made.events[0][0] - 1 if made.events else 0):
            return False
        session = yield from self.get(*head.key, after=after, user_first="off")
        if session is None or not all(
            filter_key_belongs(event.filter_key, key)
            for event in session.events
            if event.is_message and (event.seq or 0) <= made.last_seq
        ):
            return False
        events = [SessionEvent(id=id_, seq=seq, payload={}) for seq, id_ in made.events]
        outcome, _ = yield from self._put(session, "", newest, events, made.summary, copied=True)
        return bool(outcome == "accepted")

    # Contexts ------------------------------------------------------------------------------------

    def context(
        self,
        session: SessionHead,
        *,
        mode: Literal["summary", "recent"] = "summary",
        key: str,
        style: Literal["chat", "responses"] = "chat",
        max_messages: int | None = None,
        rounds: int | None = None,
        current: Sequence[Message] | None,
    ) -> Operation[Messages]:
        check_session(session)
        text_of("key", key)
        check_choice("mode", mode, ("summary", "recent"))
        check_choice("style", style, ("chat", "responses"))
        newest: SessionSummary | None = None
        if mode == "summary":
            newest = yield from self._newest_summary(session, key)
        after = newest.last_seq if newest else 0
        stored = yield from self.get(*session.key, after=after, user_first="off")
        events = stored.events if stored else []
        assemble = partial(
            assemble_history,
            [event.payload for event in _of_branch(events, key)],
            max_messages=max_messages,
            rounds=rounds,
            current=current,
        )
        if style == "responses":
            return to_response_items(assemble(), summaries=[newest.text] if newest else [])
        return assemble(summary=Summary(newest.text, covers=0) if newest else None)

    def call_with_summary(
        self,
        session: SessionHead,
        chat: Callable[[Messages], Any],
        key: str,
        current: Sequence[Message] | None,
    ) -> Operation[Any]:
        """Ask the model; summarise all, and ask once more, where the request is too long."""
        check_session(session)
        if not callable(chat):
            raise invalid("chat", "callable", chat)
        messages = yield from self.context(session, key=key, current=current)
        try:
            return (yield partial(chat, messages))
        except Exception as error:
            refusal, overflow = error, _input_overflow(error)
        is_whole = current is not None  # the turn that goes on is not stored
        yield from self._summarize(session, key, "overflow_retry", lambda: True, is_whole=is_whole)
        shorter = yield from self.context(session, key=key, current=current)
        has_summary = shorter != messages
        if has_summary:
            messages = shorter
            try:
                return (yield partial(chat, messages))
            except Exception as error:
                refusal, overflow = error, _input_overflow(error)
        model = self.summarizer.model if self.summarizer else None
        raise ContextOverflowError(
            f"session `{'/'.join(session.key)}` is too long for the model, "
            + ("also with a summary" if has_summary else "and there is nothing to summarise"),
            needed_tokens=count_tokens(messages, model),
            limit_tokens=overflow.limit_tokens or 0,
            model=model,
            parts={},
        ) from refusal


def _of_branch(events: Events, key: str) -> Events:
    """Return the messages among `events` that are of a branch."""
    return [e for e in events if e.is_message and filter_key_belongs(e.filter_key, key)]


def _input_overflow(error: Exception) -> Overflow:
    """Return what an error says of a request that is too long; raise any other error."""
    overflow = prompt_overflow(error)
    if overflow is None:
        raise error
    return overflow


def _idle_seconds(events: Events, summarised: float) -> float:
    """Return the seconds of silence since the newest event, or before the turn began.

    The silence before a turn counts until a summary was made, at the time `summarised`, since then.

    Source: trpc-agent-go #2237: seconds since the newest event alone are 0 whenever an event has
    just come in.
    """
    if not events:
        return 0.0
    times = [event.time or 0.0 for event in events]
    asked = next((at for at in reversed(range(1, len(events))) if begins_turn(events[at])), 0)
    silence = times[asked] - times[asked - 1] if asked and times[asked] > summarised else 0.0
    return max(time.time() - times[-1], silence, 0.0)


def _answered(events: Events) -> int:
    """Return how many events come before a question that waits for its answer."""
    for at in reversed(range(len(events))):
        if begins_turn(events[at]):
            return at
        if ends_turn(events[at]):
            break
    return len(events)


def begins_turn(event: SessionEvent) -> bool:
    """Return whether an event is a message of the user."""
    return event.is_message and bool(event.payload["role"] == "user")


def ends_turn(event: SessionEvent) -> bool:
    """Return whether an event is a message of the assistant without calls."""
    is_answer = event.is_message and event.payload["role"] == "assistant"
    return is_answer and not event.payload.get("tool_calls")


# Source: document 003, section 3.3: the message that stands in the conversation for a summary.
_PLACEHOLDER = "Context summarised."


def _placeholder(summary_id: str, summary: Summary) -> str:
    metadata = {
        "type": "session_summary",
        "summary_id": summary_id,
        "trigger": "overflow_retry" if summary.reason == "overflow_retry" else "proactive",
        "chunk_count": summary.chunks,
        "max_depth": summary.max_depth,
        "truncated": summary.truncated,
        "summary_timestamp": round(time.time() * 1_000),
    }
    message = {
        "role": "assistant",
        "content": _PLACEHOLDER,
        "summary": summary.text,
        "metadata": metadata,
    }
    return json.dumps(message, ensure_ascii=False)
