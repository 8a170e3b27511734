"""What a prompt costs, counted without any of nanobot-context's code.

Python tiktoken with OpenAI's published framing. The ranks come from litellm's wheel, so that
nothing is fetched; `TIKTOKEN_CACHE_DIR` must name them before the first count. nanobot does not
need litellm from 0.1.4.post6 on: the environment of an older release lends its own.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tiktoken

# Source: "How to count tokens with tiktoken", openai/openai-cookbook, `num_tokens_from_messages`
# and `num_tokens_for_tools` (the numbers for gpt-4o).
MESSAGE, NAME, REPLY = 3, 1, 3
FUNCTION, PROPERTIES, PROPERTY, ENUM, ENUM_ITEM, FUNCTIONS_END = 7, 3, 3, -3, 3, 12


def offline_ranks() -> Path:
    """Return the directory of rank files inside litellm's wheel, here or in an environment beside.

    Raises:
        RuntimeError: no litellm is installed.
    """
    ranks = Path("litellm", "litellm_core_utils", "tokenizers")
    here = Path(sys.prefix)
    packages = Path(sysconfig.get_path("purelib")).relative_to(here)
    for environment in (here, *sorted(here.parent.iterdir())):
        if (environment / packages / ranks).is_dir():
            return environment / packages / ranks
    raise RuntimeError("litellm is not installed here or beside\nhint: run `make envs`")


@cache
def encoding(name: str) -> tiktoken.Encoding:
    """Return the encoding called `name`; the first call costs about half a second."""
    os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(offline_ranks()))
    import tiktoken

    return tiktoken.get_encoding(name)


@lru_cache(maxsize=4096)
def text_tokens(text: str, name: str = "o200k_base") -> int:
    """Return the tokens of `text`, special tokens spelled out counting as ordinary text."""
    return len(encoding(name).encode_ordinary(text))


def message_tokens(messages: list[dict[str, Any]], name: str = "o200k_base") -> int:
    """Return the tokens of `messages` as a prompt, ids and tool calls included, tools excluded."""
    total = REPLY
    for message in messages:
        total += MESSAGE + text_tokens(str(message.get("role", "")), name)
        total += content_tokens(message.get("content"), name)
        if "name" in message:
            total += NAME + text_tokens(str(message["name"]), name)
        for key in ("tool_call_id", "reasoning_content"):
            if message.get(key):
                total += text_tokens(str(message[key]), name)
        for call in message.get("tool_calls") or []:
            function = call.get("function") or {}
            total += MESSAGE
            for part in (call.get("id"), function.get("name"), function.get("arguments")):
                total += text_tokens(str(part or ""), name)
    return total


def content_tokens(content: Any, name: str) -> int:
    """Return the tokens of one message's content: text, or a list of parts."""
    if isinstance(content, str):
        return text_tokens(content, name)
    if isinstance(content, list):
        return sum(text_tokens(str(part.get("text") or ""), name) for part in content)
    return 0


def tool_tokens(tools: list[dict[str, Any]], name: str = "o200k_base") -> int:
    """Return the tokens of tool schemas, as OpenAI renders them for a model."""
    if not tools:
        return 0
    total = FUNCTIONS_END
    for tool in tools:
        function = tool["function"]
        about = str(function.get("description", "")).removesuffix(".")
        total += FUNCTION + text_tokens(f"{function['name']}:{about}", name)
        properties = function.get("parameters", {}).get("properties") or {}
        total += PROPERTIES if properties else 0
        for key, schema in properties.items():
            total += PROPERTY
            if "enum" in schema:
                total += ENUM
                total += sum(ENUM_ITEM + text_tokens(str(item), name) for item in schema["enum"])
            about = str(schema.get("description", "")).removesuffix(".")
            total += text_tokens(f"{key}:{schema.get('type', '')}:{about}", name)
    return total
