#!/usr/bin/env python3
"""Rewrite `src/window_table.tsv` from the model table that litellm's wheel carries.

    pip download --no-deps --dest /tmp/wheels litellm==1.109.1
    python scripts/refresh_windows.py --wheel /tmp/wheels/litellm-1.109.1-*.whl
    python scripts/refresh_windows.py --wheel /tmp/wheels/litellm-1.109.1-*.whl --check

The second line rewrites the table and prints what changed, the third changes nothing and exits 1
where the table is not what this script makes of that wheel. Without `--wheel` the installed
litellm is read; it is never imported. `--check` needs the version that the table's header names.

`scripts/windows_extra.tsv` holds what litellm lacks, each line with its source. Models that a newer
litellm no longer lists are moved there, because other gateways and local servers go on serving
them. A line there gives way to litellm, except one whose source begins with "corrects litellm":
that one counts as long as it is the smaller.

How one name gets its numbers, where litellm has several copies of it: the key without a gateway
wins, then the copy of the vendor itself (`VENDORS`), then the smallest. A gateway's own copy is
carried under its full name only where it differs, so that asking for exactly that name gets
exactly that answer.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import re
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "src" / "window_table.tsv"
EXTRA = ROOT / "scripts" / "windows_extra.tsv"
JSON_IN_WHEEL = "litellm/model_prices_and_context_window_backup.json"

# What a chat loop can call. Embeddings, images and speech have windows too, for no conversation.
MODES = {"chat", "completion", "responses"}

# litellm has entries of 0 and 512 for embeddings and guards that are filed as chat models.
MIN_WINDOW_TOKENS = 2_048

# litellm's provider name of a vendor's own service, and how the names of the vendor's own models
# begin, because these services host other vendors' models too (dashscope glm, tencent kimi).
VENDORS: dict[str, tuple[str, ...]] = {
    "ai21": ("jamba", "j2"),
    "amazon_nova": ("nova",),
    "anthropic": ("claude",),
    "bigmodel": ("glm",),
    "cohere": ("command",),
    "cohere_chat": ("command", "c4ai"),
    "dashscope": ("qwen", "qwq", "qvq"),
    "deepseek": ("deepseek",),
    "gemini": ("gemini", "gemma"),
    "gigachat": ("gigachat",),
    "inception": ("mercury",),
    "meta": ("llama", "muse"),
    "meta_llama": ("llama",),
    "minimax": ("minimax",),
    "mistral": (
        "codestral",
        "devstral",
        "magistral",
        "ministral",
        "mistral",
        "open-mi",
        "pixtral",
        "voxtral",
    ),
    "moonshot": ("kimi", "moonshot"),
    "openai": ("chat", "codex", "gpt", "o1", "o3", "o4"),
    "perplexity": ("sonar", "pplx"),
    "tencent": ("hunyuan", "hy"),
    "vertex_ai-language-models": ("gemini", "gemma"),
    "volcengine": ("doubao",),
    "xai": ("grok",),
    "xiaomi_mimo": ("mimo",),
    "zai": ("glm",),
}

# What OpenAI publishes for these models is input and output together; litellm has that for some
# copies of a model and the input alone for others (gpt-5 272,000; azure/gpt-5.4 922,000). The input
# is what a prompt may hold.
OPENAI_NAMES = ("chat-latest", "daybreak", "gpt-")
OPENAI_INPUT_OF_TOTAL = {400_000: 272_000, 1_050_000: 922_000}

CORRECTS = "corrects litellm"

HEADER = """\
# Context windows and output limits of chat models, in tokens. Embedded by src/window.rs.
# date: {date}
# source: litellm {version}, its model_prices_and_context_window table
#   (MIT License, Copyright (c) 2023 Berri AI), and scripts/windows_extra.tsv, which names a source
#   for each of its lines.
# refresh: python scripts/refresh_windows.py --wheel WHEEL (its docstring says how to get one).
#   Do not edit by hand.
# Sorted by bytes. Columns: name, what a prompt may hold, what one answer may hold ("-": not
#   published).
"""

EXTRA_HEADER = """\
# Models that litellm's table lacks, merged into src/window_table.tsv by refresh_windows.py, which
# adds models that litellm stops listing. litellm's numbers go before these, except where the source
# begins with "corrects litellm" and the window is smaller. "there" is litellm's table.
# genai-prices: MIT License, Copyright (c) Pydantic Services Inc. 2025 to present.
# Columns: name, window, output limit ("-": not published), source.
"""


class RefreshError(Exception):
    """The table could not be read, or the two sides do not belong together."""


@dataclass(frozen=True)
class Limits:
    """What a prompt and what one answer may hold, in tokens."""

    window: int
    output: int | None

    def __str__(self) -> str:
        return f"{self.window}\t{'-' if self.output is None else self.output}"

    def agrees(self, other: Limits) -> bool:
        """Whether carrying both would tell a user nothing new.

        An output limit that is missing or as large as the window says only that nothing was
        published: deepinfra states 1,000,000 for models that write 128,000.
        """
        if self.window != other.window:
            return False
        return self.output is None or self.output >= self.window or self.output == other.output


@dataclass(frozen=True)
class Entry:
    """One model of litellm's table that has a window."""

    key: str
    provider: str
    limits: Limits

    @property
    def is_vendors_own(self) -> bool:
        return core_name(self.key).startswith(VENDORS.get(self.provider, ("\0",)))

    @property
    def is_placeholder(self) -> bool:
        """Whether the numbers are the 4096 that gateways write for "not known".

        fireworks_ai has it for image models and for 131,072-token models too.
        """
        return self.limits == Limits(4_096, 4_096)


Table = dict[str, Limits]


def fold(name: str) -> str:
    """Return the spelling that `src/window.rs` compares: `Claude-4.5` is `claude-4-5`."""
    return re.sub(r"(?<=[0-9])\.(?=[0-9])", "-", name.lower())


def forms(key: str) -> Iterator[str]:
    """Yield the names tried for `key`, exact ones first: a part of what `src/window.rs` does.

    A gateway's copy that one of these already answers need not be carried.
    """
    whole = fold(key)
    for name in dict.fromkeys((whole, re.sub(r"(-v\d+)?:\d+$", "", whole))):
        segments = name.split("/")
        for start in range(len(segments)):
            rest = "/".join(segments[start:])
            yield rest
            while match := re.match(r"[a-z_-]+\.", rest):
                rest = rest[match.end() :]
                yield rest


def core_name(key: str) -> str:
    """Return the name without gateway, region, vendor prefix and Bedrock version."""
    return list(forms(key))[-1]


def read_source(wheel: Path | None) -> tuple[str, dict[str, object]]:
    """Return litellm's version and its table, from a wheel file or from the installed package."""
    if wheel is not None:
        version = wheel.name.split("-")[1]
        with zipfile.ZipFile(wheel) as archive:
            text = archive.read(JSON_IN_WHEEL).decode()
    else:
        distribution = importlib.metadata.distribution("litellm")
        version = distribution.version
        text = Path(str(distribution.locate_file(JSON_IN_WHEEL))).read_text(encoding="utf-8")
    table = json.loads(text)
    if not isinstance(table, dict) or len(table) < 1_000:
        raise RefreshError(f"litellm {version} has no model table of the expected shape")
    return version, table


def tokens(value: object) -> int | None:
    """Return a count as an int; some entries carry floats or text such as "8192"."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return int(value) or None
    except ValueError:
        return None


def limits_of(key: str, model: dict[str, object]) -> Limits | None:
    """Return the limits of one entry, or None where the window is not certain.

    `max_tokens` is litellm's older field and means the output limit wherever one was known, so it
    is taken for a window only where it is larger than the output limit beside it: heroku's
    `claude-4-sonnet` of 1.82.6 has nothing but `max_tokens: 8192`, for a window of 200,000.
    """
    output = tokens(model.get("max_output_tokens"))
    window = tokens(model.get("max_input_tokens"))
    if window is None:
        legacy = tokens(model.get("max_tokens"))
        window = legacy if legacy and output and legacy > output else None
    if window in OPENAI_INPUT_OF_TOTAL and core_name(key).startswith(OPENAI_NAMES):
        window = OPENAI_INPUT_OF_TOTAL[window]
    return Limits(window, output) if window and window >= MIN_WINDOW_TOKENS else None


def entries(table: dict[str, object]) -> list[Entry]:
    """Return the chat models of litellm's table that state a window."""
    found = []
    for key, model in table.items():
        # `ft:` names and `bedrock/*/…` are patterns of litellm's price lookup, not models.
        if not isinstance(model, dict) or model.get("mode") not in MODES:
            continue
        if "*" in key or key.startswith("ft:") or not key.isascii() or "\t" in key:
            continue
        if limits := limits_of(key, model):
            found.append(Entry(key.lower(), str(model.get("litellm_provider")), limits))
    return sorted(found, key=lambda entry: entry.key)


def choose(copies: list[Entry], core: str) -> Entry:
    """Return the copy that speaks for the name: bare key, else vendor's own, else smallest."""
    known = [entry for entry in copies if not entry.is_placeholder] or copies
    bare = [entry for entry in known if fold(entry.key) == core]
    own = [entry for entry in known if entry.is_vendors_own]
    return min(
        bare or own or known,
        key=lambda entry: (entry.limits.window, entry.limits.output or 0, entry.key),
    )


def spelled_in(key: str, core: str) -> str:
    """Return the core name as `key` spells it: `kimi-k2.5`, where folded it is `kimi-k2-5`."""
    endings = (key[start:] for start in range(len(key)))
    return next((ending for ending in endings if fold(ending) == core), core)


def build(table: dict[str, object]) -> Table:
    """Return name to limits, gateway copies that agree left out."""
    groups: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in entries(table):
        groups[core_name(entry.key)].append(entry)

    rows: Table = {}
    folded: Table = {}
    for core, copies in groups.items():
        speaker = choose(copies, core)
        # A name without a digit (`auto`, `community`) is too general to be taken from a gateway.
        if speaker.is_vendors_own or fold(speaker.key) == core or re.search(r"[0-9]", core):
            rows[spelled_in(speaker.key, core)] = folded[core] = speaker.limits

    everything = [(core, entry) for core, copies in groups.items() for entry in copies]
    # Short names first: `amazon.nova-pro-v1:0` answers for `us.amazon.nova-pro-v1:0`.
    for core, entry in sorted(everything, key=lambda pair: (len(pair[1].key), pair[1].key)):
        if entry.is_placeholder and entry.provider == "fireworks_ai" and core in folded:
            continue
        names = list(forms(entry.key))
        answer = next((folded[name] for name in names if name in folded), None)
        if names[0] not in folded and (answer is None or not entry.limits.agrees(answer)):
            rows[entry.key] = folded[names[0]] = entry.limits
    return rows


def parse(text: str) -> tuple[Table, dict[str, str]]:
    """Return the rows of a table or extra file, and the source of each that states one."""
    rows: Table = {}
    sources: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        name, window, output, *source = line.split("\t")
        if name in rows:
            raise RefreshError(f"line {number}: `{name}` is there twice")
        rows[name] = Limits(int(window), None if output == "-" else int(output))
        sources[name] = source[0] if source else ""
    return rows, sources


def header_field(text: str, field: str) -> str | None:
    match = re.search(rf"^# {field}: (?:litellm )?([^\s,]+)", text, re.MULTILINE)
    return match[1] if match else None


def lines(rows: Table) -> Iterable[tuple[str, Limits]]:
    return sorted(rows.items(), key=lambda row: row[0].encode())


def render(rows: Table, version: str, date: str) -> str:
    header = HEADER.format(date=date, version=version)
    return header + "".join(f"{name}\t{limits}\n" for name, limits in lines(rows))


def merge(rows: Table, extra: Table, sources: dict[str, str]) -> list[str]:
    """Add the extra lines to `rows` and return the names that litellm answers by now."""
    spellings = {fold(name): name for name in rows}
    superseded = []
    for name, limits in extra.items():
        known = next((spellings[form] for form in forms(name) if form in spellings), None)
        if known is None:
            rows[name] = limits
        elif sources[name].startswith(CORRECTS) and limits.window < rows[known].window:
            rows[known] = limits
        else:
            superseded.append(name)
    return superseded


def report(old: Table, new: Table) -> Iterator[str]:
    """Yield one line for each model added, removed, raised or lowered."""
    for name in sorted(new.keys() - old.keys()):
        yield f"added    {name}: {new[name].window:,} in, {new[name].output or '-'} out"
    for name in sorted(old.keys() - new.keys()):
        yield f"removed  {name}: {old[name].window:,}"
    for name in sorted(old.keys() & new.keys()):
        for what in ("window", "output"):
            before, after = getattr(old[name], what), getattr(new[name], what)
            if before != after:
                word = "raised  " if (after or 0) > (before or 0) else "lowered "
                yield f"{word} {name}: {what} {before or '-'} -> {after or '-'}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Rewrite src/window_table.tsv from litellm's table."
    )
    parser.add_argument(
        "--wheel", type=Path, help="litellm's wheel file; the installed litellm otherwise"
    )
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 when out of date"
    )
    options = parser.parse_args(arguments)

    try:
        version, source = read_source(options.wheel)
    except importlib.metadata.PackageNotFoundError:
        parser.error("litellm is not installed; hint: give its wheel with `--wheel`")
    old_text = TABLE.read_text(encoding="utf-8") if TABLE.exists() else ""
    old, _ = parse(old_text)
    old_version = header_field(old_text, "source")
    extra, sources = parse(EXTRA.read_text(encoding="utf-8") if EXTRA.exists() else "")

    if options.check and version != old_version:
        raise RefreshError(f"the table was made from litellm {old_version}, not from {version}")

    new = build(source)
    if not options.check and version != old_version:
        known = {fold(name) for name in new} | {fold(name) for name in extra}
        for name, limits in old.items():
            plain = not re.search(r"[/@:]", name) and core_name(name) == fold(name)
            if plain and fold(name) not in known:
                extra[name], sources[name] = limits, f"litellm {old_version}"
    superseded = merge(new, extra, sources)

    date = header_field(old_text, "date") or ""
    if not options.check and (new != old or version != old_version):
        date = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    new_text = render(new, version, date)

    for line in report(old, new):
        print(line)
    if options.check:
        print(f"{TABLE.name}: {'up to date' if new_text == old_text else 'out of date'}")
        return int(new_text != old_text)

    for name in superseded:
        print(f"extra    {name}: dropped, litellm has it")
        del extra[name]
    TABLE.write_text(new_text, encoding="utf-8")
    extra_lines = (f"{name}\t{limits}\t{sources[name]}\n" for name, limits in lines(extra))
    EXTRA.write_text(EXTRA_HEADER + "".join(extra_lines), encoding="utf-8")
    size = f"{len(new)} models, {len(new_text.encode()):,} bytes"
    print(f"{TABLE.name}: {size}, from litellm {version}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RefreshError as error:
        sys.exit(f"error: {error}")
