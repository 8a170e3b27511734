"""Tokens of messages of every shape. Agreement with the vocabularies: tests/conformance."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import pytest

from nanobot_context import InvalidArgumentError, count_tokens, fits
from nanobot_context.caches import clear_caches


def user(content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **fields}


def tokens(content: Any, model: str | None = "gpt-4o") -> int:
    """Return what `content` costs beyond an empty message."""
    return count_tokens([user(content)], model) - count_tokens([user("")], model)


def png(width: int, height: int) -> str:
    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress((b"\0" + b"\x7f" * width) * height))
    data = b"\x89PNG\r\n\x1a\n" + head + pixels + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(data).decode()


def image(url: str, **fields: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, **fields}}


def test_the_published_example_of_the_cookbook() -> None:
    lines = [
        (
            None,
            "You are a helpful, pattern-following assistant that translates corporate jargon "
            "into plain English.",
        ),
        ("example_user", "New synergies will help drive top-line growth."),
        ("example_assistant", "Things working well together will increase revenue."),
        (
            "example_user",
            "Let's circle back when we have more bandwidth to touch base on opportunities for "
            "increased leverage.",
        ),
        ("example_assistant", "Let's talk later when we're less busy about how to do better."),
    ]
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": text, **({"name": name} if name else {})}
        for name, text in lines
    ]
    pivot = "This late pivot means we don't have time to boil the ocean for the client deliverable."
    messages.append(user(pivot))
    # "How to count tokens with tiktoken", OpenAI cookbook: the API's own numbers.
    assert count_tokens(messages, "gpt-4o") == 124
    assert count_tokens(messages, "gpt-4") == 129


def test_no_messages_cost_the_start_of_the_reply() -> None:
    assert count_tokens([]) == 3
    assert count_tokens([], "claude-opus-4-5") == 3


@pytest.mark.parametrize("content", [None, "", []])
def test_empty_content_costs_the_framing(content: Any) -> None:
    assert count_tokens([user(content)]) == count_tokens([{"role": "user"}]) == 3 + 4


def test_a_text_costs_the_same_in_every_form() -> None:
    text = "How many tokens is this?"
    as_string = tokens(text)
    assert as_string == 6
    assert tokens([text]) == as_string
    assert tokens([{"type": "text", "text": text}]) == as_string
    assert tokens([{"type": "input_text", "text": text}]) == as_string
    assert tokens([{"type": "text", "text": text, "cache_control": {"type": "x"}}]) == as_string


def test_special_tokens_count_as_the_text_they_are() -> None:
    assert tokens("<|endoftext|>") > 1
    assert tokens("<|im_start|>system<|im_end|>") > 3


@pytest.mark.parametrize(
    "text", ["\ud800", "a\udc00b", "\x00", "\x00\x01\x02", "🙂", "请检查日志", " " * 300]
)
def test_no_text_is_free_and_none_costs_more_than_its_bytes(text: str) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    assert 0 < tokens(text) <= size
    assert 0 < tokens(text, "gpt-4") <= size


def test_the_halves_of_a_character_count_as_the_character() -> None:
    assert tokens("\ud83d\ude00") == tokens("😀")


@pytest.mark.parametrize(
    ("model", "size", "expected"),
    [
        # OpenAI, "Images and vision": 85 once and 170 a tile for gpt-4o.
        ("gpt-4o", (512, 512), 255),
        ("gpt-4o", (1024, 1024), 765),
        ("gpt-4o", (2048, 4096), 1105),
        # Anthropic, "Vision": width x height / 750.
        ("claude-opus-4-5", (1000, 1000), 1334),
        ("claude-opus-4-5", (200, 200), 54),
        # Google, "Understand images": 258 up to 384 x 384.
        ("gemini-2.5-pro", (384, 384), 258),
    ],
)
def test_images_cost_what_providers_publish(
    model: str, size: tuple[int, int], expected: int
) -> None:
    assert tokens([image(png(*size))], model) == expected


def test_an_image_of_unknown_size_costs_a_documented_default_not_its_url() -> None:
    short, long = (image(f"https://example.org/{'a' * n}.png") for n in (1, 2_000))
    assert tokens([short]) == tokens([long]) == 765
    assert tokens([image("https://example.org/a.png", detail="low")]) == 85


def test_the_bytes_of_an_attachment_are_no_text() -> None:
    sound = {"type": "input_audio", "input_audio": {"data": "A" * 1_000_000, "format": "mp3"}}
    paper = {"type": "file", "file": {"file_data": "data:application/pdf;base64," + "A" * 10_000}}
    assert 0 < tokens([sound]) < 2_000
    assert 1_500 <= tokens([paper]) <= 3_000


def test_an_unknown_part_costs_its_json() -> None:
    part = {"type": "hologram", "blob": "How many tokens is this?"}
    assert tokens([part]) > tokens("How many tokens is this?")


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "ada"},
        {"tool_call_id": "call_1"},
        {"reasoning_content": "I should look at the logs first."},
        {"thinking_blocks": [{"type": "thinking", "thinking": "logs", "signature": "c2ln"}]},
        {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": '{"path": "a"}'}}]},
    ],
)
def test_everything_that_is_sent_is_counted(fields: dict[str, Any]) -> None:
    bare = {"role": "assistant", "content": "ok"}
    assert count_tokens([bare | fields]) > count_tokens([bare])
    assert count_tokens([bare | dict.fromkeys(fields)]) == count_tokens([bare])


def test_unknown_keys_cost_nothing() -> None:
    assert count_tokens([user("hi", timestamp="2026-05-01", x=["y"] * 100)]) == count_tokens(
        [user("hi")]
    )


def test_tool_schemas_cost_what_they_hold() -> None:
    def tool(description: str) -> dict[str, Any]:
        function = {"name": "f", "description": description, "parameters": {"type": "object"}}
        return {"type": "function", "function": function}

    none = count_tokens([user("hi")])
    assert count_tokens([user("hi")], tools=None) == count_tokens([user("hi")], tools=[]) == none
    small, large = (count_tokens([user("hi")], tools=[tool("reads a file " * n)]) for n in (1, 200))
    assert none < small < large


def test_families_without_a_vocabulary_never_get_the_raw_number() -> None:
    text = "The quick brown fox explains importers to everybody who wants to listen. " * 20
    assert tokens(text, "claude-opus-4-5") > 1.13 * tokens(text, "gpt-4o")
    assert tokens(text, "no-such-model") > 1.06 * tokens(text, "gpt-4o")


def test_a_count_does_not_depend_on_what_was_counted_before() -> None:
    text = "".join(["warm ", "text, ", "counted for one model"])
    first = tokens(text, "gpt-4o")
    tokens(text, "claude-opus-4-5")
    tokens([image(text)], "gpt-4o")
    call = {"id": text, "function": {"name": text, "arguments": text}}
    count_tokens([{"role": "assistant", "tool_calls": [call]}], "gpt-4o")
    assert tokens(text, "gpt-4o") == first == tokens("".join(list(text)), "gpt-4o")


@pytest.mark.parametrize("model", [None, "gpt-4o", "claude-opus-4-5", "deepseek-chat"])
def test_a_prompt_fits_exactly_when_its_count_does(model: str | None) -> None:
    def conversation() -> list[dict[str, Any]]:
        return [
            {"role": "user", "content": f"{model} counts 支付 line {i} " * 900} for i in range(3)
        ]

    tokens = count_tokens(conversation(), model)
    assert fits(conversation(), tokens, model)
    assert not fits(conversation(), tokens - 1, model)
    with pytest.raises(InvalidArgumentError):
        fits(conversation(), -1, model)


def test_one_url_costs_what_it_is_sent_as() -> None:
    url = "https://example.org/a.png?" + "x" * 40
    text = {"type": "text", "text": url}
    sound = {"type": "input_audio", "input_audio": {"data": url}}
    document = {"type": "file", "file": {"file_url": url}}
    high, low = image(url, detail="high"), image(url, detail="low")
    parts = {"text": text, "high": high, "low": low, "sound": sound, "document": document}

    def counts(names: list[str]) -> dict[str, int]:
        found = {}
        for name in names:
            message = {"role": "user", "content": [parts[name]]}
            found[name] = count_tokens([message], "gpt-4o")
        return found

    clear_caches()
    first = counts(list(parts))
    clear_caches()
    assert counts(list(reversed(parts))) == first
    assert first["low"] < 100 < first["high"] < first["document"]


@pytest.mark.parametrize("words", [1, 1_000, 100_000])
def test_a_document_of_text_counts_as_its_text(words: int) -> None:
    text = "word " * words
    sources: list[dict[str, Any]] = [
        {"type": "text", "media_type": "text/plain", "data": text},
        {"type": "content", "content": text},
        {"type": "content", "content": [{"type": "text", "text": text}]},
    ]
    for source in sources:
        part = {"type": "document", "source": source}
        tokens = count_tokens([{"role": "user", "content": [part]}])
        assert tokens == pytest.approx(count_tokens([{"role": "user", "content": text}]), abs=40)
    image = {"type": "image", "source": {"type": "base64", "data": "iVBORw0KGgo=" * 9_000}}
    pictures = {"type": "document", "source": {"type": "content", "content": [image]}}
    assert count_tokens([{"role": "user", "content": [pictures]}]) < 10_000
