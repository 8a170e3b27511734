"""The command line as other programs use it: processes, pipes, exit codes, JSON."""

from __future__ import annotations

import functools
import json
import os
import re
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from command_line import CommandLine, started
from nanobot_context import (
    Compressor,
    SessionService,
    __version__,
    count_tokens,
    emergency_compress,
    fit_messages,
)
from nanobot_context.cli import output, protect
from nanobot_context.cli.app import COMMANDS, SESSION_COMMANDS
from nanobot_context.cli.protect import _print_status
from nanobot_context.cli.render import print_records
from nanobot_context.conversations import Conversation
from nanobot_context.doctor import Report
from nanobot_context.guard.counters import Counts
from nanobot_context.guard.fuse import BlownFuse
from nanobot_context.guard.limits import ProviderLimits, learned_file
from nanobot_context.guard.record import Outcome, Sent, SentCut
from nanobot_context.guard.record_file import read_records, record_file
from nanobot_context.guard.status import PatchPoint, Status
from nanobot_context.guard.windows import WindowResolver
from nanobot_context.host.message_keys import known_by, message_key
from nanobot_context.json_text import position_of
from nanobot_context.replay import replay
from nanobot_context.sessions import SessionEvent
from nanobot_context.settings import load_settings
from records import LAST

pytestmark = pytest.mark.timeout(600)

TOOLS = [{"type": "function", "function": {"name": "read_file", "parameters": {}}}]


def conversation(turns: int = 12) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You read logs."}]
    for turn in range(turns):
        function = {"name": "read_file", "arguments": json.dumps({"path": f"/logs/{turn}.log"})}
        call = {"id": f"c{turn}", "type": "function", "function": function}
        lines = "\n".join(f"{turn}:{line} node {line % 7} 重试 disk full" for line in range(120))
        messages += [
            {"role": "user", "content": f"What failed on day {turn}?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{turn}", "content": lines},
            {"role": "assistant", "content": f"Node {turn % 7} failed.", "extra": {"n": turn}},
        ]
    return [*messages, {"role": "user", "content": "Which node failed most often?"}]


MESSAGES = conversation()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return the folder that commands run in; it is the user's home, too."""
    (tmp_path / "chat.json").write_text(json.dumps(MESSAGES, ensure_ascii=False))
    return tmp_path


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if "NANOBOT" not in key}
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        kept.pop(name, None)
    return {**kept, "HOME": str(home), **more}


def start(home: Path, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    environ = environment(home, **options.pop("environ", {}))
    pipes = {name: subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
    command = [sys.executable, "-m", "nanobot_context", *arguments]
    return subprocess.Popen(command, cwd=home, env=environ, text=False, **{**pipes, **options})


CLOSED_AT_END = ExitStack()


@functools.cache
def command_line() -> CommandLine:
    return CLOSED_AT_END.enter_context(started(environment(Path())))


@pytest.fixture(scope="module", autouse=True)
def at_end() -> Iterator[None]:
    """End the process that runs the commands."""
    with CLOSED_AT_END:
        yield
        command_line.cache_clear()


def run(
    home: Path, *arguments: str, code: int = 0, given: bytes = b"", **options: Any
) -> tuple[str, str]:
    """Run a command that must end with `code`, and return what it printed."""
    environ = options.get("environ", {})
    # How Python starts is up to a process of its own, and so are streams that are no pipes.
    if sys.platform != "linux" or set(options) - {"environ"} or "PYTHON" in str(environ):
        with start(home, *arguments, **options) as process:
            printed = process.communicate(given, timeout=500)
        ended = process.returncode
    else:
        variables = environment(home, **environ)
        ended, printed = command_line().run([*arguments], given, home, variables)
    out, err = (text.decode() for text in printed)
    assert ended == code, out + err
    assert "Traceback" not in err
    assert "\x1b" not in out + err
    return out, err


def loaded(home: Path, *arguments: str, **options: Any) -> Any:
    return json.loads(run(home, *arguments, "--json", **options)[0])


# Help --------------------------------------------------------------------------------------------

NAMES = [command.__name__ for commands in COMMANDS.values() for command in commands]
SESSIONS = [command.__name__.rstrip("_") for command in SESSION_COMMANDS]


ALL_PAGES = """
import sys
from nanobot_context.cli.app import run
for words in sys.argv[1:]:
    sys.argv[1:] = [*words.split(), "--help"]
    run()
    print("<end>")
"""


def test_every_command_explains_itself_with_an_example() -> None:
    commands = [*NAMES, *(f"sessions {name}" for name in SESSIONS)]
    arguments = [sys.executable, "-c", ALL_PAGES, *commands]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert not done.stderr
    pages = done.stdout.split("<end>\n")
    for words, page in zip(commands, pages[:-1], strict=True):
        assert f"Usage: nanobot-context {words} " in page
        assert re.search(rf"Examples?:\n +(.* )?nanobot-context {words}\b", page)
        assert "--json" in page
        assert not re.search("[╭│╰─]", page)
        assert max(map(len, page.splitlines())) <= 80, page


def test_the_first_page_names_every_command_whole(home: Path) -> None:
    out, _ = run(home, "--help")
    assert all(re.search(rf"^  {name} +\S.*\.$", out, re.MULTILINE) for name in NAMES)
    assert "..." not in out.partition("Commands:")[2]


@pytest.mark.parametrize("words", [["nosuch"], ["count"], ["count", "x", "--nosuch"]], ids="-".join)
def test_what_is_no_command_ends_with_2(home: Path, words: list[str]) -> None:
    out, err = run(home, *words, code=2)
    assert not out
    assert "Usage: nanobot-context" in err


def test_without_typer_it_says_what_to_install(home: Path) -> None:
    code = (
        "import sys; sys.modules['typer'] = None\n"
        "from nanobot_context.__main__ import main; sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "needs `typer`" in done.stderr
    assert "pip install 'nanobot-context[cli]'" in done.stderr


# Count -------------------------------------------------------------------------------------------


def test_count_says_what_the_function_says(home: Path) -> None:
    tokens = count_tokens(MESSAGES, "gpt-4o")
    out, err = run(home, "count", "chat.json", "--model", "gpt-4o")
    assert out.startswith(f"{tokens:,} tokens in {len(MESSAGES)} messages (gpt-4o, exact); ")
    assert not err
    found = loaded(home, "count", "chat.json", "-m", "claude-sonnet-4", "--by-message")
    assert found["tokens"] == count_tokens(MESSAGES, "claude-sonnet-4")
    assert (found["counted"], found["window_tokens"]) == ("estimated", 200_000)
    assert [one["role"] for one in found["by_message"]] == [one["role"] for one in MESSAGES]
    start = count_tokens([], "claude-sonnet-4")
    assert start + sum(one["tokens"] for one in found["by_message"]) == found["tokens"]


def test_count_reads_a_request_body_from_standard_input(home: Path) -> None:
    body = {"model": "deepseek-chat", "messages": MESSAGES, "tools": TOOLS}
    found = loaded(home, "count", "-", given=json.dumps(body).encode())
    assert found["model"] == "deepseek-chat"
    assert found["tokens"] == count_tokens(MESSAGES, "deepseek-chat", tools=TOOLS)
    assert found["source"] == "standard input"


def test_a_table_in_a_pipe_is_whole_and_aligned(home: Path) -> None:
    out, _ = run(home, "count", "chat.json", "--by-message")
    head, *rows = out.splitlines()[: len(MESSAGES) + 1]
    end = head.index("tokens") + len("tokens")
    for row, message in zip(rows, MESSAGES, strict=True):
        tokens = row[:end].split()[-1]
        assert row[end - len(tokens) : end + 1].strip() == tokens
        assert message["role"] in row
    assert 100 < max(map(len, rows)) < 200, "wider than a terminal of 80, and short enough to read"
    assert not any(row.endswith(" ") for row in rows)


# Compress ----------------------------------------------------------------------------------------


def test_compress_writes_what_the_compressor_makes(home: Path) -> None:
    out, err = run(home, "compress", "chat.json", "--window", "8000")
    assert json.loads(out) == Compressor(8_000).compress(MESSAGES) != MESSAGES
    assert not err
    out, _ = run(home, "compress", "chat.json", "--window", "8000", "--emergency")
    assert json.loads(out) == emergency_compress(MESSAGES, 8_000)
    out, _ = run(home, "compress", "chat.json", "--model", "gpt-4o")
    assert json.loads(out) == MESSAGES


def test_compress_fits_exactly(home: Path) -> None:
    fitted = fit_messages(MESSAGES, 3_000, "gpt-4o")
    found = loaded(home, "compress", "chat.json", "--max-tokens", "3000", "-m", "gpt-4o")
    assert found["messages"] == fitted.messages
    receipt = found["receipt"]
    assert receipt["tokens_after"] == fitted.tokens <= 3_000
    assert receipt["tokens_before"] == count_tokens(MESSAGES, "gpt-4o")
    assert [(cut["index"], cut["reason"]) for cut in receipt["cuts"]] == [
        (cut.index, cut.reason) for cut in fitted.receipt.cuts
    ]
    assert [one["text"] for one in receipt["lost"]] == [one.text for one in fitted.receipt.lost]


def test_what_compress_writes_can_be_read_again(home: Path) -> None:
    run(home, "compress", "chat.json", "-w", "8000", "-o", "small.json")
    out, _ = run(home, "compress", "small.json", "-w", "8000")
    assert json.loads(out) == json.loads((home / "small.json").read_text())


def claudes() -> dict[str, Any]:
    """Return the same conversation as the body of a request to Anthropic."""
    messages: list[dict[str, Any]] = []
    for message in MESSAGES[1:]:
        role, content = message["role"], message["content"]
        if message.get("tool_calls"):
            (call,) = message["tool_calls"]
            function = call["function"]
            given = {"name": function["name"], "input": json.loads(function["arguments"])}
            content = [{"type": "tool_use", "id": call["id"], **given}]
        elif role == "tool":
            result = {"type": "tool_result", "tool_use_id": message["tool_call_id"]}
            role, content = "user", [{**result, "content": content}]
        messages.append({"role": role, "content": content})
    tool = {"name": "read_file", "description": "Reads.", "input_schema": {"type": "object"}}
    system = MESSAGES[0]["content"]
    return {"model": "claude-sonnet-4-5", "system": system, "messages": messages, "tools": [tool]}


def test_a_body_of_anthropics_is_counted_with_its_system_prompt(home: Path) -> None:
    body = claudes()
    (home / "claude.json").write_text(json.dumps(body))
    (home / "list.json").write_text(json.dumps(body["messages"]))
    model = ("--model", body["model"])
    told = loaded(home, "count", "claude.json", "--by-message")
    assert [one["role"] for one in told["by_message"][:4]] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]
    listed = loaded(home, "count", "list.json", *model)
    assert listed["tokens"] == count_tokens(MESSAGES[1:], body["model"])
    assert listed["messages"] == told["messages"] == len(body["messages"])
    assert [one["index"] for one in told["by_message"][:3]] == [None, 0, 1]
    function = {**body["tools"][0], "parameters": {"type": "object"}}
    del function["input_schema"]
    tools = [{"type": "function", "function": function}]
    assert told["tokens"] == count_tokens(MESSAGES, body["model"], tools=tools)


@pytest.mark.parametrize("options", [["--window", "8000"], ["--max-tokens", "6000"]])
def test_a_body_of_anthropics_is_compressed_in_its_own_form(home: Path, options: list[str]) -> None:
    body = claudes()
    (home / "claude.json").write_text(json.dumps(body))
    made = loaded(home, "compress", "claude.json", *options)
    messages, receipt = made["messages"], made["receipt"]
    assert {message["role"] for message in messages} == {"user", "assistant"}
    assert messages[-1] == body["messages"][-1]
    assert receipt["tokens_after"] <= 8_000 < receipt["tokens_before"]
    for cut in receipt["cuts"]:
        message = body["messages"][cut["index"]]
        assert ("tool_result" in str(message)) == (cut["role"] == "tool")
        assert (message["role"] == "assistant") == (cut["role"] == "assistant")
    _, err = run(home, "compress", "claude.json", *options, "--receipt")
    first = receipt["cuts"][0]
    assert err.split()[:2] == [str(first["index"] + 1), first["role"]]
    assert f"{len(body['messages'])} → {len(messages)} messages" in err


def test_only_what_is_above_a_place_of_anthropics_messages_is_cut(home: Path) -> None:
    body = claudes()
    (home / "claude.json").write_text(json.dumps(body))
    above = len(body["messages"]) - 5
    made = loaded(home, "compress", "claude.json", "--max-tokens", "9000", "--above", str(above))
    assert made["messages"][-5:] == body["messages"][-5:]
    assert max(cut["index"] for cut in made["receipt"]["cuts"]) < above


def test_a_conversation_of_anthropics_is_replayed(home: Path) -> None:
    (home / "claude.json").write_text(json.dumps(claudes()))
    told = loaded(home, "inspect", "claude.json", "--window", "8000")
    assert [fate["role"] for fate in told["messages"]] == [one["role"] for one in MESSAGES]
    assert all(request["error"] is None for request in told["requests"])
    run(home, "report", "claude.json", "-o", "page.html", "--window", "8000")
    assert "nanobot_context.part" not in (home / "page.html").read_text()


def test_messages_are_numbered_as_in_the_list_that_was_read(home: Path) -> None:
    call = {"type": "tool_use", "name": "f", "input": {}}
    result = {"type": "tool_result", "content": "ok"}
    both = [{**result, "tool_use_id": id_} for id_ in "ab"]
    messages = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [{**call, "id": "a"}]},
        {"role": "assistant", "content": [{**call, "id": "b"}]},
        {"role": "user", "content": [*both, {"type": "text", "text": "And?"}]},
    ]
    (home / "late.json").write_text(json.dumps({"system": "You help.", "messages": messages}))
    told = loaded(home, "count", "late.json", "--by-message")
    assert told["messages"] == 4
    assert [one["index"] for one in told["by_message"]] == [None, 0, 1, 2, 3, 3, 3]
    out, _ = run(home, "count", "late.json", "--by-message")
    numbers = [line.split()[0] for line in out.splitlines()[1:8]]
    assert numbers == ["0", "1", "2", "3", "4", "4", "4"], "the system prompt has a turn alone"
    assert "tokens in 4 messages" in out


def test_items_of_responses_are_counted_and_compressed(home: Path) -> None:
    from nanobot_context.responses import to_response_items

    items = to_response_items(MESSAGES[1:])
    body = {"model": "gpt-5", "instructions": MESSAGES[0]["content"], "input": items}
    (home / "items.json").write_text(json.dumps(body))
    (home / "items.jsonl").write_text("\n".join(json.dumps(item) for item in items))
    assert loaded(home, "count", "items.json")["tokens"] == count_tokens(MESSAGES, "gpt-5")
    assert loaded(home, "count", "items.jsonl")["messages"] == len(items)
    assert loaded(home, "count", "items.jsonl", "--model", "gpt-5")["tokens"] == count_tokens(
        MESSAGES[1:], "gpt-5"
    )
    made = loaded(home, "compress", "items.json", "--window", "8000")["messages"]
    calls = [item["call_id"] for item in made if item.get("type") == "function_call"]
    outputs = [item["call_id"] for item in made if item.get("type") == "function_call_output"]
    assert calls == outputs != []
    assert made[-1] == items[-1]


def test_a_bad_message_of_another_form_is_refused_with_its_place(home: Path) -> None:
    body = claudes()
    body["messages"][2]["content"][0]["content"] = 5
    (home / "claude.json").write_text(json.dumps(body, indent=1))
    _, err = run(home, "count", "claude.json", code=2)
    text = (home / "claude.json").read_text()
    line = text.count("\n", 0, position_of(text, 0, "messages", 2)) + 1
    assert f"line {line:,}, " in err
    assert "`messages[2].content` has a block of a shape that Anthropic's API" in err


def test_a_receipt_and_a_summary_go_to_standard_error(home: Path) -> None:
    out, err = run(home, "compress", "chat.json", "-w", "8000", "-o", "small.json", "--receipt")
    assert not out
    made = json.loads((home / "small.json").read_text())
    assert re.search(r"^ +4  tool +[\d,]+ → +[\d,]+  (many results|\d+ rounds? ago)$", err, re.M)
    before, after = count_tokens(MESSAGES), count_tokens(made)
    assert f"\n{before:,} → {after:,} tokens" in err
    _, err = run(home, "compress", "chat.json", "-w", "128000", "--receipt")
    assert err.startswith("nothing was cut\n")


def test_an_output_file_is_the_owners_and_the_old_one_stays_when_it_cannot_be_written(
    home: Path,
) -> None:
    target = home / "small.json"
    target.write_text("old")
    (home / "link.json").symlink_to(target)
    run(home, "compress", "chat.json", "-w", "8000", "-o", "link.json")
    assert (home / "link.json").is_symlink()
    assert json.loads(target.read_text())
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    for path in ("/dev/full", "nosuch/small.json", "."):
        _, err = run(home, "compress", "chat.json", "-w", "8000", "-o", path, code=2)
        assert err.startswith(f"error: `{path}`: ")
    assert {path.name for path in home.iterdir()} >= {"small.json", "link.json", "chat.json"}
    assert not list(home.glob(".*part"))


def test_what_is_no_file_is_written_to_and_stays_what_it_is(home: Path) -> None:
    run(home, "compress", "chat.json", "-w", "8000", "-o", "/dev/null")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    os.mkfifo(home / "fifo")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((home / "fifo").read_text()))
    reader.start()
    run(home, "compress", "chat.json", "-w", "8000", "-o", "fifo")
    reader.join()
    assert json.loads(read[0]) == Compressor(8_000).compress(MESSAGES)


def test_a_conversation_that_cannot_fit_is_a_negative_answer(home: Path) -> None:
    out, err = run(home, "compress", "chat.json", "--max-tokens", "10", code=1)
    assert not out
    assert re.match(r"error: what must stay needs \d+ tokens but 10 are allowed \(last_user", err)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "nothing says how large the window is"),
        (["--max-tokens", "9", "--window", "9"], "`--max-tokens` goes with neither"),
        (["--window", "0"], "Invalid value for '--window'"),
        (["--window", "many"], "Invalid value for '--window'"),
    ],
    ids=["nothing", "both", "zero", "word"],
)
def test_compress_says_what_it_cannot_do(home: Path, words: list[str], problem: str) -> None:
    assert problem in run(home, "compress", "chat.json", *words, code=2)[1]


# Inspect -----------------------------------------------------------------------------------------


def test_inspect_shows_what_the_replay_says(home: Path) -> None:
    played = replay(MESSAGES, 8_000)
    found = loaded(home, "inspect", "chat.json", "-w", "8000")
    assert [one["state"] for one in found["messages"]] == [one.state for one in played.messages]
    assert [one["tokens_after"] for one in found["requests"]] == [
        one.tokens_after for one in played.requests
    ]
    assert (found["window_tokens"], found["budget_tokens"]) == (8_000, 6_800)
    out, _ = run(home, "inspect", "chat.json", "-w", "8000")
    for fate in played.messages:
        tool = f" {fate.tool}" if fate.tool else ""
        row = rf"^ *{fate.index + 1} +{fate.turn}  {fate.role}{tool} +{fate.tokens:,} +"
        state = "" if fate.state == "kept" else f"  {fate.state}: "
        assert re.search(rf"{row}{fate.tokens_after:,}{state}", out, re.M), fate
    cut, _ = run(home, "inspect", "chat.json", "-w", "8000", "--cuts")
    states = [fate.state for fate in played.messages]
    assert cut.count("shortened:") + cut.count("left out:") == len(states) - states.count("kept")
    assert f"{played.requests[-1].tokens_before:,} → {played.requests[-1].tokens_after:,}" in cut


def test_inspect_uses_nanobots_model_and_settings(home: Path) -> None:
    folder = home / ".nanobot"
    folder.mkdir()
    config = {"agents": {"defaults": {"model": "deepseek-chat"}}}
    (folder / "config.json").write_text(json.dumps(config))
    found = loaded(home, "inspect", "chat.json")
    assert (found["model"], found["window_tokens"]) == ("deepseek-chat", 131_072)
    settings = {"contextWindowOverride": 9_000, "contextReserveRatio": 0.5}
    (folder / "nanobot-context.json").write_text(json.dumps(settings))
    found = loaded(home, "inspect", "chat.json")
    assert (found["window_tokens"], found["budget_tokens"]) == (9_000, 4_500)
    found = loaded(home, "inspect", "chat.json", "-w", "7000", "-m", "gpt-4o")
    assert (found["model"], found["window_tokens"]) == ("gpt-4o", 7_000)
    (folder / "nanobot-context.json").write_text('{"contextReserveRatio": 5}')
    _, err = run(home, "inspect", "chat.json")
    assert "`contextReserveRatio` must be a number from 0 to below 1" in err


def test_inspect_says_whose_window_it_uses(home: Path) -> None:
    (home / ".nanobot").mkdir()
    config = home / ".nanobot" / "config.json"
    config.write_text(json.dumps({"agents": {"defaults": {"model": "gpt-4o"}}}))
    windows = WindowResolver(load_settings(config), learned=ProviderLimits(learned_file(config)))
    windows.learn("gpt-4o", 20_000, "http://one:8000/v1")
    windows.learn("gpt-4o", 14_000, "http://two/v1")
    found = loaded(home, "inspect", "chat.json")
    shown = found["window_tokens"], found["window_source"]
    assert shown == (14_000, "the server at two/v1 said so")
    assert (
        "14,000 tokens (gpt-4o, exact), 11,900 for messages and tools; the server at two/v1"
        in (run(home, "inspect", "chat.json")[0])
    )
    assert loaded(home, "inspect", "chat.json", "-w", "7000")["window_source"] == "`--window`"


def test_a_conversation_that_never_fits_is_shown_all_the_same(home: Path) -> None:
    out, _ = run(home, "inspect", "chat.json", "-w", "20")
    assert "too large" in out
    assert run(home, "inspect", "-", "-w", "20", given=b"[]")[0].endswith("there are no messages\n")


# Report ------------------------------------------------------------------------------------------


def test_report_writes_a_page_of_the_conversation(home: Path) -> None:
    found = loaded(home, "report", "chat.json", "-w", "8000")
    page = home / "chat.report.html"
    assert found == {"path": page.name, "bytes": page.stat().st_size}
    assert "Which node failed most often?" in page.read_text()
    events = '{"session": null, "at": "2026-01-01T00:00:00Z", "kind": "compressed"}\n'
    (home / "events.jsonl").write_text(events)
    words = ("report", "-", "-o", "p.html", "-w", "8000", "--events", "events.jsonl")
    out, err = run(home, *words, given=json.dumps(MESSAGES).encode())
    assert out == f"written: p.html ({(home / 'p.html').stat().st_size:,} bytes)\n"
    assert not err
    page_to = ("report", "chat.json", "-w", "8000", "-o")
    run(home, *page_to, "p.html")
    out, err = run(home, *page_to, "-")
    assert out.encode() == (home / "p.html").read_bytes()
    assert not (home / "-").exists()
    assert not err
    assert "neither `--json` nor `--open`" in run(home, *page_to, "-", "--json", code=2)[1]
    (home / "events.jsonl").write_text(f"{events}[]")
    assert "line 2, column 1: expected an object" in run(home, *words, code=2, given=b"[]")[1]


# Sessions ----------------------------------------------------------------------------------------

STORE = ("--store", "sqlite:///sessions.db")


def session_file(folder: Path, key: str, messages: list[dict[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    record = {"_type": "metadata", "key": key, "created_at": "2026-01-01T00:00:00"}
    path = folder / f"{key.replace(':', '_')}.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in (record, *messages)))
    return path


@pytest.fixture
def files(home: Path) -> Path:
    """Return nanobot's folder with two sessions, the older one first by name."""
    folder = home / ".nanobot" / "workspace" / "sessions"
    old = session_file(folder, "cli:direct", MESSAGES)
    os.utime(old, (1_700_000_000, 1_700_000_000))
    session_file(folder, "telegram:7345", MESSAGES[:3])
    return folder


def test_nanobots_sessions_are_listed_the_newest_first(home: Path, files: Path) -> None:
    found = loaded(home, "sessions", "list")
    assert [(one["key"], one["messages"]) for one in found] == [
        ("telegram:7345", 3),
        ("cli:direct", len(MESSAGES)),
    ]
    out, _ = run(home, "sessions", "list")
    assert out.splitlines()[0].split() == ["session", "messages", "kB", "updated"]
    size = (files / "cli_direct.jsonl").stat().st_size
    assert found[1]["bytes"] == size
    assert re.search(rf"^cli:direct +{len(MESSAGES)} +{size // 1000 + 1}  2023-11-1\d ", out, re.M)


def test_rules_that_are_not_kept_are_listed_as_such(home: Path) -> None:
    folder = home / ".nanobot" / "workspace" / "sessions"
    session_file(folder, "cli:direct", [{"role": "user", "content": "Never push to main."}])
    out, err = run(home, "rules", "cli:direct")
    assert "Never push to main." in out
    assert "keepRules" not in err
    (home / ".nanobot" / "nanobot-context.json").write_text('{"keepRules": "no"}')
    out, err = run(home, "rules", "cli:direct")
    assert "Never push to main." in out
    assert "`keepRules` is `false`" in err


def test_an_imported_session_was_updated_when_nanobot_wrote_it(home: Path) -> None:
    path = session_file(home / "old", "cli:direct", MESSAGES)
    first, *rest = path.read_text().splitlines()
    record = json.loads(first) | {"updated_at": "2024-05-06T07:08:09"}
    path.write_text("\n".join([json.dumps(record), *rest]) + "\n")
    run(home, "sessions", "import", str(path), *STORE)
    (found,) = loaded(home, "sessions", "list", *STORE)
    assert found["updated"].startswith("2024-05-06T07:08:09")


def test_a_session_has_one_count_whichever_command_counts_it(home: Path, files: Path) -> None:
    model = "deepseek-chat"
    config = {"agents": {"defaults": {"model": model}}}
    (home / ".nanobot" / "config.json").write_text(json.dumps(config))
    tokens = count_tokens(MESSAGES, model)
    assert tokens != count_tokens(MESSAGES)
    out, _ = run(home, "sessions", "show", "cli:direct")
    assert f"tokens           {tokens:,} ({model}, exact)" in out
    for name in ("cli:direct", str(files / "cli_direct.jsonl")):
        assert loaded(home, "count", name)["tokens"] == tokens
    assert json.loads(run(home, "compress", "cli:direct", "--max-tokens", "99999")[0]) == MESSAGES
    (*_, last) = loaded(home, "inspect", "cli:direct")["requests"]
    assert last["tokens_before"] == tokens


def test_a_session_is_shown_and_can_be_piped_on(home: Path, files: Path) -> None:
    out, _ = run(home, "sessions", "show", "cli:direct", "--last", "1")
    assert f"messages         {len(MESSAGES)}: 24 assistant, 13 user, 12 tool, 1 system\n" in out
    assert out.endswith(f"#{len(MESSAGES)} user\nWhich node failed most often?\n")
    assert "day 3" not in out
    assert "day 3" in run(home, "sessions", "show", "cli:direct", "--full")[0]
    text, _ = run(home, "sessions", "show", "cli:direct", "--json")
    assert json.loads(text)["messages"] == MESSAGES
    found = loaded(home, "count", "-", given=text.encode())
    assert found["tokens"] == count_tokens(MESSAGES)


def test_files_go_into_a_store_and_come_out_as_they_were(home: Path, files: Path) -> None:
    before = {path.name: path.read_bytes() for path in files.iterdir()}
    found = loaded(home, "sessions", "import", str(files), *STORE)
    assert [(one["key"], one["messages"]) for one in found] == [
        ("cli:direct", len(MESSAGES)),
        ("telegram:7345", 3),
    ]
    run(home, "sessions", "import", str(files / "cli_direct.jsonl"), *STORE)
    assert {one["key"]: one["events"] for one in loaded(home, "sessions", "list", *STORE)} == {
        "cli:direct": len(MESSAGES),
        "telegram:7345": 3,
    }
    assert loaded(home, "inspect", "cli:direct", *STORE)["source"] == "sqlite:///sessions.db"
    run(home, "sessions", "export", "-o", "backup", *STORE)
    assert {path.name: path.read_bytes() for path in (home / "backup").iterdir()} == before
    out, _ = run(home, "sessions", "export", "cli:direct", *STORE)
    assert out.encode() == before["cli_direct.jsonl"]
    _, err = run(home, "sessions", "export", "-o", "backup", *STORE, code=2)
    assert "those of the same name are replaced" in err
    run(home, "sessions", "export", "-o", "backup", "--yes", *STORE)


def test_the_configured_store_is_used_where_none_is_named(home: Path, files: Path) -> None:
    config = home / ".nanobot" / "nanobot-context.json"
    config.write_text(json.dumps({"sessionStore": f"sqlite:///{home}/sessions.db"}))
    run(home, "sessions", "import", str(files / "telegram_7345.jsonl"))
    assert [one["key"] for one in loaded(home, "sessions", "list")] == ["telegram:7345"]
    workspace = str(files.parent)
    assert len(loaded(home, "sessions", "list", "--workspace", workspace)) == 2


@pytest.mark.parametrize(
    "content", ["[]", '[{"role": "user", "content": "a"}]', '{"messages": []}', "{", ""]
)
def test_what_is_no_session_file_is_not_imported(home: Path, content: str) -> None:
    (home / "other.jsonl").write_text(content)
    _, err = run(home, "sessions", "import", "other.jsonl", *STORE, code=2)
    assert "`other.jsonl`" in err
    assert not (home / "sessions.db").exists()


def test_files_in_a_folder_for_each_workspace_are_imported(home: Path) -> None:
    text = json.dumps({"role": "user", "content": "hi"}) + "\n"
    for name in ("cli_direct", "cli_other"):
        path = home / "stored" / "workspace-1" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    out, _ = run(home, "sessions", "import", "stored", "--store", "sqlite:///new.db")
    assert out.count("imported: ") == 2
    other = home / "stored" / "workspace-2" / "cli_direct.jsonl"
    other.parent.mkdir()
    other.write_text(text)
    _, err = run(home, "sessions", "import", "stored", "--store", "sqlite:///b.db", code=2)
    assert "workspace-1" in err
    assert "workspace-2" in err


def test_an_import_that_finds_nothing_says_so_by_its_code(home: Path) -> None:
    (home / "empty").mkdir()
    _, err = run(home, "sessions", "import", "empty", "--store", "sqlite:///new.db", code=1)
    assert "nothing to import" in err
    assert "empty" in err


def test_a_file_that_cannot_be_imported_keeps_no_other_out(home: Path, files: Path) -> None:
    (files / "a_broken.jsonl").write_text("{\n")
    out, err = run(home, "sessions", "import", str(files), *STORE, code=2)
    assert "a_broken.jsonl" in err
    assert out.count("imported: ") == 2
    assert len(loaded(home, "sessions", "list", *STORE)) == 2


def test_a_key_that_is_too_long_for_a_name_is_exported(home: Path) -> None:
    key = "telegram:" + "x" * 400
    with SessionService(f"sqlite:///{home}/sessions.db") as service:
        for id_ in (key, "short"):
            session = service.create("nanobot", "default", id_)
            service.append(session, [SessionEvent({"role": "user", "content": "hello"})])
    run(home, "sessions", "export", "-o", "all", *STORE)
    found = loaded(home, "sessions", "import", "all", "--store", "sqlite:///again.db")
    assert sorted(one["key"] for one in found) == sorted([key, "short"])


def test_nothing_is_deleted_that_nobody_was_asked_about(home: Path, files: Path) -> None:
    run(home, "sessions", "import", str(files), *STORE)
    for place in ((), STORE):
        for words in (["delete", "cli:direct"], ["prune", "--older-than", "0s"]):
            _, err = run(home, "sessions", *words, *place, code=2)
            assert "error: not done without an answer: delete th" in err
            assert "`--yes` answers it" in err
            assert len(loaded(home, "sessions", "list", *place)) == 2


def test_sessions_are_deleted_on_request(home: Path, files: Path) -> None:
    (files / "cli_direct.checkpoint.json").write_text("{}")
    run(home, "sessions", "import", str(files), *STORE)
    for place in ((), STORE):
        assert loaded(home, "sessions", "delete", "cli:direct", "-y", *place) == ["cli:direct"]
        assert [one["key"] for one in loaded(home, "sessions", "list", *place)] == ["telegram:7345"]
        _, err = run(home, "sessions", "delete", "cli:direct", "-y", *place, code=2)
        assert "there is no session `cli:direct`" in err
    assert [path.name for path in files.iterdir()] == ["telegram_7345.jsonl"]


def test_a_file_that_a_store_has_taken_over_is_named_when_its_session_is_deleted(
    home: Path, files: Path
) -> None:
    run(home, "sessions", "import", str(files), *STORE)
    out, err = run(home, "sessions", "delete", "cli:direct", "-y", *STORE)
    assert out == "deleted: cli:direct\n"
    assert f"nanobot's file of it is still there: {files}/cli_direct.jsonl\n" in err
    assert not list(home.glob("sessions.db-*"))


def test_damaged_session_files_are_listed_and_can_be_deleted(home: Path, files: Path) -> None:
    (files / "a_b.jsonl").write_bytes(b'{"_type": "metad')
    (files / "c_d.jsonl").write_bytes(b"\xff\xfe\n{")
    found = {one["key"]: one["messages"] for one in loaded(home, "sessions", "list")}
    assert found == {"telegram:7345": 3, "cli:direct": len(MESSAGES), "a:b": 0, "c:d": 2}
    assert "line 1, column 11: not valid JSON" in run(home, "inspect", "a:b", code=2)[1]
    run(home, "sessions", "delete", "a:b", "c:d", "-y")
    assert len(list(files.iterdir())) == 2


def test_one_that_is_missing_keeps_the_others(home: Path, files: Path) -> None:
    run(home, "sessions", "delete", "cli:direct", "nosuch", "-y", code=2)
    assert len(loaded(home, "sessions", "list")) == 2


def test_prune_deletes_what_is_old_and_frees_what_has_expired(home: Path, files: Path) -> None:
    assert loaded(home, "sessions", "prune", "--older-than", "3d", "-y") == ["cli:direct"]
    assert [one["key"] for one in loaded(home, "sessions", "list")] == ["telegram:7345"]
    url = f"sqlite:///{home}/sessions.db"
    for ttl, name in ((0.5, "short"), (0, "long")):
        with SessionService(url, session_ttl_seconds=ttl, cleanup_interval_seconds=0) as service:
            service.create("nanobot", "default", name)
    # Until the clock has gone on; whoever looks at an expired session deletes it.
    time.sleep(0.6)
    _, err = run(home, "sessions", "prune", "--store", url)
    assert err == "expired, and freed: 1\n"
    assert loaded(home, "sessions", "prune", "--older-than", "1w", "-y", "--store", url) == []
    assert [one["key"] for one in loaded(home, "sessions", "list", "--store", url)] == ["long"]
    for words in (["--older-than", "soon"], []):
        run(home, "sessions", "prune", *words, code=2)


def test_a_store_that_is_not_there_is_not_made(home: Path) -> None:
    for words in (["sessions", "list"], ["sessions", "prune"], ["inspect", "a:b"]):
        _, err = run(home, *words, *STORE, code=2)
        assert err == "error: there is no store `sessions.db`\n"
    assert not (home / "sessions.db").exists()


def test_no_command_prints_the_password_of_a_store(home: Path) -> None:
    url = "redis://me:hunter2@127.0.0.1:1/0?password=hunter2"
    folder = home / ".nanobot"
    folder.mkdir()
    (folder / "nanobot-context.json").write_text(json.dumps({"sessionStore": url}))
    for words in (["sessions", "list"], ["sessions", "delete", "x", "-y"], ["inspect", "a:b"]):
        for more in ([], ["--store", url]):
            out, err = run(home, *words, *more, code=2)
            assert "hunter2" not in out + err
    for words in (["status", "--json"], ["doctor"], ["doctor", "--json"]):
        out, err = run(home, *words, code=1)
        assert "hunter2" not in out + err


# Files that nobody should have -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "line 1, column 1: there is nothing in it"),
        (b'[{"role": "user",\n"content": "a', "line 2, column 12: not valid JSON"),
        (b'[{"role": "user",\n"content": "\xff"}]', "line 2, column 13: byte 0xff is not UTF-8"),
        (b'[{"role": "user", "role": "tool"}]', "column 19: not valid JSON: the key `role` stands"),
        (
            b'[{"role": "user", "\x7f\xc2\x9b31m": 1, "\x7f\xc2\x9b31m": 2}]',
            "the key `\ufffd\ufffd",
        ),
        (bytes(range(256)), "line 2, column 118: byte 0x80 is not UTF-8"),
        (None, "`bad`: is a directory"),
    ],
    ids=["empty", "truncated", "bytes", "twice", "escape", "binary", "folder"],
)
def test_a_bad_file_is_refused_in_one_line(home: Path, content: bytes | None, problem: str) -> None:
    path = home / "bad"
    path.mkdir() if content is None else path.write_bytes(content)
    out, err = run(home, "count", "bad", code=2)
    assert not out
    assert err.startswith("error: `bad`")
    assert problem in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["compress", "inspect", "report"])
def test_every_command_refuses_a_bad_file(home: Path, command: str) -> None:
    (home / "bad").write_text('[{"role": "user"\n')
    out, err = run(home, command, "bad", "--window", "9000", code=2)
    assert not out
    assert err.startswith("error: `bad`, line 2, column 1: not valid JSON: expecting ',' delimiter")


def test_a_file_that_may_not_be_read_or_is_not_there_is_named(home: Path) -> None:
    assert run(home, "count", "nosuch", code=2)[1] == "error: `nosuch`: no such file or directory\n"
    _, err = run(home, "inspect", "nosuch", code=2)
    assert "there is no file and no session `nosuch`" in err


def test_a_file_of_100_megabytes_is_counted(home: Path) -> None:
    message = {"role": "user", "content": "disk full on node 7, 重试 " * 4_000}
    line = json.dumps(message, ensure_ascii=False).encode() + b"\n"
    times = 100_000_000 // len(line) + 1
    (home / "huge.jsonl").write_bytes(line * times)
    found = loaded(home, "count", "huge.jsonl")
    start = count_tokens([])
    assert found["tokens"] == start + times * (count_tokens([message]) - start)
    (home / "huge.jsonl").write_bytes(line * (times - 1) + line[:-3])
    assert (
        f"`huge.jsonl`, line {times:,}, column 29: no"
        in run(home, "count", "huge.jsonl", code=2)[1]
    )


def test_texts_cannot_command_the_terminal(home: Path) -> None:
    hostile = "a\x1b]0;title\x07b\x9b31mc\u202ed\x00e"
    messages = [{"role": "user", "content": hostile}]
    path = session_file(home / ".nanobot/workspace/sessions", "a:b", messages)
    for words in (
        *(["count", str(path), "--by-message"], ["inspect", "a:b"], ["sessions", "show", "a:b"]),
        ["sessions", "show", "a:b", "--json"],
    ):
        out, err = run(home, *words)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", out + err)
    assert json.loads(out)["messages"] == messages


def test_half_a_character_goes_through(home: Path) -> None:
    messages = [{"role": "user", "content": "half \ud83d of it"}]
    given = json.dumps(messages).encode()
    out, _ = run(home, "compress", "-", "-w", "9000", given=given)
    assert json.loads(out) == messages
    assert "half \ufffd of it" in run(home, "count", "-", "--by-message", given=given)[0]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_locale_without_the_characters_costs_no_answer(home: Path, encoding: str) -> None:
    environ = {"PYTHONIOENCODING": encoding}
    words = ["count", "chat.json", "--by-message"]
    with start(home, *words, environ=environ) as process:
        out, err = process.communicate(timeout=500)
    assert (process.returncode, err) == (0, b"")
    assert b"?? disk full" in out
    out_text, _ = run(home, "compress", "chat.json", "-w", "8000", environ=environ)
    assert json.loads(out_text) == Compressor(8_000).compress(MESSAGES)


# Pipes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["compress", "large.json", "-w", "10000000"], 0),
        (["count", "large.json", "--by-message"], 0),
        (["inspect", "large.json", "-w", "10000000"], 0),
        (["sessions", "show", "a:b", "--full"], 0),
        (["status", "--json"], 1),
    ],
    ids=lambda words: words[0] if isinstance(words, list) else "",
)
def test_a_reader_that_goes_away_is_no_error(home: Path, words: list[str], code: int) -> None:
    # More than a pipe holds.
    messages = [{"role": "user", "content": f"{n} " + "x" * 500} for n in range(400)]
    (home / "large.json").write_text(json.dumps(messages))
    session_file(home / ".nanobot/workspace/sessions", "a:b", messages)
    with start(home, *words, stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        err = process.stderr.read()
        process.wait(500)
    assert (process.returncode, err) == (code, b"")


def test_closed_and_full_outputs_are_told_in_one_line_or_not_at_all(home: Path) -> None:
    command = f"{sys.executable} -m nanobot_context count chat.json"
    for redirected, code, told in (
        (">&-", 0, ""),
        (">&- 2>&-", 0, ""),
        (">/dev/full", 2, "error: no space left on device\n"),
        ("--json >/dev/full", 2, "error: no space left on device\n"),
    ):
        environ = {**os.environ, "HOME": str(home)}
        shell = ["sh", "-c", f"{command} {redirected}"]
        done = subprocess.run(shell, cwd=home, env=environ, capture_output=True, text=True)
        assert (done.returncode, done.stderr, done.stdout) == (code, told, ""), redirected
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m nanobot_context count - <&-"],
        env=environ,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "there is nothing in it" in done.stderr


def test_every_command_that_prints_has_json(home: Path, files: Path) -> None:
    chat = ["chat.json", "-w", "8000"]
    for words in (
        *(["count", "chat.json"], ["compress", *chat], ["inspect", *chat], ["report", *chat]),
        *(["sessions", "list"], ["sessions", "show", "cli:direct"], ["forget"]),
    ):
        assert loaded(home, *words) is not None
    for words in (["status"], ["doctor"]):
        assert loaded(home, *words, code=1)["protected"] is False


# Protection --------------------------------------------------------------------------------------


def test_enable_and_disable_are_of_their_environment(home: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "env"], cwd=home, check=True)
    # Its own hooks, and everything else from here.
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(home)}
    hook = next((home / "env").glob("lib/*/site-packages")) / "nanobot_context_autoload.pth"

    def run_there(*words: str) -> str:
        command = [str(home / "env/bin/python"), "-m", "nanobot_context", *words]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
        is_first = words == ("enable",)
        assert done.stderr.startswith("nothing is protected yet" if is_first else "")
        assert bool(done.stderr) == is_first, "no nanobot is there"
        return done.stdout

    settings = home / ".nanobot/nanobot-context.json"
    assert run_there("enable") == f"enabled: {hook}\nsettings: {settings}\n"
    assert hook.exists()
    expected = {"hook_file": str(hook), "settings_file": str(settings)}
    assert json.loads(run_there("enable", "--json")) == expected
    assert run_there("disable") == f"removed: {hook}\n"
    assert not hook.exists()
    assert run_there("disable") == "nothing to remove: not enabled in this environment\n"


def test_enable_copies_settings_that_nanobot_would_drop(home: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "env"], cwd=home, check=True)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(home)}
    config = home / ".nanobot/config.json"
    config.parent.mkdir(exist_ok=True)
    defaults = {"contextCompression": False, "model": "gpt-4o", "contextWindowTokens": 9_000}
    config.write_text(json.dumps({"agents": {"defaults": defaults}}), encoding="utf-8")
    settings = config.with_name("nanobot-context.json")
    settings.write_text('{"cacheMb": 5}', encoding="utf-8")
    before = config.read_bytes()

    def run_there(word: str) -> str:
        command = [str(home / "env/bin/python"), "-m", "nanobot_context", word]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
        return done.stdout

    assert run_there("enable").splitlines()[1] == (
        f"settings: {settings} (copied there: contextCompression)"
    )
    assert json.loads(settings.read_bytes()) == {"cacheMb": 5, "contextCompression": False}
    assert run_there("enable").splitlines()[1] == f"settings: {settings}"
    assert config.read_bytes() == before
    assert run_there("disable").splitlines()[1] == f"settings stay: {settings}"


@pytest.mark.parametrize("word", ["--version", "-V"])
def test_the_version_is_said(home: Path, word: str) -> None:
    assert run(home, word)[0] == f"nanobot-context {__version__}\n"


def test_enable_and_disable_need_no_typer(home: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "bare"], cwd=home, check=True)
    package = Path(protect.__file__).parents[2]
    environ = {**os.environ, "PYTHONPATH": str(package), "HOME": str(home)}

    def run_there(word: str, code: int) -> str:
        command = [str(home / "bare/bin/python"), "-m", "nanobot_context", word]
        done = subprocess.run(command, env=environ, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done.stdout

    hook = next((home / "bare").glob("lib/*/site-packages")) / "nanobot_context_autoload.pth"
    settings = home / ".nanobot/nanobot-context.json"
    assert run_there("enable", 0) == f"enabled: {hook}\nsettings: {settings}\n"
    assert hook.exists()
    settings.parent.mkdir()
    settings.with_name("config.json").write_text(
        '{"agents": {"defaults": {"contextCompression": false}}}'
    )
    assert run_there("disable", 0) == f"removed: {hook}\nsettings stay: {settings}\n"
    assert json.loads(settings.read_text()) == {"contextCompression": False}
    run_there("count", 2)


def test_forget_removes_what_was_learned_counted_and_recorded(home: Path) -> None:
    folder = home / ".nanobot" / "nanobot-context"
    folder.mkdir(parents=True)
    names = ("learned.json", "counters.json", "requests.jsonl.1", "requests.jsonl")
    for name in names:
        (folder / name).write_text("{}")
    (folder / "other").write_text("stays")
    out, _ = run(home, "forget")
    assert out == "".join(f"removed: {folder}/{name}\n" for name in names)
    assert [path.name for path in folder.iterdir()] == ["other"]
    assert run(home, "forget")[0] == "nothing to forget\n"


def test_a_report_keeps_the_lessons_of_its_requests_when_the_model_is_another_one(
    home: Path,
) -> None:
    config = home / ".nanobot/config.json"
    learned = ProviderLimits(learned_file(config))
    learned.learn_window(LAST.place, 32_768)
    learned.learn_window("gpt-4o", 64_000)
    config.write_text('{"agents": {"defaults": {"model": "gpt-4o"}}}')
    record_file(config).write(LAST.to_dict())
    session_file(config.parent / "workspace/sessions", "cli:direct", MESSAGES)
    run(home, "report", "cli:direct", "-o", "page.html")
    page = (home / "page.html").read_text()
    assert f'"model":"{LAST.place}"' in page
    assert '"value":64000' not in page


def test_a_session_has_the_requests_of_its_own_workspace(home: Path) -> None:
    config, other = home / ".nanobot/config.json", home / "other"
    config.parent.mkdir()
    folder = session_file(config.parent / "workspace/sessions", "cli:direct", MESSAGES)
    session_file(other / "sessions", "cli:direct", MESSAGES)
    for model, workspace in (("old", None), ("mine", folder.parents[1]), ("theirs", other)):
        shown = str(workspace) if workspace else None
        record_file(config).write(replace(LAST, model=model, workspace=shown).to_dict())
    (home / "copy.jsonl").write_bytes(folder.read_bytes())

    def models(*arguments: str) -> list[str]:
        found = loaded(home, "inspect", *arguments)
        return [one["model"] for one in found["requests"]] if found["recorded"] else []

    assert models("cli:direct") == ["old", "mine"]
    assert models(str(folder)) == ["old", "mine"]
    assert models("cli:direct", "--workspace", str(other)) == ["theirs"]
    assert models(str(other / "sessions" / folder.name)) == ["theirs"]
    # Whose it is nobody knows.
    assert models("copy.jsonl") == []
    store = f"sqlite:///{home / 'elsewhere.db'}"
    run(home, "sessions", "import", str(folder.parent), "--store", store)
    assert models("cli:direct", "--store", store) == []
    settings = config.with_name("nanobot-context.json")
    settings.write_text(json.dumps({"sessionStore": store}))
    assert models("cli:direct") == ["old", "mine", "theirs"]


def test_every_command_looks_at_the_config_that_it_is_given(home: Path) -> None:
    usual, other = home / ".nanobot/config.json", home / "srv/config.json"
    for config, window in ((usual, 8_000), (other, 9_000)):
        config.parent.mkdir()
        config.write_text('{"agents": {"defaults": {"model": "gpt-4o"}}}')
        override = json.dumps({"contextWindowOverride": window, "nothing": 1})
        config.with_name("nanobot-context.json").write_text(override)
        record_file(config).write(replace(LAST, model=str(window)).to_dict())
        session_file(config.parent / "workspace/sessions", f"cli:{window}", MESSAGES)
    other.write_text(json.dumps({"agents": {"defaults": {"workspace": "srv/workspace"}}}))
    given = ("--config", "srv/config.json")
    assert loaded(home, "count", "chat.json")["window_tokens"] == 8_000
    assert loaded(home, "count", "chat.json", *given)["window_tokens"] == 9_000
    assert [one["key"] for one in loaded(home, "sessions", "list", *given)] == ["cli:9000"]
    for command in ("status", "doctor"):
        found = loaded(home, command, "-c", str(other), code=1)
        assert found["config_files"] == [str(other), str(other.with_name("nanobot-context.json"))]
    assert "srv" in run(home, "forget", *given)[0]
    assert [one.model for one in read_records(usual)] == ["8000"]
    problem = "`nowhere.json`: no such file or directory"
    assert problem in run(home, "status", "--config", "nowhere.json", code=2)[1]


def test_doctor_names_problems_and_their_fixes(home: Path) -> None:
    out, _ = run(home, "doctor", code=1)
    assert re.search(r"^python +3\.\d+\.\d+$", out, re.M)
    assert re.search(r"^problem +nanobot is not installed in this environment\n  fix  +", out, re.M)


@pytest.mark.parametrize(
    ("report", "first", "last"),
    [
        (
            Report({}, (), (), Status(installed=True, nanobot_version="0.3.5"), ()),
            "no: run `nanobot-context enable`, then restart nanobot",
            "nanobot-context enable",
        ),
        (
            Report({}, (), (), Status(False, "nanobot cannot be imported here: no"), ()),
            "no: nanobot is not installed in this environment",
            "nanobot-context doctor",
        ),
        (
            Report({}, ("hook",), (), Status(installed=True, nanobot_version="0.3.5"), ()),
            "yes, nanobot 0.3.5",
            "talk to nanobot, then look here again",
        ),
    ],
    ids=["before enable", "no nanobot", "nothing happened yet"],
)
def test_status_is_five_lines_and_ends_with_what_to_do(
    report: Report, first: str, last: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _print_status(report)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        *("protected", "window", "room", "so far", "next")
    ]
    assert lines[0] == f"protected        {first}"
    assert lines[-1] == f"next             {last}"


def test_status_shows_what_was_patched_learned_and_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status = Status(
        installed=True,
        nanobot_version="0.3.5",
        generation="safe-chat",
        points=(PatchPoint("nanobot.providers.base.LLMProvider._safe_chat", "patched", "calls"),),
        window_tokens=65_536,
        window_source="contextWindowOverride",
        learned={
            "qwen at host": {
                "window_tokens": 32_768,
                "output_tokens": 4_096,
                "ratios": {"western": 1.25, "mixed": 1.0},
            },
            "only asked": {"window_tokens": None, "output_tokens": None, "ratios": {}},
        },
        counters=Counts(
            since="2026-11-22T10:00:00+00:00",
            requests=1_234,
            compressions=56,
            tokens_saved=7_890_123,
            overflows=3,
            retries_succeeded=2,
            friendly_errors=1,
            messages_held=5,
            messages_stored_late=3,
            answers=1_200,
            prompt_tokens=40_000_000,
            cached_tokens=30_000_000,
        ),
    )
    report = Report({}, ("/env/hook.pth",), ("/home/config.json",), status, (), last=LAST)
    first = [
        "protected        yes, nanobot 0.3.5",
        "window           65,536 tokens (contextWindowOverride)",
        "room             55,536 tokens for the conversation = 65,536 - 6,000 system and tools - "
        "4,000 answer",
        "so far           1,234 requests since 2026-11-22 10:00:00 UTC; 56 made smaller, "
        "on average by about 140,895 tokens; 3 too large for the provider, 2 of these answered "
        "after a retry, 1 told to the user",
        "session store    5 messages were in memory alone while it did not answer, 3 of them are "
        "stored since",
    ]
    _print_status(report)
    assert capsys.readouterr().out.splitlines() == [
        *first,
        "next             nanobot-context inspect cli:direct shows each request; all of this: "
        "status -v",
    ]
    _print_status(report, verbose=True)
    assert capsys.readouterr().out.splitlines() == [
        *first,
        "summaries        0; 0 failed",
        "reported         40,000,000 prompt tokens in 1,200 answers, "
        "75% of them from the provider's cache",
        "start-up hook    /env/hook.pth",
        "nanobot          0.3.5",
        "config           /home/config.json",
        "learned          qwen at host: window 32,768 tokens, answers of at most 4,096 tokens, "
        "1.25 tokens for one that is counted here (of Western text)",
        "patched          LLMProvider._safe_chat  calls",
    ]


def test_status_of_another_model_than_was_asked_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status = Status(installed=True, nanobot_version="0.3.5", window_tokens=65_536, model="other")
    _print_status(Report({}, ("/env/hook.pth",), (), status, (), newest=LAST))
    out = capsys.readouterr().out
    assert "room             known after the first request to `other`\n" in out
    assert "next             nanobot-context inspect cli:direct shows each request" in out


def test_status_says_what_is_not_protected_not_as_expected_and_failed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status = Status(
        installed=True,
        nanobot_version="9.1",
        is_tested=False,
        generation="safe-chat",
        unguarded=("streamed answers: `LLMProvider._safe_chat_stream` does not exist",),
        points=(PatchPoint("m.SubagentManager._run_subagent", "changed", "is not `async`"),),
        fuses=(BlownFuse("compress a request", "KeyError", 2),),
    )
    report = Report({}, ("/env/hook.pth",), (), status, ())
    assert not report.protected
    _print_status(report, verbose=True)
    out = capsys.readouterr().out.splitlines()
    assert out[:2] == [
        "protected        in part",
        "not protected    streamed answers: `LLMProvider._safe_chat_stream` does not exist",
    ]
    about = "a release that this version was not tested with"
    assert f"nanobot          9.1 ({about})" in out
    assert "changed          SubagentManager._run_subagent  is not `async`" in out
    assert "failed           could not compress a request: KeyError, 2 times" in out


# Passwords ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        "sessions show {}",
        "sessions list {}",
        "sessions list --store {}",
        "sessions prune --older-than {}",
        "sessions delete {} --yes",
        "sessions export {} --store sqlite:///new.db",
        "count {}",
        "report {}",
        "compress {} --max-tokens 900",
        "inspect {}",
        "{}",
    ],
)
@pytest.mark.parametrize("url", ["redis://me:s3cr@cache:1x/0", "redis:/me:s3cr@cache:1/0"])
def test_a_url_in_the_wrong_place_is_not_repeated_with_its_password(
    arguments: str, url: str, home: Path
) -> None:
    out, err = run(home, *arguments.format(url).split(), code=2)
    assert err
    assert "s3cr" not in out + err


@pytest.mark.parametrize(
    ("now", "room"),
    [
        ({}, "55,536 tokens for the conversation = 65,536 - 6,000 system and tools - 4,000 answer"),
        (
            {"window_tokens": 32_768},
            "21,852 tokens for the conversation = 32,768 - 6,000 system and tools - 4,916 answer",
        ),
        (
            {"window_tokens": 128_000},
            "102,800 tokens for the conversation = 128,000 - 6,000 system and tools - "
            "19,200 answer",
        ),
        (
            {"prompt_tokens": 14_000},
            "8,000 tokens for the conversation = 14,000 of a prompt at most - "
            "6,000 system and tools",
        ),
        (
            {"prompt_tokens": 64_000},
            "55,536 tokens for the conversation = 65,536 - 6,000 system and tools - 4,000 answer",
        ),
    ],
)
def test_the_room_is_that_of_the_window_in_force(
    now: dict[str, Any], room: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = Status(installed=True, nanobot_version="0.3.5", **{"window_tokens": 65_536, **now})
    _print_status(Report({}, ("/env/hook.pth",), ("/home/config.json",), status, (), last=LAST))
    assert f"room             {room}" in capsys.readouterr().out.splitlines()


def test_a_larger_window_has_more_room(capsys: pytest.CaptureFixture[str]) -> None:
    rooms = []
    for window in range(10_000, 30_000, 1_000):
        # All of the longest answer has room beside a short conversation from 14,192 tokens on.
        answer = 8_192 if window >= 14_192 else (window - 6_000) // 2
        last = replace(LAST, window_tokens=window, answer_tokens=answer)
        status = Status(installed=True, nanobot_version="0.3.5", window_tokens=window)
        _print_status(Report({}, ("/env/hook.pth",), ("/home/config.json",), status, (), last=last))
        found = re.search(r"^room +([\d,]+) ", capsys.readouterr().out, re.M)
        assert found is not None
        rooms.append(int(found[1].replace(",", "")))
    assert rooms == sorted(rooms)


def test_the_room_says_what_the_answer_may_have_of_what_is_kept_free(
    capsys: pytest.CaptureFixture[str],
) -> None:
    last = replace(LAST, answer_tokens=9_830, attempts=(Sent(50_000, 8_192),))
    status = Status(installed=True, nanobot_version="0.3.5", window_tokens=65_536)
    _print_status(Report({}, ("/env/hook.pth",), ("/home/config.json",), status, (), last=last))
    (room,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("room")]
    assert room.endswith("- 9,830 answer (15% of the window; 8,192 are asked for)")


def test_a_setting_that_cannot_be_used_stops_no_command(home: Path) -> None:
    (home / ".nanobot").mkdir(exist_ok=True)
    settings = {"contextWindowOveride": 9_000, "contextWindowOverride": 20_000}
    (home / ".nanobot" / "nanobot-context.json").write_text(json.dumps(settings))
    out, err = run(home, "inspect", "chat.json")
    assert "20,000 tokens" in out
    assert "a setting is left out: `contextWindowOveride` is not a setting" in err
    assert "hint: did you mean `contextWindowOverride`?" in err


def test_a_count_without_a_model_has_the_window_that_nanobot_has(home: Path) -> None:
    (home / ".nanobot").mkdir(exist_ok=True)
    settings = {"contextWindowOverride": 20_000}
    (home / ".nanobot" / "nanobot-context.json").write_text(json.dumps(settings))
    assert "of a window of 20,000" in run(home, "count", "chat.json")[0]
    assert "of a window of 128,000" in run(home, "count", "chat.json", "--model", "gpt-4o")[0]


def test_a_folder_that_is_not_there_is_named_as_other_errors_name_one(home: Path) -> None:
    _, err = run(home, "sessions", "import", "nowhere", "--store", "sqlite:///c.db", code=2)
    assert err == "error: `nowhere`: no such file or directory\n"


def test_each_cut_says_how_old_it_is_or_what_replaced_it(home: Path) -> None:
    messages = conversation()
    again = {"name": "read_file", "arguments": json.dumps({"path": "/logs/2.log"})}
    call = {"id": "again", "type": "function", "function": again}
    messages += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "again", "content": messages[11]["content"]},
    ]
    (home / "again.json").write_text(json.dumps(messages))
    out, _ = run(home, "inspect", "again.json", "--window", "9000", "--model", "gpt-4o", "--cuts")
    whys = [line for line in out.splitlines() if line.lstrip()[:1].isdigit()]
    assert any(re.search(r"same as #52|asked again in #52", line) for line in whys)
    assert len({found[1] for line in whys if (found := re.search(r"(\d+ rounds? ago)", line))}) > 2
    assert "worth less" not in out
    assert "over budget" not in out


def test_two_long_columns_share_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "width", lambda: 60)
    columns = [output.Column("#"), output.Column("a", flexible=True)]
    columns.append(output.Column("b", flexible=True))
    output.print_table(columns, [["1", "x" * 100, "y" * 100], ["2", "z", "short"]])
    row = capsys.readouterr().out.splitlines()[1]
    assert len(row) == 60
    assert row.count("x") >= 25
    assert row.count("y") >= 25


@pytest.mark.parametrize(
    ("attempts", "outcome", "said", "chinese"),
    [
        (
            (Sent(70_000, refused="input"), Sent(50_000)),
            "answered",
            "refused at about 70,000, sent again, answered",
            "约 70,000 时被拒绝，已重发，已回答",
        ),
        (
            (Sent(70_000, refused="input", is_reported=True), Sent(50_000)),
            "answered",
            "refused at 70,000, sent again, answered",
            "70,000 时被拒绝，已重发，已回答",
        ),
        (
            (Sent(9_000, refused="reasoning"), Sent(9_100)),
            "interrupted",
            "refused without the model's reasoning, sent again, stopped before the answer",
            "因缺少模型的思考内容被拒绝，已重发，在回答之前中止",
        ),
        (
            (Sent(9_000, refused="silent", limit_tokens=4_000),),
            "answered",
            "cut in silence at 4,000, answered",
            "在 4,000 处被悄悄截断，已回答",
        ),
        ((Sent(50_000),), "answered", "", ""),
    ],
)
def test_a_request_that_was_sent_again_says_so(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    attempts: tuple[Sent, ...],
    outcome: Outcome,
    said: str,
    chinese: str,
) -> None:
    record = replace(LAST, attempts=attempts, outcome=outcome)
    conversation = Conversation("cli:direct", [], {}, "a file")
    for language, expected in (("en", said), ("zh", chinese)):
        monkeypatch.setattr("nanobot_context.words._chosen", language)
        print_records(conversation, [record], only_cuts=False)
        assert capsys.readouterr().out.splitlines()[1].partition("65,536")[2].strip() == expected


def test_a_number_that_nobody_has_reported_is_said_to_be_about(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = (Sent(50_000, is_reported=True),)
    reported = replace(LAST, tokens_before=50_000, attempts=sent)
    cut = replace(LAST, attempts=sent, is_shortened=True)
    stopped = replace(LAST, tokens_before=50_000, outcome="interrupted")
    conversation = Conversation("cli:direct", [], {}, "a file")
    for language, about in (("en", "about"), ("zh", "约")):
        monkeypatch.setattr("nanobot_context.words._chosen", language)
        print_records(conversation, [reported, cut, stopped], only_cuts=False)
        rows = capsys.readouterr().out.splitlines()[1:4]
        assert [row[19:].partition("65,536")[0].split() for row in rows] == [
            ["50,000", "50,000"],
            [about, "60,000", "50,000"],
            [about, "50,000", about, "50,000"],
        ]


def test_what_stands_in_a_result_that_was_cut_itself_is_no_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result, (asked, *_) = "a line\n" * 40, conversation(1)[1:]
    messages: list[dict[str, Any]] = [asked]
    for name in ("a", "b", "c"):
        call = {"id": name, "function": {"name": "exec", "arguments": json.dumps({"c": name})}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": name, "content": result})
    record = replace(
        LAST,
        messages=len(messages),
        roles="".join(message["role"][0] for message in messages),
        keys=tuple(map(known_by, messages)),
        cuts=(SentCut(3, "tool", "exec", "budget", 200, 0),),
        left_out="3",
        cut_messages=1,
    )
    cuts = (*record.cuts, SentCut(7, "tool", "exec", "large_result", 200, 90))
    for one, said in ((record, "same as #7"), (replace(record, cuts=cuts), "of the round under")):
        print_records(Conversation("cli:direct", messages, {}, "a file"), [one], only_cuts=True)
        assert said in capsys.readouterr().out.splitlines()[1]


def test_a_recorded_cut_says_why_where_the_session_has_the_message(
    capsys: pytest.CaptureFixture[str],
) -> None:
    messages = conversation(3)[1:]  # nanobot saves no system message
    record = replace(
        LAST,
        messages=len(messages) + 1,
        roles="s" + "".join(message["role"][0] for message in messages),
        anchor=len(messages),
        anchor_key=message_key(messages[-2]),
        keys=tuple(map(known_by, messages[-12:])),
        cuts=tuple(SentCut(at, "tool", "read_file", "budget", 1_445, 90) for at in (4, 8, 40)),
        cut_messages=3,
    )
    print_records(Conversation("cli:direct", messages, {}, "a file"), [record], only_cuts=True)
    rows = capsys.readouterr().out.splitlines()[1:4]
    assert [row.split("90  ")[1] for row in rows] == ["3 rounds ago", "2 rounds ago", "over budget"]
    assert [row.split()[0] for row in rows] == ["3", "7", "40"], "as the session counts"
