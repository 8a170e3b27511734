"""Loads the settings in force from all places; a later place wins."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nanobot_context.arguments import check_instance
from nanobot_context.errors import SettingsError
from nanobot_context.settings.config_files import (
    SETTINGS_FILE,
    agent_defaults_of,
    model_presets_of,
    read_json_object,
)
from nanobot_context.settings.names import (
    ENV_PREFIX,
    NANOBOT_FIELDS,
    NANOBOT_OWN_KEYS,
    NANOBOT_PREFIX,
    env_name,
    json_names,
)
from nanobot_context.settings.places import Place, leave_out
from nanobot_context.settings.schema import KINDS, Settings, check_buffer


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings together with where they were found.

    Attributes:
        settings: The settings in force.
        sources: For each setting that is not at its default, the key that set it.
        nanobot_config: nanobot's config file, whether it exists or not.
        settings_file: `nanobot-context.json` beside it, whether it exists or not.
        agent_defaults: `agents.defaults` of nanobot's file as it stands there.
        model_presets: `modelPresets` of nanobot's file (0.2.0 and later).
        problems: What `load_usable_settings` has left out, and what is wrong with each.
    """

    settings: Settings
    sources: dict[str, str] = field(default_factory=dict)
    nanobot_config: Path = Path()
    settings_file: Path = Path()
    agent_defaults: dict[str, Any] = field(default_factory=dict)
    model_presets: dict[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def load_settings(
    nanobot_config: Path | None = None, environ: Mapping[str, str] | None = None
) -> LoadedSettings:
    """Return the settings in force for the nanobot that uses the file `nanobot_config`.

    Reads two small files and the environment; writes nothing. A file that does not exist is no
    error.

    Args:
        nanobot_config: nanobot's config file; `None` is `~/.nanobot/config.json`.
        environ: The environment to read; `None` is the process's own.

    Raises:
        InvalidArgumentError: An argument is something else.
        SettingsError: A file is not a JSON object, a key is unknown or a value cannot be used. The
            message names the key's path (`agents.defaults.contextWindowOverride`).
    """
    check_instance("nanobot_config", nanobot_config, Path, optional=True)
    check_instance("environ", environ, Mapping, optional=True)
    return _load(nanobot_config, environ, None)


def load_usable_settings(nanobot_config: Path) -> LoadedSettings:
    """Return as `load_settings` does what can be used; one wrong setting switches off no other.

    A wrong setting counts as not set, but a wrong switch as off: what was meant cannot be known.

    Raises:
        SettingsError: A file is not a JSON object, or the main switch is wrong and not known to be
            off.
    """
    problems: list[str] = []
    return replace(_load(nanobot_config, None, problems), problems=tuple(problems))


def _load(
    nanobot_config: Path | None, environ: Mapping[str, str] | None, problems: list[str] | None
) -> LoadedSettings:
    """Read all places; without `problems` a wrong setting raises, else it is noted there."""
    config = nanobot_config or Path.home() / ".nanobot" / "config.json"
    settings_file = config.parent / SETTINGS_FILE
    own = read_json_object(config)
    agent_defaults = agent_defaults_of(own, config)
    variables = os.environ if environ is None else environ
    repeated: list[str] = []
    places = (
        Place(
            {key: agent_defaults[key] for key in agent_defaults if key not in NANOBOT_OWN_KEYS},
            json_names(NANOBOT_FIELDS),
            prefix=NANOBOT_PREFIX,
            where=str(config),
            is_shared=True,
        ),
        Place(
            read_json_object(settings_file, repeated),
            json_names(KINDS),
            where=str(settings_file),
        ),
        Place(
            {
                key: text
                for key, text in variables.items()
                if key.upper().startswith(ENV_PREFIX) and text.strip()
            },
            {env_name(name): name for name in KINDS},
            where="the environment",
            is_shared=True,
            is_text=True,
        ),
    )
    found: dict[str, tuple[Any, str]] = {}
    for place in places:
        found |= place.read(problems)
    for key in repeated:
        problem = f"`{key}` stands there twice (in `{settings_file}`): the last one counts"
        leave_out(SettingsError(problem, path=key), None, problems)
    values = {name: value for name, (value, _) in found.items()}
    sources = {name: source for name, (_, source) in found.items()}
    buffer = ("message_buffer_min", "message_buffer_limit")
    try:
        path = next((sources[name] for name in buffer if name in sources), "")
        check_buffer(Settings().to_dict() | values, path)
    except SettingsError as error:
        leave_out(error, None, problems)
        for name in buffer:
            values.pop(name, None)
            sources.pop(name, None)
    return LoadedSettings(
        settings=replace(Settings(), **values),
        sources=sources,
        nanobot_config=config,
        settings_file=settings_file,
        agent_defaults=agent_defaults,
        model_presets=model_presets_of(own),
    )
