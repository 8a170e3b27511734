"""An agent at work: a provider with a small window, and a model that calls what it cannot see."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from nanobot_context import count_tokens

Message = dict[str, Any]

MODEL = "gpt-4o-mini"
RULE = "Please call me Captain from now on."
TASK = "Run the ten steps one after the other, then read both reports."
DONE = "Done, Captain."
COMMANDS = tuple(f"./step-{number}.sh --apply" for number in range(10))
PATHS = ("reports/first.txt", "reports/second.txt")
OPTIONS = " ".join(f"--with=part-{number}" for number in range(40))
"""What makes the arguments of a command long."""
MARK = "left out"


@dataclass
class Work:
    """What was done, and how often a prompt was refused.

    `missing` is what the answered prompts did not say of the rule, the task, and what ran.
    """

    window: int
    messages: list[Message] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    refusals: int = 0

    def __post_init__(self) -> None:
        self.messages += [
            {"role": "system", "content": "You are a careful agent. " * 250},
            {"role": "user", "content": RULE},
            {"role": "assistant", "content": "Yes, Captain."},
            {"role": "user", "content": TASK},
        ]

    def do(self, *targets: str) -> None:
        """Add the calls for `targets` to the conversation, and what came of them."""
        calls = [call(target) for target in targets]
        self.messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        for one, target in zip(calls, targets, strict=True):
            assert target not in self.ran, f"{target} runs twice; not said: {self.missing}"
            self.ran.append(target)
            name, result = one["function"]["name"], "\n".join([*lines(target), outcome(target)])
            self.messages.append(
                {"role": "tool", "tool_call_id": one["id"], "name": name, "content": result}
            )

    def reply(self, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Refuse a request that is too long, or answer it with the next calls."""
        prompt, answer = count_tokens(asked["messages"], MODEL), asked.get("max_tokens") or 0
        if prompt + answer > self.window:
            self.refusals += 1
            text = (
                f"This model's maximum context length is {self.window} tokens. However, you "
                f"requested {prompt + answer} tokens ({prompt} in the messages, {answer} in the "
                "completion). Please reduce the length of the messages or completion."
            )
            return 400, {"error": {"message": text, "code": "invalid_request_error"}}
        shown = json.dumps(asked["messages"], ensure_ascii=False)
        is_shorter = len(asked["messages"]) < len(self.messages)
        self.missing += [one for one in self.wanted(is_shorter=is_shorter) if one not in shown]
        unseen = [one for one in COMMANDS if one not in shown][:1]
        return 200, completion(unseen or [one for one in PATHS if one not in shown])

    def wanted(self, *, is_shorter: bool) -> Iterable[str]:
        """Return what a prompt has to say."""
        yield from (RULE, TASK)
        for target in self.ran:
            yield from (tool(target), target, outcome(target))
        if is_shorter:
            yield MARK


def tool(target: str) -> str:
    """Return the name of the tool for a command or a path."""
    return "read_file" if target in PATHS else "exec"


def call(target: str) -> dict[str, Any]:
    """Return a call that runs a command or reads a file."""
    arguments = {"path": target} if target in PATHS else {"command": f"{target} {OPTIONS}"}
    function = {"name": tool(target), "arguments": json.dumps(arguments)}
    return {"id": f"call_{target}", "type": "function", "function": function}


def target_of(arguments: str) -> str:
    """Return the command or the path that a call is about."""
    given = json.loads(arguments)
    return str(given.get("path") or given["command"].removesuffix(f" {OPTIONS}"))


def lines(target: str) -> list[str]:
    """Return what a tool prints; a file is longer."""
    count = 300 if target in PATHS else 120
    return [f"{number} of {target[:9]}: {'alpha beta gamma ' * 4}" for number in range(count)]


def outcome(target: str) -> str:
    """Return the last line of what a tool prints."""
    return f"Exit code: {40 + COMMANDS.index(target)}" if target in COMMANDS else ""


def completion(targets: list[str]) -> dict[str, Any]:
    """Return a chat completion that has calls for `targets`, or is the last one."""
    message: Message = {"role": "assistant", "content": None if targets else DONE}
    if targets:
        message["tool_calls"] = [call(target) for target in targets]
    finish = "tool_calls" if targets else "stop"
    choices = [{"index": 0, "message": message, "finish_reason": finish}]
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    response = {"id": "x", "object": "chat.completion", "created": 0, "model": MODEL}
    return {**response, "choices": choices, "usage": usage}
