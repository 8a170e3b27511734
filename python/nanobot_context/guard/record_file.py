"""Writes and reads the file of recorded requests.

The newest requests of all processes that share nanobot's config are in one file of JSON lines
beside it, which only its owner may read, and which does not grow beyond about 2 MB.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nanobot_context.guard.line_file import LineFile
from nanobot_context.guard.record import RequestRecord
from nanobot_context.guard.state_file import REQUESTS, state_file
from nanobot_context.json_text import parsed

_MAX_BYTES = 1 << 20
_OLDER = 1
# If the fixed part is this share of a prompt of known size, it is known, too: its ratio and that of
# the rest differ by a fifth at most.
_NEARLY_ALL = 0.9


def record_file(config: Path, name: str = REQUESTS) -> LineFile:
    """Return where requests are recorded: beside nanobot's config file."""
    file = state_file(config, name)
    return LineFile(file, _MAX_BYTES, older=_OLDER, what="requests")


def read_records(
    config: Path, session: str | None = None, name: str = REQUESTS
) -> list[RequestRecord]:
    """Return the newest requests, oldest first: see `records_in`."""
    return records_in(record_file(config, name), session)


def is_record(path: Path) -> bool:
    """Return whether `path` is a file of recorded requests, by its first line."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            RequestRecord.from_dict(json.loads(file.readline(_MAX_BYTES)))
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return False
    return True


def records_in(file: LineFile, session: str | None = None) -> list[RequestRecord]:
    """Return the requests in a file, oldest first; with `session` those of one session.

    The fixed part (system prompt, tools) is rescaled so that alike requests agree: to the tokens a
    byte of the request that it is the largest part of, with reported tokens if there is one.
    """
    found = sorted(_all_in(file), key=lambda record: record.at)
    surest = _surest_of(found)
    return [
        _rescaled(record, surest[alike(record)])
        for record in found
        if session is None or record.session == session
    ]


def _all_in(file: LineFile) -> Iterator[RequestRecord]:
    for given in _objects(file):
        try:
            yield RequestRecord.from_dict(given)
        except (KeyError, TypeError):
            continue  # of another version


def alike(record: RequestRecord) -> tuple[str, bool]:
    """Return a key of requests with the same fixed part; subagents have fewer tools."""
    return record.place, record.is_subagent


def surest_in(file: LineFile) -> dict[tuple[str, bool], RequestRecord]:
    """Return, for each key of `alike`, the record that measures the fixed part best."""
    return _surest_of(_all_in(file))


def _surest_of(records: Iterable[RequestRecord]) -> dict[tuple[str, bool], RequestRecord]:
    surest: dict[tuple[str, bool], RequestRecord] = {}
    for record in records:
        surest[alike(record)] = surer(surest.get(alike(record), record), record)
    return surest


def surer(one: RequestRecord, other: RequestRecord) -> RequestRecord:
    """Return the record that measures the fixed part (system prompt, tools) better."""
    return other if _sureness(other) > _sureness(one) else one


def _sureness(record: RequestRecord) -> tuple[bool, bool, float]:
    return record.fixed_bytes > 0, record.prompt_tokens is not None, _part(record)


def _part(record: RequestRecord) -> float:
    """Return the share of the fixed part (system prompt, tools) in a request."""
    return record.fixed_tokens / max(record.tokens_before, 1)


def _rescaled(record: RequestRecord, surest: RequestRecord) -> RequestRecord:
    """Rescale the fixed part of `record` to the tokens per byte of `surest`."""
    if not (record.fixed_bytes and record.fixed_tokens):
        return record
    fixed = round(surest.fixed_tokens * record.fixed_bytes / surest.fixed_bytes)
    # Of one that nobody reported less may have been counted here.
    fixed = min(fixed, record.tokens_before)
    share = fixed / record.fixed_tokens
    tools = tuple((name, round(tokens * share)) for name, tokens in record.tools)
    is_known = surest.prompt_tokens is not None and _part(surest) >= _NEARLY_ALL
    return replace(record, fixed_tokens=fixed, tools=tools, is_fixed_known=is_known)


def _objects(file: LineFile) -> Iterator[Mapping[str, Any]]:
    for line in file.lines():
        if isinstance(given := parsed(line), dict):
            yield given
