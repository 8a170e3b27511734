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
        tokens: Tokens of the prompt.
        max_tokens: The limit for the answer; `None` for none.
        refused: `Overflow.kind` of the refusal, `silent` for a silent cut; `None` if it was
            accepted.
        limit_tokens: The limit that the refusal stated; after a silent cut, the tokens read.
        is_reported: Whether the provider reported `tokens`; else they are an estimate.
    """

    tokens: int
    max_tokens: int | None = None
    refused: str | None = None
    limit_tokens: int | None = None
    is_reported: bool = False


@dataclass(frozen=True, slots=True)
class SentCut:
    """A message that was shortened or left out.

    Attributes:
        index: Its position in nanobot's request, from 1.
        role: Its role.
        tool: The tool whose result it is; `None` for other messages.
        reason: `Cut.reason`.
        tokens_before: Its tokens, as its share of the request's.
        tokens_after: Its tokens as sent; 0 if it was left out.
        chars: The length of its text.
        kept: The spans of the text that were sent, as of `kept_spans`; empty if unknown.
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

    All tokens are the provider's. Where it reports none, as for parts of a prompt and cuts, they
    are this package's counts times the provider's ratio in this request, or else its learned ratio.

    Attributes:
        at: When it began, in UTC, ISO 8601.
        session: nanobot's key of the session; a subagent has that of the turn that started it. For
            other programs `call_with_recovery`, `wrap` or `serve`.
        is_subagent: Whether a subagent made it.
        model: The model.
        place: The model with the address that it was sent to, as lessons name it.
        window_tokens: The window, as known at the end; 0 for none.
        window_source: Where that number is from.
        fixed_tokens: The fixed part: system messages and tool schemas. No provider reports it by
            itself: see `records_in`.
        answer_tokens: Tokens kept free for the answer.
        messages: The number of messages in nanobot's request.
        tokens_before: Tokens of nanobot's request.
        attempts: The attempts, in order; empty if nothing was sent.
        outcome: `answered`; `gave up` if nothing small enough was left to send; `interrupted` if
            the task or the program ended before the answer; `failed` for an error that says
            nothing about sizes.
        prompt_tokens: Reported tokens of the prompt that was answered.
        cached_tokens: Those of them that came out of the provider's cache.
        completion_tokens: Reported tokens of the answer.
        cuts: The messages that were cut, at most 50: those that freed most.
        cut_messages: The number of all that were cut.
        gone: Names in them that no sent message has, at most 20.
        gone_names: The number of all such names.
        is_shortened: Whether the last attempt differs from nanobot's request.
        gone_from: The position of the message of each of `gone`, from 1.
        left_out: The positions of all messages left out: `2-40,44`.
        roles: The first letters of the newest 2,000 messages' roles.
        anchor: The position of the message with `anchor_key`; 0 for none.
        anchor_key: The `message_key` of a message, by which the session's place is found.
        keys: The newest messages' keys, oldest first: see `known_by`.
        tools: The largest tool schemas, at most 5: names, and tokens, about.
        fixed_bytes: Bytes of the fixed part; 0 if they were not noted.
        is_fixed_known: Whether `fixed_tokens` are nearly all of a prompt whose size was reported;
            else they are an estimate. Set when the record is read: see `records_in`.
        workspace: The folder of nanobot's workspace, in which session keys are unique; `None` if
            not noted, and for other programs.
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
