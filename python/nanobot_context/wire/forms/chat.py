"""OpenAI's chat completions, whose messages are read as they stand."""

from __future__ import annotations

from typing import Any

from nanobot_context.types import Message
from nanobot_context.wire.forms.form import Form, Json


class Chat(Form):
    """OpenAI's chat completions."""

    def __init__(self, body: Json) -> None:
        if body.get("functions") and not body.get("tools"):
            # As OpenAI had them before.
            self.tools_name = "functions"
        if "max_completion_tokens" in body:
            self.limit_name = "max_completion_tokens"
        super().__init__(body)

    @property
    def tool_choice(self) -> Any:
        return self.body.get("function_call" if self.tools_name == "functions" else "tool_choice")

    def _read(self) -> list[Message]:
        messages: list[Message] = self.body["messages"]
        return messages

    def written(self, messages: list[Message]) -> list[Json]:
        return messages
