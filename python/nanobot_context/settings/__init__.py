"""Every knob of compression, overflow recovery and summaries, and where each is read from.

Three places, the later one wins:

1. `agents.defaults` of nanobot's `config.json`: `contextCompression`, `contextWindowOverride`, and
   those of the summaries of sessions, where documents 000 and 001 put them
   (`enableHistorySummarization`, `messageBufferLimit`, `messageBufferMin`, `summaryModel`).
2. `nanobot-context.json` in the same folder: every setting, camelCase or snake_case.
3. Environment variables: `NANOBOT_CONTEXT_` and the setting's name without a leading `context_`
   (`NANOBOT_CONTEXT_COMPRESSION`, `NANOBOT_CONTEXT_WINDOW_OVERRIDE`,
   `NANOBOT_CONTEXT_TOOL_RESULT_SOFT_LIMIT`, ...). An empty variable counts as not set.

nanobot's file is only ever read. Its models drop keys that they do not know when nanobot itself
saves (`nanobot onboard`, the web UI, MCP presets, a channel's login), so what is set there is
copied to `nanobot-context.json` once: see `settings.kept`.
"""

from __future__ import annotations

from nanobot_context.settings.config_files import SETTINGS_FILE, read_json_object
from nanobot_context.settings.loading import LoadedSettings, load_settings, load_usable_settings
from nanobot_context.settings.schema import Settings

__all__ = [
    "SETTINGS_FILE",
    "LoadedSettings",
    "Settings",
    "load_settings",
    "load_usable_settings",
    "read_json_object",
]
