"""The names of each setting, present and former, in each place that holds settings."""

from __future__ import annotations

import re
from collections.abc import Collection

ENV_PREFIX = "NANOBOT_CONTEXT_"
# Where nanobot's own file has settings.
NANOBOT_PREFIX = "agents.defaults."

# The settings that nanobot's own file may have, where documents 000 and 001 have them, and
# nanobot's own keys that look like them.
NANOBOT_FIELDS = (
    "context_compression",
    "context_window_override",
    "tool_result_soft_limit",
    "tool_result_hard_limit",
    "context_reserve_ratio",
    "max_user_message_chars",
    "max_assistant_message_chars",
    "enable_history_summarization",
    "message_buffer_limit",
    "message_buffer_min",
    "compression_model",
    "summary_model",
)
NANOBOT_OWN_KEYS = frozenset(
    {"contextWindowTokens", "context_window_tokens", "contextBlockLimit", "context_block_limit"}
)
# Keys of its own file that are written into ours.
NANOBOT_KEYS = frozenset(
    {"agents", "defaults", "providers", "provider", "channels", "tools", "model", "workspace"}
    | {"maxTokens", "temperature", "contextWindowTokens", "contextBlockLimit"}
)


REPLACED = {
    "tool_result_max_chars": "tool_result_soft_limit",
    "soft_trim_head_lines": "tool_result_soft_limit",
    "soft_trim_tail_lines": "tool_result_soft_limit",
}
"""Names that nothing reads, and what decides in their place."""


def env_name(name: str) -> str:
    """Return the environment variable of the setting `name`."""
    return ENV_PREFIX + name.removeprefix("context_").upper()


def camel_case(name: str) -> str:
    """Return a setting's name as it is written in JSON files."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def json_names(names: Collection[str]) -> dict[str, str]:
    """Return which setting a key of a JSON file is."""
    return {camel_case(name): name for name in names} | {name: name for name in names}
