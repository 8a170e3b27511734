"""The report page as a file: what is in it, and that nothing of a conversation is markup.

`tests/browser` opens it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from nanobot_context import Archive, InvalidArgumentError, compress_messages, events, report
from nanobot_context.conversations import Conversation
from nanobot_context.guard.record import RequestRecord, Sent, SentCut
from nanobot_context.host.message_keys import known_by, message_key
from nanobot_context.host.stored_summary import mark_of
from nanobot_context.replay import replay
from nanobot_context.report import report_page, write_report
from nanobot_context.report.render import render
from nanobot_context.tools import largest_tools

Message = dict[str, Any]

HOSTILE = (
    "</script x><script y>alert(1)</script><!--<script>\u2028\u2029{{data}} ${1}\x00\ud800 & \u202e"
)


class Elements(HTMLParser):
    """What a browser's parser would find: scripts, styles and the policy."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.inside: list[tuple[dict[str, str | None], str]] = []
        self.policy = ""
        self.is_open = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        attributes = dict(attrs)
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"] or ""
        self.inside.append((attributes | {"tag": tag}, ""))
        self.is_open = True

    def handle_endtag(self, tag: str) -> None:
        self.is_open = False

    def handle_data(self, data: str) -> None:
        if self.is_open:
            attributes, text = self.inside[-1]
            self.inside[-1] = (attributes, text + data)

    def all(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [found for found in self.inside if found[0]["tag"] == tag]

    @property
    def data(self) -> dict[str, Any]:
        (text,) = [text for found, text in self.all("script") if found.get("id") == "data"]
        # Nothing that ends the element, whatever a browser takes for that.
        assert not set(text) & set("<>&\u2028\u2029")
        data = json.loads(text)
        assert isinstance(data, dict)
        return data


def a_conversation(messages: list[Message], **changes: Any) -> Conversation:
    known: dict[str, Any] = {"name": "cli:direct", "metadata": {}, "source": "cli_direct.jsonl"}
    return Conversation(messages=messages, **{**known, **changes})


def two_turns(content: str = "Hello.") -> list[Message]:
    return [
        {"role": "user", "content": content},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": "On I go."},
    ]


def elements(conversation: Conversation, **options: Any) -> Elements:
    page = report_page(conversation, replay(conversation.messages, 8_000, "gpt-4o"), **options)
    return Elements(page.decode())


def test_the_page_is_one_file_that_asks_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    replayed = write_report(a_conversation(two_turns()), path, window_tokens=8_000, model="gpt-4o")
    assert replayed == replay(two_turns(), 8_000, "gpt-4o")
    page = path.read_text(encoding="utf-8")
    found = Elements(page)
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", page)
    assert not [attributes for attributes, _ in found.inside if "src" in attributes]
    assert {attributes["href"] for attributes, _ in found.inside if "href" in attributes} == {
        "data:,",
        "#messages",
    }


def test_the_policy_allows_the_scripts_and_styles_of_the_page_and_nothing_else() -> None:
    found = elements(a_conversation(two_turns()))
    directives = dict(part.strip().partition(" ")[::2] for part in found.policy.split(";"))
    assert directives.pop("default-src") == "'none'"
    hashes = {
        kind: {
            f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
            for attributes, text in found.all(tag)
            if attributes.get("type") != "application/json"
        }
        for kind, tag in (("script-src", "script"), ("style-src", "style"))
    }
    assert len(hashes["script-src"]) > 1
    assert set(directives.pop("script-src").split()) == hashes["script-src"]
    assert set(directives.pop("style-src").split()) == hashes["style-src"]
    assert directives == {
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "",
    }


def test_no_text_of_a_conversation_is_markup() -> None:
    call = {"id": HOSTILE, "type": "function", "function": {"name": HOSTILE, "arguments": HOSTILE}}
    messages: list[Message] = [
        {"role": "user", "content": HOSTILE},
        {
            "role": "assistant",
            "content": HOSTILE,
            "tool_calls": [call],
            "reasoning_content": HOSTILE,
        },
        {"role": "tool", "tool_call_id": HOSTILE, "name": HOSTILE, "content": HOSTILE},
    ]
    event = {"session": None, "at": HOSTILE, "kind": HOSTILE, "model": HOSTILE}
    learned = {HOSTILE: {"window_tokens": 1, "ratios": {HOSTILE: 1.1}}}
    hostile = a_conversation(messages, name=HOSTILE, source=HOSTILE)
    found = elements(hostile, events=[event, {**event, "kind": "learned"}], learned=learned)
    plain = elements(a_conversation(two_turns()))
    assert found.tags == plain.tags
    assert found.policy == plain.policy
    title, *_ = [text for attributes, text in found.all("title")]
    assert title.startswith("</script x><script y>alert(1)")
    data = found.data
    assert data["name"] == data["source"] == HOSTILE
    assert HOSTILE in data["texts"]
    assert data["learned"][0]["model"] == HOSTILE


def test_the_same_conversation_gives_the_same_bytes() -> None:
    conversation = a_conversation(two_turns(HOSTILE))
    replayed = replay(conversation.messages, 8_000)
    assert report_page(conversation, replayed) == report_page(conversation, replayed)


def test_each_text_is_on_the_page_once_and_a_long_one_only_in_part() -> None:
    long = "".join(f"line {n} of it\n" for n in range(30_000))
    found = elements(a_conversation([*two_turns(long), *two_turns("Hello again.")]))
    data = found.data
    assert len(data["texts"]) == len(set(data["texts"]))
    first = data["texts"][data["messages"][0][4]]
    assert first.startswith(long[:200_000])
    assert first.endswith(f"[{len(long) - 200_000:,} more characters are in the session]")
    assert data["messages"][1][4:] == data["messages"][5][4:]


def test_columns_say_what_the_replay_says() -> None:
    messages = [{"role": "system", "content": "You help."}, *two_turns("word " * 4_000)] * 3
    replayed = replay(messages, 8_000, "gpt-4o")
    data = elements(a_conversation(messages)).data
    assert (data["window"], data["counted"], data["isRecord"]) == (8_000, "exact", False)
    assert data["parts"] == ["system", "schemas", "user", "assistant", "tool"]
    for row, request in zip(data["requests"], replayed.requests, strict=True):
        assert row[1:4] == [request.turn, 0, request.position]
        assert (sum(row[4]), sum(row[5])) == (request.tokens_before, request.tokens_after)
        assert (row[7], row[10]) == (request.reused_tokens, "over" if request.over else "")
        assert row[16] == list(request.restored)
    cuts = [cut for request in replayed.requests for cut in request.cuts]
    assert cuts
    assert data["cuts"] == [
        [
            *(number, cut.index, cut.reason, cut.tokens_after, list(cut.kept), cut.kept_in),
        ]
        for number, request in enumerate(replayed.requests)
        for cut in request.cuts
    ]
    assert all(data["messages"][cut.index][3] == cut.tokens_before for cut in cuts)


def test_a_message_has_one_count_in_all_recorded_requests_and_all_are_the_providers() -> None:
    messages = two_turns("word " * 400)
    ours = [fate.tokens for fate in replay(messages, 8_000, "gpt-4o").messages]

    def record(at: str, tokens_before: int, tokens_after: int) -> RequestRecord:
        cut = SentCut(1, "user", None, "budget", tokens_before, tokens_after, len("word " * 400))
        return RequestRecord(
            *(at, "cli:direct", False, "gpt-4o", "gpt-4o", 8_000, "x", 50, 2, 3, 900),
            *((Sent(500),), "answered"),
            cuts=(cut,),
            roles="uau",
            anchor=2,
            anchor_key=message_key(messages[1]),
        )

    records = [record("2026-01-01", 850, 790), record("2026-01-02", ours[0] * 2, 300)]
    found = Elements(report_page(a_conversation(messages), None, records=records).decode())
    assert [row[3] for row in found.data["messages"]] == [own * 2 for own in ours]
    assert [row[3] for row in found.data["cuts"]] == [790, 300]


def test_the_messages_of_a_request_are_as_large_as_the_provider_says_they_are_together() -> None:
    messages = two_turns("word " * 400)
    system = {"role": "system", "content": "You help."}
    keys = tuple(known_by(message) for message in (system, *messages))
    roles = "s" + "".join(message["role"][0] for message in messages)
    record = RequestRecord(
        *("2026-01-01", "cli:direct", False, "gpt-4o", "gpt-4o", 8_000, "x", 50, 2, len(roles)),
        *(650, (Sent(650, is_reported=True),), "answered", 650),
        roles=roles,
        keys=keys,
    )
    # Nobody has reported one that was stopped before its answer.
    stopped = replace(record, attempts=(Sent(650),), prompt_tokens=None, outcome="interrupted")
    cut = replace(record, tokens_before=651, is_shortened=True)
    page = report_page(a_conversation(messages), None, records=[record, cut, stopped])
    data = Elements(page.decode()).data
    assert sum(row[3] for row in data["messages"]) == pytest.approx(600, abs=len(messages))
    assert [row[-3:-1] for row in data["requests"]] == [[True, True], [True, False], [False, False]]


def test_what_was_kept_is_counted_as_a_browser_counts() -> None:
    text = "".join(f"\U0001f600 line {n} of it\n" for n in range(2_000))
    call = {"id": "a", "type": "function", "function": {"name": "exec", "arguments": "{}"}}
    messages: list[Message] = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": text},
        {"role": "assistant", "content": "Done."},
    ]
    (cut,) = replay(messages, 8_000, "gpt-4o").requests[-1].cuts or (None,)
    rows = elements(a_conversation(messages)).data["cuts"]
    (kept,) = [row[4] for row in rows if row[4]][:1]
    units = text.encode("utf-16-le")
    for start, stop in zip(kept[::2], kept[1::2], strict=True):
        piece = units[2 * start : 2 * stop].decode("utf-16-le")
        assert piece in text
        assert piece.startswith("\U0001f600")
    assert cut is None or cut.index == 2


def test_every_phrase_of_the_page_has_a_chinese_one() -> None:
    folder = Path(report.__file__).parent
    known = json.loads((folder / "zh.json").read_text(encoding="utf-8"))
    scripts = "\n".join(path.read_text(encoding="utf-8") for path in folder.glob("*.js"))
    used = set(re.findall(r'\b(?:t|parts)\("((?:[^"\\]|\\.)+)"', scripts))
    used |= {f"{{0}} {noun}s" for noun in re.findall(r'plural\([^"\n]*?, "(\w+)"\)', scripts)}
    used |= set(re.findall(r'fact\("([^"]+)"', scripts))
    markup = (folder / "page.html").read_text(encoding="utf-8")
    used |= {text.strip() for text in re.findall(r">([^<>{}]*[a-z][^<>{}]*)<", markup)}
    used |= set(re.findall(r'(?:aria-label|placeholder)="([^"]+)"', markup))
    used -= {"Home", "End", "Shift", "Enter", "Esc", "Language"}
    assert len(used) > 80
    assert sorted(used - set(known)) == []
    holes = {phrase: sorted(re.findall(r"\{\d\}", phrase)) for phrase in known}
    assert {phrase: sorted(re.findall(r"\{\d\}", known[phrase])) for phrase in known} == holes


def test_events_of_other_sessions_are_left_out() -> None:
    lines: list[dict[str, Any]] = [
        {"session": session, "at": "2026-01-01T00:00:00", "kind": "learned", "value": value}
        for value, session in enumerate(["cli:direct", "cli:other", None])
    ]
    for name, metadata in (
        ("cli:direct", {}),
        ("cli_direct.jsonl", {}),
        ("upload.jsonl", {"key": "cli:direct"}),
    ):
        found = elements(a_conversation(two_turns(), name=name, metadata=metadata), events=lines)
        assert [lesson["value"] for lesson in found.data["learned"]] == [0, 2]


def test_event_objects_are_taken_as_they_come() -> None:
    happened = [
        events.LearnedEvent(model="m", what="ratio", value=1.1, script="western", at="then"),
        events.SummarisedEvent(
            status="stored", made_by="model", version=2, covers=3, duration_ms=5, at="then"
        ),
    ]
    data = elements(a_conversation(two_turns()), events=happened).data
    assert data["learned"] == [
        {"at": "then", "model": "m", "what": "ratio", "script": "western", "value": 1.1}
    ]
    (summary,) = data["summaries"]
    assert (summary["version"], summary["covers"], summary["text"]) == (2, 3, None)


@pytest.mark.parametrize(
    "line",
    [
        {},
        {"kind": 7},
        {"kind": "learned", "value": float("nan")},
        {"kind": "summary", "version": [], "content": "none"},
        {"kind": "learned", "value": {}, "what": None},
        {"kind": "learned", "value": float("inf"), "model": None},
    ],
    ids=str,
)
def test_lines_that_anybody_may_have_written_do_no_harm(line: dict[str, Any]) -> None:
    assert elements(a_conversation(two_turns()), events=[line]).data["requests"]


def test_the_summary_that_nanobot_keeps_is_shown() -> None:
    messages = two_turns()
    state = {"version": 4, "covers": 2, "made_by": "local", "last": mark_of(messages[1])}
    kept = {"summary": "They said hello.", "summary_state": state}
    for metadata in (kept, {"_type": "metadata", "metadata": kept}):
        (summary,) = elements(a_conversation(messages, metadata=metadata)).data["summaries"]
        assert summary["text"] == "They said hello."
        assert (summary["version"], summary["covers"], summary["status"]) == (4, 2, "in use")
    for broken in ({"summary": "alone"}, {"metadata": None}, {"metadata": {"summary": 1}}):
        assert elements(a_conversation(messages, metadata=broken)).data["summaries"] == []


def test_a_session_of_a_workspace_names_the_originals_that_are_there(tmp_path: Path) -> None:
    text = "".join(f"line {n} of a long result\n" for n in range(2_000))
    call = {"id": "a", "type": "function", "function": {"name": "exec", "arguments": "{}"}}
    messages: list[Message] = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "name": "exec", "content": text},
        {"role": "assistant", "content": "Done."},
    ]
    directory = tmp_path / ".nanobot-context" / "results"
    source = str(tmp_path / "sessions" / "cli_direct.jsonl")
    conversation = a_conversation(messages, source=source)
    page = tmp_path / "page.html"

    def kept_in() -> list[str | None]:
        replayed = write_report(conversation, page, window_tokens=8_000, model="gpt-4o")
        assert replayed is not None
        return [cut.kept_in for request in replayed.requests for cut in request.cuts]

    assert kept_in() == [None]
    archive = Archive(directory, shown=".nanobot-context/results")
    compress_messages(messages, 8_000, "gpt-4o", archive=archive)
    (file,) = directory.glob("*.txt")
    assert kept_in() == [f".nanobot-context/results/{file.name}"]
    file.unlink()
    assert kept_in() == [None]
    assert list(directory.glob("*.txt")) == []


def test_the_model_and_the_tools_of_a_request_body_count(tmp_path: Path) -> None:
    schema = {"type": "function", "function": {"name": "read_file", "parameters": {}}}
    conversation = a_conversation(two_turns(), model="gpt-4o", tools=[schema])
    told: list[tuple[int, int]] = []
    replayed = write_report(
        conversation,
        tmp_path / "page.html",
        window_tokens=8_000,
        on_request=lambda done, of: told.append((done, of)),
    )
    assert replayed is not None
    assert replayed.model == "gpt-4o"
    assert replayed.requests[0].before["tools"] > 0
    assert told == [(1, 3), (2, 3), (3, 3)]
    data = render(conversation, replayed, [], {})
    assert data["tools"] == largest_tools([schema], "gpt-4o")


def test_a_report_that_cannot_be_made_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError):
        write_report(a_conversation(two_turns()), tmp_path / "page.html", window_tokens=0)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_conversation_has_a_page() -> None:
    data = elements(a_conversation([])).data
    assert (data["requests"], data["messages"], data["texts"]) == ([], [], [])
