"""Replaces attributes of nanobot's classes and modules, and restores every one of them exactly."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

Owner = type | ModuleType


def name_of(owner: Owner) -> str:
    """Return `module.Class`, or the name of a module."""
    if isinstance(owner, ModuleType):
        return owner.__name__
    return f"{owner.__module__}.{owner.__qualname__}"


@dataclass(frozen=True, slots=True)
class _Replaced:
    owner: Owner
    attribute: str
    why: str
    original: Any
    replacement: Any
    was_own: bool  # not from a parent

    @property
    def name(self) -> str:
        return f"{name_of(self.owner)}.{self.attribute}"


@dataclass(slots=True)
class PatchSet:
    """Attributes that were replaced, in order.

    `active` is what every replacement asks first. It turns false when the set is restored, so
    that a replacement that somebody else has wrapped meanwhile, and that therefore cannot be
    taken out, passes its calls on unchanged.
    """

    active: bool = True
    _replaced: list[_Replaced] = field(default_factory=list)

    def replace(self, owner: Owner, name: str, replacement: Any, why: str = "") -> None:
        """Set `owner.name` to `replacement`."""
        was_own = name in owner.__dict__
        original = owner.__dict__.get(name)
        setattr(owner, name, replacement)
        self._replaced.append(_Replaced(owner, name, why, original, replacement, was_own))

    def named(self) -> list[tuple[str, str]]:
        """Return each replaced attribute as `module.Class.attribute`, and why it was replaced."""
        return [(one.name, one.why) for one in self._replaced]

    def restore(self) -> list[str]:
        """Restore everything, newest first; return the attributes that others wrapped and that had
        to stay.
        """
        self.active = False
        stuck: list[str] = []
        for one in reversed(self._replaced):
            if one.owner.__dict__.get(one.attribute) is not one.replacement:
                stuck.append(one.name)
            elif one.was_own:
                setattr(one.owner, one.attribute, one.original)
            else:
                delattr(one.owner, one.attribute)
        self._replaced.clear()
        return stuck
