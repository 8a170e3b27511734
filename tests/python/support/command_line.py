"""The command line in processes that share one start-up.

To load Python, the libraries and a vocabulary takes longer than almost every command. One process
does it, and forks for each command: arguments, environment, folder, standard streams and exit code
are a process's own.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

SERVER = """
import gc, importlib, json, os, pkgutil, socket, sys
import pydantic
import nanobot_context.cli, nanobot_context.sessions
from nanobot_context.__main__ import main

nanobot_context.count_tokens([{"role": "user", "content": "a vocabulary"}])
pydantic.TypeAdapter(str)  # what typer reads options with
for package in (nanobot_context.cli, nanobot_context.sessions):
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
gc.freeze()  # each command looks through its own objects at its end, not these
with socket.socket(fileno=int(sys.argv[1])) as connection:
    while True:
        text, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
        if not text:
            break
        process = os.fork()
        if not process:
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            connection.close()
            job = json.loads(text)
            os.chdir(job["folder"])
            os.environ.clear()
            os.environ.update(job["environ"])
            sys.argv[1:] = job["arguments"]
            sys.exit(main())
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(process, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())
"""
SECONDS = 500


class CommandLine:
    """A process that has started, and runs one command after the other."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def run(
        self, arguments: list[str], given: bytes, folder: Path, environ: Mapping[str, str]
    ) -> tuple[int, tuple[bytes, bytes]]:
        """Run a command that reads `given`; return its exit code and what it printed."""
        pipes = [os.pipe() for _ in range(3)]
        (theirs_in, ours_in), (ours_out, theirs_out), (ours_err, theirs_err) = pipes
        job = {"arguments": arguments, "folder": str(folder), "environ": dict(environ)}
        streams = [theirs_in, theirs_out, theirs_err]
        socket.send_fds(self._connection, [json.dumps(job).encode()], streams)
        for stream in streams:
            os.close(stream)
        with ThreadPoolExecutor(3) as pool:
            pool.submit(_write, ours_in, given)
            out, err = (pool.submit(_read, stream) for stream in (ours_out, ours_err))
        code = int(self._connection.recv(16))
        return code, (out.result(), err.result())


def _write(stream: int, given: bytes) -> None:
    with open(stream, "wb") as file:
        file.write(given)


def _read(stream: int) -> bytes:
    with open(stream, "rb") as file:
        return file.read()


@contextmanager
def started(environ: Mapping[str, str]) -> Iterator[CommandLine]:
    """Start the process, with what the libraries read of `environ` when they are imported."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        ours.settimeout(SECONDS)
        process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(theirs.fileno())],
            env=dict(environ),
            pass_fds=[theirs.fileno()],
            # Pipes, as the commands get: Python looks at its start whether a stream can be rewound.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        theirs.close()
        with process:
            yield CommandLine(ours)
            ours.close()
