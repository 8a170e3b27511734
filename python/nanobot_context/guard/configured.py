"""Reads the window that nanobot's config file or code sets for a model.

nanobot has one number for it, `context_window_tokens`, and passes its default on like any other.
A default differs from a written number by identity: nanobot passes the very int of its schema from
one object to the next (so do pydantic's models, and `min`), while a number from a file or a program
is another object. Where that fails, a default counts as written, and is a cap.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from nanobot_context.host.config import (
    Configured,
    address_of,
    default_windows,
    is_tokens,
)

IN_CODE = "`{}=` in code"


@dataclass(slots=True)
class ConfiguredWindows:
    """The numbers of nanobot's config file, and those that running loops go by."""

    file: Configured = field(default_factory=Configured)
    _live: MutableMapping[Any, dict[str, tuple[Any, Any]]] = field(
        default_factory=WeakKeyDictionary
    )
    _stand_ins: list[tuple[int, int]] = field(default_factory=list)
    _defaults: tuple[int, ...] | None = None

    def remember(self, provider: Any, model: Any, window: Any, block_limit: Any = None) -> None:
        """Remember the window in force where requests for `model` go to `provider`."""
        # What a fallback is behind sends the requests itself in 0.3.5.
        for one in (provider, getattr(provider, "_primary", None)):
            try:
                known = self._live.setdefault(one, {})
            except TypeError:
                continue
            if isinstance(model, str):
                before = known.get(model, (None, None))[1]
                known[model] = window, block_limit if block_limit is not None else before

    def addresses(self, model: str | None) -> list[str]:
        """Return where those that ask for `model` send their requests."""
        return sorted({address_of(one) for one, known in self._live.items() if model in known})

    def window(self, model: str | None, provider: Any) -> tuple[int, str] | None:
        """Return the window written in code or the config file, and where; `None` without one."""
        window = self._in_force(model, provider)[0]
        if not is_tokens(window) or self.default_of(window) is not None:
            return self.file.window
        if self.file.window is not None and self.file.window[0] == window:
            return self.file.window
        return window, IN_CODE.format("context_window_tokens")

    def block_limit(self, model: str | None, provider: Any) -> tuple[int, str] | None:
        """Return the written limit of a prompt in tokens, and where; `None` without one."""
        limit = self._in_force(model, provider)[1]
        if not is_tokens(limit) or (self.file.block_limit and self.file.block_limit[0] == limit):
            return self.file.block_limit
        return limit, IN_CODE.format("context_block_limit")

    def default(self, model: str | None, provider: Any) -> int | None:
        """Return nanobot's default window if none is written; `None` before 0.1.4.post5."""
        default = self.default_of(self._in_force(model, provider)[0])
        return next(iter(self._default_windows()), None) if default is None else default

    def default_of(self, window: Any) -> int | None:
        """Return the default that a number is, or replaces; `None` for a written number."""
        for one, default in [*((one, one) for one in self._default_windows()), *self._stand_ins]:
            if window is one:
                return default
        return None

    def stand_in(self, window: int, default: int) -> int:
        """Return a number of this size that stands for nanobot's default."""
        for one, for_default in self._stand_ins:
            if (one, for_default) == (window, default):
                return one
        self._stand_ins.append((window, default))
        return window

    def _default_windows(self) -> tuple[int, ...]:
        if self._defaults is None:
            self._defaults = default_windows()
        return self._defaults

    def _in_force(self, model: str | None, provider: Any) -> tuple[Any, Any]:
        """Return window and block limit of who asks `provider`: those of the model, or smallest."""
        try:
            known = self._live.get(provider) or {}
        except TypeError:
            known = {}
        if model in known:
            return known[model]
        # Another model than its own, which nanobot asks for a title or a summary.
        return min(known.values(), default=(None, None), key=lambda one: one[0] or 0)
