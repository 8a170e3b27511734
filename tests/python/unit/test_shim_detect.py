"""The shim on classes shaped like nanobot's: what is detected, patched, repaired and put back.

The real releases run in `tests/nanobot`; here the shapes can be bent one at a time.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import itertools
import types
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from nanobot_context import count_tokens, shim
from nanobot_context.errors import ContextOverflowError
from nanobot_context.settings import Settings
from nanobot_context.shim import friendly
from nanobot_context.shim.detect import NanobotClasses, detect_generation
from nanobot_context.shim.nanobot_messages import (
    REFLECTION,
    is_consolidation,
    lift_reflections,
    restore_reflections,
    shorten_consolidation,
)

Message = dict[str, Any]

WINDOW = 8_000
TOO_LONG = (
    "Error calling LLM: litellm.BadRequestError: OpenAIException - This model's maximum context "
    "length is 8000 tokens. However, your messages resulted in 9000 tokens. Please reduce the "
    "length of the messages."
)


@dataclass
class LLMResponse:
    content: str | None
    tool_calls: list[Any] = field(default_factory=list)
    finish_reason: str = "stop"


@dataclass
class Session:
    key: str = "cli:direct"
    messages: list[Message] = field(default_factory=list)

    def get_history(self, max_messages: int = 500) -> list[Message]:
        return [dict(message) for message in self.messages[-max_messages:]]


def make_classes() -> NanobotClasses:
    """Return fresh classes of the "provider-chat" shape, so that no test sees another's patches."""

    class LLMProvider(ABC):
        @abstractmethod
        async def chat(
            self,
            messages: list[Message],
            tools: list[Any] | None = None,
            model: str | None = None,
            max_tokens: int = 4096,
            temperature: float = 0.7,
        ) -> LLMResponse: ...

        @abstractmethod
        def get_default_model(self) -> str: ...

    class SubagentManager:
        def __init__(self, provider: Any) -> None:
            self.provider = provider
            self.announced: list[str] = []

        async def _run_subagent(
            self, task_id: str, task: str, label: str, origin: dict[str, str]
        ) -> None:
            try:
                response = await self.provider.chat(messages=[{"role": "user", "content": task}])
                self.announced.append(f"ok: {response.content}")
            except Exception as error:
                self.announced.append(f"error: {error}")

    session = types.new_class("Session", (), {}, lambda space: space.update(_own(Session)))
    return NanobotClasses(LLMProvider, LLMResponse, SubagentManager, dataclass(session))


def _own(cls: type) -> dict[str, Any]:
    names = ("__annotations__", "get_history", "key")
    own = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
    return {**own, "messages": field(default_factory=list), "__module__": cls.__module__}


def safe(words: str) -> Callable[..., Awaitable[Any]]:
    """Return nanobot's method around `chat`, which makes a response of any exception."""

    async def safe_chat(self: Any, **kwargs: Any) -> Any:
        try:
            return await self.chat(**kwargs)
        except Exception as error:
            return LLMResponse(f"{words}: {error}", finish_reason="error")

    return safe_chat


def with_safe_chat(classes: NanobotClasses) -> NanobotClasses:
    """Turn the classes into the shape of 0.1.4.post5."""
    classes.provider._safe_chat = safe("Error calling LLM")  # type: ignore[attr-defined]
    return classes


def with_stream(classes: NanobotClasses) -> NanobotClasses:
    """Turn the classes into the shape of 0.1.4.post6 and later."""
    classes.provider._safe_chat_stream = safe("Error")  # type: ignore[attr-defined]
    return with_safe_chat(classes)


@pytest.fixture
def classes() -> NanobotClasses:
    return make_classes()


@pytest.fixture(params=["provider-chat", "safe-chat", "safe-chat-stream"])
def generation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[..., shim.Status]]:
    """Install the shim on given classes; whatever happens, it is gone afterwards."""

    def run(classes: NanobotClasses, **settings: Any) -> shim.Status:
        monkeypatch.setattr(shim, "load_classes", lambda: classes)
        monkeypatch.setattr(shim, "nanobot_config_path", lambda: tmp_path / "config.json")
        settings.setdefault("context_window_override", WINDOW)
        return shim.install(Settings(**settings))

    yield run
    shim.uninstall()


class Script:
    """What a scripted provider answers, and what it was sent."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.sent: list[list[Message]] = []
        self.limits: list[int] = []

    def next(self, messages: list[Message], max_tokens: int) -> Any:
        self.sent.append(messages)
        self.limits.append(max_tokens)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def make_provider(classes: NanobotClasses, script: Script) -> Any:
    class Scripted(classes.provider):  # type: ignore[name-defined, misc]
        async def chat(
            self,
            messages: list[Message],
            tools: list[Any] | None = None,
            model: str | None = None,
            max_tokens: int = 4096,
            temperature: float = 0.7,
        ) -> Any:
            return script.next(messages, max_tokens)

        def get_default_model(self) -> str:
            return "gpt-4o"

    return Scripted()


def call(provider: Any, *args: Any, **kwargs: Any) -> Any:
    async def run() -> Any:
        names = ("_safe_chat_stream", "_safe_chat", "chat")
        chat: Callable[..., Awaitable[Any]] = next(
            getattr(provider, name) for name in names if hasattr(provider, name)
        )
        return await chat(*args, **kwargs)

    return asyncio.run(run())


def error(text: str) -> LLMResponse:
    return LLMResponse(text, finish_reason="error")


def conversation(rounds: int, words: int) -> list[Message]:
    messages: list[Message] = [{"role": "system", "content": "You are nanobot."}]
    for number in range(rounds):
        messages.append({"role": "user", "content": f"question {number}: " + "alpha " * words})
        messages.append({"role": "assistant", "content": f"answer {number}: " + "beta " * words})
    messages.append({"role": "user", "content": "And what was the first question?"})
    return messages


# -- detection ------------------------------------------------------------------------------


def test_the_shape_without_safe_chat_is_the_provider_chat_generation(
    classes: NanobotClasses,
) -> None:
    found = detect_generation(classes)
    assert found.generation == "provider-chat"
    assert {point.state for point in found.points} == {"ready"}


def test_the_shape_with_safe_chat_is_the_safe_chat_generation(classes: NanobotClasses) -> None:
    assert detect_generation(with_safe_chat(classes)).generation == "safe-chat"


def test_the_shape_with_a_streaming_twin_is_the_safe_chat_stream_generation(
    classes: NanobotClasses, install: Callable[..., shim.Status]
) -> None:
    def get_history(self: Any, max_messages: int = 120, *, max_tokens: int = 0) -> None: ...

    classes.session.get_history = get_history  # type: ignore[attr-defined]
    state = install(with_stream(classes))
    assert state.generation == "safe-chat-stream"
    patched = {point.name.rpartition(".")[2] for point in state.points if point.state == "patched"}
    assert patched == {"_safe_chat", "_safe_chat_stream", "_run_subagent"}
    assert classes.session.get_history is get_history  # type: ignore[attr-defined]


def _stream_not_async(classes: NanobotClasses) -> None:
    with_stream(classes)
    classes.provider._safe_chat_stream = lambda self: None  # type: ignore[attr-defined]


def _chat_not_async(classes: NanobotClasses) -> None:
    classes.provider.chat = lambda self, messages: None  # type: ignore[attr-defined]


def _no_run_subagent(classes: NanobotClasses) -> None:
    del classes.subagents._run_subagent  # type: ignore[attr-defined]


def _other_history(classes: NanobotClasses) -> None:
    def get_history(self: Any, limit: int = 120, *, max_tokens: int = 0) -> None: ...

    classes.session.get_history = get_history  # type: ignore[attr-defined]


def _positional_safe_chat(classes: NanobotClasses) -> None:
    async def _safe_chat(self: Any, messages: Any) -> None: ...

    classes.provider._safe_chat = _safe_chat  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("bend", "named"),
    [
        (_stream_not_async, "_safe_chat_stream` is not `async`"),
        (_chat_not_async, "chat` is not `async`"),
        (_no_run_subagent, "_run_subagent` does not exist"),
        (_other_history, "get_history` takes (self"),
        (_positional_safe_chat, "_safe_chat` takes (self"),
    ],
)
def test_one_point_that_is_not_as_expected_leaves_nanobot_untouched(
    classes: NanobotClasses,
    install: Callable[..., shim.Status],
    bend: Callable[[NanobotClasses], None],
    named: str,
) -> None:
    bend(classes)
    before = snapshot(classes)
    state = install(classes)
    assert not state.installed
    assert state.generation is None
    assert named in state.reason
    assert "is not known to this version" in state.reason
    assert snapshot(classes) == before


def snapshot(classes: NanobotClasses) -> list[dict[str, Any]]:
    owners = (classes.provider, classes.response, classes.subagents, classes.session)
    return [dict(owner.__dict__) for owner in owners]


# -- installing -----------------------------------------------------------------------------


def shaped(classes: NanobotClasses, generation: str) -> NanobotClasses:
    shapes = {"safe-chat": with_safe_chat, "safe-chat-stream": with_stream}
    return shapes[generation](classes) if generation in shapes else classes


def test_uninstall_puts_every_attribute_back(
    classes: NanobotClasses, install: Callable[..., shim.Status], generation: str
) -> None:
    shaped(classes, generation)
    provider = make_provider(classes, Script())
    before = [*snapshot(classes), dict(type(provider).__dict__)]
    assert install(classes).installed
    assert [*snapshot(classes), dict(type(provider).__dict__)] != before
    shim.uninstall()
    assert [*snapshot(classes), dict(type(provider).__dict__)] == before
    assert not shim.status().installed


def test_installing_twice_patches_once(
    classes: NanobotClasses, install: Callable[..., shim.Status], generation: str
) -> None:
    shaped(classes, generation)
    first = install(classes)
    after = snapshot(classes)
    assert install(classes) == first
    assert snapshot(classes) == after


def test_a_provider_class_made_later_is_protected_and_put_back(
    classes: NanobotClasses, install: Callable[..., shim.Status]
) -> None:
    install(classes)
    later = type(make_provider(classes, Script()))
    assert inspect.unwrap(later.chat) is not later.chat
    names = [point.name for point in shim.status().points]
    assert any(name.endswith("Scripted.chat") for name in names)
    shim.uninstall()
    assert inspect.unwrap(later.chat) is later.chat


def test_what_somebody_else_wrapped_stays_and_passes_calls_on(
    classes: NanobotClasses, install: Callable[..., shim.Status]
) -> None:
    install(classes)
    ours = classes.session.get_history  # type: ignore[attr-defined]
    classes.session.get_history = theirs = lambda self, **kw: ours(self, **kw)  # type: ignore[attr-defined]
    shim.uninstall()
    assert classes.session.get_history is theirs  # type: ignore[attr-defined]
    session = classes.session(messages=conversation(9, 50))
    assert theirs(session, max_tokens=10) == conversation(9, 50)


def test_switched_off_nothing_is_patched(
    classes: NanobotClasses, install: Callable[..., shim.Status]
) -> None:
    before = snapshot(classes)
    state = install(classes, context_compression=False)
    assert not state.installed
    assert "switched off" in state.reason
    assert snapshot(classes) == before


def test_broken_settings_leave_nanobot_untouched(
    classes: NanobotClasses, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text('{"agents": {"defaults": {"contextCompression": 1}}}')
    monkeypatch.setattr(shim, "load_classes", lambda: classes)
    monkeypatch.setattr(shim, "nanobot_config_path", lambda: tmp_path / "config.json")
    before = snapshot(classes)
    state = shim.install()
    assert not state.installed
    assert "`agents.defaults.contextCompression` must be" in state.reason
    assert snapshot(classes) == before


def test_status_names_the_window_and_its_source(
    classes: NanobotClasses, install: Callable[..., shim.Status], tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text('{"agents": {"defaults": {"model": "gpt-4o"}}}')
    state = install(classes)
    assert (state.window_tokens, state.window_source) == (WINDOW, "install(settings=...)")
    assert state.model == "gpt-4o"
    assert state.to_dict()["settings"]["context_window_override"] == WINDOW


# -- requests -------------------------------------------------------------------------------


def test_a_request_that_fits_goes_out_as_the_same_objects(
    classes: NanobotClasses, install: Callable[..., shim.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    answer = LLMResponse("fine")
    script = Script(answer)
    messages = conversation(2, 10)
    assert call(make_provider(classes, script), messages=messages) is answer
    assert script.sent[0] is messages


def test_a_request_that_is_too_long_is_compressed_and_the_callers_list_is_not(
    classes: NanobotClasses, install: Callable[..., shim.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    script = Script(LLMResponse("fine"))
    messages = conversation(20, 300)
    before = copy.deepcopy(messages)
    call(make_provider(classes, script), messages=messages, max_tokens=500)
    assert messages == before
    assert script.sent[0][0] == messages[0]
    assert script.sent[0][-1] == messages[-1]
    assert len(str(script.sent[0])) < len(str(messages))


def test_an_overflow_is_repaired_by_one_smaller_request(
    classes: NanobotClasses, install: Callable[..., shim.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    answer = LLMResponse("fine")
    script = Script(error(TOO_LONG), answer)
    messages = conversation(8, 150)
    assert call(make_provider(classes, script), messages=messages) is answer
    assert len(script.sent) == 2
    assert len(str(script.sent[1])) < len(str(script.sent[0]))
    assert script.sent[1][-1] == messages[-1]


def test_an_overflow_that_is_raised_is_repaired_too(
    classes: NanobotClasses, install: Callable[..., shim.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    answer = LLMResponse("fine")
    script = Script(RuntimeError(TOO_LONG), answer)
    assert call(make_provider(classes, script), messages=conversation(8, 150)) is answer


def test_a_second_overflow_ends_in_a_friendly_error_without_digits(
    classes: NanobotClasses, install: Callable[..., shim.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    script = Script(error(TOO_LONG), error(TOO_LONG))
    response = call(make_provider(classes, script), messages=conversation(8, 150))
    assert len(script.sent) == 2
    assert response.finish_reason == "error"
    assert "Send /new to clear the session" in response.content
    assert not any(char.isdigit() for char in response.content)


def test_a_chinese_conversation_gets_the_chinese_text(
    classes: NanobotClasses, install: Callable[..., shim.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    messages = conversation(2, 20)
    for message in messages:
        if message["role"] == "user":
            message["content"] = "请继续整理这些资料，谢谢。" * 30
    script = Script(error(TOO_LONG), error(TOO_LONG))
    response = call(make_provider(classes, script), messages=messages)
    assert response.content == (
        "对话历史过长，自动压缩后仍然超出模型限制。请发送 /new 清空会话后重试。"
    )


def test_a_request_that_cannot_be_made_to_fit_is_not_sent(
    classes: NanobotClasses, install: Callable[..., shim.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    script = Script()
    messages = [{"role": "user", "content": "alpha " * 3 * WINDOW}]
    response = call(make_provider(classes, script), messages=messages)
    assert script.sent == []
    assert response.finish_reason == "error"
    assert "Shorten it or split it" in response.content


def test_an_error_that_is_no_overflow_comes_back_as_the_same_object(
    classes: NanobotClasses, install: Callable[..., shim.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    for text in ("Error calling LLM: invalid api key", "Error: Rate limit reached, try again"):
        answer = error(text)
        script = Script(answer)
        assert call(make_provider(classes, script), messages=conversation(2, 10)) is answer


def test_an_answer_that_talks_about_an_overflow_is_an_answer(
    classes: NanobotClasses, install: Callable[..., shim.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    answer = LLMResponse(TOO_LONG)
    script = Script(answer)
    assert call(make_provider(classes, script), messages=conversation(2, 10)) is answer


def test_an_exception_that_is_no_overflow_passes_through(
    classes: NanobotClasses, install: Callable[..., shim.Status]
) -> None:
    install(classes)
    with pytest.raises(KeyError, match="x"):
        call(make_provider(classes, Script(KeyError("x"))), messages=conversation(2, 10))


def test_cancelling_passes_through(
    classes: NanobotClasses, install: Callable[..., shim.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    script = Script(asyncio.CancelledError())
    with pytest.raises(asyncio.CancelledError):
        call(make_provider(classes, script), messages=conversation(2, 10))


OUTPUT_CAP = error("Error: Range of max_tokens should be [1, 1024]")


def test_an_output_cap_lowers_only_the_output_limit(
    classes: NanobotClasses, install: Callable[..., shim.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    answer = LLMResponse("fine")
    script = Script(OUTPUT_CAP, answer)
    messages = conversation(2, 10)
    provider = make_provider(classes, script)
    assert call(provider, messages=messages, max_tokens=2048) is answer
    assert script.limits == [2048, 1024]
    assert script.sent[1] is messages


def test_an_output_cap_is_remembered(
    classes: NanobotClasses, install: Callable[..., shim.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    script = Script(OUTPUT_CAP, LLMResponse("fine"), LLMResponse("fine"))
    provider = make_provider(classes, script)
    for _ in range(2):
        call(provider, messages=conversation(2, 10), max_tokens=2048)
    assert script.limits == [2048, 1024, 1024]


def test_an_output_cap_that_nothing_satisfies_comes_back_as_it_is(
    classes: NanobotClasses, install: Callable[..., shim.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    script = Script(*[OUTPUT_CAP] * 4)
    messages = conversation(2, 10)
    response = call(make_provider(classes, script), messages=messages, max_tokens=3000)
    assert response is OUTPUT_CAP
    assert all(later < earlier for earlier, later in itertools.pairwise(script.limits))


def test_a_prompt_that_leaves_room_for_a_shorter_answer_is_not_cut(
    classes: NanobotClasses, install: Callable[..., shim.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    text = "max_tokens: 4096 > context_window: 8000 - input_tokens: 5000 = available_tokens: 3000"
    script = Script(error(f"Error: {text}"), LLMResponse("fine"), LLMResponse("fine"))
    messages = conversation(2, 10)
    provider = make_provider(classes, script)
    for _ in range(2):
        call(provider, messages=messages, max_tokens=4096)
    assert script.limits == [4096, 3000, 4096]
    assert script.sent[1] is messages


def test_an_answer_as_large_as_the_window_leaves_room_for_the_prompt(
    classes: NanobotClasses, install: Callable[..., shim.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    script = Script(error(TOO_LONG), LLMResponse("fine"))
    messages = conversation(8, 150)
    call(make_provider(classes, script), messages=messages, max_tokens=WINDOW)
    assert script.sent[0] is messages
    assert script.limits == [WINDOW, WINDOW // 2]


def test_a_shorter_answer_makes_room_for_what_must_stay(
    classes: NanobotClasses, install: Callable[..., shim.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    script = Script(error(TOO_LONG), LLMResponse("fine"))
    messages = [{"role": "user", "content": "abc " * 5_000}]
    call(make_provider(classes, script), messages=messages, max_tokens=3_500)
    assert script.sent[1] == messages
    assert script.limits[0] == 3_500
    assert 256 <= script.limits[1] < 3_000


def test_arguments_may_come_by_position(
    classes: NanobotClasses, install: Callable[..., shim.Status]
) -> None:
    install(classes)
    script = Script(error(TOO_LONG), LLMResponse("fine"))
    call(make_provider(classes, script), conversation(8, 150), None, "gpt-4o", 100)
    assert script.limits == [100, 100]
    assert len(str(script.sent[1])) < len(str(script.sent[0]))


def test_a_provider_that_calls_another_is_protected_once(
    classes: NanobotClasses, install: Callable[..., shim.Status]
) -> None:
    install(classes)
    script = Script(error(TOO_LONG), error(TOO_LONG))
    inner = make_provider(classes, script)

    class Outer(type(inner)):  # type: ignore[misc]
        async def chat(self, messages: list[Message], **kwargs: Any) -> Any:
            return await inner.chat(messages=messages, **kwargs)

    call(Outer(), messages=conversation(8, 150))
    assert len(script.sent) == 2


def test_a_window_of_zero_only_repairs(
    classes: NanobotClasses, install: Callable[..., shim.Status], generation: str
) -> None:
    install(shaped(classes, generation), context_window_override=0)
    script = Script(error(TOO_LONG), LLMResponse("fine"))
    messages = conversation(20, 300)
    call(make_provider(classes, script), messages=messages)
    assert script.sent[0] is messages
    assert len(str(script.sent[1])) < len(str(messages))


def test_a_subagent_that_cannot_go_on_is_announced_as_failed(
    classes: NanobotClasses, install: Callable[..., shim.Status]
) -> None:
    install(classes)
    for task, text in (
        ("read them all", "error: The subagent's context overflowed"),
        ("请读取所有的文件", "error: 子代理上下文溢出，紧急压缩后仍超限，任务中止。"),
    ):
        manager = classes.subagents(make_provider(classes, Script(*[error(TOO_LONG)] * 2)))
        asyncio.run(manager._run_subagent("1", task, "label", {}))
        assert manager.announced[0].startswith(text)


def test_a_mistake_of_ours_sends_nanobots_own_request(
    classes: NanobotClasses, install: Callable[..., shim.Status], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise ValueError("a bug")

    monkeypatch.setattr("nanobot_context.shim.guard.compress_messages", broken)
    install(classes)
    script = Script(LLMResponse("fine"))
    messages = conversation(20, 300)
    call(make_provider(classes, script), messages=messages)
    assert script.sent[0] is messages


def test_the_overflow_that_is_raised_inside_carries_its_numbers(
    classes: NanobotClasses, install: Callable[..., shim.Status]
) -> None:
    install(classes)

    async def run() -> None:
        with shim.guard.subagent():
            script = Script(error(TOO_LONG), error(TOO_LONG))
            await make_provider(classes, script).chat(messages=conversation(8, 150))

    with pytest.raises(ContextOverflowError) as caught:
        asyncio.run(run())
    assert caught.value.limit_tokens == 8_000
    assert caught.value.needed_tokens == 9_000


# -- history --------------------------------------------------------------------------------


def test_history_without_a_budget_is_nanobots_own(
    classes: NanobotClasses, install: Callable[..., shim.Status]
) -> None:
    session = classes.session(messages=conversation(9, 5))
    own = classes.session.get_history  # type: ignore[attr-defined]
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((), {}),
        ((3,), {}),
        ((0,), {}),
        ((), {"max_messages": 0}),
        ((), {"max_messages": 4}),
    ]
    expected = [own(session, *args, **kwargs) for args, kwargs in calls]
    install(classes)
    assert [session.get_history(*args, **kwargs) for args, kwargs in calls] == expected
    assert session.get_history(max_tokens=None) == expected[0]
    assert session.get_history(max_tokens=0) == expected[0]


def test_history_with_a_budget_is_the_newest_whole_rounds(
    classes: NanobotClasses, install: Callable[..., shim.Status]
) -> None:
    messages = conversation(9, 20)[1:-1]
    session = classes.session(messages=messages)
    install(classes)
    history = session.get_history(max_tokens=200)
    assert 0 < len(history) < len(messages)
    assert history[0]["role"] == "user"
    assert history == messages[-len(history) :]
    assert session.get_history(500, 200) == history


# -- what nanobot writes itself -------------------------------------------------------------


def tool_rounds(count: int, *, reflect: bool) -> list[Message]:
    messages: list[Message] = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "the task"},
    ]
    for number in range(count):
        call_id = f"c{number}"
        function = {"name": "read_file", "arguments": "{}"}
        calls = [{"id": call_id, "type": "function", "function": function}]
        messages.append({"role": "assistant", "content": "", "tool_calls": calls})
        result = {"role": "tool", "tool_call_id": call_id, "name": "read_file"}
        messages.append({**result, "content": f"result {number} " + "gamma " * 900})
        if reflect:
            messages.append({"role": "user", "content": REFLECTION})
    return messages


def test_reflections_are_lifted_and_put_back() -> None:
    messages = tool_rounds(3, reflect=True)
    lifted, reflection = lift_reflections(messages)
    assert lifted == tool_rounds(3, reflect=False)
    assert reflection is not None
    assert restore_reflections(lifted, reflection) == messages


def test_without_reflections_the_same_list_comes_back() -> None:
    messages = [*tool_rounds(2, reflect=False), {"role": "user", "content": REFLECTION}]
    # Behind a result it is taken for nanobot's own, whoever said it.
    assert lift_reflections(messages)[1] is not None
    plain = tool_rounds(2, reflect=False)
    assert lift_reflections(plain)[0] is plain


def test_the_task_stays_when_reflections_stand_behind_it(
    classes: NanobotClasses, install: Callable[..., shim.Status]
) -> None:
    install(classes)
    script = Script(LLMResponse("fine"))
    call(make_provider(classes, script), messages=tool_rounds(20, reflect=True), max_tokens=500)
    sent = script.sent[0]
    assert {"role": "user", "content": "the task"} in sent
    assert sent[-1] == {"role": "user", "content": REFLECTION}
    assert sent[-2]["role"] == "tool"


def consolidation(entries: int, words: int) -> list[Message]:
    lines = "\n".join(
        f"[2026-02-13T10:{number:02}] USER: entry {number} " + "delta " * words
        for number in range(entries)
    )
    prompt = (
        "Process this conversation and call the save_memory tool with your consolidation.\n\n"
        f"## Current Long-term Memory\n{'The user likes tea. ' * 40}\n\n"
        f"## Conversation to Process\n{lines}"
    )
    system = "You are a memory consolidation agent. Call the save_memory tool."
    return [{"role": "system", "content": system}, {"role": "user", "content": prompt}]


def test_the_smallest_window_of_a_chain_of_models_counts(
    classes: NanobotClasses, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shim, "load_classes", lambda: with_stream(classes))
    monkeypatch.setattr(shim, "nanobot_config_path", lambda: tmp_path / "config.json")
    shim.install(Settings())
    try:
        provider = make_provider(classes, script := Script(*[LLMResponse("fine")] * 2))
        messages = conversation(20, 900)
        call(provider, messages=messages)
        provider._fallback_presets = [types.SimpleNamespace(model="gpt-3.5-turbo")]
        call(provider, messages=messages)
    finally:
        shim.uninstall()
    alone, in_chain = script.sent
    assert alone is messages
    assert count_tokens(in_chain, "gpt-4o") <= 0.85 * 16_385 < count_tokens(messages, "gpt-4o")


@pytest.mark.parametrize("stated", [True, False])
def test_after_one_refusal_no_longer_prompt_is_sent(
    classes: NanobotClasses, install: Callable[..., shim.Status], generation: str, stated: bool
) -> None:
    """The provider counts 1.5 times what we do, and says so or not."""
    install(shaped(classes, generation), context_window_override=None)
    window = 100_000
    refused = 0

    class Strict(Script):
        def next(self, messages: list[Message], max_tokens: int) -> Any:
            nonlocal refused
            used = int(count_tokens(messages, "gpt-4o") * 1.5)
            self.sent.append(messages)
            if used <= window:
                return LLMResponse("fine")
            refused += 1
            numbers = f"maximum context length is {window} tokens, you requested {used} tokens"
            return error(numbers if stated else "context_length_exceeded")

    script = Strict()
    provider = make_provider(classes, script)
    messages = conversation(40, 500)
    for number in range(60):
        assert call(provider, messages=messages).content == "fine"
        messages = [*messages, *conversation(1, 500)[1:3], {"role": "user", "content": f"{number}"}]
    assert refused == 1


def test_a_consolidation_that_is_too_long_keeps_the_memory_and_part_of_every_entry(
    classes: NanobotClasses, install: Callable[..., shim.Status], generation: str
) -> None:
    install(shaped(classes, generation))
    messages = consolidation(30, 600)
    before = copy.deepcopy(messages)
    script = Script(LLMResponse("fine"))
    call(make_provider(classes, script), messages=messages)
    assert messages == before
    text = script.sent[0][1]["content"]
    assert "The user likes tea. " * 40 in text
    assert all(f"USER: entry {number} " in text for number in range(30))
    assert "characters omitted" in text


def test_a_consolidation_without_a_heading_is_all_entries() -> None:
    _, user = consolidation(30, 600)
    entries = user["content"].partition("## Conversation to Process\n")[2]
    system = {"role": "system", "content": "Extract key facts from this conversation. Only …"}
    messages = [system, {"role": "user", "content": entries}]
    assert is_consolidation(messages)
    shorter = shorten_consolidation(messages, lambda m: len(m[1]["content"]) < 20_000)
    assert shorter is not None
    text = shorter[1]["content"]
    assert 15_000 < len(text) < 20_000
    assert all(f"USER: entry {number} " in text for number in range(30))
    assert not is_consolidation([system, {"role": "user", "content": "What do you think?"}])


def test_a_consolidation_of_short_entries_that_cannot_fit_is_not_cut() -> None:
    messages = consolidation(30, 2)
    assert is_consolidation(messages)
    assert shorten_consolidation(messages, lambda _: False) is None


def test_an_ordinary_request_is_no_consolidation() -> None:
    assert not is_consolidation(conversation(1, 5))
    assert not is_consolidation([{"role": "system", "content": "s"}, {"role": "user"}])


@pytest.mark.parametrize(
    ("texts", "chinese"),
    [
        (["请总结一下"], True),
        (["please summarise this"], False),
        (["把 README.md 翻译成中文"], True),
        (["What does 你好 mean in this long sentence?"], False),
        (["请继续", "请继续", "Traceback: many English words in one pasted log file"], True),
        (["要約してください、お願いします"], False),
        (
            ["[Runtime Context]\nCurrent Time: 2026-02-13 10:00 (Friday)\nChannel: cli\n\n你好吗"],
            True,
        ),
        ([], False),
        ([None, ["x"], {"a": 1}], False),
    ],
)
def test_the_language_is_that_of_the_users_last_messages(texts: list[Any], chinese: bool) -> None:
    messages = [{"role": "user", "content": text} for text in texts]
    assert friendly.is_chinese(messages) is chinese


def test_text_in_parts_counts_for_the_language() -> None:
    parts = [{"type": "image_url", "image_url": {}}, {"type": "text", "text": "这是什么"}]
    assert friendly.is_chinese([{"role": "user", "content": parts}])
