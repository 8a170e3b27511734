"""`LLMProvider`: every model call comes through here, and the guard with it.

From 0.1.4.post5 on every model call goes through `_safe_chat(**kwargs)` or, from 0.1.4.post6 on,
its twin `_safe_chat_stream(**kwargs)`. They stand inside `chat_with_retry`, whose check for
transient errors looks for "429", "503" and the like anywhere in an error's text: a refusal of
"70503 tokens" was sent four times. Seen from there a recovered request has never failed, and the
friendly text of a request that was given up has no digits.

Before, the loop, the subagents, the memory consolidation and the heartbeat all call `chat`
directly, and each provider class has its own `chat` with its own `except Exception`. So it is
replaced in every class: in those that are loaded, and through `__init_subclass__` in those that
will be (`CustomProvider` is imported only when the configuration names it).
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any

from nanobot_context._core import (
    answer_reserve,
    count_tokens,
    find_last_user_index,
    token_bound,
)
from nanobot_context.guard.fuse import fused
from nanobot_context.guard.guard import in_flight
from nanobot_context.guard.request import Call, positional_names
from nanobot_context.host.detect import PROVIDER, RESPONSE
from nanobot_context.patches.declaration import Context, Patch
from nanobot_context.wire.refusals import show_refusals

Chat = Callable[..., Awaitable[Any]]


def _wrap_call(original: Chat, context: Context) -> Chat:
    names, defaults = positional_names(original)

    @functools.wraps(original)
    async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if context.active and not in_flight():
            given = Call(names, defaults, args, kwargs)
            send = functools.partial(original, self)
            request = fused("read a request", lambda: given.request(send, provider=self), None)
            if request is not None:
                # Some releases make it with the first call: then the second one has it.
                fused("read a client", lambda: show_refusals(getattr(self, "_client", None)), None)
                return await context.guard.run(request)
        return await original(self, *args, **kwargs)

    return call


# Of what nanobot sends, in every language: 3.9 to 4.4 by the vocabularies here. It is asked before
# each turn whether the conversation is too long; where half the window is left, so much is enough.
_BYTES_A_TOKEN = 4

# What nanobot puts in the place of the next message of the user when it asks that.
_PROBE = "[token-probe]"


def _with_next(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages whose probe is as large as the last message of the user.

    What nanobot leaves out before a turn would otherwise be left out after it: the turn that does
    not fit would make a step, and the next one begin anew, each at the price of the whole prompt.
    """
    *before, last = messages or [{}]
    content = last.get("content")
    if not (isinstance(content, str) and content.endswith(_PROBE)):
        return messages
    said = find_last_user_index(before)
    return [*messages, *before[said : said + 1]]


def _estimate(_: None, context: Context) -> Callable[..., tuple[int, str]]:
    def estimate_prompt_tokens(
        self: Any,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None = None,
        model: str | None = None,
    ) -> tuple[int, str]:
        """Return the tokens of a prompt and who counted them; 0 leaves it to nanobot."""
        if not context.active:
            return 0, "none"

        def counted() -> tuple[int, str]:
            default = None if model else self.get_default_model()
            name = model or (default if isinstance(default, str) else None)
            sent = _with_next(messages)
            bound = token_bound(sent, name, tools=tools)
            if bound is not None and bound <= context.windows.of(name).tokens // 2:
                return bound // _BYTES_A_TOKEN, "nanobot-context"
            return count_tokens(sent, name, tools=tools), "nanobot-context"

        return fused("count a prompt", counted, (0, "none"))

    return estimate_prompt_tokens


def _session_size(original: Callable[..., tuple[int, str]], context: Context) -> Callable[..., Any]:
    @functools.wraps(original)
    def estimate_session_prompt_tokens(self: Any, session: Any, runtime: Any) -> tuple[int, str]:
        """Return the tokens of a session, at most those that are sent of it."""
        tokens, source = original(self, session, runtime=runtime)

        def most() -> int:
            window = context.windows.of(runtime.model).tokens
            return window - answer_reserve(window, runtime.generation.max_tokens)

        sent = fused("size a session", most, tokens) if context.active else tokens
        return min(tokens, sent), source

    return estimate_session_prompt_tokens


_patch = functools.partial(Patch, owner=PROVIDER)

PATCHES = (
    _patch(
        attribute="_safe_chat",
        formerly="chat",
        kind="async",
        parameters=("messages",),
        why="every model call",
        wrap=_wrap_call,
        needed=True,
        guards="model calls",
        spreads=True,
    ),
    _patch(
        attribute="_safe_chat_stream",
        kind="async",
        parameters=("messages",),
        why="every streamed answer",
        wrap=_wrap_call,
        only_with="chat_stream",
        guards="streamed answers",
        spreads=True,
        since="0.1.4.post6",
    ),
    Patch(
        owner=RESPONSE,
        attribute="__init__",
        parameters=("content", "finish_reason"),
        why="nanobot's own error response",
        wrap=None,
    ),
    # nanobot's own estimate downloads a vocabulary, and counts nothing where that fails. This is
    # the hook that it looks for on a provider.
    _patch(
        attribute="estimate_prompt_tokens",
        kind="new",
        why="prompts are counted without a download",
        wrap=_estimate,
        only_with="nanobot.utils.helpers:estimate_prompt_tokens_chain",
        since="0.1.4.post5",
    ),
    # Where nanobot decides by it when it archives, it is left as it is.
    Patch(
        owner="nanobot.agent.memory:Consolidator",
        attribute="estimate_session_prompt_tokens",
        parameters=("session", "runtime"),
        why="`/status` shows the size of what is sent",
        wrap=_session_size,
        unless="maybe_consolidate_by_tokens",
        only_with="nanobot.agent.memory:Consolidator",
        since="0.3.5",
    ),
)

SUBCLASSES = "providers that are loaded later"
"""Why `__init_subclass__` is replaced wherever a patch spreads."""
