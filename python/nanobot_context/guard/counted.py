"""Remembers what one provider has reported in this process: texts it counted, its last prompt."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from nanobot_context.guard.ratios import RATIOS
from nanobot_context.reasoning import THOUGHTS

# Texts are known by their hashes, up to so many.
_MOST_SEEN = 50_000
# A prompt that was cut: what is new counts at least so much of what the rest did; it is read as at
# least so much of what was read before; fewer tokens say nothing.
_LEAST_SHARE = 0.75
_AS_BEFORE = 0.9
_FEW_TOKENS = 32
# Reports in a row that were of more than what was new, of a provider that reports all that it read.
_REPORTED_ALL = 3
# Characters a token, to a server that estimates in place of counting: four, and a tenth for what it
# leaves out. Numbers, names and other scripts have twice as many tokens in any vocabulary.
_ESTIMATED = 4.4
# And at least, whatever was there before.
_DENSE = 3.0


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as it was sent, with the hashes of its texts, our count and the provider's."""

    messages: list[Any]
    hashes: list[int]
    ours: int
    theirs: int


@dataclass(slots=True)
class Reports:
    """Sizes that one provider reported, whether or not the prompts were counted here."""

    _in_a_row: int = 0
    _messages: list[Any] = field(default_factory=list)
    _tokens: int = 0

    def add(self, messages: list[Any], theirs: int) -> None:
        """Remember what was reported of a prompt that was not cut."""
        if shared := _shared(self._messages, messages):
            # No text has more tokens than characters: it was not only what is new.
            is_all = theirs > sum(map(_characters, messages[shared:]))
            is_less = shared == len(self._messages) and theirs < self._tokens
            self._in_a_row = 0 if is_less else self._in_a_row + is_all
        self._messages, self._tokens = list(messages), theirs

    @property
    def are_of_all(self) -> bool:
        """Whether all of each prompt was reported lately, and not only what was in no cache."""
        return self._in_a_row >= _REPORTED_ALL

    def reads_less(self, messages: list[Any], theirs: int) -> bool:
        """Return whether a prompt was read as less than the last one, of which it has most.

        Reasoning may have been left out by the server's template, so where there is any: no.
        """
        last = self._messages
        shared = _shared(last, messages)
        if not (self.are_of_all and shared and theirs < self._tokens * _AS_BEFORE):
            return False
        if any(message.keys() & THOUGHTS for message in (*last, *messages)):
            return False
        gone, new = (sum(map(_characters, part[shared:])) for part in (last, messages))
        return gone <= new and theirs < (self._tokens - gone) * _AS_BEFORE


@dataclass(slots=True)
class Counted:
    """Counts of one model at one provider.

    Attributes:
        reports_the_rest: Whether it has reported less of a prompt that only grew: what was not in
            its cache, and not what it read.
        reports: What it has reported, counted here or not.
    """

    reports_the_rest: bool = False
    reports: Reports = field(default_factory=Reports)
    _last: Prompt | None = None
    _seen: set[int] = field(default_factory=set)

    def add(self, messages: list[Any], ours: int, theirs: int, *, refused: bool) -> bool:
        """Remember a count; return whether it covers the whole prompt."""
        before = self._before(messages)
        if before is not None:
            is_less = theirs < before.theirs
            self.reports_the_rest |= is_less and not refused
        hashes = self._hashes(messages)
        # nanobot goes on with its own list.
        self._last = Prompt(list(messages), hashes, ours, theirs)
        if self.reports_the_rest and theirs < ours:
            return False
        if len(self._seen) > _MOST_SEEN:
            self._seen.clear()
        self._seen.update(hashes)
        return True

    def goes_on(self, messages: list[Any]) -> bool:
        """Return whether `messages` begin with the last prompt."""
        return self._before(messages) is not None

    def shared_with_last(self, messages: list[Any]) -> tuple[Prompt, int] | None:
        """Return the last prompt, and how many messages at its beginning `messages` begin with.

        `None` without any, or where not all of the prompt was reported.
        """
        last = self._last
        if last is None or self.reports_the_rest or last.theirs < RATIOS[0] * last.ours:
            return None
        shared = _shared(last.messages, messages)
        return (last, shared) if shared else None

    def new(self, messages: list[Any]) -> list[Any]:
        """Return those of `messages` that have not been counted."""
        known = zip(messages, self._hashes(messages), strict=True)
        return [message for message, one in known if one not in self._seen]

    def was_cut(
        self, messages: list[Any], ours: int, theirs: int, tools: list[Any] | None = None
    ) -> bool:
        """Return whether a prompt was cut, of which `theirs` was read.

        It was if it goes on from the last one and was read as hardly longer. If it was read as
        shorter, that is what a cache held back, unless those before were read as longer each time
        and what is new is far less. Reasoning may have been left out by the server's template.

        What is new was read whole if it counts as many tokens as its length would: other
        vocabularies differ by more than a cut in numbers and tables, and a server that goes by
        length alone differs there, too. What is more than all before says how long that is at
        least; what came before says little of it.
        """
        before = self._before(messages)
        if before is None or any(message.keys() & THOUGHTS for message in messages):
            return False
        grown = ours - before.ours
        counts = min(before.theirs / before.ours, 1.0)
        if theirs < before.theirs * _AS_BEFORE:
            # Thoughts that went out before, and in no message, may be what is missing.
            is_less = theirs < ours * counts * _AS_BEFORE
            return is_less and self.reports.are_of_all and theirs > 2 * grown
        known, new = (
            sum(map(_characters, part))
            for part in (before.messages, messages[len(before.messages) :])
        )
        known += len(json.dumps(tools, default=str)) if tools else 0
        characters_a_token = min(max(known / before.theirs, _DENSE), _ESTIMATED)
        if grown >= before.ours:
            characters_a_token = _ESTIMATED
        least = min(
            _LEAST_SHARE * grown * counts,
            _AS_BEFORE * new / characters_a_token,
        )
        return theirs - before.theirs < least - max(theirs // 100, _FEW_TOKENS)

    def _hashes(self, messages: list[Any]) -> list[int]:
        """Return the hashes of `messages`; most are reused from the last prompt."""
        before = self._before(messages)
        known = before.hashes if before else []
        return [*known, *map(_hash, messages[len(known) :])]

    def _before(self, messages: list[Any]) -> Prompt | None:
        """Return the last prompt, if `messages` begin with it."""
        last = self._last
        if last is None or not 0 < len(last.messages) <= len(messages) or last.ours <= 0:
            return None
        return last if _shared(last.messages, messages) == len(last.messages) else None


def _shared(last: list[Any], messages: list[Any]) -> int:
    """Return how many messages at their beginning two prompts have in common."""
    pairs = enumerate(zip(last, messages, strict=False))
    return next(
        (at for at, (a, b) in pairs if not (a is b or a == b)), min(len(last), len(messages))
    )


def estimated_tokens(messages: list[Any]) -> int:
    """Return the fewest tokens that a server would estimate from the length of `messages` alone."""
    return int(sum(map(_characters, messages)) / _ESTIMATED)


def _characters(message: dict[str, Any]) -> int:
    content, calls = message.get("content"), message.get("tool_calls")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    functions = [call.get("function") for call in calls or () if isinstance(call, dict)]
    texts += [function.get("arguments") for function in functions if isinstance(function, dict)]
    return sum(len(text) for text in texts if isinstance(text, str))


def _hash(message: dict[str, Any]) -> int:
    content, calls = message.get("content"), message.get("tool_calls")
    # Not what an image holds, which is long and costs the same.
    text = content if isinstance(content, str) else _parts(content)
    return hash((message.get("role"), text, repr(calls) if calls else None))


def _parts(content: Any) -> tuple[Any, ...]:
    parts = content if isinstance(content, list) else []
    known = (part if isinstance(part, dict) else {} for part in parts)
    return tuple(str(part.get("text") or part.get("type")) for part in known)
