"""Checks files and folders for `doctor`: unwritable files, full disks, missing pins."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from nanobot_context.archive import DIRECTORY
from nanobot_context.conversations import store_file
from nanobot_context.guard.counters import read_counts
from nanobot_context.guard.limits import ProviderLimits
from nanobot_context.guard.state_file import (
    COUNTERS,
    LEARNED,
    RULES,
    UNWRITTEN,
    set_aside,
    state_file,
    unreadable,
)
from nanobot_context.guard.telemetry import events_file
from nanobot_context.host.config import workspace_of
from nanobot_context.plugins.rules import Forgotten
from nanobot_context.setting_checks import Finding
from nanobot_context.settings import Settings, load_usable_settings

# A disk with less than this counts as full: the log of a session store takes 4 MB.
_ROOM_BYTES = 5 * 1024 * 1024

# As a file of the archive.
_RESULT = "result.txt"

# What nanobot reads of each.
_READ: dict[str, Callable[[Path], object]] = {
    LEARNED: ProviderLimits.load,
    COUNTERS: read_counts,
    RULES: lambda file: Forgotten(file).without("", {}),
}

# Of a workspace; in a larger one a file may be anywhere.
_FOLDERS_SEEN = 5_000


def check_files(config: Path, settings: Settings) -> Iterator[Finding]:
    """Check all that the package reads and writes beside what a conversation needs."""
    workspace = Path(workspace_of(load_usable_settings(config))).expanduser()
    yield from _check_kept(config, settings, workspace)
    yield from _check_events(config, settings)
    yield from _check_pins(settings, workspace)
    yield from _check_disks(config, settings, workspace)


def _check_kept(config: Path, settings: Settings, workspace: Path) -> Iterator[Finding]:
    """Check that the files beside nanobot's config, and originals, can be written.

    Without nanobot's folder nothing is kept there.
    """
    if not config.parent.is_dir():
        return
    for name, effect in UNWRITTEN.items():
        file = state_file(config, name)
        if obstacle := _obstacle(file, is_replaced=True):
            yield Finding(
                f"`{file}` cannot be written, so {effect}: `{obstacle}` is in the way",
                "make that file or folder writable for the user that runs nanobot",
            )
        else:
            yield from _check_content(file)
    if settings.archive and workspace.is_dir():
        folder = workspace.resolve() / DIRECTORY
        if obstacle := _obstacle(folder / _RESULT, is_replaced=True):
            yield Finding(
                f"originals of tool results cannot be kept in `{folder}`: `{obstacle}` is in the "
                "way",
                "make that folder writable, or set `archive` to false in nanobot-context.json",
            )


def _check_content(file: Path) -> Iterator[Finding]:
    """Check that a file is as it was written, and that nothing is left of one that was not."""
    if (read := _READ.get(file.name)) is not None:
        read(file)
        if why := unreadable(file):
            yield Finding(why, "correct that file, put back an earlier one, or remove it")
    if (kept := set_aside(file)).is_file():
        yield Finding(
            f"`{file}` was damaged and began anew: what it held is in `{kept}`",
            "put back what is missing of it, then remove it",
        )


def _check_events(config: Path, settings: Settings) -> Iterator[Finding]:
    """Check that the file of the setting `events` can be written."""
    if settings.events is not None:
        file = events_file(settings.events, config.parent)
        if obstacle := _obstacle(file, is_replaced=False):
            yield Finding(
                f"events cannot be written to `{file}`: `{obstacle}` is in the way",
                "correct `events`, or make that file or folder writable",
            )


def _check_pins(settings: Settings, workspace: Path) -> Iterator[Finding]:
    """Look for a pinned file that is nowhere in the workspace; a pattern may name one to come."""
    names = {name for name in settings.pinned if not set(name) & set("*?")}
    missing = {name for name in names if not Path(name).expanduser().is_absolute()}
    missing |= {name for name in names - missing if not Path(name).expanduser().exists()}
    folders = os.walk(workspace) if missing else iter(())
    for number, (folder, _, files) in enumerate(folders):
        if number == _FOLDERS_SEEN:
            return
        paths = [f"{folder}/{file}" for file in files]
        missing -= {
            name
            for name in missing
            if any(path.endswith(f"/{name.removeprefix('./')}") for path in paths)
        }
    for name in sorted(missing):
        yield Finding(
            f"`pinned` names `{name}`, which is not in `{workspace}`",
            "correct the name: by it, or by the end of the path, a file is known when it is read",
        )


def _check_disks(config: Path, settings: Settings, workspace: Path) -> Iterator[Finding]:
    """Check for free space on every disk that the package writes to."""
    kept = [("what this package keeps beside nanobot's config", state_file(config, COUNTERS))]
    if settings.archive:
        kept.append(("originals of tool results", workspace / DIRECTORY / _RESULT))
    if settings.events is not None:
        kept.append(("events", events_file(settings.events, config.parent)))
    if (store := store_file(settings.session_store or "")) is not None:
        kept.append(("sessions", store.expanduser()))
    disks: dict[int, tuple[Path, list[str]]] = {}
    for what, file in kept:
        folder = next(path for path in file.absolute().parents if path.is_dir())
        disks.setdefault(folder.stat().st_dev, (folder, []))[1].append(what)
    for folder, kinds in disks.values():
        left = shutil.disk_usage(folder).free
        if left < _ROOM_BYTES:
            yield Finding(
                f"the disk of `{folder}` is full, {left // 1024:,} KB left, and takes these no "
                f"more: {', '.join(kinds)}",
                "free some space on it",
            )


def _obstacle(file: Path, *, is_replaced: bool) -> Path | None:
    """Return the file or folder that keeps `file` from being written, or `None`.

    A file that `is_replaced` is written beside itself, as is every lock: its folder must be ours.
    """
    if file.exists() and not (file.is_file() and (is_replaced or os.access(file, os.W_OK))):
        return file
    folder = next(path for path in file.parents if os.path.lexists(path))
    return None if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK) else folder
