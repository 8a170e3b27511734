"""Summaries that arrive late, twice, out of order or never: each message is covered or shown.

Left out: messages that are cleared or changed, which `Session` does not allow, and texts (rather
than `Summary`s) of anything but the newest hand-out, which cannot say what they cover.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from nanobot_context import Session
from nanobot_context.history import assemble_history
from nanobot_context.summary import Summarizer, Summary, SummaryRequest, wrap_summary

from .histories import Message

# A failing case is long, and is wanted all the same.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


@dataclass
class Making:
    """A summary in the making: what was handed out, and what it follows."""

    evicted: list[Message]
    previous: Summary | None
    is_newest: bool = True


class Schedules(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.session = Session(key="cli:direct")
        self.said: list[Message] = []
        self.making: list[Making] = []
        self.made: list[Summary] = []
        # What the text of each summary stands for, by its text: numbers of messages.
        self.tells: dict[str, set[int]] = {}
        self.seen = (0, 0)

    # What is said.

    def say(self, role: str, **fields: object) -> None:
        message: Message = {"role": role, "content": f"m{len(self.said)}", **fields}
        message["n"] = len(self.said)
        self.said.append(copy.deepcopy(message))
        self.session.messages.append(message)

    @rule(count=st.integers(1, 6), calls=st.lists(st.integers(0, 3), max_size=3))
    def rounds_are_added(self, count: int, calls: list[int]) -> None:
        for _ in range(count):
            self.say("user")
            for results in calls:
                self.tools_are_called(results, answered=results)
            self.say("assistant")

    @rule(results=st.integers(1, 3), answered=st.integers(0, 3))
    def tools_are_called(self, results: int, answered: int) -> None:
        """Some results may be missing: the turn was stopped, or goes on."""
        ids = [f"call_{len(self.said)}_{n}" for n in range(results)]
        function = {"name": "exec", "arguments": "{}"}
        calls = [{"id": id_, "type": "function", "function": function} for id_ in ids]
        self.say("assistant", tool_calls=calls)
        for id_ in ids[:answered]:
            self.say("tool", tool_call_id=id_)

    @rule(role=st.sampled_from(["user", "assistant", "system"]))
    def something_is_said(self, role: str) -> None:
        self.say(role)

    # What is made of it.

    @rule(limit=st.integers(1, 12), keep=st.integers(0, 6))
    def it_is_trimmed(self, limit: int, keep: int) -> None:
        was_in_progress = self.session.summary_in_progress
        previous = self.session.summary
        evicted, is_due = self.session.trim_if_needed(limit, keep)
        assert is_due == bool(evicted)
        assert not (was_in_progress and is_due)
        if is_due:
            assert self.session.summary_in_progress
            covered = previous.covers if previous else 0
            assert [m["n"] for m in evicted] == list(range(covered, covered + len(evicted)))
            for one in self.making:
                one.is_newest = False
            self.making.append(Making(evicted, previous))

    @precondition(lambda self: self.making)
    @rule(data=st.data(), how=st.sampled_from(["model", "error", "empty", "refused", "rules"]))
    def a_summary_arrives(self, data: st.DataObject, how: str) -> None:
        """Any of those in the making, also one that was given up."""
        making = self.making.pop(data.draw(st.integers(0, len(self.making) - 1)))
        calls = 0

        def call(request: SummaryRequest) -> str:
            nonlocal calls
            calls += 1
            if how == "error":
                raise ConnectionError("no route to the model")
            if how == "refused" and calls == 1:
                raise RuntimeError("This model's maximum context length is 10 tokens.")
            return "" if how == "empty" else f"summary {len(self.made)}"

        summarizer = Summarizer(None if how == "rules" else call, timeout_seconds=None)
        summary = summarizer.summarize(making.evicted, previous=making.previous)
        # The text has to be told from others.
        self.made.append(replace(summary, text=f"summary {len(self.made)}: {summary.text}"))
        self.note(making, self.made[-1].text)
        self.accept(self.made[-1])

    @precondition(lambda self: self.making and self.making[-1].is_newest)
    @rule(text=st.sampled_from(["text", "", " \n"]))
    def a_text_arrives(self, text: str) -> None:
        """For the newest hand-out; document 000 knows no other way."""
        making = self.making.pop()
        before = self.session.summary
        was_in_progress = self.session.summary_in_progress
        given = f"text {len(self.tells)}" if text == "text" else text
        self.note(making, given)
        taken = self.session.update_summary(given)
        assert not taken or (was_in_progress and text == "text")
        assert taken or self.session.summary is before
        if was_in_progress and text == "text":
            assert taken

    @precondition(lambda self: self.made)
    @rule(data=st.data())
    def a_summary_arrives_again(self, data: st.DataObject) -> None:
        self.accept(data.draw(st.sampled_from(self.made)))

    @rule(version=st.integers(0, 50), more=st.integers(1, 9))
    def a_summary_of_another_conversation_arrives(self, version: int, more: int) -> None:
        foreign = Summary("of another conversation", len(self.said) + more, version)
        assert not self.session.update_summary(foreign)

    @rule()
    def it_fails(self) -> None:
        """Or is cancelled: what was in the making may still arrive."""
        before = self.session.summary
        self.session.summary_failed()
        assert not self.session.summary_in_progress
        assert self.session.summary is before
        for one in self.making:
            one.is_newest = False

    @rule(loses_making=st.booleans())
    def it_is_started_again(self, loses_making: bool) -> None:
        """From what is stored: messages and summary, as JSON."""
        session = self.session
        summary = session.summary and session.summary.to_dict()
        stored = json.loads(json.dumps({"messages": session.messages, "summary": summary}))
        self.session = Session(session.key, stored["messages"])
        if stored["summary"] is not None:
            self.session.summary = Summary.from_dict(stored["summary"])
            assert self.session.summary == session.summary
        for one in self.making:
            one.is_newest = False
        if loses_making:
            self.making.clear()

    def note(self, making: Making, text: str) -> None:
        follows = self.tells[making.previous.text] if making.previous else set()
        self.tells[text] = follows | {message["n"] for message in making.evicted}

    def accept(self, summary: Summary) -> None:
        before = self.session.summary
        if self.session.update_summary(summary):
            assert self.session.summary is summary
            assert before is None or summary.version > before.version
        else:
            assert self.session.summary is before
            assert before is not None, "the first one is always newer"
        assert not self.session.summary_in_progress

    # What holds after each step.

    @invariant()
    def each_message_is_covered_or_shown(self) -> None:
        summary = self.session.summary
        covered = self.tells[summary.text] if summary else set()
        assert covered == set(range(summary.covers if summary else 0))
        history = assemble_history(self.session.messages, summary=summary)
        front = [m for m in history if m["role"] == "system" and m.get("n", -1) in covered]
        told = [m for m in history if "n" not in m]
        shown = [m for m in history if "n" in m and m not in front]
        # Instructions at the very start are shown whatever is covered.
        assert [m["n"] for m in front] == list(range(len(front)))
        assert [m["content"] for m in told] == ([wrap_summary(summary.text)] if summary else [])
        assert [m["n"] for m in shown] == list(range(len(covered), len(self.said)))
        assert all(m is self.session.messages[m["n"]] for m in shown)

    @invariant()
    def the_sessions_own_history_is_the_same(self) -> None:
        session = self.session
        if session.summary is None and not session.summary_in_progress:
            return  # then it is nanobot's
        covers = session.summary.covers if session.summary else 0
        shown = [message["content"] for message in self.said[covers:]]
        assert [message["content"] for message in session.get_history()] == shown
        assert [message["content"] for message in session.get_history(0)] == shown

    @invariant()
    def no_call_is_parted_from_its_result(self) -> None:
        covers = self.session.summary.covers if self.session.summary else 0
        if 0 < covers < len(self.said):
            assert self.said[covers]["role"] == "user"

    @invariant()
    def a_summary_is_only_followed_by_a_newer_one(self) -> None:
        summary = self.session.summary
        now = (summary.version, summary.covers) if summary else (0, 0)
        assert now[0] >= self.seen[0]
        assert now[1] >= self.seen[1]
        self.seen = now

    @invariant()
    def no_message_is_changed_or_gone(self) -> None:
        assert self.session.messages == self.said


TestSchedules = Schedules.TestCase
TestSchedules.settings = settings(stateful_step_count=40)
