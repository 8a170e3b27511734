"""OpenAI's chat completions, whose messages are read as they stand."""

from __future__ import annotations

from nanobot_context.types import Message
from nanobot_context.wire.forms.form import Form, Json


class Chat(Form):
    """OpenAI's chat completions."""

    def _limit_name(self) -> str:
        return "max_completion_tokens" if "max_completion_tokens" in self.body else "max_tokens"

    def _read(self) -> list[Message]:
        messages: list[Message] = self.body["messages"]
        return messages

    def written(self, messages: list[Message]) -> list[Json]:
        return messages
