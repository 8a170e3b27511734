"""What `nanobot-context doctor` finds in nanobot's config file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nanobot_context import doctor
from nanobot_context.settings import NANOBOT_FIELDS, Settings, camel_case, load_settings


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.json"


@pytest.mark.parametrize("name", NANOBOT_FIELDS)
def test_a_setting_that_works_in_nanobots_file_is_no_problem(config: Path, name: str) -> None:
    defaults = {camel_case(name): getattr(Settings(), name)}
    config.write_text(json.dumps({"agents": {"defaults": defaults}}))
    assert load_settings(config, {}).sources == {name: f"agents.defaults.{camel_case(name)}"}
    assert doctor._check_config(config) == []


def test_a_setting_that_does_nothing_there_is_a_problem_with_its_fix(config: Path) -> None:
    config.write_text(json.dumps({"agents": {"defaults": {"events": "e.jsonl", "model": "m"}}}))
    (finding,) = doctor._check_config(config)
    assert "`agents.defaults.events` has no effect" in finding.problem
    assert "nanobot-context.json" in finding.fix


def test_a_setting_at_the_root_of_nanobots_file_is_a_problem(config: Path) -> None:
    config.write_text(json.dumps({"contextCompression": False}))
    (finding,) = doctor._check_config(config)
    assert "nanobot refuses the whole file" in finding.problem
