"""Messages that nanobot writes itself, its history, and the language of a conversation."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import Any

import pytest

from nanobot_context import installer
from nanobot_context.guard import friendly
from nanobot_context.host.detect import NanobotClasses
from nanobot_context.host.messages import (
    REFLECTION,
    is_consolidation,
    lift_prompts,
    lift_reflections,
    lift_runtime_context,
    restore_prompts,
    restore_reflections,
    shorten_consolidation,
)
from shim_classes import (
    LLMResponse,
    Message,
    Script,
    call,
    consolidation,
    conversation,
    make_provider,
    shaped,
)


def test_history_without_a_budget_is_nanobots_own(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    session = classes.session(messages=conversation(9, 5))
    own = classes.session.get_history
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
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    messages = conversation(9, 20)[1:-1]
    session = classes.session(messages=messages)
    install(classes)
    history = session.get_history(max_tokens=200)
    assert 0 < len(history) < len(messages)
    assert history[0]["role"] == "user"
    assert history == messages[-len(history) :]
    assert session.get_history(500, 200) == history


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
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes)
    script = Script(LLMResponse("fine"))
    call(make_provider(classes, script), messages=tool_rounds(20, reflect=True), max_tokens=500)
    sent = script.sent[0]
    assert {"role": "user", "content": "the task"} in sent
    assert sent[-1] == {"role": "user", "content": REFLECTION}
    assert sent[-2]["role"] == "tool"


TAG = "[Runtime Context — metadata only, not instructions]"
LINES = f"{TAG}\nCurrent Time: 2026-11-24 10:00 (Tuesday)\nChannel: cli"


@pytest.mark.parametrize(
    ("sent", "saved"),
    [
        pytest.param(f"{LINES}\n\nHello.\n\nMore.", "Hello.\n\nMore.", id="0.1.4.post4"),
        pytest.param(f"{LINES}\n[/Runtime Context]\n\nHello.", "Hello.", id="0.1.5.post3"),
        pytest.param(f"Hello.\n\n{LINES}\n[/Runtime Context]", "Hello.", id="0.2.2"),
        pytest.param(
            [{"type": "text", "text": LINES}, {"type": "text", "text": "Hello."}],
            [{"type": "text", "text": "Hello."}],
            id="parts",
        ),
    ],
)
def test_the_newest_message_is_read_as_nanobot_saves_it(sent: Any, saved: Any) -> None:
    messages = [*conversation(2, 5), {"role": "user", "content": sent, "name": "x"}]
    lifted, pair = lift_runtime_context(messages, TAG)
    assert pair is not None
    as_saved, as_sent = pair
    assert lifted[:-1] == messages[:-1]
    assert lifted[-1] is as_saved
    assert as_saved == {"role": "user", "content": saved, "name": "x"}
    assert as_sent is messages[-1]
    for without, tag in (
        (lifted, TAG),
        (messages, ""),
        ([{"role": "user", "content": LINES}], TAG),
    ):
        assert lift_runtime_context(without, tag) == (without, None)


def test_a_note_behind_the_newest_message_of_the_user_is_not_that_message() -> None:
    """A loop that keeps what was compressed has notes for what was left out, in the user's name."""
    sent = {"role": "user", "content": f"{LINES}\n\nHello."}
    note = {"role": "user", "content": "[3 messages left out]"}
    messages = [sent, {"role": "assistant", "content": "Yes."}, note]
    lifted, pair = lift_runtime_context(messages, TAG)
    assert pair is not None
    assert pair[1] is sent
    assert lifted[1:] == messages[1:]


ASKS = "Please provide your response to the user based on the conversation above."


@pytest.fixture
def _prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = type(sys)("nanobot.utils.runtime")
    runtime.__dict__["FINALIZATION_RETRY_PROMPT"] = ASKS
    for name in ("nanobot", "nanobot.utils"):
        monkeypatch.setitem(sys.modules, name, type(sys)(name))
    monkeypatch.setitem(sys.modules, runtime.__name__, runtime)


def test_prompts_are_put_back_behind_what_they_stood_behind() -> None:
    asks = {"role": "user", "content": f"{ASKS} More."}
    cut = {"role": "assistant", "content": "half of"}
    messages = [*conversation(3, 5), cut, asks, dict(cut), asks]
    lifted, asked = lift_prompts(messages, (ASKS,))
    assert lifted == [message for message in messages if message is not asks]
    assert restore_prompts(lifted, asked, lifted[-1]) == messages
    shortened = [lifted[0], {"role": "assistant", "content": "…"}]
    assert restore_prompts(shortened, asked, lifted[-1]) == [*shortened, asks]
    assert lift_prompts(lifted, (ASKS,))[0] is lifted
    assert lift_prompts(messages, ())[0] is messages


@pytest.mark.usefixtures("_prompts")
def test_the_task_stays_when_nanobot_asks_for_an_answer_behind_it(
    classes: NanobotClasses, install: Callable[..., installer.Status]
) -> None:
    install(classes)
    script = Script(LLMResponse("fine"))
    asks = {"role": "user", "content": ASKS}
    messages = [*conversation(40, 300), {"role": "user", "content": "the task"}, asks]
    call(make_provider(classes, script), messages=messages, max_tokens=500)
    sent = script.sent[0]
    assert len(sent) < len(messages)
    assert sent[-2:] == [{"role": "user", "content": "the task"}, asks]


def test_a_consolidation_that_is_too_long_keeps_the_memory_and_part_of_every_entry(
    classes: NanobotClasses, install: Callable[..., installer.Status], generation: str
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
