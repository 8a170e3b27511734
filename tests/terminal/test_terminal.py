"""The command line as a person uses it: in a real terminal (tmux), typed key by key."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(180)

# A machine may be slow; a test ends as soon as the screen shows what it waits for.
PATIENCE_SECONDS = 60.0
PROMPT = "prompt> "
ENDED = r"^ended \d+\n"


class Screen:
    """A shell in a terminal of its own."""

    def __init__(self, home: Path, columns: int = 80, rows: int = 30) -> None:
        self._server = f"nanobot-context-{uuid.uuid4().hex}"
        kept = {name: value for name in ("PYTHONPATH",) if (value := os.environ.get(name))}
        environ = {
            **kept,
            "HOME": str(home),
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            "PS1": PROMPT,
        }
        words = [f"{name}={value}" for name, value in environ.items()]
        size = ["-x", str(columns), "-y", str(rows), "-c", str(home)]
        # Its own environment, but the terminal's type, which is tmux's.
        shell = ["env", *words, "bash", "--norc", "--noprofile"]
        self._tmux("-u", "-f", "/dev/null", "new-session", "-d", *size, *shell)
        self.wait_for(PROMPT.strip())

    def type(self, text: str, *keys: str) -> None:
        """Type `text`, then the keys by tmux's names; `Enter` where there are none."""
        self._tmux("send-keys", "-l", "--", text)
        self._tmux("send-keys", *(keys or ("Enter",)))

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def run(self, command: str) -> str:
        """Type a command on a clean screen, and return what it has printed when it has ended."""
        self.press("C-l")
        self._until(self._is_clean, "a clean screen")
        self.type(f"clear; {command}; echo ended $?")
        return self.wait_for(ENDED)

    def text(self, *options: str) -> str:
        """Return what the terminal shows and what has gone out at its top."""
        return self._tmux("capture-pane", "-p", "-S", "-", *options).rstrip("\n") + "\n"

    def has_wrapped(self) -> bool:
        """Return whether a line was longer than the terminal is wide."""
        return self.text().count("\n") != self.text("-J").count("\n")

    def wait_for(self, pattern: str) -> str:
        """Return what is shown as soon as it has `pattern`."""
        return self._until(
            lambda shown: re.search(pattern, shown, re.MULTILINE) is not None, repr(pattern)
        )

    def _is_clean(self, shown: str) -> bool:
        # What is cleared may go out at the top.
        self._tmux("clear-history")
        return not re.search(ENDED, shown, re.MULTILINE)

    def _until(self, is_there: Callable[[str], bool], what: str) -> str:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_there(shown := self.text()):
            assert time.monotonic() < deadline, f"waited for {what}, got:\n{shown}"
            time.sleep(0.02)
        return shown

    def close(self) -> None:
        self._tmux("kill-server")

    def _tmux(self, *words: str) -> str:
        command = ["tmux", "-L", self._server, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a user's home with two sessions of nanobot's."""
    folder = tmp_path / ".nanobot" / "workspace" / "sessions"
    folder.mkdir(parents=True)
    for key, turns in (("cli:direct", 30), ("telegram:7345", 1)):
        record = {"_type": "metadata", "key": key}
        lines = map(json.dumps, (record, *conversation(turns)))
        (folder / f"{key.replace(':', '_')}.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.fixture
def screen(home: Path) -> Iterator[Callable[..., Screen]]:
    opened: list[Screen] = []

    def make(columns: int = 80) -> Screen:
        opened.append(Screen(home, columns))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def conversation(turns: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for turn in range(turns):
        function = {"name": "read_file", "arguments": json.dumps({"path": f"/logs/{turn}.log"})}
        call = {"id": f"c{turn}", "type": "function", "function": function}
        lines = "\n".join(f"{turn}:{line} 节点 node {line % 7} disk full" for line in range(60))
        messages += [
            {"role": "user", "content": f"What failed on day {turn}?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{turn}", "content": lines},
            {"role": "assistant", "content": f"Node {turn % 7} failed. " * 9},
        ]
    return messages


def kept(home: Path) -> list[str]:
    return sorted(path.name for path in (home / ".nanobot/workspace/sessions").iterdir())


BOTH = ["cli_direct.jsonl", "telegram_7345.jsonl"]


# Questions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "code", "left"),
    [
        (["n", "Enter"], 1, BOTH),
        (["Enter"], 1, BOTH),
        (["C-c"], r"(1|130)", BOTH),
        (["x", "Enter", "y", "Enter"], 0, BOTH[1:]),
    ],
    ids=["no", "enter", "ctrl-c", "slip-then-yes"],
)
def test_a_session_is_deleted_only_when_the_user_says_so(
    home: Path, screen: Callable[..., Screen], keys: list[str], code: int | str, left: list[str]
) -> None:
    shell = screen()
    shell.type("nanobot-context sessions delete cli:direct; echo ended $?")
    shown = shell.wait_for(r"delete this session from nanobot's files\? \[y/N\]:")
    assert re.search(r"^cli:direct  120 messages, 20\d\d-", shown, re.M)
    shell.press(*keys)
    shown = shell.wait_for(rf"^ended {code}$")
    assert "Traceback" not in shown
    assert kept(home) == left


def test_a_question_can_be_answered_while_the_result_goes_into_a_pipe(
    home: Path, screen: Callable[..., Screen]
) -> None:
    shell = screen()
    shell.type("nanobot-context sessions prune --older-than 0s --json | cat; echo ended $?")
    shell.wait_for(r"delete these 2 sessions from nanobot's files\? \[y/N\]:")
    shell.press("y", "Enter")
    shell.wait_for("^ended 0$")
    assert kept(home) == []


def test_a_conversation_can_be_typed_in(home: Path, screen: Callable[..., Screen]) -> None:
    shell = screen()
    shell.type("nanobot-context count -")
    shell.type('[{"role": "user", "content": "hello"}]')
    shell.press("C-d")
    shell.wait_for(r"^\d+ tokens in 1 message \(")


# What it looks like ------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize(
    "command",
    [
        *(
            "--help",
            "compress --help",
            "inspect - -w 4000 < .nanobot/workspace/sessions/cli_direct.jsonl",
        ),
        "count .nanobot/workspace/sessions/cli_direct.jsonl --by-message",
        "sessions list",
    ],
)
def test_no_line_is_wider_than_the_terminal(
    screen: Callable[..., Screen], command: str, columns: int
) -> None:
    shell = screen(columns)
    shown = shell.run(f"nanobot-context {command}")
    assert "ended 0" in shown
    assert not shell.has_wrapped(), shown


@pytest.mark.parametrize("columns", [80, 120])
def test_a_table_has_a_line_for_each_message_and_text_where_there_is_room(
    screen: Callable[..., Screen], columns: int
) -> None:
    shown = screen(columns).run("nanobot-context inspect cli:direct --window 4000 --model gpt-4o")
    rows = re.findall(r"^ *(\d+) +\d+  (?:user|assistant|tool read_file) .*$", shown, re.M)
    assert list(map(int, rows)) == list(range(1, 121))
    assert ("What failed on day 29?" in shown) == (columns == 120)
    assert re.search(r"tool read_file +725 +\d+  (shortened|left out): \w+ \w+", shown)
    assert re.search(r"^window +4,000 tokens \(gpt-4o, exact\), 3,400 for messages", shown, re.M)


def test_there_are_colours_and_none_where_the_user_wants_none(
    screen: Callable[..., Screen],
) -> None:
    shell = screen()
    shell.run("nanobot-context doctor")
    assert re.search("\x1b\\[(\\d+;)*31m", shell.text("-e"))
    shell.run("NO_COLOR=1 nanobot-context doctor")
    assert not re.search("\x1b\\[(\\d+;)*3[1-7]m", shell.text("-e"))


def test_progress_is_shown_for_what_takes_long_and_is_gone_afterwards(
    home: Path, screen: Callable[..., Screen]
) -> None:
    # Far more than a second of work, which is broken off as soon as the bar is there.
    (home / "long.json").write_text(json.dumps(conversation(3_000)))
    shell = screen()
    shell.type("nanobot-context inspect long.json -w 100000; echo ended $?")
    shell.wait_for(r"^replaying +[━╺╸ ]+ +\d+/6001 +\S+")
    shell.press("C-c")
    shown = shell.wait_for(r"^ended 130$")
    assert "replaying" not in shown
    assert "Traceback" not in shown


# Completion --------------------------------------------------------------------------------------


def test_commands_options_and_sessions_are_completed(screen: Callable[..., Screen]) -> None:
    shell = screen()
    shell.type('eval "$(nanobot-context --show-completion)"; echo ended $?')
    shell.wait_for("^ended 0$")
    for typed, completed in (
        ("nanobot-context comp", "nanobot-context compress"),
        ("nanobot-context compress --max", "nanobot-context compress --max-tokens"),
        ("nanobot-context sessions pr", "nanobot-context sessions prune"),
        ("nanobot-context sessions show tele", "nanobot-context sessions show telegram:7345"),
        ("nanobot-context inspect cl", "nanobot-context inspect cli:direct"),
    ):
        shell.type(typed, "Tab")
        shell.wait_for(rf"^{re.escape(PROMPT + completed)}")
        shell.press("C-u")


def test_completion_is_installed_for_the_next_shell(
    home: Path, screen: Callable[..., Screen]
) -> None:
    assert "ended 0" in screen().run("nanobot-context --install-completion")
    assert ".bash_completions/nanobot-context.sh" in (home / ".bashrc").read_text()
    shell = screen()
    shell.run("source ~/.bashrc")
    shell.type("nanobot-context doc", "Tab")
    shell.wait_for(rf"^{re.escape(PROMPT)}nanobot-context doctor")
