"""`bench`: how fast this machine counts and fits a conversation."""

from __future__ import annotations

import json
import os
import platform
import random
import statistics
import time
from collections.abc import Callable
from typing import Annotated, Any

import typer

from nanobot_context import Message, __version__, count_tokens, fit_messages
from nanobot_context.cli import output
from nanobot_context.cli.options import Json
from nanobot_context.cli.output import Column, labelled, line

_RUNS = 5
_SHARE = 0.5
_TEXT = """the service returned an error after reading config from disk and retrying twice while
memory pressure on node seven stayed high 服务器 在 第二次 重试 之后 恢复 正常 def return import
raise self.value == None path/to/module.py:142 ERROR WARN 0x7f3a timeout=30s"""


def bench(
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="NAME", help="Count as this model.")
    ] = "gpt-4o",
    messages: Annotated[int, typer.Option(metavar="N", min=8, help="How long it is.")] = 400,
    as_json: Json = False,
) -> None:
    """Measure how fast this machine counts and fits.

    Takes a few seconds. Generated conversations of an agent: half of each fits. Cold is one that
    has not been seen before, warm the same again, as in the next turn. Medians of five runs.

    \b
    Examples:
      nanobot-context bench
      nanobot-context bench --model claude-sonnet-4 --messages 2000 --json
    """
    start = time.perf_counter()
    count_tokens([{"role": "user", "content": "Hello."}], model)
    loading = time.perf_counter() - start
    times: dict[str, list[float]] = {}
    tokens = 0
    with output.progress("measuring") as on_run:
        for run in range(_RUNS):
            chat = _generated(messages, seed=run)
            tokens = _timed(times, "count, cold", count_tokens, chat, model)
            _timed(times, "count, warm", count_tokens, chat, model)
            fresh = _generated(messages, seed=run + _RUNS)
            for name in ("fit, cold", "fit, warm"):
                _timed(times, name, fit_messages, fresh, int(tokens * _SHARE), model)
            on_run(run + 1, _RUNS)
    medians = {name: statistics.median(found) * 1_000 for name, found in times.items()}
    if as_json:
        output.print_json(
            {
                "version": __version__,
                "python": platform.python_version(),
                "machine": f"{platform.system()} {platform.machine()}",
                "cpus": os.cpu_count(),
                "model": model,
                "messages": messages,
                "tokens": tokens,
                "loading_ms": round(loading * 1_000, 3),
                "median_ms": {name: round(value, 3) for name, value in medians.items()},
            }
        )
        return
    labelled("machine", f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs")
    labelled("versions", f"nanobot-context {__version__}, Python {platform.python_version()}")
    labelled("conversation", f"{messages:,} messages, {tokens:,} tokens ({model})")
    labelled("vocabulary", f"loaded in {loading * 1_000:,.0f} ms, once a process")
    line()
    output.print_table(
        [Column("what"), Column("ms", "right"), Column("million tokens/s", "right")],
        [
            [name, f"{value:,.2f}", f"{tokens / value / 1_000:,.1f}"]
            for name, value in medians.items()
        ],
    )


def _timed(times: dict[str, list[float]], name: str, work: Callable[..., Any], *given: Any) -> Any:
    start = time.perf_counter()
    made = work(*given)
    times.setdefault(name, []).append(time.perf_counter() - start)
    return made


def _generated(messages: int, *, seed: int) -> list[Message]:
    """Return a conversation of an agent: questions, calls of tools, their results, answers."""
    rng = random.Random(seed)

    def said(words: int) -> str:
        return " ".join(rng.choices(_TEXT.split(), k=words)) + f" #{rng.random()}"

    made: list[Message] = [{"role": "system", "content": said(800)}]
    while len(made) < messages - 3:
        id_ = f"call_{len(made)}"
        arguments = json.dumps({"path": f"/srv/app/{len(made)}.log"})
        function = {"name": "read_file", "arguments": arguments}
        call = {"id": id_, "type": "function", "function": function}
        made += [
            {"role": "user", "content": said(60)},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": id_, "name": "read_file", "content": said(700)},
            {"role": "assistant", "content": said(150)},
        ]
    return [*made, {"role": "user", "content": "Go on."}]
