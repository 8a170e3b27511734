"""Show three real nanobot conversations without and with nanobot-context, side by side.

    make demo
    make demo NANOBOT=0.1.5.post3

Needs the environment of the release (`scripts/nanobot_envs.py`) and no network: the model is a
script behind a local server that speaks OpenAI's API, counts with o200k_base and refuses what is
longer than 64,000 tokens in OpenAI's words. Exits with 1 if a protected conversation failed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RELEASE = os.environ.get("NANOBOT", "0.3.5")
LEFT, SIDE = 22, 46
RUN_SECONDS = 120
# Of a million tokens of prompt, as of a middle-sized model: for the sums, not a quote.
DOLLARS = 2.5
INSIDE = "Scripts/python.exe" if os.name == "nt" else "bin/python"
PYTHON = ROOT / ".cache" / "nanobot" / RELEASE / INSIDE
# What `conversation.py` plays, in order.
TITLES = (
    "Eight logs of 13,800 tokens in one question; nanobot knows the window.",
    "The same through a subagent.",
    "Two logs of 30,000 tokens; nanobot has its default window of 200,000.",
)
ERRORS = re.compile(r"(Error calling LLM|Error|RAISED \w+): ")
SUBAGENT = re.compile(r"\[Subagent .*?Result:\s*(.*?)\s*Summarize this.*", re.DOTALL)


def main() -> int:
    """Hold the conversations and print what came of them."""
    check_environment()
    print(f"nanobot {RELEASE}, a model with 64,000 tokens of context, real HTTP on this machine")
    acts = range(len(TITLES))
    with ThreadPoolExecutor(max_workers=2) as pool:
        plays = [[pool.submit(run, act, package) for package in ("off", "on")] for act in acts]
        results = [[play.result() for play in pair] for pair in plays]
    for number, (title, (plain, protected)) in enumerate(zip(TITLES, results, strict=True), 1):
        print(f"\n{number}. {title}\n")
        line("", "without nanobot-context", "with nanobot-context")
        line("-" * LEFT, "-" * SIDE, "-" * SIDE)
        for one, two in zip(plain["turns"], protected["turns"], strict=True):
            block(str(one["said"]), seen(one), seen(two))
        line("-" * LEFT, "-" * SIDE, "-" * SIDE)
        for name, value in ROWS.items():
            line(name, value(plain), value(protected))
    good = all(is_good(protected) for _, protected in results)
    print("\nThe protected conversations " + ("held." if good else "FAILED."))
    return 0 if good else 1


def check_environment() -> None:
    """End with a hint if the release has no environment."""
    if not PYTHON.exists():
        raise SystemExit(
            f"error: no environment for nanobot {RELEASE}\n"
            f"hint: .venv/bin/python scripts/nanobot_envs.py {RELEASE}"
        )


def run(act: int, package: str, *page: str) -> dict[str, Any]:
    """Hold a conversation in a process of its own; `page` is where its report goes."""
    done = subprocess.run(
        [str(PYTHON), str(ROOT / "demo" / "conversation.py"), str(act), package, *page],
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"error: act {act + 1}, package {package}, broke off\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def line(name: str, left: str, right: str) -> None:
    """Print one row of the table."""
    print(f"{name:{LEFT}}  {left:{SIDE}}  {right}".rstrip())


def block(name: str, left: str, right: str) -> None:
    """Print one row whose texts may take several lines."""
    columns = (wrapped(name, LEFT), wrapped(left, SIDE), wrapped(right, SIDE))
    for cells in zip_longest(*columns, fillvalue=""):
        line(*cells)


def wrapped(text: str, width: int) -> Iterator[str]:
    """Yield the first three lines of a text."""
    lines = textwrap.wrap(text, width, max_lines=3, placeholder=" …") or [""]
    yield from lines


def seen(turn: dict[str, Any]) -> str:
    """Return what the user saw: an answer, or an error in capitals."""
    text = SUBAGENT.sub(r"\1", str(turn["answer"]))
    shown = " ".join(ERRORS.sub("ERROR ", text, count=1).split())
    return shown or "(nothing)"


def is_error(turn: dict[str, Any]) -> bool:
    """Return whether the user saw an error in place of the model's answer."""
    return seen(turn).startswith(("ERROR ", "(nothing)"))


def answered(result: dict[str, Any]) -> int:
    """Return the number of turns that the model answered."""
    return sum(not is_error(turn) for turn in result["turns"])


def is_good(result: dict[str, Any]) -> bool:
    """Return whether every turn was answered, and the model saw all that it was to see."""
    return answered(result) == len(result["turns"]) and result["facts_seen"] == result["facts"]


ROWS: dict[str, Callable[[dict[str, Any]], str]] = {
    "turns answered": lambda r: f"{answered(r)} of {len(r['turns'])}",
    "codes the model saw": lambda r: f"{r['facts_seen']} of {r['facts']}",
    "session alive after it": lambda r: "no" if is_error(r["turns"][-1]) else "yes",
    "refused as too long": lambda r: f"{r['refused']:,}",
    "tokens of all prompts": lambda r: (
        f"{r['tokens']:,}, ${r['tokens'] * DOLLARS / 1e6:.2f} at ${DOLLARS} a million"
    ),
}


if __name__ == "__main__":
    sys.exit(main())
