"""Whether a change of the code changes what comes out: digests of 5,600 fits of recordings.

    python -m evaluation.recorded write before.tsv    # with the package before the change
    python -m evaluation.recorded check before.tsv    # with the package after it

A restructuring passes when nothing differs. Prints the names of the fits that do, 20 at most, and
exits with 1. Measures the installed package: `fit_messages` at four budgets, `compress_messages`,
`emergency_compress`, and the requests of a conversation through one `Compressor`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nanobot_context as nc
from evaluation import tools, work

SHARES = (0.1, 0.25, 0.5, 0.75)
MODELS = (None, "gpt-4o", "deepseek-chat", "claude-sonnet-4")
MAX_CONVERSATION_TOKENS = 150_000  # longer ones are cut: they would take most of the time
REQUESTS = 6  # of a conversation through one `Compressor`
MAX_SHOWN = 20

Message = dict[str, Any]


def digests(file: Path) -> list[tuple[str, str]]:
    """Return each fit of one file's recordings by its name, with a digest of what comes out."""
    return [
        (f"{item['id']} {name}", digest)
        for item in tools.items(file)
        for name, digest in _fits(_within(item["messages"]))
    ]


def _within(messages: list[Message]) -> list[Message]:
    while len(messages) > 2 and nc.count_tokens(messages) > MAX_CONVERSATION_TOKENS:
        messages = messages[: len(messages) * 2 // 3]
    return messages


def _fits(messages: list[Message]) -> Iterator[tuple[str, str]]:
    for number, share in enumerate(SHARES):
        model = MODELS[(len(messages) + number) % len(MODELS)]
        budget = int(nc.count_tokens(messages, model) * share)
        yield f"fit {share} {model}", _digest(_fitted, messages, budget, model)
    window = nc.count_tokens(messages) // 2
    yield "compress", _digest(nc.compress_messages, messages, window)
    yield "emergency", _digest(nc.emergency_compress, messages, window)
    compressor = nc.Compressor(window, "gpt-4o")
    for request in range(1, REQUESTS + 1):
        sent = messages[: len(messages) * request // REQUESTS]
        yield f"request {request}", _digest(compressor.compress, sent)


def _fitted(messages: list[Message], budget: int, model: str | None) -> Any:
    fitted = nc.fit_messages(messages, budget, model)
    receipt = fitted.receipt
    return [fitted.messages, fitted.tokens, repr(receipt.cuts), receipt.lost]


def _digest(compress: Any, *arguments: Any) -> str:
    try:
        out = compress(*arguments)
    except nc.ContextOverflowError as error:
        out = [str(error)]
    text = json.dumps(out, ensure_ascii=True, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _differences(before: dict[str, str], now: dict[str, str]) -> list[str]:
    return sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m evaluation.recorded", description=__doc__)
    parser.add_argument("action", choices=("write", "check"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/trajectories"))
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    jobs = [
        work.Job(file.name, digests, (file,), file.stat().st_size)
        for file in tools.recordings(options.data)
    ]
    if not jobs:
        print(f"error: no `*.jsonl.gz` in `{options.data}`", file=sys.stderr)
        return 2
    found = work.run(jobs, options.processes)
    now = {name: digest for rows in found.values() for name, digest in rows}
    if options.action == "write":
        rows = [f"{name}\t{digest}\n" for name, digest in sorted(now.items())]
        options.file.write_text("".join(rows), encoding="utf-8")
        print(f"{len(now)} fits written")
        return 0
    lines = options.file.read_text(encoding="utf-8").splitlines()
    differing = _differences(dict(line.rsplit("\t", 1) for line in lines), now)
    print(f"{len(differing)} of {len(now)} fits differ")
    print("\n".join(differing[:MAX_SHOWN]))
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
