"""What the shim has done to nanobot, as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from nanobot_context.guard.counters import Counts
from nanobot_context.settings import Settings

__all__ = ["PatchPoint", "Status"]


@dataclass(frozen=True, slots=True)
class PatchPoint:
    """One attribute of nanobot's that the shim replaces.

    Attributes:
        name: `module.Class.attribute`.
        state: "patched", "ready" (as expected, but nothing is installed) or "missing".
        why: What it is for, or what is missing.
    """

    name: str
    state: Literal["patched", "ready", "missing"]
    why: str


@dataclass(frozen=True, slots=True)
class Status:
    """The shim in this process.

    Attributes:
        installed: Whether nanobot is patched.
        reason: Why it is not; empty when it is.
        nanobot_version: The installed version of `nanobot-ai`; `None` when there is none.
        generation: The name of the matching generation of nanobot; `None` when none matches.
        points: Every patch point that was looked at.
        settings: The settings in force; `None` when they could not be read.
        sources: For each setting that is not at its default, the key that set it.
        window_tokens: The window for the configured model; `None` when no model is configured, 0
            when the settings say that none is known.
        window_source: Where that number comes from.
        model: The model named in nanobot's config file.
        learned: What providers taught, by model: `window_tokens`, `output_tokens`, `ratio`.
        counters: What happened in all processes that share nanobot's config file; `None` where
            nothing is installed.
    """

    installed: bool
    reason: str = ""
    nanobot_version: str | None = None
    generation: str | None = None
    points: tuple[PatchPoint, ...] = ()
    settings: Settings | None = None
    sources: dict[str, str] | None = None
    window_tokens: int | None = None
    window_source: str = "each request's model"
    model: str | None = None
    learned: dict[str, dict[str, Any]] | None = None
    counters: Counts | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return asdict(self)
