"""A real `redis-server` on a free port of the loopback, for as long as a test needs it."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

# None: no Redis server is installed here.
EXECUTABLE = shutil.which("redis-server")

Answer = bytes | int | list["Answer"] | None


class RedisServer:
    """A running server.

    Attributes:
        port: Where it listens.
        password: What it asks for; empty for nothing.
        process: The server itself.
    """

    def __init__(self, port: int, password: str, process: subprocess.Popen[bytes]) -> None:
        self.port = port
        self.password = password
        self.process = process

    @property
    def url(self) -> str:
        """The URL that a session store opens."""
        login = f":{self.password}@" if self.password else ""
        return f"redis://{login}127.0.0.1:{self.port}/0"

    def stop(self) -> None:
        """Let the server end as one that is switched off; what it has on the disk stays."""
        self.process.terminate()
        self.process.wait(10)

    def start(self) -> None:
        """Start it again, on the same port with the same files."""
        self.process = subprocess.Popen(
            self.process.args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        if not _answers(self):
            raise RuntimeError("`redis-server` did not start again")

    def command(self, *words: str | bytes) -> Answer:
        """Send a command on a connection of its own, and return the answer.

        Raises:
            RuntimeError: The server answered with an error.
        """
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            if self.password:
                connection.sendall(_request("AUTH", self.password))
            connection.sendall(_request(*words))
            with connection.makefile("rb") as answers:
                if self.password:
                    _answer(answers)
                return _answer(answers)

    def key_names(self) -> list[bytes]:
        """Return the names of all keys, by SCAN."""
        found: set[bytes] = set()
        cursor = b"0"
        while True:
            answer = self.command("SCAN", cursor, "COUNT", "1000")
            assert isinstance(answer, list)
            next_cursor, names = answer
            assert isinstance(next_cursor, bytes)
            assert isinstance(names, list)
            found.update(name for name in names if isinstance(name, bytes))
            cursor = next_cursor
            if cursor == b"0":
                return sorted(found)

    def dump(self) -> dict[bytes, Answer]:
        """Return every key with its value, as the server would save it."""
        return {key: self.command("DUMP", key) for key in self.key_names()}


@contextmanager
def running(password: str = "", *options: str) -> Iterator[RedisServer]:
    """Start a server that keeps nothing on the disk, and end it afterwards.

    Args:
        password: What it asks for.
        options: Further words of its command line, such as "--appendonly", "yes".
    """
    assert EXECUTABLE is not None
    with tempfile.TemporaryDirectory(prefix="nanobot-context-redis-") as folder:
        # Another process may take the port between the look and the start.
        for _ in range(5):
            port = _free_port()
            process = _start(port, password, Path(folder), options)
            server = RedisServer(port, password, process)
            if _answers(server):
                break
            process.wait(10)
        else:
            raise RuntimeError("`redis-server` did not start")
        try:
            yield server
        finally:
            server.process.kill()
            server.process.wait(10)


def _start(
    port: int, password: str, folder: Path, options: tuple[str, ...]
) -> subprocess.Popen[bytes]:
    assert EXECUTABLE is not None
    login = ["--requirepass", password] if password else []
    place = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    volatile = ["--save", "", "--appendonly", "no"]
    return subprocess.Popen(
        [EXECUTABLE, *place, *volatile, *login, *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _answers(server: RedisServer) -> bool:
    for _ in range(500):
        if server.process.poll() is not None:
            return False
        try:
            return server.command("PING") == b"PONG"
        except (OSError, RuntimeError):  # the latter while it loads what is on the disk
            time.sleep(0.02)
    return False


def _request(*words: str | bytes) -> bytes:
    encoded = [word.encode() if isinstance(word, str) else word for word in words]
    parts = [b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded]
    return b"*%d\r\n%s" % (len(parts), b"".join(parts))


def _answer(answers: BinaryIO) -> Answer:
    """Read one answer. Source: the Redis serialization protocol, version 2."""
    line: bytes = answers.readline().rstrip(b"\r\n")
    kind, rest = line[:1], line[1:]
    if kind == b"+":
        return rest
    if kind == b":":
        return int(rest)
    if kind == b"$":
        size = int(rest)
        if size < 0:
            return None
        text: bytes = answers.read(size + 2)
        return text[:-2]
    if kind == b"*":
        return [_answer(answers) for _ in range(int(rest))]
    raise RuntimeError(f"Redis answered {line!r}")
