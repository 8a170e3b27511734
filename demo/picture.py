"""Draw what `demo.py` shows: two terminals, `docs/assets/demo.svg`, and the report of one of them,
`docs/assets/report.png`, as Chromium shows it.

.venv/bin/python demo/picture.py
"""

from __future__ import annotations

import html
import shutil
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

from playwright.sync_api import ViewportSize, sync_playwright

from demo import ROOT, check_environment, is_error, run, seen

FILE = ROOT / "docs" / "assets" / "demo.svg"
REPORT = ROOT / "docs" / "assets" / "report.png"
REPORT_SIZE: ViewportSize = {"width": 1180, "height": 860}
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
ACT = 2
REPORTED_ACT = 2
COLUMNS, LINE, CHAR, PAD = 58, 19, 7.8, 22
WIDTH = round(COLUMNS * CHAR) + 2 * PAD
COLORS = {"user": "#8ab4f8", "bad": "#ff7b72", "good": "#7ee787", "title": "#9aa4b2"}


def main() -> int:
    """Hold one conversation twice and write the picture."""
    check_environment()
    sides = [
        lines(title, run(ACT, package))
        for title, package in (("nanobot", "off"), ("nanobot with nanobot-context", "on"))
    ]
    height = max(map(len, sides)) * LINE + 2 * PAD
    panes = "".join(pane(side, at * (WIDTH + PAD), height) for at, side in enumerate(sides))
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH + PAD} {height}" '
        'role="img" aria-label="The same conversation without and with nanobot-context" '
        f'font-family="ui-monospace,Menlo,Consolas,monospace" font-size="13">{panes}</svg>\n'
    )
    FILE.write_text(picture, encoding="utf-8")
    print(f"written: {FILE}")
    draw_report()
    print(f"written: {REPORT}")
    return 0


def draw_report() -> None:
    """Hold a conversation and take a picture of its page, one request open."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        raise SystemExit("error: no Chromium\nhint: run scripts/install_chromium.sh")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "report.html"
        run(REPORTED_ACT, "on", str(file))
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport=REPORT_SIZE)
        page.goto(file.as_uri())
        # The request that was refused.
        page.evaluate("page.select(requests.findIndex((one) => one.refusals.length), {open: true})")
        page.screenshot(path=REPORT)
        browser.close()


def lines(title: str, result: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of a terminal with their colours."""
    shown = [(title, "title"), ("", "title")]
    for turn in result["turns"]:
        answer = seen(turn).replace("ERROR ", "Error: ", 1)
        kind = "bad" if is_error(turn) else "good"
        shown += [(part, "user") for part in textwrap.wrap(f"You: {turn['said']}", COLUMNS)]
        shown += [(part, kind) for part in textwrap.wrap(answer, COLUMNS, max_lines=4)]
        shown.append(("", "title"))
    return shown[:-1]


def pane(side: list[tuple[str, str]], left: int, height: int) -> str:
    """Return one terminal."""
    texts = "".join(
        f'<text x="{left + PAD}" y="{PAD + 12 + number * LINE}" fill="{COLORS[kind]}" '
        f'xml:space="preserve">{html.escape(text)}</text>'
        for number, (text, kind) in enumerate(side)
    )
    box = f'<rect x="{left}" width="{WIDTH}" height="{height}" rx="8" fill="#0d1117"/>'
    return box + texts


if __name__ == "__main__":
    sys.exit(main())
