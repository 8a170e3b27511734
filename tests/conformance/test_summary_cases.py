"""What the suites of documents 002 and 003's originals check of summaries, case by case.

trpc-agent-go's *Summarizer* and chatos_rs's engine, splitter, token budget and triggers; their
workers and previous responses are in `tests/python/unit/test_jobs.py` and `test_history.py`, their
stores in the store contract. Different on purpose:

- "no events" and "no text" are no errors: the summary says that there was nothing.
- an error of the model is no error of the summary: it is told by rules, and says why.
- a previous summary is no event that counts towards a threshold.
- input above the budget is parted, not cut to its newest messages before the model sees it.
- truncation is between characters; the original panicked on 265 of 400 Chinese budgets.
- "exceeded your current token quota" is no overflow; the limit that an error states is taken as
  stated, not less 2,048.
- of two summaries the prompt of the original said nothing; ours are told apart.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from nanobot_context import detect_overflow
from nanobot_context.summary import (
    Summarizer,
    SummaryPolicy,
    SummaryRequest,
    Trigger,
    keep_last_cut,
    summary_due,
)

Message = dict[str, Any]


def message(role: str, text: str = "text", **more: Any) -> Message:
    return {"role": role, "content": text, **more}


def call(identifier: str) -> Message:
    function = {"name": "f", "arguments": "{}"}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": identifier, "type": "function", "function": function}],
    }


def result(identifier: str) -> Message:
    return message("tool", "result", tool_call_id=identifier)


class Model:
    """Answers with a fixed text what is short enough for it."""

    def __init__(self, window_chars: int = 1_000_000, answer: str = "summary") -> None:
        self.window_chars = window_chars
        self.answer = answer
        self.prompts: list[list[Message]] = []

    def __call__(self, request: SummaryRequest) -> str:
        if sum(len(one["content"]) for one in request.messages) > self.window_chars:
            raise RuntimeError("This model's maximum context length is exceeded")
        self.prompts.append(request.messages)
        return self.answer


# trpc-agent-go: summarizer, checker ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("trigger", "count", "fires"),
    [
        (Trigger.messages(gt=10), 10, False),
        (Trigger.messages(gt=10), 11, True),
        (Trigger.any(Trigger.messages(gt=10), Trigger.messages(gt=2)), 3, True),
        (Trigger.all(Trigger.messages(gt=10), Trigger.messages(gt=2)), 3, False),
        (Trigger.all(), 1, True),
        (Trigger.any(), 1, False),
        (Trigger.all(), 0, False),
    ],
)
def test_should_summarize(trigger: Trigger, count: int, fires: bool) -> None:
    assert (trigger.fires(messages=count) is not None) is fires


def test_tokens_count_each_message_once() -> None:
    messages = [message("user", "word " * 100)] * 3
    assert summary_due(messages, trigger=Trigger.tokens(gt=290)) is None, "all but the last six"
    policy = SummaryPolicy(keep_last=0)
    assert summary_due(messages, policy=policy, trigger=Trigger.tokens(gt=290)) is not None
    assert summary_due(messages, policy=policy, trigger=Trigger.tokens(gt=330)) is None


def test_events_are_not_changed_and_the_whole_conversation_is_fed() -> None:
    events = [message("user", "first"), message("assistant", "second"), message("user", " ")]
    before, model = copy.deepcopy(events), Model()
    Summarizer(model).summarize(events)
    assert events == before
    assert "user: first\nassistant: second" in model.prompts[0][-1]["content"]


@pytest.mark.parametrize("events", [[], [message("user", "")]])
def test_no_events_and_no_text_ask_no_model(events: list[Message]) -> None:
    model = Model()
    summary = Summarizer(model).summarize(events)
    assert (model.prompts, summary.made_by, summary.error) == ([], "local", None)


def test_placeholders_are_replaced_and_without_words_removed() -> None:
    for words, shown in ((50, "50"), (0, "")):
        model = Model()
        prompt = "{conversation_text} in [{max_summary_words}]"
        Summarizer(model, prompt=prompt, max_words=words).summarize([message("user", "hi")])
        assert model.prompts[0][0]["content"] == f"user: hi in [{shown}]"


def test_the_previous_summary_comes_first_and_only_new_events_follow() -> None:
    model = Model()
    summarizer = Summarizer(model)
    first = summarizer.summarize([message("user", "old words")])
    summarizer.summarize([message("user", "new words")], previous=first)
    told = model.prompts[1][-1]["content"]
    assert told.index("summary") < told.index("new words")
    assert "user: old words" not in told


def test_forcing_skips_the_checks_but_not_the_errors() -> None:
    assert summary_due([message("user")], cause="force") == (1, "force")

    def broken(request: SummaryRequest) -> str:
        raise ConnectionError("refused")

    assert Summarizer(broken).summarize([message("user")]).error == "ConnectionError: refused"


# chatos_rs: engine --------------------------------------------------------------------------------

LONG = [message("user" if at % 2 == 0 else "assistant", f"{at} " * 60) for at in range(32)]


def test_bisect_recovers_from_an_overflow() -> None:
    summary = Summarizer(Model(window_chars=3_000)).summarize(LONG)
    assert (summary.made_by, summary.truncated) == ("model", False)
    assert summary.chunks > 1


def test_the_depth_guard_truncates() -> None:
    policy = SummaryPolicy(bisect_max_depth=1, bisect_min_messages=1)
    summary = Summarizer(Model(window_chars=900), policy=policy).summarize(LONG)
    assert (summary.truncated, summary.max_depth) == (True, 1)


def test_an_error_that_is_no_overflow_is_not_bisected() -> None:
    calls: list[SummaryRequest] = []

    def limited(request: SummaryRequest) -> str:
        calls.append(request)
        raise RuntimeError("Rate limit reached for gpt-4o: Limit 30000 tokens per minute")

    assert Summarizer(limited).summarize(LONG).made_by == "local"
    assert len(calls) == 1


def test_an_overflow_retry_keeps_nothing_back() -> None:
    assert summary_due(LONG, cause="overflow_retry") == (32, "overflow_retry")
    off = SummaryPolicy(retry_on_overflow=False)
    assert summary_due(LONG, policy=off, cause="overflow_retry") is None


# chatos_rs: splitter, tail ------------------------------------------------------------------------


def test_no_split_between_a_call_and_its_output() -> None:
    talk = [message("user", "x " * 100)]
    for number in range(12):
        talk += [call(str(number)), result(str(number))]
    model = Model(window_chars=1_100)
    Summarizer(model).summarize(talk)
    leaves = [prompt[-1]["content"] for prompt in model.prompts]
    for leaf in (leaf for leaf in leaves if "called f" in leaf):
        assert leaf.count("called f") == leaf.count("f returned")


def test_too_few_messages_are_not_split() -> None:
    summary = Summarizer(Model(window_chars=10)).summarize(LONG[:4])
    assert (summary.chunks, summary.truncated) == (1, True)


def test_the_kept_tail_begins_with_the_call() -> None:
    talk = [message("user"), call("a"), result("a"), result("b"), message("user")]
    assert keep_last_cut(talk, keep=2) == 1
    assert keep_last_cut(talk, keep=5) is None
    assert keep_last_cut(talk, keep=0) == 5


def test_proactive_thresholds_are_reached_not_passed() -> None:
    assert summary_due(LONG[:10], policy=SummaryPolicy(message_limit=10)) == (4, "message_limit")
    assert summary_due(LONG[:10], policy=SummaryPolicy(message_limit=11)) is None
    by_tokens = SummaryPolicy(message_limit=0, max_context_tokens=10)
    assert summary_due(LONG[:10], policy=by_tokens) == (4, "token_limit")
    off = SummaryPolicy(message_limit=0, max_context_tokens=0)
    assert summary_due(LONG, policy=off) is None


# chatos_rs: token budget --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "is_overflow"),
    [
        ("context_length_exceeded", True),
        ("input exceeds the context window", True),
        ("This model's maximum context length is 128000 tokens", True),
        ("Rate limit reached for requests", False),
        ("You exceeded your current token quota", False),
    ],
)
def test_overflow_texts_are_recognised(text: str, is_overflow: bool) -> None:
    assert (detect_overflow(text) is not None) is is_overflow


def test_a_limit_in_an_error_is_read() -> None:
    overflow = detect_overflow("This model's maximum context length is 128000 tokens")
    assert overflow is not None
    assert overflow.limit_tokens == 128_000


def test_chinese_is_cut_between_characters_at_every_budget() -> None:
    model = Model(answer="这是一个很长的摘要，包含很多内容。" * 60)
    for target in range(1, 200, 7):
        policy = SummaryPolicy(target_tokens=target)
        summary = Summarizer(model, policy=policy).summarize([message("user", "你好")])
        assert summary.truncated
        summary.text.encode("utf-8")


def test_content_of_every_form_is_read() -> None:
    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "x"}}]
    model = Model()
    Summarizer(model).summarize([{"role": "user", "content": parts}])
    assert "user: look\n[image]" in model.prompts[0][-1]["content"]
