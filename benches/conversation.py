"""A long conversation as nanobot has them: 400 messages, 200,000 tokens, mostly tool rounds."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

from corpora import corpus

Message = dict[str, Any]

MESSAGES = 400
VARIANTS = 12
TOOLS = [("read_file", "code"), ("exec", "logs"), ("web_fetch", "json")]


def conversation(*, variant: int = 0, scale: float = 1.0) -> list[Message]:
    """Return the conversation; with `scale` 1.0 it has about 200,000 tokens (o200k_base).

    User turns of a few lines, then one to six calls of `read_file`, `exec` and `web_fetch` with
    results of one to five KB, then an answer; every seventh turn is Chinese. The texts are those of
    the counting benchmark, others in each variant, so that a cache of one is no use to the next. No
    content is None, so that a bare loop over `len(message["content"])` can read it.
    """
    rng = random.Random(400)
    texts = {name: _endless(parts[variant]) for name, parts in _corpora().items()}

    def text(name: str, low: int, high: int) -> str:
        wanted = int(rng.randint(low, high) * scale)
        parts: list[str] = []
        while wanted > 0:
            parts.append(next(texts[name])[:wanted])
            wanted -= len(parts[-1])
        return "".join(parts)

    messages: list[Message] = [{"role": "system", "content": text("prose", 6_000, 6_000)}]
    turn = 0
    while len(messages) < MESSAGES:
        turn += 1
        language = "zh" if turn % 7 == 0 else "prose"
        messages.append({"role": "user", "content": text(language, 100, 1_500)})
        for step in range(rng.randint(1, 6)):
            identifier = f"call_{turn:04}_{step}"
            name, kind = rng.choice(TOOLS)
            path = f"/srv/app/module_{rng.randrange(400)}.py"
            arguments = {"path": path, "limit": rng.randint(1, 900)}
            call = {
                "id": identifier,
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
            messages.append(
                {
                    "role": "tool",
                    "tool_call_id": identifier,
                    "name": name,
                    "content": text(kind, 1_200, 5_400),
                }
            )
        messages.append({"role": "assistant", "content": text(language, 200, 4_000)})
    return messages[:MESSAGES]


def model_calls(messages: list[Message]) -> Iterator[list[Message]]:
    """Yield what an agent loop hands over, call after call: all up to a user or tool message."""
    for end, message in enumerate(messages, start=1):
        following = messages[end]["role"] if end < len(messages) else "assistant"
        if message["role"] in ("user", "tool") and following == "assistant":
            yield messages[:end]


@cache
def _corpora() -> dict[str, list[list[bytes]]]:
    return {
        name: corpus(name, repetitions=VARIANTS, total_bytes=500_000)
        for name in ("prose", "code", "json", "logs", "zh")
    }


def _endless(messages: list[bytes]) -> Iterator[str]:
    while True:
        for message in messages:
            yield message.decode()
