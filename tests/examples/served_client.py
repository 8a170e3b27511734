"""examples/openai_client.py without the package, through `nanobot-context serve`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import openai
import openai_client
from run_example import WITHOUT

if __name__ == "__main__":
    upstream = os.environ["OPENAI_BASE_URL"]
    command = [sys.executable, "-m", "nanobot_context", "serve", "--upstream", upstream]
    with subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        try:
            address = serving.stdout.readline().split()[0]
            is_off = os.environ.get(WITHOUT)
            openai_client.client = openai.OpenAI(base_url=upstream if is_off else address)
            openai_client.main()
        finally:
            serving.terminate()
