"""Plays each release once, two at a time, and keeps what the drivers report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from refusals import MISCOUNTED, WRONG

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LITELLM = ("0.1.3.post7", "0.1.4", "0.1.4.post2", "0.1.4.post3", "0.1.4.post4", "0.1.4.post5")
"""The releases whose provider is litellm."""
OPENAI = (
    *("0.1.4.post6", "0.1.5", "0.1.5.post1", "0.1.5.post2", "0.1.5.post3"),
    *("0.2.0", "0.2.1", "0.2.2", "0.3.0", "0.3.5"),
)
"""The releases with a provider class of their own over OpenAI's client."""
TESTED = (
    *("0.1.3.post7", "0.1.4", "0.1.4.post4", "0.1.4.post5"),
    *("0.1.4.post6", "0.1.5.post3", "0.2.2", "0.3.0", "0.3.5"),
)
"""One release of each generation, for every run; NANOBOT_CONTEXT_MATRIX=1 plays all sixteen."""
RELEASES = (*LITELLM, *OPENAI) if os.environ.get("NANOBOT_CONTEXT_MATRIX") == "1" else TESTED
"""What the tests play."""
FITTING = (
    "A",
    "A2",
    "A-deepseek",
    "A-table",
    "A-gateway",
    "B",
    "B-table",
    "C",
    "D",
    "E2",
    "F",
    "G",
    "memory",
)
"""Scenarios whose window is known, so that no request may ever be refused."""
TOLD = ("twice", "mute", "sub-refused")
"""Scenarios in which the user is told that it does not fit."""
OTHER_PROVIDERS = {
    # Since 0.1.4.post6 the settings of the one class that is also played for OpenAI itself.
    "custom": tuple(release for release in RELEASES if release != "0.1.3.post7"),
    # Since 0.1.5 by OpenAI's Responses.
    "azure": tuple(r for r in RELEASES if r in ("0.1.4.post4", "0.1.4.post5", *OPENAI)),
}
"""The releases that have these providers of nanobot, which go past litellm."""
REFUSED = {"custom": ("wrong-custom",), "azure": ("wrong-azure", "wrong-responses")}
"""What is played with them beside the scenario that is called as they are."""
GOES_ON = "0.3.5"
"""The release that keeps what it sent and got by Responses, and sends that again with the news."""
COMPACT_IDLE = tuple(release for release in RELEASES if release in OPENAI[2:])
"""The releases that compact a session when nobody has used it for long, 0.1.5.post1 and later."""
FALL_BACK = tuple(sorted({"0.2.0", "0.2.1", "0.2.2", "0.3.0", "0.3.5"} & set(RELEASES)))
"""The releases that turn to another model when one fails."""
COMPARED = ("switched-off", "small", "errors", "faults", "faults-pressed")
"""Scenarios that are also played without the package, with every release."""
SWITCHES = ("disabled", "environment", "removed")
"""The modes of the driver in which the package is there and must not be noticed."""
LOSES_REPORTS = ("0.1.5.post1", "0.1.5.post2")
"""Releases whose own provider drops a subagent's report that comes when the turn is over: it stands
last, as the assistant's, and what stands so is taken for a prefill."""
BASELINE = "0.1.4.post4"
"""The release that is also played without the package, to show that the scenarios overflow."""
RETRIES_DIGITS = "0.1.4.post5"
"""The release that takes an error with 503 in it for a transient one."""
PROCESS_SECONDS = 540

Result = dict[str, Any]


def jobs(release: str) -> list[str]:
    """Return what the driver plays with `release`."""
    wrong = [f"wrong-{form}" for form in WRONG]
    protected = [
        *FITTING,
        *wrong,
        "readback",
        "digits",
        "miscounted",
        *(f"miscounted-{form}" for form in MISCOUNTED),
        "cut",
        *TOLD,
        "refused-then-500",
    ]
    protected += COMPARED
    plan = [f"{name}:off" for name in COMPARED]
    if release == BASELINE:
        plan += [f"{name}:off" for name in (*FITTING, *wrong, *TOLD)]
    if release in LOSES_REPORTS:
        plan += ["C:off"]
    if release == RETRIES_DIGITS:
        plan += ["digits:off"]
    if release in COMPACT_IDLE:
        protected += ["idle"]
    if release == GOES_ON:
        protected += ["thinking"]
    if release in FALL_BACK:
        protected += ["fallback"]
    for provider, releases in OTHER_PROVIDERS.items():
        if release in releases:
            protected += [provider, *REFUSED[provider]]
    plan += [f"{name}:on" for name in protected]
    return [*plan, *(f"switched-off:{mode}" for mode in SWITCHES), "console"]


class Played:
    """The results of all drivers; `of` waits for the one that is asked for."""

    def __init__(self, releases: list[str]) -> None:
        self._pool = ThreadPoolExecutor(max_workers=max(2, (os.cpu_count() or 2) - 1))
        self._runs: dict[str, Future[dict[tuple[str, str], Result]]] = {}
        for release in releases:
            self._run(release)

    def of(self, release: str, scenario: str, mode: str = "on") -> Result:
        """Return what happened in one scenario; the test fails if it was not played to its end."""
        result = self._run(release).result()[scenario, mode]
        if result["error"]:
            pytest.fail(f"{scenario}:{mode} on nanobot {release} broke off\n{result['error']}")
        return result

    def _run(self, release: str) -> Future[dict[tuple[str, str], Result]]:
        """Return the run of `release`, begun now if it was not foreseen."""
        if release not in self._runs:
            self._runs[release] = self._pool.submit(drive, release)
        return self._runs[release]

    def close(self) -> None:
        """Wait for what is still running."""
        self._pool.shutdown(cancel_futures=True)


def drive(release: str, wanted: Sequence[str] = ()) -> dict[tuple[str, str], Result]:
    """Run the driver of `release`, with all jobs or those that are `wanted`.

    Returns the results by scenario and mode.
    """
    home = ROOT / ".cache" / "nanobot" / release
    python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    stamp = home / "nanobot-context.stamp.json"
    if not python.exists() or not stamp.exists():
        raise RuntimeError(f"no environment for nanobot {release}\nhint: run `make envs`")
    if json.loads(stamp.read_text())["package"] == "none":
        raise RuntimeError(
            f"the environment of nanobot {release} holds no nanobot-context\nhint: run `make envs`"
        )
    done = subprocess.run(
        [str(python), str(HERE / "drive.py"), *(wanted or jobs(release))],
        capture_output=True,
        text=True,
        timeout=PROCESS_SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the driver of nanobot {release} failed\n{done.stderr[-4000:]}")
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {(result["scenario"], result["mode"]): result for result in results}
