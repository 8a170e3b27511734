"""A request that is over, and the record that is made of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nanobot_context._core import count_tokens
from nanobot_context.guard.record import RequestRecord, Sent, SentCut
from nanobot_context.guard.trace import Trace
from nanobot_context.history import function_of, system_messages
from nanobot_context.message_texts import holds_media, known_by, message_key, message_text

if TYPE_CHECKING:
    from nanobot_context._core import Lost
    from nanobot_context.guard.windows import Window
    from nanobot_context.types import Message

# A conversation of thousands of messages has thousands of cuts, in each request again.
_CUTS_KEPT = 50
_NAMES_KEPT = 20
_NAME_CHARS = 80
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
