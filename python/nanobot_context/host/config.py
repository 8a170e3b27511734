"""Where the running nanobot has its config file, what stands there of the model, and its names."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nanobot_context.settings import LoadedSettings

# Where nanobot's config says nothing else.
DEFAULT_WORKSPACE = "~/.nanobot/workspace"


@dataclass(frozen=True, slots=True)
class Configured:
    """What nanobot's config file says of the model that it starts with; `None` where it is silent.

    Attributes:
        model: Its name.
        window: The tokens of its window, and the key that says so.
        block_limit: The most tokens that a prompt may have, and the key.
    """

    model: str | None = None
    window: tuple[int, str] | None = None
    block_limit: tuple[int, str] | None = None


def configured(loaded: LoadedSettings) -> Configured:
    """Return what stands in nanobot's config file of the model that it starts with.

    A preset that is active stands for model and window of `agents.defaults`, as in nanobot itself.
    """
    defaults, section = loaded.agent_defaults, "agents.defaults"
    name = defaults.get("modelPreset", defaults.get("model_preset"))
    preset = loaded.model_presets.get(name) if isinstance(name, str) else None
    in_force = defaults
    if isinstance(preset, dict):
        in_force, section = preset, f"modelPresets.{name}"
    model = in_force.get("model")
    return Configured(
        model if isinstance(model, str) else None,
        _tokens(in_force, "contextWindowTokens", section),
        _tokens(defaults, "contextBlockLimit", "agents.defaults"),
    )


def workspace_of(loaded: LoadedSettings) -> str:
    """Return the workspace that nanobot's config file names, or nanobot's own."""
    named = loaded.agent_defaults.get("workspace")
    return named if isinstance(named, str) else DEFAULT_WORKSPACE


def _tokens(section: Mapping[str, Any], key: str, where: str) -> tuple[int, str] | None:
    for name in (key, re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", key)):
        value: Any = section.get(name)
        if is_tokens(value):
            return value, f"{where}.{name}"
    return None


def is_tokens(value: Any) -> bool:
    """Return whether `value` is a number of tokens, and says of a window more than "none"."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def default_windows() -> tuple[int, ...]:
    """Return nanobot's own windows where nobody has written one; none before 0.1.4.post5.

    The very objects, for a reason: see `guard.told`.
    """
    found: list[Any] = []
    for name in ("AgentDefaults", "ModelPresetConfig"):
        try:
            schema = importlib.import_module("nanobot.config.schema")
            found.append(getattr(schema, name).model_fields["context_window_tokens"].default)
        except (ImportError, AttributeError, KeyError):
            continue
    # To 0.1.4.post6 the loop has a default of its own.
    loop = getattr(sys.modules.get("nanobot.agent.loop"), "AgentLoop", None)
    if loop is not None:
        own = inspect.signature(loop.__init__).parameters.get("context_window_tokens")
        found.append(getattr(own, "default", None))
    return tuple(filter(is_tokens, found))


def nanobot_config_path(argv: Sequence[str] | None = None) -> Path:
    """Return the config file that nanobot was started with, else its usual place.

    What nanobot has been told through `set_config_path` (0.1.4.post4 and later) comes first. The
    `nanobot` commands import the agent loop, and so this package, before they do that: until then
    the command line says it.
    """
    loader: Any = sys.modules.get("nanobot.config.loader")
    current = getattr(loader, "_current_config_path", None)
    if isinstance(current, Path):
        return current
    named = _from_command_line(sys.argv if argv is None else argv)
    return named or Path.home() / ".nanobot" / "config.json"


def _from_command_line(argv: Sequence[str]) -> Path | None:
    if not argv or not _is_nanobot(Path(argv[0])):
        return None
    for index, word in enumerate(argv[1:], start=1):
        option, equals, value = word.partition("=")
        if option == "--config" and equals:
            return Path(value).expanduser().resolve()
        if word in {"--config", "-c"} and index + 1 < len(argv):
            return Path(argv[index + 1]).expanduser().resolve()
        if re.match(r"-c[^-]", word):
            return Path(word[2:]).expanduser().resolve()
    return None


def _is_nanobot(program: Path) -> bool:
    # `nanobot`, `nanobot.exe`, or `python -m nanobot`.
    return program.stem == "nanobot" or program.parts[-2:] == ("nanobot", "__main__.py")


def provider_prefixes() -> frozenset[str]:
    """Return the provider names and prefixes of nanobot's registry, in lower case with underscores.

    Empty when this release's registry does not look as expected; then only the model table's own
    rules apply.
    """
    try:
        providers = importlib.import_module("nanobot.providers.registry").PROVIDERS
        # Releases without LiteLLM have no prefix for it.
        pairs = [(spec.name, getattr(spec, "litellm_prefix", "")) for spec in providers]
        names = [name for pair in pairs for name in pair if name]
    except (ImportError, AttributeError, TypeError):
        return frozenset()
    return frozenset(re.sub(r"[-.]", "_", str(name).lower()) for name in names)
