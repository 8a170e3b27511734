"""A summary, the request for one, and the events that a user interface gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from nanobot_context.arguments import check_choice, check_flag, check_instance, check_whole
from nanobot_context.errors import InvalidArgumentError
from nanobot_context.types import Message

_COUNTS = ("covers", "version", "chunks", "max_depth", "input_tokens", "output_tokens")


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of the first messages of a conversation. It never removes a message.

    Attributes:
        text: What the model of the conversation is shown, not wrapped: see `wrap_summary`.
        covers: Messages from the start of the conversation that it covers; those behind are shown.
        version: 1 for the first of a conversation, one more for each that follows.
        made_by: "model", or "local": written by rules, without a model.
        data: Its fields, by which the next summary is checked: the user's rules, names, files and
            so on. JSON values.
        error: Why it is local although a model was asked.
        reason: Why it was made: `message_limit`, `token_limit`, `idle`, `buffer`, `rolling`,
            `overflow_retry`, `force` or `custom`, or what a trigger of the caller's own said.
        model: The model that was asked.
        prompt: What it was asked with: a name such as `text-en`, or the whole of a caller's prompt.
        truncated: Whether a part was cut by force.
        chunks: Parts that were summarised one by one.
        max_depth: How often they were parted.
        input_tokens: Tokens of what was summarised.
        output_tokens: Tokens of the text.
    """

    text: str
    covers: int
    version: int = 1
    made_by: Literal["model", "local"] = "model"
    data: dict[str, Any] | None = None
    error: str | None = None
    reason: str = "force"
    model: str | None = None
    prompt: str | None = None
    truncated: bool = False
    chunks: int = 1
    max_depth: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __post_init__(self) -> None:
        for name in ("text", "reason"):
            check_instance(name, getattr(self, name), str)
        for name in ("error", "model", "prompt"):
            check_instance(name, getattr(self, name), str, optional=True)
        for name in _COUNTS:
            check_whole(name, getattr(self, name))
        check_choice("made_by", self.made_by, ("model", "local"))
        check_instance("data", self.data, dict, optional=True)
        check_flag("truncated", self.truncated)

    def is_newer_than(self, other: Summary | None) -> bool:
        """Return whether this one may take the place of `other`: it never covers less."""
        if other is None:
            return True
        return self.version > other.version and self.covers >= other.covers

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Summary:
        """Return the summary that `to_dict` wrote; keys that it does not know are left out.

        Raises:
            InvalidArgumentError: A key is missing or holds something else.
        """
        check_instance("data", data, Mapping)
        for name in ("text", "covers"):
            if name not in data:
                raise InvalidArgumentError(f"`{name}` is missing", argument=name)
        return cls(**{item.name: data[item.name] for item in fields(cls) if item.name in data})


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """A request for the model that writes summaries.

    Attributes:
        messages: The prompt.
        max_tokens: The longest answer. More than the summary should have: models that think need
            room for it.
        temperature: The temperature.
        model: The model to ask; `None` for whichever the caller has.
        depth: How often what it is about has been parted; 0 for all of it in one call.
    """

    messages: list[Message]
    max_tokens: int
    temperature: float
    model: str | None
    depth: int


@dataclass(frozen=True, slots=True)
class SummaryEvent:
    """What happens to a summary, for a user interface.

    Attributes:
        kind: "started", "text", "failed" (the model; a summary by rules follows) or "ended".
        trigger: "proactive", "overflow_retry" or "manual".
        reason: As in `Summary`.
        messages: How many are summarised.
        text: With "text" what came in of the answer, first-level calls only; with "ended" the
            first 800 characters of the summary.
        error: With "failed", what went wrong.
        summary: With "ended", the summary.
    """

    kind: Literal["started", "text", "failed", "ended"]
    trigger: str
    reason: str
    messages: int
    text: str = ""
    error: str | None = None
    summary: Summary | None = None
