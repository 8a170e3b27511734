"""Save nanobot's config in each way that this release has, with the start-up hook on.

Run with the interpreter of a nanobot environment; prints, as JSON, the ways that saved and dropped
what is not nanobot's, and what nanobot-context.json holds then.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from stage import write_config

SETTINGS = {
    "contextCompression": False,
    "contextWindowOverride": 23_456,
    "maxUserMessageChars": 12_345,
}
SERVER = "http://127.0.0.1:9/v1"


def main() -> None:
    """Play the ways one after the other, each on a file that has all settings."""
    folder = Path(os.environ["HOME"], ".nanobot")
    config = folder / "config.json"
    own = folder / "nanobot-context.json"
    dropped: dict[str, bool] = {}
    for name, save in WAYS.items():
        write_config(folder.parent, SERVER, "openai/gpt-4o-mini", SETTINGS)
        if not dropped:
            # The gateway starts.
            own.unlink(missing_ok=True)
            import_module("nanobot.agent.loop")
        before = config.read_bytes()
        try:
            save()
        except (ImportError, AttributeError):
            continue  # a later release's
        after = json.loads(config.read_bytes())["agents"]["defaults"]
        dropped[name] = config.read_bytes() != before and not SETTINGS.keys() & after.keys()
    kept = json.loads(own.read_text("utf-8")) if own.exists() else {}
    own.unlink(missing_ok=True)
    print(json.dumps({"dropped": dropped, "kept": kept}))


def _plain() -> None:
    loader = import_module("nanobot.config.loader")
    loader.save_config(loader.load_config())


def _web_ui() -> None:
    api = import_module("nanobot.webui.settings_api")
    api.update_agent_settings({"timezone": ["Europe/Berlin"]})


def _mcp_preset() -> None:
    api = import_module("nanobot.webui.mcp_presets_api")
    query = {"name": ["files"], "transport": ["stdio"], "command": ["ls"]}
    api.custom_mcp_action("custom", query)


def _feishu_login() -> None:
    runtime = import_module("nanobot.channels.feishu.runtime")
    runtime.save_registration_result({"app_id": "cli_a", "app_secret": "b", "domain": "feishu"})


def _weixin_login() -> None:
    channel: Any = import_module("nanobot.channels.weixin.runtime").WeixinChannel
    channel._persist_connect_credentials(channel.__new__(channel), token="t", base_url=SERVER)


WAYS: dict[str, Callable[[], None]] = {
    "plain": _plain,
    "web UI": _web_ui,
    "MCP preset": _mcp_preset,
    "Feishu login": _feishu_login,
    "Weixin login": _weixin_login,
}

if __name__ == "__main__":
    main()
