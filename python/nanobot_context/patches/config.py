"""The config file that a program names: `Nanobot.from_config(path)`.

The commands name it on their command line, which is read before anything of nanobot's is. A program
imports nanobot first, and this package with it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nanobot_context.guard.fuse import fused
from nanobot_context.patches.declaration import Context, Patch


def _load(original: Callable[..., Any], context: Context) -> Callable[..., Any]:
    @functools.wraps(original)
    def load_config(config_path: Any = None, *args: Any, **kwargs: Any) -> Any:
        config = original(config_path, *args, **kwargs)
        if context.active and context.moved is not None and config_path is not None:
            moved, named = context.moved, Path(config_path).expanduser().resolve()
            fused("follow a config file", lambda: moved(named), None)
        return config

    return load_config


PATCHES = (
    # A program that imports this module first imports the agent loop with it, before it is there.
    Patch(
        owner="nanobot.config.loader:",
        attribute="load_config",
        why="programs have the settings beside the config that they name",
        wrap=_load,
        only_with="nanobot.config.loader:load_config",
    ),
)
