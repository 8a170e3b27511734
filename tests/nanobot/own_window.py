"""What nanobot's own tests say of its window, asked of a nanobot with the package in it.

After nanobot's `test_resolver_mutates_only_its_default_selection`, two of its tests of `/status`,
and `test_token_budget_keeps_current_user_as_replay_boundary`.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

from scenario import Scenario, script
from stage import Stage
from texts import prose

WRITTEN = 65_536


def own_window() -> Scenario:
    """A window of 65,536 is set in code, for a model that has a larger one."""

    async def play(stage: Stage) -> None:
        stage.start(context_window_tokens=WRITTEN)
        await stage.say("/status")
        await stage.say("Hello.")
        await stage.say("/status")
        if find_spec("nanobot.agent.model_runtime"):
            stage.notes["resolver"] = resolved(stage)
            stage.notes["replayed"] = await replayed(stage)

    return Scenario(
        "own-window",
        play,
        lambda _: script(["Hi."]),
        known=None,
        model="openai/gpt-4.1",
        stopped=True,
    )


def long_session() -> Scenario:
    """The session has more than its window of 16,000 tokens."""

    async def play(stage: Stage) -> None:
        for number in range(8):
            await stage.say(prose(f"session-{number}", 3_000))
        await stage.say("/status")

    return Scenario(
        "long-session",
        play,
        lambda _: script(["Noted."] * 8),
        window=16_000,
        known=16_000,
        stopped=True,
    )


def resolved(stage: Stage) -> dict[str, Any]:
    """Return what a resolver of runtimes selects: only its default changes."""
    runtime_class = import_module("nanobot.utils.llm_runtime").LLMRuntime
    resolver_class = import_module("nanobot.agent.model_runtime").ModelRuntimeResolver
    first = runtime_class.capture(stage.provider, "base-model", context_window_tokens=10_000)
    resolver = resolver_class(first)
    model = resolver.select_model("openai/gpt-4.1")
    window = resolver.select_context_window(WRITTEN)
    return {
        "models": [first.model, model.model, window.model],
        "windows": [one.context_window_tokens for one in (first, model, window)],
        "is_selected": resolver.runtime is window,
    }


async def replayed(stage: Stage) -> str:
    """Return what is sent to a provider that is none of nanobot's, of a window of 8,000 tokens."""
    sent: list[dict[str, Any]] = []
    response = import_module("nanobot.providers.base").LLMResponse

    async def chat(**given: Any) -> Any:
        sent.extend(given["messages"])
        return response(content="ok", tool_calls=[])

    stand_in = SimpleNamespace(
        chat_with_retry=chat,
        chat_stream_with_retry=chat,
        generation=SimpleNamespace(max_tokens=4_096, temperature=0.1, reasoning_effort=None),
        get_default_model=lambda: "test-model",
        supports_progress_deltas=False,
    )
    stage.start(provider=stand_in, model="test-model", context_window_tokens=8_000)
    past = stage.loop.sessions.get_or_create("cli:replayed")
    past.add_message("user", "old")
    past.add_message("assistant", "old answer")
    past.add_message("user", "long older turn")
    for number in range(200):
        function = {"name": "x", "arguments": "{}"}
        call = {"id": f"older-{number}", "type": "function", "function": function}
        past.messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        past.messages.append(
            {"role": "tool", "tool_call_id": f"older-{number}", "name": "x", "content": "ok"}
        )
    past.add_message("assistant", "older final")
    stage.loop.tools.get_definitions = list
    await stage.say("new question", "cli:replayed")
    return "\n".join(str(message.get("content")) for message in sent)
