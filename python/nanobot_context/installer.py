"""The nanobot shim: every model call of a running nanobot fits its window.

`install()` replaces a handful of attributes on nanobot's classes, `uninstall()` puts them back,
`status()` tells what is replaced. Importing this package imports no nanobot and changes nothing.

    model call -> guard: copy, compress -> nanobot's own method -> provider
                  refused as too long: compress harder, once more -> else a friendly error
"""

from __future__ import annotations

import inspect
import threading
from dataclasses import dataclass, replace
from typing import Any

from nanobot_context import activation
from nanobot_context.caches import set_cache_limit
from nanobot_context.errors import SettingsError
from nanobot_context.guard import fuse, log
from nanobot_context.guard import telemetry as live
from nanobot_context.guard.archives import (
    DEFAULT_WORKSPACE,
    Archives,
    read_file_knows_the_workspace,
)
from nanobot_context.guard.counters import Counters, counters_file
from nanobot_context.guard.guard import Guard
from nanobot_context.guard.limits import Learned, learned_file
from nanobot_context.guard.status import PatchPoint, Status
from nanobot_context.guard.telemetry import Live
from nanobot_context.guard.windows import Windows
from nanobot_context.host.config import nanobot_config_path, provider_prefixes
from nanobot_context.host.detect import Detection, detect_generation, load_classes, nanobot_version
from nanobot_context.host.messages import own_prompts
from nanobot_context.patches import governor as governance
from nanobot_context.patches import provider as safe_chat
from nanobot_context.patches import provider_chat
from nanobot_context.patches import window as own_window
from nanobot_context.patches.patching import PatchSet
from nanobot_context.patches.session import wrap_get_history
from nanobot_context.patches.subagents import wrap_run_subagent
from nanobot_context.settings import LoadedSettings, Settings, load_settings

__all__ = ["PatchPoint", "Status", "install", "status", "uninstall"]


@dataclass(frozen=True, slots=True)
class _Installation:
    patches: PatchSet
    detection: Detection
    loaded: LoadedSettings
    windows: Windows
    live: Live


_lock = threading.RLock()
_installation: _Installation | None = None
_last_refusal = Status(False, "`nanobot_context.install()` has not been called in this process")


def install(settings: Settings | None = None) -> Status:
    """Patch the nanobot of this process and return what was done; the second call changes nothing.

    Imports nanobot's agent loop if that has not happened. It never stops nanobot: with settings
    that cannot be read, a release that is not known, or no nanobot at all, one warning is logged
    and nanobot stays exactly as it is. The same, without a warning, when the settings switch
    compression off.

    Args:
        settings: The settings to use; `None` reads nanobot's config file, `nanobot-context.json`
            beside it and the environment, see `nanobot_context.settings`.
    """
    global _installation, _last_refusal
    with _lock:
        if _installation is not None:
            return status()
        # The start-up hook would call this function again from inside the import of the agent loop.
        activation.disarm()
        refusal = Status(False, nanobot_version=nanobot_version())
        try:
            loaded = load_settings(nanobot_config_path())
            if settings is not None:
                names = settings.to_dict()
                sources = {name: "install(settings=...)" for name in names}
                loaded = replace(loaded, settings=settings, sources=sources)
            store_url = loaded.settings.session_store
            if store_url is not None:
                from nanobot_context.plugins import session_store  # only then: it takes 70 ms

                # From here on the settings are shown, in `status` and in messages.
                shown = session_store.without_credentials(store_url)
                loaded = replace(loaded, settings=replace(loaded.settings, session_store=shown))
        except SettingsError as error:
            return _refuse(replace(refusal, reason=f"the settings cannot be used: {error}"))
        refusal = replace(refusal, settings=loaded.settings, sources=loaded.sources)
        if not loaded.settings.context_compression:
            switch = loaded.sources.get("context_compression", "contextCompression")
            _last_refusal = replace(refusal, reason=f"switched off by `{switch}`")
            return _last_refusal
        set_cache_limit(loaded.settings.cache_mb)
        try:
            classes = load_classes()
        except (ImportError, AttributeError) as error:
            return _refuse(replace(refusal, reason=f"nanobot cannot be imported here: {error}"))
        detection = detect_generation(classes)
        refusal = replace(refusal, points=detection.points)
        if detection.generation is None:
            return _refuse(replace(refusal, reason=detection.reason))

        fuse.reset()
        generation = provider_chat if detection.generation == "provider-chat" else safe_chat
        learned = Learned.load(learned_file(nanobot_config_path()))
        windows = Windows(loaded, provider_prefixes(), learned)

        def error_response(text: str) -> Any:
            known = inspect.signature(classes.response).parameters
            final = {"error_should_retry": False} if "error_should_retry" in known else {}
            return classes.response(content=text, finish_reason="error", **final)

        archives = None
        if loaded.settings.archive:
            workspace = loaded.agent_defaults.get("workspace")
            archives = Archives(
                loaded.settings.archive_max_bytes,
                read_file_knows_the_workspace(),
                workspace if isinstance(workspace, str) else DEFAULT_WORKSPACE,
            )
        telling = Live(Counters(counters_file(nanobot_config_path())))
        guard = Guard(
            loaded.settings,
            windows,
            generation.CLEAR_COMMAND,
            error_response,
            archives,
            own_prompts(),
            telling,
        )
        patches = PatchSet()
        try:
            generation.patch(classes.provider, guard, patches)
            patches.replace(
                classes.subagents,
                "_run_subagent",
                lambda original: wrap_run_subagent(original, patches),
            )
            history = classes.session.__dict__["get_history"]
            if "max_tokens" not in inspect.signature(history).parameters:
                patches.replace(
                    classes.session,
                    "get_history",
                    lambda original: wrap_get_history(original, patches),
                )
            governance.patch(classes.provider, windows, patches)
            own_window.patch(windows, patches)
            live.patch(patches)
            # Before the summaries, which save sessions, too.
            if store_url is not None:
                session_store.patch(store_url, patches)
            if loaded.settings.enable_history_summarization:
                from nanobot_context.plugins import summaries  # the same

                summaries.patch(classes.session, windows, loaded.settings, patches, telling)
        except BaseException:
            patches.restore()
            telling.close()
            raise
        telling.open_file(loaded.settings, nanobot_config_path().parent)
        _installation = _Installation(patches, detection, loaded, windows, telling)
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
        stuck = _installation.patches.restore()
        _installation.live.close()
        _installation = None
        _last_refusal = Status(False, "uninstalled", nanobot_version=nanobot_version())
        if stuck:
            log.warning("wrapped by somebody else, passes its calls on now: {}", ", ".join(stuck))


def status() -> Status:
    """Return what is patched in this process, and what is not and why. Changes nothing."""
    with _lock:
        current = _installation
    if current is None:
        return _last_refusal
    model = current.loaded.agent_defaults.get("model")
    window = current.windows.of(model) if isinstance(model, str) else None
    patched = list(dict.fromkeys(current.patches.names()))
    points = tuple(
        replace(point, state="patched")
        for point in current.detection.points
        # A point of its own only where the attribute itself is replaced: `chat` is, in each
        # subclass.
        if point.name in patched
    )
    extra = tuple(
        PatchPoint(name, "patched", "every model call")
        for name in patched
        if name not in {point.name for point in points} and name.endswith(".chat")
    )
    later = tuple(
        PatchPoint(name, "patched", "providers that are loaded later")
        for name in patched
        if name.endswith(".__init_subclass__")
    )
    own = tuple(
        PatchPoint(name, "patched", "nanobot's own window follows a larger model")
        for name in patched
        if name.endswith(f".{own_window.NAME}")
    )
    own += tuple(
        PatchPoint(name, "patched", "events name the session")
        for name in patched
        if name.endswith(live.NAME)
    )
    if current.loaded.settings.enable_history_summarization:
        from nanobot_context.plugins import summaries

        own += tuple(
            PatchPoint(name, "patched", "summaries of what was said long ago")
            for name in patched
            if name.endswith(summaries.NAMES)
        )
    store = current.loaded.settings.session_store
    if store is not None:
        from nanobot_context.plugins import session_store

        own += session_store.points(store, patched)
    return Status(
        installed=True,
        nanobot_version=nanobot_version(),
        generation=current.detection.generation,
        points=extra + later + points + own,
        settings=current.loaded.settings,
        sources=current.loaded.sources,
        window_tokens=window.tokens if window else None,
        window_source=window.source if window else "each request's model",
        model=model if isinstance(model, str) else None,
        learned=current.windows.learned.to_dict(),
        counters=current.live.counters.total(),
    )


def _refuse(refusal: Status) -> Status:
    """Log why nanobot was left untouched, and remember it for `status()`."""
    global _last_refusal
    _last_refusal = refusal
    log.warning("nanobot runs without protection: {}", refusal.reason)
    return refusal
