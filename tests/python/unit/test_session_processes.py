"""Sessions that processes share, and what becomes of them when one is killed or the disk is full.

Every process is a real one, and so is every disk. The same for the server of Redis, and for
connections that are cut, is tested in `tests/rust`.
"""

from __future__ import annotations

import itertools
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mounts import mount, mounted
from nanobot_context import (
    InvalidArgumentError,
    SessionStoreError,
    StoreAccessError,
    StoreDataError,
    StoreFullError,
    StoreUnavailableError,
)
from nanobot_context.sessions import SessionEvent, SessionService
from session_cases import ids, said
from session_process import BATCH

if TYPE_CHECKING:
    from session_cases import Store

pytest_plugins = ("session_fixtures",)
pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="mounts, forks and limits of Linux"),
]

SUPPORT = Path(__file__).parent.parent / "support"


STARTED: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    """End what a test that failed has left."""
    yield
    while STARTED:
        process = STARTED.pop()
        process.kill()
        with suppress(BrokenPipeError), process:
            pass


def start(*words: str | Path, **options: Any) -> subprocess.Popen[str]:
    """Start a process that does one of the works of `session_process`."""
    process = subprocess.Popen(
        [sys.executable, SUPPORT / "session_process.py", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        **options,
    )
    STARTED.append(process)
    return process


def finished(process: subprocess.Popen[str], code: int = 0) -> list[str]:
    """Wait for a process, and return the whole lines that it printed and nobody has read."""
    assert process.stdout is not None
    assert process.stderr is not None
    # `communicate` forgets what was read along with an earlier line.
    with process, process.stdout as out, process.stderr as err:
        lines = out.read().splitlines(keepends=True)
        told = err.read()
        assert process.wait(200) == code, told
    return [line.rstrip("\n") for line in lines if line.endswith("\n")]


def script(code: str, *words: str | Path) -> str:
    """Run Python code in a process of its own, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def file_url(path: Path) -> str:
    return f"sqlite:///{path}"


# Writers at the same time -------------------------------------------------------------------------


def test_four_processes_and_two_summarisers_lose_and_double_nothing(
    plain_store: Store, tmp_path: Path
) -> None:
    if not plain_store.is_shared:
        pytest.skip("memory belongs to one process")
    service = plain_store.open(event_limit=0, user_first="off")
    service.create("app", "me", "s")
    end = tmp_path / "end"
    summarisers = [start("summarise", plain_store.url, name, end) for name in "xy"]
    for summariser in summarisers:
        assert summariser.stdout is not None
        assert summariser.stdout.readline() == "ready\n"
    writers = [start("append", plain_store.url, name, "250") for name in "abcd"]
    for writer in writers:
        assert finished(writer) == ["done"]
    end.touch()
    made = [int(finished(summariser)[0].split()[1]) for summariser in summarisers]

    session = service.get("app", "me", "s")
    assert session is not None
    assert [event.seq for event in session.events] == list(range(1, 1_001))
    for name in "abcd":
        own = [id_ for id_ in ids(session) if id_.startswith(name)]
        assert own == [f"{name}-{at}" for at in range(250)]
    pieces = {f"{name}-{at}-piece" for name in "abcd" for at in range(0, 250, 10)}
    assert set(session.state) == set(ids(session)) | pieces

    summaries = service.summaries(session, links=True)[::-1]
    assert [one.version for one in summaries] == list(range(1, len(summaries) + 1))
    assert len(summaries) == sum(made)
    assert len(summaries) > 1
    covered = [link for one in summaries for link in one.events]
    assert covered == [(event.seq, event.id) for event in session.events[: len(covered)]]
    assert summaries[-1].last_seq == len(covered)


def test_processes_that_open_a_new_file_at_once_all_succeed(tmp_path: Path) -> None:
    count = 20
    url = file_url(tmp_path / "new")
    processes = [
        start("open_many", url, str(count), stdin=subprocess.PIPE, bufsize=1) for _ in range(4)
    ]
    for _ in range(count):
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "opened\n", finished(process)
    for process in processes:
        finished(process)
    for at in range(count):
        with SessionService(f"{url}{at}.db") as service:
            assert len(service.list_sessions("app", "me")) == 4


LOOKED_AT = """
import sqlite3, sys
from nanobot_context.sessions import SessionEvent, SessionService

url = sys.argv[1]
path = url.removeprefix("sqlite:///")
service = SessionService(url)
session = service.create("app", "me", "s")
for number in range(int(sys.argv[2])):
    # Another copy of SQLite in this process closes the files, and so does anybody who copies them.
    for name in (path, f"{path}-shm"):
        open(name, "rb").close()
    with_it = sqlite3.connect(path)
    with_it.execute("SELECT count(*) FROM event").fetchone()
    with_it.close()
    print("open", flush=True)
    sys.stdin.readline()
    service.append(session, [SessionEvent({"role": "user", "content": "x"}, id=str(number))])
    print("appended", flush=True)
    sys.stdin.readline()
"""


def test_a_reader_in_the_same_process_takes_no_lock_away(tmp_path: Path) -> None:
    rounds = 3
    path = tmp_path / "sessions.db"
    writer = subprocess.Popen(
        [sys.executable, "-c", LOOKED_AT, file_url(path), str(rounds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        bufsize=1,
    )
    STARTED.append(writer)
    assert writer.stdin is not None
    assert writer.stdout is not None
    look = (
        "import sqlite3, sys; file = sqlite3.connect(sys.argv[1])\n"
        "print([id for id, in file.execute('SELECT id FROM event ORDER BY place')]); file.close()"
    )
    for number in range(rounds):
        assert writer.stdout.readline() == "open\n", finished(writer)
        # Whoever closes a file last brings its log in and deletes it; here another has it open.
        script(look, path)
        assert path.with_name("sessions.db-wal").exists()
        writer.stdin.write("go on\n")
        assert writer.stdout.readline() == "appended\n", finished(writer)
        assert script(look, path) == f"{[str(at) for at in range(number + 1)]}\n"
        writer.stdin.write("go on\n")
    finished(writer)
    with SessionService(file_url(path)) as service:
        assert len(ids(service.get("app", "me", "s"))) == rounds


def test_writers_that_are_read_by_their_own_processes_lose_nothing(tmp_path: Path) -> None:
    url, writers, events = file_url(tmp_path / "sessions.db"), 3, 150
    with SessionService(url) as service:
        service.create("app", "me", "s")
    processes = [
        start("append_and_look", url, str(writer), str(events)) for writer in range(writers)
    ]
    for process in processes:
        finished(process)
    with SessionService(url) as service:
        session = service.get("app", "me", "s")
        assert session is not None
        assert [event.seq for event in session.events] == list(range(1, writers * events + 1))


def test_a_file_that_was_replaced_while_it_was_open_is_told(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with SessionService(file_url(path)) as service:
        session = service.create("app", "me", "s")
        service.append(session, [said("1")])
        path.with_name("copy.db").write_bytes(path.read_bytes())
        path.with_name("copy.db").replace(path)
        with pytest.raises(StoreDataError, match="replaced while it was open\nhint: close it"):
            service.append(session, [said("2")])
        with pytest.raises(StoreDataError, match="replaced"):
            service.get("app", "me", "s")


def test_a_path_is_that_of_the_folder_in_which_it_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "first")
    with SessionService("sqlite:///sessions.db") as service:
        service.create("app", "me", "s")
        monkeypatch.chdir(tmp_path / "second")
        assert [head.id for head in service.list_sessions("app", "me")] == ["s"]
    assert list((tmp_path / "second").iterdir()) == []


def test_a_file_that_stays_locked_is_told(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    holder = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""
    with SessionService(file_url(path)) as service:
        session = service.create("app", "me")
        process = subprocess.Popen(
            [sys.executable, "-c", holder, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(StoreUnavailableError) as caught:
            service.append(session, [said("a")])
        assert "locked" in str(caught.value)
        assert caught.value.retry == "later"
        process.communicate()
        service.append(session, [said("a")])
        assert ids(service.get(*session.key)) == ["a"]


# Killed -------------------------------------------------------------------------------------------


def test_nothing_acknowledged_is_lost_when_the_writer_is_killed_forty_times(
    tmp_path: Path,
) -> None:
    url = file_url(tmp_path / "sessions.db")
    with SessionService(url) as service:
        service.create("app", "me", "s")
    random_ms = random.Random(0)
    acknowledged = -1
    for _ in range(40):
        # What was being written is written again: nobody knows whether it was taken.
        process = start("keep_appending", url, str(acknowledged + 1))
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first, finished(process)
        timer = threading.Timer(random_ms.uniform(0, 0.04), process.send_signal, [signal.SIGKILL])
        timer.start()
        acknowledged = int([first, *finished(process, -signal.SIGKILL)][-1])
        with SessionService(url, event_limit=0) as service:
            [head] = service.list_sessions("app", "me")
            assert head.seq % BATCH == 0, "no half of a batch"
            assert head.seq // BATCH in (acknowledged + 1, acknowledged + 2)

    with SessionService(url, event_limit=0) as service:
        session = service.get("app", "me", "s")
        assert session is not None
        written = session.seq // BATCH
        expected = [f"{number}.{at}" for number in range(written) for at in range(BATCH)]
        assert ids(session) == expected
        assert [event.seq for event in session.events] == list(range(1, session.seq + 1))
        assert set(session.state) == set(expected)


# Disks --------------------------------------------------------------------------------------------


def test_a_full_disk_is_told_and_harms_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    with mounted("-t", "tmpfs", "-o", "size=2m", "tmpfs", folder):
        filler = folder / "filler"
        filler.write_bytes(b"x" * 500_000)
        url = file_url(folder / "sessions.db")
        with SessionService(url, event_limit=0, user_first="off") as service:
            session = service.create("app", "me")
            error = None
            while error is None:
                at = str(session.seq)
                try:
                    service.append(session, [said(at, state={at: "x" * 10_000})])
                except StoreFullError as full:
                    error = full
            assert error.retry == "later"
            assert "full" in str(error)
            acknowledged = [str(at) for at in range(session.seq)]
            assert len(acknowledged) > 10
            assert ids(session) == acknowledged
            assert ids(service.get(*session.key)) == acknowledged, "still readable"
            filler.unlink()
            service.append(session, [said("after")])
        with SessionService(url, event_limit=0, user_first="off") as service:
            found = service.get(*session.key)
            assert ids(found) == [*acknowledged, "after"]
            assert found is not None
            assert set(found.state) == set(acknowledged)


def fill(folder: Path) -> Path:
    """Leave nothing of a disk but what its files have already."""
    filler = folder / "filler"
    with filler.open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4_096)
    return filler


@pytest.mark.parametrize("filled_by", ["its own sessions", "other files"])
@pytest.mark.parametrize("is_closed", [False, True])
def test_sessions_are_deleted_on_a_full_disk_which_takes_new_ones_then(
    tmp_path: Path, filled_by: str, is_closed: bool
) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    with mounted("-t", "tmpfs", "-o", "size=16m", "tmpfs", folder):
        service = SessionService(file_url(folder / "sessions.db"), event_limit=0)
        numbers = itertools.count()
        with suppress(StoreFullError):
            for number in range(100 if filled_by == "its own sessions" else 12):
                session = service.create("app", "me", str(number))
                for _ in range(5):
                    state = {f"{at}": "x" * 5_000 for at in range(4)}
                    events = [said("x" * 5_000, id=str(next(numbers))) for _ in range(20)]
                    service.append(session, [*events, said(str(next(numbers)), state=state)])
        fill(folder)
        if is_closed:
            service.close()
            fill(folder)
            service = SessionService(file_url(folder / "sessions.db"), event_limit=0)
        kept, *deleted = [head.id for head in service.list_sessions("app", "me")]
        assert len(deleted) > 5
        for one in deleted:
            assert service.delete("app", "me", one)
        assert [head.id for head in service.list_sessions("app", "me")] == [kept]
        service.append(service.create("app", "me", "new"), [said("after")])
        service.close()


def test_a_cleanup_makes_room_on_a_full_disk(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    with (
        mounted("-t", "tmpfs", "-o", "size=16m", "tmpfs", folder),
        SessionService(file_url(folder / "sessions.db"), event_limit=0) as service,
    ):
        for number in range(10):
            events = [said("x" * 5_000, id=str(at)) for at in range(100)]
            service.append(service.create("app", "me", str(number)), events)
        session = service.create("app", "me", "kept")
        with sqlite3.connect(folder / "sessions.db") as database:
            database.execute("UPDATE session SET expires_ms = 1 WHERE id != 'kept'")
        database.close()
        fill(folder)
        assert service.cleanup() == 10
        service.append(session, [said("after")])


def test_a_file_that_cannot_be_opened_since_the_disk_is_full_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    url = file_url(folder / "sessions.db")
    with mounted("-t", "tmpfs", "-o", "size=1m", "tmpfs", folder):
        SessionService(url).close()
        filler = fill(folder)
        with pytest.raises(StoreFullError, match="hint: free a few megabytes"):
            SessionService(url)
        filler.unlink()
        SessionService(url).close()


def test_a_file_that_may_not_grow_is_told_and_harms_nothing(tmp_path: Path) -> None:
    url = file_url(tmp_path / "sessions.db")
    with SessionService(url) as service:
        service.create("app", "me", "s")

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))

    *acknowledged, error = finished(start("fill", url, preexec_fn=limit))
    assert error in ("StoreFullError", "StoreUnavailableError")
    assert len(acknowledged) > 10
    with SessionService(url, event_limit=0) as service:
        session = service.get("app", "me", "s")
        assert session is not None
        assert len(session.events) == len(acknowledged)
        service.append(session, [said("after")])
        assert ids(service.get("app", "me", "s"))[-1] == "after"


def written(path: Path, count: int = 200) -> None:
    """Make a file with a session of many events, and nothing of it in its log."""
    with SessionService(file_url(path), event_limit=0) as service:
        session = service.create("app", "me", "s")
        service.append(session, [said(f"{at}{'x' * 500}") for at in range(count)])
    script("import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('PRAGMA user_version')", path)
    assert not Path(f"{path}-wal").exists()


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "no database": lambda content: b"Dear diary,\n" * 1_000,
    "its beginning": lambda content: b"\xff" * 200 + content[200:],
    "everything behind the first page": lambda content: content[:4_096] + b"\xff" * 100_000,
    "its end is missing": lambda content: content[: len(content) // 2],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_told(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "sessions.db"
    written(path)
    damaged = DAMAGES[damage](path.read_bytes())
    path.write_bytes(damaged)
    with pytest.raises(StoreDataError) as caught, SessionService(file_url(path)) as service:
        service.get("app", "me", "s")
    assert str(path) in str(caught.value)
    assert caught.value.retry == "never"
    assert path.stat().st_size > 0, "it is left for repair"


def test_a_file_that_was_closed_is_whole_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with SessionService(file_url(path)) as service:
        session = service.create("app", "me", "s")
        service.append(session, [said("hello")])
        service.get(*session.key)
    assert [file.name for file in tmp_path.iterdir()] == ["sessions.db"]
    copy = tmp_path / "copy.db"
    copy.write_bytes(path.read_bytes())
    with SessionService(file_url(copy)) as service:
        assert ids(service.get("app", "me", "s")) == ["hello"]


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    path.touch()
    written(path)
    with SessionService(file_url(path), event_limit=0) as service:
        assert len(service.list_sessions("app", "me")) == 1


def test_a_log_that_was_torn_keeps_all_that_was_committed_before(tmp_path: Path) -> None:
    """The log as a loss of power leaves it: its end is missing."""
    url = file_url(tmp_path / "sessions.db")
    with SessionService(url) as service:
        service.create("app", "me", "s")
    process = start("keep_appending", url, "0")
    assert process.stdout is not None
    # Few enough that nothing of the log is in the file already: that is done when it is safe.
    for _ in range(50):
        process.stdout.readline()
    process.kill()
    finished(process, -signal.SIGKILL)
    log = tmp_path / "sessions.db-wal"
    content = log.read_bytes()
    database = (tmp_path / "sessions.db").read_bytes()
    counts = []
    for at, share in enumerate((1.0, 0.999, 0.9, 0.5, 0.1, 0.0)):
        copy = tmp_path / f"copy{at}.db"
        copy.write_bytes(database)
        Path(f"{copy}-wal").write_bytes(content[: int(len(content) * share)])
        with SessionService(file_url(copy), event_limit=0) as service:
            session = service.get("app", "me", "s")
            assert session is not None
            assert [event.seq for event in session.events] == list(range(1, session.seq + 1))
            assert session.seq % BATCH == 0
            counts.append(session.seq)
    assert counts == sorted(counts, reverse=True)
    assert counts[0] >= 50 * BATCH


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    written(path)
    with mounted("--bind", path, path):
        mount("-o", "remount,bind,ro", path)
        with pytest.raises(StoreAccessError) as caught, SessionService(file_url(path)) as service:
            service.create("app", "me")
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["sessions.db", "new.db", "new/sessions.db"])
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    with mounted("-t", "tmpfs", "tmpfs", folder):
        written(folder / "sessions.db")
        mount("-o", "remount,ro", folder)
        with (
            pytest.raises(StoreAccessError) as caught,
            SessionService(file_url(folder / name)) as service,
        ):
            service.create("app", "me")
        assert "locked" in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_of_somebody_else_is_told(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    written(path)
    path.chmod(0o400)
    with pytest.raises(StoreAccessError), SessionService(file_url(path)) as service:
        service.create("app", "me")


@pytest.mark.parametrize("name", ["", "folder", "file/sessions.db", "a\x00b.db", "x" * 300])
def test_a_path_that_names_no_file_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    url = file_url(tmp_path / name) if name else "sqlite:///"
    with pytest.raises((SessionStoreError, InvalidArgumentError)):
        SessionService(url)


NETWORK = """
import ctypes, sys
from nanobot_context import InvalidArgumentError
from nanobot_context.sessions import SessionEvent, SessionService

libc = ctypes.CDLL(None, use_errno=True)
NEWNS, BIND, PRIVATE = 0x20000, 0x1000, 0x44000
if (
    libc.unshare(NEWNS)
    or libc.mount(b"none", b"/", None, PRIVATE, None)
    or libc.mount(sys.argv[1].encode(), b"/proc/self/mounts", None, BIND, None)
):
    print("mounting is not allowed here")
    sys.exit()
try:
    SessionService("sqlite:///" + sys.argv[2])
except InvalidArgumentError as error:
    print(error)
"""


def test_a_file_on_a_network_is_refused_with_a_hint(tmp_path: Path) -> None:
    """The kernel is made to name another file system, in a name space of the process's own."""
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda / ext4 rw 0 0\nserver:/home {tmp_path} nfs4 rw 0 0\n")
    told = script(NETWORK, mounts, tmp_path / "sessions.db")
    if "not allowed" in told:
        pytest.skip("mounting is not allowed here")
    assert "nfs4" in told
    assert "hint: use a local disk, or Redis" in told
    assert not (tmp_path / "sessions.db").exists()


# Forks --------------------------------------------------------------------------------------------

FORK = """
import asyncio, os, sqlite3, sys
from nanobot_context import InvalidArgumentError
from nanobot_context.sessions import AsyncSessionService, SessionEvent, SessionService

kind, url = sys.argv[1:]
event = SessionEvent({"role": "user", "content": "hello"}, id="1")
if kind == "asyncio":
    opened = AsyncSessionService(url)
    session = asyncio.run(opened.create("app", "me", "s"))
    append = lambda: asyncio.run(asyncio.wait_for(opened.append(session, [event]), 20))
else:
    opened = SessionService(url)
    session = opened.create("app", "me", "s")
    append = lambda: opened.append(session, [event])
child = os.fork()
if child == 0:
    try:
        append()
    except InvalidArgumentError as error:
        print(error, flush=True)
    with SessionService(url) as own:
        print(own.list_sessions("app", "me")[0].id, flush=True)
    if kind == "threads":
        opened.close()
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
# What the child closed is open here, and its log is not brought in by whoever comes by.
file = sqlite3.connect(url.removeprefix("sqlite:///"))
assert file.execute("SELECT count(*) FROM session").fetchone() == (1,)
file.close()
assert os.path.exists(url.removeprefix("sqlite:///") + "-wal")
append()
with SessionService(url) as own:
    print(own.get("app", "me", "s").seq)
"""


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_a_fork_after_the_file_was_opened_is_refused_with_a_hint(tmp_path: Path, kind: str) -> None:
    told = script(FORK, kind, file_url(tmp_path / "sessions.db")).splitlines()
    assert "forked" in told[0]
    assert told[1].startswith("hint: ")
    assert told[2:] == ["s", "1"]


ROWS = {
    "an event, not UTF-8": ("event", "payload", b'{"role":"user"\xc3'),
    "an event, cut off": ("event", "payload", b'{"role": "user", "cont'),
    "an event, empty": ("event", "payload", b""),
    "an id": ("event", "id", b"\xff\xfe"),
    "an author": ("event", "author", b"\xff\xfe"),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_damaged_row_costs_no_other_one(
    tmp_path: Path, row: str, caplog: pytest.LogCaptureFixture
) -> None:
    table, column, value = ROWS[row]
    path = tmp_path / "s.db"
    with SessionService(file_url(path)) as service:
        session = service.create("app", "ann", "s")
        service.append(
            session, [SessionEvent({"role": "user", "content": str(at)}) for at in "abc"]
        )
    with closing(sqlite3.connect(path)) as file:
        file.execute(
            f"UPDATE {table} SET {column} = CAST(? AS TEXT) WHERE place % (1 << 32) = 2", [value]
        )
        file.commit()
    with SessionService(file_url(path)) as service:
        loaded = service.get("app", "ann", "s")
        assert loaded is not None
        service.append(loaded, [SessionEvent({"role": "user", "content": "d"})])
        loaded = service.get("app", "ann", "s")
    assert loaded is not None
    kept = [message["content"] for message in loaded.messages]
    is_lost = column == "payload"
    assert kept == (["a", "c", "d"] if is_lost else ["a", "b", "c", "d"])
    assert [event.seq for event in loaded.damaged] == [2] * is_lost
    assert ("`app/ann/s` is damaged: what stands at position 2" in caplog.text) is is_lost


def test_a_damaged_row_of_a_session_names_the_session(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with SessionService(file_url(path)) as service:
        service.create("app", "ann", "s")
    for change in ("meta = '{'", "gen = CAST(x'ff' AS TEXT)"):
        with closing(sqlite3.connect(path)) as file:
            file.execute(f"UPDATE session SET {change}")
            file.commit()
        with (
            SessionService(file_url(path)) as service,
            pytest.raises(StoreDataError, match="session `app/ann/s`"),
        ):
            service.get("app", "ann", "s")
