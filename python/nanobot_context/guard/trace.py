"""Traces a running request: its attempts, and what was cut."""

from __future__ import annotations

from collections.abc import Collection
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime

from nanobot_context._core import Cut, Lost, Overflow, Receipt
from nanobot_context.events import current_session
from nanobot_context.guard.record import Outcome, SentCut
from nanobot_context.message_texts import kept_spans, message_text, tool_names
from nanobot_context.types import Message

_SPANS_KEPT = 50

current_workspace: ContextVar[str | None] = ContextVar("nanobot_context_workspace", default=None)
"""The workspace of the nanobot whose turn it is, as `RequestRecord.workspace`."""


@dataclass(slots=True)
class _Try:
    messages: list[Message]
    max_tokens: int | None
    overflow: Overflow | None = None


@dataclass(slots=True)
class Trace:
    """Trace of a running request.

    Attributes:
        answer_tokens: What is kept free for the answer.
        outcome: As in `RequestRecord`.
        usage: Tokens of prompt, of those the cached ones, and of the answer.
    """

    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))
    session: str | None = field(default_factory=current_session.get)
    workspace: str | None = field(default_factory=current_workspace.get)
    is_subagent: bool = False
    answer_tokens: int = 0
    outcome: Outcome = "failed"
    usage: tuple[int | None, int | None, int | None] = (None, None, None)
    tries: list[_Try] = field(default_factory=list)
    _cut: tuple[list[Message], Receipt | None] = field(default=([], None))

    def shortened(self, given: list[Message], receipt: Receipt | None) -> None:
        """Note what was cut of the messages `given`."""
        # nanobot goes on with its own list.
        self._cut = list(given), receipt

    def sends(self, messages: list[Message], max_tokens: int | None) -> None:
        """Note an attempt."""
        self.tries.append(_Try(messages, max_tokens))

    def refused(self, overflow: Overflow) -> None:
        """Note that the last attempt was refused."""
        if self.tries:
            self.tries[-1].overflow = overflow

    def cuts(
        self, messages: list[Message], sent: list[Message]
    ) -> tuple[list[SentCut], list[tuple[int, Lost]]]:
        """Return the cuts of the request `messages`, and the names that no sent message has.

        Each with its position, in order.
        """
        given, receipt = self._cut
        if receipt is None:
            return [], []
        position = {id(message): index for index, message in enumerate(messages, 1)}
        place = {index: position.get(id(message), 0) for index, message in enumerate(given)}
        reasons: dict[int, list[Cut]] = {}
        for cut in receipt.cuts:
            if place[cut.index]:
                reasons.setdefault(cut.index, []).append(cut)
        tools, shorter = tool_names(given), _shorter(given, sent, reasons)
        cuts = []
        for index, all_cuts in sorted(reasons.items()):
            text = message_text(given[index])
            kept = kept_spans(text, message_text(shorter[index])) if index in shorter else []
            cuts.append(
                SentCut(
                    place[index],
                    str(given[index].get("role")),
                    tools[index],
                    max(all_cuts, key=lambda cut: cut.tokens_before - cut.tokens_after).reason,
                    max(cut.tokens_before for cut in all_cuts),
                    min(cut.tokens_after for cut in all_cuts),
                    len(text),
                    tuple(kept) if len(kept) <= 2 * _SPANS_KEPT else (),
                )
            )
        # A line that reports an error is text.
        names = [lost for lost in receipt.lost if lost.kind != "error"]
        return cuts, [(place[lost.index], lost) for lost in names]


def _shorter(given: list[Message], sent: list[Message], cut: Collection[int]) -> dict[int, Message]:
    """Return the sent version of each message of `given` that was cut, by index."""
    places = {id(message): place for place, message in enumerate(sent)}
    own = {id(message) for message in given}
    found: dict[int, Message] = {}
    at = 0
    for index, message in enumerate(given):
        if id(message) in places:
            at = places[id(message)] + 1
        elif index in cut:
            for place in range(at, len(sent)):
                one = sent[place]
                if id(one) in own:
                    break
                if all(one.get(key) == message.get(key) for key in ("role", "tool_call_id")):
                    found[index], at = one, place + 1
                    break
    return found
