"""What the adapter makes of Pydantic AI's messages; run where that is."""

import asyncio
import struct
import warnings
from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai import (
    Agent,
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel

from nanobot_context.adapters.pydantic_ai import FittingModel, history_processor

LOG = "\n".join(f"line {at}: node-{at % 9} answered in {at} ms" for at in range(400))
IMAGE = BinaryContent(b"\x89PNG", media_type="image/png")
# The start of a PNG, which says that it has 1,280 x 800 pixels.
HEADER = struct.pack(">8sI4sII", b"\x89PNG\r\n\x1a\n", 13, b"IHDR", 1_280, 800)
SCREENSHOT = BinaryContent(HEADER, media_type="image/png")


def conversation(rounds: int) -> list[ModelMessage]:
    history: list[ModelMessage] = [
        ModelRequest([SystemPromptPart("Be brief."), UserPromptPart("Begin.")]),
        ModelResponse([TextPart("Yes.")]),
    ]
    for at in range(rounds):
        ids = [f"a{at}", f"b{at}"]
        calls = [ToolCallPart("read", {"path": f"{id_}.log"}, id_) for id_ in ids]
        history += [
            ModelRequest([UserPromptPart(f"And {at}?")], instructions="In English."),
            ModelResponse([ThinkingPart("Hm. " * 700, signature="s"), TextPart("I look."), *calls]),
            ModelRequest([ToolReturnPart("read", LOG, id_) for id_ in ids]),
            ModelResponse([TextPart(f"Nothing in {at}.")], model_name="m"),
        ]
    return [*history, ModelRequest([UserPromptPart("And now?")], instructions="In English.")]


def pairs(history: list[ModelMessage]) -> tuple[list[str], list[str]]:
    """Return the ids of calls and of results."""
    parts = [part for message in history for part in message.parts]
    return (
        [part.tool_call_id for part in parts if isinstance(part, ToolCallPart)],
        [part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)],
    )


def test_a_history_that_fits_stays_equal() -> None:
    history = conversation(2)
    assert history_processor(128_000, "gpt-4o-mini")(history) == history


def test_parallel_calls_keep_their_arguments_and_their_results() -> None:
    history = conversation(6)
    fitted = history_processor(9_000, "gpt-4o-mini")(history)
    called, answered = pairs(fitted)
    assert called == answered
    assert called[-2:] == ["a5", "b5"]
    calls = [p for message in fitted for p in message.parts if isinstance(p, ToolCallPart)]
    assert all(call.args_as_dict() == {"path": f"{call.tool_call_id}.log"} for call in calls)
    assert fitted[0] == history[0]
    assert fitted[-1] == history[-1]
    assert len(str(fitted)) < len(str(history)) / 2
    assert history_processor(9_000, "gpt-4o-mini")(fitted) == fitted


def test_what_is_left_out_is_said_in_a_request_of_the_users() -> None:
    history = conversation(80)
    fitted = history_processor(9_000, "gpt-4o-mini")(history)
    assert len(fitted) < len(history)
    parts = [part for message in fitted for part in message.parts]
    said = [str(part.content) for part in parts if isinstance(part, UserPromptPart)]
    notes = [text for text in said if "messages left out" in text]
    assert len(notes) == 1
    assert notes[0].startswith("And 0?\n\n[")
    assert history_processor(9_000, "gpt-4o-mini")(fitted) == fitted


def test_thoughts_that_go_take_no_text_and_no_call_along() -> None:
    responses = [
        m for m in history_processor(16_000, "gpt-4o-mini")(conversation(6)) if m.kind == "response"
    ]
    kinds = {tuple(type(part) for part in message.parts) for message in responses}
    assert (TextPart, ToolCallPart, ToolCallPart) in kinds


def test_files_stay_in_their_places_in_a_prompt_that_is_shortened() -> None:
    history: list[ModelMessage] = [
        ModelRequest([UserPromptPart([LOG, IMAGE, "What is it?"])]),
        ModelResponse([TextPart("A log.")]),
        ModelRequest([UserPromptPart([IMAGE, "And this?"])]),
    ]
    first, _, last = history_processor(6_000, "gpt-4o")(history)
    [prompt] = first.parts
    assert isinstance(prompt, UserPromptPart)
    text, *others = list[object](prompt.content)
    assert len(str(text)) < len(LOG) * 0.6
    assert others == [IMAGE, "What is it?"]
    assert last == history[-1]


def test_texts_with_metadata_count_and_stay() -> None:
    history: list[ModelMessage] = [
        ModelRequest([UserPromptPart([TextContent(LOG), IMAGE, TextContent("What is it?")])]),
        ModelResponse([TextPart("A log.")]),
        ModelRequest([UserPromptPart("And this?")]),
    ]
    first, *_ = history_processor(6_000, "gpt-4o")(history)
    [prompt] = first.parts
    assert isinstance(prompt, UserPromptPart)
    text, *others = list[object](prompt.content)
    assert len(str(text)) < len(LOG) * 0.7
    assert others == [IMAGE, "What is it?"]


def test_pictures_count() -> None:
    history: list[ModelMessage] = []
    for at in range(12):
        history.append(ModelRequest([UserPromptPart([f"The board of {at}.", SCREENSHOT])]))
        history.append(ModelResponse([TextPart(f"Nothing on day {at}.")]))
    fitted = history_processor(8_000, "gpt-4o")(history)
    said = [part for message in fitted for part in message.parts]
    contents = [part.content for part in said if isinstance(part, UserPromptPart)]
    pictures = [one for content in contents if isinstance(content, list) for one in content]
    assert 0 < sum(one is SCREENSHOT for one in pictures) < 12


def test_thoughts_that_are_signed_come_back_with_the_newest_calls_as_they_were() -> None:
    thoughts = [ThinkingPart(f"Plan {name}.", signature=name) for name in "AB"]
    call = ToolCallPart("write", {"path": "a.md", "text": LOG}, "w")
    history: list[ModelMessage] = [
        ModelRequest([UserPromptPart("Write it.")]),
        ModelResponse([*thoughts, TextPart("I write."), call]),
        ModelRequest([ToolReturnPart("write", "done", "w")]),
    ]
    _, response, _ = history_processor(4_000, "claude-sonnet-4-5")(history)
    assert list(response.parts[:3]) == [*thoughts, TextPart("I write.")]
    assert len(str(response)) < len(LOG)


def test_a_request_to_try_again_stays_what_it_is() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 1.x, and older releases of 2, make this part
        former = RetryPromptPart("Which path?", tool_name="read", tool_call_id="c")
    for retry in (former, ToolReturnPart("read", "Which path?", "c", outcome="retried")):
        history: list[ModelMessage] = [
            ModelRequest([UserPromptPart("Go.")]),
            ModelResponse([ToolCallPart("read", "{}", "c")]),
            ModelRequest([retry]),
        ]
        assert history_processor(128_000, "gpt-4o-mini")(history) == history


def test_a_call_without_a_result_is_left_to_the_framework() -> None:
    history: list[ModelMessage] = [
        ModelRequest([UserPromptPart("Go.")]),
        ModelResponse([ToolCallPart("read", "{}", "c")]),
        ModelRequest([UserPromptPart("Well?")]),
    ]
    assert history_processor(128_000, "gpt-4o-mini")(history) == history


def test_a_refusal_behind_the_beginning_of_a_stream_is_repaired() -> None:
    sent: list[int] = []

    async def stream(messages: list[ModelMessage], info: Any) -> AsyncIterator[str]:
        sent.append(len(str(messages)))
        # Some servers name the role before they have read the prompt.
        yield ""
        if len(sent) == 1:
            raise ValueError("This model's maximum context length is 9000 tokens, got 20000 tokens")
        yield "Do"
        yield "ne."

    async def run() -> str:
        agent = Agent(FittingModel(FunctionModel(stream_function=stream)))
        async with agent.run_stream("And?", message_history=conversation(6)) as result:
            return str(await result.get_output())

    assert asyncio.run(run()) == "Done."
    assert len(sent) == 2
    assert sent[1] < sent[0] / 2
