"""Patches a running nanobot, and restores it.

`install()` replaces what the table in `patches` declares, `uninstall()` puts it back, `status()`
says what is replaced. Importing this package imports no nanobot and changes nothing.

    model call -> guard: copy, compress -> nanobot's own method -> provider
                  refused as too long: compress harder, up to three times -> a friendly error
"""

from __future__ import annotations

import inspect
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nanobot_context import log
from nanobot_context._core import without_credentials
from nanobot_context.arguments import check_instance
from nanobot_context.caches import cache_sizes, set_cache_limit
from nanobot_context.errors import SettingsError
from nanobot_context.forks import ThreadLock
from nanobot_context.guard import fuse
from nanobot_context.guard.archives import Archives, read_file_knows_the_workspace
from nanobot_context.guard.counters import Counters, counters_file
from nanobot_context.guard.fitting import Fitter
from nanobot_context.guard.fuse import BlownFuse
from nanobot_context.guard.guard import Guard
from nanobot_context.guard.limits import ProviderLimits, learned_file
from nanobot_context.guard.record_file import record_file
from nanobot_context.guard.status import PatchPoint, Status
from nanobot_context.guard.telemetry import Telemetry
from nanobot_context.guard.windows import WindowResolver
from nanobot_context.host.config import (
    choose_config,
    nanobot_config_path,
    provider_prefixes,
    workspace_of,
)
from nanobot_context.host.detect import TESTED, NanobotClasses, load_classes, nanobot_version
from nanobot_context.host.messages import own_prompts, runtime_context_tag
from nanobot_context.patches.declaration import Context, Part
from nanobot_context.patches.patching import PatchSet
from nanobot_context.patches.plan import Plan, make_plan
from nanobot_context.settings import SETTINGS_FILE, LoadedSettings, Settings, load_usable_settings
from nanobot_context.settings.kept import keep_off, keep_settings

__all__ = ["BlownFuse", "PatchPoint", "Status", "install", "status", "uninstall"]


@dataclass(frozen=True, slots=True)
class _Installation:
    context: Context
    plan: Plan
    loaded: LoadedSettings
    given: Settings | None
    config: Path
    is_moved: bool = False


_lock = ThreadLock()
_installation: _Installation | None = None
_last_refusal = Status(False, "`nanobot_context.install()` has not been called in this process")


def install(settings: Settings | None = None) -> Status:
    """Patch the nanobot of this process and return what was done; the second call changes nothing.

    Imports nanobot's agent loop if that has not happened. It never stops nanobot: with settings
    that cannot be read, a release whose model calls cannot be reached, or no nanobot at all, one
    warning is logged and nanobot stays exactly as it is. The same, without a warning, when the
    settings switch compression off.

    Args:
        settings: The settings to use, in place of those in `nanobot-context.json` and the
            environment; the model and its window are still read from nanobot's config file. `None`
            reads them all, see `nanobot_context.settings`.

    Raises:
        InvalidArgumentError: `settings` is something else.
    """
    check_instance("settings", settings, Settings, optional=True)
    global _installation, _last_refusal
    with _lock:
        if _installation is not None:
            return status()
        # The start-up hook would call this function again from inside the import of the agent loop.
        sys.meta_path[:] = [
            finder for finder in sys.meta_path if not hasattr(finder, "nanobot_context_hook")
        ]
        version = nanobot_version()
        refusal = Status(False, nanobot_version=version, is_tested=_is_tested(version))
        try:
            loaded, store_url = _load(settings)
        except SettingsError as error:
            return _refuse(replace(refusal, reason=f"the settings cannot be used: {error}"))
        refusal = replace(
            refusal,
            settings=loaded.settings,
            sources=loaded.sources,
            problems=loaded.problems,
        )
        for problem in loaded.problems:
            log.warning("a setting is left out: {}", problem)
        if not loaded.settings.context_compression:
            switch = loaded.sources.get("context_compression", "contextCompression")
            _last_refusal = replace(refusal, reason=f"switched off by `{switch}`")
            return _last_refusal
        set_cache_limit(loaded.settings.cache_mb)
        try:
            classes = load_classes()
        except (ImportError, AttributeError) as error:
            return _refuse(replace(refusal, reason=f"nanobot cannot be imported here: {error}"))
        plan = make_plan(classes, _parts(loaded.settings))
        refusal = replace(refusal, points=plan.broken(version))
        if plan.generation is None:
            return _refuse(replace(refusal, reason=_unknown(version, plan)))
        context = _context(loaded, classes, store_url)
        counters = context.telemetry.counters
        fuse.reset(lambda: counters.add(failures=1))
        is_guarded = False
        try:
            is_guarded = plan.apply(context)
        finally:
            if not is_guarded:
                context.patches.restore()
                context.telemetry.close()
        if not is_guarded:
            reason = "model calls cannot be patched; the log has the error"
            return _refuse(replace(refusal, reason=reason))
        _warn(plan)
        config = nanobot_config_path()
        context.telemetry.open_file(loaded.settings, config.parent)
        _installation = _Installation(context, plan, loaded, settings, config)
        return status()


def uninstall() -> None:
    """Put every attribute back as it was before `install()`; does nothing without one.

    An attribute that somebody else has wrapped after us cannot be taken out; it stays, passes
    every call on unchanged, and is named in a warning.
    """
    global _installation, _last_refusal
    with _lock:
        if _installation is None:
            return
        context = _installation.context
        stuck = context.patches.restore()
        if context.summaries is not None:
            context.summaries.is_stopped = True
        context.telemetry.close()
        if _installation.is_moved:
            choose_config(None)
        _installation = None
        _last_refusal = Status(False, "uninstalled", nanobot_version=nanobot_version())
        if stuck:
            log.warning("wrapped by somebody else, passes its calls on now: {}", ", ".join(stuck))


def _move(config: Path) -> None:
    """Install again with the settings beside `config`; a process has one set."""
    global _installation
    with _lock:
        current = _installation
        if current is None or config == current.config:
            return
        uninstall()
        choose_config(config)
        install(current.given)
        if _installation is not None:
            _installation = replace(_installation, is_moved=True)
        log.info("the settings are those beside `{}`", config)


def status() -> Status:
    """Return what is patched in this process, and what is not and why. Changes nothing."""
    with _lock:
        current = _installation
    if current is None:
        return _last_refusal
    context, version = current.context, nanobot_version()
    windows = context.windows
    model = windows.configured.file.model
    addresses = windows.configured.addresses(model)
    window = windows.of_addresses(model, addresses) if model is not None else None
    patched = (PatchPoint(name, "patched", why) for name, why in context.patches.named())
    return Status(
        installed=True,
        nanobot_version=version,
        is_tested=_is_tested(version),
        generation=current.plan.generation,
        unguarded=current.plan.unguarded,
        points=(*patched, *current.plan.broken(version)),
        fuses=fuse.blown_fuses(),
        settings=current.loaded.settings,
        sources=current.loaded.sources,
        problems=current.loaded.problems,
        window_tokens=window.tokens if window else None,
        window_source=window.source if window else "each request's model",
        prompt_tokens=window.prompt_tokens if window else None,
        model=model,
        learned=windows.learned.to_dict(),
        counters=context.telemetry.counters.total(),
        caches=cache_sizes(),
    )


def _load(settings: Settings | None) -> tuple[LoadedSettings, str | None]:
    """Return the settings without the session store's credentials, and its full URL."""
    loaded = _usable_settings()
    if settings is None:
        try:
            if copied := keep_settings(loaded):
                log.info("copied to `{}`: {}", loaded.settings_file, ", ".join(copied))
        except (OSError, SettingsError) as error:
            log.warning("settings in nanobot's own file, which its next save drops: {}", error)
    else:
        sources = dict.fromkeys(settings.to_dict(), "install(settings=...)")
        loaded = replace(loaded, settings=settings, sources=sources, problems=())
    url = loaded.settings.session_store
    if url is not None:
        shown = replace(loaded.settings, session_store=without_credentials(url))
        loaded = replace(loaded, settings=shown)
    return loaded, url


def _usable_settings() -> LoadedSettings:
    config = nanobot_config_path()
    try:
        return load_usable_settings(config)
    except SettingsError as error:
        with suppress(OSError, SettingsError):
            keep_off(config, error)
        raise


def kept_settings() -> str:
    """Return a line that says where settings live, and which were copied there just now."""
    config = nanobot_config_path()
    try:
        copied = ", ".join(keep_settings(_usable_settings()))
    except (OSError, SettingsError) as error:
        return f"settings: {settings_file()}\nnot copied from `{config}`: {error}"
    return f"settings: {settings_file()}" + (f" (copied there: {copied})" if copied else "")


def settings_file() -> Path:
    """Return where this nanobot's settings live, whether that file exists or not."""
    return nanobot_config_path().parent / SETTINGS_FILE


def _parts(settings: Settings) -> list[Part]:
    parts: list[Part] = ["guard", "own cuts", "own window", "events"]
    if settings.session_store is not None:
        parts.append("session store")
    if settings.enable_history_summarization:
        parts.append("summaries")
    if settings.keep_rules:
        # Behind the summaries: what these leave out may be rules, too.
        parts.append("rules")
    return parts


def _context(loaded: LoadedSettings, classes: NanobotClasses, store_url: str | None) -> Context:
    """Return the context that replacements work with."""
    settings, config = loaded.settings, nanobot_config_path()
    telemetry = Telemetry(Counters(counters_file(config), record_file(config)))
    learned = ProviderLimits.load(learned_file(config), later=telemetry.counters.also)
    windows = WindowResolver(loaded, provider_prefixes(), learned)

    def error_response(text: str) -> Any:
        known = inspect.signature(classes.response).parameters
        final = {"error_should_retry": False} if "error_should_retry" in known else {}
        return classes.response(content=text, finish_reason="error", **final)

    archives = None
    if settings.archive:
        archives = Archives(
            settings.archive_max_bytes,
            read_file_knows_the_workspace(),
            workspace_of(loaded),
        )
    fitter = Fitter(settings, windows, archives, own_prompts(), runtime_context_tag())
    guard = Guard(fitter, error_response, telemetry)
    context = Context(PatchSet(), guard, windows, telemetry, settings, moved=_move)
    if settings.enable_history_summarization:
        from nanobot_context.plugins.summaries import SummaryJobs

        context.summaries = SummaryJobs(windows, settings, telemetry)
    if store_url is not None:
        from nanobot_context.plugins.opened_store import Opened

        context.store = Opened(store_url, telemetry.counters)
    return context


def _warn(plan: Plan) -> None:
    """Log the requested parts that this nanobot cannot have."""
    if "session store" in plan.lacking:
        from nanobot_context.plugins.opened_store import NO_EFFECT

        log.warning("{}", NO_EFFECT)
    if lacking := plan.lacking.get("summaries"):
        names = ", ".join(point.attribute for point in lacking)
        log.warning("sessions are not summarised: this nanobot has no {}", names)
    for calls in plan.unguarded:
        log.warning("not protected are {}", calls)


def _unknown(version: str | None, plan: Plan) -> str:
    lacking = "; ".join(f"`{point.name}` {point.problem}" for point in plan.lacking["guard"])
    return (
        f"nanobot {version or '(unknown version)'} is not known to this version of "
        f"nanobot-context and was left untouched: {lacking}\n"
        f"hint: supported are nanobot {TESTED[0]} to {TESTED[-1]}; a newer nanobot-context may "
        "know more"
    )


def _is_tested(version: str | None) -> bool:
    return version is None or version in TESTED


def _refuse(refusal: Status) -> Status:
    """Log why nanobot was left untouched, and remember it for `status()`."""
    global _last_refusal
    _last_refusal = replace(refusal, fuses=fuse.blown_fuses())
    log.warning("nanobot runs without protection: {}", refusal.reason)
    return _last_refusal
