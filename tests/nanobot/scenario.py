"""What a scenario is made of: a play for the user's side, a script for the model's side."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from server import Answer, Call, Request, Script
from stage import Stage

DONE = "The work is DONE."
WHOLE = 100_000
"""More characters than a file of these scenarios has: nanobot keeps none of its results back."""
ANNOUNCED = "[Subagent '"
"""How nanobot begins what it tells of a subagent's end."""


@dataclass(frozen=True)
class Scenario:
    """One conversation. `window` is what the server enforces."""

    name: str
    play: Callable[[Stage], Awaitable[None]]
    script: Callable[[Stage], Script]
    window: int = 64_000
    known: int | None = -1
    """`contextWindowOverride` in nanobot's config: -1 for the server's window, None for none."""
    in_code: int | None = None
    """`context_window_tokens` of the loop (0.1.4.post5 and later), where no config says it."""
    provider: str = "litellm"
    """nanobot's provider module, without its `_provider`."""
    gateway: str | None = None
    """`provider_name` of the LiteLLM provider."""
    model: str = "openai/gpt-4o-mini"
    form: str = "openai"
    encoding: str = "o200k_base"
    memory_window: int | None = None
    say_prompt: Callable[[int], int] = int
    factor: float = 1.0
    """How many tokens the server counts where its vocabulary counts one."""
    framing: int = 0
    """Tokens that the server takes for each message beside those of its vocabulary."""
    restricted: bool = False
    """`restrict_to_workspace` of nanobot's tools."""
    fallback: tuple[str, int] | None = None
    """A model that nanobot turns to when the other fails, and its window."""
    result_chars: int | None = None
    """`max_tool_result_chars` of nanobot's loop. Of longer results (16,000 if this is not said) the
    model sees a preview only, from 0.1.5 to 0.2.1; later releases except what `read_file` reads."""
    defaults: dict[str, Any] = field(default_factory=dict)
    """What stands in `agents.defaults` of nanobot's config beside what all scenarios have."""
    presets: dict[str, Any] = field(default_factory=dict)
    """`modelPresets` of nanobot's config, for releases that have them (0.2.0 and later)."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What stands in nanobot-context.json."""
    stopped: bool = False
    """Whether clock and dice stand still, so that two runs can be compared byte for byte."""

    @property
    def override(self) -> int | None:
        """The window that the user configured, if any."""
        return self.window if self.known == -1 else self.known


Step = Answer | Callable[[Request], Answer]


def script(main: list[Step], sub: list[Step] | None = None) -> Script:
    """Return a script that gives `main` and `sub` in turn, whatever is left of the history.

    `[ping]` in the last user message is answered `pong` in every script, and consolidation gets
    what it asks for.
    """
    steps = {"main": main, "sub": sub or []}

    def answer(request: Request) -> Answer:
        if request.kind == "memory":
            return memory(request)
        if "[ping]" in request.last_user:
            return "pong"
        left = steps[request.kind]
        step = left[request.index] if request.index < len(left) else "Nothing is left to do."
        return step(request) if callable(step) else step

    return answer


def memory(request: Request) -> Answer:
    """Return what nanobot's consolidation asks for: a tool call, else text (once: JSON)."""
    kept = {
        "history_entry": "[2026-01-01 00:00] MEMORY-ENTRY: the talk was consolidated.",
        "memory_update": "MEMORY-FACT: the user likes short answers.",
    }
    # nanobot 0.3.5 sends the tools of the conversation along, and wants none of them called.
    tools = {tool["function"]["name"] for tool in request.tools}
    return [Call("save_memory", kept)] if "save_memory" in tools else json.dumps(kept)


def reads(paths: list[Path]) -> list[Step]:
    """Return one read_file call a step."""
    return [[Call("read_file", {"path": str(path)})] for path in paths]


async def then_ping(stage: Stage) -> None:
    """Ask something short: does the next turn work?"""
    await stage.idle()
    await stage.say("[ping] Are you still there?")
