"""The site builds strictly and without a network, and loads nothing; its links lead somewhere."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import typer

import nanobot_context
from nanobot_context.cli.app import app

from .blocks import DOCS, ROOT

# No socket but to this machine, whatever a plugin would like to load.
OFFLINE = """
import socket, sys
def refuse(*address):
    raise OSError(f"no network in this test: {address}")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
from mkdocs.__main__ import cli
sys.exit(cli())
"""

MODULES = [
    "nanobot_context",
    "nanobot_context.conversations",
    "nanobot_context.errors",
    "nanobot_context.events",
    "nanobot_context.history",
    "nanobot_context.openai_agents",
    "nanobot_context.replay",
    "nanobot_context.report",
    "nanobot_context.responses",
    "nanobot_context.sessions",
    "nanobot_context.sessions.chat_app",
    "nanobot_context.sessions.nanobot_files",
    "nanobot_context.summary",
]
"""What users import from; `shim`, `cli` and the compiled module are reached through these."""

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src"}


@dataclass
class Page(HTMLParser):
    """What one page links to, loads, and can be linked to."""

    path: Path
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") not in ("prev", "next", "alternate", "canonical"):
            self.loads.append(given["href"])
        elif tag in LOADED and LOADED[tag] in given:
            self.loads.append(given[LOADED[tag]])


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE, "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


@pytest.fixture(scope="session")
def built(site: Path) -> dict[Path, Page]:
    """Every page of the site, by its path."""
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def test_every_page_is_built_in_its_languages(site: Path, built: dict[Path, Page]) -> None:
    for source in DOCS.rglob("*.md"):
        name = source.relative_to(DOCS).with_suffix("")
        where = site / "zh" / name.with_suffix("") if name.suffix == ".zh" else site / name
        assert Path(f"{where}.html") in built


def test_nothing_is_loaded_from_elsewhere(site: Path, built: dict[Path, Page]) -> None:
    assert built
    loads = {load for page in built.values() for load in page.loads}
    assert loads
    assert {load for load in loads if urlsplit(load).scheme or urlsplit(load).netloc} == set()
    for sheet in site.rglob("*.css"):
        text = re.sub(r"/\*.*?\*/", "", sheet.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)]*", text), sheet.name


def test_every_link_leads_somewhere(site: Path, built: dict[Path, Page]) -> None:
    assert list(broken_links(site, built)) == []


def broken_links(site: Path, built: dict[Path, Page]) -> Iterator[str]:
    for page in built.values():
        if page.path.name == "404.html":
            continue  # its links begin with `/`: it is shown at any address
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.path.parent / unquote(parts.path)).resolve()
            target = page.path if not parts.path else target
            target = target / "index.html" if target.is_dir() else target
            # With `__` begin those that material's own script reads.
            anchor = "" if parts.fragment.startswith("__") else unquote(parts.fragment)
            ids = built[target].ids if target in built else set()
            if not target.is_file() or not target.is_relative_to(site) or anchor not in {"", *ids}:
                yield f"{page.path.relative_to(site)}: {link}"


def test_the_start_page_is_found_in_both_languages(site: Path) -> None:
    english = Page(site / "index.html")
    assert any(link.endswith("zh/index.html") for link in english.links)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_stands_in_the_reference(module: str, built: dict[Path, Page]) -> None:
    pages = [page for path, page in built.items() if path.parent.name == "reference"]
    ids = {one for page in pages for one in page.ids if one.startswith("nanobot_context.")}
    # A class has one place, and several modules that it may be imported from.
    described = [value for one in ids if (value := named(one)) is not None]
    missing = [
        name
        for name in importlib.import_module(module).__all__
        if not name.startswith("__")
        if f"{module}.{name}" not in ids
        if not any(value is named(f"{module}.{name}") for value in described)
    ]
    assert missing == []


def named(place: str) -> object:
    """Return what `place`, a module's name and a name in it, stands for; `None` for a member."""
    module, _, name = place.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None


def test_the_page_of_the_command_line_has_every_command(site: Path) -> None:
    page = (site / "reference" / "command-line.html").read_text(encoding="utf-8")
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    for name, command in group.commands.items():
        assert f"nanobot-context {name}" in page
        assert (command.help or "").partition(".")[0].split("`")[0] in page
    assert "--by-message" in page
    assert "nanobot-context sessions prune" in page


def test_compiled_names_have_their_docstrings(site: Path) -> None:
    text = (site / "reference" / "fitting.html").read_text(encoding="utf-8")
    first = (nanobot_context.count_tokens.__doc__ or "").partition("\n")[0]
    assert first.split("`")[0].strip() in text
