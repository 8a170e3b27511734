"""What the sizes that a provider reports say of it: all that it read, the rest, or an estimate."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import linear_regression
from typing import Any

from nanobot_context.identity import common_length
from nanobot_context.reasoning import THOUGHTS

# Reports in a row that were of more than what was new, of a provider that reports all that it read.
_IN_A_ROW = 3
# Characters a token, to a server that estimates in place of counting: four, and a tenth for what it
# leaves out. Numbers, names and other scripts have twice as many tokens in any vocabulary.
ESTIMATED = 4.4
# And at least, whatever was there before.
DENSE = 3.0
# A prompt that was cut is read as less than this share of what it would be.
AS_BEFORE = 0.9
# By so much a report may differ from what the length of a prompt makes it, of a server that goes by
# length.
_BY_LENGTH = 0.03
_KEPT = 8
# No model reads less: a smaller report is of what was in no cache.
_LEAST_READ = 1_024


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as it was sent.

    Attributes:
        theirs: The provider's count.
        ours: Our count; 0 where it was not counted here.
        hashes: The hashes of its texts; none where it was not counted here.
    """

    messages: list[Any] = field(default_factory=list)
    theirs: int = 0
    ours: int = 0
    hashes: list[int] = field(default_factory=list)

    def begins(self, messages: list[Any]) -> bool:
        """Return whether `messages` begin with all of it, and it has any."""
        return 0 < len(self.messages) == self.shared(messages)

    def shared(self, messages: list[Any]) -> int:
        """Return how many of its messages `messages` begin with."""
        return common_length(self.messages, messages)


@dataclass(slots=True)
class Reports:
    """The sizes that one provider reported in this process, counted here or not.

    Attributes:
        are_of_the_rest: Whether less was reported of a prompt that only grew, and no more than what
            was new: what was not in the provider's cache, and not what it read.
        growth: What was new in the last prompt, where that was text, and by how much more was
            reported of it than of the one before.
        repeated: How many prompts before the last one were reported as the same size, each the
            beginning of the next.
    """

    are_of_the_rest: bool = False
    growth: tuple[list[Any], int] | None = None
    repeated: int = 0
    _of_all: int = 0
    _last: Prompt = field(default_factory=Prompt)
    _lengths: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=_KEPT))

    def add(self, messages: list[Any], theirs: int) -> None:
        """Remember what was reported of a prompt that was not cut."""
        self.growth = None
        last = self._last
        shared = last.shared(messages)
        extends = 0 < shared == len(last.messages)
        self.repeated = self.repeated + 1 if extends and theirs == last.theirs else 0
        if shared:
            new = messages[shared:]
            # No text has more tokens than characters.
            most = characters(new)
            if extends and theirs < last.theirs:
                # A token has two characters, at least in most texts. One such report among many of
                # all that was read may be what a cut has left.
                is_of_new = theirs < max(most // 2, _LEAST_READ)
                self.are_of_the_rest |= is_of_new and not self.are_of_all
                self._of_all //= 2
            elif theirs > most:
                self._of_all += 1
            if extends and all(map(_is_text, new)):
                self.growth = new, theirs - last.theirs
        self._last = Prompt(list(messages), theirs)
        self._lengths.append((characters(messages), theirs))

    @property
    def are_of_all(self) -> bool:
        """Whether all of each prompt was reported lately, and not only what was in no cache."""
        return self._of_all >= _IN_A_ROW and not self.are_of_the_rest

    def are_by_length(self, messages: list[Any], theirs: int) -> bool:
        """Return whether a prompt was read as what its length makes it, by those before."""
        # What has no characters has no tokens, where there is only one report.
        known = [*self._lengths] if len(self._lengths) > 1 else [(0, 0), *self._lengths]
        lengths, sizes = zip(*known, strict=True)
        if len(set(lengths)) == 1:
            return False
        slope, intercept = linear_regression(lengths, sizes)
        return slope > 0 and all(
            abs(size - slope * length - intercept) <= _BY_LENGTH * size
            for length, size in (*known, (characters(messages), theirs))
        )

    def reads_less(self, messages: list[Any], theirs: int) -> bool:
        """Return whether a prompt was read as less than the last one, of which it has most.

        Reasoning may have been left out by the server's template, so where there is any: no. Nor
        where a picture went, which has tokens and no characters.
        """
        last = self._last
        if not (self.are_of_all and theirs < last.theirs * AS_BEFORE):
            return False
        gone, new = self._parting(messages)
        thinks = any(message.keys() & THOUGHTS for message in (*last.messages, *messages))
        if not (gone or new) or thinks or not all(map(_is_text, gone)):
            return False
        tokens = characters(gone)
        return tokens <= characters(new) and theirs < (last.theirs - tokens) * AS_BEFORE

    def grows_little(self, messages: list[Any], theirs: int) -> bool:
        """Return whether a prompt that goes on from the last one was read as hardly longer."""
        if (last := self.last(messages)) is None:
            return False
        new = characters(messages[len(last.messages) :])
        return theirs - last.theirs < AS_BEFORE * new / ESTIMATED

    def last(self, messages: list[Any]) -> Prompt | None:
        """Return the last prompt that was reported, if `messages` begin with it."""
        return self._last if self._last.begins(messages) else None

    def new(self, messages: list[Any]) -> list[Any]:
        """Return those of `messages` that the last prompt did not begin with, if it began so."""
        return self._parting(messages)[1]

    def read_as_the_last(
        self, messages: list[Any], theirs: int
    ) -> tuple[list[Any], list[Any]] | None:
        """Return in what texts a prompt and the last one differ, of which the same size was read.

        First those of the last one. `None` where they do not begin alike, the prompt is not longer
        by its characters, or not all that differs is text.
        """
        if theirs != self._last.theirs:
            return None
        gone, new = self._parting(messages)
        is_longer = characters(gone) < characters(new) and all(map(_is_text, (*gone, *new)))
        return (gone, new) if is_longer else None

    def _parting(self, messages: list[Any]) -> tuple[list[Any], list[Any]]:
        """Return what comes after the messages that both the last prompt and `messages` begin with.

        Nothing, of either, where they do not begin alike.
        """
        shared = self._last.shared(messages)
        return (self._last.messages[shared:], messages[shared:]) if shared else ([], [])


def estimated_tokens(messages: list[Any]) -> int:
    """Return the fewest tokens that a server would estimate from the length of `messages` alone."""
    return int(characters(messages) / ESTIMATED)


def characters(messages: list[Any]) -> int:
    """Return the length of the texts of `messages`, and of the arguments of their calls."""
    return sum(map(_characters, messages))


def _is_text(message: dict[str, Any]) -> bool:
    """Return whether all tokens of a message are of texts that `characters` counts."""
    return isinstance(message.get("content"), str | None) and not message.keys() & THOUGHTS


def _characters(message: dict[str, Any]) -> int:
    content, calls = message.get("content"), message.get("tool_calls")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    functions = [call.get("function") for call in calls or () if isinstance(call, dict)]
    texts += [function.get("arguments") for function in functions if isinstance(function, dict)]
    return sum(len(text) for text in texts if isinstance(text, str))
