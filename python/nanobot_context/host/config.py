"""Finds nanobot's config file, and reads the model, provider and names in it."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nanobot_context.host.detect import find
from nanobot_context.settings import LoadedSettings
from nanobot_context.settings.names import snake_case

# Where nanobot's config says nothing else.
DEFAULT_WORKSPACE = "~/.nanobot/workspace"


@dataclass(frozen=True, slots=True)
class Configured:
    """What nanobot's config file says of the model that it starts with; `None` where it is silent.

    Attributes:
        window: The tokens of its window, and the key that says so.
        block_limit: The most tokens that a prompt may have, and the key.
    """

    model: str | None = None
    window: tuple[int, str] | None = None
    block_limit: tuple[int, str] | None = None


def configured(loaded: LoadedSettings) -> Configured:
    """Read the model that nanobot starts with from its config file.

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


def address_of(provider: Any) -> str:
    """Return the address that nanobot gave a provider; empty where that has its usual one."""
    # What a fallback is behind was given it.
    for one in (provider, getattr(provider, "_primary", None)):
        address = getattr(one, "api_base", None)
        if isinstance(address, str):
            return address
    return ""


def keep_litellm_offline() -> None:
    """Make litellm read prices from its wheel; its import else asks the network, thrice."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")


def configured_addresses(config: Path, model: str | None) -> tuple[str, ...]:
    """Return what `address_of` may give for requests to `model`, by nanobot's config file.

    nanobot itself is asked, which chooses a provider for a model; that takes seconds with the
    releases that use litellm. Empty where it cannot say.
    """
    keep_litellm_offline()
    try:
        loader = importlib.import_module("nanobot.config.loader")
        with _quiet():
            loaded = loader.load_config(config)
            resolve = getattr(loader, "resolve_config_env_vars", None)
            loaded = loaded if resolve is None else resolve(loaded)
        preset = _preset_of(loaded, model)
        provider = loaded.get_provider(model, **preset)
        if provider is not None and provider.api_base:
            return (provider.api_base,)
        if provider is None or loaded.get_provider_name(model, **preset) == "custom":
            return ()
        # Not each kind of provider is given the usual address.
        return tuple(sorted({loaded.get_api_base(model, **preset) or "", ""}))
    except (ImportError, AttributeError, TypeError, ValueError, KeyError, OSError):
        return ()


def _preset_of(config: Any, model: str | None) -> dict[str, Any]:
    """Return the preset to ask about `model` with, where it is not the one in force (0.2.0)."""
    presets = getattr(config, "model_presets", None) or {}
    if model is None or (presets and config.resolve_preset().model == model):
        return {}
    found = [preset for preset in presets.values() if preset.model == model]
    return {"preset": found[0]} if found else {}


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Drop what nanobot prints and logs about its config file, which `doctor` reports."""
    logger = find("loguru", "logger")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.ExitStack() as stack:
        if logger is not None:
            logger.disable("nanobot")
            stack.callback(logger.enable, "nanobot")
        yield


def workspace_of(loaded: LoadedSettings) -> str:
    """Return the workspace that nanobot's config file names, or nanobot's own."""
    named = loaded.agent_defaults.get("workspace")
    return named if isinstance(named, str) else DEFAULT_WORKSPACE


def _tokens(section: Mapping[str, Any], key: str, where: str) -> tuple[int, str] | None:
    for name in (key, snake_case(key)):
        value: Any = section.get(name)
        if is_tokens(value):
            return value, f"{where}.{name}"
    return None


def max_answer(config: Path) -> int:
    """Return nanobot's limit for an answer: from its config file, or its default."""
    try:
        loader = importlib.import_module("nanobot.config.loader")
        with _quiet():
            loaded = loader.load_config(config)
        resolve = getattr(loaded, "resolve_preset", None)
        tokens = (resolve() if resolve else loaded.agents.defaults).max_tokens
    except (ImportError, AttributeError, TypeError, ValueError, KeyError, OSError):
        return 0
    return tokens if is_tokens(tokens) else 0


def is_tokens(value: Any) -> bool:
    """Return whether `value` is a number of tokens, and says of a window more than "none"."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def default_windows() -> tuple[int, ...]:
    """Return nanobot's default windows; none before 0.1.4.post5.

    The very objects, as `guard.configured` compares them by identity.
    """
    found: list[Any] = []
    for name in ("AgentDefaults", "ModelPresetConfig"):
        fields = getattr(find("nanobot.config.schema", name), "model_fields", {})
        if "context_window_tokens" in fields:
            found.append(fields["context_window_tokens"].default)
    # To 0.1.4.post6 the loop has a default of its own.
    loop = getattr(sys.modules.get("nanobot.agent.loop"), "AgentLoop", None)
    if loop is not None:
        own = inspect.signature(loop.__init__).parameters.get("context_window_tokens")
        found.append(getattr(own, "default", None))
    return tuple(filter(is_tokens, found))


_chosen: Path | None = None


def choose_config(chosen: Path | None) -> None:
    """Use `chosen` as nanobot's config file from now on; `None` for the file nanobot names."""
    global _chosen
    _chosen = chosen and chosen.expanduser().resolve()


def nanobot_config_path(argv: Sequence[str] | None = None) -> Path:
    """Return the config file that nanobot was started with, else its usual place.

    The path given to nanobot's `set_config_path` (0.1.4.post4 and later) comes first. The
    `nanobot` commands import the agent loop, and so this package, before they do that: until then
    the command line says it.
    """
    if _chosen is not None:
        return _chosen
    loader: Any = sys.modules.get("nanobot.config.loader")
    current = getattr(loader, "_current_config_path", None)
    if isinstance(current, Path):
        return current
    named = _from_command_line(sys.argv if argv is None else argv)
    return named or Path.home() / ".nanobot" / "config.json"


def _from_command_line(argv: Sequence[str]) -> Path | None:
    program = Path(argv[0] if argv else "")
    # `nanobot`, `nanobot.exe`, or `python -m nanobot`.
    if program.stem != "nanobot" and program.parts[-2:] != ("nanobot", "__main__.py"):
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


def provider_prefixes() -> frozenset[str]:
    """Return the provider names and prefixes of nanobot's registry, in lower case with underscores.

    Empty when this release's registry does not look as expected; then only the model table's own
    rules apply.
    """
    try:
        providers = find("nanobot.providers.registry", "PROVIDERS") or ()
        # Releases without LiteLLM have no prefix for it.
        pairs = [(spec.name, getattr(spec, "litellm_prefix", "")) for spec in providers]
    except (AttributeError, TypeError):
        return frozenset()
    names = (name for pair in pairs for name in pair if name)
    return frozenset(re.sub(r"[-.]", "_", str(name).lower()) for name in names)
