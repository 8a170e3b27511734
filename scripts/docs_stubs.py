"""Gives the compiled names of the reference their docstrings: `_core.pyi` has only signatures.

The docstrings stand in the Rust sources and come with the compiled module, which is imported for
that; everything else of the reference is read from the sources.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import griffe

__all__ = ["CompiledDocstrings"]


class CompiledDocstrings(griffe.Extension):
    """Fills in the docstrings of `nanobot_context._core`."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Called by griffe when the whole package has been read."""
        if pkg.path == "nanobot_context":
            core = pkg.members["_core"]
            assert isinstance(core, griffe.Module)
            _fill(core, importlib.import_module("nanobot_context._core"))
            _shown_as_compiled(pkg, core)


def _shown_as_compiled(pkg: griffe.Module, core: griffe.Module) -> None:
    """Show the functions that only hand lists on to the compiled ones as these are."""
    own = pkg.members["own_form"]
    for name, member in own.members.items():
        if name in core.members and not (member.is_alias or member.is_class):
            pkg.members[name] = griffe.Alias(name, core.members[name], parent=pkg)


def _fill(documented: griffe.Module | griffe.Class, compiled: Any) -> None:
    for name, member in documented.members.items():
        if name.startswith("_") or isinstance(member, griffe.Alias):
            continue
        value = getattr(compiled, name, None)
        text = inspect.getdoc(value)
        if text and member.docstring is None:
            member.docstring = griffe.Docstring(text, parser="google", parent=member)
        if isinstance(member, griffe.Class):
            _fill(member, value)
