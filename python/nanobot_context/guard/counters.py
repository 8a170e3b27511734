"""Counts what happened in all processes that share a config file, and records their requests.

Each process adds its new counts to two files beside nanobot's config, in a thread of its own, at
most every few seconds, and when it ends. `counters.json` holds numbers and a date, `requests.jsonl`
the newest requests: see `record_file`. The counts of a request come from its record.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from nanobot_context import log
from nanobot_context.forks import ThreadLock, begin_in_children
from nanobot_context.guard.ended import Ended
from nanobot_context.guard.fuse import fused
from nanobot_context.guard.line_file import LineFile
from nanobot_context.guard.record import RequestRecord
from nanobot_context.guard.record_file import alike, surer, surest_in
from nanobot_context.guard.state_file import COUNTERS, read_state, state_file, update_state

_SAVE_SECONDS = 3.0
# Another process holds the lock for as long as it writes a small file. What waits two seconds at
# most is a thread, or the end of a process.
_LOCK_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Counts:
    """Everything that is counted.

    Attributes:
        since: When counting began, in UTC; `None` where nothing has been counted.
        requests: Model calls that nanobot made; not those for summaries.
        compressions: Requests that were compressed before they were sent.
        tokens_saved: Tokens that this saved in answered requests, by the provider's count: see
            `RequestRecord`.
        overflows: Requests that a provider called too large.
        retries_succeeded: Calls that were answered after an overflow.
        friendly_errors: Calls that ended with a friendly error for the user.
        failures: Failures of this package, which cost nanobot nothing.
        summaries: Summaries of sessions that were stored.
        summaries_failed: Summaries that the model failed to make.
        messages_held: Messages that were in memory alone while the session store did not answer.
        messages_stored_late: Those of them that were stored afterwards.
        answers: Answers with reported tokens, which the following fields sum up.
        prompt_tokens: Tokens of the prompts, cached ones included.
        cached_tokens: Those of them from the provider's prompt cache, as far as it reports them.
        completion_tokens: Tokens of the answers.
    """

    since: str | None = None
    requests: int = 0
    compressions: int = 0
    tokens_saved: int = 0
    overflows: int = 0
    retries_succeeded: int = 0
    friendly_errors: int = 0
    failures: int = 0
    summaries: int = 0
    summaries_failed: int = 0
    messages_held: int = 0
    messages_stored_late: int = 0
    answers: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0

    def plus(self, other: Counts) -> Counts:
        """Return both together, since the earlier of their beginnings."""
        since = min((one.since for one in (self, other) if one.since), default=None)
        sums = {name: getattr(self, name) + getattr(other, name) for name in _NUMBERS}
        return Counts(since, **sums)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return asdict(self)


_NUMBERS = tuple(item.name for item in fields(Counts) if item.name != "since")


class Counters:
    """The counts of one process; `file` is where they are added up, `None` for nowhere.

    `requests` is where requests are recorded, `None` for nowhere.
    """

    _since: str | None
    _new: dict[str, int]
    _ended: list[Ended]
    _surest: dict[tuple[str, bool], RequestRecord] | None
    _timer: threading.Timer | None
    _also: set[Callable[[], None]]

    def __init__(self, file: Path | None = None, requests: LineFile | None = None) -> None:
        self.file = file
        self.requests = requests
        self._lock = ThreadLock()
        self._saving = ThreadLock()
        self._has_failed = False
        self._surest = None
        self.begin_in_child()
        begin_in_children(self)
        self._is_at_exit = file is not None or requests is not None
        if self._is_at_exit:
            atexit.register(self.save)

    def add(self, **numbers: int) -> None:
        """Count; the keys are fields of `Counts`. Costs some microseconds and writes nothing."""
        with self._lock:
            self._count(numbers)
            self._begin()

    def _count(self, numbers: Mapping[str, int]) -> None:
        """Add to the counts that are not saved yet. The lock must be held."""
        for name, number in numbers.items():
            self._new[name] += number

    def add_request(self, ended: Ended) -> None:
        """Count and record a request later, away from the event loop."""
        if self.file is None and self.requests is None:
            return
        with self._lock:
            self._ended.append(ended)
            self._begin(datetime.fromisoformat(ended.trace.at))

    def also(self, save: Callable[[], None]) -> None:
        """Call `save` with the next saving, away from the event loop."""
        with self._lock:
            self._also.add(save)
            if not self._is_at_exit:
                self._is_at_exit = True
                atexit.register(self.save)
            self._save_later()

    def _begin(self, since: datetime | None = None) -> None:
        """Schedule a save of counts that began at `since` or now. The lock must be held."""
        self._began(since or datetime.now(UTC))
        if self.file is not None or self.requests is not None:
            self._save_later()

    def _began(self, at: datetime) -> None:
        """Note that something was counted at that time. The lock must be held."""
        began = at.isoformat(timespec="seconds")
        self._since = min(self._since or began, began)

    def _save_later(self) -> None:
        """Start the timer, unless it runs. The lock must be held."""
        if self._timer is not None:
            return
        self._timer = threading.Timer(_SAVE_SECONDS, self.save)
        self._timer.daemon = True
        try:
            self._timer.start()
        except RuntimeError:  # the interpreter is about to end; `atexit` saves
            self._timer = None

    def _work_off(self) -> None:
        """Count and record the requests that have ended. The lock for saving must be held."""
        with self._lock:
            ended, self._ended = self._ended, []
        if ended and self._surest is None:
            self._surest = surest_in(self.requests) if self.requests else {}
        for one in ended:
            record = fused("record a request", partial(self._record, one), None)
            with self._lock:
                self._count(record.numbers if record else {"requests": 1})
                # What ended while others were saved began behind them.
                self._began(datetime.fromisoformat(one.trace.at))
            # Without nanobot's folder there is no nanobot to keep a file for.
            file = self.requests
            if record is not None and file is not None and file.path.parent.parent.is_dir():
                file.write(record.to_dict())

    def _record(self, ended: Ended) -> RequestRecord:
        assert self._surest is not None
        surest = self._surest.get((ended.place, ended.trace.is_subagent))
        record = ended.record(surest)
        self._surest[alike(record)] = surer(surest or record, record)
        return record

    def total(self) -> Counts:
        """Return this process's counts and the saved ones of all others. Reads the file."""
        with self._saving:
            self._work_off()
        with self._lock:
            new = Counts(self._since, **self._new)
        return (read_counts(self.file) if self.file else Counts()).plus(new)

    def save(self) -> None:
        """Add the unsaved counts to the file, all or none; a failure is tried again later."""
        if not self._is_at_exit:
            return
        # A save at the end of the process waits for the thread that is saving.
        with self._saving:
            self._work_off()
            with self._lock:
                timer, new, also = self._timer, Counts(self._since, **self._new), self._also
                self._reset()
                if self._ended:
                    self._save_later()
            if timer is not None:
                timer.cancel()
            if new.since is not None and self.file is not None:
                self._write(self.file, new)
            for save in also:
                fused("save what was learned", save, None)

    def close(self) -> None:
        """Save, and be done."""
        self.save()
        atexit.unregister(self.save)

    def _write(self, file: Path, new: Counts) -> None:
        try:
            update_state(
                file, lambda: read_counts(file).plus(new).to_dict(), timeout_seconds=_LOCK_SECONDS
            )
        except OSError as error:
            with self._lock:
                self._since = new.since
                self._count({name: getattr(new, name) for name in _NUMBERS})
            if not self._has_failed and not isinstance(error, FileNotFoundError):
                self._has_failed = True
                log.warning("`{}` cannot be written: {}", file, error)

    def begin_in_child(self) -> None:
        """Count from 0: the counts so far, and the timer, are the parent's."""
        self._ended = []
        self._reset()

    def _reset(self) -> None:
        """Count from 0."""
        self._since = None
        self._new = dict.fromkeys(_NUMBERS, 0)
        self._timer = None
        self._also = set()


def counters_file(config: Path) -> Path:
    """Return where counts are kept: beside nanobot's config file."""
    return state_file(config, COUNTERS)


def read_counts(file: Path) -> Counts:
    """Return the counts in `file`."""
    return read_state(file, _counts, Counts())


def _counts(given: dict[str, Any]) -> Counts:
    # A later version may count more.
    counts = Counts(**{name: given[name] for name in ("since", *_NUMBERS) if name in given})
    if not isinstance(counts.since, str | None):
        raise ValueError(f"{counts.since!r} is not a date")
    for name in _NUMBERS:
        number = getattr(counts, name)
        if not (isinstance(number, int) and number >= 0):
            raise ValueError(f"{number!r} is not a count")
    return counts
