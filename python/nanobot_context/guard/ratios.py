"""Learns how many tokens a provider counts for one that this package counts.

Three numbers, for text, for framing and for what every request has, which do not grow together: a
server without a chat template takes four times our framing of a message, one that shows tool
schemas as JSON takes a fifth more of these, and a vocabulary that we do not have takes fewer tokens
of any text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

# Counts that agree on a provider's ratio before it is believed; a refusal is believed at once.
_EVIDENCE = 3
# Share of a new count in the moving average.
_WEIGHT = 0.2
# No vocabulary is wrong by more than a factor of two. A report of far less is not of what was read.
RATIOS = (0.6, 2.0)
# A ratio below 1 gives a request more room, so it is believed later, and kept above the largest of
# the counts, which fades, by the margin: as much as two prompts of one script differ where the
# vocabulary is a foreign one. What a cut leaves may differ more than that; the answer's reserve of
# 15 % is beside it. Of a text that was not counted yet it says nothing: see `guard.counted`.
_EVIDENCE_BELOW = 8
_MARGIN = 0.05
_FADING = 0.005
# Counts that tell tokens of text from those of framing, at most and at least; how far apart the two
# must be (0 is the same proportion in each request); what may be left unexplained of what text does
# not explain alone; and what nobody's framing takes.
COUNTS_KEPT = 16
_EVIDENCE_FRAMING = 4
_APART = 0.02
_UNEXPLAINED = 0.1
MOST_FRAMING = 64
# How far prompts must be apart in size, and what may be left unexplained, each as a share of their
# mean, where what every request has is told from text; and the steps in which it is told.
_SPREAD = 0.1
_MISSED = 0.02
_FIXED_STEP = 64
# The ratio in use moves in these steps, and down only when it is this far above the average: a
# budget that changes with every request would move every cut.
_STEP = 0.05
_TOO_HIGH = 0.15

# The size of a prompt: our tokens, messages, and the provider's tokens.
Size = tuple[int, int, int]


@dataclass(slots=True)
class Ratio:
    """How many tokens a provider counts for one of ours.

    Attributes:
        used: As it is used.
        average: The moving average of it.
        counts: How many counts went into that.
        most: The largest of them, which fades.
    """

    used: float = 1.0
    average: float = 1.0
    counts: int = 0
    most: float = 0.0

    def count(self, ours: int, theirs: int, *, refused: bool) -> bool:
        """Take a count in; return whether the ratio in use has changed."""
        low, high = RATIOS
        ratio = min(max(theirs / ours, low), high)
        self.most = max(ratio, self.most - _FADING)
        if refused:
            self.average, self.counts = max(self.average, ratio), self.counts + _EVIDENCE
        else:
            weight = _WEIGHT if self.counts else 1.0
            self.average += weight * (ratio - self.average)
            self.counts += 1
        target = self._target()
        if target <= self.used and self.average >= self.used - _TOO_HIGH:
            return False
        self.used, before = target, self.used
        return target != before

    @property
    def at_most(self) -> float:
        """What it may be at most of a prompt like those before: what is used moves in steps.

        It is believed sooner: by what is used cuts follow, by this the answer's limit, which a
        refusal lowers.
        """
        is_known = self.counts >= _EVIDENCE
        return min(self.most + _MARGIN, self.used) if is_known else self.used

    def _target(self) -> float:
        if self.counts < _EVIDENCE:
            return self.used
        target = self.average
        if target < 1.0:
            is_known = self.counts >= _EVIDENCE_BELOW
            target = min(max(self.most, target) + _MARGIN, 1.0) if is_known else 1.0
        steps = math.ceil(round(target / _STEP, 6))
        return round(min(steps * _STEP, RATIOS[1]), 2)


def framing_of(counts: Sequence[Size]) -> int | None:
    """Return the tokens per message that a provider counts beyond ours.

    Least squares about their means, for what each request has, as tool schemas, may be counted in
    another way, too; 0 where tokens of text alone explain the counts nearly as well. `None` where
    the counts are too few, or tokens and messages grew together.
    """
    if len(counts) < _EVIDENCE_FRAMING:
        return None
    means = [fmean(column) for column in zip(*counts, strict=True)]
    apart_from_means = [[x - mean for x, mean in zip(one, means, strict=True)] for one in counts]
    oo, on, nn, ot, nt = (
        sum(one[a] * one[b] for one in apart_from_means)
        for a, b in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2))
    )
    apart = oo * nn - on * on
    if apart <= _APART * oo * nn:
        return None
    framing = (oo * nt - on * ot) / apart
    text = (nn * ot - on * nt) / apart

    def missed(text: float, framing: float) -> float:
        return sum(
            (theirs - text * ours - framing * n) ** 2 for ours, n, theirs in apart_from_means
        )

    explains = missed(text, framing) <= _UNEXPLAINED * missed(ot / oo, 0.0)
    return min(math.ceil(round(framing, 1)), MOST_FRAMING) if explains and framing >= 1 else 0


def fixed_of(counts: Sequence[Size], framing: int) -> int | None:
    """Return the tokens per request that a provider counts beyond ours.

    `framing` is what `framing_of` found. `None` where the counts are too few, of the same size, or
    not on one line.
    """
    if len(counts) < _EVIDENCE_FRAMING:
        return None
    sizes = [(ours, theirs - framing * messages) for ours, messages, theirs in counts]
    ours, theirs = (fmean(column) for column in zip(*sizes, strict=True))
    spread = fmean((one - ours) ** 2 for one, _ in sizes)
    if spread < (_SPREAD * ours) ** 2:
        return None
    text = fmean((one - ours) * (other - theirs) for one, other in sizes) / spread
    fixed = theirs - text * ours
    missed = math.sqrt(fmean((other - text * one - fixed) ** 2 for one, other in sizes))
    if missed > _MISSED * theirs or not RATIOS[0] <= text <= RATIOS[1]:
        return None
    most = min(other for _, other in sizes) // 2
    # Rounded up, so that what is left for text is not above a step of its ratio.
    return min(max(math.ceil(round(fixed / _FIXED_STEP, 3)), 0) * _FIXED_STEP, most)


def bound_by_growth(sizes: Sequence[Size], ours: int, messages: int, framing: int) -> int | None:
    """Return the most that a provider may count of a prompt, by how others of its kind grew.

    `sizes` are of prompts with the same first message, as a rule the system's. The smallest is
    what they all have, whatever our count makes of that; the rest grows as the others did, of which
    each had text that was new then. `None` where too few grew.
    """
    if not sizes:
        return None
    base, at_first, counted = min(sizes)
    growths = [
        (theirs - counted - framing * (number - at_first)) / (one - base)
        for one, number, theirs in sizes
        if one - base >= base * _SPREAD
    ]
    if len(growths) < _EVIDENCE_FRAMING or ours < base:
        return None
    growth = min(max(growths) + _MARGIN, RATIOS[1])
    return counted + math.ceil(growth * (ours - base)) + framing * (messages - at_first)
