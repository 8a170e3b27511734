"""Remembers which texts one provider has counted in this process, and its last prompt."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from nanobot_context._core import count_tokens
from nanobot_context.guard.ratios import COUNTS_KEPT, RATIOS, Size, bound_by_growth
from nanobot_context.guard.reports import (
    AS_BEFORE,
    DENSE,
    ESTIMATED,
    Prompt,
    Reports,
    characters,
)
from nanobot_context.reasoning import THOUGHTS

# Texts are known by their hashes, up to so many.
_MOST_SEEN = 50_000
# Sizes are kept of prompts with so many first messages: conversations differ there, and subagents.
_MOST_BEGINNINGS = 64
# A prompt that was cut: what is new counts at least so much of what the rest did; fewer tokens say
# nothing.
_LEAST_SHARE = 0.75
_FEW_TOKENS = 32
# By so much a provider may count more of what is new than is counted here, and of its framing.
_NEW_TEXT = 1.3
_UNEVEN = 1.4, 64


@dataclass(slots=True)
class Counted:
    """Counts of one model at one provider.

    Attributes:
        model: The model that texts are counted for here.
        reports: The sizes that it reported, whether or not the prompts were counted here.
        reports_the_rest: Whether it has reported less of a prompt that only grew.
    """

    model: str | None = None
    reports: Reports = field(default_factory=Reports)
    reports_the_rest: bool = False
    _last: Prompt = field(default_factory=Prompt)
    _seen: set[int] = field(default_factory=set)
    _sizes: dict[int, list[Size]] = field(default_factory=dict)

    def add(self, messages: list[Any], ours: int, theirs: int, *, refused: bool) -> bool:
        """Remember a count; return whether it covers the whole prompt."""
        if self.extends_last(messages):
            self.reports_the_rest |= theirs < self._last.theirs and not refused
        hashes = self._hashes(messages)
        # nanobot goes on with its own list.
        self._last = Prompt(list(messages), theirs, ours, hashes)
        if self.reports_the_rest and theirs < ours:
            return False
        if len(self._seen) > _MOST_SEEN:
            self._seen.clear()
        self._seen.update(hashes)
        # Far less is not of what was read.
        if hashes and theirs >= RATIOS[0] * ours:
            self._keep_size(hashes[0], (ours, len(messages), theirs))
        return True

    def extends_last(self, messages: list[Any]) -> bool:
        """Return whether `messages` begin with the last prompt."""
        return self._last.begins(messages)

    def shared_with_last(self, messages: list[Any]) -> tuple[Prompt, int] | None:
        """Return the last prompt, and how many messages at its beginning `messages` begin with.

        `None` without any, or where not all of the prompt was reported.
        """
        last = self._last
        if self.reports_the_rest or last.theirs < RATIOS[0] * last.ours:
            return None
        shared = last.shared(messages)
        return (last, shared) if shared else None

    def at_most(self, messages: list[Any], ours: int, framing: int) -> int | None:
        """Return the most that the provider may count of a prompt of `ours` tokens.

        By how prompts with the same first message grew: see `bound_by_growth`.
        """
        sizes = self._sizes.get(_hash(messages[0]), []) if messages else []
        return bound_by_growth(sizes, ours, len(messages), framing)

    def _keep_size(self, first: int, size: Size) -> None:
        """Keep the last sizes of prompts with one first message, and the smallest of them."""
        sizes = self._sizes.pop(first, [])
        if len(sizes) == COUNTS_KEPT:
            del sizes[1 if sizes[0] == min(sizes) else 0]
        self._sizes[first] = [*sizes, size]
        if len(self._sizes) > _MOST_BEGINNINGS:
            del self._sizes[next(iter(self._sizes))]

    def new(self, messages: list[Any]) -> list[Any]:
        """Return those of `messages` that have not been counted."""
        known = zip(messages, self._hashes(messages), strict=True)
        return [message for message, one in known if one not in self._seen]

    def count(self, messages: list[Any]) -> int:
        """Return our count of `messages`; 0 of none, which have no framing either."""
        return count_tokens(messages, self.model) if messages else 0

    def could_be_cut(self, messages: list[Any], theirs: int) -> bool:
        """Return whether a prompt of which `theirs` was reported may have been cut.

        It was not if that is what its length makes it and more than of the one before, or as much
        as what was new to a provider that may report what was in no cache; nor if the prompt before
        grew by more than was new in it, for then not all of them are reported alike.
        """
        reports = self.reports
        if reports.are_of_the_rest:
            return False
        unread = self.unread(messages, theirs)
        if reports.are_by_length(messages, theirs) and not unread:
            return False
        grown = None
        if reports.growth is not None:
            texts, tokens = reports.growth
            factor, framing = _UNEVEN
            grown = self.count(texts)
            if tokens > grown * factor + framing:
                return False
        new = self.count(reports.new(messages))
        # The third report of one size is of a window, unless the same text was new again.
        is_window = unread > 0 and reports.repeated > 0 and new != grown
        return is_window or not new or not new * RATIOS[0] <= theirs <= new * _NEW_TEXT

    def unread(self, messages: list[Any], theirs: int) -> int:
        """Return how many tokens of a prompt cannot have been read, as many as of the last one.

        0 if it was read as another size, or has hardly more tokens than the last one: by chance,
        two prompts have the same.
        """
        differing = self.reports.read_as_the_last(messages, theirs)
        if differing is None:
            return 0
        gone, new = map(self.count, differing)
        return new - gone if new - gone >= _FEW_TOKENS else 0

    def was_cut(
        self, messages: list[Any], ours: int, theirs: int, tools: list[Any] | None = None
    ) -> bool:
        """Return whether a prompt was cut, of which `theirs` was read.

        It was if it goes on from the last one and was read as hardly longer; read as shorter only
        where all was reported of those before. Reasoning may have been left out by the server's
        template.

        What is new was read whole if it counts as many tokens as its length would: other
        vocabularies differ by more than a cut in numbers and tables, and a server that goes by
        length alone differs there, too. What is more than all before says how long that is at
        least; what came before says little of it.
        """
        last = self.reports.last(messages)
        if last is None or any(message.keys() & THOUGHTS for message in messages):
            return False
        read = last.theirs
        new = messages[len(last.messages) :]
        grown = self.count(new)
        counts = min(read / max(ours - grown, 1), 1.0)
        if theirs < read * AS_BEFORE:
            # Thoughts that went out before, and in no message, may be what is missing.
            return theirs < ours * counts * AS_BEFORE and self.reports.are_of_all
        known = characters(last.messages) + (len(json.dumps(tools, default=str)) if tools else 0)
        characters_a_token = min(max(known / read, DENSE), ESTIMATED)
        if grown >= ours - grown:
            characters_a_token = ESTIMATED
        least = min(
            _LEAST_SHARE * grown * counts,
            AS_BEFORE * characters(new) / characters_a_token,
        )
        return theirs - read < least - max(theirs // 100, _FEW_TOKENS)

    def _hashes(self, messages: list[Any]) -> list[int]:
        """Return the hashes of `messages`; most are reused from the last prompt."""
        known = self._last.hashes[: self._last.shared(messages)]
        return [*known, *map(_hash, messages[len(known) :])]


def _hash(message: dict[str, Any]) -> int:
    content, calls = message.get("content"), message.get("tool_calls")
    # Not what an image holds, which is long and costs the same.
    text = content if isinstance(content, str) else _parts(content)
    return hash((message.get("role"), text, repr(calls) if calls else None))


def _parts(content: Any) -> tuple[Any, ...]:
    parts = content if isinstance(content, list) else []
    known = (part if isinstance(part, dict) else {} for part in parts)
    return tuple(str(part.get("text") or part.get("type")) for part in known)
