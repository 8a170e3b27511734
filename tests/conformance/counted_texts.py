"""Texts to count: seeded, the same on every machine with the same Python, no file of their own.

Left out on purpose: runs above 100 KB, since tiktoken 0.14 itself panics on 1 MB of spaces.
"""

from __future__ import annotations

import random
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path

# What splits differently in one pattern or the other, or has surprised a tokenizer before:
# contractions (the one with a long s has a test of its own), every kind of space and line end,
# digits in groups of three, marks, joiners, unassigned and private code points.
WORDS = {
    "contractions": "'s 'S 't 're 'RE 'Ve 'll 'd 'm ' ’s n't",
    "digits": "0 1 23 456 7890 123456 ² ½ Ⅻ ٣ ５ 𝟙 ① 零",
    "letters": "a B cD EfG the THE The ß ſ ǅ ʰ ª ı İ ﬁ",
    "punctuation": ". , !! ? ... -- == / // { } :: -> ` 、 。 「",
    "cjk": "中 文字 日本語 ひらがな カタカナ ｶﾀｶﾅ 한국어 漢字仮名 𠀀 㐀 々 〇 ー",
    "scripts": "Привет Ελλ שלום مرحبا हिन्दी ไทย ქართ አማርኛ தமிழ் ខ្មែរ Ⴀ ᏣᎳᎩ 𐌰",
    "emoji": "😀 👍🏽 👨\u200d👩\u200d👧 🏳️\u200d🌈 🇩🇪 #️⃣ ❤️ \u200d \u2764 🧑\u200d💻",
}
POOLS: dict[str, list[str]] = {name: words.split() for name, words in WORDS.items()} | {
    "spaces": [" ", "  ", *"\t\u00a0\u1680\u2003\u3000\u200b\u202f\ufeff"],
    "lines": ["\r\n", "\n\n", "/\n", *"\n\r\u0085\u2028\u2029\v\f\x1c\x1f"],
    "marks": ["e\u0301", *"\u0301\u20e3\ufe0f\u0e33\u094d\u0bcd\u05b0\u064b"],
    "odd": list("\x00\x01\x7f\x80\u0378\ue000\ufffd\uffff\U0010ffff\U000e0041"),
}

SPECIAL = [f"<|{name}|>" for name in ("endoftext", "im_start", "endofprompt", "fim_prefix")]


@cache
def stdlib() -> str:
    """Return the source of the standard library's top-level modules, about 10 MB."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    return "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files)


def source_slices(count: int) -> Iterator[str]:
    """Yield slices from anywhere in the source, most of them short, cut without regard to words."""
    rng = random.Random(1)
    text = stdlib()
    for _ in range(count):
        length = int(2 ** rng.uniform(0, 12))
        start = rng.randrange(len(text) - length)
        yield text[start : start + length]


def fuzz(count: int) -> Iterator[str]:
    """Yield short strings drawn from one to four pools each, so that their members meet."""
    rng = random.Random(2)
    for _ in range(count):
        names = rng.sample(sorted(POOLS), rng.randint(1, 4))
        members = [member for name in names for member in POOLS[name]]
        yield "".join(rng.choices(members, k=rng.randint(1, 24)))


def code_points() -> Iterator[str]:
    """Yield every code point of the first two planes, 32 at a time, in five surroundings."""
    for start in range(0, 0x20000, 32):
        row = [chr(point) for point in range(start, start + 32) if not 0xD800 <= point < 0xE000]
        if row:
            yield "".join(row)
            yield "a".join(row)
            yield " ".join(row)
            yield "1".join(row)
            yield "\n".join(row)


def special_tokens() -> Iterator[str]:
    """Yield texts that spell special tokens, alone, inside words, broken and in a row."""
    for token in SPECIAL:
        yield token
        yield f"{token}{token}"
        yield f"text {token} text"
        yield f"a{token}b\n{token}"
        yield token[:-1]
        yield token[1:]
        yield token.replace("|", " | ")
    yield "".join(SPECIAL)


def runs() -> Iterator[str]:
    """Yield one character or group many times over: each length to 130, then up to 100 KB."""
    groups = [*"aA \n\t0=-/é中。ก한😀\u0301", "\r\n", " a", "a ", "ab"]
    lengths = [*range(1, 131), 1_000, 4_097]
    for group in groups:
        for length in lengths:
            yield group * length
        for before, after in [("x", "x"), (" ", "\n"), ("\n", "x")]:
            yield before + group * 77 + after
        yield group * (100_000 // len(group.encode()))


def random_runs() -> Iterator[str]:
    """Yield long strings with no place to split: letters, hexadecimal, base64, Chinese, Thai."""
    rng = random.Random(3)
    alphabets = [
        "abcdefghijklmnopqrstuvwxyz",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "0123456789abcdef",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
        "".join(map(chr, range(0x4E00, 0x5200))),
        "".join(map(chr, range(0x0E01, 0x0E2F))),
    ]
    for alphabet in alphabets:
        for length in (50, 5_000, 30_000):
            yield "".join(rng.choices(alphabet, k=length))
