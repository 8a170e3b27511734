"""What pages need to be followed, by the names that they ask for it: `<!-- with: NAME -->`."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from counting import offline_ranks
from server import ModelServer, Request

from .reader import Reader, install, make_environment, set_up_nanobot, wheel


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment in which nanobot and the package are installed: its `bin`."""
    inside = make_environment(tmp_path_factory.mktemp("environment") / "venv")
    install(inside, "--no-deps", str(wheel()))
    return inside


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty home in which the process stands, and no settings but those of the page."""
    for name in list(os.environ):
        if name.startswith(("NANOBOT_", "OPENAI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(offline_ranks()))
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.chdir(tmp_path)
    events = logging.getLogger("nanobot_context.events")
    level = events.level
    yield tmp_path
    events.setLevel(level)  # a page may have set it


@pytest.fixture
def reader(prepared: Path, home: Path) -> Reader:
    """Someone who has both installed."""
    return Reader(prepared, home)


@pytest.fixture
def provider(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """OpenAI's interface on this machine; it refuses prompts of more than 24,000 tokens."""

    def answer(request: Request) -> str:
        return f"Understood, {len(request.messages)} messages."

    with ModelServer(answer, window=24_000) as server:
        for name, value in {"OPENAI_BASE_URL": server.base, "OPENAI_API_KEY": "sk-none"}.items():
            monkeypatch.setenv(name, value)
            reader.variables[name] = value
        yield server


@pytest.fixture
def nanobot(reader: Reader, provider: ModelServer) -> Iterator[Path]:
    """A protected nanobot, its config as users have it, with the provider in it: its workspace."""
    assert reader.command("nanobot-context enable")[0] == 0
    yield set_up_nanobot(reader.folder, provider)
    reader.command("nanobot-context disable")
