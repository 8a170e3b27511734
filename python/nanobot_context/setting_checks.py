"""Finds settings that were left out, have no effect or are in the wrong file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nanobot_context.errors import SettingsError
from nanobot_context.guard.status import Status
from nanobot_context.settings import SETTINGS_FILE, Settings, read_json_object
from nanobot_context.settings.names import NANOBOT_FIELDS, camel_case, json_names
from nanobot_context.settings.schema import KINDS


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem, and what to do about it."""

    problem: str
    fix: str


def left_out(state: Status) -> list[Finding]:
    """Name each setting that is left out."""
    findings = []
    for text in state.problems:
        problem, _, hint = text.partition("\nhint: ")
        findings.append(Finding(f"a setting is left out: {problem}", hint or "correct it"))
    return findings


# Settings that do nothing without another one, and what that is set to then.
_NEEDS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        (
            *("message_buffer_limit", "message_buffer_min", "summary_interval", "summary_format"),
            *("summary_prompt", "summary_max_words", "summary_model", "summary_timeout_seconds"),
            "compression_model",
        ),
        ("enable_history_summarization", "true"),
    ),
    **dict.fromkeys(("events_max_bytes", "events_include_content"), ("events", '"events.jsonl"')),
    "archive_max_bytes": ("archive", "true"),
}


def without_effect(state: Status) -> list[Finding]:
    """Name each setting that does nothing as the others are."""
    if not state.installed or state.settings is None:
        return []
    settings, plain = state.settings.to_dict(), Settings().to_dict()
    findings = [
        Finding(
            f"`{camel_case(name)}` has no effect without `{camel_case(needed)}`",
            f"set `{camel_case(needed)}` to {value} in `{SETTINGS_FILE}`, or remove it",
        )
        for name, (needed, value) in _NEEDS.items()
        if settings[name] != plain[name] and not settings[needed]
    ]
    patterns = settings["context_windows"] or {}
    if state.model and patterns and state.settings.window_of(state.model) is None:
        findings.append(
            Finding(
                f"no name in `contextWindows` is that of `{state.model}`",
                "name it as nanobot's config does, or by a pattern such as `qwen3-*`",
            )
        )
    if settings["tool_result_soft_limit"] > settings["tool_result_hard_limit"]:
        findings.append(
            Finding(
                "`toolResultSoftLimit` has no effect above `toolResultHardLimit`, which is for all "
                "results together",
                "lower it, or raise the other",
            )
        )
    return findings


def misplaced(config: Path) -> list[Finding]:
    """Look for our settings in nanobot's file where they do harm or have no effect."""
    try:
        data = read_json_object(config)
    except SettingsError:
        return []  # `install` has said so
    keys = json_names(KINDS).keys()
    findings = [
        Finding(
            f"`{key}` stands at the root of `{config}`, where nanobot refuses the whole file",
            f"move it to `{SETTINGS_FILE}` beside that file",
        )
        for key in data
        if key in keys
    ]
    agents = data.get("agents")
    section = agents.get("defaults") if isinstance(agents, dict) else None
    allowed = json_names(NANOBOT_FIELDS).keys()
    findings += [
        Finding(
            f"`agents.defaults.{key}` has no effect in `{config}`",
            f"move it to `{SETTINGS_FILE}` beside that file",
        )
        for key in (section if isinstance(section, dict) else {})
        if key in keys - allowed
    ]
    return findings + _contradictions(config, section if isinstance(section, dict) else {})


def _contradictions(config: Path, section: Mapping[str, Any]) -> list[Finding]:
    """Look for settings of nanobot's file that differ from ours, which is in force."""
    try:
        own = read_json_object(config.parent / SETTINGS_FILE)
    except SettingsError:
        return []
    both = [
        (name, (section.keys() & names, own.keys() & names))
        for name in NANOBOT_FIELDS
        for names in ({name, camel_case(name)},)
    ]
    return [
        Finding(
            f"`{camel_case(name)}` in `agents.defaults` of `{config}` is not what "
            f"`{SETTINGS_FILE}` says, which is in force",
            f"change it in `{SETTINGS_FILE}` beside that file, and remove the other",
        )
        for name, (theirs, ours) in both
        if theirs and ours and section[min(theirs)] != own[min(ours)]
    ]
