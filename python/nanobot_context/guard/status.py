"""The state of the package in this process, as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from nanobot_context.guard.counters import Counts
from nanobot_context.guard.fuse import BlownFuse
from nanobot_context.settings import Settings

Generation = Literal["provider-chat", "safe-chat", "safe-chat-stream"]
"""How model calls of a nanobot are reached."""


@dataclass(frozen=True, slots=True)
class PatchPoint:
    """One attribute of nanobot's that the package replaces, or cannot replace.

    Attributes:
        name: `module.Class.attribute`.
        state: "patched", "missing" (there is no such attribute) or "changed" (it is there, but not
            as expected).
        why: What it is for, or what is not as expected.
    """

    name: str
    state: Literal["patched", "missing", "changed"]
    why: str


@dataclass(frozen=True, slots=True)
class Status:
    """The package in this process.

    Attributes:
        installed: Whether nanobot is patched.
        reason: Why it is not; empty when it is.
        nanobot_version: The installed version of `nanobot-ai`; `None` when there is none.
        is_tested: Whether this version of the package was tested with that release.
        generation: How model calls of this nanobot are reached: "provider-chat", "safe-chat" or
            "safe-chat-stream"; `None` where they are not.
        unguarded: Model calls that nothing protects, and why; empty when all are protected.
        points: What is patched, and what is not as expected.
        fuses: Mistakes of the package's in this process.
        settings: The settings in force; `None` when they could not be read.
        sources: For each setting that is not at its default, the key that set it.
        problems: Settings that cannot be used and were left out, and what is wrong with each.
        window_tokens: The window for the configured model; `None` when no model is configured, 0
            when the settings say that none is known.
        window_source: Where that number comes from.
        prompt_tokens: The most tokens that a prompt may have; `None` where only the window says.
        model: The model named in nanobot's config file.
        learned: What providers taught, by model: `window_tokens`, `output_tokens`, `ratio`.
        counters: What happened in all processes that share nanobot's config file; `None` where
            nothing is installed.
        caches: Bytes that each cache of this process takes; `None` where nothing is installed.
    """

    installed: bool
    reason: str = ""
    nanobot_version: str | None = None
    is_tested: bool = True
    generation: Generation | None = None
    unguarded: tuple[str, ...] = ()
    points: tuple[PatchPoint, ...] = ()
    fuses: tuple[BlownFuse, ...] = ()
    settings: Settings | None = None
    sources: dict[str, str] | None = None
    problems: tuple[str, ...] = ()
    window_tokens: int | None = None
    window_source: str = "each request's model"
    prompt_tokens: int | None = None
    model: str | None = None
    learned: dict[str, dict[str, Any]] | None = None
    counters: Counts | None = None
    caches: dict[str, int] | None = None

    @property
    def protected(self) -> bool:
        """Whether every model call of this process is protected."""
        return self.installed and not self.unguarded

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return asdict(self)
