"""Ten kinds of text, offline and the same in every run.

Real text where something installed has enough of it, generated with a seed where not:

| class | where it is from |
|---|---|
| prose | documentation strings of botocore's service models, without their markup |
| code | the standard library |
| json | litellm's price table and API description, botocore's endpoints, wheels' parts lists |
| logs | generated: system log, access log, listings, tracebacks |
| zh, ja | chains over pairs of characters of real translations (Django, JupyterLab) |
| chat | lines of dialogue, each English (as prose), Chinese or Japanese (as above) |
| dense | half minified JavaScript from litellm's interface, half random base64, hex and UUIDs |
| runs | generated: one character many times, then another |
| emoji | generated: emoji in sequences and between short sentences |
"""

from __future__ import annotations

import base64
import gettext
import gzip
import html
import json
import random
import re
import sysconfig
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

MESSAGE_BYTES = 4_096


def package_dir(name: str) -> Path:
    """Return the folder of an installed package, which is not imported."""
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise LookupError(f"`{name}` is not installed\nhint: make bench")
    return Path(spec.submodule_search_locations[0])


def corpus(name: str, *, repetitions: int, total_bytes: int = 1_000_000) -> list[list[bytes]]:
    """Return messages of 4 KB for each repetition: `total_bytes` each, no message twice.

    They are bytes, so that every candidate can be given strings of its own: a string keeps its
    UTF-8 form once somebody has asked for it, and whoever asks first would pay for all.
    """
    needed = repetitions * total_bytes
    messages = list(_messages(CLASSES[name](needed), needed))
    if len(messages) * MESSAGE_BYTES < needed:
        raise LookupError(f"class `{name}` has {len(messages) * MESSAGE_BYTES} of {needed} bytes")
    random.Random(name).shuffle(messages)
    each = -(-total_bytes // MESSAGE_BYTES)
    return [messages[index * each : (index + 1) * each] for index in range(repetitions)]


def _messages(parts: Iterator[str], needed: int) -> Iterator[bytes]:
    """Join `parts` and cut them into messages of nearly 4 KB, never inside a character."""
    buffer = b""
    made = 0
    for part in parts:
        buffer += part.encode("utf-8", "replace")
        while len(buffer) >= MESSAGE_BYTES:
            end = MESSAGE_BYTES
            while end < len(buffer) and buffer[end] & 0xC0 == 0x80:
                end -= 1
            yield buffer[:end]
            buffer = buffer[end:]
            made += 1
            if made > needed // MESSAGE_BYTES + 256:
                return


# Real text ----------------------------------------------------------------------------------------


def _prose(_needed: int) -> Iterator[str]:
    for file in sorted((package_dir("botocore") / "data").glob("*/*/service-2.json.gz")):
        for text in _documentation(json.loads(gzip.decompress(file.read_bytes()))):
            plain = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())
            if len(plain) > 200:
                yield plain + "\n\n"


def _documentation(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "documentation" and isinstance(value, str):
                yield value
            else:
                yield from _documentation(value)


def _code(_needed: int) -> Iterator[str]:
    for file in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if "site-packages" not in file.parts:
            yield file.read_text(encoding="utf-8", errors="replace")


def _json(_needed: int) -> Iterator[str]:
    litellm = package_dir("litellm")
    yield (litellm / "model_prices_and_context_window_backup.json").read_text("utf-8")
    yield (litellm / "proxy" / "_lazy_openapi_snapshot.json").read_text("utf-8")
    yield (package_dir("botocore") / "data" / "endpoints.json").read_text("utf-8")
    for file in sorted(litellm.parent.glob("*.dist-info/sboms/*.json")):
        yield json.dumps(json.loads(file.read_bytes()), indent=2)


@cache
def _translations(language: str) -> str:
    """Return every translation that the installed packages bring for `zh` or `ja`."""
    jupyter = {"zh": "zh_CN", "ja": "ja_JP"}[language]
    django = {"zh": "zh_Hans", "ja": "ja"}[language]
    files = [
        *package_dir("django").rglob(f"locale/{django}/LC_MESSAGES/*.mo"),
        *package_dir(f"jupyterlab_language_pack_{jupyter}").rglob("*.mo"),
    ]
    texts: list[str] = []
    for file in sorted(files):
        with file.open("rb") as stream:
            catalog: dict[Any, str] = gettext.GNUTranslations(stream)._catalog  # type: ignore[attr-defined]
        texts += [text for key, text in sorted(catalog.items(), key=str) if key]
    return "\n".join(text for text in texts if re.search(r"[\u3040-\u30ff\u4e00-\u9fff]", text))


def _chain(language: str, seed: str) -> Iterator[str]:
    """Yield text whose every third character follows the two before it somewhere in the source."""
    source = _translations(language)
    follows: defaultdict[str, list[str]] = defaultdict(list)
    for index in range(len(source) - 2):
        follows[source[index : index + 2]].append(source[index + 2])
    rng = random.Random(seed)
    pair = source[:2]
    while True:
        made: list[str] = []
        for _ in range(2_000):
            following = follows.get(pair)
            character = rng.choice(following) if following else rng.choice(source)
            made.append(character)
            pair = pair[1] + character
        yield "".join(made)


def _minified() -> Iterator[str]:
    for file in sorted((package_dir("litellm") / "proxy" / "_experimental").rglob("*.js")):
        yield file.read_text("utf-8", "replace")


# Generated text -----------------------------------------------------------------------------------


def _logs(_needed: int) -> Iterator[str]:
    rng = random.Random("logs")
    paths = [str(file) for file in sorted(package_dir("litellm").rglob("*.py"))[:2_000]]
    paths = ["/srv/app" + path.partition("site-packages")[2] for path in paths]
    levels = ["INFO", "WARNING", "ERROR", "DEBUG"]
    errors = [
        "KeyError: 'id'",
        "TimeoutError",
        "ValueError: invalid literal for int()",
        "OSError: [Errno 28]",
    ]

    def when() -> str:
        day, seconds = rng.randint(1, 28), rng.randrange(86_400)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        return f"2026-{rng.randint(1, 12):02}-{day:02}T{clock}.{rng.randrange(1000):03}Z"

    while True:
        kind = rng.randrange(4)
        path = rng.choice(paths)
        if kind == 0:
            request = f"request_id={uuid.UUID(int=rng.getrandbits(128))}"
            worker = f"{rng.choice(levels)} worker-{rng.randrange(64)}"
            yield f"{when()} {worker} {request} took {rng.random() * 900:.2f}ms\n"
        elif kind == 1:
            address = ".".join(str(rng.randrange(256)) for _ in range(4))
            answer = f"{rng.choice([200, 200, 304, 404, 502])} {rng.randrange(90_000)}"
            yield f'{address} - - [{when()}] "GET {path}?v={rng.randrange(999)}" {answer}\n'
        elif kind == 2:
            size = rng.randrange(10**7)
            yield f"-rw-r--r-- 1 app app {size:>8} Nov {rng.randint(1, 28):>2} {path}\n"
        else:
            frames = "".join(
                f'  File "{path}", line {rng.randrange(900)}, in run_{rng.randrange(50)}\n'
                for path in rng.choices(paths, k=rng.randint(1, 5))
            )
            yield f"Traceback (most recent call last):\n{frames}{rng.choice(errors)}\n"


def _zh(_needed: int) -> Iterator[str]:
    return _chain("zh", "zh")


def _ja(_needed: int) -> Iterator[str]:
    return _chain("ja", "ja")


def _chat(needed: int) -> Iterator[str]:
    rng = random.Random("chat")
    sources = [
        _sentences(_prose(needed)),
        _sentences(_chain("zh", "chat")),
        _sentences(_chain("ja", "chat")),
    ]
    while True:
        speaker = rng.choice(["User", "Assistant", "用户", "助手", "小林"])
        yield f"{speaker}: {next(rng.choice(sources))}\n"


def _sentences(parts: Iterator[str]) -> Iterator[str]:
    for part in parts:
        for sentence in re.split(r"(?<=[.。！？\n])", part):
            if len(sentence.strip()) > 3:
                yield sentence.strip()[:300]


def _dense(_needed: int) -> Iterator[str]:
    rng = random.Random("dense")
    for script in _minified():
        for start in range(0, len(script), MESSAGE_BYTES):
            yield script[start : start + MESSAGE_BYTES]
            noise = rng.randbytes(3_000)
            uuids = (str(uuid.UUID(int=rng.getrandbits(128))) for _ in range(110))
            yield rng.choice([base64.b64encode(noise).decode(), noise.hex(), "\n".join(uuids)])


def _runs(_needed: int) -> Iterator[str]:
    rng = random.Random("runs")
    while True:
        yield rng.choice(" \n\t=-_.*#aAxX0中。é") * rng.randint(1, 300)


def _emoji(_needed: int) -> Iterator[str]:
    rng = random.Random("emoji")
    faces = [
        chr(point)
        for point in (*range(0x1F600, 0x1F650), *range(0x1F300, 0x1F5FF), *range(0x2600, 0x26FF))
    ]
    joined = ["👨\u200d👩\u200d👧", "🧑\u200d💻", "🏳\ufe0f\u200d🌈", "👍🏽", "❤\ufe0f", "🇩🇪", "🇯🇵"]
    words = [
        "great job",
        "see you",
        "好的",
        "了解です",
        "on it",
        "lol",
        "thanks!!",
        "今晚见",
        "wait what",
    ]
    while True:
        row = rng.choices(faces + joined * 20, k=rng.randint(1, 12))
        yield "".join(row) + rng.choice(["", " ", "\n", f" {rng.choice(words)} "])


CLASSES: dict[str, Callable[[int], Iterator[str]]] = {
    "prose": _prose,
    "code": _code,
    "json": _json,
    "logs": _logs,
    "zh": _zh,
    "ja": _ja,
    "chat": _chat,
    "dense": _dense,
    "runs": _runs,
    "emoji": _emoji,
}


def worst_cases(repetition: int) -> dict[str, str]:
    """Return strings of 1 MB that find a tokenizer's slow paths.

    Each repetition is one character longer, so that a count remembered by length does not help.
    """
    size = 1_000_000 + repetition
    rng = random.Random(repetition)
    han = re.findall(r"[\u4e00-\u9fff]", _translations("zh"))
    return {
        "one letter": "a" * size,
        "spaces": " " * size,
        "'='": "=" * size,
        "zh, no punctuation": "".join(rng.choices(han, k=size // 3)),
        "newlines": "\n" * size,
        "random letters": "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=size)),
        "base64": base64.b64encode(rng.randbytes(size * 3 // 4)).decode(),
    }
