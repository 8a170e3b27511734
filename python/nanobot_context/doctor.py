"""Examines an environment for `nanobot-context status` and `doctor`."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nanobot_context import activation, log
from nanobot_context._core import (
    answer_reserve,
    listed_window,
    reserve_tokens,
    without_credentials,
)
from nanobot_context.errors import (
    InvalidArgumentError,
    SessionStoreError,
    SettingsError,
    StoreDataError,
)
from nanobot_context.file_checks import check_files
from nanobot_context.guard.limits import ProviderLimits, learned_file, name_of
from nanobot_context.guard.record import RequestRecord
from nanobot_context.guard.record_file import read_records
from nanobot_context.guard.status import Status
from nanobot_context.guard.windows import WindowResolver
from nanobot_context.host.config import (
    configured_addresses,
    keep_litellm_offline,
    max_answer,
    nanobot_config_path,
    provider_prefixes,
)
from nanobot_context.host.detect import installed_version
from nanobot_context.host.model_server import ask_window, is_local
from nanobot_context.installer import install
from nanobot_context.plugins import opened_store
from nanobot_context.sessions.nanobot_files import APP, USER
from nanobot_context.sessions.service import SessionService
from nanobot_context.setting_checks import Finding, left_out, misplaced, without_effect
from nanobot_context.settings import SETTINGS_FILE, Settings, load_usable_settings
from nanobot_context.settings.names import NANOBOT_PREFIX

# Sessions that are read whole.
_SESSIONS_READ = 200

# Between these every model call of five of the supported releases fails (measured: 1.102.4 works,
# 1.106.0 and 1.106.2 fail, 1.110.2 works; mcp 1.30).
_FAILING_LITELLM = ((1, 102, 4), (1, 110))


@dataclass(frozen=True, slots=True)
class Report:
    """Everything the two commands print.

    Attributes:
        versions: Versions of Python and of the packages involved; `None` when not installed.
        hook_files: The start-up hooks of this environment.
        config_files: The settings files that exist.
        status: What installing the package in this process came to.
        findings: The problems, most important first.
        session_store: What is wrong with the store of nanobot's sessions; empty where nothing is.
        last: The newest request to the configured model, `None` where none is recorded.
        newest: The newest request to any model.
    """

    versions: dict[str, str | None]
    hook_files: tuple[str, ...]
    config_files: tuple[str, ...]
    status: Status
    findings: tuple[Finding, ...]
    session_store: str = ""
    last: RequestRecord | None = None
    newest: RequestRecord | None = None

    @property
    def protected(self) -> bool:
        """Whether every model call of a nanobot started in this environment would be protected."""
        return self.status.protected and bool(self.hook_files)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "protected": self.protected,
            "versions": self.versions,
            "hook_files": list(self.hook_files),
            "config_files": list(self.config_files),
            "status": self.status.to_dict(),
            "last_request": self.last.to_dict() if self.last else None,
            "findings": [{"problem": item.problem, "fix": item.fix} for item in self.findings],
        }


def examine(*, ask_server: bool = False) -> Report:
    """Install the package in this process, and report on it and on the environment around it.

    Imports nanobot, which takes some seconds with the releases that use litellm. With `ask_server`
    a model server on this machine or network is asked for its window.
    """
    log.mute()  # the report says the same
    keep_litellm_offline()
    config = nanobot_config_path()
    hook_files = activation.hook_files()
    state = _configured(config, install())
    store, records = list(_check_store(config, state)), read_records(config)
    last = _last_request(records, state)
    findings = (
        *_check_installed(state),
        *_check_calls(state),
        *_check_hook(hook_files),
        *_check_litellm(installed_version("litellm")),
        *_check_command(),
        *left_out(state),
        *misplaced(config),
        *without_effect(state),
        *_check_window(state),
        *_check_model(state, is_asked=ask_server),
        *(_check_server(config, state) if ask_server else ()),
        *_check_room(last, state, config),
        *_check_reserve(config, state),
        *store,
        *(check_files(config, state.settings) if state.installed and state.settings else ()),
        *_check_fuses(state),
    )
    packages = ("nanobot-context", "nanobot-ai", "litellm", "mcp")
    return Report(
        versions={
            "python": platform.python_version(),
            **{package: installed_version(package) for package in packages},
        },
        hook_files=tuple(map(str, hook_files)),
        config_files=tuple(
            str(path) for path in (config, config.parent / SETTINGS_FILE) if path.is_file()
        ),
        status=state,
        findings=findings,
        session_store="; ".join(finding.problem for finding in store),
        last=last,
        newest=records[-1] if records else None,
    )


def _configured(config: Path, state: Status) -> Status:
    """Return `state` with the window of requests to where nanobot's config file sends them."""
    if not state.installed or state.model is None:
        return state
    windows = WindowResolver(
        load_usable_settings(config), provider_prefixes(), ProviderLimits.load(learned_file(config))
    )
    window = windows.of_addresses(state.model, configured_addresses(config, state.model))
    return replace(
        state,
        window_tokens=window.tokens,
        window_source=window.source,
        prompt_tokens=window.prompt_tokens,
    )


def _check_installed(state: Status) -> Iterator[Finding]:
    if state.installed:
        return
    problem, _, hint = state.reason.partition("\nhint: ")
    if state.nanobot_version is None:
        yield Finding(
            "nanobot is not installed in this environment",
            "install nanobot-context into the environment that nanobot-ai is in "
            "(`pipx inject nanobot-ai nanobot-context` or `uv tool install --with ...`)",
        )
    elif state.settings is not None and not state.settings.context_compression:
        yield Finding(problem, "remove that setting, or leave nanobot as it is")
    else:
        yield Finding(problem, hint or "correct what the message names")


def _check_calls(state: Status) -> Iterator[Finding]:
    """Look for model calls that nothing protects."""
    for calls in state.unguarded:
        yield Finding(
            f"not protected are {calls}",
            "use a newer nanobot-context, or a nanobot release that `nanobot-context` was tested "
            "with",
        )


def _check_fuses(state: Status) -> Iterator[Finding]:
    """Look for mistakes of the package's while it was installed."""
    for fuse in state.fuses:
        yield Finding(
            f"nanobot-context could not {fuse.what} ({fuse.error}); nanobot goes on without",
            "please report it, with the error in nanobot's log",
        )


def _check_hook(hook_files: list[Path]) -> Iterator[Finding]:
    if not hook_files:
        yield Finding(
            "the `nanobot` command is not protected: there is no start-up hook",
            "run `nanobot-context enable`",
        )
    for path in hook_files:
        if _text(path).strip() != activation.hook_line():
            yield Finding(
                f"`{path}` was written by another version", "run `nanobot-context enable`"
            )


def _check_litellm(version: str | None) -> Iterator[Finding]:
    numbers = tuple(int(number) for number in re.findall(r"\d+", version or "")[:3])
    if _FAILING_LITELLM[0] < numbers < _FAILING_LITELLM[1]:
        yield Finding(
            f"litellm {version}: with 1.103 to 1.109 every model call of nanobot 0.1.3.post7 and "
            "0.1.4.post2 to post5 fails inside litellm",
            "pip install 'litellm>=1.110' or 'litellm<=1.102.4'",
        )


def _check_command() -> Iterator[Finding]:
    command = shutil.which("nanobot")
    if command is None:
        return
    own = Path(sys.prefix, "Scripts" if os.name == "nt" else "bin", Path(command).name)
    if own.exists() and Path(command).resolve() != own.resolve():
        yield Finding(
            f"the `nanobot` on PATH is `{command}`, which is not of this environment "
            f"(`{sys.prefix}`)",
            "run `nanobot-context` from the environment that this nanobot is in",
        )


def _check_window(state: Status) -> Iterator[Finding]:
    """Look for a window that is set larger than the model's own."""
    if not state.installed or state.model is None or state.window_tokens is None:
        return
    listed = listed_window(state.model)
    if listed is not None and state.window_tokens > listed:
        yield Finding(
            f"{state.window_source} is {state.window_tokens:,} tokens, but the model table knows "
            f"{listed:,} for `{state.model}`: requests would be refused and sent a second time",
            "lower or remove that setting, unless the table is wrong about the model",
        )


def _check_model(state: Status, *, is_asked: bool = False) -> Iterator[Finding]:
    """Look for a model whose window is assumed."""
    if state.installed and state.window_source.startswith("assumed"):
        fix = f"set `contextWindowOverride` in `{SETTINGS_FILE}` to the model's window"
        ask = "`nanobot-context doctor --ask-server` asks a local server for it"
        yield Finding(
            f"`{state.model}` is in no table: a window of {state.window_tokens:,} tokens is "
            "assumed until a refusal says otherwise",
            fix if is_asked else f"{fix}; {ask}",
        )


def _check_server(config: Path, state: Status) -> Iterator[Finding]:
    """Check that a local server has the window that is used."""
    if not state.installed or state.model is None:
        return
    for address in filter(is_local, configured_addresses(config, state.model)):
        found = ask_window(address, state.model)
        if found is not None and found[0] != state.window_tokens:
            yield Finding(
                f"the server at {name_of(state.model, address).partition(' at ')[2]} has a "
                f"window of {found[0]:,} tokens ({found[1]}), and "
                f"{state.window_tokens or 0:,} are used ({state.window_source})",
                f"set `contextWindowOverride` to {found[0]} in `{SETTINGS_FILE}`",
            )
            return


# Among this many of the newest requests at least one is a turn's.
_RECORDS_SEEN = 50


def _last_request(records: list[RequestRecord], state: Status) -> RequestRecord | None:
    """Return the newest request to the configured model that had a window and was a turn's.

    Skips subagents' requests and those for nanobot's memory or titles, whose fixed part is small.
    """
    records = [
        record
        for record in records
        if record.window_tokens and not record.is_subagent and record.model == state.model
    ][-_RECORDS_SEEN:]
    least = max((record.fixed_tokens for record in records), default=0) // 2
    return next((one for one in reversed(records) if one.fixed_tokens >= least), None)


def _check_room(last: RequestRecord | None, state: Status, config: Path) -> Iterator[Finding]:
    """Check that system, tools and the longest answer leave room for a conversation.

    In the window that is in force: the last request may have been made in another one.
    """
    window = state.window_tokens
    if last is None or window == 0:
        return
    window = window or last.window_tokens
    wanted, room = max_answer(config), max(window - last.fixed_tokens, 0)
    least = kept_free(state, window, room, 0)
    if room - max(wanted, least) >= room // 2 > 0:
        return

    kept = kept_free(state, window, room, wanted)
    better = max(_power_of_two(room // 4), _power_of_two(least))
    sizes = ", ".join(f"{name} {tokens:,}" for name, tokens in last.tools)
    largest = f" (largest: {sizes})" if sizes else ""
    if kept_free(state, window, room, better) >= kept:
        yield Finding(
            f"{last.fixed_tokens:,} tokens of system and tools and {kept:,} for the answer "
            f"leave {max(room - kept, 0):,} of {window:,} for the conversation{largest}",
            "use a model with a larger window, or fewer tools; if the window is wrong, correct "
            f"what it is from: {state.window_source}",
        )
        return
    is_less = kept < wanted
    instead = f", and {kept:,} are kept free for it instead" if is_less else ""
    yield Finding(
        f"`maxTokens` {wanted:,} leaves {max(room - wanted, 0):,} of {window:,} tokens for "
        f"the conversation, beside {last.fixed_tokens:,} of system and tools{instead}{largest}",
        f"set `agents.defaults.maxTokens` to {better:,} in `{config}`",
    )


def kept_free(state: Status, window_tokens: int, left_tokens: int, asked_tokens: int) -> int:
    """Return what is kept free of a window for an answer of `asked_tokens`.

    `left_tokens` are what system and tools leave of it.
    """
    ratio = (state.settings or Settings()).context_reserve_ratio
    return reserve_tokens(window_tokens, answer_reserve(left_tokens, asked_tokens), ratio)


def _power_of_two(most: int) -> int:
    """Return the largest power of two up to `most`, at least 1."""
    return 1 << max(most, 1).bit_length() - 1


# As much of a window is kept free by nobody's wish.
_MOST_RESERVED = 0.5


def _check_reserve(config: Path, state: Status) -> Iterator[Finding]:
    """Check that what is kept free of the window leaves most of it to the conversation."""
    reserved = state.settings.context_reserve_ratio if state.settings else 0.0
    if reserved > _MOST_RESERVED:
        source = (state.sources or {}).get("context_reserve_ratio", "")
        file = config if source.startswith(NANOBOT_PREFIX) else config.parent / SETTINGS_FILE
        yield Finding(
            f"`contextReserveRatio` {reserved:g} keeps {reserved:.0%} of the window free",
            f"remove it from `{file}`, or set it to 0.15 or so",
        )


def _check_store(config: Path, state: Status) -> Iterator[Finding]:
    """Check that the store of the setting `sessionStore` can be opened."""
    try:
        url = load_usable_settings(config).settings.session_store
    except SettingsError:
        return  # `install` has said so
    if url is None:
        return
    if not state.installed:
        yield Finding(
            "`sessionStore` has no effect, sessions stay files: nanobot is not patched",
            "correct what is said above, or remove that setting",
        )
        return
    if not opened_store.is_supported():
        yield Finding(opened_store.NO_EFFECT, "remove that setting, or use nanobot 0.3.5 or later")
        return
    try:
        with SessionService(url, cleanup_interval_seconds=0) as service:
            yield from _check_sessions(service)
    except (SessionStoreError, InvalidArgumentError) as error:
        shown = without_credentials(url)
        problem, _, hint = str(error).partition("\nhint: ")
        yield Finding(
            f"the session store `{shown}` cannot be opened, so a nanobot that starts now keeps "
            "its sessions in files until it can be, and what a running one is told is in its "
            f"memory alone: {problem}",
            hint or "correct `sessionStore` and restart nanobot, or start what it names",
        )


def _check_sessions(service: SessionService) -> Iterator[Finding]:
    """Look for sessions of nanobot's of which something cannot be read, among the newest."""
    fix = "put back a copy of the store; or go on without it, or delete the session"
    for head in service.list_sessions(APP, USER, limit=_SESSIONS_READ):
        try:
            session = service.get(*head.key, user_first="off")
        except StoreDataError as error:
            yield Finding(str(error).partition("\nhint: ")[0], fix)
            continue
        if session is not None and (damaged := session.damaged):
            places = ", ".join(str(event.seq) for event in damaged)
            yield Finding(
                f"session `{head.id}` is damaged: what stands at position {places} cannot be read, "
                "the rest can",
                fix,
            )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
