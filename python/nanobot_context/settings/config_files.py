"""Reads the JSON files with settings: nanobot's, and `nanobot-context.json` beside it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from nanobot_context.errors import SettingsError
from nanobot_context.settings.kinds import show

SETTINGS_FILE = "nanobot-context.json"


def read_json_object(path: Path, repeated: list[str] | None = None) -> dict[str, Any]:
    """Return the JSON object in `path`; empty when there is no such file.

    Adds to `repeated` the keys that stand twice in an object, of which the last one counts.

    Raises:
        SettingsError: The file cannot be read or holds something else.
    """
    try:
        # Windows editors write a byte order mark.
        text = path.read_text(encoding="utf-8-sig")
        data = json.loads(
            text, object_pairs_hook=partial(_object, [] if repeated is None else repeated)
        )
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsError(f"could not read `{path}`: {error.strerror}", path=str(path)) from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"`{path}` is not valid JSON: {error}", path=str(path)) from error
    if not isinstance(data, dict):
        raise SettingsError(f"`{path}` must hold a JSON object, got `{show(data)}`", path=str(path))
    return data


def _object(repeated: list[str], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    times = Counter(key for key, _ in pairs)
    repeated += [key for key in times if times[key] > 1]
    return dict(pairs)


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
