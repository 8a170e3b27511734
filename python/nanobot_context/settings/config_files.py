"""Reads the JSON files with settings: nanobot's, and `nanobot-context.json` beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from nanobot_context.errors import SettingsError
from nanobot_context.settings.kinds import show

SETTINGS_FILE = "nanobot-context.json"


def read_json_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in `path`; empty when there is no such file.

    Raises:
        SettingsError: The file cannot be read or holds something else.
    """
    try:
        # Windows editors write a byte order mark.
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsError(f"could not read `{path}`: {error.strerror}", path=str(path)) from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"`{path}` is not valid JSON: {error}", path=str(path)) from error
    if not isinstance(data, dict):
        raise SettingsError(f"`{path}` must hold a JSON object, got `{show(data)}`", path=str(path))
    return data


def repeated_keys(path: Path) -> list[str]:
    """Return the keys that stand twice in an object of the JSON file `path`: the last one counts.

    Empty where it cannot be read: `read_json_object` says so.
    """
    repeated: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        repeated.extend(key for key in dict.fromkeys(keys) if keys.count(key) > 1)
        return dict(pairs)

    with suppress(OSError, ValueError, RecursionError):
        json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=note)
    return repeated


def model_presets_of(own: Mapping[str, Any]) -> dict[str, Any]:
    presets = own.get("modelPresets", own.get("model_presets"))
    return dict(presets) if isinstance(presets, dict) else {}


def agent_defaults_of(own: Mapping[str, Any], config: Path) -> dict[str, Any]:
    section: Any = own
    path: list[str] = []
    for key in ("agents", "defaults"):
        path.append(key)
        section = section.get(key, {})
        if not isinstance(section, dict):
            joined = ".".join(path)
            raise SettingsError(
                f"`{joined}` must be a JSON object, got `{show(section)}` (in `{config}`)",
                path=joined,
            )
    return dict(section)
