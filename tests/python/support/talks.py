"""The same ten turns with every API, and what the model must still see at their end."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from model_server import WINDOW, ModelServer

RULE = "From now on never delete a file without asking me."
NAME = "My name is Ada Okafor."
TURNS = 10


def day(number: int) -> str:
    """Return a question with a log of some 3,000 tokens, in which one line is what counts."""
    lines = [f"2026-03-{number:02} node-{at % 9} GET /items/{at * number} 200" for at in range(280)]
    lines[140] = f"2026-03-{number:02} ERROR disk full on node-7, ticket OPS-{number}42"
    return f"What failed on March {number}?\n" + "\n".join(lines)


def assert_remembered(server: ModelServer) -> None:
    """Ten turns were answered with one refusal, and the model still sees what it was told."""
    assert server.refusals <= 1
    assert len(server.asked) == TURNS + server.refusals
    last = server.asked[-1]
    sent = last.content.decode()
    assert RULE in sent
    assert NAME in sent
    assert json.dumps(day(TURNS))[1:-1] in sent
    # Of some of the oldest nothing but the question is left.
    assert sum(f"OPS-{number}42" in sent for number in range(1, TURNS + 1)) >= TURNS - 2
    assert last.tokens <= WINDOW


# A loop of each API: it keeps everything, and sends everything ----------------------------------

Ask = Callable[[Any, list[Any]], Any]
MODEL = "gpt-4o-mini"
CLAUDE = "claude-sonnet-5"


def chat(client: Any, messages: list[Any]) -> Any:
    return client.chat.completions.create(model=MODEL, messages=messages)


def chat_streamed(client: Any, messages: list[Any]) -> Any:
    options = {"include_usage": True}
    return client.chat.completions.create(
        model=MODEL, messages=messages, stream=True, stream_options=options
    )


def responses(client: Any, items: list[Any]) -> Any:
    return client.responses.create(model=MODEL, input=items, instructions=RULE, store=False)


def responses_streamed(client: Any, items: list[Any]) -> Any:
    return client.responses.create(model=MODEL, input=items, instructions=RULE, stream=True)


def claude(client: Any, messages: list[Any]) -> Any:
    return client.messages.create(model=CLAUDE, messages=messages, max_tokens=1_000)


def claude_streamed(client: Any, messages: list[Any]) -> Any:
    return client.messages.create(model=CLAUDE, messages=messages, max_tokens=1_000, stream=True)


def said(answer: Any) -> list[Any]:
    """Return what a loop puts behind its messages: the client's own objects, as people do."""
    if isinstance(answer, list):  # the events of a stream
        return [{"role": "assistant", "content": "".join(map(piece, answer))}]
    if hasattr(answer, "choices"):
        return [answer.choices[0].message]
    if hasattr(answer, "output"):
        return list(answer.output)
    return [{"role": "assistant", "content": answer.content}]


def piece(event: Any) -> str:
    if hasattr(event, "choices"):
        return str(event.choices[0].delta.content or "") if event.choices else ""
    delta = getattr(event, "delta", "")
    return delta if isinstance(delta, str) else str(getattr(delta, "text", ""))


def first() -> list[Any]:
    return [
        {"role": "user", "content": f"{NAME} {RULE}"},
        {"role": "assistant", "content": "I will ask."},
    ]


def talk(client: Any, ask: Ask) -> None:
    messages = first()
    for number in range(1, TURNS + 1):
        messages.append({"role": "user", "content": day(number)})
        answer = ask(client, messages)
        if not hasattr(answer, "model_dump"):
            answer = list(answer)
        messages += said(answer)
        assert messages[-1]


async def talk_async(client: Any, ask: Ask) -> None:
    messages = first()
    for number in range(1, TURNS + 1):
        messages.append({"role": "user", "content": day(number)})
        answer = await ask(client, messages)
        if not hasattr(answer, "model_dump"):
            answer = [event async for event in answer]
        messages += said(answer)
        assert messages[-1]


OPENAI = [chat, chat_streamed, responses, responses_streamed]
ANTHROPIC = [claude, claude_streamed]


SHORT: list[Any] = [{"role": "user", "content": "Hello."}]
TOO_LONG: list[Any] = [
    *first(),
    *({"role": "user", "content": day(number)} for number in range(1, 7)),
]
