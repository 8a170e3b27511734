"""The table of patches in docs/design.md: `python -m scripts.patch_table` writes it anew."""

from __future__ import annotations

from pathlib import Path

from nanobot_context.patches import TABLE
from nanobot_context.patches.declaration import Patch

__all__ = ["DESIGN", "render", "with_table"]

DESIGN = Path(__file__).parent.parent / "docs" / "design.md"
_BEGIN, _END = "<!-- patches -->\n", "<!-- end of patches -->\n"


def render() -> str:
    """Return the table as Markdown: one row for each patch."""
    head = "| nanobot's | in releases | what a user has of it | part |\n|---|---|---|---|\n"
    return head + "".join(map(_row, TABLE))


def with_table(page: str) -> str:
    """Return the page with the table as it is now."""
    before, _, rest = page.partition(_BEGIN)
    return before + _BEGIN + render() + _END + rest.partition(_END)[2]


def _row(patch: Patch) -> str:
    owner = patch.owner.partition(":")[2]
    name = f"`{'.'.join(filter(None, (owner, patch.attribute)))}`"
    if patch.formerly:
        name += f" (`{patch.formerly}` before)"
    releases = f"{patch.since} to {patch.until}" if patch.until else f"{patch.since} and later"
    needed = ", needed" if patch.needed else ""
    return f"| {name} | {releases} | {patch.why} | {patch.part}{needed} |\n"


if __name__ == "__main__":
    DESIGN.write_text(with_table(DESIGN.read_text("utf-8")), "utf-8")
