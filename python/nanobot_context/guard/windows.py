"""Which window a request has, and who said so."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nanobot_context._core import listed_window, prevailing_script
from nanobot_context.forks import ThreadLock, alone
from nanobot_context.guard.configured import ConfiguredWindows
from nanobot_context.guard.counted import Counted
from nanobot_context.guard.limits import (
    LEAST_WINDOW,
    SMALLEST_WINDOW,
    ProviderLimits,
    name_of,
)
from nanobot_context.guard.ratios import RATIOS
from nanobot_context.host.config import configured
from nanobot_context.settings import LoadedSettings
from nanobot_context.settings.names import camel_case

# Of a model in no table, where nanobot has no number of its own: nanobot compression plan V3.1.
UNKNOWN_MODEL_TOKENS = 128_000

# More than this is only used where somebody has written it: every token of a prompt is paid for.
_MOST_UNWRITTEN = 200_000


# What messages take beside their text, and text that the provider has not counted yet, grow by this
# share of the window at a time: a window that changes with every request would move every cut.
_NEW_STEPS = 16
# So many conversations are remembered, and by so many characters that the user began with.
_REMEMBERED = 512
_FIRST_CHARS = 256
# By so much more than its ratio says a provider may count a text that is new to it.
_NEW_TEXT = 1.15
# What is read of a prompt that was cut, as a share of the longest, of a provider that reports all
# that it reads, and of another one.
_CUT_TO, _CUT_TO_AT_LEAST = 0.25, 0.6
# A prompt that is so many tokens longer than another, by its length alone, has more of them.
_LONGER = 48


@dataclass(frozen=True, slots=True)
class Window:
    """A window in tokens and its source; 0 tokens means that none is known.

    Attributes:
        prompt_tokens: The most of it that a prompt may have, where somebody has written that.
        is_assumed: Whether it follows from what a server refused or cut, and nobody stated it.
    """

    tokens: int
    source: str
    prompt_tokens: int | None = None
    is_assumed: bool = False


@dataclass(slots=True)
class WindowResolver:
    """The window of every model: the smallest that is configured, listed or learned.

    Configured is what stands in nanobot's config file, in code, or in the setting, which replaces
    all but what was learned. Where nothing is, a model of the table has its window up to 200,000,
    and one that is in no table has nanobot's own number.
    """

    loaded: LoadedSettings
    provider_prefixes: frozenset[str] = frozenset()
    learned: ProviderLimits = field(default_factory=ProviderLimits)
    most_unwritten: int = _MOST_UNWRITTEN
    configured: ConfiguredWindows = field(init=False)
    _most_read: dict[str, int] = field(default_factory=dict)
    _counted: dict[str, Counted] = field(default_factory=dict)
    _remembered: dict[tuple[str, int | str, str], int] = field(default_factory=dict)
    _lock: ThreadLock = field(default_factory=ThreadLock, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.configured = ConfiguredWindows(configured(self.loaded))

    def of(self, model: str | None, endpoint: str = "", provider: Any = None) -> Window:
        """Return the window for requests to `model` at a provider's address.

        By nanobot's `provider` is known who asks.
        """
        return self._named(model, name_of(model, endpoint), provider)

    def of_addresses(self, model: str | None, addresses: Sequence[str]) -> Window:
        """Return the window for requests to `model` that nobody makes now.

        Args:
            model: The model's name.
            addresses: Where they may go. Without any the window is the smallest that was learned of
                the model anywhere, and its source says where.
        """
        names = self.learned.names_of(model, addresses) or [name_of(model, "")]
        return min((self._named(model, name, says=not addresses) for name in names), key=_size)

    def _named(
        self, model: str | None, name: str, provider: Any = None, *, says: bool = False
    ) -> Window:
        """Return the window of `model` where lessons stand under `name`; `says` where in words."""
        window = self._whole(model, name, provider, says=says)
        limit = self.configured.block_limit(model, provider)
        if limit is None or limit[0] >= window.tokens:
            return window
        at_most = f"{window.source}; prompts at most {limit[0]:,}: your setting {_shown(limit[1])}"
        return replace(window, source=at_most, prompt_tokens=limit[0])

    def _whole(self, model: str | None, name: str, provider: Any, *, says: bool) -> Window:
        """Return the same without a limit for prompts alone."""
        set_to = self.loaded.settings.window_of(model)
        if set_to is not None:
            override, setting = set_to
            key = self.loaded.sources.get(setting, camel_case(setting))
            set_window = Window(override, f"your setting {_shown(key)}")
            learned = self._learned(name, says=says)
            # 0 says that none is known.
            return min([*learned, set_window] if override else learned or [set_window], key=_size)
        listed, written = self._listed(model or ""), self.configured.window(model, provider)
        found = self._learned(name, says=says)
        if written is not None:
            found.insert(0, Window(written[0], f"your setting {_shown(written[1])}"))
            if listed is not None:
                found.append(listed)
        elif listed is not None:
            found.append(replace(listed, tokens=min(listed.tokens, self.most_unwritten)))
        else:
            default = self.configured.default(model, provider) or UNKNOWN_MODEL_TOKENS
            found.append(Window(default, "assumed: this model is in no table"))
        return min(found, key=_size)

    def _learned(self, name: str, *, says: bool) -> list[Window]:
        learned = self.learned.window_of(name)
        if learned is None:
            return []
        tokens, is_stated = learned
        where = name.partition(" at ")[2] if says else ""
        server = f"the server at {where}" if where else "the server"
        source = f"{server} said so" if is_stated else f"about what {server} takes"
        return [Window(tokens, source, is_assumed=not is_stated)]

    def smallest(
        self, models: Sequence[str | None], endpoint: str = "", provider: Any = None
    ) -> Window:
        """Return the smallest window that is known of `models`, which all get the same messages.

        Only the first is at `endpoint`.
        """
        windows = [self.of(models[0], endpoint, provider)]
        windows += [self.of(model, "", provider) for model in models[1:]]
        known = [window for window in windows if window.tokens]
        return min(known, key=_size) if known else windows[0]

    @alone
    def in_place_of(self, own: Any, model: str | None, endpoint: str = "") -> Any:
        """Return the window that nanobot is to go by instead of its `own`: never a smaller one.

        Only a default that nobody has written is replaced, and only for a model of the table.
        nanobot copies what it reads into new records, also for other models, so a number that was
        returned here stands for the same default.
        """
        default = self.configured.default_of(own)
        if default is None:
            return own
        window = self.of(model, endpoint).tokens
        return self.configured.stand_in(window, default) if window > default else default

    def ratio(self, model: str | None, messages: list[Any], endpoint: str = "") -> float:
        """Return how many tokens the provider counts where we count one of `messages`."""
        ratios = self.learned.of(name_of(model, endpoint)).ratios
        used = {script: ratio.used for script, ratio in ratios.items()}
        if set(used.values()) <= {1.0}:
            return 1.0
        # An unknown script gets the worst ratio of the known ones.
        return used.get(prevailing_script(messages), max(1.0, *used.values()))

    def overhead_tokens(self, model: str | None, messages: list[Any], endpoint: str = "") -> int:
        """Return the tokens that the provider adds to each message, in our counting.

        As `in_ours`, each conversation keeps it.
        """
        conversation = (name_of(model, endpoint), "overhead", _first_words(messages))
        return self._kept(conversation, lambda: self.overhead_now(model, messages, endpoint))

    def overhead_now(self, model: str | None, messages: list[Any], endpoint: str = "") -> int:
        """Return `overhead_tokens` by the newest lessons."""
        framing = self.learned.of(name_of(model, endpoint)).framing_tokens
        return math.ceil(framing / self.ratio(model, messages, endpoint)) if framing else 0

    def in_ours(
        self, tokens: int, model: str | None, messages: list[Any], endpoint: str = ""
    ) -> int:
        """Return how many tokens by our count the provider counts as `tokens` of `messages`.

        What it takes for each message is apart: see `overhead_tokens`. Each conversation keeps what
        it had, until `take_anew`: as the ratio moves, or what comes is counted for the first time,
        every cut would move with it.
        """
        conversation = (name_of(model, endpoint), tokens, _first_words(messages))
        return self._kept(conversation, lambda: self.in_ours_now(tokens, model, messages, endpoint))

    def in_ours_now(
        self, tokens: int, model: str | None, messages: list[Any], endpoint: str = ""
    ) -> int:
        """Return `in_ours` by the newest lessons.

        Where the provider counts fewer than we do, a text that it has not counted yet is taken as
        we count it: no ratio says what will be in it.
        """
        name = name_of(model, endpoint)
        ratio = self.ratio(model, messages, endpoint)
        step = max(tokens // _NEW_STEPS, 1)
        left = max(tokens - self.learned.of(name).fixed_tokens, 0)
        counted = self.counts_of(model, endpoint)
        new = counted.count(counted.new(messages)) if ratio < 1.0 else 0
        uncounted = min(in_steps(new, step), left)
        # 0 says that no window is known.
        return max(uncounted + int((left - uncounted) / ratio), min(tokens, 1))

    @alone
    def take_anew(self, model: str | None, messages: list[Any], endpoint: str = "") -> None:
        """Drop the window remembered for this conversation."""
        name, words = name_of(model, endpoint), _first_words(messages)
        for key in [key for key in self._remembered if key[0] == name and key[2] == words]:
            del self._remembered[key]

    @alone
    def _kept(self, key: tuple[str, int | str, str], now: Callable[[], int]) -> int:
        """Return the value remembered for `key`; remember that of `now` the first time."""
        kept = self._remembered.pop(key, None)
        self._remembered[key] = kept = now() if kept is None else kept
        if len(self._remembered) > _REMEMBERED:
            del self._remembered[next(iter(self._remembered))]
        return kept

    def in_theirs(
        self, tokens: int, model: str | None, messages: list[Any], endpoint: str = ""
    ) -> int:
        """Convert our count `tokens` of `messages` into the provider's."""
        lesson = self.learned.of(name_of(model, endpoint))
        beside = lesson.framing_tokens * len(messages) + lesson.fixed_tokens
        return int(tokens * self.ratio(model, messages, endpoint)) + beside

    def counts_of(self, model: str | None, endpoint: str = "") -> Counted:
        """Return what was counted and reported so far, to be read: `counted` and `reported` add."""
        name = name_of(model, endpoint)
        return self._counted.get(name) or self._counted.setdefault(name, Counted(model))

    def at_most_in_theirs(
        self, tokens: int, model: str | None, messages: list[Any], endpoint: str = ""
    ) -> int:
        """Return an upper bound on the provider's count, given our count `tokens` of `messages`.

        Most is known of a prompt that begins as the last one did, and then of one that begins as
        others did: no ratio says either so well.
        """
        lesson = self.learned.of(name_of(model, endpoint))
        counted = self.counts_of(model, endpoint)
        framing, used = lesson.framing_tokens, self.ratio(model, messages, endpoint)
        bounds = []
        if (known := counted.shared_with_last(messages)) is not None:
            last, shared = known
            gone = last.messages[shared:]
            gone_tokens = counted.count(gone)
            added = max(tokens - last.ours + gone_tokens, 0) * max(used, 1.0) * _NEW_TEXT
            by_last = last.theirs - int(gone_tokens * RATIOS[0]) + int(added)
            bounds.append(by_last + framing * (len(messages) - len(last.messages)))
            if not gone:
                return bounds[0]
        if (by_growth := counted.at_most(messages, tokens, framing)) is not None:
            bounds.append(by_growth)
        ratio = lesson.ratios.get(prevailing_script(messages))
        most = used if ratio is None else ratio.at_most
        # Where it counts fewer than we do, no ratio says what is in a text that is new to it.
        new = min(counted.count(counted.new(messages)), tokens) if most < 1.0 else 0
        text = new + int((tokens - new) * most)
        return min([text + framing * len(messages) + lesson.fixed_tokens, *bounds])

    @alone
    def counted(
        self,
        model: str | None,
        messages: list[Any],
        ours: int,
        theirs: int,
        endpoint: str = "",
        *,
        refused: bool = False,
    ) -> None:
        """Remember that the provider counted `theirs` for a prompt of `ours` tokens."""
        name, script = name_of(model, endpoint), prevailing_script(messages)
        if not self.counts_of(model, endpoint).add(messages, ours, theirs, refused=refused):
            return
        self.learned.counted(name, script, ours, theirs, messages=len(messages), refused=refused)

    @alone
    def reported(
        self, model: str | None, messages: list[Any], theirs: int, endpoint: str = ""
    ) -> None:
        """Remember what was reported of a prompt that was not cut."""
        self.counts_of(model, endpoint).reports.add(messages, theirs)

    def learn(
        self, model: str | None, limit_tokens: int, endpoint: str = "", *, needed_tokens: int = 0
    ) -> None:
        """Remember that `model` stated a limit: see `ProviderLimits.learn_window`.

        `needed_tokens` are in every request: a small number in which they do not fit was misread.
        """
        least = SMALLEST_WINDOW if needed_tokens <= limit_tokens else LEAST_WINDOW
        self.learned.learn_window(name_of(model, endpoint), limit_tokens, least=least)

    def reads_no_more(
        self, model: str | None, read_tokens: int, length: int, endpoint: str = ""
    ) -> bool:
        """Return whether the same was read of a prompt as of the longest, which was shorter.

        `length` is in tokens as `estimated_tokens` has them: no vocabulary is needed for it.
        """
        lesson = self.learned.of(name_of(model, endpoint))
        is_longer = 0 < lesson.accepted_length <= length - _LONGER
        return lesson.accepted_tokens == read_tokens and is_longer

    @alone
    def could_cut_at(self, model: str | None, read_tokens: int, endpoint: str = "") -> bool:
        """Return whether a provider that read so little may have cut a prompt, and remember it.

        One that has read far more in this process may report something else: what was not in its
        cache. One that has refused a prompt and stated its limit cuts none.
        """
        name = name_of(model, endpoint)
        most = self._most_read[name] = max(read_tokens, self._most_read.get(name, 0))
        _, states_it = self.learned.window_of(name) or (0, False)
        reports = self.counts_of(model, endpoint).reports
        share = _CUT_TO if reports.are_of_all else _CUT_TO_AT_LEAST
        return not states_it and read_tokens >= max(most * share, SMALLEST_WINDOW)

    def _listed(self, model: str) -> Window | None:
        for name in self._spellings(model):
            if (tokens := listed_window(name)) is not None:
                return Window(tokens, f"model table (`{name}`)")
        return None

    def _spellings(self, model: str) -> Iterable[str]:
        """Yield `model`, then without the provider names that nanobot puts before it."""
        yield model
        while "/" in model:
            prefix, model = model.split("/", 1)
            if re.sub(r"[-.]", "_", prefix.lower()) not in self.provider_prefixes:
                return
            yield model


def in_steps(tokens: int, step: int) -> int:
    """Return `tokens` rounded up to whole steps, so that what changes a little moves no cut."""
    return -(-tokens // step) * step


def _first_words(messages: list[Any]) -> str:
    """Return the user's first words, which identify a conversation."""
    said = (m.get("content") for m in messages if isinstance(m, dict) and m.get("role") == "user")
    return str(next(said, ""))[:_FIRST_CHARS]


def _size(window: Window) -> int:
    return window.tokens


def _shown(place: str) -> str:
    return place if place.startswith("`") else f"`{place}`"
