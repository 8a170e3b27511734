"""Replacing attributes of nanobot's classes so that every one of them can be put back exactly."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["PatchSet", "find"]


def find(module: str, name: str) -> Any:
    """Return what this release of nanobot has under `name` of `module`, or `None`."""
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        return None


@dataclass(frozen=True, slots=True)
class _Patch:
    owner: type
    name: str
    original: Any
    replacement: Any
    was_own: bool  # the class had the attribute itself, rather than from a parent


@dataclass(slots=True)
class PatchSet:
    """Attributes that were replaced, in order.

    `active` is what every replacement asks first. It turns false when the set is restored, so
    that a replacement that somebody else has wrapped meanwhile, and that therefore cannot be
    taken out, passes its calls on unchanged.
    """

    active: bool = True
    _patches: list[_Patch] = field(default_factory=list)

    def replace(self, owner: type, name: str, make: Callable[[Any], Any]) -> None:
        """Set `owner.name` to `make(original)`, the original as it stands in the class."""
        was_own = name in owner.__dict__
        original = owner.__dict__[name] if was_own else getattr(owner, name, None)
        replacement = make(original)
        setattr(owner, name, replacement)
        self._patches.append(_Patch(owner, name, original, replacement, was_own))

    def covers(self, owner: type, name: str) -> bool:
        """Return whether `owner.name` was replaced by this set."""
        return any(patch.owner is owner and patch.name == name for patch in self._patches)

    def names(self) -> list[str]:
        """Return the replaced attributes as `module.Class.attribute`."""
        return [_name(patch) for patch in self._patches]

    def restore(self) -> list[str]:
        """Put everything back, newest first; return what was wrapped again and had to stay."""
        self.active = False
        stuck: list[str] = []
        for patch in reversed(self._patches):
            if patch.owner.__dict__.get(patch.name) is not patch.replacement:
                stuck.append(_name(patch))
            elif patch.was_own:
                setattr(patch.owner, patch.name, patch.original)
            else:
                delattr(patch.owner, patch.name)
        self._patches.clear()
        return stuck


def _name(patch: _Patch) -> str:
    return f"{patch.owner.__module__}.{patch.owner.__qualname__}.{patch.name}"
