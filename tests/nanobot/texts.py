"""Texts of an exact size with facts planted in them, the same ones at every run."""

from __future__ import annotations

import random
from dataclasses import dataclass

from counting import text_tokens

VOCABULARY = """
account adapter answer archive balance batch border branch budget bundle cache carrier chain
change channel check client cluster column command commit config copper counter cycle delta
deploy desk device diagram distance door draft driver echo edge engine entry error event factor
field filter flag folder forest frame gate glass grain graph group guard handle harbor header
helper hour image index input island item journal kernel key label ladder layer leaf level limit
line link list lock logic manual map margin market matrix meter method mirror mode module motor
name needle network node note number object offset option order output owner packet page panel
parcel parser patch path pattern pause pencil phase pilot plan plate point port print process
profile proof queue quota radius range rate reader record region relay report request result
ring river road role room root route rule sample scale schema screen sector sensor server
session shape shell signal silver slice socket source stage state station step stone store
stream street string switch symbol table target task template thread ticket timer token tool
topic tower track trade transfer tree trigger tunnel type union unit update user value vector
version view voice wagon wall window wire worker zone
"""
WORDS = VOCABULARY.split()
HANZI = (
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行"
    "所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力"
    "它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产"
    "或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口"
    "认条平系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区"
)


# One character in six is a rare one, as in names; a character then costs 1.1 tokens.
RARE = "".join(chr(point) for point in range(0x4E00, 0x9FA5, 23))


@dataclass(frozen=True)
class Planted:
    """A text and the facts to look for in prompts."""

    text: str
    facts: tuple[str, str, str]
    """At the head, in the middle and at the tail."""


def prose(seed: str, tokens: int) -> str:
    """Return English-looking lines of `tokens` tokens or a line more."""
    pick = random.Random(seed)
    lines: list[str] = []
    have = 0
    while have < tokens:
        line = f"{' '.join(pick.choices(WORDS, k=12))} {pick.randrange(10_000)}."
        lines.append(line)
        have += text_tokens(line + "\n")
    return "\n".join(lines)


def planted(name: str, tokens: int) -> Planted:
    """Return a file of about `tokens` tokens with three facts in it."""
    lines = prose(name, tokens).split("\n")
    facts = tuple(f"{name} {place} code {code(name, place)}" for place in PLACES)
    lines[0], lines[len(lines) // 2], lines[-1] = (f"FACT {fact}." for fact in facts)
    return Planted("\n".join(lines), (facts[0], facts[1], facts[2]))


def planted_chinese(name: str, characters: int) -> Planted:
    """Return a Chinese file of about `characters` characters with three facts in it."""
    lines = chinese(name, characters).split("\n")
    facts = tuple(f"{name} {place} 代码 {code(name, place)}" for place in PLACES)
    lines[0], lines[len(lines) // 2], lines[-1] = (f"事实：{fact}。" for fact in facts)
    return Planted("\n".join(lines), (facts[0], facts[1], facts[2]))


def chinese(seed: str, characters: int) -> str:
    """Return lines of Chinese with punctuation, `characters` characters or a line more."""
    pick = random.Random(seed)
    lines: list[str] = []
    have = 0
    while have < characters:
        words = ("".join(pick.choices(HANZI, k=10) + pick.choices(RARE, k=2)) for _ in range(4))
        line = "，".join(words) + "。"
        lines.append(line)
        have += len(line) + 1
    return "\n".join(lines)


def log_lines(seed: str, characters: int) -> str:
    """Return lines of a service's log, exactly `characters` characters at 2.2 a token."""
    pick = random.Random(seed)
    lines: list[str] = []
    have = 0
    while have < characters:
        words = " ".join(pick.choices(WORDS, k=3))
        line = f"2026-01-02T03:{pick.randrange(60):02}:{pick.randrange(60):02}Z {words} "
        line += f"id={pick.randrange(16**10):010x} took={pick.randrange(9999)}ms"
        lines.append(line)
        have += len(line) + 1
    return "\n".join(lines)[:characters]


PLACES = ("head", "middle", "tail")


def code(name: str, place: str) -> str:
    """Return a code that no other file or place has."""
    return f"{random.Random(name + place).randrange(16**8):08x}"
