"""Declares a patch; from the declaration it is applied, reported, documented and tested."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from nanobot_context.guard.fuse import fused
from nanobot_context.host.detect import NanobotClasses, find, is_between
from nanobot_context.patches.patching import PatchSet, name_of

if TYPE_CHECKING:
    from nanobot_context.guard.guard import Guard
    from nanobot_context.guard.telemetry import Telemetry
    from nanobot_context.guard.windows import WindowResolver
    from nanobot_context.plugins.opened_store import Opened
    from nanobot_context.plugins.summaries import SummaryJobs
    from nanobot_context.settings import Settings

Part = Literal["guard", "own cuts", "own window", "events", "session store", "summaries", "rules"]
"""What a patch belongs to. A part works whole or not at all; what it cannot do without is `needed`.
"""


@dataclass(slots=True)
class Context:
    """The objects that replacements work with."""

    patches: PatchSet
    guard: Guard
    windows: WindowResolver
    telemetry: Telemetry
    settings: Settings
    summaries: SummaryJobs | None = None
    store: Opened | None = None
    moved: Callable[[Path], None] | None = None
    """Takes the settings beside the config file that a program has named."""

    @property
    def active(self) -> bool:
        """Whether replacements are to do anything: not after `uninstall`."""
        return self.patches.active


def then(what: str, act: Callable[..., None]) -> Callable[[Any, Context], Any]:
    """Return the wrap of a method behind which `act` runs, under the fuse for `what` it does.

    `act` takes the context, the instance, what the method returned, and its arguments.
    """

    def wrap(original: Callable[..., Any], context: Context) -> Callable[..., Any]:
        @functools.wraps(original)
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            if context.active:
                fused(what, lambda: act(context, self, result, *args, **kwargs), None)
            return result

        return method

    return wrap


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """One attribute of nanobot's that is replaced.

    Attributes:
        owner: The class, as `module:Class`, or a module, as `module:`.
        attribute: Its name; empty for a class that only has to be there.
        why: What a user has of it.
        wrap: Makes the replacement of the original; `None` where nothing is replaced, and the
            attribute is only used.
        part: What it belongs to.
        needed: Whether its part cannot work without it.
        kind: A function, a coroutine function, a value of instances (whose constructor takes the
            parameters), or one that nanobot does not have.
        parameters: Those behind `self` that the replacement relies on.
        formerly: The name in earlier releases, used where there is none of the present name.
        former_parameters: Its parameters where they were others.
        unless: A parameter of the attribute, or an attribute of the owner, that makes it needless.
        only_with: An attribute of the owner, or `module:name`, without which it may be missing.
        guards: The model calls that are not protected without it.
        spreads: Whether subclasses that have an attribute of their own are patched, too.
        since: The first release that has it.
        until: The last one; empty for the newest.
    """

    owner: str
    attribute: str
    why: str
    wrap: Callable[[Any, Context], Any] | None
    part: Part = "guard"
    needed: bool = False
    kind: Literal["function", "async", "value", "new"] = "function"
    parameters: tuple[str, ...] = ()
    formerly: str = ""
    former_parameters: tuple[str, ...] = ()
    unless: str = ""
    only_with: str = ""
    guards: str = ""
    spreads: bool = False
    since: str = "0.1.3.post7"
    until: str = ""

    def look(self, classes: NanobotClasses) -> Point:
        """Look up its target in this nanobot."""
        owner = classes.find(self.owner)
        own = getattr(owner, "__dict__", {})
        is_former = self.attribute not in own and self.formerly in own
        name = self.formerly if is_former else self.attribute
        if owner is None or self._is_needless(owner, own.get(name)):
            state: State = "missing" if owner is None and not self.only_with else "needless"
            return Point(self, owner, name, state, "does not exist")
        problem = self._problem(owner, name, own)
        if not problem:
            return Point(self, owner, name, "ready")
        is_gone = problem == "does not exist"
        return Point(self, owner, name, "missing" if is_gone else "changed", problem)

    def _is_needless(self, owner: Any, original: Any) -> bool:
        if self.only_with and original is None:
            module, _, name = self.only_with.rpartition(":")
            if (find(module, name) if module else getattr(owner, name, None)) is None:
                return True
        if self.kind == "new" and self.attribute:
            return _declares(owner, self.attribute)
        if not self.unless:
            return False
        return hasattr(owner, self.unless) or self.unless in _parameters(original)

    def _problem(self, owner: Any, name: str, own: Any) -> str:
        """Return how the target differs from what is expected; empty if it does not."""
        if not name or self.kind == "new":
            return ""
        if self.kind == "value":
            slot = own.get(name)
            is_kept = slot is None or inspect.ismemberdescriptor(slot)
            found = _parameters(owner.__init__)
            return "" if is_kept and {name, *self.parameters} <= set(found) else "does not exist"
        original = own.get(name)
        if original is None:
            return "does not exist"
        if self.kind == "async" and not inspect.iscoroutinefunction(original):
            return "is not `async`"
        taken = _parameters(original)
        is_former = name != self.attribute and bool(self.former_parameters)
        wanted = self.former_parameters if is_former else self.parameters
        lacking = [name for name in wanted if name not in taken and "**" not in taken]
        return f"takes no `{'`, `'.join(lacking)}`" if lacking else ""


State = Literal["ready", "missing", "changed", "needless"]


@dataclass(frozen=True, slots=True)
class Point:
    """A patch and its target in one nanobot.

    Attributes:
        owner: The class; `None` where there is none.
        attribute: What the attribute is called in this release.
        state: "ready" as expected, "missing", "changed", or "needless" in this release.
        problem: What is not as expected.
    """

    patch: Patch
    owner: Any
    attribute: str
    state: State
    problem: str = ""

    @property
    def name(self) -> str:
        """`module.Class.attribute`."""
        declared = self.patch.owner.rstrip(":").replace(":", ".")
        owner = declared if self.owner is None else name_of(self.owner)
        return ".".join(filter(None, (owner, self.attribute)))

    @property
    def is_broken(self) -> bool:
        """Whether it is not as expected."""
        return self.state in ("missing", "changed")

    def is_expected_of(self, version: str | None) -> bool:
        """Return whether this release should have it."""
        return version is not None and is_between(version, self.patch.since, self.patch.until)


def _declares(owner: Any, name: str) -> bool:
    """Return whether a class, or its instances, have an attribute of this name."""
    fields = {**getattr(owner, "__annotations__", {}), **getattr(owner, "__dataclass_fields__", {})}
    return hasattr(owner, name) or name in fields


def _parameters(function: Any) -> tuple[str, ...]:
    """Return the names of the parameters behind `self`; `**` for any other name."""
    try:
        found = list(inspect.signature(function).parameters.values())[1:]
    except (TypeError, ValueError):
        return ()
    kinds = inspect.Parameter
    return tuple(
        "**" if one.kind is kinds.VAR_KEYWORD else one.name
        for one in found
        if one.kind is not kinds.POSITIONAL_ONLY
    )
