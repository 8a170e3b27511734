"""What examples/langchain_agent.py makes of LangChain's messages; run where LangChain is."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import langchain_agent
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)

LOG = "\n".join(f"line {at}: node-{at % 9} answered in {at} ms" for at in range(400))


def conversation(rounds: int) -> list[AnyMessage]:
    messages: list[AnyMessage] = [SystemMessage("Be brief.")]
    for at in range(rounds):
        ids = [f"a{at}", f"b{at}"]
        calls = [ToolCall(name="read", args={"path": f"{id_}.log", "n": at}, id=id_) for id_ in ids]
        messages.append(HumanMessage(f"And {at}?", id=f"question-{at}"))
        messages.append(AIMessage("I look.", tool_calls=calls))
        messages += [ToolMessage(LOG, tool_call_id=id_, name="read") for id_ in ids]
        messages.append(AIMessage([{"type": "text", "text": f"Nothing in {at}."}]))
    return [*messages, HumanMessage("And now?")]


def test_messages_that_fit_are_the_same_objects() -> None:
    messages = conversation(2)
    fitted = langchain_agent.compress(messages)
    assert all(one is other for one, other in zip(fitted, messages, strict=True))


def test_parallel_calls_keep_their_arguments_and_their_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(langchain_agent, "WINDOW", 9_000)
    messages = conversation(6)
    fitted = langchain_agent.compress(messages)
    assert fitted[0] is messages[0]
    assert fitted[-1] is messages[-1]
    called = [call for message in fitted for call in getattr(message, "tool_calls", ())]
    answered = [message for message in fitted if isinstance(message, ToolMessage)]
    assert [call["id"] for call in called] == [message.tool_call_id for message in answered]
    assert [call["args"] for call in called] == [
        {"path": f"{call['id']}.log", "n": int(str(call["id"])[1:])} for call in called
    ]
    assert [call["id"] for call in called][-2:] == ["a5", "b5"]
    assert len(str(fitted)) < len(str(messages)) / 2


def test_the_arguments_of_a_call_that_is_shortened_are_arguments_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(langchain_agent, "WINDOW", 3_000)
    call = ToolCall(name="write", args={"path": "a.log", "text": LOG}, id="w")
    messages: list[AnyMessage] = [
        HumanMessage("Write."),
        AIMessage("", tool_calls=[call]),
        ToolMessage("Written.", tool_call_id="w"),
        HumanMessage("Thanks."),
    ]
    [_, written, *_] = langchain_agent.compress(messages)
    assert isinstance(written, AIMessage)
    assert written.tool_calls[0]["args"]["path"] == "a.log"
    assert len(written.tool_calls[0]["args"]["text"]) < len(LOG) / 2


def test_tools_and_a_call_without_a_result_are_no_trouble() -> None:
    call = ToolCall(name="read_log", args={"day": 1}, id="c")
    messages: list[AnyMessage] = [HumanMessage("Go."), AIMessage("", tool_calls=[call])]
    fitted = langchain_agent.compress(
        [*messages, HumanMessage("Well?")], [langchain_agent.read_log]
    )
    assert [type(message) for message in fitted] == [
        HumanMessage,
        AIMessage,
        ToolMessage,
        HumanMessage,
    ]
