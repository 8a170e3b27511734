"""What a replay says of generated conversations, broken ones among them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nanobot_context import ContextOverflowError, compress_messages, count_tokens
from nanobot_context.message_texts import message_text
from nanobot_context.replay import replay

from .histories import MODELS, Message, histories, tools


@given(histories(), st.sampled_from(MODELS), st.integers(64, 20_000), tools())
def test_every_request_is_what_compression_gives_and_every_cut_has_a_reason(
    messages: list[Message], model: str | None, window: int, schemas: list[Any] | None
) -> None:
    result = replay(messages, window, model, tools=schemas)
    for request in result.requests:
        arrived = messages[: request.position]
        assert request.tokens_before == count_tokens(arrived, model, tools=schemas)
        try:
            sent = compress_messages(arrived, window, model, tools=schemas)
        except ContextOverflowError:
            assert request.over
            continue
        assert request.tokens_after == count_tokens(sent, model, tools=schemas)
        assert sum(request.after.values()) == request.tokens_after
        assert request.over == (request.tokens_after > result.budget_tokens)
        assert request.reused_tokens <= request.tokens_after
    for fate in result.messages:
        assert (fate.state == "kept") == (fate.reason is None) == (fate.first_request is None)
        if fate.state == "left out":
            assert fate.tokens_after == 0
            assert fate.first_request is not None
            marks = result.requests[fate.first_request].cuts
            assert fate.index in [mark.index for mark in marks]
    for request in result.requests:
        for mark in request.cuts:
            text = message_text(messages[mark.index])
            assert list(mark.kept) == sorted(mark.kept)
            assert all(0 <= at <= len(text) for at in mark.kept)
