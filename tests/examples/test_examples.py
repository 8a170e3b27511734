"""The examples, run as a user runs them: against a server that refuses what is too long.

The model reads a log when it is asked about a day, and answers with what failed in it.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "nanobot"))

from server import Answer, Call, ModelServer, Request  # noqa: E402

EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
CHECKS = sorted(path.stem for path in HERE.glob("check_*.py"))
PYTHON = ROOT / ".cache" / "examples" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
WINDOW = 16_000
DAYS = range(1, 11)
ANSWERS = [f"disk full on node-{day % 9}, ticket OPS-{day}42." for day in DAYS]
PROGRAMS = ["react_agent", "thinking_agent"]
"""The examples in other circumstances: see each."""

pytestmark = pytest.mark.timeout(300)


def reads_logs(request: Request) -> Answer:
    """Answer as a model that does what it is asked to."""
    last = request.messages[-1]
    if failed := re.search("ERROR (.*)", str(last["content"])):
        return f"{failed[1]}."
    asked = re.match(r"What failed on March (\d+)\?", str(last["content"]))
    return [Call("read_log", {"day": int(asked[1])})] if asked else "All of them."


@dataclass(frozen=True)
class Played:
    """What an example printed, and what the server received."""

    status: int
    output: str
    errors: str
    requests: list[Request]


@functools.cache
def played(example: str, *arguments: str, window: int | None = WINDOW) -> Played:
    """Run an example, or a program of this directory, in an empty folder; once for all tests."""
    program = HERE / f"{example}.py"
    if not program.exists():
        program = ROOT / "examples" / f"{example}.py"
    # litellm wants an older openai than the others do, and is in the environment of the tests.
    python = Path(sys.executable) if example == "litellm_client" else PYTHON
    with TemporaryDirectory() as folder, ModelServer(reads_logs, window=WINDOW) as server:
        # Nothing of this process's environment that a client would read.
        own = {name: value for name, value in os.environ.items() if "OPENAI" not in name}
        done = subprocess.run(
            [python, HERE / "run_example.py", program, *arguments],
            cwd=folder,
            env={
                **own,
                "OPENAI_BASE_URL": server.base,
                "OPENAI_API_KEY": "sk-x",
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                "CONTEXT_WINDOW": str(window or ""),
            },
            capture_output=True,
            text=True,
            check=False,
        )
    return Played(done.returncode, done.stdout, done.stderr, server.requests)


@pytest.fixture(autouse=True)
def environment() -> None:
    if not PYTHON.exists():
        pytest.fail("the environment of the examples is not there\nhint: run `make examples`")


@pytest.mark.parametrize("example", EXAMPLES)
def test_without_the_package_an_example_ends_with_a_refusal(example: str) -> None:
    without = played(example, "--without")
    assert without.status != 0
    assert "maximum context length is 16000 tokens" in without.errors
    assert without.requests[-1].about == "overflow"
    assert 0 < len(without.output.splitlines()) < len(DAYS)


@pytest.mark.parametrize("example", [*EXAMPLES, *PROGRAMS])
def test_with_the_package_every_request_fits_and_is_answered(example: str) -> None:
    done = played(example)
    assert done.status == 0, done.errors
    assert done.output.splitlines() == [*ANSWERS, "All of them."]
    assert {request.about for request in done.requests} == {"answered"}
    last = done.requests[-1]
    assert last.system == "You read logs. Be brief."
    # litellm's example has its logs in messages of the user, of which the oldest go whole.
    lost = [day for day in DAYS if f"OPS-{day}42" not in last.text]
    assert len(lost) <= (2 if example == "litellm_client" else 0), lost


@pytest.mark.parametrize("example", EXAMPLES)
def test_most_requests_begin_as_the_one_before(example: str) -> None:
    sent = [request.messages for request in played(example).requests]
    kept = [after[: len(before)] == before for before, after in pairwise(sent)]
    assert kept.count(True) >= len(kept) / 2, kept


@pytest.mark.parametrize("example", ["openai_client", "litellm_client"])
def test_a_window_smaller_than_it_is_thought_to_be_costs_one_refusal_and_no_answer(
    example: str,
) -> None:
    done = played(example, window=None)
    assert done.status == 0, done.errors
    assert [answer for answer in ANSWERS if answer not in done.output] == []
    about = [request.about for request in done.requests]
    assert set(about) == {"answered", "overflow"}
    assert about.count("overflow") == 1, "what the first refusal states holds for all that follows"


@pytest.mark.parametrize("check", CHECKS)
def test_a_framework_takes_what_an_example_makes_of_its_messages(check: str) -> None:
    command = [str(PYTHON), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, str(HERE / f"{check}.py")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
