"""The exceptions of the package.

NanobotContextError
├── ContextOverflowError        what must stay is larger than what is allowed
├── InvalidInputError           (also a ValueError)
│   ├── InvalidMessageError     a message of a shape that no provider accepts
│   └── InvalidArgumentError    another argument that cannot be used
├── SettingsError               (also a ValueError) a setting that cannot be used
├── ConversationFileError       (also a ValueError) a file that holds no conversation
└── SessionStoreError           a session store did not do what it was asked to
    ├── SessionNotFoundError    there is no such session, or it has expired
    ├── SessionExistsError      there is one, and it was to be created
    ├── SessionGoneError        it was deleted or created anew meanwhile
    ├── ConflictError           another writer was first
    ├── StoreUnavailableError   no answer, or locked for too long
    ├── StoreAccessError        wrong password, or it cannot be written
    ├── StoreFullError          the disk or the memory is full
    ├── StoreDataError          damaged, of a later release, or of another program
    └── StoreClosedError        it has been closed
"""

from __future__ import annotations

import copyreg
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nanobot_context.types import Retry

__all__ = [
    "ConflictError",
    "ContextOverflowError",
    "ConversationFileError",
    "InvalidArgumentError",
    "InvalidInputError",
    "InvalidMessageError",
    "NanobotContextError",
    "SessionExistsError",
    "SessionGoneError",
    "SessionNotFoundError",
    "SessionStoreError",
    "SettingsError",
    "StoreAccessError",
    "StoreClosedError",
    "StoreDataError",
    "StoreFullError",
    "StoreUnavailableError",
]


class NanobotContextError(Exception):
    """The base of every exception of this package. All can be pickled and copied."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Not through `__init__`, which has keywords: a pool waits for ever for what it cannot read.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class ContextOverflowError(NanobotContextError):
    """The request is too large, and nothing that may be cut is left.

    Attributes:
        needed_tokens: Tokens that what must stay needs; 0 when a provider did not say.
        limit_tokens: Tokens that are allowed; 0 when a provider did not say.
        model: The model they were counted for.
        parts: Tokens of each part that must stay: `system`, `tools`, `last_user`, `framing`; `kept`
            for messages that the caller keeps.
        largest_tools: The largest tools by name, at most three, with their tokens.
    """

    def __init__(
        self,
        message: str,
        *,
        needed_tokens: int,
        limit_tokens: int,
        model: str | None,
        parts: Mapping[str, int],
        largest_tools: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        super().__init__(message)
        self.needed_tokens = needed_tokens
        self.limit_tokens = limit_tokens
        self.model = model
        self.parts = dict(parts)
        self.largest_tools = dict(largest_tools)


class InvalidInputError(NanobotContextError, ValueError):
    """What was passed in cannot be used."""


class InvalidMessageError(InvalidInputError):
    """A message is of a shape that no provider accepts.

    Attributes:
        index: Its position in the list, from 0.
        field: The path below the message, such as `.tool_calls[2]`; empty for the message itself.
    """

    def __init__(self, message: str, *, index: int, field: str) -> None:
        super().__init__(message)
        self.index = index
        self.field = field


class InvalidArgumentError(InvalidInputError):
    """An argument other than the messages cannot be used.

    Attributes:
        argument: Its name.
    """

    def __init__(self, message: str, *, argument: str) -> None:
        super().__init__(message)
        self.argument = argument


class SettingsError(NanobotContextError, ValueError):
    """A setting cannot be used.

    Attributes:
        path: The key's path as the user wrote it, such as `agents.defaults.contextWindowOverride`.
    """

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message)
        self.path = path


class ConversationFileError(NanobotContextError, ValueError):
    """A file holds no conversation.

    Attributes:
        path: The file.
        line: The line of what is wrong, from 1.
        column: The character in that line, from 1.
    """

    def __init__(self, message: str, *, path: str, line: int, column: int) -> None:
        super().__init__(message)
        self.path = path
        self.line = line
        self.column = column


class SessionStoreError(NanobotContextError):
    """A session store did not do what it was asked to. No message holds a password.

    Attributes:
        retry: What helps: `later`, `after_reading` or `never`.
    """

    def __init__(self, message: str, *, retry: Retry = "never") -> None:
        super().__init__(message)
        self.retry = retry


class SessionNotFoundError(SessionStoreError):
    """There is no such session, or it has expired."""


class SessionExistsError(SessionStoreError):
    """There is such a session, and it was to be created."""


class SessionGoneError(SessionStoreError):
    """The session was deleted or created anew since its caller read it."""


class ConflictError(SessionStoreError):
    """Another writer was first: the session is not what its caller read.

    Attributes:
        expected: The position or the metadata that the caller knew.
        actual: What is there.
    """

    def __init__(self, message: str, *, retry: Retry, expected: str, actual: str) -> None:
        super().__init__(message, retry=retry)
        self.expected = expected
        self.actual = actual


class StoreUnavailableError(SessionStoreError):
    """The store does not answer, or another process holds its lock for too long."""


class StoreAccessError(SessionStoreError):
    """The store refused the user name or the password, or it cannot be written."""


class StoreFullError(SessionStoreError):
    """The store's disk or memory is full; what was there before is unharmed."""


class StoreDataError(SessionStoreError):
    """What is stored is damaged, was written by a later release or is another program's."""


class StoreClosedError(SessionStoreError):
    """The store has been closed."""
