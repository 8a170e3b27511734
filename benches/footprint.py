"""Memory, import time and wheel size, each in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from conversation import conversation
from corpora import package_dir
from measure import Report, median

ROOT = Path(__file__).resolve().parent.parent
IMPORT_TARGET_MS = 30
WHEEL_TARGET_MB = 10
FIRST_COUNT_TARGET_MS = 10
FIRST_COUNT_TARGET_MB = 12

# Prints the resident set in MB before anything, after the import, after the first count, and after
# the model calls of the conversation, and the CPU of the first count in ms. The list itself is
# there from the start.
MEMORY_PROBE = """
import gc, json, os, sys, time
def rss():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
messages = json.load(open(sys.argv[1], encoding="utf-8"))
hello = [{"role": "user", "content": "hello"}]
seen = [rss()]
started = 0
def first(count):
    global started
    started = time.process_time_ns()
    count()
    started = time.process_time_ns() - started
    seen.append(rss())
%s
print(json.dumps([*seen, started / 1e6]))
"""
OURS = """
import nanobot_context
seen.append(rss())
first(lambda: nanobot_context.count_tokens(hello, "gpt-4o"))
for end in range(1, len(messages) + 1):
    nanobot_context.compress_messages(messages[:end], 400_000, "gpt-4o")
seen.append(rss())
"""
TIKTOKEN = """
import tiktoken
seen.append(rss())
first(lambda: tiktoken.get_encoding("o200k_base").encode_ordinary("hello"))
encoding = tiktoken.get_encoding("o200k_base")
for message in messages:
    encoding.encode_ordinary(message["content"])
seen.append(rss())
"""
PLAN = """
import litellm, v31
seen.append(rss())
first(lambda: v31.count_tokens(hello, "gpt-4o"))
v31.count_tokens(v31.compress_messages(messages, 400_000, "gpt-4o"), "gpt-4o")
seen.append(rss())
"""


def memory(report: Report) -> None:
    if not Path("/proc/self/statm").exists():
        report.line("memory: not measured, there is no /proc")
        return
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "benches"), os.environ.get("PYTHONPATH", "")]),
        "TIKTOKEN_CACHE_DIR": str(package_dir("litellm") / "litellm_core_utils" / "tokenizers"),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    rows = []
    taken = held = 0.0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "conversation.json")
        file.write_text(json.dumps(conversation()), encoding="utf-8")
        for name, code in (("ours", OURS), ("tiktoken", TIKTOKEN), ("V3.1, litellm", PLAN)):
            command = [sys.executable, "-c", MEMORY_PROBE % code, str(file)]
            done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
            before, *after, first_ms = json.loads(done.stdout)
            rows.append([name, *(f"{value - before:.1f}" for value in after), f"{first_ms:.1f}"])
            if name == "ours":
                taken, held = first_ms, after[1] - after[0]
    report.title("Memory: MB of resident set above an interpreter that holds the conversation")
    report.table(
        ["", "after import", "after first count", "after 400 messages", "first count, ms CPU"], rows
    )
    report.target(
        f"first count below {FIRST_COUNT_TARGET_MS} ms and {FIRST_COUNT_TARGET_MB} MB"
        f" ({taken:.1f} ms, {held:.1f} MB)",
        taken < FIRST_COUNT_TARGET_MS and held < FIRST_COUNT_TARGET_MB,
    )


def import_time(report: Report, *, processes: int) -> None:
    """The fastest of many fresh processes: what is left is what the import costs."""
    statements = {"bare": "pass", "ours": "import nanobot_context", "tiktoken": "import tiktoken"}
    wall: dict[str, list[float]] = {name: [] for name in statements}
    cpu: dict[str, list[float]] = {name: [] for name in statements}
    for _ in range(processes):
        for name, statement in statements.items():
            before, start = os.times(), time.perf_counter()
            subprocess.run([sys.executable, "-c", statement], check=True)
            wall[name].append((time.perf_counter() - start) * 1e3)
            after = os.times()
            used = after.children_user + after.children_system
            cpu[name].append((used - before.children_user - before.children_system) * 1e3)
    report.title(f"Import: ms above a bare interpreter, best of {processes} processes")
    rows = [
        [
            name,
            f"{min(wall[name]) - min(wall['bare']):.1f}",
            f"{median(wall[name]) - median(wall['bare']):.1f}",
            f"{median(cpu[name]) - median(cpu['bare']):.0f}",
        ]
        for name in ("ours", "tiktoken")
    ]
    report.table(["", "best", "median", "median CPU"], rows)
    taken = min(wall["ours"]) - min(wall["bare"])
    report.target(f"import below {IMPORT_TARGET_MS} ms ({taken:.1f} ms)", taken < IMPORT_TARGET_MS)


def wheel(report: Report) -> None:
    report.title("Wheel")
    wheels = sorted((ROOT / "dist").glob("*.whl"))
    if not wheels:
        report.line("no wheel in dist; hint: make build")
    for file in wheels:
        size = file.stat().st_size / 1e6
        report.target(
            f"{file.name} below {WHEEL_TARGET_MB} MB ({size:.1f} MB)", size < WHEEL_TARGET_MB
        )
