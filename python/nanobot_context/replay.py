"""Replays a conversation request by request, as nanobot with this package sends it.

Says what each model call would have held at some window: no model is called, nothing is written.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from nanobot_context._core import (
    Compressor,
    Cut,
    Receipt,
    count_tokens,
    fit_messages,
    reserve_tokens,
)
from nanobot_context.arguments import check_callable, check_instance, check_messages, check_whole
from nanobot_context.errors import ContextOverflowError
from nanobot_context.identity import common_length
from nanobot_context.message_texts import (
    kept_spans,
    message_text,
    origin_of,
    tool_names,
    turns_of,
)
from nanobot_context.settings import Settings

if TYPE_CHECKING:
    from nanobot_context._core import _Archive
    from nanobot_context.types import CutReason, Message

__all__ = ["CutMark", "MessageFate", "Replay", "Request", "message_text", "replay"]

# Which message of the conversation a message of a request was made of. Keys that nobody knows cost
# no tokens, stay in edited messages, and are in none that are new.
_INDEX = "nanobot_context.replay"

_JOINED: CutReason = "joined"
# Nothing is gone of such a message.
_WHOLE: tuple[CutReason, ...] = (_JOINED, "late_result")

State: TypeAlias = Literal["kept", "shortened", "left out"]
"""What has become of a message."""

_INSTEAD_OF = {"developer": "system", "function": "tool"}


@dataclass(frozen=True, slots=True)
class CutMark:
    """A cut that one request makes and the request before did not.

    Attributes:
        index: The message's position in the conversation, from 0.
        tool: The tool whose result it is; `None` for other messages.
        reason: Why: see `Cut`. Where there are several reasons, the one that freed most.
        tokens_before: Tokens of the message, framing included.
        tokens_after: Tokens of what is sent of it; 0 where it is left out.
        kept: Which of its text is sent, as `kept_spans` has it; empty where nothing of it can be
            found in what is sent.
        kept_in: The file that the request names as the original; `None` where it names none.
    """

    index: int
    tool: str | None
    reason: CutReason
    tokens_before: int
    tokens_after: int
    kept: tuple[int, ...]
    kept_in: str | None


@dataclass(frozen=True, slots=True)
class Request:
    """One model call.

    Attributes:
        position: `messages[:position]` is what the conversation was at that time.
        turn: User messages among them.
        before: Tokens by role: `system` (also `developer`), `user`, `assistant`, `tool` (also
            `function`), further `tools` for tool schemas and `framing` for the start of the reply.
        after: The same of what is sent; empty where nothing can be.
        tokens_before: The sum of `before`.
        tokens_after: The sum of `after`.
        reused_tokens: Tokens of the messages at the start, tool schemas included, that are the same
            as in the request before: what a provider's prompt cache can hold.
        cuts: What is new in this request.
        restored: Messages, by index, that are sent whole again.
        lost: Names, and the index of the message that each stood in, that this request no longer
            says and the one before did.
        over: Whether it is over the budget, in the room of the answer, or cannot be sent at all.
        error: Why it cannot be sent, or `None`.
    """

    position: int
    turn: int
    before: Mapping[str, int]
    after: Mapping[str, int]
    tokens_before: int
    tokens_after: int
    reused_tokens: int
    cuts: tuple[CutMark, ...] = ()
    restored: tuple[int, ...] = ()
    lost: tuple[tuple[int, str], ...] = ()
    over: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True)
class MessageFate:
    """The fate of a message in the last request that could be sent.

    Attributes:
        index: Its position in the conversation, from 0.
        turn: User messages up to and with it.
        role: Its role as it stands in the message.
        tool: The tool whose result it is; `None` for other messages.
        tokens: Its tokens, framing included.
        state: `kept`, `shortened` or `left out`.
        reason: Why it is not kept: see `Cut`.
        tokens_after: Tokens of what is sent of it.
        first_request: The index of the first request that did not send it whole, or `None`.
    """

    index: int
    turn: int
    role: str
    tool: str | None
    tokens: int
    state: State
    reason: CutReason | None
    tokens_after: int
    first_request: int | None


@dataclass(frozen=True, slots=True)
class Replay:
    """Every request of a conversation.

    Attributes:
        window_tokens: The window.
        budget_tokens: What messages and tool schemas may have of it: it less room for the answer.
        model: The model that tokens are counted for.
        counted: How they are counted: `exact` or `estimated`.
        requests: One for each message of the assistant that has others before it, and one with all
            messages: the next one.
        messages: One for each message.
    """

    window_tokens: int
    budget_tokens: int
    model: str | None
    counted: str
    requests: tuple[Request, ...]
    messages: tuple[MessageFate, ...]


def replay(
    messages: Sequence[Mapping[str, Any]],
    context_window: int,
    model: str | None = None,
    *,
    tools: list[dict[str, Any]] | None = None,
    max_output_tokens: int | None = None,
    settings: Settings | None = None,
    archive: _Archive | None = None,
    on_request: Callable[[int, int], None] | None = None,
) -> Replay:
    """Return every request of a conversation as it is sent with `context_window` tokens.

    A request whose system messages, tool schemas and last message of the user need more than the
    window says so in its `error`. Costs one compression for each message of the assistant: 2,500
    requests of up to 5,000 messages take ten seconds to a minute.

    Args:
        messages: The conversation from its start; not changed.
        context_window: The window in tokens.
        model: The model that tokens are counted for.
        tools: The tool schemas that each request has.
        max_output_tokens: The limit for an answer, where it is more than the settings keep free.
        settings: Limits of the compression.
        archive: Where originals of shortened tool results are; see `Archive`, which writes them.
        on_request: Called after each request with how many are done and how many there are.

    Raises:
        InvalidMessageError: A message is of a shape that no provider accepts.
        InvalidArgumentError: The window is not a positive number, or another argument is of no use.
    """
    check_whole("context_window", context_window, least=1)
    given = check_messages("messages", messages)
    check_callable("on_request", on_request)
    check_whole("max_output_tokens", max_output_tokens, optional=True)
    # An answer has at most half of the window.
    room = None if max_output_tokens is None else min(max_output_tokens, context_window // 2)
    check_instance("settings", settings, Settings, optional=True)
    settings = settings or Settings()
    run = _Run(list(given), context_window, model, tools, room, settings, archive)
    positions = list(_positions(given))
    requests = []
    for done, position in enumerate(positions, 1):
        requests.append(run.request(position, done - 1))
        if on_request is not None:
            on_request(done, len(positions))
    return Replay(
        window_tokens=context_window,
        budget_tokens=run.budget_tokens,
        model=model,
        counted=how_counted(model),
        requests=tuple(requests),
        messages=tuple(run.fates()),
    )


def how_counted(model: str | None) -> str:
    """Return whether counts for a model are `exact` or `estimated`."""
    return fit_messages([], 1 << 40, model).receipt.source or "exact"


@dataclass(slots=True)
class _Sent:
    """The last request that went out.

    Attributes:
        position: How much of the conversation there was.
        messages: Its messages.
        tokens: The tokens of each.
        by_role: Their sums.
        places: Where in it messages of the conversation are, by their index there; several in one
            where they were joined.
        joined: The index of messages that are in it whole, with others in one.
    """

    position: int = 0
    messages: list[Message] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    by_role: Counter[str] = field(default_factory=Counter)
    places: dict[int, int] = field(default_factory=dict)
    joined: frozenset[int] = frozenset()


@dataclass(slots=True)
class _Run:
    """A replay in progress."""

    given: list[Message]
    window_tokens: int
    model: str | None
    tools: list[dict[str, Any]] | None
    max_output_tokens: int | None
    settings: Settings
    archive: _Archive | None
    sent: _Sent = field(default_factory=_Sent)
    arrived: list[Message] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    before: Counter[str] = field(default_factory=Counter)
    cuts: dict[int, tuple[CutReason, int]] = field(default_factory=dict)
    """For each message that is not sent whole, why, and since which request."""
    lost: set[tuple[int, str]] = field(default_factory=set)
    compressor: Compressor = field(init=False)
    framing: dict[str, int] = field(init=False)
    tool_names: list[str | None] = field(init=False)
    turns: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.compressor = Compressor(
            self.window_tokens,
            self.model,
            tools=self.tools,
            max_output_tokens=self.max_output_tokens,
            settings=self.settings,
            archive=self.archive,
        )
        start = count_tokens([], self.model)
        schemas = count_tokens([], self.model, tools=self.tools) - start
        self.framing = {"tools": schemas, "framing": start} if schemas else {"framing": start}
        self.tool_names = tool_names(self.given)
        self.turns = turns_of(self.given)

    @property
    def budget_tokens(self) -> int:
        ratio = self.settings.context_reserve_ratio
        reserve = reserve_tokens(self.window_tokens, self.max_output_tokens, ratio)
        return max(self.window_tokens - reserve, 0)

    def request(self, position: int, number: int) -> Request:
        """Return the request `number`, with the first `position` messages."""
        self._take(position)
        before = dict(self.before + Counter(self.framing))
        made = partial(
            Request, position, self.turns[position - 1], before, tokens_before=sum(before.values())
        )
        try:
            messages, cuts, lost = self._compress()
        except ContextOverflowError as error:
            return made({}, tokens_after=0, reused_tokens=0, over=True, error=str(error))
        shared = common_length(self.sent.messages, messages)
        reused = sum(self.sent.tokens[:shared]) + self.framing.get("tools", 0) if shared else 0
        # A request that extends the previous one inherits its cuts.
        seen = self.sent.position if shared == len(self.sent.messages) else 0
        unseen = [cut for cut in cuts if cut.index >= seen and cut.reason not in _WHOLE]
        replaced = self._send(messages, shared, cuts)
        marks = tuple(self._marks(unseen, replaced, shared, number))
        restored = tuple(index for index in sorted(self.cuts) if self._is_sent_whole(index))
        for index in restored:
            del self.cuts[index]
        new_lost = tuple(one for one in lost if one not in self.lost)
        self.lost = set(lost)
        self.sent.position = position
        after = dict(+self.sent.by_role + Counter(self.framing))
        tokens_after = sum(after.values())
        return made(
            after,
            tokens_after=tokens_after,
            reused_tokens=reused,
            cuts=marks,
            restored=restored,
            lost=new_lost,
            over=tokens_after > self.budget_tokens,
        )

    def fates(self) -> Iterator[MessageFate]:
        """Yield the fate of each message."""
        for index, message in enumerate(self.arrived):
            place = self.sent.places.get(index)
            reason, first = self.cuts.get(index, (None, None))
            state: State = "left out"
            tokens = 0
            if place is not None:
                state, tokens = "shortened", self.sent.tokens[place]
            if index >= self.sent.position or self._is_sent_whole(index):
                state, reason, first, tokens = "kept", None, None, self.tokens[index]
            yield MessageFate(
                index=index,
                turn=self.turns[index],
                role=message["role"],
                tool=self.tool_names[index],
                tokens=self.tokens[index],
                state=state,
                reason=reason,
                tokens_after=tokens,
                first_request=first,
            )

    def _take(self, position: int) -> None:
        """Add the messages up to `position`."""
        for index in range(len(self.arrived), position):
            message = {**self.given[index], _INDEX: index}
            tokens = self._tokens(message)
            self.arrived.append(message)
            self.tokens.append(tokens)
            self.before[_role(message)] += tokens

    def _compress(self) -> tuple[list[Message], list[Cut], list[tuple[int, str]]]:
        """Return the messages sent, the cuts, and the lost names.

        As `recovery.compress`, which keeps no receipt.
        """
        receipt: Receipt | None
        try:
            messages = self.compressor.compress(self.arrived)
            receipt = self.compressor.receipt
        except ContextOverflowError as error:
            if error.needed_tokens > self.window_tokens:
                raise
            fitted = fit_messages(
                self.arrived,
                error.needed_tokens,
                self.model,
                tools=self.tools,
                settings=self.settings,
                archive=self.archive,
            )
            messages, receipt = fitted.messages, fitted.receipt
        if receipt is None:
            return messages, [], []
        return messages, receipt.cuts, [(one.index, one.text) for one in receipt.lost]

    def _send(self, messages: list[Message], shared: int, cuts: list[Cut]) -> dict[int, Message]:
        """Record that `messages` are sent, the first `shared` of which are as before.

        Returns the messages they replace, by their index in the conversation.
        """
        sent = self.sent
        replaced: dict[int, Message] = {}
        for message, tokens in zip(sent.messages[shared:], sent.tokens[shared:], strict=True):
            sent.by_role[_role(message)] -= tokens
            if _INDEX in message:
                replaced[message[_INDEX]] = message
        sent.places = {index: place for index, place in sent.places.items() if place < shared}
        del sent.tokens[shared:]
        for place, message in enumerate(messages[shared:], shared):
            if _INDEX in message:
                sent.places[message[_INDEX]] = place
            is_whole = self._is_whole(message)
            tokens = self.tokens[message[_INDEX]] if is_whole else self._tokens(message)
            sent.tokens.append(tokens)
            sent.by_role[_role(message)] += tokens
        joined = {cut.index for cut in cuts if cut.reason == _JOINED}
        own = sorted(sent.places)
        for index in joined.difference(own):
            # Its text is part of the nearest message before it.
            sent.places[index] = sent.places[own[bisect(own, index) - 1]]
        sent.joined = frozenset(joined - {cut.index for cut in cuts if cut.reason != _JOINED})
        sent.messages = messages
        return replaced

    def _marks(
        self, cuts: list[Cut], replaced: dict[int, Message], shared: int, number: int
    ) -> Iterator[CutMark]:
        """Yield a mark for each message that the request before had otherwise."""
        reasons: dict[int, Cut] = {}
        for cut in cuts:
            known = reasons.get(cut.index)
            if known is None or _freed(cut) > _freed(known):
                reasons[cut.index] = cut
        for index, cut in reasons.items():
            place = self.sent.places.get(index)
            sent = None if place is None else self.sent.messages[place]
            is_shared = place is not None and place < shared
            if is_shared or (index < self.sent.position and sent == replaced.get(index)):
                continue
            if sent is None or not self._is_whole(sent):
                _, since = self.cuts.get(index, (cut.reason, number))
                self.cuts[index] = (cut.reason, since)
            text = message_text(self.arrived[index])
            sent_text = "" if sent is None else message_text(sent)
            yield CutMark(
                index=index,
                tool=self.tool_names[index],
                reason=cut.reason,
                tokens_before=self.tokens[index],
                tokens_after=0 if place is None else self.sent.tokens[place],
                kept=() if sent is None else tuple(kept_spans(text, sent_text)),
                kept_in=origin_of(sent_text, text),
            )

    def _is_sent_whole(self, index: int) -> bool:
        """Return whether the last request has a message of the conversation whole."""
        place = self.sent.places.get(index)
        is_whole = place is not None and self._is_whole(self.sent.messages[place])
        return is_whole or index in self.sent.joined

    def _is_whole(self, message: Message) -> bool:
        """Return whether a message of a request is an unchanged one of the conversation."""
        return _INDEX in message and message is self.arrived[message[_INDEX]]

    def _tokens(self, message: Message) -> int:
        """Return the tokens of a message: what it adds to a prompt."""
        return count_tokens([message], self.model) - self.framing["framing"]


def _positions(messages: Sequence[Message]) -> Iterator[int]:
    for index, message in enumerate(messages):
        if index and message.get("role") == "assistant":
            yield index
    if messages:
        yield len(messages)


def _freed(cut: Cut) -> int:
    return cut.tokens_before - cut.tokens_after


def _role(message: Message) -> str:
    role: str = message["role"]
    return _INSTEAD_OF.get(role, role)
