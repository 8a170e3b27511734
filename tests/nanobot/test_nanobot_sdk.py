"""A program that makes its agent by the SDK has the settings beside the config that it names."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from played import FULL, GOES_ON
from plays import ENVIRONMENTS

SDK = tuple(release for release in FULL if release in ("0.1.5.post2", GOES_ON)) or (GOES_ON,)
PROGRAM = """
import sys
from pathlib import Path
import nanobot_context
from nanobot_context.activation import arm
arm()
config = Path(sys.argv[1])
from nanobot import Nanobot
Nanobot.from_config(config)
print(nanobot_context.status().settings.context_window_override)
"""


@pytest.mark.parametrize("release", SDK)
def test_settings_beside_the_config_of_a_program_are_in_force(release: str, tmp_path: Path) -> None:
    beside = tmp_path / "bot"
    beside.mkdir()
    config = beside / "config.json"
    defaults = {"model": "openai/gpt-4o", "workspace": str(beside / "workspace")}
    providers = {"openai": {"apiKey": "sk-none"}}
    config.write_text(
        json.dumps({"agents": {"defaults": defaults}, "providers": providers}), "utf-8"
    )
    settings = beside / "nanobot-context.json"
    settings.write_text(json.dumps({"contextWindowOverride": 9_000}), "utf-8")
    python = str(ENVIRONMENTS / release / "bin" / "python")
    done = subprocess.run(
        [python, "-c", PROGRAM, str(config)],
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.splitlines()[-1:] == ["9000"], done.stderr
