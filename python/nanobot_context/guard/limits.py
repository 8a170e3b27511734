"""Remembers across processes the limits and token ratios that providers have taught.

The window and the largest answer that an error stated, and how many tokens a provider counts where
this package counts one. One small JSON file in nanobot's data folder; it holds names of models and
addresses of servers, and nothing of any conversation. Without it everything is learned again.
"""

from __future__ import annotations

import hashlib
import math
import re
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nanobot_context import log
from nanobot_context.events import Learned, LearnedEvent, emit, is_wanted
from nanobot_context.forks import ThreadLock, alone
from nanobot_context.guard.ratios import (
    COUNTS_KEPT,
    MOST_FRAMING,
    RATIOS,
    Ratio,
    fixed_of,
    framing_of,
)
from nanobot_context.guard.state_file import (
    LEARNED,
    ReadInPart,
    read_state,
    state_file,
    update_state,
)

# Counts of fewer tokens are mostly framing.
_LEAST_TOKENS = 1_000
# A limit that was stated is tried again after a day: servers are started anew with other windows,
# and a number may have been misread. Where it still holds, that costs one refusal.
_LIMIT_SECONDS = 24 * 3600.0
# An assumed limit is tried again after an hour: it is less certain than a stated one.
_ASSUMED_SECONDS = 3600.0
# nanobot's own prompt and tools take as much: a number below was misread where they do not fit.
LEAST_WINDOW = 4_096
# No model has a smaller one: hermes, `agent/model_metadata.py`.
SMALLEST_WINDOW = 1_024
_LEAST_OUTPUT = 256
# The longest accepted prompt grows with every request; it is saved after a growth of a quarter.
_GROWN = 1.25
# Tokens by which what each request has may seem to move: every change makes a budget anew.
_FIXED_MOVES = 256
# A count that is so near to what was expected, and not above it, is explained. Framing, text and
# what each request has explain the same counts in more than one way: another one moves each cut.
_EXPLAINED = 0.85


# Another process holds the lock for as long as it writes a small file. A quarter of a second of a
# model call is the most that a stopped one may cost.
_LOCK_SECONDS = 0.25


@dataclass(slots=True)
class Lesson:
    """Everything learned of one model at one provider.

    Attributes:
        window_tokens: The smallest window that was learned; `None` without one, or where a longer
            prompt has been accepted since.
        window_at: When that was, in seconds since the epoch.
        is_stated: Whether an error stated it; else it follows from what was refused.
        output_tokens: The smallest limit for an answer that was stated or worked.
        output_at: When that was.
        reasoning_at: When messages without the model's reasoning were refused; 0 for never.
        accepted_tokens: The longest prompt that was accepted, as the provider counted it.
        accepted_length: Of that one, what its length alone makes it; 0 where it is not known.
        ratios: By the script that most of a prompt is in.
        framing_tokens: Tokens of framing of each message beside those that we count.
        fixed_tokens: Tokens of each request beside those, as of tool schemas in another form.
    """

    window_tokens: int | None = None
    window_at: float = 0.0
    is_stated: bool = True
    output_tokens: int | None = None
    output_at: float = 0.0
    reasoning_at: float = 0.0
    accepted_tokens: int = 0
    accepted_length: int = 0
    ratios: dict[str, Ratio] = field(default_factory=dict)
    framing_tokens: int = 0
    fixed_tokens: int = 0

    def merge(self, other: Lesson) -> None:
        """Merge the lesson of another process: the newer of each limit wins."""
        if other.window_at > self.window_at:
            self.window_tokens, self.window_at = other.window_tokens, other.window_at
            self.is_stated = other.is_stated
        if other.output_at > self.output_at:
            self.output_tokens, self.output_at = other.output_tokens, other.output_at
        self.reasoning_at = max(self.reasoning_at, other.reasoning_at)
        if other.accepted_tokens > self.accepted_tokens:
            self.accepted_tokens = other.accepted_tokens
            self.accepted_length = other.accepted_length
        for script, ratio in other.ratios.items():
            if script not in self.ratios or self.ratios[script].counts < ratio.counts:
                self.ratios[script] = ratio
                self.framing_tokens = other.framing_tokens
                self.fixed_tokens = other.fixed_tokens


@dataclass(slots=True)
class ProviderLimits:
    """Lessons by model; `file` is where they are kept, `None` for this process only.

    Attributes:
        now: The clock, in seconds since the epoch.
        later: Takes `flush` and calls it within seconds, in a thread of its own, and at the end of
            the process; without it every lesson is written at once.
    """

    file: Path | None = None
    lessons: dict[str, Lesson] = field(default_factory=dict)
    now: Callable[[], float] = time.time
    later: Callable[[Callable[[], None]], None] | None = None
    _written: dict[str, int] = field(default_factory=dict)
    _counts: dict[str, deque[tuple[str, int, int, int]]] = field(default_factory=dict)
    _forgotten: set[str] = field(default_factory=set)
    _lock: ThreadLock = field(default_factory=ThreadLock, repr=False, compare=False)

    @classmethod
    def load(
        cls, file: Path, *, later: Callable[[Callable[[], None]], None] | None = None
    ) -> ProviderLimits:
        """Load the lessons in `file`; unreadable ones are learned again."""
        learned = cls(file, _read(file), later=later)
        learned._written = {name: one.accepted_tokens for name, one in learned.lessons.items()}
        return learned

    def of(self, name: str) -> Lesson:
        """Return the lesson of a model; an empty one if nothing was learned."""
        return self.lessons.get(name) or Lesson()

    def names_of(self, model: str | None, addresses: Sequence[str] = ()) -> list[str]:
        """Return the names of a model's lessons: at some addresses, or all that there are."""
        if addresses:
            return [name_of(model, address) for address in addresses]
        first = name_of(model, "")
        return [name for name in sorted(self.lessons) if f"{name} at ".startswith(f"{first} at ")]

    def window_of(self, name: str) -> tuple[int, bool] | None:
        """Return the window that is believed, and whether it was stated."""
        lesson = self.of(name)
        seconds = _LIMIT_SECONDS if lesson.is_stated else _ASSUMED_SECONDS
        if lesson.window_tokens is None or not self._is_recent(lesson.window_at, seconds):
            return None
        return lesson.window_tokens, lesson.is_stated

    def output_of(self, name: str) -> int | None:
        """Return the limit for answers that was stated or worked, as long as it is believed."""
        lesson = self.of(name)
        return lesson.output_tokens if self._is_recent(lesson.output_at, _LIMIT_SECONDS) else None

    @alone
    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return the values in use of each lesson, as JSON values: times in UTC, ISO 8601."""
        return {
            name: {
                "window_tokens": (window := (self.window_of(name) or (None,))[0]),
                "window_at": window and _time(lesson.window_at),
                "output_tokens": (output := self.output_of(name)),
                "output_at": output and _time(lesson.output_at),
                "framing_tokens": lesson.framing_tokens,
                "fixed_tokens": lesson.fixed_tokens,
                "ratios": {script: ratio.used for script, ratio in sorted(lesson.ratios.items())},
            }
            for name, lesson in sorted(self.lessons.items())
        }

    @alone
    def learn_window(
        self,
        name: str,
        limit_tokens: int,
        *,
        is_stated: bool = True,
        in_place_of: int | None = None,
        least: int = SMALLEST_WINDOW,
    ) -> None:
        """Remember a window; as long as it is believed it only gets lower, but for `in_place_of`.

        It is never below what was accepted before, nor below `least`.
        """
        lesson, known = self._lesson(name), self.window_of(name)
        limit_tokens = max(limit_tokens, lesson.accepted_tokens, least)
        if known is None or limit_tokens <= known[0] or known == (in_place_of, False):
            changed = known != (limit_tokens, is_stated)
            lesson.window_tokens, lesson.window_at = limit_tokens, self.now()
            lesson.is_stated = is_stated
            self._save()
            if changed:
                _emit_learned(name, "window_tokens", limit_tokens)

    @alone
    def refused(self, name: str, request_tokens: int) -> None:
        """Remember that a request, answer included, was refused as too long.

        Where longer prompts were accepted, that was before the server was started anew.
        """
        lesson = self._lesson(name)
        if request_tokens <= lesson.accepted_tokens:
            lesson.accepted_tokens = 0
            self._forgotten.add(name)

    @alone
    def learn_output(self, name: str, limit_tokens: int) -> None:
        """Remember a limit for answers; as long as it is believed it only gets lower."""
        lesson, known = self._lesson(name), self.output_of(name)
        if limit_tokens >= _LEAST_OUTPUT and (known is None or limit_tokens <= known):
            lesson.output_tokens, lesson.output_at = limit_tokens, self.now()
            self._save()
            if limit_tokens != known:
                _emit_learned(name, "output_tokens", limit_tokens)

    @alone
    def learn_reasoning(self, name: str) -> None:
        """Remember that messages without the model's reasoning were refused."""
        self._lesson(name).reasoning_at = self.now()
        self._save()

    def wants_reasoning(self, name: str) -> bool:
        """Return whether messages without the model's reasoning have been refused lately."""
        return self._is_recent(self.of(name).reasoning_at, _LIMIT_SECONDS)

    @alone
    def accepted(self, name: str, prompt_tokens: int, length: int = 0) -> None:
        """Remember the longest accepted prompt; a smaller learned window is dropped."""
        lesson = self._lesson(name)
        if prompt_tokens > lesson.accepted_tokens:
            lesson.accepted_tokens, lesson.accepted_length = prompt_tokens, length
        disproved = lesson.window_tokens is not None and prompt_tokens > lesson.window_tokens
        if disproved:
            lesson.window_tokens, lesson.window_at = None, self.now()
        if disproved or prompt_tokens > self._written.get(name, 0) * _GROWN:
            self._save()

    @alone
    def counted(
        self,
        name: str,
        script: str,
        ours: int,
        theirs: int,
        *,
        messages: int = 0,
        refused: bool = False,
    ) -> None:
        """Remember that the provider counted `theirs` for `messages` of `ours` tokens."""
        if ours < _LEAST_TOKENS or theirs <= 0 or (theirs < RATIOS[0] * ours and not refused):
            return
        lesson = self._lesson(name)
        counts = self._counts.setdefault(name, deque(maxlen=COUNTS_KEPT))
        counts.append((script, ours, messages, theirs))
        before, again = lesson.ratios, [counts[-1]]
        known = before[script].used if script in before else 1.0
        expected = known * ours + lesson.framing_tokens * messages + lesson.fixed_tokens
        framing, fixed = lesson.framing_tokens, lesson.fixed_tokens
        is_explained = expected * _EXPLAINED <= theirs <= expected
        if not (is_explained and (framing or fixed)):
            framing, fixed = _explained(counts, lesson)
        if (framing, fixed) != (lesson.framing_tokens, lesson.fixed_tokens):
            # Framing was counted as text, or text as framing.
            lesson.framing_tokens, lesson.fixed_tokens = framing, fixed
            lesson.ratios, again = {}, list(counts)
        for one, tokens, number, counted in again:
            ratio = lesson.ratios.setdefault(one, Ratio())
            text = counted - lesson.framing_tokens * number - lesson.fixed_tokens
            ratio.count(tokens, text, refused=refused and len(again) == 1)
        is_apart = lesson.ratios is not before
        for one, ratio in lesson.ratios.items() if is_apart else ():
            # The file has what was counted before, which is not to win for its number.
            ratio.counts = max(ratio.counts, before[one].counts + 1 if one in before else 0)
        used = lesson.ratios[script].used
        if used != known or is_apart:
            self._save()
        if used != known:
            _emit_learned(name, "ratio", used, script)

    def _is_recent(self, at: float, seconds: float) -> bool:
        # A clock that was put back makes no lesson last.
        return abs(self.now() - at) < seconds

    def _lesson(self, name: str) -> Lesson:
        return self.lessons.setdefault(name, Lesson())

    def _save(self) -> None:
        if self.file is None:
            return
        if self.later is None:
            self.flush()
        else:
            self.later(self.flush)

    def flush(self) -> None:
        """Write the file whole or not at all; a full disk costs a warning.

        Waits for other processes without the lock of this object: learning goes on meanwhile.
        """
        if self.file is None:
            return
        try:
            self.file.parent.parent.mkdir(parents=True, exist_ok=True)
            update_state(self.file, self._merged, timeout_seconds=_LOCK_SECONDS)
        except OSError as error:
            log.warning("`{}` cannot be written: {}", self.file, error)

    def _merged(self) -> dict[str, Any]:
        """Return our lessons merged with those in the file, as JSON values."""
        others = _read(self.file) if self.file else {}
        with self._lock:
            for name, lesson in others.items():
                if name in self._forgotten:
                    lesson.accepted_tokens = 0
                self._lesson(name).merge(lesson)
            self._forgotten.clear()
            self._written = {name: one.accepted_tokens for name, one in self.lessons.items()}
            return {"models": {name: asdict(one) for name, one in sorted(self.lessons.items())}}


# What paths of addresses are made of. Anything else may be an account, or the key of a gateway that
# wants it there.
_PLAIN = re.compile(
    r"(v\d{1,2}((alpha|beta)\d?)?|ai|anthropic|api|apis|apps|chat|coding|compatible-mode|completions"
    r"|engines|gateway|inference|llm|messages|models|openai|openapi|paas|proxy|responses|serverless)?"
)


def _plain(part: str) -> str:
    if _PLAIN.fullmatch(part):
        return part
    # Two paths stay two, and a file of lessons says nothing of either.
    return f"…{hashlib.sha256(part.encode(errors='surrogatepass')).hexdigest()[:8]}"


def name_of(model: str | None, endpoint: str) -> str:
    """Return the name of a model at an address, without possible secrets."""
    try:
        parts = urlsplit(endpoint)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return model or "default"
    path = "/".join(map(_plain, parts.path.rstrip("/").split("/")))
    where = f"{parts.hostname or ''}{port}{path}"
    return f"{model or 'default'} at {where}" if where else model or "default"


def _without_key(name: str) -> str:
    """Return a name of a file that an earlier release may have written, as `name_of` gives it."""
    model, _, where = name.partition(" at ")
    return name if "…" in where or not where else name_of(model, f"//{where}")


def learned_file(config: Path) -> Path:
    """Return where lessons are kept: beside nanobot's config file."""
    return state_file(config, LEARNED)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _emit_learned(name: str, what: Learned, value: float, script: str | None = None) -> None:
    if is_wanted(LearnedEvent):
        emit(LearnedEvent(model=name, what=what, value=value, script=script))


def _explained(counts: Sequence[tuple[str, int, int, int]], lesson: Lesson) -> tuple[int, int]:
    """Return the tokens of framing and of each request by `counts`; without news as in `lesson`."""
    sizes = [one[1:] for one in counts]
    framing = framing_of(sizes)
    if framing is None or abs(framing - lesson.framing_tokens) <= 1:
        framing = lesson.framing_tokens
    fixed = fixed_of(sizes, framing)
    if fixed is None or abs(fixed - lesson.fixed_tokens) <= _FIXED_MOVES:
        fixed = lesson.fixed_tokens
    return framing, fixed


def _read(file: Path) -> dict[str, Lesson]:
    def parse(given: dict[str, Any]) -> dict[str, Lesson]:
        lessons: dict[str, Lesson] = {}
        left_out = None
        for name, known in given["models"].items():
            try:
                lessons[_without_key(name)] = _lesson(**known)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                left_out = left_out or ReadInPart(lessons, name, error)
        if left_out:
            raise left_out
        return lessons

    empty: dict[str, Lesson] = {}
    return read_state(file, parse, empty)


def _lesson(ratios: dict[str, dict[str, Any]], **limits: Any) -> Lesson:
    """Return a lesson of a file that anybody may have written."""
    lesson = Lesson(**limits, ratios={script: Ratio(**given) for script, given in ratios.items()})
    if lesson.framing_tokens not in range(MOST_FRAMING + 1):
        raise ValueError(f"{lesson.framing_tokens!r} is not a number of tokens")
    if not (isinstance(lesson.fixed_tokens, int) and lesson.fixed_tokens >= 0):
        raise ValueError(f"{lesson.fixed_tokens!r} is not a number of tokens")
    for tokens in (lesson.window_tokens, lesson.output_tokens):
        if tokens is not None and not (isinstance(tokens, int) and tokens > 0):
            raise ValueError(f"{tokens!r} is not a number of tokens")
    accepted = lesson.accepted_tokens, lesson.accepted_length
    for number in (lesson.window_at, lesson.output_at, lesson.reasoning_at, *accepted):
        if not (isinstance(number, int | float) and 0 <= number < math.inf):
            raise ValueError(f"{number!r} is not a time or a number of tokens")
    low, high = RATIOS
    for ratio in lesson.ratios.values():
        shares = (ratio.used, ratio.average, max(ratio.most, low))
        if not (all(low <= share <= high for share in shares) and ratio.counts >= 0):
            raise ValueError(f"{ratio!r}")
    return lesson
