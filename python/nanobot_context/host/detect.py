"""Finds nanobot's classes and its version. What a class is like decides, not the version."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from importlib import metadata
from typing import Any

TESTED = (
    *("0.1.3.post7", "0.1.4", "0.1.4.post2", "0.1.4.post3", "0.1.4.post4", "0.1.4.post5"),
    *("0.1.4.post6", "0.1.5", "0.1.5.post1", "0.1.5.post2", "0.1.5.post3", "0.2.0", "0.2.1"),
    *("0.2.2", "0.3.0", "0.3.5"),
)
"""The releases whose loops were played with this version of the package, oldest first."""

PROVIDER = "nanobot.providers.base:LLMProvider"
RESPONSE = "nanobot.providers.base:LLMResponse"
SUBAGENTS = "nanobot.agent.subagent:SubagentManager"
SESSION = "nanobot.session.manager:Session"


@dataclass(frozen=True, slots=True)
class NanobotClasses:
    """The classes of nanobot's that every release has; `None` for one that is not there."""

    provider: type
    response: Any = None
    subagents: Any = None
    session: Any = None

    def find(self, owner: str) -> Any:
        """Return the class `module:Class` of this release, or `None`."""
        known = {
            PROVIDER: self.provider,
            RESPONSE: self.response,
            SUBAGENTS: self.subagents,
            SESSION: self.session,
        }
        return known[owner] if owner in known else find(*owner.split(":"))


def load_classes() -> NanobotClasses:
    """Import nanobot's agent loop and return the classes; 1 to 8 s, most of it litellm, at first.

    Raises:
        ImportError: nanobot's agent loop or its providers cannot be imported.
        AttributeError: There is no `LLMProvider`.
    """
    # The loop first: it imports the others in the order that nanobot itself uses.
    importlib.import_module("nanobot.agent.loop")
    return NanobotClasses(
        importlib.import_module("nanobot.providers.base").LLMProvider,
        *(find(*owner.split(":")) for owner in (RESPONSE, SUBAGENTS, SESSION)),
    )


def find(module: str, name: str) -> Any:
    """Return the attribute `name` of `module`, or the module; `None` where that is not there."""
    try:
        found = importlib.import_module(module)
        return getattr(found, name) if name else found
    except (ImportError, AttributeError):
        return None


def subclasses(owner: type) -> list[type]:
    """Return every loaded subclass of `owner`, at any depth, once each."""
    found: dict[type, None] = {}
    waiting: list[type] = owner.__subclasses__()
    while waiting:
        cls = waiting.pop(0)
        if cls not in found:
            found[cls] = None
            waiting.extend(cls.__subclasses__())
    return list(found)


def nanobot_version() -> str | None:
    """Return the installed version of `nanobot-ai`, or `None`."""
    return installed_version("nanobot-ai")


def installed_version(package: str) -> str | None:
    """Return the installed version of a package, or `None`."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def is_between(version: str, since: str, until: str) -> bool:
    """Return whether a release is one of `since` to `until`; no `until` is every later one."""
    release = _numbers(version)
    return _numbers(since) <= release and (not until or release <= _numbers(until))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))
