"""Selects the patches that apply to the nanobot that is here, and applies them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nanobot_context.guard import fuse
from nanobot_context.guard.status import Generation, PatchPoint
from nanobot_context.host.detect import NanobotClasses, subclasses
from nanobot_context.patches import TABLE
from nanobot_context.patches.declaration import Context, Part, Patch, Point
from nanobot_context.patches.provider import SUBCLASSES

# Without these, requests would be longer than the window: they need the guard behind every call.
_TRUSTING: tuple[Part, ...] = ("own cuts", "own window")


@dataclass(frozen=True, slots=True)
class Plan:
    """The patches of the table that apply to this nanobot.

    Attributes:
        parts: The parts that are wanted, in the order in which they are put in.
        points: Every patch of them.
        lacking: What each part that cannot work lacks.
        unguarded: Model calls that nothing protects, and why.
    """

    parts: tuple[Part, ...]
    points: tuple[Point, ...]
    lacking: dict[Part, tuple[Point, ...]]
    unguarded: tuple[str, ...]

    @property
    def generation(self) -> Generation | None:
        """How model calls of this nanobot are reached."""
        ready = {point.attribute for point in self.points if point.state == "ready"}
        if "guard" in self.lacking:
            return None
        if "chat" in ready:
            return "provider-chat"
        return "safe-chat-stream" if "_safe_chat_stream" in ready else "safe-chat"

    def broken(self, version: str | None) -> tuple[PatchPoint, ...]:
        """Return how nanobot `version` differs from what is expected."""
        return tuple(
            PatchPoint(point.name, "changed" if point.state == "changed" else "missing", why)
            for point in self.points
            if point.is_broken
            and (point.state == "changed" or point.patch.needed or point.is_expected_of(version))
            for why in (f"{point.problem}: {point.patch.why}",)
        )

    def apply(self, context: Context) -> bool:
        """Apply the patches that are ready; return whether the guard is in, else apply none."""
        for part in self.parts:
            trusts = part in _TRUSTING and self.unguarded
            if part not in self.lacking and not trusts and not self._apply(part, context):
                context.patches.restore()
                return False
        return True

    def _apply(self, part: Part, context: Context) -> bool:
        """Apply the patches of `part`, or none if a needed one fails; return `False` for the guard
        then.
        """
        made: list[tuple[type, str, Any, str]] = []
        spreading: list[Point] = []
        for point in self.points:
            if point.patch.part != part or point.state != "ready" or point.patch.wrap is None:
                continue
            try:
                made += _replacements(point, context)
            except fuse.NOT_OURS:
                raise
            except BaseException as error:
                fuse.blown(f"patch `{point.name}`", error)
                if point.patch.needed:
                    return part != "guard"
                continue
            if point.patch.spreads:
                spreading.append(point)
        for owner, attribute, replacement, why in made:
            context.patches.replace(owner, attribute, replacement, why)
        for owner in dict.fromkeys(point.owner for point in spreading):
            here = [point for point in spreading if point.owner is owner]
            replacement = _wrap_init_subclass(owner, here, context)
            context.patches.replace(owner, "__init_subclass__", replacement, SUBCLASSES)
        return True


def make_plan(
    classes: NanobotClasses, parts: Iterable[Part], table: Iterable[Patch] = TABLE
) -> Plan:
    """Look at what this nanobot has of the patches that belong to `parts`."""
    wanted = tuple(parts)
    points = tuple(patch.look(classes) for patch in table if patch.part in wanted)
    broken = [point for point in points if point.is_broken]
    lacking = {
        part: tuple(point for point in broken if point.patch.needed and point.patch.part == part)
        for part in wanted
    }
    return Plan(
        wanted,
        points,
        {part: found for part, found in lacking.items() if found},
        tuple(
            f"{point.patch.guards}: `{point.name}` {point.problem}"
            for point in broken
            if point.patch.guards
        ),
    )


def _replacements(point: Point, context: Context) -> list[tuple[type, str, Any, str]]:
    """Return what to replace for a patch, as (class, attribute, replacement, why)."""
    patch, name = point.patch, point.attribute
    assert patch.wrap is not None
    if patch.kind in ("new", "value"):
        original = point.owner.__dict__.get(name)
        return [(point.owner, name, patch.wrap(original, context), patch.why)]
    owners = [point.owner, *(subclasses(point.owner) if patch.spreads else ())]
    return [
        (owner, name, patch.wrap(owner.__dict__[name], context), patch.why)
        for owner in owners
        if _is_own(owner, name)
    ]


def _is_own(owner: type, name: str) -> bool:
    original = owner.__dict__.get(name)
    return original is not None and not getattr(original, "__isabstractmethod__", False)


def _wrap_init_subclass(
    owner: type, points: list[Point], context: Context
) -> classmethod[Any, Any, None]:
    original = owner.__dict__.get("__init_subclass__")
    own = original if isinstance(original, classmethod) else None

    def protect(cls: type) -> None:
        for point in points:
            if point.patch.wrap is not None and _is_own(cls, point.attribute):
                new = point.patch.wrap(cls.__dict__[point.attribute], context)
                context.patches.replace(cls, point.attribute, new, point.patch.why)

    def init_subclass(cls: type[Any], /, **kwargs: Any) -> None:
        if own is not None:
            own.__get__(None, cls)(**kwargs)
        else:
            # What `super().__init_subclass__` in `owner` itself would call.
            super(owner, cls).__init_subclass__(**kwargs)  # type: ignore[arg-type]
        if context.active:
            fuse.fused("protect a provider that is loaded later", lambda: protect(cls), None)

    return classmethod(init_subclass)
