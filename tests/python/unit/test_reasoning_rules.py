"""Providers that want reasoning back: stubs of their documented rules refuse nothing.

The rules and their sources are those of `Family::wants_reasoning` of the core, and of Anthropic's
guide "Extended thinking", "Preserving thinking blocks".
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from nanobot_context import (
    Compressor,
    call_with_recovery_sync,
    compress_messages,
    count_tokens,
)

Message = dict[str, Any]

CONVERSATIONS = 60
WINDOWS = (6_000, 9_000, 16_000, 24_000)
OUTPUT = 1_000
WORDS = ["alpha", "beta", "gamma", "delta", "omega", "42", "path/to/file.py", "error", "value"]


def plain(messages: list[Message], _: dict[str, Any]) -> str | None:
    """DeepSeek, Kimi, MiMo: a message with calls has its reasoning or a mark of it."""
    for index, message in enumerate(messages):
        if message.get("tool_calls") and not message.get("reasoning_content"):
            return f"reasoning_content is missing in assistant tool call message at index {index}"
    return None


def signed(messages: list[Message], given: dict[str, Any]) -> str | None:
    """Claude: blocks are as they were given, and the newest calls, if unanswered, have theirs."""
    calling = [index for index, message in enumerate(messages) if message.get("tool_calls")]
    for index in calling:
        blocks = messages[index].get("thinking_blocks")
        if blocks and blocks != given[messages[index]["tool_calls"][0]["id"]]:
            return f"messages.{index}.content.0: Invalid `signature` in `thinking` block"
    if messages[-1]["role"] == "tool" and not messages[calling[-1]].get("thinking_blocks"):
        return f"messages.{calling[-1]}.content.0.type: Expected `thinking`, found `tool_use`"
    return None


Rule = Callable[[list[Message], dict[str, Any]], str | None]
RULES: dict[str, tuple[Rule, tuple[str, ...]]] = {
    "deepseek": (plain, ("deepseek-v4-pro", "deepseek/deepseek-reasoner")),
    "kimi": (plain, ("kimi-k2-thinking", "moonshotai/kimi-k3")),
    "mimo": (plain, ("mimo-v2.5-pro", "glm-5", "MiniMax-M2")),
    "claude": (signed, ("claude-sonnet-4-5", "anthropic/claude-opus-4-7")),
}


@dataclass
class Provider:
    """Accepts prompts of `window` tokens with the answer, and asks for reasoning by `rule`."""

    window: int
    model: str
    rule: Rule
    given: dict[str, Any] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    refusals: int = 0

    def __call__(self, messages: list[Message], *, max_tokens: int | None) -> str:
        tokens = count_tokens(messages, self.model) + (max_tokens or 0)
        if tokens > self.window:
            self.refusals += 1
            text = f"prompt is too long: {tokens} tokens > {self.window} maximum"
            raise RuntimeError(f"Error code: 400 - {text}")
        if text := self.rule(messages, self.given) or "":
            self.broken.append(text)
            raise RuntimeError(f"Error code: 400 - {text}")
        return "fine"


@dataclass
class Talk:
    """A generated conversation of several turns, with calls, reasoning and long results."""

    provider: Provider
    pick: random.Random
    messages: list[Message] = field(default_factory=list)
    steps: int = 0

    def words(self, *counts: int) -> str:
        return " ".join(self.pick.choices(WORDS, k=self.pick.choice(counts)))

    def play(self, ask: Callable[[list[Message]], Any]) -> None:
        """Have the user say a few things, and the model think, call and answer."""
        system = "You are an agent. " * self.pick.randint(1, 200)
        self.messages.append({"role": "system", "content": system})
        for turn in range(self.pick.randint(2, 5)):
            said = f"Task {turn}: {self.words(3, 60)}"
            self.messages.append({"role": "user", "content": said})
            for _ in range(self.pick.randint(0, 5)):
                ask(self.messages)
                self.step()
            ask(self.messages)
            self.messages.append(self.thought("", content=self.words(30)))

    def thought(self, call: str, **message: Any) -> Message:
        """Return a message of the model's with what it thought before `call`."""
        text = self.words(5, 60, 900)
        if self.provider.rule is plain:
            return {"role": "assistant", "reasoning_content": text, **message}
        blocks = [{"type": "thinking", "thinking": text, "signature": f"s{self.pick.random()}"}]
        self.provider.given[call] = blocks
        return {"role": "assistant", "thinking_blocks": blocks, **message}

    def step(self) -> None:
        """Call one tool or several at once."""
        self.steps += 1
        calls = [self.call(f"c{self.steps}_{n}") for n in range(self.pick.randint(1, 3))]
        content = self.pick.choice([None, self.words(10)])
        self.messages.append(self.thought(calls[0]["id"], content=content, tool_calls=calls))
        for call in calls:
            name, result = call["function"]["name"], self.words(20, 400, 2_500)
            answer = {"role": "tool", "tool_call_id": call["id"], "name": name, "content": result}
            self.messages.append(answer)

    def call(self, identifier: str) -> dict[str, Any]:
        arguments = json.dumps({"path": self.words(2), "text": self.words(3, 300)})
        function = {"name": self.pick.choice(["exec", "read_file"]), "arguments": arguments}
        return {"id": identifier, "type": "function", "function": function}


def by_function(provider: Provider) -> Callable[[list[Message]], Any]:
    def ask(messages: list[Message]) -> Any:
        short = compress_messages(messages, provider.window, provider.model)
        return provider(short, max_tokens=None)

    return ask


def by_compressor(provider: Provider) -> Callable[[list[Message]], Any]:
    compressor = Compressor(provider.window, model=provider.model)
    return lambda messages: provider(compressor.compress(messages), max_tokens=None)


def by_recovery(provider: Provider) -> Callable[[list[Message]], Any]:
    return lambda messages: call_with_recovery_sync(
        provider,
        messages,
        context_window=200_000,
        model=provider.model,
        max_output_tokens=OUTPUT,
    )


@pytest.mark.parametrize("way", [by_function, by_compressor, by_recovery])
@pytest.mark.parametrize("family", RULES)
def test_nothing_is_refused_for_its_reasoning(
    family: str, way: Callable[[Provider], Callable[[list[Message]], Any]]
) -> None:
    rule, models = RULES[family]
    refusals, broken = 0, []
    for number in range(CONVERSATIONS):
        pick = random.Random(f"{family}-{number}")
        provider = Provider(pick.choice(WINDOWS), pick.choice(models), rule)
        Talk(provider, pick).play(way(provider))
        refusals += provider.refusals
        broken += provider.broken
    assert broken == []
    assert (refusals > 0) == (way is by_recovery), "the window was never met"
