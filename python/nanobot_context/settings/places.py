"""Reads the settings of one place, and finds the setting that a wrong key was meant for."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from nanobot_context.errors import SettingsError
from nanobot_context.settings.kinds import SWITCH, check, invalid, is_none, parse_bool, switches_off
from nanobot_context.settings.names import (
    ENV_PREFIX,
    NANOBOT_KEYS,
    REPLACED,
    camel_case,
    snake_case,
)
from nanobot_context.settings.schema import KINDS

# A key so like a setting's is that with a slip of the finger: `contextCompresion`.
_SLIP = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place that settings are read from.

    Attributes:
        given: What stands there, by key.
        names: The setting of each key.
        where: What an error calls the place.
        prefix: What the path of a key begins with.
        is_shared: Whether keys of others stand there, too: only a likely slip is an error then.
        is_text: Whether values are texts, as those of variables.
    """

    given: Mapping[str, Any] = field(kw_only=False)
    names: Mapping[str, str] = field(kw_only=False)
    where: str
    prefix: str = ""
    is_shared: bool = False
    is_text: bool = False

    def read(self, problems: list[str] | None) -> dict[str, tuple[Any, str]]:
        """Return the value of each setting that is set there, and the path that set it."""
        found: dict[str, tuple[Any, str]] = {}
        instead: dict[str, tuple[Any, str]] = {}
        for key, value in self.given.items():
            name, path = self.names.get(key), self.prefix + key
            if name is None:
                written = key.upper() if self.is_text else key
                match = self._nearest(written)
                hint = f"\nhint: did you mean `{match}`?" if match else ""
                if replacement := REPLACED.get(snake_case(key.removeprefix(ENV_PREFIX))):
                    match = None
                    hint = f"\nhint: `{camel_case(replacement)}` has taken its place"
                if not self.is_shared and camel_case(snake_case(key)) in NANOBOT_KEYS:
                    match = None
                    hint = "\nhint: it is nanobot's: set it in `config.json`"
                # With `problems`, name every variable with our prefix.
                if hint or not self.is_shared or (self.is_text and problems is not None):
                    problem = f"`{path}` is not a setting (in `{self.where}`){hint}"
                    is_slip = match and difflib.get_close_matches(written, [match], 1, _SLIP)
                    is_meant = switches_off(value) or (is_slip and value is not True)
                    likely = self.names[match] if match and is_meant else None
                    error = SettingsError(problem, path=path)
                    instead |= leave_out(error, likely, problems, switches_off(value))
                continue
            says_none = value is None or (self.is_text and is_none(value))
            if says_none and not KINDS[name].accepts(None):
                continue
            try:
                if name in found:
                    other = found[name][1]
                    problem = f"`{path}` and `{other}` set the same thing (in `{self.where}`)"
                    raise SettingsError(problem, path=path)
                found[name] = self._parsed(name, value, path), path
            except SettingsError as error:
                found.pop(name, None)
                found |= leave_out(error, name, problems)
        return instead | found

    def _nearest(self, key: str) -> str | None:
        """Return the setting's key that a wrong one is likely to be."""
        # What all variables begin with makes none like another.
        prefix, cutoff = "", 0.85 if self.is_shared else 0.6
        if self.is_text:
            prefix, cutoff = ENV_PREFIX, 0.75
        names = [name.removeprefix(prefix) for name in self.names]
        near = difflib.get_close_matches(key.removeprefix(prefix), names, 1, cutoff)
        return prefix + near[0] if near else None

    def _parsed(self, name: str, value: Any, path: str) -> Any:
        if self.is_text:
            try:
                value = KINDS[name].parse(value)
            except ValueError:
                raise invalid(KINDS[name], value, path, self.where) from None
        value = meant(name, value)
        check(KINDS[name], value, path, self.where)
        return value


def meant(name: str, value: Any) -> Any:
    """Return `value`, or the boolean that "yes", "off" or 1 stands for."""
    if KINDS[name] is SWITCH:
        with suppress(ValueError):
            return parse_bool(str(value))
    return value


def leave_out(
    error: SettingsError, name: str | None, problems: list[str] | None, is_off: bool = False
) -> dict[str, tuple[Any, str]]:
    """Note the problem; return the value in force for the setting `name`, if it is known.

    Raises:
        SettingsError: `problems` is `None`, or the main switch is wrong and what was meant is
            unknown.
    """
    if problems is None or (name == "context_compression" and not is_off):
        raise error
    is_switch = name is not None and KINDS[name] is SWITCH
    problem, *hint = str(error).split("\n")
    problem += "; it counts as `false`" if is_switch else ""
    problems.append("\n".join([problem, *hint]))
    return {name: (False, error.path)} if name and is_switch else {}
