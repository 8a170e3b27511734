"""What nanobot cuts out of a request by itself, before the request comes to the guard.

From 0.1.5 on the runner cuts each request to its window: whole messages from the front, without a
look at what they say (`_snip_history`, `snip_history`); 0.3.0 takes out tool results
(`compact_inflight_overflow`); 0.3.5 has a model write a summary, which forgets what the user asked
for, and gives a request up that is still too long (`request_pressure`, `ensure_request_fits`). All
of them work on the copy for the model. Here they leave it alone, and the guard fits what comes out,
by the window of the model. Where no window is known nanobot goes by its own.

When a session has been idle, 0.3.5 asks the model for a summary of it, and dumps what does not fit
its window with no summary at all. Here the request goes out, and the guard fits it.

Its estimate of a prompt downloads a vocabulary, and counts nothing where that fails;
`estimate_prompt_tokens` is the hook that it looks for on a provider.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from nanobot_context._core import count_tokens
from nanobot_context.guard.fuse import fused
from nanobot_context.guard.windows import Windows
from nanobot_context.patches.patching import PatchSet, find

__all__ = ["budgeted_archives", "own_cuts", "patch"]

_RUNNER = ("nanobot.agent.runner", "AgentRunner")
_GOVERNOR = ("nanobot.agent.context_governance", "ContextGovernor")
_RETURN_MESSAGES = (
    (_RUNNER, "_snip_history"),
    (_GOVERNOR, "compact_inflight_overflow"),
    (_GOVERNOR, "snip_history"),
    (_GOVERNOR, "ensure_request_fits"),
)
_RETURN_NOTHING = ((_GOVERNOR, "request_pressure"),)
_ARCHIVER = ("nanobot.agent.memory", "MemoryArchiver")
_ARCHIVES = ("archive_session", "archive")
_ESTIMATE = ("nanobot.utils.helpers", "estimate_prompt_tokens_chain")
_BUDGET = "input_token_budget"
# More than any session has.
_NO_BUDGET = 1 << 40


def own_cuts() -> list[tuple[type, str, bool]]:
    """Return the methods that this release has, as (class, name, whether it returns messages)."""
    found = []
    for places, returns_messages in ((_RETURN_MESSAGES, True), (_RETURN_NOTHING, False)):
        for (module, name), method in places:
            owner = find(module, name)
            if owner is not None and method in owner.__dict__:
                found.append((owner, method, returns_messages))
    return found


def budgeted_archives() -> list[tuple[type, str]]:
    """Return the methods of this release that dump what does not fit, as (class, name)."""
    archiver = find(*_ARCHIVER)
    if archiver is None:
        return []
    methods = ((name, archiver.__dict__.get(name)) for name in _ARCHIVES)
    return [
        (archiver, name)
        for name, method in methods
        if method and {_BUDGET, "runtime"} <= set(inspect.signature(method).parameters)
    ]


def patch(provider: type, windows: Windows, patches: PatchSet) -> None:
    """Keep nanobot's own cuts from requests that the guard will fit, and count prompts for it."""
    for owner, name, returns_messages in own_cuts():
        make = functools.partial(
            _leave_alone, windows=windows, patches=patches, returns_messages=returns_messages
        )
        patches.replace(owner, name, make)
    for owner, name in budgeted_archives():
        patches.replace(owner, name, lambda original: _without_budget(original, windows, patches))
    asks_the_provider = find(*_ESTIMATE) is not None
    if asks_the_provider and not hasattr(provider, "estimate_prompt_tokens"):
        patches.replace(provider, "estimate_prompt_tokens", lambda _: _estimate(patches))


def _leave_alone(
    original: Callable[..., Any], *, windows: Windows, patches: PatchSet, returns_messages: bool
) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def left_alone(*args: Any, **kwargs: Any) -> Any:
        own = object()

        def left() -> Any:
            given = signature.bind(*args, **kwargs).arguments
            # The run's specification in releases with a runner of its own, else the governor's.
            config = given.get("spec", given.get("config"))
            if not windows.of(getattr(config, "model", None)).tokens:
                return own
            return given["messages"] if returns_messages else None

        result = fused("leave a request alone", left, own) if patches.active else own
        return original(*args, **kwargs) if result is own else result

    return left_alone


def _without_budget(
    original: Callable[..., Any], windows: Windows, patches: PatchSet
) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    async def without_budget(*args: Any, **kwargs: Any) -> Any:
        def free() -> tuple[tuple[Any, ...], dict[str, Any]]:
            given = signature.bind(*args, **kwargs)
            model = getattr(given.arguments["runtime"], "model", None)
            if given.arguments.get(_BUDGET) is not None and windows.of(model).tokens:
                given.arguments[_BUDGET] = _NO_BUDGET
            return given.args, given.kwargs

        if patches.active:
            args, kwargs = fused("free an archive of its budget", free, (args, kwargs))
        return await original(*args, **kwargs)

    return without_budget


def _estimate(patches: PatchSet) -> Callable[..., tuple[int, str]]:
    def estimate_prompt_tokens(
        self: Any,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None = None,
        model: str | None = None,
    ) -> tuple[int, str]:
        """Return the tokens of a prompt and who counted them; 0 leaves it to nanobot."""
        if not patches.active:
            return 0, "none"

        def counted() -> tuple[int, str]:
            default = None if model else self.get_default_model()
            name = model or (default if isinstance(default, str) else None)
            return count_tokens(messages, name, tools=tools), "nanobot-context"

        return fused("count a prompt", counted, (0, "none"))

    return estimate_prompt_tokens
