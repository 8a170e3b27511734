"""What people read in Chinese: every sentence of ours has one, with its values in it."""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import nanobot_context
from nanobot_context import log, words
from nanobot_context.cli.app import COMMANDS, SESSION_COMMANDS
from nanobot_context.words import choose, shown

ROOT = Path(__file__).parents[3]
PACKAGE = Path(nanobot_context.__file__).parent
CHINESE: dict[str, str] = json.loads((PACKAGE / "zh.json").read_text(encoding="utf-8"))

# What they say is printed or logged.
SPEAKING = (
    "__main__.py",
    *("cli", "doctor.py", "installer.py", "conversations.py", "settings", "json_text.py"),
    *(
        "files.py",
        "archive.py",
        "recovery.py",
        "guard",
        "host/model_server.py",
        "host/config.py",
        "host/detect.py",
    ),
    *("patches", "plugins/meanwhile.py", "plugins/opened_store.py", "plugins/session_store.py"),
    *("plugins/outage.py", "plugins/stored_sessions.py"),
    *("plugins/summaries.py", "sessions/nanobot_files.py"),
)
# Nobody reads these: names of styles and parts, patterns, commands, code, what the model reads.
UNREAD = re.compile(
    r"bold red|not bold default|green|own cuts|own window|in use|and|at|nanobot-context .*|"
    r"Application Support|"
    r"\^## Workspace.*|pip install .*|hint:|\[Errno None\]|Archive\(.*|names of archived results|"
    r"a dict by names of archived results|\{0\} is not (a|the) .*|\{0\} at"
    r"show \{0\}|#|"
    r"the server|the server at \{0\}|\{0\} said so|about what \{0\} takes"
)
# Of the system, of typer and of the core; and what is put together.
OF_OTHERS = {
    *("no such file or directory", "permission denied", "is a directory"),
    *("no space left on device", "Show this message and exit.", "No such option: {0}"),
    *("No such command '{0}'.", "No such command '{0}'. Did you mean '{1}'?"),
    "Install completion for the current shell.",
    "Show completion for the current shell, to copy it or customize the installation.",
    *("what must stay needs {0} tokens for `{1}` but {2} are allowed ({3})", "system {0}"),
    *(
        "what must stay needs {0} tokens but {1} are allowed ({2})",
        "tools {0}",
        "last_user {0}",
        "framing {0}",
    ),
    *("hint: {0}", "{0} events", "show summaries", "show rules", "an event", "found {0}"),
    *("same as #{0}", "asked again in #{0}", "file written in #{0}", "newer version in #{0}"),
    *("the server said so", "about what the server takes"),
    *("the server at {0} said so", "about what the server at {0} takes"),
    "nanobot's sessions ({0}) and those in `{1}`",
    "those in `{0}` and nanobot's sessions ({1})",
}
# Said to the user in the language of the conversation: see `guard.friendly`.
OTHERWISE = ("guard/friendly.py",)


def files() -> Iterator[Path]:
    for name in SPEAKING:
        path = PACKAGE / name
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def template(node: ast.AST) -> str | None:
    """Return a text of the source as the table has it: `{0}`, `{1}` for its values."""
    if isinstance(node, ast.Constant):
        if not isinstance(node.value, str):
            return None
        # What `str.format` fills, in the log.
        places = iter(range(10))
        return re.sub(r"\{\}", lambda found: f"{{{next(places)}}}", node.value)
    if isinstance(node, ast.JoinedStr):
        places = iter(range(10))
        return "".join(
            part.value if isinstance(part, ast.Constant) else f"{{{next(places)}}}"  # type: ignore[misc]
            for part in node.values
        )
    return None


def sentences(path: Path) -> Iterator[str]:
    """Yield each line of more than one word in a file, but docstrings; and each label."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            skipped.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in ast.walk(node)} - {id(node)}
            # But what is chosen inside of a value is said, too.
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    skipped -= {id(one) for one in ast.walk(part.value)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in ("labelled", "Column"):
                yield template(node.args[0]) or ""
            if name == "number_of":
                noun = template(node.args[1])
                yield from (f"{{0}} {noun}", f"{{0}} {noun}s")
        for line in (template(node) or "").split("\n"):
            own = re.sub(r"\{\d\}|`[^`]*`", "", line)
            if re.search(r"[a-z]{2,}[^a-z]* +[^a-z]*[a-z]{2,}|\{\d\}.*[a-z]{3,} |, \w", own):
                yield line


def numbered(line: str) -> str:
    """Return a line of a longer text with its own values counted from 0."""
    places = iter(range(10))
    return re.sub(r"\{\d\}", lambda found: f"{{{next(places)}}}", line)


def said() -> set[str]:
    found = {
        numbered(line.strip().removeprefix("hint: ").removeprefix("; "))
        for path in files()
        if str(path.relative_to(PACKAGE)) not in OTHERWISE
        for line in sentences(path)
    }
    for command in (*SESSION_COMMANDS, *(one for group in COMMANDS.values() for one in group)):
        for paragraph in (inspect.getdoc(command) or "").split("\n\n"):
            if not paragraph.startswith("\b"):
                found.add(paragraph.replace("\n", " "))
    return {line for line in found if line and not UNREAD.fullmatch(line)}


@pytest.fixture
def in_chinese() -> Iterator[None]:
    choose("zh")
    yield
    choose(None)


def test_every_sentence_has_a_chinese_one() -> None:
    found = said()
    assert len(found) > 300
    # What follows at once is a line or a sentence of its own.
    unknown = {line for line in found - set(CHINESE) if re.sub(r"\{\d\}$", "", line) not in CHINESE}
    assert sorted(unknown) == []


def test_no_chinese_sentence_is_left_of_an_english_one_that_is_gone() -> None:
    known = said() | OF_OTHERS
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            lines = (template(node) or "").split("\n")
            known |= {numbered(line.strip().removeprefix("hint: ")) for line in lines}
    errors = (ROOT / "src/session/store/error.rs").read_text(encoding="utf-8")
    for text in re.findall(r'#\[error\("(.*)"\)\]', errors):
        lines = re.sub(r"\{\w+\}", "{0}", text).split("\\n")
        known |= {numbered(line.removeprefix("hint: ")) for line in lines}
    known |= {re.sub(r"(; |\{\d\}$)", "", line) for line in known}
    assert sorted(set(CHINESE) - known) == []


def test_every_chinese_sentence_has_the_values_of_its_english_one() -> None:
    for english, chinese in CHINESE.items():
        values = [re.findall(r"\{\d\}", text) for text in (english, chinese)]
        assert sorted(values[0]) == sorted(values[1]), english
        assert values[0] == [f"{{{n}}}" for n in range(len(values[0]))], english
        names = [
            sorted(name for name in re.findall("`[^`]*`", text) if not re.search(r"\{\d\}", name))
            for text in (english, chinese)
        ]
        assert names[0] == names[1], english


def test_a_sentence_with_values_has_words_enough_to_be_known_by() -> None:
    for english in CHINESE:
        if re.search(r"\{\d\}", english):
            assert len(re.sub(r"\{\d\}|\W", "", english)) >= 2, english


def test_english_stays_english() -> None:
    choose("en")
    try:
        assert all(shown(english) == english for english in CHINESE)
    finally:
        choose(None)


@pytest.mark.parametrize(
    ("variables", "language"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8", "LC_MESSAGES": "zh_TW"}, "zh"),
        ({}, "en"),
    ],
)
def test_the_locale_says_the_language(
    variables: dict[str, str], language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert words.language() == language


@pytest.mark.usefixtures("in_chinese")
@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("nothing to forget", "没有可清除的"),
        (
            "128,000 tokens (assumed: this model is in no table)",
            "128,000 个 token（假定：这个模型不在任何表里）",
        ),
        ("128,000 tokens (model table (`gpt-4o`))", "128,000 个 token（模型表（`gpt-4o`））"),
        (
            "9,000 tokens for the conversation = 16,000 - 6,000 system and tools - 1,000 answer",
            "9,000 个 token 留给对话 = 16,000 - 6,000（系统提示与工具） - 1,000（回答）",
        ),
        ("the server at http://127.0.0.1:8080 said so", "http://127.0.0.1:8080 的服务器这样说的"),
        (
            "`eventz` is not a setting (in `a.json`)\nhint: did you mean `events`?",
            "`eventz` 不是设置项（在 `a.json` 里）\n提示：是不是 `events`？",
        ),
        # A name is no word of ours, whatever it says.
        ("no rules are known of `nothing`", "`nothing` 没有已知的规则"),
        ("1 request; cli:direct", "1 个请求；cli:direct"),
        # Texts of others stay.
        ("Unauthorized: no such key", "Unauthorized: no such key"),
        ("/srv/a (copy), b.jsonl", "/srv/a (copy), b.jsonl"),
    ],
)
def test_what_is_put_together_is_said_in_chinese(english: str, chinese: str) -> None:
    assert shown(english) == chinese


@pytest.mark.usefixtures("in_chinese")
def test_a_text_of_somebody_else_does_not_take_long() -> None:
    start = time.perf_counter()
    for text in ("5 tokens; " * 5_000, "could not " * 190, "(" * 1_900, "a: b, c; " * 200):
        assert isinstance(shown(text), str)
    assert time.perf_counter() - start < 5


@pytest.mark.usefixtures("in_chinese")
def test_the_log_is_in_chinese(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "loguru", None)
    log.warning("could not {}: {}", "compress a request", "boom")
    assert caplog.messages == ["nanobot-context: 无法压缩请求：boom"]
