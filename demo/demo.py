"""Show one real nanobot conversation without and with nanobot-context, side by side.

    make demo
    make demo NANOBOT=0.1.4.post4

Needs the environment of the release (`scripts/nanobot_envs.py`) and no network: the model is a
script behind a local server that speaks OpenAI's API, counts with o200k_base and refuses what is
longer than 32,000 tokens in OpenAI's words. Exits with 1 if the protected run failed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RELEASE = os.environ.get("NANOBOT", "0.3.5")
LEFT, SIDE = 34, 42
RUN_SECONDS = 50
INSIDE = "Scripts/python.exe" if os.name == "nt" else "bin/python"
PYTHON = ROOT / ".cache" / "nanobot" / RELEASE / INSIDE


def main() -> int:
    """Hold the conversation twice and print what came of it."""
    check_environment()
    print(f"nanobot {RELEASE}, a model with 32,000 tokens of context, real HTTP on this machine\n")
    plain, protected = run("off"), run("on")
    line("", "without nanobot-context", "with nanobot-context")
    line("-" * LEFT, "-" * SIDE, "-" * SIDE)
    pairs = zip(plain["turns"], protected["turns"], strict=True)
    for number, (one, two) in enumerate(pairs, start=1):
        line(f"{number:2} {said(one)}", seen(one), seen(two))
    line("-" * LEFT, "-" * SIDE, "-" * SIDE)
    for name, value in ROWS.items():
        line(name, value(plain), value(protected))
    good = answered(protected) == len(protected["turns"]) and not protected["refused"]
    print("\nThe protected conversation " + ("held." if good else "FAILED."))
    return 0 if good else 1


def check_environment() -> None:
    """End with a hint if the release has no environment."""
    if not PYTHON.exists():
        raise SystemExit(
            f"error: no environment for nanobot {RELEASE}\n"
            f"hint: .venv/bin/python scripts/nanobot_envs.py {RELEASE}"
        )


def run(package: str) -> dict[str, Any]:
    """Hold the conversation in a process of its own, with the release's interpreter."""
    done = subprocess.run(
        [str(PYTHON), str(ROOT / "demo" / "conversation.py"), package],
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"error: the run with the package {package} broke off\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def line(name: str, left: str, right: str) -> None:
    """Print one row of the table."""
    print(f"{name:{LEFT}}  {left:{SIDE}}  {right}".rstrip())


def said(turn: dict[str, Any]) -> str:
    """Return the beginning of what the user said."""
    return short(str(turn["said"]).splitlines()[0], LEFT - 3)


def seen(turn: dict[str, Any]) -> str:
    """Return what the user saw, shortened."""
    answer = str(turn["answer"]).splitlines()[0] if turn["answer"] else "(nothing)"
    if is_error(turn):
        answer = "ERROR " + re.sub(r"^(Error calling LLM|Error|RAISED \w+): ", "", answer)
    return short(answer, SIDE)


def is_error(turn: dict[str, Any]) -> bool:
    """Return whether the user saw an error in place of the model's answer."""
    return not any(word in turn["answer"] for word in ("ORCHID-7741", "(no code"))


def answered(result: dict[str, Any]) -> int:
    """Return the number of turns that the model answered."""
    return sum(not is_error(turn) for turn in result["turns"])


def short(text: str, width: int) -> str:
    """Return `text` cut to `width` characters."""
    return text if len(text) <= width else text[: width - 1] + "…"


ROWS: dict[str, Callable[[dict[str, Any]], str]] = {
    "turns answered": lambda r: f"{answered(r)} of {len(r['turns'])}",
    "requests to the model": lambda r: f"{r['requests']:,}",
    "refused as too long": lambda r: f"{r['refused'] - r['malformed']:,}",
    "refused as malformed": lambda r: f"{r['malformed']:,}",
    "largest prompt, tokens": lambda r: f"{r['largest']:,}",
    "all prompts, tokens": lambda r: f"{r['total']:,}",
    "facts of the files it saw": lambda r: f"{r['facts_seen']} of {r['facts']}",
    "first turn's rule in last prompt": lambda r: r["rule_in_last_prompt"],
    "wall time, seconds": lambda r: f"{r['seconds']}",
}


if __name__ == "__main__":
    sys.exit(main())
