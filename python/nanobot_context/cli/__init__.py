"""The command line. Imported by `__main__` only: the package itself needs neither typer nor rich.

Exit codes: 0 when all is well, 1 for a negative answer (nanobot is not protected, `doctor` found a
problem, what must stay of a conversation does not fit, the user said no), 2 when a command could
not do its work.

`cli.app` puts the commands together, what they print goes through `cli.output`. What only some
commands need is imported in these: the shell's completion runs all of this with each key.
"""

from __future__ import annotations
