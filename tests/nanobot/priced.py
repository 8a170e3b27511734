"""A long talk, and what its prompts cost where a provider caches what two begin with."""

from __future__ import annotations

from itertools import takewhile
from statistics import fmean
from typing import Any

from counting import message_tokens, tool_tokens
from scenario import Scenario, memory
from server import Answer, Request
from stage import Stage
from texts import prose

TURNS = 60
TOKENS = 600
"""Of what the user says in a turn, and of each answer."""
CACHED = 0.1
"""What a cached token costs beside another: the price lists of three providers, November 2026."""
BREAK = 0.5
"""A prompt that shares less of the one before breaks the cache."""


async def play(stage: Stage) -> None:
    for turn in range(TURNS):
        await stage.say(said(turn))
        await stage.idle()
    stage.notes["priced"] = prices([r for r in stage.server.requests if r.kind == "main"])


def said(turn: int) -> str:
    return f"Order {order(turn)} is next. {prose(f'priced-{turn}', TOKENS)}"


def order(turn: int) -> str:
    """Return what the user names in a turn and no other text has."""
    return f"OPS-{4_100 + 37 * turn}"


def answer(turn: int) -> str:
    return f"Noted. {prose(f'priced-answer-{turn}', TOKENS)}"


def prices(requests: list[Request]) -> dict[str, Any]:
    """Return what the prompts of `requests` cost, in tokens at the full price, and what they held.

    `whole` is what they would cost uncut. `reuse` is the share of a prompt that the next one begins
    with, `seen` the share of the orders so far that a prompt names; both are means.
    """
    before: list[dict[str, Any]] = []
    cost, whole, shares = 0.0, 0.0, []
    conversation = requests[0].messages[:1]
    for request in requests:
        tools = tool_tokens(request.tools)
        cached = tools + message_tokens(conversation)
        turn = request.turn - 1
        conversation.append({"role": "user", "content": said(turn)})
        whole += price(tools + message_tokens(conversation), cached if turn else 0)
        conversation.append({"role": "assistant", "content": answer(turn)})
        if not request.accepted:
            continue
        pairs = zip(before, request.messages, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        cached = tools + message_tokens(before[:same]) if before else 0
        if before:
            shares.append(cached / (tools + message_tokens(before)))
        cost += price(request.prompt_tokens, cached)
        before = request.messages
    seen = [
        sum(order(turn) in request.text for turn in range(request.turn)) / request.turn
        for request in requests
        if request.accepted
    ]
    return {
        "answered": len(seen),
        "cost": round(cost),
        "whole": round(whole),
        "reuse": fmean(shares),
        "breaks": sum(share < BREAK for share in shares),
        "seen": fmean(seen),
    }


def price(tokens: int, cached: int) -> float:
    return tokens - (1 - CACHED) * cached


def priced() -> Scenario:
    def model(request: Request) -> Answer:
        return memory(request) if request.kind == "memory" else answer(request.turn - 1)

    return Scenario("priced", play, lambda _: model, window=32_000)
