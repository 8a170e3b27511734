"""What runs of agents consist of: calls with their results, and a request before each answer."""

from __future__ import annotations

import json
from typing import Any

from nanobot_context import Compressor

Message = dict[str, Any]


def called(number: int, name: str, arguments: dict[str, Any], result: str) -> list[Message]:
    """Return a call and its result."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"c{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": result},
    ]


def in_steps(messages: list[Message], window: int) -> list[Message]:
    """Return the request for `messages` behind those before each answer in them."""
    compressor = Compressor(window, "gpt-4o")
    for at in (at for at, message in enumerate(messages) if message["role"] == "assistant"):
        compressor.compress(messages[:at])
    return compressor.compress(messages)
