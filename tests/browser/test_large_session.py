"""5,000 messages: what the page makes of them does not grow with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from .conftest import Opener
from .pages import Message, written

MESSAGES = 5_000

# Elements on the page, however long the session: the charts have a path for each part, and marks
# stand no closer than a finger can tell apart.
MOST_ELEMENTS = 900
# Rows that are elements: those that are seen, and a few beyond.
MOST_ROWS = 40


def many_messages() -> list[Message]:
    messages: list[Message] = []
    for n in range(MESSAGES // 4):
        function = {"name": "look", "arguments": f'{{"at": {n}}}'}
        call = {"id": f"c{n}", "type": "function", "function": function}
        messages += [
            {"role": "user", "content": f"Question {n}?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"What is seen at {n}. " * 4},
            {"role": "assistant", "content": f"Answer {n}."},
        ]
    return messages


@pytest.fixture(scope="module")
def large_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "report.html"
    return written(path, many_messages(), window_tokens=90_000)


def elements(page: Page) -> int:
    number: int = page.evaluate("document.querySelectorAll('*').length")
    return number


def test_the_page_has_few_elements_however_long_the_session(
    open_page: Opener, large_page: Path
) -> None:
    page = open_page(large_page)
    expect(page.locator("#count")).to_have_text("5,000 messages")
    assert page.locator("#sent .mark").count() > 0
    assert page.locator("#sent svg *").count() < 200
    assert elements(page) < MOST_ELEMENTS


def test_a_bar_is_no_narrower_than_a_pixel(open_page: Opener, large_page: Path) -> None:
    page = open_page(large_page)
    width, bars = page.evaluate(
        """[document.querySelector("#sent svg").clientWidth, Math.max(
            ...[...document.querySelectorAll("#sent path")].map(
                path => path.getAttribute("d").split("M").length - 1))]"""
    )
    assert width / 4 < bars < width


def test_the_list_is_as_long_as_its_messages_and_has_the_rows_that_are_seen(
    open_page: Opener, large_page: Path
) -> None:
    page = open_page(large_page)
    rows = page.get_by_role("listbox").get_by_role("option")
    box = page.get_by_role("listbox")
    heads = MESSAGES // 4
    assert box.evaluate("node => node.scrollHeight") >= (MESSAGES + heads) * 50
    box.scroll_into_view_if_needed()
    for place in (1_001, 1_004, 6_249, 1, 2_501):
        box.evaluate("(node, place) => { node.scrollTop = place * list.rowHeight; }", place)
        page.evaluate("new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)))")
        row = page.locator(f"#row-{place}")
        expect(row).to_be_in_viewport()
        expect(row.locator(".number")).to_have_text(f"{place - place // 5:,}")
        assert rows.count() < MOST_ROWS
    assert elements(page) < MOST_ELEMENTS


def test_a_click_opens_what_it_fell_on_while_the_list_moves(
    open_page: Opener, large_page: Path
) -> None:
    page = open_page(large_page)
    box = page.get_by_role("listbox")
    box.scroll_into_view_if_needed()
    for n, height in enumerate((900, 840, 880)):
        place = 1_001 + 500 * n
        frame = "new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)))"
        box.evaluate("(node, place) => { node.scrollTop = place * list.rowHeight - 1; }", place)
        page.evaluate(frame)
        page.locator(f"#row-{place + 2}").hover()
        page.mouse.down()
        # One pixel on each side of where another row begins to be seen.
        box.evaluate("node => { node.scrollTop += 2; }")
        page.set_viewport_size({"width": 1280, "height": height})
        page.evaluate(frame)
        page.mouse.up()
        expect(page.locator("#detail h2")).to_have_text(f"Message {place + 2 - place // 5:,}")


def test_looking_at_requests_makes_no_chart_anew(open_page: Opener, large_page: Path) -> None:
    page = open_page(large_page)
    page.evaluate(
        """() => {
            window.redrawn = 0;
            new MutationObserver(records => { window.redrawn += records.length; })
                .observe(document.getElementById("sent"), { childList: true, subtree: true });
        }"""
    )
    box = page.locator("#sent svg").bounding_box()
    assert box is not None
    read = set()
    for x in range(60, int(box["width"]), 25):
        page.mouse.move(box["x"] + x, box["y"] + 80)
        read.add(page.locator("#readout").inner_text())
    for key in ("Home", "ArrowRight", "Shift+ArrowRight", "End"):
        page.get_by_role("slider").press(key)
        read.add(page.locator("#readout").inner_text())
    assert len(read) > 15
    assert page.evaluate("window.redrawn") == 0


def test_a_search_in_all_messages_makes_the_rows_that_are_seen(
    open_page: Opener, large_page: Path
) -> None:
    page = open_page(large_page)
    rows = page.get_by_role("listbox").get_by_role("option")
    for words, found in (("question", 1_250), ("question 124", 11), ("seen at 77.", 1)):
        page.get_by_role("searchbox").fill(words)
        expect(page.locator("#count")).to_have_text(f"{found:,} of 5,000 messages")
        assert rows.count() < MOST_ROWS
    rows.last.click()
    expect(page.locator("#detail")).to_contain_text("What is seen at 77.")


def test_a_request_with_hundreds_of_cuts_shows_some_and_the_rest_when_asked(
    open_page: Opener, large_page: Path
) -> None:
    page = open_page(large_page)
    most, cuts = page.evaluate(
        """() => {
            const most = requests.reduce((a, b) => (b.cuts.length > a.cuts.length ? b : a));
            page.select(most.number, { open: true });
            return [most.number, most.cuts.length];
        }"""
    )
    assert cuts > 100
    entries = page.locator("#detail .cut")
    expect(page.locator("#detail h2")).to_have_text(f"Request {most + 1:,}")
    expect(entries).to_have_count(40)
    page.get_by_role("button", name=f"{cuts - 40:,} more").click()
    expect(entries).to_have_count(80)
