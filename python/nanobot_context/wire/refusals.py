"""Shows refusals that come with the status of a success.

OpenRouter and other relays answer 200 before they know what the provider behind them says. Clients
of OpenAI and Anthropic take the body for an answer, or for a stream without events.
"""

from __future__ import annotations

import inspect
import json
from typing import Any

from nanobot_context.guard.fuse import fused
from nanobot_context.json_text import parsed
from nanobot_context.overflow import detect_overflow
from nanobot_context.wire.replies import as_refusal
from nanobot_context.wire.streams import reported

_JSON = "application/json"


def show_refusals(client: Any) -> None:
    """Let a client of OpenAI's or Anthropic's raise them; of another one nothing changes."""
    http = getattr(client, "_client", None)
    hooks = getattr(http, "event_hooks", None)
    if not isinstance(hooks, dict) or not inspect.iscoroutinefunction(getattr(http, "send", None)):
        return
    given = list(hooks.get("response") or ())
    if _show not in given:
        http.event_hooks = {**hooks, "response": [*given, _show]}  # type: ignore[union-attr]


async def _show(response: Any) -> None:
    """Give a refusal the status of one, for which clients raise what the body says."""
    if response.is_success and str(response.headers.get("content-type")).startswith(_JSON):
        # An answer is read here, too; the client finds it read.
        await response.aread()
        if fused("read a response", lambda: _is_refusal(response.text), False):
            as_refusal(response)


def _is_refusal(text: str) -> bool:
    body = parsed(text)
    error = reported(body) if isinstance(body, dict) else None
    return error is not None and detect_overflow(json.dumps(error, ensure_ascii=False)) is not None
