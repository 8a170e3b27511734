"""Plan V3.1 as its document gives it: `compress_messages` and `count_tokens` in plain Python.

The candidate to compare with, so nothing is repaired or made faster here. Copied from the plan's
`nanobot/agent/compressor.py` and its `estimate_tokens`; comments are translated, texts are not.
"""

from __future__ import annotations

import copy
import json
import re
from importlib import import_module
from typing import Any

Message = dict[str, Any]

SOFT_TRIM_RATIO = 0.3  # a single tool result may take this share of the window
HARD_TRIM_RATIO = 0.5  # all tool results together
SOFT_TRIM_HEAD_LINES = 20
SOFT_TRIM_TAIL_LINES = 10
REASONING_KEEP_THRESHOLD = 2000  # characters


def estimate_tokens(text: str) -> int:
    ascii_tokens = len(re.findall(r"[a-zA-Z]+", text))
    cjk_chars = len(re.findall(r"[\u4e00-\u9fff\u3400-\u4dbf]", text))
    cjk_punct = len(re.findall(r"[\u3000-\u303f\uff00-\uffef]", text))
    other = len(re.findall(r"[0-9]+", text))
    return ascii_tokens + int(cjk_chars * 0.7) + cjk_punct + other


def count_tokens(messages: list[Message], model: str | None = None) -> int:
    if model:
        try:
            counted: int = import_module("litellm").token_counter(model=model, messages=messages)
            return counted
        except Exception:  # as the plan has it
            pass
    total = 0
    for msg in messages:
        content = msg.get("content") or ""
        if isinstance(content, str):
            total += estimate_tokens(content)
        elif isinstance(content, list):
            for part in content:
                if isinstance(part, dict) and part.get("type") == "text":
                    total += estimate_tokens(part.get("text", ""))
                elif isinstance(part, dict) and part.get("type") == "image_url":
                    total += 300
        if "tool_calls" in msg:
            total += estimate_tokens(json.dumps(msg["tool_calls"], ensure_ascii=False))
        reasoning = msg.get("reasoning_content")
        if reasoning and isinstance(reasoning, str):
            total += estimate_tokens(reasoning)
    return int(total * 1.10)


def trim_tool_result(result: str, max_chars: int = 15_000) -> str:
    if len(result) <= max_chars:
        return result
    lines = result.split("\n")
    if len(lines) <= SOFT_TRIM_HEAD_LINES + SOFT_TRIM_TAIL_LINES:
        return result[:max_chars] + f"\n...[已省略 {len(result) - max_chars} 字符]"
    head = "\n".join(lines[:SOFT_TRIM_HEAD_LINES])
    tail = "\n".join(lines[-SOFT_TRIM_TAIL_LINES:])
    omitted = len(lines) - SOFT_TRIM_HEAD_LINES - SOFT_TRIM_TAIL_LINES
    trimmed = f"{head}\n\n...[已省略 {omitted} 行]...\n\n{tail}"
    if len(trimmed) > max_chars:
        trimmed = trimmed[:max_chars] + "\n...[已截断]"
    return trimmed


def _find_last_user_index(messages: list[Message]) -> int:
    for i in range(len(messages) - 1, -1, -1):
        if messages[i].get("role") == "user":
            return i
    return len(messages)


def compress_messages(
    messages: list[Message], context_window: int, model: str | None = None
) -> list[Message]:
    # A deep copy of what is nested, so that the caller's messages stay as they are.
    result: list[Message] = []
    for msg in messages:
        if "tool_calls" in msg:
            result.append(copy.deepcopy(msg))
        else:
            result.append(msg.copy())

    last_user_idx = _find_last_user_index(result)

    # Step 1: reasoning is kept in the last round only, elsewhere removed above the threshold.
    for i, msg in enumerate(result):
        if i >= last_user_idx:
            continue
        reasoning = msg.get("reasoning_content")
        if reasoning and isinstance(reasoning, str) and len(reasoning) > REASONING_KEEP_THRESHOLD:
            del msg["reasoning_content"]

    # Step 2: soft trim of single tool results.
    soft_token_limit = int(context_window * SOFT_TRIM_RATIO)
    for msg in result:
        if msg.get("role") == "tool":
            content = msg.get("content", "")
            if isinstance(content, str) and estimate_tokens(content) > soft_token_limit:
                msg["content"] = trim_tool_result(content, soft_token_limit * 3)

    # Step 3: hard trim of all tool results, oldest first, until they are below the limit.
    hard_token_limit = int(context_window * HARD_TRIM_RATIO)
    total_tool_tokens = sum(
        estimate_tokens(msg.get("content", "")) for msg in result if msg.get("role") == "tool"
    )
    if total_tool_tokens > hard_token_limit:
        protected_indices = set()
        for i in range(last_user_idx, len(result)):
            if result[i].get("role") == "tool":
                protected_indices.add(i)
        for i, msg in enumerate(result):
            if total_tool_tokens <= hard_token_limit:
                break
            if msg.get("role") == "tool" and i not in protected_indices:
                old_tokens = estimate_tokens(msg.get("content", ""))
                name = msg.get("name", "tool")
                orig_len = len(msg.get("content", ""))
                placeholder = f"[工具 {name} 的结果已省略，原始长度 {orig_len} 字符]"
                msg["content"] = placeholder
                total_tool_tokens -= old_tokens - estimate_tokens(placeholder)

    # Step 4: soft trim of very long user and assistant messages.
    for i, msg in enumerate(result):
        if i == 0:
            continue
        if i >= last_user_idx:
            continue
        content = msg.get("content", "")
        if isinstance(content, str) and len(content) > 30_000:
            keep = int(30_000 * 0.6)
            tail_len = int(30_000 * 0.2)
            msg["content"] = (
                content[:keep]
                + f"\n...[已省略 {len(content) - keep - tail_len} 字符]...\n"
                + content[-tail_len:]
            )

    return result
