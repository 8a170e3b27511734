"""Every way in, run as a user runs it: against a server with a window of 16k that refuses more.

All hold one conversation. The model reads a log when it is asked about a day, and answers with what
failed in it. Nobody is told how large the window is.
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

from server import Answer, Call, ModelServer, Request, content_text  # noqa: E402

CHECKS = sorted(path.stem for path in HERE.glob("check_*.py"))
WINDOW = 16_000
DAYS = range(1, 11)
RULE = "never name a customer"
ANSWERS = [
    "I never will.",
    *(f"disk full on node-{day % 9}, ticket OPS-{day}42." for day in DAYS),
    "All of them.",
]


def python_of(*folders: str) -> Path:
    """Return the interpreter of an environment in .cache."""
    home = ROOT.joinpath(".cache", *folders)
    return home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


# Another environment than that of the pins: `HOSTS=.cache/newest/bin/python`.
HOSTS = ROOT / os.environ.get("HOSTS", python_of("examples"))
LITELLM = ROOT / os.environ.get("LITELLM", sys.executable)
NANOBOT = python_of("nanobot", "0.3.5")

WAYS = {
    "openai_client": HOSTS,
    "wrap_async_client": HOSTS,
    "served_client": Path(sys.executable),
    "langchain_agent": HOSTS,
    "pydantic_ai_agent": HOSTS,
    "openai_agents_session": HOSTS,
    "chat_agent": HOSTS,
    "smolagents_agent": HOSTS,
    # litellm wants an older openai than the others do.
    "litellm_client": LITELLM,
    "litellm_router": LITELLM,
    "shim_loop": NANOBOT,
}
"""The examples, and programs of this directory, by what runs them."""
TOLD = ["react_agent", "thinking_agent"]
"""Programs that know the window: see each."""

pytestmark = pytest.mark.timeout(300)


def reads_logs(request: Request) -> Answer:
    """Answer as a model that does what it is asked to."""
    last = content_text(request.messages[-1])
    if failed := re.search("ERROR (.*)", last):
        answer = f"{failed[1]}."
    elif asked := re.search(r"What failed on March (\d+)\?", last):
        return [Call("read_log", {"day": int(asked[1])})]
    else:
        answer = ANSWERS[0] if RULE in last else ANSWERS[-1]
    # smolagents' way to answer.
    ends = any(tool["function"]["name"] == "final_answer" for tool in request.tools)
    return [Call("final_answer", {"answer": answer})] if ends else answer


@dataclass(frozen=True)
class Played:
    """What a program printed, and what the server received."""

    status: int
    output: str
    errors: str
    requests: list[Request]

    @property
    def refusals(self) -> int:
        return sum(not request.accepted for request in self.requests)


@functools.cache
def played(way: str, *arguments: str) -> Played:
    """Run an example, or a program of this directory, in an empty folder; once for all tests."""
    program = HERE / f"{way}.py"
    if not program.exists():
        program = ROOT / "examples" / f"{way}.py"
    with TemporaryDirectory() as folder, ModelServer(reads_logs, window=WINDOW) as server:
        # Nothing of this process's environment that a client would read.
        own = {name: value for name, value in os.environ.items() if "OPENAI" not in name}
        done = subprocess.run(
            [WAYS.get(way, HOSTS), HERE / "run_example.py", program, *arguments],
            cwd=folder,
            env={
                **own,
                "HOME": folder,
                "OPENAI_BASE_URL": server.base,
                "OPENAI_API_KEY": "sk-x",
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            },
            capture_output=True,
            text=True,
            check=False,
        )
    # litellm prints its own advice where a request is refused.
    lines = [line for line in done.stdout.splitlines() if "itellm" not in line and line.strip()]
    return Played(done.returncode, "\n".join(lines), done.stderr, server.requests)


@pytest.fixture(autouse=True)
def environment() -> None:
    if not HOSTS.exists():
        pytest.fail("the environment of the examples is not there\nhint: run `make examples`")


def test_every_example_is_a_way_in() -> None:
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} <= WAYS.keys()


@pytest.mark.parametrize("way", WAYS)
def test_without_the_package_the_conversation_ends_with_a_refusal(way: str) -> None:
    without = played(way, "--without")
    assert "maximum context length is 16000 tokens" in without.errors + without.output
    assert without.requests[-1].about == "overflow"
    assert ANSWERS[-1] not in without.output


@pytest.mark.parametrize("way", [*WAYS, *TOLD])
def test_with_the_package_every_turn_is_answered_and_the_facts_are_seen(way: str) -> None:
    done = played(way)
    assert done.status == 0, done.errors
    assert done.output.splitlines() == ANSWERS
    assert done.refusals == (way not in TOLD), [request.about for request in done.requests]
    last = done.requests[-1]
    assert RULE in last.text
    assert [day for day in DAYS if f"OPS-{day}42" not in last.text] == []
    assert len(done.requests) == 22 + done.refusals
    assert "You read logs. Be brief." in last.system or way == "shim_loop"


@pytest.mark.parametrize("way", WAYS)
def test_most_requests_begin_as_the_one_before(way: str) -> None:
    sent = [request.messages for request in played(way).requests if request.accepted]
    kept = [after[: len(before)] == before for before, after in pairwise(sent)]
    assert kept.count(True) >= len(kept) / 2, kept


@pytest.mark.parametrize("check", CHECKS)
def test_a_framework_takes_what_an_example_makes_of_its_messages(
    check: str, tmp_path: Path
) -> None:
    command = [str(HOSTS), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, str(HERE / f"{check}.py")],
        cwd=ROOT,
        # What was learned of a model is kept in the home directory.
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
