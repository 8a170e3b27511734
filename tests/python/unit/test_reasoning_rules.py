"""Providers that want reasoning back: stubs of their documented rules refuse nothing.

The rules and their sources are those of `Family::wants_reasoning` of the core, of Anthropic's guide
"Extended thinking", "Preserving thinking blocks", and of Google's "Thought signatures".
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import openai
import pytest

from nanobot_context import (
    Compressor,
    call_with_recovery_sync,
    compress_messages,
    count_tokens,
)
from refusing_server import Server, running

Message = dict[str, Any]

CONVERSATIONS = 60
WINDOWS = (6_000, 9_000, 16_000, 24_000)
OUTPUT = 1_000
WORDS = ["alpha", "beta", "gamma", "delta", "omega", "42", "path/to/file.py", "error", "value"]


def plain(messages: list[Message], _: dict[str, Any]) -> str | None:
    """DeepSeek, Kimi, MiMo: each message of the model's has its reasoning or a mark of it.

    Read to the letter: DeepSeek asks for them "between two user messages" with a call, Kimi with
    `thinking.keep=all` for those "on every assistant message". What the package itself says in the
    model's name is one of them.
    """
    for index, message in enumerate(messages):
        if message["role"] == "assistant" and not message.get("reasoning_content"):
            return f"assistant message at index {index} is missing reasoning_content"
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


def signed_calls(messages: list[Message], given: dict[str, Any]) -> str | None:
    """Gemini: calls since the last message of the user have the signature they came with."""
    last = max(index for index, message in enumerate(messages) if message["role"] == "user")
    for index, message in enumerate(messages):
        for call in (message.get("tool_calls") or [])[:1]:
            extra = call.get("extra_content")
            if extra is None and index > last:
                return f"Function call is missing a thought_signature, position {index}"
            if extra not in (None, given[call["id"]]):
                return "Corrupted thought signature."
    return None


Rule = Callable[[list[Message], dict[str, Any]], str | None]
RULES: dict[str, tuple[Rule, tuple[str, ...]]] = {
    "deepseek": (plain, ("deepseek-v4-pro", "deepseek/deepseek-reasoner")),
    "kimi": (plain, ("kimi-k2-thinking", "moonshotai/kimi-k3")),
    "mimo": (plain, ("mimo-v2.5-pro", "glm-5", "MiniMax-M2")),
    "claude": (signed, ("claude-sonnet-4-5", "anthropic/claude-opus-4-7")),
    "gemini": (signed_calls, ("gemini-3-pro", "google/gemini-3-flash")),
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
        if text := self.refusal(messages, max_tokens):
            raise RuntimeError(f"Error code: 400 - {text}")
        return "fine"

    def refusal(self, messages: list[Message], max_tokens: int | None) -> str | None:
        """Return why a request is refused, if it is, and remember it."""
        tokens = count_tokens(messages, self.model) + (max_tokens or 0)
        if tokens > self.window:
            self.refusals += 1
            return f"prompt is too long: {tokens} tokens > {self.window} maximum"
        text = self.rule(messages, self.given)
        self.broken += filter(None, [text])
        return text

    def reply(self, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Answer a request that came by HTTP."""
        if text := self.refusal(asked["messages"], asked.get("max_tokens")):
            return 400, {"error": {"message": text, "type": "invalid_request_error"}}
        message = {"role": "assistant", "content": "fine"}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        said = {"id": "x", "object": "chat.completion", "created": 0, "model": self.model}
        return 200, {**said, "choices": choices}


@dataclass
class Talk:
    """A generated conversation of several turns, with calls, reasoning and long results."""

    provider: Provider
    pick: random.Random
    messages: list[Message] = field(default_factory=list)
    steps: int = 0

    def words(self, *counts: int) -> str:
        return " ".join(self.pick.choices(WORDS, k=self.pick.choice(counts)))

    def play(self, ask: Ask) -> None:
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
        text, signature = self.words(5, 60, 900), f"s{self.pick.random()}"
        message = {"role": "assistant", **message}
        if self.provider.rule is plain:
            return {**message, "reasoning_content": text}
        if self.provider.rule is signed:
            blocks = [{"type": "thinking", "thinking": text, "signature": signature}]
            self.provider.given[call] = message["thinking_blocks"] = blocks
        elif call:
            # Of calls that are made at once the first is signed.
            extra = {"google": {"thought_signature": signature * self.pick.choice([1, 30])}}
            self.provider.given[call] = message["tool_calls"][0]["extra_content"] = extra
        return message

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


Wire = tuple[Server, openai.OpenAI]
Ask = Callable[[list[Message]], Any]


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    """A server on the loopback, and OpenAI's own client of it."""
    with running() as server:
        client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0)
        with client:
            yield server, client


def by_function(provider: Provider, _: Wire) -> Ask:
    def ask(messages: list[Message]) -> Any:
        short = compress_messages(messages, provider.window, provider.model)
        return provider(short, max_tokens=None)

    return ask


def by_compressor(provider: Provider, _: Wire) -> Ask:
    compressor = Compressor(provider.window, model=provider.model)
    return lambda messages: provider(compressor.compress(messages), max_tokens=None)


def by_recovery(provider: Provider, _: Wire) -> Ask:
    return lambda messages: recovered(provider, messages, provider.model)


def by_client(provider: Provider, wire: Wire) -> Ask:
    server, client = wire
    server.reply = provider.reply

    def chat(messages: list[Any], *, max_tokens: int | None) -> Any:
        return client.chat.completions.create(
            model=provider.model, messages=messages, max_tokens=max_tokens
        )

    return lambda messages: recovered(chat, messages, provider.model)


def recovered(chat: Callable[..., Any], messages: list[Message], model: str) -> Any:
    return call_with_recovery_sync(
        chat, messages, context_window=200_000, model=model, max_output_tokens=OUTPUT
    )


WAYS: dict[str, tuple[Callable[[Provider, Wire], Ask], int]] = {
    "function": (by_function, CONVERSATIONS),
    "compressor": (by_compressor, CONVERSATIONS),
    "recovery": (by_recovery, CONVERSATIONS),
    # The same ten times as slowly.
    "client": (by_client, 6),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("family", RULES)
def test_nothing_is_refused_for_its_reasoning(family: str, way: str, wire: Wire) -> None:
    (rule, models), (asking, conversations) = RULES[family], WAYS[way]
    refusals, broken = 0, []
    for number in range(conversations):
        pick = random.Random(f"{family}-{number}")
        provider = Provider(pick.choice(WINDOWS), pick.choice(models), rule)
        Talk(provider, pick).play(asking(provider, wire))
        refusals += provider.refusals
        broken += provider.broken
    assert broken == []
    assert (refusals > 0) == (way in ("recovery", "client")), "the window was never met"
