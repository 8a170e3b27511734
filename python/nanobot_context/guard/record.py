"""A record of real requests: what nanobot asked for, what was sent of it, and what came back.

Numbers, and names that stand in the conversation and were cut: no texts. The newest requests of all
processes that share nanobot's config are in one file of JSON lines beside it, which only its owner
may read, and which does not grow beyond about 2 MB.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nanobot_context._core import count_tokens, token_bound
from nanobot_context.events import current_session
from nanobot_context.guard.line_file import LineFile
from nanobot_context.guard.state_file import REQUESTS, state_file
from nanobot_context.message_texts import tool_names

if TYPE_CHECKING:
    from nanobot_context._core import Lost, Overflow, Receipt
    from nanobot_context.guard.windows import Window
    from nanobot_context.types import Message

_MAX_BYTES = 1 << 20
_OLDER = 1
# A conversation of thousands of messages has thousands of cuts, in each request again.
_CUTS_KEPT = 50
_NAMES_KEPT = 20
_NAME_CHARS = 80
_SYSTEM = ("system", "developer")


@dataclass(frozen=True, slots=True)
class Sent:
    """One attempt of a request.

    Attributes:
        tokens: Its prompt: as the provider counted it, where it says so.
        max_tokens: The limit for the answer, `None` for none.
        refused: What was too large, `Overflow.kind`; `None` where it was not refused.
        limit_tokens: The limit that the refusal stated.
    """

    tokens: int
    max_tokens: int | None = None
    refused: str | None = None
    limit_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class SentCut:
    """A message that was not sent as it was.

    Attributes:
        index: Its position in nanobot's request, from 1.
        role: Its role.
        tool: The tool whose result it is; `None` for other messages.
        reason: Why: see `Cut`.
        tokens_before: Its tokens.
        tokens_after: Tokens of what was sent of it; 0 where it was left out.
    """

    index: int
    role: str
    tool: str | None
    reason: str
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request of nanobot's. Tokens are the provider's where it reports them.

    Attributes:
        at: When it began, in UTC, ISO 8601.
        session: nanobot's key of the session; a subagent's is that of the turn that started it.
        is_subagent: Whether a subagent made it.
        model: The model.
        place: The model with the address that it was sent to, as lessons name it.
        window_tokens: The window, as known at the end; 0 for none.
        window_source: Where that number is from.
        fixed_tokens: What is in every request: system messages and tool schemas.
        answer_tokens: What is kept free for the answer.
        messages: How many messages nanobot's request had.
        tokens_before: Tokens of nanobot's request.
        attempts: What was sent, in order; none where nothing was.
        outcome: `answered`; `gave up` where nothing that is small enough was left to send; `failed`
            for an error that says nothing about sizes.
        prompt_tokens: Tokens of the prompt that was answered, as reported.
        cached_tokens: Those of them that came out of the provider's cache, as reported.
        completion_tokens: Tokens of the answer, as reported.
        cuts: The messages that were not sent as they were, at most 50: those that freed most.
        cut_messages: How many there were.
        gone: Names that stood in them and are in nothing that was sent, at most 20.
        gone_names: How many there were.
    """

    at: str
    session: str | None
    is_subagent: bool
    model: str | None
    place: str
    window_tokens: int
    window_source: str
    fixed_tokens: int
    answer_tokens: int
    messages: int
    tokens_before: int
    attempts: tuple[Sent, ...]
    outcome: str
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    cuts: tuple[SentCut, ...] = ()
    cut_messages: int = 0
    gone: tuple[str, ...] = ()
    gone_names: int = 0

    @property
    def tokens_after(self) -> int:
        """Tokens of what was sent last; 0 where nothing was."""
        return self.attempts[-1].tokens if self.attempts else 0

    @property
    def refusals(self) -> tuple[Sent, ...]:
        """The attempts that were refused."""
        return tuple(one for one in self.attempts if one.refused is not None)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> RequestRecord:
        """Return what `to_dict` gave.

        Raises:
            TypeError: It is not of this version.
        """
        nested = {
            "attempts": tuple(Sent(**one) for one in given["attempts"]),
            "cuts": tuple(SentCut(**one) for one in given["cuts"]),
            "gone": tuple(given["gone"]),
        }
        return cls(**{**given, **nested})


@dataclass(slots=True)
class _Try:
    messages: list[Message]
    max_tokens: int | None
    overflow: Overflow | None = None


@dataclass(slots=True)
class Trace:
    """What is noted of a request while it is under way.

    Attributes:
        answer_tokens: What is kept free for the answer.
        outcome: As in `RequestRecord`.
        usage: Tokens of prompt, of those the cached ones, and of the answer.
    """

    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))
    session: str | None = field(default_factory=current_session.get)
    is_subagent: bool = False
    answer_tokens: int = 0
    outcome: str = "failed"
    usage: tuple[int | None, int | None, int | None] = (None, None, None)
    tries: list[_Try] = field(default_factory=list)
    _cut: tuple[list[Message], Callable[[list[Message]], Receipt | None]] | None = None

    def shortened(
        self, given: list[Message], receipt: Callable[[list[Message]], Receipt | None]
    ) -> None:
        """Note how to know what was cut of the messages `given`, in place of what was noted."""
        # nanobot goes on with its own list.
        self._cut = list(given), receipt

    def sends(self, messages: list[Message], max_tokens: int | None) -> None:
        """Note an attempt."""
        self.tries.append(_Try(messages, max_tokens))

    def refused(self, overflow: Overflow) -> None:
        """Note that the last attempt was refused."""
        if self.tries:
            self.tries[-1].overflow = overflow

    def cuts(self, messages: list[Message]) -> tuple[list[SentCut], list[Lost]]:
        """Return what was cut of the request `messages`, and names that are in nothing sent."""
        if self._cut is None:
            return [], []
        given, made = self._cut
        receipt = made(given)
        if receipt is None:
            return [], []
        position = {id(message): index for index, message in enumerate(messages, 1)}
        tools = tool_names(given)
        cuts = [
            SentCut(
                position[id(given[cut.index])],
                str(given[cut.index].get("role")),
                tools[cut.index],
                *(cut.reason, cut.tokens_before, cut.tokens_after),
            )
            for cut in receipt.cuts
            if id(given[cut.index]) in position
        ]
        return cuts, receipt.lost


@dataclass(frozen=True, slots=True)
class Ended:
    """A request that is over, of which the record is still to be made.

    Counting is done here, away from the event loop: what was sent as it came and answered with a
    report of its tokens is not counted at all.

    Attributes:
        messages: nanobot's messages.
        whole: For each attempt whether they were sent as they are.
        ratio: How many tokens the provider counts where this package counts one.
    """

    trace: Trace
    messages: list[Message]
    tools: list[dict[str, Any]] | None
    model: str | None
    place: str
    window: Window
    whole: tuple[bool, ...]
    ratio: float

    @property
    def is_whole(self) -> bool:
        """Whether nothing was cut of what was sent last."""
        return not self.whole or self.whole[-1]

    def _count(self, messages: list[Message]) -> int:
        return count_tokens(messages, self.model, tools=self.tools)

    def numbers(self) -> Counter[str]:
        """Return what there is to count of it: fields of `Counts`."""
        trace, tries = self.trace, self.trace.tries
        prompt, cached, completion = trace.usage
        is_answered = trace.outcome == "answered"
        found = Counter(
            requests=1,
            overflows=sum(
                one.overflow is not None and one.overflow.kind != "reasoning" for one in tries
            ),
            retries_succeeded=int(is_answered and len(tries) > 1),
            friendly_errors=int(trace.outcome == "gave up"),
        )
        if tries and not self.is_whole:
            saved = self._count(self.messages) - self._count(tries[-1].messages)
            found += Counter(compressions=1, tokens_saved=max(saved, 0))
        if prompt is not None:
            found += Counter(
                answers=1,
                prompt_tokens=prompt,
                cached_tokens=cached or 0,
                completion_tokens=completion or 0,
            )
        return found

    def record(self) -> RequestRecord:
        """Return the record."""
        trace = self.trace
        prompt, cached, completion = trace.usage
        attempts, factor = self._attempts(prompt)
        sent_whole = [one.tokens for one, is_so in zip(attempts, self.whole, strict=True) if is_so]
        before = sent_whole[0] if sent_whole else round(self._count(self.messages) * factor)
        cuts, lost = ([], []) if self.is_whole else trace.cuts(self.messages)
        cut_messages = len({cut.index for cut in cuts})
        cuts = sorted(cuts, key=lambda cut: cut.tokens_after - cut.tokens_before)[:_CUTS_KEPT]
        return RequestRecord(
            at=trace.at,
            session=trace.session,
            is_subagent=trace.is_subagent,
            model=self.model,
            place=self.place,
            window_tokens=self.window.tokens,
            window_source=self.window.source,
            fixed_tokens=self._fixed(before),
            answer_tokens=trace.answer_tokens,
            messages=len(self.messages),
            tokens_before=before,
            attempts=tuple(attempts),
            outcome=trace.outcome,
            prompt_tokens=prompt,
            cached_tokens=cached,
            completion_tokens=completion,
            cuts=tuple(sorted(cuts, key=lambda cut: cut.index)),
            cut_messages=cut_messages,
            gone=tuple(one.text[:_NAME_CHARS] for one in lost[:_NAMES_KEPT]),
            gone_names=len(lost),
        )

    def _attempts(self, prompt_tokens: int | None) -> tuple[list[Sent], float]:
        """Return the attempts, and what one of our tokens is at the provider."""
        tries, factor = self.trace.tries, self.ratio
        if self.is_whole and prompt_tokens is not None and len(tries) == 1:
            return [Sent(prompt_tokens, tries[0].max_tokens)], factor
        counts = [self._count(one.messages) for one in tries]
        if prompt_tokens is not None and counts and counts[-1]:
            factor = prompt_tokens / counts[-1]
        attempts = []
        for one, count in zip(tries, counts, strict=True):
            overflow = one.overflow
            stated = overflow.used_tokens if overflow else prompt_tokens
            attempts.append(
                Sent(
                    stated or round(count * factor),
                    one.max_tokens,
                    overflow.kind if overflow else None,
                    overflow.limit_tokens if overflow else None,
                )
            )
        return attempts, factor

    def _fixed(self, tokens: int) -> int:
        """Return the share of system messages and tool schemas in a request of `tokens`.

        By bytes where to count them would load a vocabulary.
        """
        system = [message for message in self.messages if message.get("role") in _SYSTEM]
        part, whole = (
            token_bound(some, self.model, tools=self.tools) or self._count(some)
            for some in (system, self.messages)
        )
        return round(tokens * part / whole) if whole else 0


def record_file(config: Path) -> LineFile:
    """Return where requests are recorded: beside nanobot's config file."""
    file = state_file(config, REQUESTS)
    return LineFile(file, _MAX_BYTES, older=_OLDER, what="requests")


def read_records(config: Path, session: str | None = None) -> list[RequestRecord]:
    """Return the newest requests, oldest first; with `session` those of one session."""
    found = []
    for given in _objects(record_file(config)):
        try:
            record = RequestRecord.from_dict(given)
        except (KeyError, TypeError):
            continue  # of another version
        if session is None or record.session == session:
            found.append(record)
    return sorted(found, key=lambda record: record.at)


def _objects(file: LineFile) -> Iterator[Mapping[str, Any]]:
    for line in file.lines():
        try:
            given = json.loads(line)
        except ValueError:
            continue
        if isinstance(given, dict):
            yield given
