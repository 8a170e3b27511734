"""The exceptions of the package.

NanobotContextError
├── ContextOverflowError        what must stay is larger than what is allowed
├── InvalidInputError           (also a ValueError)
│   ├── InvalidMessageError     a message of a shape that no provider accepts
│   └── InvalidArgumentError    another argument that cannot be used
└── SettingsError               (also a ValueError) a setting that cannot be used
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "ContextOverflowError",
    "InvalidArgumentError",
    "InvalidInputError",
    "InvalidMessageError",
    "NanobotContextError",
    "SettingsError",
]


class NanobotContextError(Exception):
    """The base of every exception of this package."""


class ContextOverflowError(NanobotContextError):
    """The request is too large, and nothing that may be cut is left.

    Attributes:
        needed_tokens: Tokens that what must stay needs; 0 when a provider did not say.
        limit_tokens: Tokens that are allowed; 0 when a provider did not say.
        model: The model they were counted for.
        parts: Tokens of each part that must stay: `system`, `tools`, `last_user`, `framing`.
    """

    def __init__(
        self,
        message: str,
        *,
        needed_tokens: int,
        limit_tokens: int,
        model: str | None,
        parts: Mapping[str, int],
    ) -> None:
        super().__init__(message)
        self.needed_tokens = needed_tokens
        self.limit_tokens = limit_tokens
        self.model = model
        self.parts = dict(parts)


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
