"""Makes the record of a request that is over."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from nanobot_context._core import Lost, Overflow, count_tokens
from nanobot_context.guard.ratios import RATIOS
from nanobot_context.guard.record import RequestRecord, Sent, SentCut
from nanobot_context.guard.trace import Trace
from nanobot_context.guard.windows import Window
from nanobot_context.history import function_of, system_messages
from nanobot_context.host.message_keys import known_by, message_key
from nanobot_context.message_texts import holds_media, message_text
from nanobot_context.types import Message

# A conversation of thousands of messages has thousands of cuts, in each request again.
_CUTS_KEPT = 50
_NAMES_KEPT = 20
_NAME_CHARS = 80
_TOOLS_KEPT = 5
_ROLES_KEPT = 2_000
_KEYS_KEPT = 12
_LEFT_OUT_CHARS = 2_000
# A conversation that is less of a request than this says nothing of how it is counted.
_LEAST_REST = 0.1

# Keys as providers hand them out, and what looks like one: long, of small and large letters and of
# digits.
_KEY = re.compile(
    r"\b(?:sk-|gh[oprsu]_|github_pat_|glpat-|xox[a-z]-|AKIA|ASIA|AIza|eyJ|hf_|npm_|pypi-)[\w-]{8,}"
    r"|\b(?=\w*[a-z])(?=\w*[A-Z])(?=\w*\d)\w{16,}"
)


@dataclass(frozen=True, slots=True)
class _Scale:
    """Converts our counts of a request into its provider's.

    Attributes:
        ratio: Its tokens for one of ours, without the fixed part (system prompt, tools).
        ours: Our count of the fixed part.
        fixed: The provider's count of it; `None` if it was not needed.
    """

    ratio: float
    ours: int = 0
    fixed: int | None = None

    def theirs(self, count: int) -> int:
        """Return the provider's count of a part of a request, given ours."""
        return (self.fixed or 0) + round((count - self.ours) * self.ratio)


@dataclass(frozen=True, slots=True)
class Ended:
    """A request that is over; `record` makes its record.

    Counts away from the event loop; a request that was sent unchanged and answered with its usage
    is not counted at all.

    Attributes:
        messages: nanobot's messages.
        whole: For each attempt, whether they were sent unchanged.
        ratio: Tokens that the provider counts for one of ours.
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
        """Whether the last attempt was sent uncut."""
        return not self.whole or self.whole[-1]

    def _count(self, messages: list[Message]) -> int:
        return count_tokens(messages, self.model, tools=self.tools)

    def record(self, surest: RequestRecord | None = None) -> RequestRecord:
        """Return the record.

        `surest` is the record to the same place that measures the fixed part best.
        """
        trace, tries = self.trace, self.trace.tries
        prompt, cached, completion = trace.usage
        fixed_bytes, all_bytes = self._bytes()
        known = None
        if surest is not None and surest.prompt_tokens is not None and surest.fixed_bytes:
            known = surest.fixed_tokens * fixed_bytes / surest.fixed_bytes
        attempts, scale = self._attempts(prompt, known)
        sent_whole = [one.tokens for one, is_so in zip(attempts, self.whole, strict=True) if is_so]
        before = sent_whole[0] if sent_whole else scale.theirs(self._count(self.messages))
        cuts: list[SentCut] = []
        lost: list[tuple[int, Lost]] = []
        if not self.is_whole:
            sent = tries[-1].messages
            cuts, lost = trace.cuts(self.messages, sent)
            cuts = [_in_theirs(cut, scale.ratio) for cut in cuts or self._changed(sent)]
        left_out = [cut.index for cut in cuts if not cut.tokens_after and cut.reason != "joined"]
        most = sorted(cuts, key=lambda cut: cut.tokens_after - cut.tokens_before)[:_CUTS_KEPT]
        fixed = scale.fixed
        if fixed is None:
            # By bytes, as counting would load a vocabulary; else as in the surest record.
            texts = self._text_tokens(before)
            fixed = round(texts * fixed_bytes / max(all_bytes, 1))
            if surest and known and fixed * surest.tokens_before < surest.fixed_tokens * before:
                fixed = min(round(known), texts)
        keyed = zip(
            range(len(self.messages), 0, -1), map(message_key, self.messages[::-1]), strict=True
        )
        anchor, anchor_key = next((one for one in keyed if one[1]), (0, ""))
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
            anchor_key=anchor_key,
            keys=tuple(map(known_by, self.messages[-_KEYS_KEPT:])),
            tools=self._largest_tools(fixed / max(fixed_bytes, 1)),
            fixed_bytes=fixed_bytes,
            workspace=trace.workspace,
        )

    def _text_tokens(self, tokens: int) -> int:
        """Return the `tokens` of the request without those of messages with images or files."""
        media = [one for one in self.messages if holds_media(one)]
        return max(tokens - count_tokens(media, self.model), 0) if media else tokens

    def _changed(self, sent: list[Message]) -> list[SentCut]:
        """Return the messages that became smaller: of a consolidation there is no receipt."""
        if len(sent) != len(self.messages):
            return []
        changed = []
        for place, (one, other) in enumerate(zip(self.messages, sent, strict=True), 1):
            if one is other or one == other:
                continue
            before, after = (count_tokens([message], self.model) for message in (one, other))
            # A message whose reasoning was put back is larger, not cut.
            if after < before:
                role = str(one.get("role"))
                changed.append(SentCut(place, role, None, "long_message", before, after))
        return changed

    def _attempts(self, prompt: int | None, known: float | None) -> tuple[list[Sent], _Scale]:
        """Return the attempts, and what our counts of this request are at the provider."""
        tries = self.trace.tries
        # An answer that stands may be to a prompt that was cut in silence.
        read_tokens = prompt if tries and tries[-1].overflow is None else None
        if self.is_whole and read_tokens is not None and len(tries) == 1:
            only = Sent(read_tokens, tries[0].max_tokens, is_reported=True)
            return [only], _Scale(self.ratio)
        stated = [_stated(one.overflow) if one.overflow else read_tokens for one in tries]
        counts = [self._count(one.messages) for one in tries]
        said = [(one, other) for one, other in zip(stated, counts, strict=True) if one and other]
        scale = self._scale(said, known)
        attempts = [
            Sent(
                tokens or scale.theirs(count),
                one.max_tokens,
                one.overflow.kind if one.overflow else None,
                one.overflow.limit_tokens if one.overflow else None,
                is_reported=bool(tokens),
            )
            for one, tokens, count in zip(tries, stated, counts, strict=True)
        ]
        return attempts, scale

    def _scale(self, said: list[tuple[int, int]], known: float | None) -> _Scale:
        """Return the scale from our counts to the provider's; `said` pairs its counts with ours.

        The fixed part may be counted in another way, as tool schemas are, and it is a large part of
        what was sent and none of what was cut: if it is `known`, or two prompts of different size
        were counted, the rest has a ratio of its own.
        """
        ours = count_tokens(system_messages(self.messages), self.model, tools=self.tools)
        tokens, count = said[-1] if said else (0, 0)
        ratio = all_of_it = tokens / count if tokens else self.ratio
        fixed = known
        if known is not None and count - ours > count * _LEAST_REST:
            ratio = (tokens - known) / (count - ours)
        elif known is None and said and said[0][1] - count > count * _LEAST_REST:
            ratio = (said[0][0] - tokens) / (said[0][1] - count)
            fixed = tokens - ratio * (count - ours)
        if fixed is None or fixed < 0 or not RATIOS[0] <= ratio <= RATIOS[1]:
            return _Scale(all_of_it, ours, round(ours * all_of_it))
        return _Scale(ratio, ours, round(fixed))

    def _bytes(self) -> tuple[int, int]:
        """Return how long system messages and tool schemas are, and all texts of the request."""
        texts = [one for one in self.messages if not holds_media(one)]
        schemas = sum(_bytes(json.dumps(tool)) for tool in self.tools or ())
        fixed, whole = (
            schemas + sum(_bytes(message_text(one)) for one in some)
            for some in (system_messages(texts), texts)
        )
        return fixed, whole

    def _largest_tools(self, per_byte: float) -> tuple[tuple[str, int], ...]:
        sized = [(_bytes(json.dumps(tool)), tool) for tool in self.tools or ()]
        largest = sorted(sized, key=lambda one: -one[0])[:_TOOLS_KEPT]
        return tuple(
            (str(function_of(tool).get("name")), round(size * per_byte)) for size, tool in largest
        )


def _stated(overflow: Overflow) -> int | None:
    """Return the prompt tokens that a refusal states; `None` if the prompt was cut silently."""
    return None if overflow.kind == "silent" else overflow.used_tokens


def _ranges(positions: Iterable[int]) -> str:
    """Return positions as `2-40,44`."""
    runs: list[list[int]] = []
    for position in positions:
        if runs and runs[-1][1] == position - 1:
            runs[-1][1] = position
        else:
            runs.append([position, position])
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in runs)


def _bytes(text: str) -> int:
    return len(text.encode(errors="replace"))


def _shown(name: str) -> str:
    """Return a name shortened, with what looks like a key masked."""
    return _KEY.sub(lambda key: key.group()[:4] + "…", name)[:_NAME_CHARS]


def _in_theirs(cut: SentCut, ratio: float) -> SentCut:
    """Return a cut whose tokens are the provider's."""
    return replace(
        cut,
        tokens_before=round(cut.tokens_before * ratio),
        tokens_after=max(round(cut.tokens_after * ratio), int(cut.tokens_after > 0)),
    )
