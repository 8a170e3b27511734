"""A process that is forked while other threads are busy: nothing of theirs is waited for in it."""

from __future__ import annotations

import ast
import concurrent.futures
import importlib
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import nanobot_context
from nanobot_context import Archive, Session, events, installer, session
from nanobot_context._core import archive_name
from nanobot_context.events import subscribe
from nanobot_context.forks import ThreadLock
from nanobot_context.guard import fuse
from nanobot_context.guard.counters import Counters
from nanobot_context.guard.limits import ProviderLimits
from nanobot_context.guard.line_file import LineFile
from nanobot_context.guard.windows import WindowResolver
from nanobot_context.plugins.session_store import SharedSessions
from nanobot_context.sessions import SessionHead, SessionService
from nanobot_context.sessions.jobs import Jobs
from nanobot_context.settings import LoadedSettings, Settings

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="for systems with forks"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

PACKAGE = Path(nanobot_context.__file__).parent
HEAD = SessionHead("app", "user", "id", "1", 0, 1, 0.0, 0.0, {})


def in_child(work: Callable[[], Any]) -> None:
    """Do `work` in a forked child, and fail where it raises or is not done in 20 seconds."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    limit = time.monotonic() + 20
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > limit:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the child hangs")
        time.sleep(0.005)
    assert os.waitstatus_to_exitcode(ended[1]) == 0


@contextmanager
def held_elsewhere(lock: Any) -> Iterator[None]:
    """Have another thread hold `lock`."""
    is_held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            is_held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    is_held.wait()
    try:
        yield
    finally:
        done.set()
        thread.join()


# Every lock of the package, by the file, the class and the name: whose it is, and what needs it.

Case = tuple[Any, Callable[[], Any]]


def of_archive(folder: Path) -> Case:
    archive = Archive(folder / "results")
    name = archive_name("the text")
    return archive._thread_lock, lambda: check(archive.write({name: "the text"}) == {name})


def of_line_file(folder: Path) -> Case:
    file = LineFile(folder / "events.jsonl", 1_000_000)

    def write() -> None:
        file.write({"attempt": 1})
        check(file.path.stat().st_size)

    return file._thread_lock, write


def of_counters(name: str) -> Callable[[Path], Case]:
    def case(folder: Path) -> Case:
        counters = Counters(folder / "counters" / "counters.json")
        counters.add(requests=1)

        def count() -> None:
            counters.add(requests=10)
            counters.save()
            check(Counters(counters.file).total().requests == 10)

        return getattr(counters, name), count

    return case


def of_limits(folder: Path) -> Case:
    limits = ProviderLimits(folder / "learned.json")

    def learn() -> None:
        limits.learn_window("m", 8_000)
        check(limits.to_dict()["m"]["window_tokens"] == 8_000)

    return limits._lock, learn


def of_windows(_: Path) -> Case:
    windows = WindowResolver(LoadedSettings(Settings()))

    return windows._lock, lambda: check(windows.could_cut_at("m", 8_000))


def of_jobs(_: Path) -> Case:
    jobs = Jobs(workers=1, queue=100, timeout_seconds=30.0)
    return jobs._lock, lambda: check(jobs.submit("a", lambda *_: 1).result(10) == 1)


def of_services(_: Path) -> Case:
    service = SessionService("memory://", session_ttl_seconds=60)

    def sweep() -> None:
        service._sweep_later()
        check(service._sweep_timer is not None)
        service.close()

    return service._lock, sweep


def of_shared_sessions(_: Path) -> Case:
    files = SimpleNamespace(load=lambda key: None)
    sessions = SharedSessions(SessionService("memory://"), files, "gateway", None, Counters())
    return sessions._lock, lambda: check(sessions.load("cli:direct") is None)


def of_fuse(_: Path) -> Case:
    return fuse._lock, lambda: check(isinstance(fuse.blown_fuses(), tuple))


def of_events(_: Path) -> Case:
    return events._changing, lambda: subscribe(print)()


def of_session(_: Path) -> Case:
    return session._ACCEPTING, lambda: Session().summary_failed()


def of_installer(_: Path) -> Case:
    return installer._lock, lambda: check(nanobot_context.status().installed is False)


LOCKS: dict[str, Callable[[Path], Case]] = {
    "archive.py Archive": of_archive,
    "events.py _changing": of_events,
    "guard/counters.py Counters": of_counters("_lock"),
    "guard/counters.py Counters (2)": of_counters("_saving"),
    "guard/fuse.py _lock": of_fuse,
    "guard/limits.py ProviderLimits": of_limits,
    "guard/line_file.py LineFile": of_line_file,
    "guard/windows.py WindowResolver": of_windows,
    "installer.py _lock": of_installer,
    "plugins/session_store.py SharedSessions": of_shared_sessions,
    "session.py _ACCEPTING": of_session,
    "sessions/base.py Base": of_services,
    "sessions/jobs.py JobLine": of_jobs,
}


def check(is_so: object) -> None:
    if not is_so:
        raise AssertionError("the child did something else")


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_that_another_thread_holds_is_free_in_a_child(name: str, tmp_path: Path) -> None:
    lock, work = LOCKS[name](tmp_path)
    with held_elsewhere(lock):
        in_child(work)


# Names that make a lock, or something that has one; and where that is meant.
MAKERS = {
    *("Lock", "RLock", "Condition", "Event", "Semaphore", "BoundedSemaphore", "Barrier"),
    *("Queue", "LifoQueue", "PriorityQueue", "SimpleQueue", "Future"),
    *("ThreadPoolExecutor", "ProcessPoolExecutor", "Thread", "Timer", "local"),
    # Locked by one lock for all instances before Python 3.12.
    "cached_property",
}
MEANT = {
    # The home of all locks.
    "forks.py RLock",
    # Replaced in a child, see `Job.begin_in_child`.
    "sessions/jobs.py Future",
    # Begun anew in a child, see `Base.begin_in_child`.
    "sessions/base.py Timer",
    "sessions/service.py Timer",
    # Threads: what waits for one of them is itself in a thread that did not fork.
    "sessions/jobs.py Thread",
    "sessions/jobs.py Timer",
    "summary/summarizer.py Thread",
    "guard/counters.py Timer",
    "cli/output.py Timer",
}


def sources() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def named(node: ast.AST) -> str:
    """Return the last part of a name, such as `Lock` of `threading.Lock`; else nothing."""
    return getattr(node, "attr", getattr(node, "id", ""))


def test_every_lock_of_the_package_is_tried_above() -> None:
    found: list[str] = []
    for path, module in sources():
        for top in module.body:
            target = top.targets[0] if isinstance(top, ast.Assign) else top
            owner = getattr(target, "name", named(target))
            for node in ast.walk(top):
                made = isinstance(node, ast.Call) and (
                    named(node.func) == "ThreadLock"
                    or any(
                        k.arg == "default_factory" and named(k.value) == "ThreadLock"
                        for k in node.keywords
                    )
                )
                if made and path != "forks.py":
                    name = f"{path} {owner}"
                    found.append(f"{name} (2)" if name in found else name)
    assert sorted(found) == sorted(LOCKS)


def test_no_part_of_the_package_has_a_lock_of_another_kind() -> None:
    made = {
        f"{path} {named(node)}"
        for path, module in sources()
        for node in ast.walk(module)
        if isinstance(node, ast.Attribute | ast.Name)
        and named(node) in MAKERS
        # `asyncio`: of an event loop, which no child may go on with.
        and not (isinstance(node, ast.Attribute) and named(node.value) == "asyncio")
    }
    assert made == MEANT


def test_locks_and_executors_that_importing_makes_are_all_of_that_kind() -> None:
    kinds = (type(threading.Lock()), type(threading.RLock()), threading.Condition, threading.Thread)
    for path, _ in sources():
        if path in ("__main__.py", "activation.py") or path.startswith("cli/"):
            continue
        name = ".".join(("nanobot_context", *Path(path).with_suffix("").parts))
        try:
            module = importlib.import_module(name.removesuffix(".__init__"))
        except ModuleNotFoundError:
            # The frameworks of `adapters` are installed beside the examples only.
            if not path.startswith("adapters/"):
                raise
            continue
        assert not [name for name, value in vars(module).items() if isinstance(value, kinds)]


# What the lock promises ---------------------------------------------------------------------------


def test_the_thread_that_forks_still_holds_its_lock_in_the_child() -> None:
    lock = ThreadLock()

    def work() -> None:
        taken: list[bool] = []
        other = threading.Thread(target=lambda: taken.append(lock._lock.acquire(blocking=False)))
        other.start()
        other.join()
        check(taken == [False])

    with lock, lock:
        in_child(work)
    in_child(lambda: lock.__enter__())


def test_a_copy_of_a_lock_is_held_by_nobody() -> None:
    lock = ThreadLock()
    with held_elsewhere(lock), pickle.loads(pickle.dumps(lock)) as nothing:
        assert nothing is None


def test_jobs_of_the_parent_are_cancelled_in_a_child_and_new_ones_run() -> None:
    go_on = threading.Event()

    def waiting(*_: Any) -> str:
        go_on.wait()
        return "late"

    def work() -> None:
        check(ended.result(0) == "early")
        for job in (running, queued):
            check(job.done())
            check(job.cancelled())
            try:
                job.result(0)
            except concurrent.futures.CancelledError:
                continue
            raise AssertionError("not cancelled")
        check(jobs.submit("a", lambda *_: "new").result(10) == "new")
        jobs.close()
        check(jobs.counts.done == 1)

    jobs = Jobs(workers=1, queue=100, timeout_seconds=30.0)
    ended = jobs.submit("a", lambda *_: "early")
    ended.result(10)
    running = jobs.submit("a", waiting)
    queued = jobs.submit("b", waiting)
    try:
        # A result that is asked for: its lock is held, too, again and again.
        with held_elsewhere(running._future._condition):
            in_child(work)
    finally:
        go_on.set()
    assert (running.result(10), queued.result(10)) == ("late", "late")
