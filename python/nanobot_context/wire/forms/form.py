"""Common base of all request bodies: reads them as OpenAI's messages, and writes them back.

What comes back untouched is the very part of the body that it was: blocks that are signed, marked
for a cache, or of a kind that nobody here knows stay as they are. Only what was shortened is
written anew, within the blocks and items that it was read from.
"""

from __future__ import annotations

from typing import Any

from nanobot_context.types import Message

Json = dict[str, Any]

# Where the part of the body was that a message was read from. Messages that are shortened keep keys
# that nobody knows.
PART = "nanobot_context.part"


class Form:
    """One API's body.

    Attributes:
        body: The body as it came.
        messages_name: The key of the messages.
        tools_name: The key of the tool schemas.
        limit_name: The key of the limit for the answer.
        messages: What it says, as messages.
        shown_tools: Tool schemas that go out in place of the body's; `None` for these.
    """

    messages_name = "messages"
    tools_name = "tools"
    limit_name = "max_tokens"

    def __init__(self, body: Json) -> None:
        self.body = body
        self.messages = self._read()
        self.shown_tools: list[Json] | None = None

    @property
    def model(self) -> str | None:
        """The model's name."""
        model = self.body.get("model")
        return model if isinstance(model, str) else None

    @property
    def max_tokens(self) -> int | None:
        """The limit for the answer."""
        limit = self.body.get(self.limit_name)
        return limit if isinstance(limit, int) and not isinstance(limit, bool) else None

    @property
    def tools(self) -> list[Json] | None:
        """The tool schemas, as OpenAI's chat API has them."""
        tools = self.given_tools if self.shown_tools is None else self.shown_tools
        return [_schema(tool) for tool in tools] or None

    @property
    def given_tools(self) -> list[Json]:
        """The tool schemas as they came."""
        tools = self.body.get(self.tools_name)
        return [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []

    @property
    def tool_choice(self) -> Any:
        """Which tools the model is to call."""
        return self.body.get("tool_choice")

    @property
    def is_streamed(self) -> bool:
        """Whether the answer is to come in pieces."""
        return self.body.get("stream") is True

    def replaced(self, messages: list[Message], max_tokens: int | None) -> Json:
        """Return the body with other messages, and another limit for the answer."""
        body = dict(self.body)
        if messages is not self.messages:
            body[self.messages_name] = self.written(messages)
        if max_tokens != self.max_tokens:
            body.update(self._limited(max_tokens))
        if self.shown_tools is not None:
            body[self.tools_name] = self.shown_tools
        return body

    def written(self, messages: list[Message]) -> list[Json]:
        """Return messages in the form of the body, unchanged ones as the original objects."""
        raise NotImplementedError

    def places(self) -> list[int | None]:
        """Return the place in the body that each message was read from; `None` without one."""
        return [place_of(message) for message in self.messages]

    def place(self, index: int) -> int:
        """Return the place in the body that a message was read from; 0 without one."""
        return place_of(self.messages[index]) or 0

    def read_before(self, place: int) -> int:
        """Return how many messages precede the first one read from `place` or behind it."""
        count = len(self.messages)
        return next((index for index in range(count) if self.place(index) >= place), count)

    def can_begin_at(self, index: int) -> bool:
        """Return whether every message before `index` was read from an earlier place."""
        return all(self.place(before) < self.place(index) for before in range(index))

    def _read(self) -> list[Message]:
        raise NotImplementedError

    def _limited(self, max_tokens: int | None) -> Json:
        return {} if max_tokens is None else {self.limit_name: max_tokens}


def place_of(message: Message) -> int | None:
    """Return the place in the body that `message` was read from; `None` without one."""
    place = message.get(PART)
    return place if isinstance(place, int) else None


def without_places(messages: list[Message]) -> list[Message]:
    """Return messages without the key that names their place."""
    return [{name: one[name] for name in one if name != PART} for one in messages]


def _schema(tool: Json) -> Json:
    """Return a tool of any of the three APIs in the form that is counted."""
    if "function" in tool or "name" not in tool:
        return tool
    parameters = tool.get("input_schema") or tool.get("parameters") or {}
    description = tool.get("description") or ""
    function = {"name": tool["name"], "description": description, "parameters": parameters}
    return {"type": "function", "function": function}
