"""A session full of markup and code shows it as text, and runs none of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from nanobot_context.host.stored_summary import mark_of

from .conftest import Opener
from .pages import Message, written

RUN = "window.ran = 1, alert(1)"

HOSTILE = {
    "script": f"<script>{RUN}</script>",
    "end of a script": f"</script><script>{RUN}</script></SCRIPT x><script >{RUN}</script >",
    "escaped script": f"<!--<script></script>--><script>{RUN}</script>",
    "end of everything": f"]]></textarea></title></style></noscript><script>{RUN}</script>",
    "handler": f"<img src=x onerror='{RUN}'><svg onload='{RUN}'><body onload='{RUN}'>",
    "attribute": f"\" autofocus onfocus='{RUN}' x=\"' onmouseover={RUN} '",
    "style": "</style><style>* { display: none }</style>; } body { background: url(//e.example/) }",
    "frame": f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe><object data=//e.example/>",
    "meta": "<meta http-equiv=refresh content='0;url=//e.example/'><base href=//e.example/>",
    "link": f"<a href='javascript:{RUN}'>click</a> javascript:{RUN} [x](javascript:{RUN})",
    "data url": f"data:text/html,<script>{RUN}</script>",
    "svg": f"<svg><script>{RUN}</script><use href='//e.example/#x'/></svg>",
    "template": f"{{{{data}}}} ${{{RUN}}} {{{{constructor.constructor('{RUN}')()}}}} #{{{RUN}}}",
    "entities": "&lt;script&gt; &#60;script&#62; &amp;lt;",
    "json": '"], "__proto__": {"ran": 1}, "texts": ["',
    "names": "__proto__ constructor toString",
    "line ends": f"a\u2028{RUN}\u2029b\x0b\x0c\rc\r\nd",
    "nulls": "<scr\x00ipt>\x00\x07\x1b[31m\x7f",
    "surrogates": "\ud83d alone \udc00",
    "bidi": "\u202egnp.exe\u202c \u2066left\u2069 \u200bzero\ufeff",
}
EVERYTHING = " | ".join(HOSTILE.values())


def as_shown(text: str) -> str:
    """Return what the page makes of a text: what hides or turns others becomes visible."""
    pictures = {code: chr(0x2400 + code) for code in range(32) if code not in (9, 10)}
    shown = text.replace("\r\n", "\n").translate({**pictures, 0x7F: "\u2421"})
    hidden = "[\x80-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
    return re.sub(hidden, lambda found: f"[U+{ord(found[0]):04X}]", shown)


def hostile_messages() -> list[Message]:
    messages: list[Message] = [{"role": "system", "content": EVERYTHING}]
    for n, text in enumerate(HOSTILE.values()):
        call = {
            "id": f"{n}{text}",
            "type": "function",
            "function": {"name": text, "arguments": text},
        }
        long = f"{text}\n" + f"line {n} {text}\n" * 300
        messages += [
            {"role": "user", "content": text, "timestamp": text, text: text},
            {
                "role": "assistant",
                "content": [{"type": "text", "text": text}, {"type": text}],
                "tool_calls": [call],
                "reasoning_content": text,
            },
            {"role": "tool", "tool_call_id": call["id"], "name": text, "content": long},
            {"role": "tool", "tool_call_id": text, "name": text, "content": text},
        ]
    return messages


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    messages = hostile_messages()
    state = {
        "version": 1,
        "covers": 5,
        "made_by": "model",
        "model": EVERYTHING,
        "error": EVERYTHING,
        "last": mark_of(messages[4]),
    }
    events: list[dict[str, Any]] = []
    for kind in ("answered", "summary", "learned", "overflow", EVERYTHING):
        event = {"session": None, "at": EVERYTHING, "kind": kind, "model": EVERYTHING}
        event |= {name: EVERYTHING for name in ("what", "script", "made_by", "status", EVERYTHING)}
        events.append({**event, "prompt_tokens": 9, "content": {"text": EVERYTHING}})
    return written(
        tmp_path_factory.mktemp("hostile") / "report.html",
        messages,
        name=EVERYTHING,
        source=EVERYTHING,
        metadata={"summary": EVERYTHING, "summary_state": state, "key": EVERYTHING},
        events=events,
        learned={EVERYTHING: {"window_tokens": 9, "ratios": {EVERYTHING: 1.5}}},
    )


def assert_nothing_ran(page: Page) -> None:
    """Nothing set the flag; there is no element and no attribute but those that the page makes."""
    assert page.evaluate("window.ran") is None
    tags, attributes, addresses = page.evaluate(
        """() => {
            const all = [...document.querySelectorAll("*")];
            const attributes = all.flatMap(node => [...node.attributes]);
            return [[...new Set(all.map(node => node.localName))],
                [...new Set(attributes.map(one => one.name))],
                attributes.filter(one => ["href", "src", "action"].includes(one.name))
                    .map(one => one.value)];
        }"""
    )
    foreign = {"img", "iframe", "object", "embed", "base", "textarea", "use", "a:", "image"}
    assert not foreign & set(tags)
    assert page.locator("script").count() == 8
    assert page.locator("svg script").count() == 0
    assert [name for name in attributes if name.startswith("on")] == []
    assert set(addresses) == {"data:,", "#messages"}


def test_every_place_shows_hostile_text_as_text(open_page: Opener, hostile_page: Path) -> None:
    page = open_page(hostile_page)
    everything = as_shown(EVERYTHING)
    for place in ("#name", "#footer", "#timeline", "#lessons"):
        assert everything in (page.locator(place).text_content() or ""), place
    assert_nothing_ran(page)
    body = page.locator("body")
    expect(body).to_be_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundImage") == "none"


def test_every_message_opens_as_text(open_page: Opener, hostile_page: Path) -> None:
    page = open_page(hostile_page)
    for n, text in enumerate(HOSTILE.values()):
        # One row after another, as a reader goes through them.
        for offset in range(1, 5):
            page.evaluate(
                "([index]) => { openMessage(messages[index]); }",
                [4 * n + offset],
            )
            for gone in page.locator("#detail .gone").all():
                gone.click()
            shown = page.locator("#detail pre").last.text_content() or ""
            assert as_shown(text) in shown
    assert_nothing_ran(page)


def test_every_cut_opens_as_text(open_page: Opener, hostile_page: Path) -> None:
    page = open_page(hostile_page)
    for mark in page.locator("#sent .mark").all():
        mark.click()
        for more in page.locator("#detail .more:visible").all():
            if more.evaluate("node => node.tagName") == "BUTTON":
                more.click()
        for n in range(page.locator("#detail .cut > button").count()):
            page.locator("#detail .cut > button").nth(n).click()
            for gone in page.locator("#detail .gone").all():
                gone.click()
            assert page.locator("#detail").text_content()
            page.keyboard.press("Enter")
            page.evaluate("page.select(page.selected, { open: true })")
    assert_nothing_ran(page)
    assert page.locator("#detail").get_by_text("<script>").count() > 0


def test_hostile_words_are_found_by_search(open_page: Opener, hostile_page: Path) -> None:
    page = open_page(hostile_page)
    for text in HOSTILE.values():
        # A field of one line takes no line ends, and no half characters.
        words = max(re.split("[\x00-\x1f\u2028\u2029\ud800-\udfff]", text), key=len)
        page.get_by_role("searchbox").fill(words)
        page.get_by_role("searchbox").press("Enter")
        rows = page.get_by_role("listbox").get_by_role("option")
        rows.last.click()
        shown = page.locator("#detail pre").last.text_content() or ""
        assert as_shown(words).lower() in shown.lower()
    assert_nothing_ran(page)


def test_text_that_turns_its_direction_turns_nothing_else(
    open_page: Opener, hostile_page: Path
) -> None:
    page = open_page(hostile_page)
    text = page.locator("body").text_content() or ""
    shown = page.evaluate(
        """[...document.querySelectorAll("body *")].flatMap(node => [...node.childNodes])
            .filter(node => node.nodeType === 3 && !node.parentNode.closest("script"))
            .map(node => node.textContent).join("")"""
    )
    assert "[U+202E]gnp.exe[U+202C]" in text
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00]", shown)


def test_the_policy_stops_what_a_mistake_would_let_through(
    browser: Browser, hostile_page: Path
) -> None:
    page = browser.new_context().new_page()
    page.goto(hostile_page.as_uri())
    stopped = page.evaluate(
        """async () => {
            const stopped = [];
            document.addEventListener("securitypolicyviolation",
                event => stopped.push(event.effectiveDirective));
            const tries = {
                html: () => { document.body.innerHTML = "<img src=x>"; },
                write: () => document.write("<img src=x>"),
                text: () => { document.createElement("script").text = "window.ran = 1"; },
            };
            for (const [name, run] of Object.entries(tries)) {
                try { run(); } catch (error) { stopped.push(`${name}: ${error.name}`); }
            }
            await fetch("http://127.0.0.1:9/").catch(error => stopped.push(error.name));
            // In a task of its own: what the driver itself calls may evaluate.
            await new Promise(resolve => setTimeout(() => {
                try { eval("1"); } catch (error) { stopped.push(`code: ${error.name}`); }
                resolve();
            }));
            const image = document.createElement("img");
            image.src = "http://127.0.0.1:9/";
            document.body.append(image);
            document.body.setAttribute("style", "color: red");
            const frame = document.createElement("iframe");
            frame.src = "http://127.0.0.1:9/";
            document.body.append(frame);
            await new Promise(resolve => setTimeout(resolve, 200));
            return stopped;
        }"""
    )
    page.context.close()
    assert {"html: TypeError", "write: TypeError", "code: EvalError", "text: TypeError"} <= set(
        stopped
    )
    assert {"connect-src", "img-src", "style-src-attr", "frame-src"} <= set(stopped)
