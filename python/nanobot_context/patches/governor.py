"""nanobot's own cuts, made before a request reaches the guard.

From 0.1.5 on the runner cuts each request to its window: whole messages from the front, without a
look at what they say (`_snip_history`, `snip_history`); 0.3.0 takes out tool results
(`compact_inflight_overflow`); 0.3.5 has a model write a summary, which forgets what the user asked
for, and gives a request up that is still too long (`request_pressure`, `ensure_request_fits`). All
of them work on the copy for the model. Here they leave it alone, and the guard fits what comes out,
by the window of the model. Where no window is known nanobot goes by its own, and where some model
calls are not guarded, too, or the provider is none of nanobot's classes.

When a session has been idle, 0.3.5 asks the model for a summary of it, and dumps what does not fit
its window with no summary at all. Here the request goes out, and the guard fits it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from nanobot_context.guard.fuse import fused
from nanobot_context.host.detect import PROVIDER, find
from nanobot_context.patches.declaration import Context, Patch

_BUDGET = "input_token_budget"
# More than any session has.
_NO_BUDGET = 1 << 40


def _wrap_cut(
    original: Callable[..., Any], context: Context, *, returns_messages: bool = True
) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def left_alone(*args: Any, **kwargs: Any) -> Any:
        own = object()

        def left() -> Any:
            given = signature.bind(*args, **kwargs).arguments
            # The run's specification in releases with a runner of its own, else the governor's.
            config = given.get("spec", given.get("config"))
            asked = getattr(config, "provider", getattr(given.get("self"), "provider", None))
            if not _is_guarded(asked):
                return own
            if not context.windows.of(getattr(config, "model", None)).tokens:
                return own
            return given["messages"] if returns_messages else None

        result = fused("leave a request alone", left, own) if context.active else own
        return original(*args, **kwargs) if result is own else result

    return left_alone


def _is_guarded(provider: Any) -> bool:
    """Return whether requests to `provider` come to the guard: those to a stand-in do not."""
    known = find(*PROVIDER.split(":"))
    return provider is None or known is None or isinstance(provider, known)


def _wrap_archive(original: Callable[..., Any], context: Context) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    async def without_budget(*args: Any, **kwargs: Any) -> Any:
        def free() -> tuple[tuple[Any, ...], dict[str, Any]]:
            given = signature.bind(*args, **kwargs)
            runtime = given.arguments["runtime"]
            model, asked = (getattr(runtime, name, None) for name in ("model", "provider"))
            is_fitted = _is_guarded(asked) and context.windows.of(model).tokens
            if is_fitted and given.arguments.get(_BUDGET) is not None:
                given.arguments[_BUDGET] = _NO_BUDGET
            return given.args, given.kwargs

        if context.active:
            args, kwargs = fused("free an archive of its budget", free, (args, kwargs))
        return await original(*args, **kwargs)

    return without_budget


def _cut(
    owner: str, attribute: str, config: str, *, returns_messages: bool = True, **releases: str
) -> Patch:
    return Patch(
        owner=owner,
        attribute=attribute,
        parameters=(config, "messages"),
        why="nanobot's own cut leaves room to the guard",
        wrap=functools.partial(_wrap_cut, returns_messages=returns_messages),
        part="own cuts",
        **releases,  # type: ignore[arg-type]
    )


_GOVERNOR = "nanobot.agent.context_governance:ContextGovernor"

PATCHES = (
    _cut("nanobot.agent.runner:AgentRunner", "_snip_history", "spec", since="0.1.5", until="0.2.2"),
    _cut(_GOVERNOR, "compact_inflight_overflow", "config", since="0.3.0", until="0.3.0"),
    _cut(_GOVERNOR, "snip_history", "config", since="0.3.0"),
    _cut(_GOVERNOR, "ensure_request_fits", "config", since="0.3.5"),
    _cut(_GOVERNOR, "request_pressure", "config", returns_messages=False, since="0.3.5"),
    *(
        Patch(
            owner="nanobot.agent.memory:MemoryArchiver",
            attribute=name,
            kind="async",
            parameters=(_BUDGET, "runtime"),
            why="what nanobot archives is fitted, not dumped",
            wrap=_wrap_archive,
            part="own cuts",
            since="0.3.5",
        )
        for name in ("archive_session", "archive")
    ),
)
