"""A record of real requests: what nanobot asked for, what was sent of it, and what came back.

Numbers, and names that stand in the conversation and were cut: no texts, and of what looks like a
key the beginning alone. The newest requests of all
processes that share nanobot's config are in one file of JSON lines beside it, which only its owner
may read, and which does not grow beyond about 2 MB.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nanobot_context._core import count_tokens
from nanobot_context.events import current_session
from nanobot_context.guard.line_file import LineFile
from nanobot_context.guard.state_file import REQUESTS, state_file
from nanobot_context.history import function_of, system_messages
from nanobot_context.message_texts import (
    holds_media,
    kept_spans,
    known_by,
    message_key,
    message_text,
    tool_names,
)

if TYPE_CHECKING:
    from nanobot_context._core import Cut, Lost, Overflow, Receipt
    from nanobot_context.guard.windows import Window
    from nanobot_context.types import Message

_MAX_BYTES = 1 << 20
_OLDER = 1
# A conversation of thousands of messages has thousands of cuts, in each request again.
_CUTS_KEPT = 50
_NAMES_KEPT = 20
_NAME_CHARS = 80
_SPANS_KEPT = 50
_TOOLS_KEPT = 5
_ROLES_KEPT = 2_000
_KEYS_KEPT = 12
_LEFT_OUT_CHARS = 2_000

# Keys as providers hand them out, and what looks like one: long, of small and large letters and of
# digits.
_KEY = re.compile(
    r"\b(?:sk-|gh[oprsu]_|github_pat_|glpat-|xox[a-z]-|AKIA|ASIA|AIza|eyJ|hf_|npm_|pypi-)[\w-]{8,}"
    r"|\b(?=\w*[a-z])(?=\w*[A-Z])(?=\w*\d)\w{16,}"
)


@dataclass(frozen=True, slots=True)
class Sent:
    """One attempt of a request.

    Attributes:
        tokens: Its prompt: as the provider counted it, where it says so.
        max_tokens: The limit for the answer, `None` for none.
        refused: What was too large, `Overflow.kind`; `silent` where the prompt was cut in silence,
            `None` where it was taken.
        limit_tokens: The limit that the refusal stated; what was read of it where it was cut in
            silence.
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
        tokens_before: Its tokens, as its share of the request's.
        tokens_after: Tokens of what was sent of it; 0 where it was left out.
        chars: How long its text was.
        kept: Which of it was sent, as `kept_spans` has it; empty where that cannot be told.
    """

    index: int
    role: str
    tool: str | None
    reason: str
    tokens_before: int
    tokens_after: int
    chars: int = 0
    kept: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request of nanobot's.

    Every number of tokens is in the provider's, also a part of what it reports; where it reports
    none, as this package counts, times what the provider is known to count for one of these.

    Attributes:
        at: When it began, in UTC, ISO 8601.
        session: nanobot's key of the session; a subagent's is that of the turn that started it. Of
            other programs what recorded it: `call_with_recovery`, `wrap` or `serve`.
        is_subagent: Whether a subagent made it.
        model: The model.
        place: The model with the address that it was sent to, as lessons name it.
        window_tokens: The window, as known at the end; 0 for none.
        window_source: Where that number is from.
        fixed_tokens: What is in every request: system messages and tool schemas. No provider
            reports it by itself: see `read_records`.
        answer_tokens: What is kept free for the answer.
        messages: How many messages nanobot's request had.
        tokens_before: Tokens of nanobot's request.
        attempts: What was sent, in order; none where nothing was.
        outcome: `answered`; `gave up` where nothing that is small enough was left to send;
            `interrupted` where the task or the program ended before the answer; `failed` for an
            error that says nothing about sizes.
        prompt_tokens: Tokens of the prompt that was answered, as reported.
        cached_tokens: Those of them that came out of the provider's cache, as reported.
        completion_tokens: Tokens of the answer, as reported.
        cuts: The messages that were not sent as they were, at most 50: those that freed most.
        cut_messages: How many there were.
        gone: Names that stood in them and are in nothing that was sent, at most 20.
        gone_names: How many there were.
        is_shortened: Whether what was sent last is not nanobot's request as it was.
        gone_from: The position of the message that each of `gone` stood in, from 1.
        left_out: All that was left out, by position: `2-40,44`.
        roles: The first letter of each message's role, the newest 2,000.
        anchor: The position of a message that `anchor_key` knows again; 0 for none.
        anchor_key: See `message_key`.
        keys: What the newest messages are known by, oldest first: see `known_by`.
        tools: The largest tool schemas, at most 5: their names, and about how many tokens each is.
        fixed_bytes: How long what is in every request is; 0 where that was not noted.
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
    is_shortened: bool = False
    gone_from: tuple[int, ...] = ()
    left_out: str = ""
    roles: str = ""
    anchor: int = 0
    anchor_key: str = ""
    keys: tuple[str, ...] = ()
    tools: tuple[tuple[str, int], ...] = ()
    fixed_bytes: int = 0

    @property
    def numbers(self) -> Counter[str]:
        """What it adds to the counts: fields of `Counts`."""
        is_answered = self.outcome == "answered"
        found = Counter(
            requests=1,
            overflows=sum(one.refused != "reasoning" for one in self.refusals),
            retries_succeeded=int(is_answered and bool(self.refusals)),
            friendly_errors=int(self.outcome == "gave up"),
        )
        if self.is_shortened:
            found["compressions"] = 1
            if is_answered:
                found["tokens_saved"] = max(self.tokens_before - self.tokens_after, 0)
        if self.prompt_tokens is not None:
            found += Counter(
                answers=1,
                prompt_tokens=self.prompt_tokens,
                cached_tokens=self.cached_tokens or 0,
                completion_tokens=self.completion_tokens or 0,
            )
        return found

    @property
    def tokens_after(self) -> int:
        """Tokens of what was sent last; 0 where nothing was."""
        return self.attempts[-1].tokens if self.attempts else 0

    @property
    def refusals(self) -> tuple[Sent, ...]:
        """The attempts that were refused."""
        return tuple(one for one in self.attempts if one.refused is not None)

    @property
    def is_retried(self) -> bool:
        """Whether something was sent after the last refusal."""
        return bool(self.refusals) and self.attempts[-1].refused is None

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
            "cuts": tuple(SentCut(**{**one, "kept": tuple(one["kept"])}) for one in given["cuts"]),
            "gone": tuple(given["gone"]),
            "gone_from": tuple(given["gone_from"]),
            "keys": tuple(given.get("keys", ())),
            "tools": tuple((name, tokens) for name, tokens in given["tools"]),
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

    def cuts(
        self, messages: list[Message], sent: list[Message]
    ) -> tuple[list[SentCut], list[tuple[int, Lost]]]:
        """Return what was cut of the request `messages`, and names that are in nothing sent.

        Each with its position, in order.
        """
        receipt = self._cut and self._cut[1](self._cut[0])
        if self._cut is None or receipt is None:
            return [], []
        given = self._cut[0]
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
    """Return what was sent of those messages of `given` that were cut, by their index."""
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


def _ranges(positions: Iterable[int]) -> str:
    """Return positions as `2-40,44`."""
    runs: list[list[int]] = []
    for position in positions:
        if runs and runs[-1][1] == position - 1:
            runs[-1][1] = position
        else:
            runs.append([position, position])
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in runs)


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

    def record(self) -> RequestRecord:
        """Return the record."""
        trace, tries = self.trace, self.trace.tries
        prompt, cached, completion = trace.usage
        attempts, factor = self._attempts(prompt)
        sent_whole = [one.tokens for one, is_so in zip(attempts, self.whole, strict=True) if is_so]
        before = sent_whole[0] if sent_whole else round(self._count(self.messages) * factor)
        cuts: list[SentCut] = []
        lost: list[tuple[int, Lost]] = []
        if not self.is_whole:
            sent = tries[-1].messages
            cuts, lost = trace.cuts(self.messages, sent)
            cuts = cuts or self._changed(sent)
            # Parts are to add up to what they are parts of.
            shares = (
                before / max(self._count(self.messages), 1),
                attempts[-1].tokens / max(self._count(sent), 1),
            )
            cuts = [_in_theirs(cut, *shares) for cut in cuts]
        left_out = [cut.index for cut in cuts if not cut.tokens_after and cut.reason != "joined"]
        most = sorted(cuts, key=lambda cut: cut.tokens_after - cut.tokens_before)[:_CUTS_KEPT]
        fixed, fixed_bytes, tools = self._fixed(before)
        anchor = next((place for place in range(len(self.messages), 0, -1) if self._key(place)), 0)
        return RequestRecord(
            at=trace.at,
            session=trace.session,
            is_subagent=trace.is_subagent,
            model=self.model,
            place=self.place,
            window_tokens=self.window.tokens,
            window_source=self.window.source,
            fixed_tokens=fixed,
            answer_tokens=trace.answer_tokens,
            messages=len(self.messages),
            tokens_before=before,
            attempts=tuple(attempts),
            outcome=trace.outcome,
            prompt_tokens=prompt,
            cached_tokens=cached,
            completion_tokens=completion,
            cuts=tuple(sorted(most, key=lambda cut: cut.index)),
            cut_messages=len(cuts),
            gone=tuple(_shown(one.text) for _, one in lost[:_NAMES_KEPT]),
            gone_names=len(lost),
            is_shortened=bool(tries) and not self.is_whole,
            gone_from=tuple(place for place, _ in lost[:_NAMES_KEPT]),
            left_out=_ranges(left_out)[:_LEFT_OUT_CHARS],
            roles="".join(str(one.get("role"))[:1] for one in self.messages[-_ROLES_KEPT:]),
            anchor=anchor,
            anchor_key=self._key(anchor) if anchor else "",
            keys=tuple(map(known_by, self.messages[-_KEYS_KEPT:])),
            tools=tools,
            fixed_bytes=fixed_bytes,
        )

    def _changed(self, sent: list[Message]) -> list[SentCut]:
        """Return the messages that became smaller: of a consolidation there is no receipt."""
        if len(sent) != len(self.messages):
            return []
        changed = []
        for place, (one, other) in enumerate(zip(self.messages, sent, strict=True), 1):
            if one is other or one == other:
                continue
            before, after = (count_tokens([message], self.model) for message in (one, other))
            # What has got its reasoning back is larger, and nothing of it was cut.
            if after < before:
                role = str(one.get("role"))
                changed.append(SentCut(place, role, None, "long_message", before, after))
        return changed

    def _key(self, place: int) -> str:
        return message_key(self.messages[place - 1])

    def _attempts(self, prompt_tokens: int | None) -> tuple[list[Sent], float]:
        """Return the attempts, and what one of our tokens is at the provider."""
        tries, factor = self.trace.tries, self.ratio
        # An answer that stands may be to a prompt that was cut in silence.
        read_tokens = prompt_tokens if tries and tries[-1].overflow is None else None
        if self.is_whole and read_tokens is not None and len(tries) == 1:
            return [Sent(read_tokens, tries[0].max_tokens)], factor
        counts = [self._count(one.messages) for one in tries]
        if read_tokens is not None and counts[-1]:
            factor = read_tokens / counts[-1]
        attempts = []
        for one, count in zip(tries, counts, strict=True):
            overflow = one.overflow
            # A provider that cut a prompt in silence has not said how large it was.
            stated = prompt_tokens
            if overflow is not None:
                stated = None if overflow.kind == "silent" else overflow.used_tokens
            attempts.append(
                Sent(
                    stated or round(count * factor),
                    one.max_tokens,
                    overflow.kind if overflow else None,
                    overflow.limit_tokens if overflow else None,
                )
            )
        return attempts, factor

    def _fixed(self, tokens: int) -> tuple[int, int, tuple[tuple[str, int], ...]]:
        """Return the share of system messages and tool schemas in a request of `tokens`.

        By bytes: to count them would load a vocabulary. With it the bytes, and the largest tools.
        """
        media = [one for one in self.messages if holds_media(one)]
        texts = [one for one in self.messages if not holds_media(one)]
        tools = [(_tool_name(tool), _bytes(json.dumps(tool))) for tool in self.tools or ()]
        schemas = sum(size for _, size in tools)
        fixed, whole = (
            schemas + sum(_bytes(message_text(one)) for one in some)
            for some in (system_messages(texts), texts)
        )
        if media:
            tokens = max(tokens - count_tokens(media, self.model), 0)
        per_byte = tokens / max(whole, 1)
        largest = sorted(tools, key=lambda one: -one[1])[:_TOOLS_KEPT]
        shares = tuple((name, round(size * per_byte)) for name, size in largest)
        return round(fixed * per_byte), fixed, shares


def _bytes(text: str) -> int:
    return len(text.encode(errors="replace"))


def _shown(name: str) -> str:
    """Return a name as it is recorded."""
    return _KEY.sub(lambda key: key.group()[:4] + "…", name)[:_NAME_CHARS]


def _tool_name(tool: Mapping[str, Any]) -> str:
    return str(function_of(tool).get("name"))


def _in_theirs(cut: SentCut, before: float, after: float) -> SentCut:
    """Return a cut whose tokens are the provider's."""
    # Texts differ in what the provider counts for them; what is left is never more than all of it.
    left = round(cut.tokens_after * min(before, after))
    return replace(
        cut,
        tokens_before=round(cut.tokens_before * before),
        tokens_after=max(left, int(cut.tokens_after > 0)),
    )


def record_file(config: Path, name: str = REQUESTS) -> LineFile:
    """Return where requests are recorded: beside nanobot's config file."""
    file = state_file(config, name)
    return LineFile(file, _MAX_BYTES, older=_OLDER, what="requests")


def read_records(
    config: Path, session: str | None = None, name: str = REQUESTS
) -> list[RequestRecord]:
    """Return the newest requests, oldest first: see `records_in`."""
    return records_in(record_file(config, name), session)


def is_record(path: Path) -> bool:
    """Return whether `path` is a file of recorded requests, by its first line."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            RequestRecord.from_dict(json.loads(file.readline(_MAX_BYTES)))
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return False
    return True


def records_in(file: LineFile, session: str | None = None) -> list[RequestRecord]:
    """Return the requests in a file, oldest first; with `session` those of one session.

    What is in every request has one number as long as it is the same: at one place each byte of it
    is as many tokens as in the request of which it was the largest part, of those whose tokens were
    reported where there are any.
    """
    found = []
    for given in _objects(file):
        try:
            found.append(RequestRecord.from_dict(given))
        except (KeyError, TypeError):
            continue  # of another version
    found.sort(key=lambda record: record.at)
    surest: dict[str, RequestRecord] = {}
    for record in found:
        known = surest.setdefault(record.place, record)
        if _sureness(record) > _sureness(known):
            surest[record.place] = record
    return [
        _steady(record, surest[record.place])
        for record in found
        if session is None or record.session == session
    ]


def _sureness(record: RequestRecord) -> tuple[bool, bool, float]:
    part = record.fixed_tokens / max(record.tokens_before, 1)
    return record.fixed_bytes > 0, record.prompt_tokens is not None, part


def _steady(record: RequestRecord, surest: RequestRecord) -> RequestRecord:
    """Return a record in which what is in every request has as many tokens a byte as in another."""
    if not (record.fixed_bytes and record.fixed_tokens):
        return record
    fixed = round(surest.fixed_tokens * record.fixed_bytes / surest.fixed_bytes)
    # Of one that nobody reported less may have been counted here.
    fixed = min(fixed, record.tokens_before)
    share = fixed / record.fixed_tokens
    tools = tuple((name, round(tokens * share)) for name, tokens in record.tools)
    return replace(record, fixed_tokens=fixed, tools=tools)


def _objects(file: LineFile) -> Iterator[Mapping[str, Any]]:
    for line in file.lines():
        try:
            given = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(given, dict):
            yield given
