"""Where the running nanobot has its config file, and the provider names it puts before a model."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


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
