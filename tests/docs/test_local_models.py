"""What docs/local-models.md says of small windows, with the newest nanobot as it comes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from server import ModelServer

from .reader import Reader, set_up_nanobot

TOO_SMALL = "The model's context window is too small"
ROW = "GET /orders/"


@pytest.fixture
def protected(reader: Reader) -> Iterator[Reader]:
    """Someone whose nanobot is protected."""
    assert reader.command("nanobot-context enable")[0] == 0
    yield reader
    reader.command("nanobot-context disable")


@pytest.mark.parametrize(
    ("window", "max_tokens", "answers", "reads"),
    [
        (4_096, 1_024, False, False),
        (8_192, 8_192, True, True),
        (8_192, 1_024, True, True),
        (16_384, 8_192, True, True),
    ],
)
def test_a_window_holds_nanobot_from_the_size_that_the_page_names(
    protected: Reader, window: int, max_tokens: int, answers: bool, reads: bool
) -> None:
    with ModelServer(lambda _: "", window=window) as server:
        workspace = set_up_nanobot(protected.folder, server, maxTokens=max_tokens)
        lines = "".join(f"request {number} {ROW}{number} 200 OK\n" for number in range(1999))
        (workspace / "big.log").write_text(lines, encoding="utf-8")
        asked = f"NANOBOT_CONTEXT_WINDOW_OVERRIDE={window} nanobot agent -m 'Read big.log.'"
        _, said = protected.command(asked)
    assert (TOO_SMALL in said) is not answers, said
    # Where nothing is left to cut the server decides.
    assert {request.accepted for request in server.requests} == {answers}
    assert any(ROW in request.text for request in server.requests) is reads
