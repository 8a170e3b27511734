"""Workflows are what they seem to be, and nothing incomplete can be published."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts import absolute_links, check_release

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)+")
each_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def jobs(path: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    return found


def runs(path: Path) -> list[str]:
    return [step["run"] for job in jobs(path).values() for step in job["steps"] if "run" in step]


# Workflows ----------------------------------------------------------------------------------------


@each_workflow
def test_a_job_ends_and_may_only_read(path: Path) -> None:
    given = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert given["permissions"] == {"contents": "read"}
    assert [name for name, job in jobs(path).items() if "timeout-minutes" not in job] == []


@each_workflow
def test_actions_are_pinned_to_a_commit_with_its_version_behind(path: Path) -> None:
    used = re.findall(r"uses: (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert used
    assert [action for action in used if not PINNED.fullmatch(action)] == []


def test_an_action_has_one_version_in_all_workflows() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    used = set(re.findall(r"uses: (.+)$", text, re.MULTILINE))
    assert len(used) == len({action.partition("@")[0] for action in used})


@each_workflow
def test_files_and_targets_that_a_job_runs_are_there(path: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for line in "\n".join(runs(path)).splitlines():
        words = shlex.split(line)
        if words[:1] == ["make"]:
            assert words[1] in targets
        named = [
            word
            for word in words
            if re.fullmatch(r"(scripts|requirements|tests|\.ci)/[\w./-]+", word)
        ]
        assert [word for word in named if not (ROOT / word).exists()] == []


def test_dependabot_looks_where_there_is_something() -> None:
    given = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text(encoding="utf-8"))
    places = [
        (update["package-ecosystem"], place)
        for update in given["updates"]
        for place in update.get("directories", [update.get("directory")])
    ]
    shows = {"github-actions": ".github/workflows", "cargo": "Cargo.toml", "pip": "dev.txt"}
    assert [ecosystem for ecosystem, _ in places] == ["github-actions", "cargo", "cargo", "pip"]
    assert [
        place for ecosystem, place in places if not (ROOT / place[1:] / shows[ecosystem]).exists()
    ] == []


def test_publishing_waits_for_the_check_and_for_every_build() -> None:
    release = jobs(ROOT / ".github" / "workflows" / "release.yml")
    assert set(release["publish"]["needs"]) == set(release) - {"publish"}
    assert "check_release.py" in release["complete"]["steps"][-1]["run"]


# What may be published ----------------------------------------------------------------------------


@pytest.fixture
def complete(tmp_path: Path) -> Path:
    """A repository of which nothing is missing."""
    package = '[package]\nversion = "1.2.0"\nrepository = "https://git.example.org/us/it"\n'
    (tmp_path / "Cargo.toml").write_text(package, encoding="utf-8")
    changes = "# Changelog\n\n## [1.2.0] - 2026-12-01\n\n## [1.1.0] - 2026-11-01\n"
    (tmp_path / "CHANGELOG.md").write_text(changes, encoding="utf-8")
    return tmp_path


def test_what_is_complete_may_be_published(complete: Path) -> None:
    assert check_release.problems(complete, "v1.2.0") == []


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        ("Cargo.toml", "git.example.org", "repository.invalid", "a placeholder"),
        ("Cargo.toml", "git.example.org", "INVALID", "a placeholder"),
        ("Cargo.toml", "repository", "homepage", "a placeholder"),
        ("Cargo.toml", "1.2.0", "1.2.1", "has the version `1.2.1`"),
        ("CHANGELOG.md", "2026-12-01", "Unreleased", "no dated section"),
        ("CHANGELOG.md", "[1.2.0]", "[1.2.01]", "no dated section"),
    ],
)
def test_what_is_not_complete_is_refused(
    complete: Path, file: str, old: str, new: str, problem: str
) -> None:
    text = (complete / file).read_text(encoding="utf-8")
    (complete / file).write_text(text.replace(old, new), encoding="utf-8")
    assert problem in "\n".join(check_release.problems(complete, "v1.2.0"))


def test_the_command_fails_where_something_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["check_release.py", "v0.0.0"])
    assert check_release.main() == 1
    assert "error: the tag is `v0.0.0`" in capsys.readouterr().err


def test_the_readme_of_a_wheel_links_to_files_of_its_tag() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    made = absolute_links.absolute(readme, "https://git.example.org/us/it/", "v1.2.0")
    assert "](https://git.example.org/us/it/blob/v1.2.0/docs/seeing.md#rules)" in made
    assert "](https://git.example.org/us/it/raw/v1.2.0/docs/assets/demo.svg)" in made
    assert re.findall(r"\]\((?!https://)[^)]*", made) == []
    assert re.sub(r"https://git\.example\.org/us/it/(blob|raw)/v1\.2\.0/", "", made) == readme


def test_every_build_makes_the_links_of_its_readme_absolute() -> None:
    release = jobs(ROOT / ".github" / "workflows" / "release.yml")
    for name in ("linux", "desktop", "sdist"):
        steps = [one.get("run", one.get("uses", "")) for one in release[name]["steps"]]
        links = next(at for at, step in enumerate(steps) if "absolute_links.py" in step)
        assert "maturin-action" in steps[links + 1]


def test_the_address_of_the_repository_stands_in_one_file() -> None:
    placed = [
        path.name
        for path in [*ROOT.glob("*.toml"), *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
        if "repository.invalid" in path.read_text(encoding="utf-8")
    ]
    assert placed in (["Cargo.toml"], [])
