"""Finds the archive for a request's tool results: in the workspace that its system prompt names.

Every release writes the workspace into the system prompt of its loop and of its subagents, so that
two loops in one process each have their own. A request without one, such as the consolidation of
memory, has no archive.

`read_file` resolves a relative path against the workspace from 0.1.4.post2 on, and against the
current directory before; there the path is given in full, with `~` for the user's home.
"""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import dataclass, field
from pathlib import Path

from nanobot_context import log
from nanobot_context.archive import DIRECTORY, Archive
from nanobot_context.errors import InvalidArgumentError
from nanobot_context.guard.request import Message
from nanobot_context.host.config import DEFAULT_WORKSPACE

# What stands before the path in a loop's prompt and in a subagent's; subagents of 0.1.4.post3 to
# 0.2.2 have nothing there.
_WORKSPACE = re.compile(
    r"^## Workspace\n"
    r"(?:Your (?:current project )?workspace is at: |Current project workspace: )?([^\n]+)$",
    re.MULTILINE,
)
# 0.3.5 names no workspace where it is the configured one.
_UNNAMED = re.compile(
    r"^## Workspace\n(?:- Agent profile: SOUL\.md|\s*History log: )", re.MULTILINE
)


@dataclass(slots=True)
class Archives:
    """The archives of this process, one for each workspace.

    Attributes:
        max_bytes: The cap of each.
        relative: Whether `read_file` finds a path that is relative to the workspace.
        configured: The workspace of nanobot's config, for prompts that name none.
    """

    max_bytes: int
    relative: bool
    configured: str = DEFAULT_WORKSPACE
    _found: dict[str, Archive | None] = field(default_factory=dict)

    def of(self, messages: list[Message]) -> Archive | None:
        """Return the archive for a request with `messages`; `None` if they name no workspace."""
        workspace = self._workspace(messages)
        if workspace is None:
            return None
        if workspace not in self._found:
            try:
                self._found[workspace] = self._open(Path(workspace).expanduser())
            except (InvalidArgumentError, OSError, RuntimeError, ValueError) as error:
                log.warning("originals of tool results are not kept: {}", error)
                self._found[workspace] = None
        return self._found[workspace]

    def _workspace(self, messages: list[Message]) -> str | None:
        content = messages[0].get("content") if messages else None
        if not isinstance(content, str) or messages[0].get("role") != "system":
            return None
        if _UNNAMED.search(content):
            return self.configured
        found = _WORKSPACE.search(content)
        return found[1].strip() if found else None

    def _open(self, workspace: Path) -> Archive | None:
        if not (workspace.is_absolute() and workspace.is_dir()):
            return None
        directory = workspace.resolve() / DIRECTORY
        return Archive(
            directory,
            shown=DIRECTORY.as_posix() if self.relative else _from_home(directory),
            max_bytes=self.max_bytes,
            warn=lambda text: log.warning("{}", text),
        )


def read_file_knows_the_workspace() -> bool:
    """Return whether this release's `read_file` resolves a relative path against the workspace."""
    try:
        tool = importlib.import_module("nanobot.agent.tools.filesystem").ReadFileTool
        return "workspace" in inspect.signature(tool.__init__).parameters
    except (ImportError, AttributeError, ValueError, TypeError):
        return False


def _from_home(directory: Path) -> str:
    home = Path.home().resolve()
    if not directory.is_relative_to(home):
        return directory.as_posix()
    return f"~/{directory.relative_to(home).as_posix()}"
