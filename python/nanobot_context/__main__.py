"""`python -m nanobot_context` and the console script `nanobot-context`."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line and return its exit code; say what is missing when it cannot run."""
    try:
        from nanobot_context.cli.app import run
    except KeyboardInterrupt:
        return 130
    except ModuleNotFoundError as error:
        if error.name not in {"typer", "rich", "click"}:
            raise
        print(
            f"the command line needs `{error.name}`, which comes with nanobot\n"
            "hint: without nanobot run `pip install 'nanobot-context[cli]'`",
            file=sys.stderr,
        )
        return 2
    return run()


if __name__ == "__main__":
    sys.exit(main())
