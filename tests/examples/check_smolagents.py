"""What the adapter makes of smolagents' messages; run where smolagents is."""

from typing import Any

import pytest
from smolagents.models import ChatMessage, ChatMessageStreamDelta, MessageRole, Model

from nanobot_context.adapters.smolagents import fitting
from nanobot_context.errors import InvalidArgumentError

LOG = "\n".join(f"line {at}: node-{at % 9} answered in {at} ms" for at in range(400))
IMAGE = {"type": "image", "image": object()}


def said(role: MessageRole, text: str, *others: Any) -> ChatMessage:
    return ChatMessage(role, [{"type": "text", "text": text}, *others])


class House(Model):  # type: ignore[misc]
    """A model that notes what it is sent, and can refuse it."""

    def __init__(self, refusals: int = 0) -> None:
        super().__init__(model_id="gpt-4o")
        self.sent: list[list[ChatMessage]] = []
        self.refusals = refusals

    def generate(self, messages: list[ChatMessage], *_: Any, **options: Any) -> ChatMessage:
        self.sent.append(messages)
        if len(self.sent) <= self.refusals:
            raise ValueError("This model's maximum context length is 9000 tokens, got 20000 tokens")
        return said(MessageRole.ASSISTANT, "Done.")


class Streaming(House):
    def generate_stream(self, messages: list[ChatMessage], *_: Any, **options: Any) -> Any:
        # Some servers name the role before they have read the prompt.
        yield ChatMessageStreamDelta(content="")
        yield ChatMessageStreamDelta(content=self.generate(messages).content[0]["text"])


def steps(number: int) -> list[ChatMessage]:
    messages = [said(MessageRole.SYSTEM, "Be brief."), said(MessageRole.USER, "New task: go.")]
    for at in range(number):
        messages.append(said(MessageRole.ASSISTANT, f"I look at {at}."))
        messages.append(said(MessageRole.TOOL_CALL, f"Calling tools: read {at}.log"))
        messages.append(said(MessageRole.TOOL_RESPONSE, f"Observation {at}: {LOG}", IMAGE))
    return messages


def test_what_fits_is_sent_as_the_same_list() -> None:
    house, messages = House(), steps(1)
    assert fitting(house).generate(messages).content
    assert house.sent[0] is messages


def test_a_step_keeps_its_call_its_observation_and_its_images() -> None:
    house, messages = House(), steps(6)
    fitting(house, context_window=9_000).generate(messages)
    [sent] = house.sent
    assert sent[:2] == messages[:2]
    roles = [message.role for message in sent]
    calls = roles.count(MessageRole.TOOL_CALL)
    assert calls == roles.count(MessageRole.TOOL_RESPONSE) > 0
    last = sent[-1]
    assert last.role == MessageRole.TOOL_RESPONSE
    assert IMAGE in last.content
    assert len(str([m.content for m in sent])) < len(str([m.content for m in messages])) / 2


class Picture:
    """As PIL has them."""

    size = (1_280, 800)


def test_pictures_count() -> None:
    house, messages = House(), steps(0)
    for at in range(12):
        board = {"type": "image", "image": Picture()}
        messages.append(said(MessageRole.USER, f"The board of day {at}.", board))
        messages.append(said(MessageRole.ASSISTANT, f"Nothing on day {at}."))
    fitting(house, context_window=8_000).generate(messages)
    [sent] = house.sent
    shown = [part for message in sent for part in message.content]
    assert 0 < sum(part["type"] == "image" for part in shown) < 12


def test_a_thought_goes_with_its_call() -> None:
    house = House()
    fitting(house, context_window=5_000).generate(steps(40))
    [sent] = house.sent
    roles = [message.role for message in sent]
    calls = [at for at, role in enumerate(roles) if role == MessageRole.TOOL_CALL]
    assert calls
    assert all(roles[at + 1] == MessageRole.TOOL_RESPONSE for at in calls)
    assert all(roles[at - 1] == MessageRole.ASSISTANT for at in calls)
    assert sum("messages left out]" in str(message.content) for message in sent) == 1


def test_a_refusal_is_repaired_in_a_stream_too() -> None:
    for house in (House(1), Streaming(1)):
        model = fitting(house)
        assert type(model).__name__ == type(house).__name__
        assert isinstance(model, type(house))
        if isinstance(house, Streaming):
            assert [piece.content for piece in model.generate_stream(steps(8))] == ["", "Done."]
        else:
            assert model.generate(steps(8)).content
        assert len(house.sent) == 2


def test_only_a_model_that_streams_can_stream() -> None:
    assert not hasattr(fitting(House()), "generate_stream")
    with pytest.raises(InvalidArgumentError, match="`model`"):
        fitting("gpt-4o")
