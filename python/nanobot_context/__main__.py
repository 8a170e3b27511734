"""`python -m nanobot_context` and the console script `nanobot-context`."""

from __future__ import annotations

import sys

from nanobot_context.words import shown


def main() -> int:
    """Run the command line and return its exit code; say what is missing when it cannot run."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from nanobot_context import __version__

        print(f"nanobot-context {__version__}")
        return 0
    try:
        from nanobot_context.cli.app import run
    except KeyboardInterrupt:
        return 130
    except ModuleNotFoundError as error:
        if error.name not in {"typer", "rich", "click"}:
            raise
        if sys.argv[1:] in (["enable"], ["disable"]):
            return _without_typer(sys.argv[1])
        missing = (
            f"the command line needs `{error.name}`, which comes with nanobot\n"
            "hint: without nanobot run `pip install 'nanobot-context[cli]'`"
        )
        print(shown(missing), file=sys.stderr)
        return 2
    return run()


def _without_typer(command: str) -> int:
    """Run `enable` or `disable`, which protect a nanobot of an environment without typer."""
    from nanobot_context import activation
    from nanobot_context.installer import kept_settings, settings_file

    try:
        if command == "enable":
            print(shown(f"enabled: {activation.enable()}"))
            print(shown(kept_settings()))
            if missing := activation.without_nanobot():
                print(shown(missing), file=sys.stderr)
        else:
            kept_settings()  # nanobot's next save drops what stands in its own file
            for path in activation.disable():
                print(shown(f"removed: {path}"))
            if settings_file().is_file():
                print(shown(f"settings stay: {settings_file()}"))
    except OSError as error:
        print(f"{shown('error:')} {shown(error.strerror or str(error))}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
