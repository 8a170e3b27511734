"""A page of tables: printed while it grows, and written as Markdown."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Page:
    """What has been measured so far. A target's outcome is repeated at the end."""

    parts: list[str] = field(default_factory=list)
    targets: list[tuple[str, str, bool]] = field(default_factory=list)

    def title(self, text: str, level: int = 2) -> None:
        self.parts.append(f"{'#' * level} {text}")
        print(f"\n{text}\n{'-' * len(text)}", flush=True)

    def text(self, text: str) -> None:
        self.parts.append(text)
        print(text, flush=True)

    def block(self, text: str) -> None:
        """Add lines that are shown as they are."""
        self.parts.append(f"```text\n{text}\n```")
        print(text, flush=True)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Add a table: names on the left, numbers aligned to the right."""
        for row in rows:
            if len(row) != len(header):
                raise ValueError(f"a row has {len(row)} cells but the header {len(header)}: {row}")
        self.parts.append(markdown(header, rows))
        print(aligned(header, rows), flush=True)

    def target(self, wanted: str, measured: str, met: bool) -> None:
        self.targets.append((wanted, measured, met))

    def summary(self) -> None:
        """Add all targets and whether they are met."""
        if not self.targets:
            return
        missed = sum(not met for *_, met in self.targets)
        self.title("Targets")
        self.text(f"{len(self.targets) - missed} met, {missed} missed.")
        rows = [
            [wanted, measured, "ok" if met else "MISSED"] for wanted, measured, met in self.targets
        ]
        self.table(["target", "measured", ""], rows)

    def markdown(self) -> str:
        return "\n\n".join(self.parts) + "\n"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = "|" + "|".join(["---"] + ["--:"] * (len(header) - 1)) + "|"
    return "\n".join([line(header), rule, *map(line, rows)])


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    table = [header, *rows]
    widths = [max(_columns(row[i]) for row in table) for i in range(len(header))]
    lines = []
    for row in table:
        cells = []
        for i, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - _columns(cell))
            cells.append(space + cell if i else cell + space)
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def share(value: float | None, digits: int = 3) -> str:
    """Return a share of one as text, and nothing for what was not measured."""
    return "" if value is None else f"{value:.{digits}f}"


def percent(ratio: float) -> str:
    return f"{ratio:.0%}".replace("%", " %")


def shares(values: Sequence[float]) -> str:
    return " / ".join(f"{value:.2f}" for value in values)


def _columns(text: str) -> int:
    """Return how wide a terminal shows `text`."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
