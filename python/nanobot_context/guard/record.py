"""The record of a request: what nanobot asked for, what was sent of it, and what came back.

Numbers, and names that stand in the conversation and were cut: no texts, and of what looks like a
key the beginning alone. `trace` notes a request while it is under way, `ended` makes its record,
`record_file` keeps it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias, TypeVar

Outcome: TypeAlias = Literal["answered", "gave up", "interrupted", "failed"]
"""How a request ended: see `RequestRecord`."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One attempt of a request.

    Attributes:
        tokens: Its prompt.
        max_tokens: The limit for the answer, `None` for none.
        refused: What was too large, `Overflow.kind`; `silent` where the prompt was cut in silence,
            `None` where it was taken.
        limit_tokens: The limit that the refusal stated; what was read of it where it was cut in
            silence.
        is_reported: Whether the provider said how large the prompt is; else it is an estimate.
    """

    tokens: int
    max_tokens: int | None = None
    refused: str | None = None
    limit_tokens: int | None = None
    is_reported: bool = False


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

    Every number of tokens is in the provider's. Parts of what it reports, and what was cut, are as
    this package counts, times what the provider counted for one of these in what was sent; where it
    reports nothing, times what it is known to count.

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
            reports it by itself: see `records_in`.
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
        is_fixed_known: Whether `fixed_tokens` are nearly all of a prompt whose size was reported;
            else they are an estimate. Known when the record is read: see `records_in`.
        workspace: The folder of nanobot's workspace, in which session keys are unique; `None` where
            that was not noted, and of other programs.
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
    outcome: Outcome
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
    is_fixed_known: bool = False
    workspace: str | None = None

    @property
    def numbers(self) -> Counter[str]:
        """Its contribution to the counts, by field of `Counts`."""
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
        """Tokens of the last attempt; 0 if there was none."""
        return self.attempts[-1].tokens if self.attempts else 0

    @property
    def is_reported(self) -> bool:
        """Whether the provider reported the size of the last attempt; else it is an estimate."""
        return bool(self.attempts) and self.attempts[-1].is_reported

    @property
    def is_before_reported(self) -> bool:
        """Whether the provider reported `tokens_before`."""
        return any(one.is_reported and one.tokens == self.tokens_before for one in self.attempts)

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
        """Read a record back from the result of `to_dict`.

        Raises:
            TypeError: It is not of this version.
        """
        nested = {
            "attempts": tuple(_checked(Sent(**one)) for one in given["attempts"]),
            "cuts": tuple(
                _checked(SentCut(**{**one, "kept": tuple(one["kept"])})) for one in given["cuts"]
            ),
            "gone": tuple(given["gone"]),
            "gone_from": tuple(given["gone_from"]),
            "keys": tuple(given.get("keys", ())),
            "tools": tuple((name, tokens) for name, tokens in given["tools"]),
        }
        return _checked(cls(**{**given, **nested}))


# What JSON has for each word of an annotation; fields of other ones are read by `from_dict`.
_TYPES: dict[str, type] = {"int": int, "str": str, "bool": bool, "None": type(None)}


def _types_of(record: type[Sent | SentCut | RequestRecord]) -> list[tuple[str, set[type]]]:
    """Return the fields of a record whose values JSON has, with their types."""
    words = {field.name: str(field.type).split(" | ") for field in fields(record)}
    return [
        (name, {_TYPES[one] for one in of})
        for name, of in words.items()
        if set(of) <= _TYPES.keys()
    ]


_FIELDS = {record: _types_of(record) for record in (Sent, SentCut, RequestRecord)}
Checked = TypeVar("Checked", Sent, SentCut, RequestRecord)


def _checked(record: Checked) -> Checked:
    """Return a record whose fields have their types.

    Raises:
        TypeError: One has another type: the file was damaged or edited.
    """
    for name, types in _FIELDS[type(record)]:
        # A truth value is a whole number to `isinstance`.
        if type(value := getattr(record, name)) not in types:
            raise TypeError(f"`{name}` is {value!r}")
    return record
