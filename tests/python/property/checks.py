"""What must be true of a request, written without a look at how the package makes one."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

import nanobot_context
from nanobot_context import ContextOverflowError, count_tokens

from .histories import MODELS, Message, histories, tools

NOTE = re.compile(
    r"\[(?:已省略 )?([\d,]+) "
    r"(?:messages? left out(?: here and below)?"
    r"|条消息(?:，此处及下文)?)\]"
)
GAP = re.compile(
    r"\[(?:\.\.\. |…)(?:已省略 )?(?:([\d,]+) (?:(?:similar )?lines?|行(?:相似内容)?))?(?:, |，)?"
    r"(?:([\d,]+) (?:characters?|个字符))?"
    r"(?:(?: left out)? \.\.\.)?\]"
)
WHOLE = re.compile(r"\[(.+)(?: left out: |已省略：)([\d,]+) tokens\]")


@dataclass
class Case:
    """One call of one of the functions, and the tokens that its result may have."""

    name: str
    messages: list[Message]
    model: str | None
    tools: list[Any] | None
    budget: int
    call: Callable[[list[Message]], list[Message]]

    def run(self) -> list[Message] | None:
        """Return the result, or `None` where what must stay is too large, which is checked too."""
        try:
            return self.call(self.messages)
        except ContextOverflowError as error:
            assert_names_its_parts(self, error)
            return None

    def count(self, messages: list[Message]) -> int:
        return count_tokens(messages, self.model, tools=self.tools)


def cases(names: list[str] | None = None) -> st.SearchStrategy[Case]:
    """Calls with budgets from next to nothing to more than is needed."""
    return st.builds(
        make_case,
        st.sampled_from(
            names or ["fit", "compress", "Compressor", "emergency", "Compressor.emergency"]
        ),
        histories(),
        st.sampled_from(MODELS),
        tools(),
        st.floats(0, 1.2),
    )


def make_case(
    name: str, messages: list[Message], model: str | None, schemas: list[Any] | None, share: float
) -> Case:
    target = int(count_tokens(messages, model, tools=schemas) * share)
    if name == "fit":

        def fit(m: list[Message]) -> list[Message]:
            return nanobot_context.fit_messages(m, target, model, tools=schemas).messages

        return Case(name, messages, model, schemas, target, fit)
    is_emergency = name.endswith("emergency")
    window = int(target / (0.6 if is_emergency else 0.85))
    reserve = max(math.ceil(window * 0.15), 7)
    budget = max(math.ceil(window * 0.6) - 1, 0) if is_emergency else max(window - reserve, 0)
    compressor = nanobot_context.Compressor(window, model, tools=schemas)
    calls: dict[str, Callable[[list[Message]], list[Message]]] = {
        "compress": lambda m: nanobot_context.compress_messages(
            m, window, model, tools=schemas, max_output_tokens=7
        ),
        "emergency": lambda m: nanobot_context.emergency_compress(m, window, model, tools=schemas),
        "Compressor": compressor.compress,
        "Compressor.emergency": compressor.emergency,
    }
    if name == "Compressor":
        budget = window - math.ceil(window * 0.15)
    return Case(name, messages, model, schemas, budget, calls[name])


def protected(messages: list[Message]) -> list[int]:
    """Return the positions of what is never cut: system messages and the last one of a user."""
    users = [n for n, message in enumerate(messages) if message["role"] == "user"]
    systems = [n for n, m in enumerate(messages) if m["role"] in ("system", "developer")]
    return sorted({*systems, *users[-1:]})


def assert_names_its_parts(case: Case, error: ContextOverflowError) -> None:
    floor = [case.messages[n] for n in protected(case.messages)]
    assert error.needed_tokens == sum(error.parts.values()) == case.count(floor)
    assert error.limit_tokens == case.budget < error.needed_tokens
    assert error.model == case.model
    assert set(error.parts) == {"system", "tools", "last_user", "framing"}
    for name, tokens in error.parts.items():
        assert f"{name} {tokens}" in str(error)


def assert_edited(before: Message, after: Message) -> None:
    """An edited message keeps every key that is not known, in its place, with the same value."""
    assert type(after) is dict
    assert after != before, "an unchanged message must be the same object"
    removed = [key for key in before if key not in after]
    assert set(removed) <= {"reasoning_content", "thinking_blocks"}
    kept = [key for key in before if key in after]
    assert list(after)[: len(kept)] == kept
    assert set(list(after)[len(kept) :]) <= {"tool_call_id"}
    for key in kept:
        if key == "content" and isinstance(after[key], list):
            assert_parts_edited(before[key], after[key])
        elif key == "tool_calls" and before[key]:
            assert_calls_edited(before[key], after[key])
        elif key not in ("content", "tool_call_id", "reasoning_content"):
            assert after[key] is before[key]


def assert_parts_edited(before: list[Any], after: list[Any]) -> None:
    assert len(after) == len(before)
    for old, new in zip(before, after, strict=True):
        if new is old or isinstance(old, str):
            assert type(new) is type(old)
        elif old.get("type") == "text":
            assert list(new) == list(old)
            assert all(new[key] is old[key] for key in old if key != "text")
        else:
            assert list(new) == ["type", "text"]
            assert new["type"] == "text"


def assert_calls_edited(before: list[Any], after: list[Any]) -> None:
    assert len(after) == len(before)
    for old, new in zip(before, after, strict=True):
        if new is old:
            continue
        assert list(new)[: len(old)] == list(old)
        assert set(list(new)[len(old) :]) <= {"id", "name", "arguments", "function"}
        for key in old:
            if key == "function":
                function = list(new[key])
                assert function[: len(old[key])] == list(old[key])
                assert set(function[len(old[key]) :]) <= {"name", "arguments"}
                assert all(new[key][k] is old[key][k] for k in old[key] if k == "strict")
            elif key not in ("id", "name", "arguments", "custom"):
                assert new[key] is old[key]


def assert_paired(messages: list[Message]) -> None:
    """Every call is answered once, behind its message, in the form that providers take."""
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        assert message["role"] != "tool", f"message {at - 1} answers no call"
        if message["role"] != "assistant" or not message.get("tool_calls"):
            continue
        ids = [call["id"] for call in message["tool_calls"]]
        assert all(isinstance(id_, str) and id_ != "" for id_ in ids)
        assert len(set(ids)) == len(ids)
        for call in message["tool_calls"]:
            if "custom" in call:
                assert isinstance(call["custom"]["input"], str)
                continue
            function = call.get("function") or call
            assert isinstance(function["name"], str)
            assert function["name"] != ""
            assert isinstance(function["arguments"], str)
            json.loads(function["arguments"], parse_constant=not_json)
        answered = [result.get("tool_call_id", "") for result in messages[at : at + len(ids)]]
        assert all(result["role"] == "tool" for result in messages[at : at + len(ids)])
        assert sorted(ids) == sorted(answered)
        at += len(ids)


def not_json(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def number(text: str) -> int:
    return int(text.replace(",", ""))


def may_be_joined(before: list[Message], sent: list[Message], message: Message) -> bool:
    """Whether a note, the ledger or messages of the user behind it may have joined a message."""
    content = message.get("content")
    if not isinstance(content, str):
        return False
    if NOTE.search(content) or re.search(r"\[earlier parts left out, |\[前文已省略部分", content):
        return True
    later = [other["n"] for other in sent if other.get("n", -1) > message["n"]]
    behind = before[message["n"] + 1 : min(later, default=len(before))]
    return message["role"] == "user" and any(other["role"] == "user" for other in behind)


def messages_in(text: str) -> int:
    """Return how many messages the notes in a text stand for."""
    return sum(
        number(count[1])
        for count in map(NOTE.fullmatch, map(str.strip, text.split("\n\n")))
        if count
    )


def assert_gaps_are_true(old: str, new: str) -> None:
    """What is kept stands in the text in order, and each mark says how much is gone there."""
    kept = GAP.split(new)
    texts, counts = kept[::3], list(zip(kept[1::3], kept[2::3], strict=True))
    assert counts, f"no mark in {new!r}"
    ends = {len(text) for text in _edges(texts[0], after=True) if old.startswith(text)}
    for (lines, chars), text in zip(counts, texts[1:], strict=True):
        is_last = text is texts[-1]
        ends = {
            start + len(piece)
            for end in ends
            for piece in _edges(text, before=True, after=not is_last)
            for start in _behind(old, end, lines, chars)
            if old.startswith(piece, start) and (not is_last or start + len(piece) == len(old))
        }
        assert ends, f"{lines} lines or {chars} characters before {text!r}: not so in {new!r}"


def _edges(text: str, *, before: bool = False, after: bool = False) -> set[str]:
    """Return a text with and without the space or line end that may be of the mark beside it."""
    texts = {text}
    if before:
        texts |= {t[1:] for t in texts if t[:1] in (" ", "\n")}
    if after:
        texts |= {t[:-1] for t in texts if t[-1:] in (" ", "\n")}
    return texts


def _behind(old: str, end: int, lines: str | None, chars: str | None) -> range:
    """Return where a gap that begins at `end` may end.

    A text that is cut twice counts the spaces or line ends beside its first mark, too.
    """
    if chars is not None:
        return range(max(end, end + number(chars) - 2), end + number(chars) + 1)
    at = end
    for _ in range(number(lines or "0") - 1):
        at = old.find("\n", at) + 1 or len(old)
    this = old.find("\n", at) + 1 or len(old)
    return range(at, (old.find("\n", this) + 1 or len(old)) + 1)
