"""What `nanobot-context doctor` finds in nanobot's config file."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mounts import mounted
from nanobot_context import activation, doctor, setting_checks
from nanobot_context.file_checks import check_files
from nanobot_context.guard.state_file import set_aside, state_file
from nanobot_context.guard.status import Status
from nanobot_context.settings import Settings, load_settings
from nanobot_context.settings.names import NANOBOT_FIELDS, camel_case
from records import LAST


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.json"


@pytest.mark.parametrize("name", NANOBOT_FIELDS)
def test_a_setting_that_works_in_nanobots_file_is_no_problem(config: Path, name: str) -> None:
    defaults = {camel_case(name): getattr(Settings(), name)}
    config.write_text(json.dumps({"agents": {"defaults": defaults}}))
    assert load_settings(config, {}).sources == {name: f"agents.defaults.{camel_case(name)}"}
    assert setting_checks.misplaced(config) == []


def test_a_setting_that_does_nothing_there_is_a_problem_with_its_fix(config: Path) -> None:
    config.write_text(json.dumps({"agents": {"defaults": {"events": "e.jsonl", "model": "m"}}}))
    (finding,) = setting_checks.misplaced(config)
    assert "`agents.defaults.events` has no effect" in finding.problem
    assert "nanobot-context.json" in finding.fix


def test_a_setting_at_the_root_of_nanobots_file_is_a_problem(config: Path) -> None:
    config.write_text(json.dumps({"contextCompression": False}))
    (finding,) = setting_checks.misplaced(config)
    assert "nanobot refuses the whole file" in finding.problem


def test_a_setting_that_two_files_say_differently_is_a_problem(config: Path) -> None:
    config.write_text(json.dumps({"agents": {"defaults": {"contextCompression": False}}}))
    own = config.with_name("nanobot-context.json")
    own.write_text(json.dumps({"context_compression": False}))
    assert setting_checks.misplaced(config) == []
    own.write_text(json.dumps({"context_compression": True}))
    (finding,) = setting_checks.misplaced(config)
    assert finding.problem.startswith("`contextCompression` in `agents.defaults` of ")
    assert "nanobot-context.json" in finding.fix


@pytest.fixture
def home(tmp_path: Path, config: Path) -> Path:
    """nanobot's folder, with a workspace of its own in it."""
    (tmp_path / "workspace").mkdir()
    workspace = {"workspace": str(tmp_path / "workspace")}
    config.write_text(json.dumps({"agents": {"defaults": workspace}}))
    return tmp_path


def problems(config: Path, **settings: object) -> list[str]:
    findings = list(check_files(config, Settings(**settings)))  # type: ignore[arg-type]
    assert all(finding.fix for finding in findings)
    return [finding.problem for finding in findings]


def test_files_that_can_be_written_are_no_problem(home: Path, config: Path) -> None:
    assert problems(config, archive=True, events="events.jsonl") == []
    assert sorted(home.iterdir()) == [config, home / "workspace"], "nothing is made"
    assert problems(home / "nowhere" / "config.json", archive=True) == []


@pytest.mark.parametrize(
    ("obstacle", "effects"),
    [
        (
            "nanobot-context",
            ["forgotten when nanobot ends", "does not count", "a replay", "nothing back"],
        ),
        ("nanobot-context/learned.json/", ["forgotten when nanobot ends"]),
        ("nanobot-context/counters.json/", ["does not count"]),
        ("nanobot-context/requests.jsonl/", ["shows a replay"]),
        ("nanobot-context/rules.json/", ["takes nothing back"]),
        ("events.jsonl/", ["events cannot be written"]),
        ("workspace/.nanobot-context", ["originals of tool results cannot be kept"]),
        ("workspace/.nanobot-context/results", ["originals of tool results cannot be kept"]),
    ],
)
def test_what_cannot_be_written_is_a_problem_that_names_what_is_in_the_way(
    home: Path, config: Path, obstacle: str, effects: list[str]
) -> None:
    path = home / obstacle
    path.parent.mkdir(exist_ok=True)
    if obstacle.endswith("/"):
        path.mkdir()
    else:
        path.write_text("")
    found = problems(config, archive=True, events="events.jsonl")
    assert len(found) == len(effects)
    for problem, effect in zip(found, effects, strict=True):
        assert effect in problem
        assert f"`{path}` is in the way" in problem


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rules.json", '{"'),
        ("rules.json", '{"cli:direct": 3}'),
        ("learned.json", "[]"),
        ("counters.json", '{"overflows": -1}'),
    ],
)
def test_a_damaged_file_is_a_problem_and_so_is_what_is_left_of_it(
    config: Path, name: str, text: str
) -> None:
    file = state_file(config, name)
    file.parent.mkdir()
    file.write_text(text)
    (problem,) = problems(config)
    assert f"`{file}` cannot be read and counts as empty" in problem
    file.rename(set_aside(file))
    (problem,) = problems(config)
    assert f"what it held is in `{set_aside(file)}`" in problem


@pytest.mark.parametrize("folder", ["", "nanobot-context", "workspace/.nanobot-context/results"])
def test_a_folder_that_cannot_be_written_is_a_problem(
    home: Path, config: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / folder).mkdir(parents=True, exist_ok=True)
    own = os.access
    # The tests may run as root, who may write anywhere.
    monkeypatch.setattr(
        os, "access", lambda path, mode: Path(path) != home / folder and own(path, mode)
    )
    found = problems(config, archive=True, events="events.jsonl")
    assert found
    assert all(f"`{home / folder}` is in the way" in problem for problem in found)


@pytest.mark.skipif(sys.platform != "linux", reason="mounts of Linux")
def test_a_full_disk_is_a_problem_that_says_what_it_does_not_take(home: Path, config: Path) -> None:
    (home / "small").mkdir()
    store = f"sqlite:///{home}/small/sessions.db"
    settings = Settings(archive=True, events=str(home / "small/e.jsonl"), session_store=store)
    with mounted("-t", "tmpfs", "-o", "size=6m", "tmpfs", home / "small"):
        assert list(check_files(config, settings)) == []
        (home / "small/other").write_bytes(b"x" * 2_000_000)
        (finding,) = check_files(config, settings)
    assert f"the disk of `{home}/small` is full" in finding.problem
    assert "KB left" in finding.problem
    assert finding.problem.endswith(": events, sessions")


@pytest.mark.skipif(sys.platform != "linux", reason="mounts of Linux")
def test_the_disk_of_a_folder_of_the_package_alone_may_be_full(home: Path, config: Path) -> None:
    own = home / "nanobot-context"
    own.mkdir(exist_ok=True)
    with mounted("-t", "tmpfs", "-o", "size=64k", "tmpfs", own):
        (finding,) = check_files(config, Settings())
    assert f"the disk of `{own}` is full" in finding.problem


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        (Status(False, "no nanobot"), "nanobot is not installed in this environment"),
        (Status(False, "it has changed\nhint: use another", "0.9.0"), "it has changed"),
        (Status(False, "off", "0.3.5", settings=Settings(context_compression=False)), "off"),
    ],
)
def test_what_keeps_the_package_out_is_a_problem_with_its_fix(state: Status, problem: str) -> None:
    (finding,) = doctor._check_installed(state)
    assert finding.problem == problem
    assert finding.fix
    assert list(doctor._check_installed(Status(True))) == []


def test_a_hook_that_is_missing_or_of_another_version_is_a_problem(tmp_path: Path) -> None:
    hook = tmp_path / "nanobot-context.pth"
    assert "no start-up hook" in next(doctor._check_hook([])).problem
    assert "another version" in next(doctor._check_hook([hook])).problem
    hook.write_text(activation.hook_line())
    assert list(doctor._check_hook([hook])) == []


def test_a_litellm_that_breaks_old_releases_is_a_problem() -> None:
    for works in (None, "1.102.4", "1.110.2"):
        assert list(doctor._check_litellm(works)) == []
    assert "litellm 1.102.5" in next(doctor._check_litellm("1.102.5")).problem


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"summary_model": "small"}, "enableHistorySummarization"),
        ({"summary_interval": 3}, "enableHistorySummarization"),
        ({"message_buffer_limit": 20}, "enableHistorySummarization"),
        ({"events_include_content": True}, "events"),
        ({"archive": False, "archive_max_bytes": 5_000}, "archive"),
        ({"context_windows": {"foo-*": 9_000}}, "contextWindows"),
        ({"tool_result_soft_limit": 0.9}, "toolResultSoftLimit"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_a_setting_that_does_nothing_is_a_problem(settings: dict[str, Any], named: str) -> None:
    state = Status(True, model="my-model", settings=Settings(**settings))
    (finding,) = setting_checks.without_effect(state)
    assert named in finding.problem
    assert finding.fix
    with_them = {"enable_history_summarization": True, "events": "events.jsonl", "archive": True}
    others = {"context_windows": {"my-*": 9_000}, "tool_result_hard_limit": 1.0}
    useful = Settings(**{**settings, **with_them, **others})
    assert setting_checks.without_effect(replace(state, settings=useful)) == []


def test_a_window_above_the_tables_or_assumed_is_a_problem() -> None:
    known = Status(True, model="gpt-4o", window_tokens=500_000, window_source="`window`")
    assert "the model table knows 128,000" in next(doctor._check_window(known)).problem
    assert list(doctor._check_window(replace(known, window_tokens=128_000))) == []
    assumed = replace(known, model="mine", window_tokens=65_536, window_source="assumed for all")
    assert "`mine` is in no table" in next(doctor._check_model(assumed)).problem
    assert [*doctor._check_window(assumed), *doctor._check_model(known)] == []
    for is_asked in (False, True):
        (finding,) = doctor._check_model(assumed, is_asked=is_asked)
        assert ("--ask-server" in finding.fix) is not is_asked


def test_a_pinned_file_that_is_not_there_is_a_problem(home: Path, config: Path) -> None:
    (home / "workspace" / "docs").mkdir()
    (home / "workspace" / "docs" / "a.md").write_text("A")
    here = ("a.md", "docs/a.md", "./docs/a.md", str(config), "*.md", "later/*")
    settings = Settings(pinned=[*here, "b.md", "other/a.md", "/no/a.md"])
    found = [finding.problem.split("`")[3] for finding in check_files(config, settings)]
    assert found == ["/no/a.md", "b.md", "other/a.md"]


def test_a_nanobot_of_another_environment_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("own/bin", "other"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "nanobot").write_text("#!/bin/sh")
        (tmp_path / folder / "nanobot").chmod(0o755)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "own"))
    monkeypatch.setenv("PATH", str(tmp_path / "own/bin"))
    assert list(doctor._check_command()) == []
    monkeypatch.setenv("PATH", str(tmp_path / "other"))
    assert "not of this environment" in next(doctor._check_command()).problem


def test_a_reserve_of_most_of_the_window_is_a_problem(config: Path) -> None:
    def found(ratio: float) -> list[str]:
        state = Status(True, settings=Settings(context_reserve_ratio=ratio))
        return [finding.problem for finding in doctor._check_reserve(config, state)]

    assert found(0.99) == ["`contextReserveRatio` 0.99 keeps 99% of the window free"]
    assert found(0.15) == []
    assert list(doctor._check_reserve(config, Status(True))) == []


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("agents.defaults.contextReserveRatio", "config.json"),
        ("contextReserveRatio", "nanobot-context.json"),
    ],
)
def test_a_reserve_is_removed_from_the_file_that_has_it(
    config: Path, source: str, name: str
) -> None:
    settings = Settings(context_reserve_ratio=0.99)
    state = Status(True, settings=settings, sources={"context_reserve_ratio": source})
    [finding] = doctor._check_reserve(config, state)
    assert f"{name}`" in finding.fix


def room_found(
    monkeypatch: pytest.MonkeyPatch, config: Path, window: int, max_tokens: int
) -> list[setting_checks.Finding]:
    """Return what is found of a window in force, behind a request in another one."""
    # nanobot, which reads its file, is not in this environment.
    monkeypatch.setattr(doctor, "max_answer", lambda _: max_tokens)
    last = replace(LAST, window_tokens=8_192, fixed_tokens=6_172)
    state = Status(True, window_tokens=window, window_source="contextWindowOverride")
    return list(doctor._check_room(last, state, config))


@pytest.mark.parametrize("window", [5, 1_000, 6_172, 6_400, 7_000, 8_192])
@pytest.mark.parametrize("max_tokens", [256, 1_024, 8_192])
def test_a_window_without_room_is_a_problem_that_no_answer_length_mends(
    monkeypatch: pytest.MonkeyPatch, config: Path, window: int, max_tokens: int
) -> None:
    (finding,) = room_found(monkeypatch, config, window, max_tokens)
    left = max(window - 6_172 - -(-window * 15 // 100), 0)
    assert f" leave {left:,} of {window:,} for the conversation" in finding.problem
    assert "maxTokens" not in finding.fix


def test_an_answer_length_that_takes_the_room_is_named_with_one_that_does_not(
    monkeypatch: pytest.MonkeyPatch, config: Path
) -> None:
    assert room_found(monkeypatch, config, 131_072, 8_192) == []
    (finding,) = room_found(monkeypatch, config, 131_072, 65_536)
    assert "`maxTokens` 65,536 leaves 59,364 of 131,072 tokens" in finding.problem
    assert "to 16,384 in" in finding.fix
    assert room_found(monkeypatch, config, 131_072, 16_384) == []


def test_the_window_in_force_decides_not_that_of_the_last_request(
    monkeypatch: pytest.MonkeyPatch, config: Path
) -> None:
    assert room_found(monkeypatch, config, 65_536, 4_096) == []
    assert room_found(monkeypatch, config, 0, 4_096) == [], "unknown"
