"""The measures and the recordings, which stand outside of this repository."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

VARIABLE = "EVAL_TOOLS"  # names the folder of the scripts to other processes too
SCRIPTS = ("future_reference.py", "planted.py", "replay.py", "user_cases.py")


class MissingError(Exception):
    """Something that a variable of `make eval` should name is not there."""

    def __init__(self, variable: str, problem: str) -> None:
        super().__init__(f"{problem}\nhint: make eval {variable}=<folder>")
        self.variable = variable


def check(data: Path, scripts: Path) -> None:
    """Raise `MissingError` unless `data` has recordings and `scripts` the three measures."""
    if not data.is_dir():
        raise MissingError("EVAL_DATA", f"EVAL_DATA: there is no folder `{data}`")
    if not recordings(data):
        raise MissingError("EVAL_DATA", f"EVAL_DATA: no `*.jsonl.gz` in `{data}`")
    if not scripts.is_dir():
        raise MissingError("EVAL_TOOLS", f"EVAL_TOOLS: there is no folder `{scripts}`")
    for name in SCRIPTS:
        if not (scripts / name).is_file():
            raise MissingError("EVAL_TOOLS", f"EVAL_TOOLS: no `{name}` in `{scripts}`")


def recordings(data: Path) -> list[Path]:
    return sorted(data.glob("*.jsonl.gz"))


def source_of(file: Path) -> str:
    return file.name.split(".")[0]


def items(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the recordings of one file, one a line."""
    with gzip.open(file, "rt", encoding="utf8") as lines:
        for line in lines:
            yield json.loads(line)


@cache
def load(file: Path, name: str) -> ModuleType:
    """Return the script as a module. Another `name` gives another copy of it."""
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"`{file}` is no Python module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def checksum(files: list[Path]) -> str:
    """Return the start of a SHA-256 over the bytes of `files`, in their order."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
