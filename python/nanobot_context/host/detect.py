"""Which generation of nanobot is here: told by classes and signatures, not by version numbers."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from typing import Any, Literal

from nanobot_context.guard.status import PatchPoint
from nanobot_context.patches.governor import budgeted_archives, own_cuts

__all__ = [
    "Detection",
    "Generation",
    "NanobotClasses",
    "detect_generation",
    "load_classes",
    "nanobot_version",
]

Generation = Literal["provider-chat", "safe-chat", "safe-chat-stream"]

# What each generation covers, for messages.
SUPPORTED = "0.1.3.post7 to 0.3.5"

_CHAT_PARAMETERS = ["messages", "tools", "model", "max_tokens", "temperature"]
_SUBAGENT_PARAMETERS = ["task_id", "task", "label", "origin"]


@dataclass(frozen=True, slots=True)
class NanobotClasses:
    """The classes of nanobot's that the shim touches or makes."""

    provider: type
    response: type
    subagents: type
    session: type


@dataclass(frozen=True, slots=True)
class Detection:
    """What was found.

    Attributes:
        generation: The generation, or `None` when one of its points is not as expected.
        points: Each point, "ready" or "missing".
        reason: Why there is no generation; empty when there is one.
    """

    generation: Generation | None
    points: tuple[PatchPoint, ...]
    reason: str = ""


def nanobot_version() -> str | None:
    """Return the installed version of `nanobot-ai`, or `None`."""
    try:
        return metadata.version("nanobot-ai")
    except metadata.PackageNotFoundError:
        return None


def load_classes() -> NanobotClasses:
    """Import nanobot's agent loop and return the classes; 1 to 8 s, most of it litellm, at first.

    Raises:
        ImportError: nanobot, or a module of it that every known generation has, cannot be imported.
        AttributeError: Such a module lacks its class.
    """
    # The loop first: it imports the others in the order that nanobot itself uses.
    importlib.import_module("nanobot.agent.loop")
    base = importlib.import_module("nanobot.providers.base")
    return NanobotClasses(
        provider=base.LLMProvider,
        response=base.LLMResponse,
        subagents=importlib.import_module("nanobot.agent.subagent").SubagentManager,
        session=importlib.import_module("nanobot.session.manager").Session,
    )


def detect_generation(classes: NanobotClasses) -> Detection:
    """Return the generation of `classes`. A single point that is not as expected means none."""
    provider = classes.provider
    choke_points = [
        name for name in ("_safe_chat", "_safe_chat_stream") if name in provider.__dict__
    ]
    generation: Generation = "safe-chat-stream" if len(choke_points) > 1 else "safe-chat"
    points = [
        _point(provider, name, "every model call", partial(_safe_chat_problem, name))
        for name in choke_points
    ]
    if not choke_points:
        generation = "provider-chat"
        points = [_point(provider, "chat", "every model call", _chat_problem)]
    points += (
        _point(
            classes.subagents, "_run_subagent", "a subagent's overflow is a failure", _run_problem
        ),
        _point(classes.session, "get_history", "history within `max_tokens`", _history_problem),
        _point(classes.response, "__init__", "nanobot's own error response", _response_problem),
    )
    if generation == "safe-chat-stream":
        points += [
            _point(owner, name, "nanobot's own cut leaves room to the guard", _cut_problem)
            for owner, name, _ in own_cuts()
        ]
        points += [
            _point(owner, name, "what nanobot archives is fitted, not dumped", lambda *_: "")
            for owner, name in budgeted_archives()
        ]
    missing = [point for point in points if point.state == "missing"]
    if not missing:
        return Detection(generation, tuple(points))
    reason = "; ".join(f"`{point.name}` {point.why}" for point in missing)
    return Detection(
        None,
        tuple(points),
        f"nanobot {nanobot_version() or '(unknown version)'} is not known to this version of "
        f"nanobot-context and was left untouched: {reason}\n"
        f"hint: supported are nanobot {SUPPORTED}; a newer nanobot-context may know more",
    )


def _point(
    owner: type, attribute: str, purpose: str, problem_of: Callable[[type, Any], str]
) -> PatchPoint:
    name = f"{owner.__module__}.{owner.__qualname__}.{attribute}"
    function = owner.__dict__.get(attribute)
    problem = "does not exist" if function is None else problem_of(owner, function)
    if problem:
        return PatchPoint(name, "missing", problem)
    return PatchPoint(name, "ready", purpose)


def _safe_chat_problem(name: str, owner: type, function: Any) -> str:
    if not inspect.iscoroutinefunction(function):
        return "is not `async`"
    kinds = [parameter.kind for parameter in _parameters(function)]
    if kinds != [inspect.Parameter.VAR_KEYWORD]:
        return f"takes {inspect.signature(function)} instead of keywords only"
    overriding = [cls.__qualname__ for cls in subclasses(owner) if name in cls.__dict__]
    return f"is overridden by {', '.join(overriding)}" if overriding else ""


def _chat_problem(_: type, function: Any) -> str:
    return _expects(function, _CHAT_PARAMETERS)


def _run_problem(_: type, function: Any) -> str:
    return _expects(function, _SUBAGENT_PARAMETERS)


def _history_problem(_: type, function: Any) -> str:
    names = [parameter.name for parameter in _parameters(function)]
    known = names == ["max_messages"] or (names[:1] == ["max_messages"] and "max_tokens" in names)
    return "" if known else f"takes {inspect.signature(function)}"


def _cut_problem(_: type, function: Any) -> str:
    names = [parameter.name for parameter in _parameters(function)]
    known = names[:1] in (["spec"], ["config"]) and names[1:2] == ["messages"]
    return "" if known else f"takes {inspect.signature(function)}"


def _response_problem(_: type, function: Any) -> str:
    names = {parameter.name for parameter in _parameters(function)}
    lacking = [name for name in ("content", "finish_reason") if name not in names]
    return f"does not take {', '.join(lacking)}" if lacking else ""


def _expects(function: Any, names: list[str]) -> str:
    if not inspect.iscoroutinefunction(function):
        return "is not `async`"
    found = [parameter.name for parameter in _parameters(function)]
    if found[: len(names)] != names:
        return f"takes {inspect.signature(function)} instead of ({', '.join(names)}, ...)"
    return ""


def _parameters(function: Any) -> list[inspect.Parameter]:
    """Return the parameters behind `self`."""
    return list(inspect.signature(function).parameters.values())[1:]


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
