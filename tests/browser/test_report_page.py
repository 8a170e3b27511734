"""The report page as a reader uses it, in a real Chromium."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from nanobot_context import Archive, compress_messages
from nanobot_context.guard.limits import ProviderLimits
from nanobot_context.guard.record import RequestRecord, Sent, SentCut
from nanobot_context.host.message_keys import known_by
from nanobot_context.host.stored_summary import mark_of
from nanobot_context.message_texts import message_text
from nanobot_context.replay import Replay, replay
from nanobot_context.types import Message

from .conftest import Opener
from .pages import MODEL, WINDOW, agent_messages, written

NARROW = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def replayed() -> Replay:
    return replay(agent_messages(), WINDOW, MODEL)


def first_with_cuts(replayed: Replay) -> int:
    return next(number for number, request in enumerate(replayed.requests) if request.cuts)


def path_lengths(page: Page, chart: str) -> dict[str, int]:
    """Return for each series of a chart the bars that are drawn."""
    lengths: dict[str, int] = page.evaluate(
        """chart => Object.fromEntries([...document.querySelectorAll(`${chart} path`)].map(
            path => [path.getAttribute("class"), path.getAttribute("d").split("M").length - 1]))""",
        chart,
    )
    return lengths


def rows(page: Page, **options: Any) -> Locator:
    """Return the rows of messages; turns have rows and selects options, too."""
    return (
        page.get_by_role("listbox")
        .get_by_role("option", **options)
        .and_(page.locator(".row:not(.turn)"))
    )


def open_message(page: Page, index: int) -> Locator:
    """Open a message, wherever in the list it is, and return the panel."""
    page.evaluate("index => openMessage(messages[index])", index)
    return page.locator("#detail")


def shown_records() -> list[RequestRecord]:
    """Return records of `agent_messages(1, 2)`, whose request had a system message more."""
    messages = agent_messages(1, 2)

    def asking(count: int) -> dict[str, Any]:
        some = messages[:count]
        keys = tuple(map(known_by, some))
        return {"messages": count, "roles": "".join(one["role"][0] for one in some), "keys": keys}

    def record(tokens_before: int, *attempts: Sent, **more: Any) -> RequestRecord:
        known: dict[str, Any] = {
            "at": "2026-01-02T03:04:05.000+00:00",
            "session": "cli:direct",
            "is_subagent": False,
            "model": MODEL,
            "place": MODEL,
            "window_tokens": 16_000,
            "window_source": "the server said so",
            "fixed_tokens": 1_000,
            "answer_tokens": 4_000,
            "outcome": "answered",
            **asking(2),
        }
        return RequestRecord(tokens_before=tokens_before, attempts=attempts, **known | more)

    reported = partial(Sent, is_reported=True)
    result = message_text(messages[3])
    cut = SentCut(4, "tool", "read_file", "budget", 200, 90, len(result), (0, 40))
    return [
        record(3_000, reported(3_000), prompt_tokens=3_000, cached_tokens=1_500),
        record(3_400, reported(3_400), prompt_tokens=3_400, cached_tokens=3_000, **asking(4)),
        record(
            35_015,
            reported(35_015, refused="input", limit_tokens=16_000),
            reported(6_897),
            prompt_tokens=6_897,
            completion_tokens=1_000,
            cuts=(cut,),
            cut_messages=2,
            left_out="3",
            gone=("src/0_0.log",),
            gone_from=(3,),
            gone_names=12,
            is_shortened=True,
            **asking(6),
        ),
        record(
            2_700,
            Sent(2_000),
            is_subagent=True,
            cuts=(SentCut(3, "tool", "exec", "budget", 700, 200),),
            cut_messages=1,
        ),
    ]


def readout(page: Page) -> str:
    return page.locator("#readout").inner_text()


def test_the_page_opens_with_its_numbers_and_asks_for_nothing_else(
    open_page: Opener, agent_page: Path, replayed: Replay
) -> None:
    page = open_page(agent_page)
    assert page.title() == "cli:direct · context report"
    expect(page.get_by_role("heading", level=1)).to_have_text("cli:direct")
    expect(page.locator("#footer")).not_to_contain_text("no system prompt")
    figures = page.locator("#figures").inner_text()
    assert f"{len(replayed.messages)} messages" in figures
    assert f"{len(replayed.requests)} requests" in figures
    smaller = [one for one in replayed.requests if one.tokens_before > one.tokens_after]
    assert f"{len(smaller)} requests made smaller" in figures
    assert f"window {WINDOW:,}" in page.locator("#facts").inner_text()


def test_every_part_of_every_request_is_drawn(
    open_page: Opener, agent_page: Path, replayed: Replay
) -> None:
    page = open_page(agent_page)
    bars = path_lengths(page, "#sent")
    stacks = [request.after for request in replayed.requests]
    for part in ("system", "user", "assistant", "tool"):
        assert bars[f"part-{part}"] == len([stack for stack in stacks if stack.get(part)])
    smaller = [one for one in replayed.requests if one.tokens_before > one.tokens_after]
    assert bars["ghost"] == len(smaller) > 0
    # Drawn inside of its place, and in its colour.
    box = page.locator("#sent svg").bounding_box()
    bars_box = page.locator("#sent .part-tool").bounding_box()
    assert box is not None
    assert bars_box is not None
    assert bars_box["width"] > box["width"] / 2
    assert bars_box["height"] > box["height"] / 4
    colours = page.evaluate(
        """[...document.querySelectorAll("#sent path[class^=part]")].map(
            path => getComputedStyle(path).fill)"""
    )
    assert len(set(colours)) == len(colours)


def test_bars_are_as_high_as_their_tokens_against_the_window(
    open_page: Opener, agent_page: Path, replayed: Replay
) -> None:
    page = open_page(agent_page)
    limit = page.locator("#sent path.limit").bounding_box()
    grid = page.locator("#sent line.grid").first.bounding_box()
    assert limit is not None
    assert grid is not None
    per_token = (grid["y"] - limit["y"]) / WINDOW
    tops = [
        page.locator(f"#sent .part-{part}").bounding_box()
        for part in ("system", "user", "assistant", "tool")
    ]
    highest = min(box["y"] for box in tops if box)
    most = max(request.tokens_after for request in replayed.requests)
    assert abs((grid["y"] - highest) / per_token - most) < WINDOW / 50
    expect(page.locator("#sent .limit-name")).to_have_text(f"window {WINDOW:,}")


def test_a_mark_opens_the_request_and_its_cuts_open_their_messages(
    open_page: Opener, agent_page: Path, replayed: Replay
) -> None:
    page = open_page(agent_page)
    number = first_with_cuts(replayed)
    page.locator("#sent .mark").first.click()
    detail = page.get_by_role("complementary")
    expect(detail.get_by_role("heading", level=2)).to_have_text(f"Request {number + 1}")
    request = replayed.requests[number]
    cut = max(request.cuts, key=lambda cut: cut.tokens_before - cut.tokens_after)
    entry = detail.locator(".cut").first
    expect(entry).to_contain_text(f"#{cut.index + 1} · read_file")
    expect(entry).to_contain_text(re.compile("one of the oldest rounds|worth less for its tokens"))
    expect(entry).to_contain_text(f"{cut.tokens_before}")
    entry.get_by_role("button").first.click()
    expect(detail.get_by_role("heading", level=2)).to_have_text(f"Message {cut.index + 1}")
    whole = message_text(agent_messages()[cut.index])
    if not cut.tokens_after:
        assert detail.locator("pre").last.text_content() == whole


def test_a_shortened_message_is_one_text_whose_gone_lines_are_folded(
    open_page: Opener, agent_page: Path, replayed: Replay
) -> None:
    page = open_page(agent_page)
    newest = {cut.index: cut for request in replayed.requests for cut in request.cuts}
    fate = next(
        one for one in replayed.messages if one.state == "shortened" and newest[one.index].kept
    )
    detail = open_message(page, fate.index)
    expect(detail).to_contain_text(f"Shortened to {fate.tokens_after} tokens")
    text = message_text(agent_messages()[fate.index])
    kept = detail.locator("pre span").all_text_contents()
    assert 0 < len("".join(kept)) < len(text)
    assert all(piece in text for piece in kept)
    for button in detail.locator("pre .gone").all():
        expect(button).to_have_attribute("aria-expanded", "false")
        button.click()
    pieces = detail.locator("pre > span, pre > del").all_text_contents()
    assert "".join(pieces) == text
    colours = detail.locator("pre").evaluate(
        """node => [node.querySelector("span"), node.querySelector("del")].map(
            one => getComputedStyle(one).color)"""
    )
    assert len(set(colours)) == 2


def test_the_slider_moves_the_list_to_what_that_request_sent(
    open_page: Opener, agent_page: Path, replayed: Replay
) -> None:
    page = open_page(agent_page)
    slider = page.get_by_role("slider")
    states = """() => messages.slice(0, list.fates.stop).map(one => fateOf(one).state)"""
    slider.press("Home")
    expect(page.locator("#count")).to_have_text(f"{replayed.requests[0].position} messages")
    assert set(page.evaluate(states)) == {"kept"}
    slider.press("End")
    assert page.evaluate(states) == [fate.state for fate in replayed.messages]
    number = first_with_cuts(replayed)
    page.evaluate("number => page.select(number)", number)
    found = page.evaluate(states)
    cut = {
        one.index: "shortened" if one.tokens_after else "left out"
        for one in replayed.requests[number].cuts
        if one.reason != "joined"
    }
    assert {index: state for index, state in enumerate(found) if state != "kept"} == cut


def test_turns_fold(open_page: Opener, agent_page: Path) -> None:
    page = open_page(agent_page)
    heads = page.locator(".row.turn")
    second = heads.nth(1)
    expect(second).to_contain_text("Turn 1")
    expect(second).to_contain_text("22 messages")
    expect(second).to_have_attribute("aria-expanded", "true")
    second.click()
    expect(heads.nth(1)).to_have_attribute("aria-expanded", "false")
    expect(heads.nth(2)).to_contain_text("Turn 2")
    page.get_by_role("button", name="Fold the turns").click()
    page.get_by_role("button", name="Fold the turns").click()
    expect(page.get_by_role("listbox").get_by_role("option")).to_have_count(5)
    page.get_by_role("listbox").focus()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(heads.last).to_have_attribute("aria-expanded", "true")


def test_prices_that_the_reader_types_become_money(
    open_page: Opener, agent_page: Path, replayed: Replay
) -> None:
    page = open_page(agent_page)
    expect(page.locator("#money")).to_have_text("")
    page.get_by_label("prompt").fill("2")
    sent = sum(one.tokens_after for one in replayed.requests)
    before = sum(one.tokens_before for one in replayed.requests)
    said = page.locator("#money").inner_text()
    paid, without, saved = (float(one) for one in re.findall(r"\d+\.\d+", said))
    assert abs(paid - sent * 2e-6) < 1e-3
    assert abs(without - before * 2e-6) < 1e-3
    assert abs(saved - (without - paid)) < 1e-3
    page.get_by_label("cached").fill("0.2")
    assert page.locator("#money").inner_text() != said


def test_the_page_of_a_chinese_reader_is_chinese(open_page: Opener, tmp_path: Path) -> None:
    path = written(tmp_path / "page.html", agent_messages(), language="zh")
    page = open_page(path)
    page.locator("#sent .mark").first.click()
    page.locator("#detail .cut button").first.click()
    words = page.evaluate(
        """() => {
            const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            const found = [];
            for (let node = walker.nextNode(); node; node = walker.nextNode()) {
                const parent = node.parentElement;
                const left = "script, noscript, bdi, pre, option, .role, kbd, .detail-head p";
                if (!parent.closest(left))
                    found.push(node.data);
            }
            return found.join("\\n");
        }"""
    )
    left = set(re.findall(r"[A-Za-z]{3,}", words)) - {"token", "Token", "read", "file", "nanobot"}
    assert left <= {"context", "gpt", "Home", "End", "Shift", "Enter", "Esc"}
    assert page.title().endswith("上下文报告")


def test_a_redacted_page_holds_no_text_and_no_name(open_page: Opener, tmp_path: Path) -> None:
    messages = agent_messages(1, 2)
    learned = {f"{MODEL} at llm.example": {"window_tokens": 16_000}}
    happened = [{"session": None, "kind": "learned", "model": MODEL, "what": "window_tokens"}]
    secrets = ("needle", "is done", "src/0_0.log", "cli:direct", "cli_direct", MODEL, "example")
    for records in ([], [replace(one, window_source=MODEL) for one in shown_records()]):
        path = written(
            tmp_path / "page.html",
            messages,
            records=records,
            learned=learned,
            events=happened,
            redact=True,
        )
        source = path.read_text(encoding="utf-8")
        assert [secret for secret in secrets if secret in source] == []
    page = open_page(path)
    expect(page.locator("#facts")).to_have_text(
        re.compile("^window 16,000 · counts of the provider")
    )
    detail = open_message(page, 3)
    expect(detail).to_contain_text(f"{len(message_text(messages[3]))} characters")


def test_a_file_that_has_the_original_is_named(open_page: Opener, tmp_path: Path) -> None:
    messages = agent_messages(turns=1, rounds=1)
    messages[3]["content"] = "a line of the result\n" * 3_000
    workspace = tmp_path / "workspace"
    archive = Archive(workspace / ".nanobot-context/results", shown=".nanobot-context/results")
    compress_messages(messages, WINDOW, MODEL, archive=archive)
    source = str(workspace / "sessions" / "cli_direct.jsonl")
    page = open_page(written(tmp_path / "report.html", messages, source=source))
    page.locator("#sent .mark").first.click()
    page.locator("#detail .cut button").first.click()
    (file,) = archive.directory.glob("*.txt")
    expect(page.locator("#detail")).to_contain_text(f".nanobot-context/results/{file.name}")


def test_the_pointer_reads_a_request_and_a_click_opens_it(
    open_page: Opener, agent_page: Path, replayed: Replay
) -> None:
    page = open_page(agent_page)
    count = len(replayed.requests)
    assert readout(page).startswith(f"request {count} of {count}")
    box = page.locator("#sent svg").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 60, box["y"] + 100)
    assert re.match(r"request [1-4] of", readout(page))
    page.mouse.move(10, 10)
    assert readout(page).startswith(f"request {count} of {count}")
    page.mouse.click(box["x"] + 60, box["y"] + 100)
    expect(page.locator("#detail h2")).to_have_text(re.compile(r"^Request [1-4]$"))


def test_filters_and_search_leave_what_matches(
    open_page: Opener, agent_page: Path, replayed: Replay
) -> None:
    page = open_page(agent_page)
    count = page.locator("#count")
    messages = agent_messages()
    expect(count).to_have_text(f"{len(messages)} messages")
    page.get_by_role("searchbox").fill("NEEDLE-2")
    expect(count).to_have_text(f"1 of {len(messages)} messages")
    expect(rows(page, name="needle-2")).to_be_visible()
    page.get_by_role("searchbox").fill("no such words")
    expect(page.locator("#none")).to_be_visible()
    page.get_by_role("searchbox").fill("")
    page.locator("#role").select_option("user")
    expect(count).to_have_text(f"4 of {len(messages)} messages")
    page.locator("#role").select_option("")
    states = [fate.state for fate in replayed.messages]
    for state in ("kept", "shortened", "left out"):
        if state in states:
            page.locator("#state").select_option(state)
            expect(count).to_have_text(f"{states.count(state)} of {len(messages)} messages")


def test_what_is_searched_for_is_marked_in_the_text(open_page: Opener, agent_page: Path) -> None:
    page = open_page(agent_page)
    page.get_by_role("searchbox").fill("needle-3")
    rows(page, name="needle-3").click()
    expect(page.locator("#detail pre mark")).to_have_text("needle-3")


def test_everything_can_be_done_with_keys(
    open_page: Opener, agent_page: Path, replayed: Replay
) -> None:
    page = open_page(agent_page)
    count = len(replayed.requests)
    keys = page.keyboard
    page.get_by_role("slider").press("Home")
    assert readout(page).startswith(f"request 1 of {count}")
    keys.press("ArrowLeft")
    assert readout(page).startswith(f"request 1 of {count}")
    keys.press("ArrowRight")
    assert readout(page).startswith(f"request 2 of {count}")
    keys.press("Shift+ArrowRight")
    number = first_with_cuts(replayed) + 1
    assert readout(page).startswith(f"request {number} of {count}")
    expect(page.locator("#sent .mark.current")).to_have_count(1)
    keys.press("Enter")
    detail = page.locator("#detail")
    expect(detail).to_be_focused()
    keys.press("ArrowRight")
    expect(detail.get_by_role("heading", level=2)).to_have_text(f"Request {number + 1}")
    detail.get_by_role("button", name="Close").focus()
    keys.press("ArrowLeft")
    expect(detail.get_by_role("heading", level=2)).to_have_text(f"Request {number}")
    expect(detail).to_be_focused()
    keys.press("Escape")
    expect(detail).to_be_hidden()
    expect(page.get_by_role("slider")).to_be_focused()
    keys.press("End")
    assert readout(page).startswith(f"request {count} of {count}")

    keys.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    keys.type("line 3?")  # no help opens while somebody types
    expect(page.get_by_role("dialog")).to_have_count(0)
    keys.press("Escape")
    expect(page.get_by_role("searchbox")).to_have_value("")
    keys.press("Enter")
    listbox = page.get_by_role("listbox")
    expect(listbox).to_be_focused()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp"):
        keys.press(key)
    expect(rows(page, selected=True)).to_contain_text("You help.")
    keys.press("End")
    expect(rows(page, selected=True)).to_contain_text("Task 3 is done.")
    keys.press("Enter")
    expect(detail.get_by_role("heading", level=2)).to_have_text(f"Message {len(agent_messages())}")
    keys.press("Escape")
    expect(listbox).to_be_focused()

    keys.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    keys.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_every_control_has_a_name_and_a_visible_focus(open_page: Opener, agent_page: Path) -> None:
    page = open_page(agent_page)
    page.locator("#sent .mark").first.click()
    page.locator("#theme").focus()
    seen = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        found = page.evaluate(
            """() => {
                const node = document.activeElement;
                const style = getComputedStyle(node);
                const name = node.getAttribute("aria-label") ?? node.closest("label")?.textContent
                    ?? node.getAttribute("aria-labelledby") ?? node.textContent;
                const isSeen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
                return [node.tagName, node.id, name.trim().slice(0, 40), isSeen];
            }"""
        )
        tag, node_id, name, is_seen = found
        if tag == "BODY":
            break
        assert name, found
        assert is_seen, found
        seen.add(node_id)
    assert {"help", "at", "search", "role", "state", "fold", "list", "price-prompt"} <= seen


def test_the_tree_for_screen_readers_says_what_the_page_shows(
    open_page: Opener, agent_page: Path, replayed: Replay
) -> None:
    page = open_page(agent_page)
    count = len(replayed.requests)
    slider = page.get_by_role("slider", name="Request")
    expect(slider).to_have_attribute("aria-valuetext", re.compile(f"^Request {count} of {count}: "))
    slider.press("ArrowLeft")
    expect(slider).to_have_attribute("aria-valuetext", re.compile(f"^Request {count - 1} of "))
    expect(page.get_by_role("group", name=re.compile("^Tokens of"))).to_be_visible()
    mark = page.get_by_role("button", name=re.compile(r"^Request \d+: \d+ messages cut"))
    expect(mark.first).to_be_visible()
    option = rows(page).first
    # Each turn has a head, and so has what stands before the first.
    expect(option).to_have_attribute("aria-setsize", str(replayed.requests[-2].position + 5))
    expect(option).to_have_attribute("aria-posinset", "2")
    for name in ("Role", "What became of it"):
        expect(page.get_by_role("combobox", name=name)).to_be_visible()
    for name in ("Replay: what each request would hold", "Messages"):
        expect(page.get_by_role("region", name=name)).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_system_and_its_own_switch(
    open_page: Opener, agent_page: Path, scheme: str
) -> None:
    page = open_page(agent_page, color_scheme=scheme)

    def is_dark() -> bool:
        ink, paper = page.evaluate(
            """["color", "backgroundColor"].map(name => getComputedStyle(document.body)[name]
                .match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0))"""
        )
        assert abs(ink - paper) > 400
        return bool(paper < ink)

    switch = page.locator("#theme")
    assert is_dark() == (scheme == "dark")
    for name, dark in (("Light", False), ("Dark", True), ("Auto", scheme == "dark")):
        switch.click()
        expect(switch).to_have_accessible_name(f"Colours: {name}")
        assert is_dark() == dark


def contrasts(page: Page) -> dict[str, float]:
    """Return the contrast of every kind of text on the page with what is behind it."""
    found: dict[str, float] = page.evaluate(
        """() => {
            const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
            const light = ([r, g, b]) => [r, g, b].map(part => part / 255)
                .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
                .reduce((sum, part, n) => sum + part * [0.2126, 0.7152, 0.0722][n], 0);
            const behind = node => {
                for (; node; node = node.parentElement) {
                    const paper = numbers(getComputedStyle(node).backgroundColor);
                    if (paper.length < 4 || paper[3] > 0) return paper;
                }
                return [255, 255, 255];
            };
            const found = {};
            for (const node of document.body.querySelectorAll("*")) {
                const isText = [...node.childNodes].some(
                    child => child.nodeType === 3 && child.textContent.trim());
                if (!isText || !node.checkVisibility() || node.closest("noscript")) continue;
                const style = getComputedStyle(node);
                const ink = light(numbers(node.closest("svg") ? style.fill : style.color));
                const paper = light(behind(node));
                const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
                const kind = `${node.tagName} ${node.parentElement.className.baseVal ??
                    node.parentElement.className} ${node.className.baseVal ?? node.className}`;
                found[kind] = Math.min(found[kind] ?? 99, ratio);
            }
            return found;
        }"""
    )
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_what_is_behind_it(
    open_page: Opener, agent_page: Path, scheme: str
) -> None:
    page = open_page(agent_page, color_scheme=scheme)
    page.locator("#sent .mark").first.click()
    found = contrasts(page)
    page.locator("#detail .cut button").first.click()
    found |= contrasts(page)
    assert len(found) > 20
    # WCAG 2.2, 1.4.3: 4.5 to 1.
    assert {kind: ratio for kind, ratio in found.items() if ratio < 4.5} == {}


def assert_no_sideways(page: Page) -> None:
    wide, seen = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide == seen == NARROW["width"]


def test_a_phone_shows_all_of_it_without_scrolling_sideways(
    open_page: Opener, tmp_path: Path
) -> None:
    long = "a_name_that_goes_on_" * 20
    messages = [
        *agent_messages(),
        {"role": "user", "content": long},
        {"role": "assistant", "content": "word " * 50_000},
    ]
    happened: list[dict[str, Any]] = [
        {"session": None, "kind": "learned", "model": long, "what": "ratio"}
    ]
    path = written(
        tmp_path / "report.html", messages, name=long, source=f"/{long}/{long}", events=happened
    )
    page = open_page(path, viewport=NARROW, has_touch=True, is_mobile=True)
    assert_no_sideways(page)
    box = page.locator("#sent svg").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= NARROW["width"]
    rows(page).nth(3).tap()
    detail = page.locator("#detail")
    expect(detail).to_be_in_viewport()
    assert_no_sideways(page)
    detail.get_by_role("button", name="Close").tap()
    expect(detail).to_be_hidden()
    page.locator("#sent .mark").first.tap()
    expect(detail.get_by_role("heading", level=2)).to_contain_text("Request")
    assert_no_sideways(page)


def test_requests_that_cannot_be_sent_are_shown_as_such(open_page: Opener, tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "word " * 20_000},
        {"role": "assistant", "content": "That was long."},
        {"role": "user", "content": "Then shorter."},
    ]
    page = open_page(written(tmp_path / "report.html", messages))
    assert path_lengths(page, "#sent")["failed"] == 1
    expect(page.locator("#figures .bad")).to_contain_text("1 request")
    page.get_by_role("slider").press("Home")
    assert "cannot be sent" in readout(page)
    page.keyboard.press("Enter")
    expect(page.locator("#detail .bad")).to_contain_text("Cannot be sent: ")
    expect(page.locator("#detail .bad")).to_contain_text("but 6800 are allowed")


def test_summaries_and_lessons_are_shown_where_there_are_some(
    open_page: Opener, agent_page: Path, tmp_path: Path
) -> None:
    sections = ("#summaries", "#learned")
    bare = open_page(agent_page)
    for section in sections:
        expect(bare.locator(section)).to_be_hidden()
    messages = agent_messages()
    state = {"version": 2, "covers": 22, "made_by": "model", "last": mark_of(messages[21])}
    at = {"session": "cli:direct", "at": "2026-01-02T03:04:05.678+00:00"}
    happened: list[dict[str, Any]] = [
        {**at, "kind": "summary", "status": "failed", "content": {"error": "no answer"}},
        {**at, "kind": "summary", "status": "stored", "version": 2, "covers": 22},
        {**at, "kind": "learned", "model": "m", "what": "window_tokens", "value": 32_000},
    ]
    page = open_page(
        written(
            tmp_path / "report.html",
            messages,
            metadata={"summary": "They looked at needles.", "summary_state": state},
            events=happened,
            learned={"n": {"ratios": {"east_asian": 1.15}}},
        )
    )
    for section in sections:
        expect(page.locator(section)).to_be_visible()
    expect(page.locator("#timeline li")).to_have_count(3)
    expect(page.locator("#timeline li").first).to_contain_text("failed · 2026-01-02 03:04:05")
    expect(page.locator("#timeline li").first).to_contain_text("no answer")
    newest = page.locator("#timeline li").last
    expect(newest).to_contain_text("Version 2 · covers 22 messages · made by a model · in use")
    newest.get_by_text("Text", exact=True).click()
    expect(newest.get_by_text("They looked at needles.")).to_be_visible()
    lessons = page.locator("#lessons").inner_text()
    assert re.search(r"n\s+tokens it counts for one of ours \(east asian\)\s+1\.15", lessons)
    assert re.search(r"m\s+window\s+32,000\s+2026-01-02 03:04:05", lessons)


def test_a_lesson_says_when_it_was_learned_where_that_is_kept(
    open_page: Opener, tmp_path: Path
) -> None:
    limits = ProviderLimits(now=lambda: 1_767_323_045)
    limits.learn_window("m", 32_000)
    path = tmp_path / "page.html"
    page = open_page(written(path, agent_messages(1, 1), learned=limits.to_dict()))
    expect(page.locator("#lessons tr").first).to_have_text("ModelWhatValueWhen")
    expect(page.locator("#lessons tr").last).to_have_text("mwindow32,0002026-01-02 03:04:05")
    learned = {"m": {"ratios": {"east_asian": 1.15}}}
    page = open_page(written(path, agent_messages(1, 1), learned=learned))
    expect(page.locator("#lessons tr").first).to_have_text("ModelWhatValue")


def test_a_long_text_is_shown_in_part_until_all_of_it_is_asked_for(
    open_page: Opener, tmp_path: Path
) -> None:
    text = "".join(f"{n:06} words\n" for n in range(5_000))
    page = open_page(
        written(tmp_path / "report.html", [{"role": "user", "content": text}], window_tokens=99_999)
    )
    rows(page).first.click()
    shown = page.locator("#detail pre")
    assert shown.text_content() == text[:20_000]
    page.get_by_role("button", name="Show all 65,000 characters").click()
    assert shown.text_content() == text


@pytest.mark.parametrize("messages", [[], [{"role": "user", "content": ""}]], ids=["no", "one"])
def test_conversations_of_next_to_nothing_have_a_page(
    open_page: Opener, tmp_path: Path, messages: list[dict[str, Any]]
) -> None:
    page = open_page(written(tmp_path / "report.html", messages))
    expect(page.locator("#requests")).to_be_visible(visible=bool(messages))
    expect(page.locator("#count")).to_contain_text("message")
    assert ("no system prompt" in page.locator("#footer").inner_text()) == bool(messages)
    for key in ("Home", "End", "ArrowRight", "Shift+ArrowLeft", "Enter", "Escape"):
        page.keyboard.press(key)


def test_what_stands_in_a_result_that_was_cut_itself_is_no_reason(
    open_page: Opener, tmp_path: Path
) -> None:
    result = "a line\n" * 40
    messages: list[Message] = [{"role": "user", "content": "Go."}]
    for name in ("a", "b"):
        call = {"id": name, "function": {"name": "exec", "arguments": f'{{"c": "{name}"}}'}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": name, "content": result})
    cuts = [SentCut(at, "tool", "exec", "large_result", 200, 90) for at in (3, 5)]
    known = replace(
        shown_records()[1],
        messages=5,
        roles="uatat",
        keys=tuple(map(known_by, messages)),
        is_shortened=True,
    )
    records = [replace(known, cuts=tuple(cuts[:n]), cut_messages=n) for n in (1, 2)]
    page = open_page(written(tmp_path / "page.html", messages, records=records))
    said = "() => fill(el('p'), [why(messages[2], fateOf(messages[2]), 0)]).textContent"
    assert page.evaluate(said) == "one tool result above its share of the window"
    page.keyboard.press("Shift+ArrowLeft")
    assert page.evaluate(said) == "the same stands in #5"


def test_a_session_with_records_shows_what_was_sent(open_page: Opener, tmp_path: Path) -> None:
    messages = agent_messages(1, 2)[1:]  # nanobot saves no system message
    page = open_page(written(tmp_path / "page.html", messages, records=shown_records()))
    expect(page.get_by_role("heading", name="What was sent")).to_be_visible()
    figures = page.locator("#figures").inner_text()
    assert "4 requests" in figures
    assert re.search(r"1 attempt\s+1 request sent again", figures)
    assert f"{round(100 * 4_500 / (3_000 + 3_400 + 6_897 + 2_000))} %" in figures
    expect(page.locator("#facts")).to_contain_text("the server said so")
    expect(page.locator("#footer")).to_contain_text("from the record of requests")
    assert path_lengths(page, "#sent")["ghost"] == 2

    # A subagent's messages are not in the session.
    expect(page.locator("#none")).to_have_text("What this request had is not in the session.")
    # Nobody reported how large it is.
    assert "sent about 2,000" in readout(page)
    page.locator("#sent .mark:not(.refused)").last.click()
    detail = page.locator("#detail")
    expect(detail.get_by_role("heading", level=2)).to_have_text("Request 4")
    expect(detail).to_contain_text("Not in this session: a subagent's")
    expect(detail.locator(".cut")).to_contain_text("Message 3 of the request · exec 700 → 200 sent")
    expect(detail).not_to_contain_text("only the list says")
    detail.get_by_role("button", name="Close").click()
    assert "the largest request 6.9K, 35K uncompressed" in figures
    page.keyboard.press("Shift+ArrowLeft")
    assert "request 3 of 4" in readout(page)
    sentence = "Refused at 35,015 tokens: the server takes 16,000."
    assert f"{sentence}\nSent again with 6,897 tokens." in readout(page)
    assert "before 35,015\nsent 6,897" in readout(page)
    mark = page.locator("#sent .mark.refused")
    expect(mark).to_have_accessible_name(f"Request 3: {sentence}")
    expect(page.locator("#count")).to_have_text("5 messages")
    states = page.evaluate("messages.slice(0, list.fates.stop).map(one => fateOf(one).state)")
    assert states == ["kept", "left out", "shortened", "kept", "kept"]
    expect(page.locator(".row.left-out .text")).to_have_css("text-decoration-line", "line-through")
    mark.click()
    expect(detail).to_contain_text("Sent again with 6,897 tokens, it was answered.")
    expect(detail).to_contain_text("and 11 more")
    detail.get_by_role("button", name="src/0_0.log").click()
    expect(detail.get_by_role("heading", level=2)).to_have_text("Message 2")
    open_message(page, 2)
    assert detail.locator("pre span").all_text_contents() == [message_text(messages[2])[:40]]

    # One count of a message, wherever it stands: that of the request that cut it.
    expect(detail.locator(".detail-head p")).to_have_text(
        "tool · read_file · turn 1 · 200 tokens uncut"
    )
    expect(detail).to_contain_text("Shortened to 90 tokens in request 3")
    expect(page.locator(".row.shortened .tokens")).to_have_text("200→ 90 sent")
    numbers = page.evaluate(
        "list.shown.filter(row => row.message).map(row => sentTokens(row.message))"
    )
    turn = page.locator(".row.turn .tokens")
    uncut = page.evaluate("list.shown.filter(row => row.message).map(row => row.message.tokens)")
    expect(turn).to_have_text(f"{sum(uncut):,}→ {sum(numbers):,} sent")
    page.locator("#sent .mark.refused").click()
    expect(detail.locator(".cut span")).to_have_text("200 → 90 sent")

    page.keyboard.press("ArrowLeft")
    expect(page.locator("#count")).to_have_text("3 messages")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#count")).to_have_text("1 message")
