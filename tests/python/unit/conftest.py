"""The shim, installed on classes shaped like nanobot's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nanobot_context import installer
from nanobot_context.host.detect import NanobotClasses
from nanobot_context.settings import Settings
from shim_classes import WINDOW, make_classes


@pytest.fixture
def classes() -> NanobotClasses:
    return make_classes()


@pytest.fixture(params=["provider-chat", "safe-chat", "safe-chat-stream"])
def generation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[..., installer.Status]]:
    """Install the shim on given classes; whatever happens, it is gone afterwards."""

    def run(classes: NanobotClasses, **settings: Any) -> installer.Status:
        monkeypatch.setattr(installer, "load_classes", lambda: classes)
        monkeypatch.setattr(installer, "nanobot_config_path", lambda: tmp_path / "config.json")
        settings.setdefault("context_window_override", WINDOW)
        return installer.install(Settings(**settings))

    yield run
    installer.uninstall()
