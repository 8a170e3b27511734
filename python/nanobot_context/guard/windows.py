"""Which window a request has, and who said so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nanobot_context._core import get_context_window, prevailing_script
from nanobot_context.forks import ThreadLock, alone
from nanobot_context.guard.limits import ProviderLimits, name_of
from nanobot_context.settings import LoadedSettings

UNKNOWN_MODEL_TOKENS = 128_000  # what the model table answers for a model that it does not know

# Defaults of nanobot's own `contextWindowTokens` (0.1.4.post5 and 0.2.2). `nanobot onboard`
# writes the default into the config file, so these two values there are no choice of the user's.
NANOBOT_DEFAULT_WINDOWS = frozenset({65_536, 200_000})


# No model has a smaller one: hermes, `agent/model_metadata.py`.
_SMALLEST_WINDOW = 1_024

# What was refused without a number is tried again after an hour: it says less than a number.
_ASSUMED_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Window:
    """A window in tokens and its source; 0 tokens means that none is known."""

    tokens: int
    source: str


@dataclass(slots=True)
class WindowResolver:
    """The window of every model: a setting, else a limit learned from an error, else the table."""

    loaded: LoadedSettings
    provider_prefixes: frozenset[str] = frozenset()
    learned: ProviderLimits = field(default_factory=ProviderLimits)
    _assumed: dict[str, tuple[int, float]] = field(default_factory=dict)
    _most_read: dict[str, int] = field(default_factory=dict)
    _wants_reasoning: set[str] = field(default_factory=set)
    _defaults: dict[int, int] = field(
        default_factory=lambda: {window: window for window in NANOBOT_DEFAULT_WINDOWS}
    )
    _lock: ThreadLock = field(default_factory=ThreadLock, repr=False, compare=False)

    def of(self, model: str | None, endpoint: str = "") -> Window:
        """Return the window for requests to `model` at a provider's address."""
        override = self.loaded.settings.context_window_override
        if override is not None:
            source = self.loaded.sources.get("context_window_override", "context_window_override")
            return Window(override, source)
        defaults = self.loaded.agent_defaults
        for key in ("contextWindowTokens", "context_window_tokens"):
            value = defaults.get(key)
            if isinstance(value, int) and value > 0 and value not in NANOBOT_DEFAULT_WINDOWS:
                return Window(value, f"agents.defaults.{key}")
        listed = self._listed(model or "")
        name = name_of(model, endpoint)
        stated, assumed = self.learned.window_of(name), self._assumption(name)
        if stated is not None and stated < min(listed.tokens, assumed or stated + 1):
            return Window(stated, "learned from the provider's error")
        if assumed is not None and assumed < listed.tokens:
            return Window(assumed, "more was refused without a number")
        return listed

    def smallest(self, models: Sequence[str | None], endpoint: str = "") -> Window:
        """Return the smallest window that is known of `models`, which all get the same messages.

        Only the first is at `endpoint`.
        """
        windows = [self.of(model, "" if n else endpoint) for n, model in enumerate(models)]
        known = [window for window in windows if window.tokens]
        return min(known, key=lambda window: window.tokens) if known else windows[0]

    @alone
    def in_place_of(self, own: Any, model: str | None, endpoint: str = "") -> Any:
        """Return the window that nanobot is to go by instead of its `own`: never a smaller one.

        Only a default of nanobot's is replaced. nanobot copies what it reads into new records, also
        for other models, so a number that was returned here stands for the same default.
        """
        default = self._defaults.get(own)
        if default is None:
            return own
        window = self.of(model, endpoint).tokens
        if window <= default:
            return default
        self._defaults.setdefault(window, default)
        return window

    def ratio(self, model: str | None, messages: list[Any], endpoint: str = "") -> float:
        """Return how many tokens the provider counts where we count one of `messages`."""
        ratios = self.learned.of(name_of(model, endpoint)).ratios
        most = max((ratio.used for ratio in ratios.values()), default=1.0)
        if most == 1.0:
            return most
        own = ratios.get(prevailing_script(messages))
        # What nothing is known of yet is taken for the worst.
        return own.used if own else most

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
        self.learned.counted(name, script, ours, theirs, refused=refused)

    def learn(self, model: str | None, limit_tokens: int, endpoint: str = "") -> None:
        """Remember that `model` stated a limit: see `ProviderLimits.window`."""
        self.learned.window(name_of(model, endpoint), limit_tokens)

    @alone
    def assume(self, model: str | None, refused_tokens: int, endpoint: str = "") -> None:
        """Remember for this process that so many tokens were refused, and no limit was stated."""
        name = name_of(model, endpoint)
        known = self._assumption(name)
        assumed = refused_tokens if known is None else min(refused_tokens, known)
        assumed = max(assumed, self.learned.of(name).accepted_tokens, _SMALLEST_WINDOW)
        self._assumed[name] = assumed, self.learned.now()

    @alone
    def accepted(self, model: str | None, prompt_tokens: int, endpoint: str = "") -> None:
        """Remember that a prompt was accepted whole, which the provider counted so."""
        name = name_of(model, endpoint)
        self.learned.accepted(name, prompt_tokens)
        if (assumed := self._assumption(name)) is not None and assumed < prompt_tokens:
            del self._assumed[name]

    def _assumption(self, name: str) -> int | None:
        tokens, at = self._assumed.get(name, (None, 0.0))
        return tokens if abs(self.learned.now() - at) < _ASSUMED_SECONDS else None

    @alone
    def could_cut_at(self, model: str | None, read_tokens: int, endpoint: str = "") -> bool:
        """Return whether a provider that read so little may have cut a prompt, and remember it.

        One that has read twice as many in this process reports something else: what was not in its
        cache.
        """
        name = name_of(model, endpoint)
        most = self._most_read[name] = max(read_tokens, self._most_read.get(name, 0))
        return read_tokens >= max(most // 2, _SMALLEST_WINDOW)

    def output_of(self, model: str | None, endpoint: str = "") -> int | None:
        """Return the output limit learned for `model`, or `None`."""
        return self.learned.output_of(name_of(model, endpoint))

    def learn_output(self, model: str | None, limit_tokens: int, endpoint: str = "") -> None:
        """Remember that `model` refused to answer with more than that."""
        self.learned.output(name_of(model, endpoint), limit_tokens)

    def learn_reasoning(self, model: str | None, endpoint: str = "") -> None:
        """Remember for this process that `model` wants reasoning back with its calls."""
        self._wants_reasoning.add(name_of(model, endpoint))

    def wants_reasoning(self, model: str | None, endpoint: str = "") -> bool:
        """Return whether `model` has refused messages without their reasoning."""
        return name_of(model, endpoint) in self._wants_reasoning

    def _listed(self, model: str) -> Window:
        for name in self._spellings(model):
            tokens = get_context_window(name)
            if tokens != UNKNOWN_MODEL_TOKENS:
                return Window(tokens, f"model table (`{name}`)")
        return Window(UNKNOWN_MODEL_TOKENS, "model table")

    def _spellings(self, model: str) -> Iterable[str]:
        """Yield `model`, then without the provider names that nanobot puts before it."""
        yield model
        while "/" in model:
            prefix, model = model.split("/", 1)
            if re.sub(r"[-.]", "_", prefix.lower()) not in self.provider_prefixes:
                return
            yield model
