"""Sessions of real nanobot releases: their files in a store, and a store in place of the files."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from nanobot_context.sessions import SessionService
from nanobot_context.sessions.nanobot_files import (
    export_nanobot_file,
    export_nanobot_folder,
    import_nanobot_file,
    import_nanobot_folder,
)
from played import Played, like
from plays import ENVIRONMENTS, HERE, PROCESS_SECONDS
from redis_server import RedisServer
from session_cases import HAS_REDIS
from shared import CASES, KEY

pytest_plugins = ("session_fixtures",)

STORES = ("sqlite", "redis") if HAS_REDIS else ("sqlite",)
"""The stores that several gateways can share."""
GATEWAYS = "0.3.5"
"""The release that takes sessions from a store."""
TURNS = 50


@pytest.fixture(scope="module", params=STORES)
def url(
    request: pytest.FixtureRequest,
    redis_server: RedisServer | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    """The URL of an empty store."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path_factory.mktemp('store')}/sessions.db"
    assert redis_server is not None
    redis_server.command("FLUSHALL")
    return str(redis_server.url)


def command(release: str, *words: str) -> list[str]:
    """Return the command line of `shared.py` with the interpreter of a release."""
    python = ENVIRONMENTS / release / "bin" / "python"
    return [str(python), str(HERE / "shared.py"), *words]


def results(release: str, *words: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        command(release, *words),
        capture_output=True,
        text=True,
        timeout=PROCESS_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


# Files ---------------------------------------------------------------------------------------


def test_every_session_file_of_every_release_comes_back_byte_for_byte(
    played: Played, release: str, tmp_path: Path
) -> None:
    written = tmp_path / "written"
    written.mkdir()
    (made,) = results(release, "files", str(written))
    talks = ["A", "thinking"] if like(release) == GATEWAYS else ["A"]
    for talk in talks:
        for name, text in played.of(release, talk)["session_files"].items():
            path = tmp_path / "played" / talk / "sessions" / name
            path.parent.mkdir(parents=True)
            path.write_bytes(text.encode())
    files = sorted(tmp_path.rglob("sessions/**/*.jsonl"))
    assert {str(path) for path in files} > set(made["files"])
    texts = [path.read_text("utf-8") for path in files]
    assert any('"tool_calls"' in text for text in texts)
    assert any('"_type": "provider_state"' in text for text in texts) == (like(release) == GATEWAYS)
    back = tmp_path / "back.jsonl"
    with SessionService(f"sqlite:///{tmp_path}/sessions.db", event_limit=0) as service:
        for number, path in enumerate(files):
            session = import_nanobot_file(service, path, user=str(number))
            assert session.seq == len(session.messages) or '"content": ""' in path.read_text()
            export_nanobot_file(service, session, back)
            assert back.read_bytes() == path.read_bytes(), path
            assert import_nanobot_file(service, path, user=str(number)).seq == session.seq
        folder = Path(made["files"][0]).parent
        keys = {session.id for session in import_nanobot_folder(service, folder)}
        assert keys == {"cli:empty", "cli:plain", "cli:long", "cli:tools", "telegram:-100_42"}
        out = tmp_path / "out"
        out.mkdir()
        for path in export_nanobot_folder(service, out):
            assert path.read_bytes() == (folder / path.name).read_bytes()


# The store in place of files -----------------------------------------------------------------


@pytest.fixture(scope="module")
def cases(url: str) -> dict[str, str | None]:
    """What went wrong in each case that real session managers were put through."""
    found = results(GATEWAYS, "cases", url)
    return {result["case"]: result["error"] for result in found}


@pytest.mark.parametrize("case", CASES)
def test_nanobots_own_session_manager_with_the_store(
    cases: dict[str, str | None], case: str
) -> None:
    if cases[case]:
        pytest.fail(str(cases[case]))


class Gateway:
    """A nanobot process that asks its questions in the shared session when it is told to."""

    def __init__(self, url: str, home: Path, writer: str, turns: int, start: int = 0) -> None:
        self.writer = writer
        words = ["talk", url, str(home), writer, str(turns), "--start", str(start)]
        home.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            command(GATEWAYS, *words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.answers: list[str] = []

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *_: object) -> None:
        with self.process:
            self.process.kill()

    def lines(self) -> Iterator[dict[str, Any]]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                yield json.loads(line)

    def expect(self, name: str) -> Any:
        """Read up to what is called `name` and return it; answers on the way are kept."""
        for line in self.lines():
            if "answer" in line:
                self.answers.append(line["answer"])
            if name in line:
                return line[name]
        raise AssertionError(f"gateway {self.writer} ended before it said `{name}`")

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()


def expected(writer: str, numbers: Sequence[int]) -> list[str]:
    """Return what a session has of a writer: questions and answers by number, in their order."""
    return [f"{word} {writer}-{number:03}" for number in numbers for word in ("Question", "Answer")]


def of_writer(contents: Sequence[str], writer: str) -> list[str]:
    return [text.rstrip(".") for text in contents if f" {writer}-" in text]


def stored(url: str) -> list[str]:
    with SessionService(url, event_limit=0) as service:
        session = service.get("nanobot", "default", KEY, user_first="off")
        return [message["content"] for message in session.messages] if session else []


@pytest.fixture
def empty(url: str) -> str:
    with SessionService(url) as service:
        service.delete("nanobot", "default", KEY)
    return url


def test_two_gateways_in_one_session_at_once_lose_nothing_and_keep_each_writers_order(
    empty: str, tmp_path: Path
) -> None:
    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        gateways = [
            stack.enter_context(Gateway(empty, tmp_path / writer, writer, TURNS))
            for writer in ("A", "B")
        ]
        for step in ("ready", "done"):
            list(pool.map(lambda gateway, step=step: gateway.expect(step), gateways))
            for gateway in gateways:
                gateway.go()
        shows = list(pool.map(lambda gateway: gateway.expect("shows"), gateways))
    contents = stored(empty)
    assert len(contents) == 4 * TURNS
    for gateway in gateways:
        assert of_writer(contents, gateway.writer) == expected(gateway.writer, range(TURNS))
        assert gateway.answers == [f"Answer {gateway.writer}-{n:03}." for n in range(TURNS)]
    turns_of_a = [text for text in contents if " A-" in text]
    assert contents[: 2 * TURNS] != turns_of_a, "they did not talk at the same time"
    assert shows == [contents, contents], "each shows what the other one wrote"


def test_a_gateway_that_is_killed_loses_nothing_that_it_answered(
    empty: str, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        living = stack.enter_context(Gateway(empty, tmp_path / "A", "A", TURNS))
        dying = stack.enter_context(Gateway(empty, tmp_path / "B", "B", TURNS))
        for gateway in (living, dying):
            gateway.expect("ready")
        for gateway in (living, dying):
            gateway.go()
        for _ in range(10):
            dying.expect("answer")
        dying.process.kill()
        dying.process.wait()
        # What it had printed by then was answered, too.
        dying.answers += [line["answer"] for line in dying.lines() if "answer" in line]
        answered = len(dying.answers)
        living.expect("done")
        contents = stored(empty)
        assert of_writer(contents, "A") == expected("A", range(TURNS))
        kept = of_writer(contents, "B")
        assert kept[: 2 * answered] == expected("B", range(answered))
        again = stack.enter_context(Gateway(empty, tmp_path / "B", "B", 3, start=900))
        again.expect("ready")
        again.go()
        again.expect("done")
    contents = stored(empty)
    assert of_writer(contents, "A") == expected("A", range(TURNS))
    assert of_writer(contents, "B")[-6:] == expected("B", range(900, 903))


def test_a_talk_in_the_store_becomes_a_file_that_nanobot_alone_goes_on_with(
    empty: str, tmp_path: Path
) -> None:
    with Gateway(empty, tmp_path / "A", "A", 5) as gateway:
        gateway.expect("ready")
        gateway.go()
        gateway.expect("done")
    path = tmp_path / "home" / "Y2xpOnNoYXJlZA.jsonl"
    path.parent.mkdir()
    with SessionService(empty) as service:
        session = service.get("nanobot", "default", KEY)
        assert session is not None
        export_nanobot_file(service, session, path)
    (read,) = results(GATEWAYS, "read", str(path))
    assert of_writer(read["messages"], "A") == expected("A", range(5))
    assert read["saved"] == path.read_text("utf-8"), "it writes what it has read"


@pytest.mark.parametrize("before", ["0.3.0"])
def test_an_earlier_release_keeps_its_files_and_says_so(before: str, tmp_path: Path) -> None:
    (found,) = results(before, "without-stores", str(tmp_path))
    assert found["points"] == [["nanobot.session.manager.SessionStore", "missing"]]
    assert len(found["warnings"]) == 1
    assert "`sessionStore` has no effect, sessions stay files" in found["warnings"][0]
    assert found["findings"] == [found["warnings"][0].removeprefix("nanobot-context: ")]
    assert "secret" not in json.dumps(found)
    assert len(found["files"]) == 1
