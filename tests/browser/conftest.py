"""The report page in a real Chromium, without a network.

Every page is watched: what it says on its console, what it asks for, the dialogs it opens. A test
ends with none of these, but for the page itself.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Dialog, Page, sync_playwright

from .pages import agent_messages, written

# As scripts/install_chromium.sh looks for them.
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


# Of this package only: as long as it is open, no other test can run an event loop.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    assert program is not None, "there is no Chromium: run scripts/install_chromium.sh"
    with sync_playwright() as playwright:
        # Machines of continuous integration run as root, which Chromium's sandbox refuses.
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


Opener = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Opener]:
    """Open a page; options are those of a browser context, such as `color_scheme`."""
    contexts = []
    noticed: list[str] = []

    def dismissed(dialog: Dialog) -> None:
        noticed.append("dialog")
        dialog.dismiss()

    def run(path: Path, **options: Any) -> Page:
        context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 900}, "color_scheme": "light", **options}
        )
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: noticed.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: noticed.append(f"error: {error}"))
        page.on("request", lambda request: noticed.append(f"request: {request.url}"))
        page.on("popup", lambda popup: noticed.append("popup"))
        page.on("download", lambda download: noticed.append("download"))
        page.on("dialog", dismissed)
        page.goto(path.as_uri())
        assert noticed == [f"request: {path.as_uri()}"]
        noticed.clear()
        return page

    yield run
    for context in contexts:
        context.close()
    assert noticed == []


@pytest.fixture(scope="session")
def agent_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of `agent_messages`."""
    return written(tmp_path_factory.mktemp("agent") / "report.html", agent_messages())
