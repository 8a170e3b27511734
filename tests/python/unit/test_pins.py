"""What stays whole because somebody said so: files, messages, all below a line."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from nanobot_context import (
    Compressor,
    ContextOverflowError,
    Settings,
    compress_messages,
    count_tokens,
    emergency_compress,
    fit_messages,
)
from nanobot_context._core import standing_rules

MODEL = "gpt-4o"
WINDOW = 8_000
PINNED = Settings(pinned=["AGENTS.md", "docs/*.md"])


def text(words: int, seed: int) -> str:
    drawn = random.Random(seed)
    return " ".join(f"w{drawn.randrange(10_000)}" for _ in range(words))


def said(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": content}


def read(path: str, content: str, number: int, tool: str = "read_file") -> list[dict[str, Any]]:
    function = {"name": tool, "arguments": json.dumps({"path": path})}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": content},
    ]


def talk(turns: int, seed: int = 0) -> list[dict[str, Any]]:
    return [
        said(role, text(150, seed + turn * 2 + i))
        for turn in range(turns)
        for i, role in enumerate(("user", "assistant"))
    ]


RULES_FILE = text(500, 1_000)
OLD_FILE = text(500, 2_000)


def worked() -> list[dict[str, Any]]:
    return [
        said("system", "You are of help."),
        said("user", "Look around."),
        *read("/work/AGENTS.md", OLD_FILE, 1),
        *read("/work/AGENTS.md", RULES_FILE, 2),
        *read("/work/other.md", text(500, 3_000), 3),
        said("assistant", "Done."),
        *talk(30),
        said("user", "Go on."),
    ]


def contents(messages: list[dict[str, Any]]) -> str:
    """Return all that is said: messages of the user may have become one."""
    return "\n\n".join(message["content"] or "" for message in messages)


def test_the_last_read_of_a_pinned_file_stays_whole() -> None:
    messages = worked()
    assert RULES_FILE not in contents(compress_messages(messages, WINDOW, MODEL))
    for shown in (
        compress_messages(messages, WINDOW, MODEL, settings=PINNED),
        Compressor(WINDOW, MODEL, settings=PINNED).compress(messages),
        emergency_compress(messages, WINDOW, MODEL, settings=PINNED),
        fit_messages(messages, 4_000, MODEL, settings=PINNED).messages,
    ):
        assert RULES_FILE in contents(shown)
        assert OLD_FILE not in contents(shown)
        assert count_tokens(shown, MODEL) <= WINDOW * 0.85


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("str_replace_based_edit_tool", {"command": "view", "path": "/work/AGENTS.md"}),
        ("str_replace_editor", {"command": "view", "path": "/work/AGENTS.md"}),
        ("get_file_contents", {"path": "AGENTS.md"}),
        ("fs_read", {"operations": [{"mode": "Line", "path": "AGENTS.md"}]}),
        ("read_text", {"path": "AGENTS.md"}),
        ("fetch_file", {"path": "AGENTS.md"}),
        ("read_many_files", {"paths": ["README.md", "/work/AGENTS.md"]}),
        ("read_file", {"paths": ["AGENTS.md"]}),
        ("readFile", {"relative_workspace_path": "AGENTS.md"}),
        ("Bash", {"command": "cd /work && cat AGENTS.md"}),
        ("shell", {"command": ["bash", "-lc", "sed -n '1,200p' AGENTS.md"]}),
        ("exec", {"command": "head -n 100 AGENTS.md"}),
    ],
)
def test_a_pinned_file_is_read_by_any_tool(tool: str, arguments: dict[str, Any]) -> None:
    call = {"name": tool, "arguments": json.dumps(arguments)}
    messages = worked()
    messages[4]["tool_calls"][0]["function"] = call
    shown = compress_messages(messages, WINDOW, MODEL, settings=PINNED)
    assert RULES_FILE in contents(shown)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("str_replace_based_edit_tool", {"command": "create", "path": "/work/AGENTS.md"}),
        ("get_file_info", {"path": "AGENTS.md"}),
        ("Bash", {"command": "cat > AGENTS.md"}),
        ("Bash", {"command": "python lint.py AGENTS.md"}),
    ],
)
def test_what_does_not_read_a_file_is_not_pinned(tool: str, arguments: dict[str, Any]) -> None:
    messages = worked()
    messages[4]["tool_calls"][0]["function"] = {"name": tool, "arguments": json.dumps(arguments)}
    shown = compress_messages(messages, WINDOW, MODEL, settings=PINNED)
    assert RULES_FILE not in contents(shown)


def changing(tool: str, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    call = read("", "done", 9, tool)
    call[0]["tool_calls"][0]["function"]["arguments"] = json.dumps(arguments)
    return call


NEW = text(200, 6_000)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Edit", {"file_path": "/work/AGENTS.md", "old_string": "a", "new_string": NEW}),
        ("edit_file", {"path": "AGENTS.md", "old_text": "a", "new_text": NEW}),
        (
            "str_replace_editor",
            {"command": "insert", "path": "/work/AGENTS.md", "insert_line": 1, "new_str": NEW},
        ),
        ("apply_patch", {"input": f"*** Begin Patch\n*** Update File: AGENTS.md\n+{NEW}\n"}),
        ("Bash", {"command": f"cd /work && sed -i 's/a/{NEW}/' AGENTS.md"}),
        ("shell", {"command": ["apply_patch", f"*** Update File: AGENTS.md\n+{NEW}"]}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_was_changed_in_a_pinned_file_stays_beside_its_read(
    tool: str, arguments: dict[str, Any]
) -> None:
    messages = worked()
    messages[6:6] = changing(tool, arguments)
    shown = compress_messages(messages, WINDOW, MODEL, settings=PINNED)
    assert RULES_FILE in contents(shown)
    assert NEW in str(shown)
    assert NEW not in str(compress_messages(messages, WINDOW // 2, MODEL))
    # Once it is read again, the read has it.
    messages[8:8] = read("/work/AGENTS.md", f"{NEW} {RULES_FILE}", 10)
    shown = compress_messages(messages, WINDOW, MODEL, settings=PINNED)
    assert f"{NEW} {RULES_FILE}" in contents(shown)
    assert str(shown).count(NEW) == 1


def test_a_pinned_file_that_was_written_anew_stays_as_it_was_written() -> None:
    messages = worked()
    written = {"path": "/work/AGENTS.md", "content": text(600, 6_001)}
    messages[6:6] = changing("write_file", written)
    shown = compress_messages(messages, WINDOW, MODEL, settings=PINNED)
    assert written["content"] in str(shown)
    assert RULES_FILE not in contents(shown)
    messages[8:8] = changing("delete_file", {"path": "/work/AGENTS.md"})
    assert written["content"] not in str(
        compress_messages(messages, WINDOW, MODEL, settings=PINNED)
    )


def test_a_pinned_result_is_not_cut_for_its_size() -> None:
    large = text(900, 7)
    messages = [said("user", "Look."), *read("docs/a.md", large, 1), *talk(20), said("user", "Go.")]
    assert count_tokens([said("user", large)], MODEL) > WINDOW * 0.3
    shown = compress_messages(messages, WINDOW, MODEL, settings=PINNED)
    assert large in contents(shown)


def test_what_is_pinned_and_does_not_fit_gives_way() -> None:
    large = text(20_000, 7)
    messages = [said("user", "Look."), *read("docs/a.md", large, 1), *talk(20), said("user", "Go.")]
    shown = compress_messages(messages, WINDOW, MODEL, settings=PINNED)
    assert large not in contents(shown)
    assert count_tokens(shown, MODEL) <= WINDOW * 0.85


def test_of_pinned_files_the_newest_stay_where_all_are_too_many() -> None:
    files = [text(700, 9_000 + number) for number in range(6)]
    reads = [one for i, file in enumerate(files) for one in read(f"docs/{i}.md", file, i)]
    messages = [said("user", "Look."), *reads, *talk(20), said("user", "Go.")]
    shown = contents(compress_messages(messages, WINDOW, MODEL, settings=PINNED))
    kept = [file in shown for file in files]
    assert kept == sorted(kept)
    assert kept[-1]
    assert not kept[0]


@pytest.mark.parametrize("marker", ["#pin", "#PIN", "#固定", "＃固定：", "#Pin:"])
def test_a_message_with_the_marker_stays_whole(marker: str) -> None:
    paste = text(400, 5)
    for content in (
        f"{marker} This is it.\n{paste}",
        f"See below.\n\n{marker}\n{paste}",
        f"\ufeff{marker} This is it.\n{paste}",
        f"\n  {marker}\n{paste}",
    ):
        messages = [*talk(4), said("user", content), said("assistant", "Yes."), *talk(30, 500)]
        messages += [said("user", "Go on.")]
        assert content in contents(compress_messages(messages, WINDOW, MODEL))
        unmarked = [{**one, "content": one["content"].replace(marker, "Well")} for one in messages]
        shown = contents(compress_messages(unmarked, WINDOW, MODEL))
        assert content.replace(marker, "Well") not in shown


@pytest.mark.parametrize("word", ["#pinned", "# pin", "x #pin", "#Pin-up", "pin"])
def test_other_words_are_no_marker(word: str) -> None:
    content = f"{word} {text(400, 5)}"
    messages = [*talk(4), said("user", content), said("assistant", "Yes."), *talk(30, 500)]
    shown = compress_messages([*messages, said("user", "Go on.")], WINDOW, MODEL)
    assert content not in contents(shown)


def test_only_the_user_pins() -> None:
    content = f"#pin {text(400, 5)}"
    messages = [*talk(4), said("user", "Well?"), said("assistant", content), *talk(30, 500)]
    shown = compress_messages([*messages, said("user", "Go on.")], WINDOW, MODEL)
    assert content not in contents(shown)


def test_a_pinned_line_is_a_rule() -> None:
    line = "#pin The gate code is 4711"
    assert standing_rules([f"Hello.\n{line}\nBye."]) == [[line]]
    [[rule]] = standing_rules([f"\ufeff{line}\nBye."])
    assert rule.endswith(line)


def test_a_request_begins_as_the_one_before_with_pins_too() -> None:
    messages = worked()
    compressor = Compressor(WINDOW, MODEL, settings=PINNED)
    changes, before = 0, compressor.compress(messages)
    for turn in range(20):
        messages += [said("assistant", text(60, 40_000 + turn)), said("user", "And then?")]
        now = compressor.compress(messages)
        assert RULES_FILE in contents(now)
        assert now == compress_messages(messages, WINDOW, MODEL, settings=PINNED)
        assert compress_messages(now, WINDOW, MODEL, settings=PINNED) == now
        changes += now[: len(before)] != before
        before = now
    assert changes <= 4


def test_only_what_is_above_is_cut() -> None:
    messages = worked()
    above = len(messages) - 30
    most = count_tokens(messages, MODEL) // 2
    shown = fit_messages(messages, most, MODEL, above=above).messages
    assert shown[-30:] == messages[-30:]
    assert count_tokens(shown, MODEL) <= most
    assert fit_messages(messages, most, MODEL).messages[-30:] != messages[-30:]


def test_a_call_is_not_parted_from_what_is_below() -> None:
    messages = [*talk(8), said("user", "Look."), *read("a.md", text(400, 1), 1)]
    messages += [said("assistant", "Ah."), said("user", "Go.")]
    # The index is that of the result.
    shown = fit_messages(messages, 2_400, MODEL, above=len(messages) - 3).messages
    assert shown[-4:] == messages[-4:]


def test_what_is_kept_and_too_large_is_named() -> None:
    messages = worked()
    with pytest.raises(ContextOverflowError) as raised:
        fit_messages(messages, 2_000, MODEL, above=4)
    assert raised.value.parts["kept"] > 2_000
    assert sum(raised.value.parts.values()) == raised.value.needed_tokens


def test_an_overflow_names_the_largest_tools() -> None:
    def tool(name: str, words: int) -> dict[str, Any]:
        return {"type": "function", "function": {"name": name, "description": text(words, words)}}

    tools = [tool("small", 5), tool("large", 900), tool("some", 90), tool("more", 60)]
    with pytest.raises(ContextOverflowError, match=r"with `large` \d+ and `some`") as raised:
        compress_messages([said("user", "Hi. " * 800)], 1_000, MODEL, tools=tools)
    assert list(raised.value.largest_tools) == ["large", "some", "more"]
    assert sum(raised.value.largest_tools.values()) < raised.value.parts["tools"]


@pytest.mark.parametrize("indent", [None, 1, 2])
def test_what_pasted_json_says_is_no_rule_of_the_users(indent: int | None) -> None:
    rows = [{"id": number, "note": "do not edit", "tags": ["never", "x"]} for number in range(20)]
    said = "Answer in bullet points only."
    assert standing_rules([json.dumps(rows, indent=indent) + f"\n{said}"]) == [[said]]
    assert standing_rules([f'"Never" means never.\n{said}'])[0][-1] == said


STATEMENTS = [
    "Never push to main.",
    "I have a nut allergy.",
    "Tabs, not spaces.",
    "Ask me before you spend any money.",
    "Our fiscal year starts in October.",
    "No emojis please.",
    "We are a team of three.",
    "Call me Sam, not Samantha.",
    "anything over 200 bucks needs my ok",
    "My landlord is Mr Achterberg, he speaks only Dutch.",
    "The passports are in the second drawer of the white cabinet in the hall.",
]


@pytest.mark.parametrize(
    "routine",
    [
        "How is the weather in {city} today, item {i}?",
        "Show me the report for {city}, number {i}.",
        "{city} 오늘 날씨 어때요? 항목 {i}",
        "查一下{city}的天气，第{i}项。",
    ],
)
def test_what_is_said_in_passing_stays_before_routine(routine: str) -> None:
    drawn, messages = random.Random(1), []
    for i in range(150):
        text = routine.format(city=drawn.choice(["Lima", "Graz", "Oslo", "Quito"]), i=i)
        if i % 8 == 3 and i // 8 < len(STATEMENTS):
            statement = STATEMENTS[i // 8]
            text = f"{text}\n{statement}" if i % 16 == 3 else f"{statement.rstrip('.')} {text}"
        answer = f"It is mild, number {i}; light wind, some clouds, and nothing special all day."
        messages += [said("user", text), said("assistant", answer)]
    messages.append(said("user", routine.format(city="Oslo", i=999)))
    kept = "\n".join(m["content"] for m in fit_messages(messages, 1_500).messages)
    assert [statement for statement in STATEMENTS if statement.rstrip(".") not in kept] == []
