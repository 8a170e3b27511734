"""Conversations and their pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nanobot_context.conversations import Conversation
from nanobot_context.report import write_report

Message = dict[str, Any]

WINDOW = 8_000
MODEL = "gpt-4o"


def agent_messages(turns: int = 4, rounds: int = 10) -> list[Message]:
    """Return a conversation whose tool results do not fit into `WINDOW` together."""
    messages: list[Message] = [{"role": "system", "content": "You help."}]
    for turn in range(turns):
        messages.append({"role": "user", "content": f"Task {turn}: look at the needle-{turn}."})
        for n in range(rounds):
            call_id = f"{turn}_{n}"
            function = {"name": "read_file", "arguments": f'{{"path": "src/{call_id}.log"}}'}
            call = {"id": call_id, "type": "function", "function": function}
            log = "".join(f"{call_id} line {line} is done\n" for line in range(20 + 7 * n % 50))
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": call_id, "content": log})
        messages.append({"role": "assistant", "content": f"Task {turn} is done."})
    return messages


def written(
    path: Path, messages: list[Message], *, window_tokens: int = WINDOW, **options: Any
) -> Path:
    """Write the page of a conversation."""
    names = ("name", "metadata", "source")
    known: dict[str, Any] = {"name": "cli:direct", "metadata": {}, "source": "cli_direct.jsonl"}
    known |= {name: options.pop(name) for name in names if name in options}
    conversation = Conversation(messages=messages, **known)
    write_report(conversation, path, window_tokens=window_tokens, model=MODEL, **options)
    return path
