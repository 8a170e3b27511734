"""Protection of the plain `nanobot` command: a start-up hook that can be removed again.

`enable` writes one `.pth` file into the environment. At every start of Python there, its single
line loads this file by path (not through the package, whose import loads the compiled core) and
puts one finder on `sys.meta_path`. The finder waits for nanobot's agent loop: once
`nanobot.agent.loop` has been imported, `nanobot_context.install()` runs, before any provider can be
called. The line does nothing when nanobot or nanobot-context has been uninstalled, and a process
that never imports nanobot pays for one string comparison an import.

Nothing beyond `sys` is imported at the top: this file runs at every start.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # not from `typing`, whose import costs more than the rest of this file
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from pathlib import Path
    from types import ModuleType

HOOK_FILE = "nanobot_context_autoload.pth"

# The last module that every nanobot command loads before its first model call: when it has been
# imported, the providers' base, the session manager and the subagent manager have been too, none
# of them in part.
TRIGGER = "nanobot.agent.loop"


class _AgentLoopFinder:
    """A finder that finds nothing itself: it installs the package once `TRIGGER` is imported."""

    # Found by name, because this class exists twice when the package has been imported too.
    nanobot_context_hook = True

    def __init__(self) -> None:
        self._searching = False

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname != TRIGGER or self._searching:
            return None
        from importlib.util import find_spec

        self._searching = True
        try:
            spec = find_spec(fullname)
        finally:
            self._searching = False
        if spec is not None and spec.loader is not None:
            _run_after(spec)
        return spec


def arm() -> None:
    """Install the package as soon as nanobot's agent loop has been imported, or at once if it has.

    Calling it again changes nothing.
    """
    if TRIGGER in sys.modules:
        _install()
    elif not _hooks():
        sys.meta_path.insert(0, _AgentLoopFinder())


def disarm() -> None:
    """Take the hook of `arm` out of this process. A package that is installed stays so."""
    for finder in _hooks():
        sys.meta_path.remove(finder)  # type: ignore[arg-type]


def enable() -> Path:
    """Protect every `nanobot` started in this environment from now on; return the hook's file.

    Writes one file into the environment's site-packages; calling it again renews that file.

    Raises:
        OSError: The folder cannot be written; the message says what to do.
    """
    import contextlib
    import os

    folder = _target_folder()
    path = folder / HOOK_FILE
    if path.is_file() and path.read_text(encoding="utf-8").strip() == hook_line():
        return path
    # Written aside and renamed: a Python that starts meanwhile sees the whole line or none.
    draft = folder / f"{HOOK_FILE}.{os.getpid()}.tmp"
    try:
        draft.write_text(hook_line() + "\n", encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise _not_writable(error, folder, "write") from error
    return path


def disable() -> list[Path]:
    """Undo `enable` and return the files that were removed; none when there was nothing to undo.

    Raises:
        OSError: A file cannot be removed; the message says what to do.
    """
    removed = hook_files()
    for path in removed:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise _not_writable(error, path.parent, "remove") from error
    return removed


def without_nanobot() -> str:
    """Return the message for an environment that has no nanobot for a hook to protect."""
    from nanobot_context.host.detect import nanobot_version

    if nanobot_version() is not None:
        return ""
    return (
        f"nothing is protected yet: this environment (`{sys.prefix}`) has no nanobot\n"
        "hint: install nanobot-context into the one that nanobot-ai is in (`pipx inject "
        "nanobot-ai nanobot-context`, `uv tool install nanobot-ai --with nanobot-context`) and "
        "run `nanobot-context enable` there"
    )


def hook_files() -> list[Path]:
    """Return the start-up hooks that Python would run in this environment."""
    return [path for folder in _site_folders() if (path := folder / HOOK_FILE).is_file()]


def hook_line() -> str:
    """Return the content of the start-up hook's file."""
    # One line, as `site` demands, and silent whatever happens. The file is named in full: a search
    # would take one of the current folder, where `PYTHONPATH` has it, at every start of Python.
    code = f"""\
try:
 from importlib.machinery import SourceFileLoader
 m = type(sys)('_nanobot_context_activation')
 SourceFileLoader(m.__name__, {__file__!r}).exec_module(m)
 m.arm()
except Exception:
 pass"""
    return f"import sys; exec({code!a}, {{'sys': sys}})"


def _hooks() -> list[object]:
    return [found for found in sys.meta_path if getattr(found, "nanobot_context_hook", False)]


def _run_after(spec: ModuleSpec) -> None:
    """Make the loader of `spec` install the package once it has executed its module."""
    loader = spec.loader
    execute = getattr(loader, "exec_module", None)
    if execute is None:
        return

    def exec_module(module: ModuleType) -> None:
        execute(module)
        disarm()
        _install()

    try:
        # On this one loader, not in a loader of our own: `inspect` and `pkgutil` see what they
        # know.
        loader.exec_module = exec_module  # type: ignore[union-attr, method-assign]
    except AttributeError:
        _warn("the loader of `%s` cannot be hooked; nanobot runs without protection", TRIGGER)


def _install() -> None:
    try:
        from nanobot_context.installer import install
    except ImportError:
        return  # uninstalled while the hook was left behind
    except Exception:
        _warn("cannot be imported; nanobot runs without protection", exc_info=True)
        return
    try:
        install()
    except Exception:
        # nanobot must start whatever happens here.
        _warn("could not install; nanobot runs without protection", exc_info=True)


def _warn(message: str, *args: object, exc_info: bool = False) -> None:
    import logging

    logging.getLogger("nanobot_context").warning(message, *args, exc_info=exc_info)


def _site_folders() -> list[Path]:
    """Return the folders whose `.pth` files are read in this environment, the usual one first."""
    import site
    import sysconfig
    from pathlib import Path

    names = [sysconfig.get_path("purelib"), *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        names.append(site.getusersitepackages())
    return list(dict.fromkeys(Path(name) for name in names))


def _target_folder() -> Path:
    """Return the folder for the hook: where the package itself is, else the environment's own."""
    from pathlib import Path

    folders = _site_folders()
    home = Path(__file__).resolve().parent.parent
    return next((folder for folder in folders if folder.resolve() == home), folders[0])


def _not_writable(error: OSError, folder: Path, action: str) -> OSError:
    message = (
        f"could not {action} `{folder / HOOK_FILE}`: {error.strerror}\n"
        "hint: run the command as the owner of that environment, or call "
        "`nanobot_context.install()` in your own start-up code"
    )
    return type(error)(error.errno, message)
