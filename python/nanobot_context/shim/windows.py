"""Which window a request has, and who said so."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from nanobot_context._core import get_context_window
from nanobot_context.settings import LoadedSettings

__all__ = ["Window", "Windows"]

UNKNOWN_MODEL_TOKENS = 128_000  # what the model table answers for a model that it does not know

# Defaults of nanobot's own `contextWindowTokens` (0.1.4.post5 and 0.2.2). `nanobot onboard`
# writes the default into the config file, so these two values there are no choice of the user's.
NANOBOT_DEFAULT_WINDOWS = frozenset({65_536, 200_000})


@dataclass(frozen=True, slots=True)
class Window:
    """A window in tokens and its source; 0 tokens means that none is known."""

    tokens: int
    source: str


@dataclass(slots=True)
class Windows:
    """The window of every model: a setting, else a limit learned from an error, else the table."""

    loaded: LoadedSettings
    provider_prefixes: frozenset[str] = frozenset()
    _learned: dict[str, int] = field(default_factory=dict)
    _learned_outputs: dict[str, int] = field(default_factory=dict)

    def of(self, model: str | None) -> Window:
        """Return the window for requests to `model`."""
        override = self.loaded.settings.context_window_override
        if override is not None:
            source = self.loaded.sources.get("context_window_override", "context_window_override")
            return Window(override, source)
        defaults = self.loaded.agent_defaults
        for key in ("contextWindowTokens", "context_window_tokens"):
            value = defaults.get(key)
            if isinstance(value, int) and value > 0 and value not in NANOBOT_DEFAULT_WINDOWS:
                return Window(value, f"agents.defaults.{key}")
        name = model or ""
        listed = self._listed(name)
        learned = self._learned.get(name)
        if learned is not None and learned < listed.tokens:
            return Window(learned, "learned from the provider's error")
        return listed

    def learn(self, model: str | None, limit_tokens: int) -> None:
        """Remember for this process that `model` stated a limit; it only ever gets lower."""
        name = model or ""
        self._learned[name] = min(limit_tokens, self._learned.get(name, limit_tokens))

    def output_of(self, model: str | None) -> int | None:
        """Return the output limit learned for `model`, or `None`."""
        return self._learned_outputs.get(model or "")

    def learn_output(self, model: str | None, limit_tokens: int) -> None:
        """Remember for this process that `model` refused to answer with more than that."""
        name = model or ""
        self._learned_outputs[name] = min(
            limit_tokens, self._learned_outputs.get(name, limit_tokens)
        )

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
