"""What the adapter makes of LangChain's messages; run where LangChain is."""

from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)

from nanobot_context.adapters.langchain import fit_messages_hook

LOG = "\n".join(f"line {at}: node-{at % 9} answered in {at} ms" for at in range(400))


def fitted_to(window: int, messages: list[AnyMessage]) -> list[Any]:
    shown: list[Any] = fit_messages_hook(window)({"messages": messages})["llm_input_messages"]
    return shown


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
    fitted = fitted_to(128_000, messages)
    assert all(one is other for one, other in zip(fitted, messages, strict=True))


def test_parallel_calls_keep_their_arguments_and_their_results() -> None:
    messages = conversation(6)
    fitted = fitted_to(9_000, messages)
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


def test_the_arguments_of_a_call_that_is_shortened_are_arguments_again() -> None:
    call = ToolCall(name="write", args={"path": "a.log", "text": LOG}, id="w")
    messages: list[AnyMessage] = [
        HumanMessage("Write."),
        AIMessage("", tool_calls=[call]),
        ToolMessage("Written.", tool_call_id="w"),
        HumanMessage("Thanks."),
    ]
    [_, written, *_] = fitted_to(3_000, messages)
    assert isinstance(written, AIMessage)
    assert written.tool_calls[0]["args"]["path"] == "a.log"
    assert len(written.tool_calls[0]["args"]["text"]) < len(LOG) / 2


def test_a_call_without_a_result_is_no_trouble() -> None:
    call = ToolCall(name="read_log", args={"day": 1}, id="c")
    messages: list[AnyMessage] = [HumanMessage("Go."), AIMessage("", tool_calls=[call])]
    fitted = fitted_to(128_000, [*messages, HumanMessage("Well?")])
    assert [type(message) for message in fitted] == [
        HumanMessage,
        AIMessage,
        ToolMessage,
        HumanMessage,
    ]


def test_what_only_the_provider_knows_stays_with_a_message_that_is_shortened() -> None:
    call = ToolCall(name="write", args={"path": "a.log", "text": LOG}, id="w")
    raw = {"tool_calls": [{"id": "w"}], "reasoning_content": "Hm. " * 20, "own": 1}
    wrote = AIMessage("", id="m1", tool_calls=[call], additional_kwargs=raw)
    wrote.response_metadata = {"model_name": "x"}
    result = ToolMessage("Written.", tool_call_id="w", id="t1")
    messages: list[AnyMessage] = [HumanMessage("Write."), wrote, result, HumanMessage("Thanks.")]
    [_, shown, *_] = fitted_to(3_000, messages)
    assert shown is not wrote
    assert (shown.id, shown.response_metadata) == ("m1", {"model_name": "x"})
    assert shown.additional_kwargs["own"] == 1
    assert "tool_calls" not in shown.additional_kwargs
    assert wrote.additional_kwargs == raw


def test_thoughts_and_calls_among_the_content_of_responses_are_no_attachments() -> None:
    messages: list[AnyMessage] = [SystemMessage("Be brief.")]
    for at in range(12):
        call = {"type": "function_call", "id": f"fc_{at}", "call_id": f"a{at}", "name": "read"}
        sealed = "gAAA" * 90
        content: list[str | dict[Any, Any]] = [
            {"type": "reasoning", "id": f"rs_{at}", "summary": [], "encrypted_content": sealed},
            {"type": "text", "text": f"I look at {at}."},
            {**call, "arguments": "{}"},
        ]
        calls = [ToolCall(name="read", args={}, id=f"a{at}")]
        messages.append(HumanMessage(f"And {at}?"))
        messages.append(AIMessage(content, tool_calls=calls))
        messages.append(ToolMessage(LOG, tool_call_id=f"a{at}", name="read"))
    fitted = fitted_to(9_000, messages)
    assert "attachment" not in str(fitted)
    newest = [message for message in fitted if isinstance(message, AIMessage)][-1]
    assert newest is messages[-2]
    assert len(str(fitted)) < len(str(messages)) / 2
