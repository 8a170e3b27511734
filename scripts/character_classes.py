"""Write `src/tokens/tables/classes.bin`: classes of characters as tiktoken's regex engine has them.

Run with the pinned tiktoken: `.venv/bin/python -m scripts.character_classes`; `--check` only
compares. The bits are named in `src/tokens/characters.rs`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tiktoken

TABLE = Path(__file__).resolve().parent.parent / "src/tokens/tables/classes.bin"
CHARACTERS = 0x110000
PAGE = 128
CLASSES = {
    r"\p{Lu}": 1,
    r"\p{Lt}": 1,
    r"\p{Ll}": 2,
    r"\p{Lm}": 3,
    r"\p{Lo}": 3,
    r"\p{M}": 3,
    r"\p{L}": 4,
    r"\p{N}": 8,
    r"\s": 16,
    r"\p{Han}": 32,
    r"[\p{P}\p{S}]": 64,
    r"[\r\n]": 128,
}


def members(pattern: str) -> set[int]:
    """Return the characters that match: what a pattern does not match, an encoding leaves out."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    encoding = tiktoken.Encoding(
        name="classes", pat_str=pattern, mergeable_ranks=ranks, special_tokens={}
    )
    found: set[int] = set()
    for start in range(0, CHARACTERS, 4096):
        text = "".join(
            chr(point) for point in range(start, start + 4096) if not 0xD800 <= point < 0xE000
        )
        found.update(map(ord, encoding.decode_bytes(encoding.encode_ordinary(text)).decode()))
    return found


def table() -> bytes:
    """Return the page of each 128 characters, then the pages, each once."""
    flags = bytearray(CHARACTERS)
    for pattern, bit in CLASSES.items():
        for point in members(pattern):
            flags[point] |= bit
    pages: dict[bytes, int] = {}
    index = bytes(
        pages.setdefault(bytes(flags[start : start + PAGE]), len(pages))
        for start in range(0, CHARACTERS, PAGE)
    )
    return index + b"".join(pages)


def main() -> int:
    made = table()
    if "--check" in sys.argv[1:]:
        return int(TABLE.read_bytes() != made)
    TABLE.write_bytes(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
