"""Copies settings from nanobot's file, whose next save drops them, to `nanobot-context.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nanobot_context.errors import SettingsError
from nanobot_context.files import replace_file
from nanobot_context.settings.config_files import SETTINGS_FILE, read_json_object
from nanobot_context.settings.loading import LoadedSettings
from nanobot_context.settings.names import NANOBOT_FIELDS, NANOBOT_PREFIX, camel_case, json_names
from nanobot_context.settings.places import meant
from nanobot_context.settings.schema import KINDS


def keep_settings(loaded: LoadedSettings) -> tuple[str, ...]:
    """Copy settings from nanobot's file to `nanobot-context.json`, and return which.

    nanobot's next save drops them. What the other file says already is left as it is there.

    Raises:
        SettingsError: `nanobot-context.json` is not a JSON object.
        OSError: It cannot be written.
    """
    names = json_names(NANOBOT_FIELDS)
    found = {
        names[key]: read
        for key, value in loaded.agent_defaults.items()
        if key in names and KINDS[names[key]].accepts(read := meant(names[key], value))
    }
    switch = loaded.sources.get("context_compression", "")
    if switch.startswith(NANOBOT_PREFIX) and not loaded.settings.context_compression:
        found["context_compression"] = False  # under a name that is a slip, too
    own = read_json_object(loaded.settings_file) if found else {}
    known = {names.get(key) for key in own}
    copied = {camel_case(name): value for name, value in found.items() if name not in known}
    if copied:
        _write(loaded.settings_file, own | copied)
    return tuple(copied)


def keep_off(nanobot_config: Path, error: SettingsError) -> None:
    """Switch protection off in `nanobot-context.json` if `error` is about nanobot's file.

    `error` is about the main switch there, which nanobot's next save drops.

    Raises:
        SettingsError: `nanobot-context.json` is not a JSON object.
        OSError: It cannot be written.
    """
    settings_file = nanobot_config.parent / SETTINGS_FILE
    own = read_json_object(settings_file)
    is_said = any(name in own for name in json_names(["context_compression"]))
    if error.path.startswith(NANOBOT_PREFIX) and not is_said:
        _write(settings_file, own | {"contextCompression": False})


def _write(file: Path, settings: Mapping[str, Any]) -> None:
    text = json.dumps(settings, ensure_ascii=False, indent=2) + "\n"
    # What a link names is written, not the link.
    replace_file(file.resolve(), text.encode("utf-8", "surrogatepass"))
