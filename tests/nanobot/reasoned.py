"""Models that think, behind servers that refuse calls that come back without their thoughts.

The rules are those of `Family::wants_reasoning` of the core, read to the letter, and Google's
"Thought signatures": calls that answer the last message of the user have the one they came with.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from refusals import Refusal, error
from scenario import WHOLE, Scenario, memory
from server import Answer, Call, Request, Script, Thought
from stage import Stage
from texts import prose

CONVERSATIONS = 4
"""Of each family; `MANY` where all releases are played."""
MANY = 60
CALLS = 3
FILES = ("a.txt", "b.txt", "c.txt")

Message = dict[str, Any]


def in_rounds_with_calls(messages: list[Message], _: set[str]) -> str:
    """DeepSeek: in a round with calls each message of the model's, calls or not."""
    rounds: list[list[Message]] = [[]]
    for message in messages:
        if message["role"] == "user":
            rounds.append([])
        if message["role"] == "assistant":
            rounds[-1].append(message)
    called = (one for one in rounds if any(message.get("tool_calls") for message in one))
    if any("reasoning_content" not in message for one in called for message in one):
        return "The `reasoning_content` in the thinking mode must be passed back to the API."
    return ""


def everywhere(messages: list[Message], _: set[str]) -> str:
    """Kimi with `thinking.keep=all`: each message of the model's."""
    for index, message in enumerate(messages):
        if message["role"] == "assistant" and not message.get("reasoning_content"):
            return (
                "preserved thinking (thinking.keep=all) requires reasoning_content on every "
                f"assistant message, but assistant message at index {index} is missing "
                "reasoning_content"
            )
    return ""


def with_calls(messages: list[Message], _: set[str]) -> str:
    """MiMo: each message with calls."""
    lacking = [m for m in messages if m.get("tool_calls") and not m.get("reasoning_content")]
    if lacking:
        return "The reasoning_content in the thinking mode must be passed back to the API."
    return ""


def signed(messages: list[Message], given: set[str]) -> str:
    """Gemini: the calls that answer the last message of the user, and none with another's."""
    last = max(index for index, message in enumerate(messages) if message["role"] == "user")
    for index, message in enumerate(messages):
        for call in (message.get("tool_calls") or [])[:1]:
            extra = call.get("extra_content") or {}
            signature = extra.get("google", {}).get("thought_signature")
            if signature is None and index > last:
                name = call["function"]["name"]
                return (
                    "Function call is missing a thought_signature in functionCall parts. "
                    f"Additional data, function call `default_api:{name}`, position {index}."
                )
            # What later releases of nanobot put in its place is documented, too.
            if signature not in (None, "skip_thought_signature_validator", *given):
                return "Corrupted thought signature."
    return ""


@dataclass(frozen=True)
class Family:
    """One provider's models, and when it refuses."""

    model: str
    gateway: str
    rule: Callable[[list[Message], set[str]], str]


FAMILIES = {
    "deepseek": Family("deepseek/deepseek-v4-pro", "deepseek", in_rounds_with_calls),
    "kimi": Family("moonshot/kimi-k2-thinking", "moonshot", everywhere),
    "mimo": Family("openai/mimo-v2.5-pro", "xiaomi_mimo", with_calls),
    "gemini": Family("gemini/gemini-3-pro-preview", "gemini", signed),
}


def reasoned(name: str, conversations: int) -> Scenario:
    """Short conversations with long results, each in a session of its own."""
    family = FAMILIES[name]

    async def play(stage: Stage) -> None:
        for file in FILES:
            stage.file(file, prose(file, 6_000))
        for number in range(conversations):
            session = f"cli:{number}"
            await stage.say(f"Talk {number}. Read the files.", session)
            await stage.say("Read them once more.", session)

    def model(stage: Stage) -> Script:
        pick = random.Random(name)
        given: set[str] = set()

        def answer(request: Request) -> Answer:
            if request.kind == "memory":
                return memory(request)
            if text := family.rule(request.messages, given):
                return Refusal(400, error(text), "reasoning")
            step = request.index + 1
            thought = prose(f"{name}-{step}", pick.choice([10, 300]))
            calls = [
                Call("read_file", {"path": str(stage.workspace / pick.choice(FILES))})
                for _ in range(pick.choice([1, 1, 2]))
            ]
            reply = "They are read." if step % (CALLS + 1) == 0 else calls
            if family.rule is not signed:
                return Thought(reply, thought)
            given.add(f"signature-{step}")
            return Thought(reply, signature=f"signature-{step}")

        return answer

    return Scenario(
        name_of(name, conversations),
        play,
        model,
        window=16_000,
        known=None,
        model=family.model,
        gateway=family.gateway,
        result_chars=WHOLE,
    )


def name_of(family: str, conversations: int) -> str:
    """Return the name of a scenario."""
    return f"reasoned-{family}-{conversations}"


REASONED = [
    reasoned(family, conversations)
    for family in FAMILIES
    for conversations in (CONVERSATIONS, MANY)
]
