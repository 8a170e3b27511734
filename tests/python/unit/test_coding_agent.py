"""mini-swe-agent, a coding agent as it is released, through the proxy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from model_server import Asked, ModelServer, serving
from proxying import proxying

pytestmark = pytest.mark.skipif(
    find_spec("minisweagent") is None, reason="mini-swe-agent is not installed: `make ready`"
)

READS = 7
RULE = "Never touch the file secrets.env."
AGENT = f"""
import sys
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_model import LitellmModel

options = {{"api_base": sys.argv[1], "api_key": "k"}}
model = LitellmModel(
    model_name="openai/gpt-4o-mini", model_kwargs=options, cost_tracking="ignore_errors"
)
task = "You work in a shell."
agent = DefaultAgent(
    model, LocalEnvironment(), system_template=task, instance_template="{{{{ task }}}}"
)
print("ended:", agent.run("Read all logs. {RULE}")["exit_status"])
"""


def command(number: int) -> str:
    if number > READS:
        return "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
    line = f"echo log {number} line $i: the build of node $i ended well"
    return f"for i in $(seq 1 110); do {line}; done"


class Model:
    """Answers each request with the next command."""

    def __init__(self, window: int) -> None:
        self.window, self.answered = window, 0

    def __call__(self, handler: Any, asked: Asked) -> bool:
        if asked.tokens > self.window:
            return False
        self.answered += 1
        arguments = json.dumps({"command": command(self.answered)})
        function = {"name": "bash", "arguments": arguments}
        call = {"id": f"call_{self.answered}", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        usage = {"prompt_tokens": asked.tokens, "completion_tokens": 9, "total_tokens": 9}
        body = {"id": "a", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini"}
        handler.reply(200, {**body, "choices": [choice], "usage": usage})
        return True


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving() as running:
        running.instead = Model(running.window)
        yield running


def run(address: str, folder: Path) -> str:
    own = {"MSWEA_SILENT_STARTUP": "1", "MSWEA_GLOBAL_CONFIG_DIR": str(folder)}
    once = {"MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", AGENT, f"{address}/v1"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        env={**os.environ, **own, **once},
    )
    return done.stdout + done.stderr


def test_a_coding_agent_ends_a_task_that_is_longer_than_the_window(
    server: ModelServer, tmp_path: Path
) -> None:
    with proxying(f"{server.url}/v1") as proxy:
        assert "ended: Submitted" in run(proxy, tmp_path)
    assert server.refusals <= 1
    assert len(server.asked) == READS + 1 + server.refusals
    newest = server.asked[-1].body["messages"]
    assert RULE in newest[1]["content"]
    assert f"log {READS} line 110" in newest[-1]["content"]


def test_without_the_proxy_it_breaks_off(server: ModelServer, tmp_path: Path) -> None:
    said = run(server.url, tmp_path)
    assert "ended: Submitted" not in said
    assert "ContextWindowExceededError" in said
