"use strict";

// The panel with one request or one message.

const firstCharacters = 20_000; // of a text: the rest is shown when asked for
const firstCuts = 40;

const detail = { opener: null, message: null, request: null };

function closeDetail() {
  if (byId("detail").hidden) {
    return false;
  }
  byId("detail").hidden = true;
  document.body.classList.remove("open");
  Object.assign(detail, { message: null, request: null });
  detail.opener?.focus({ preventScroll: true });
  detail.opener = null;
  return true;
}

/** Shows `children` in the panel, and gives it the focus; where that is to stay outside, it stays outside. */
function openDetail(children, keepFocus) {
  const panel = byId("detail");
  const hadFocus = panel.contains(document.activeElement);
  if (panel.hidden) {
    detail.opener = document.activeElement === document.body ? null : document.activeElement;
  }
  panel.replaceChildren(...children.flat().filter(Boolean));
  panel.scrollTop = 0;
  panel.hidden = false;
  document.body.classList.add("open");
  if (!keepFocus || hadFocus) {
    panel.focus({ preventScroll: true });
  }
}

function detailHead(title, note, before, after) {
  const button = (name, sign, onclick) =>
    el("button", { type: "button", "aria-label": name, disabled: !onclick, onclick: onclick || null }, sign);
  return el("div", { class: "detail-head" },
    el("div", {}, el("h2", { id: "detail-title" }, title), el("p", {}, note)),
    el("div", { class: "buttons" },
      button("The one before", "‹", before), button("The next one", "›", after), button("Close", "✕", closeDetail)));
}

/** Returns a text as it was written, its beginning first where it is long; what is searched for is marked. */
function words(text, name = "") {
  const all = visible(text);
  const box = el("pre", { class: name, tabindex: 0, dir: "auto" }, ...marked(beginning(all, firstCharacters)));
  if (all.length <= firstCharacters) {
    return box;
  }
  const more = el("button", { type: "button", class: "more", onclick: () => {
    box.replaceChildren(...marked(all));
    more.remove();
  } }, `Show all ${say(all.length)} characters`);
  return el("div", {}, box, more);
}

function marked(text) {
  const wanted = byId("search").value.toLowerCase();
  const lower = text.toLowerCase();
  // Lower case may be longer than what it is of (İ): then positions would not be those of the text.
  if (wanted === "" || lower.length !== text.length) {
    return [text];
  }
  const found = [];
  let from = 0;
  for (let at = lower.indexOf(wanted); at >= 0 && found.length < 1000; at = lower.indexOf(wanted, from)) {
    found.push(text.slice(from, at), el("mark", {}, text.slice(at, at + wanted.length)));
    from = at + wanted.length;
  }
  return [...found, text.slice(from)];
}

function tokensOf(cut) {
  return `${say(cut.tokensBefore)}${cut.tokensAfter ? ` → ${say(cut.tokensAfter)}` : ", left out"}`;
}

function origin(cut) {
  const name = `The original is message ${say(cut.index + 1)} of `;
  return [
    el("p", { class: "quiet" }, name, quoted(report.source)),
    cut.keptIn && el("p", { class: "quiet" }, "and in the file that the request names: ", quoted(cut.keptIn)),
  ];
}

/** Returns a cut as a button that opens what was removed. */
function cutEntry(cut, name) {
  const inside = el("div", { class: "inside", hidden: true });
  const toggle = () => {
    inside.hidden = !inside.hidden;
    button.setAttribute("aria-expanded", String(!inside.hidden));
    if (!inside.hasChildNodes()) {
      const open = () => openMessage(messages[cut.index]);
      const whole = detail.message === null && plainButton(`All of ${messageName(cut.index)}`, open);
      fill(inside, [
        cut.removed ? words(cut.removed, "removed") : el("p", { class: "quiet" }, "No text was removed."),
        origin(cut),
        whole,
      ]);
    }
  };
  const button = el("button", { type: "button", "aria-expanded": "false", onclick: toggle },
    el("b", {}, name), el("span", {}, tokensOf(cut)), el("span", { class: "why" }, inWords(cut.reason)));
  return el("div", { class: "cut" }, button, inside);
}

/** Returns the first entries and a button for as many again. */
function paged(entries, make) {
  const box = el("div");
  const more = el("button", { type: "button", class: "more" });
  let shown = 0;
  const go = () => {
    more.before(...entries.slice(shown, shown + firstCuts).map(make));
    shown += firstCuts;
    more.hidden = shown >= entries.length;
    more.textContent = `${say(entries.length - shown)} more`;
  };
  box.append(more);
  more.addEventListener("click", go);
  go();
  return box;
}

function messageName(index) {
  return `message ${say(index + 1)}`;
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

/** Returns the table of a request's tokens. */
function tokensTable(request) {
  const row = (name, before, after) => el("tr", {},
    name, el("td", { class: "number" }, say(before)), el("td", { class: "number" }, request.error ? "–" : say(after)));
  const heads = [el("th", {}, "Tokens"), el("th", { class: "number" }, "before"), el("th", { class: "number" }, "sent")];
  const parts = report.parts
    .map((part, n) => [part, request.before[n], request.after[n]])
    .filter(([, before, after]) => before || after)
    .map(([part, before, after]) => row(el("td", { class: `role swatch-${part}` }, partNames[part]), before, after));
  const total = row(el("td", {}, el("b", {}, "Together")), request.tokensBefore, request.tokensAfter);
  return el("table", {}, el("thead", {}, el("tr", {}, heads)), el("tbody", {}, parts, total));
}

function openRequest(request, { keepFocus = false } = {}) {
  Object.assign(detail, { request, message: null });
  const step = (by) => requests[request.number + by] && (() => page.select(request.number + by, { open: true }));
  const note = `turn ${say(request.turn)} · ${plural(request.position, "message")} so far`;
  const cuts = request.cuts.toSorted((one, other) => freed(other) - freed(one));
  const cutName = (cut) => {
    const { role, tool } = messages[cut.index];
    return fragment(`${capital(messageName(cut.index))} · `, tool ? quoted(tool) : role);
  };
  openDetail([
    detailHead(`Request ${say(request.number + 1)}`, note, step(-1), step(1)),
    request.error && el("p", { class: "bad" }, "Cannot be sent: ", quoted(request.error)),
    request.over && !request.error && el("p", { class: "bad" }, "What must stay takes some of the room for the answer."),
    tokensTable(request),
    !request.error && el("p", { class: "quiet more" },
      `${percent(request.reused, request.tokensAfter)} of it begins as the request before did.`),
    el("h3", {}, cuts.length ? `${plural(cuts.length, "new cut")} in this request` : "Nothing new is cut in this request"),
    cuts.length > 0 && paged(cuts, (cut) => cutEntry(cut, cutName(cut))),
  ], keepFocus);
}

function openMessage(message, { keepFocus = false } = {}) {
  Object.assign(detail, { message, request: null });
  const place = list.shown.indexOf(message);
  const step = (by) => place >= 0 && list.shown[place + by] && (() => {
    activate(place + by);
    openMessage(list.shown[list.active]);
  });
  openDetail([
    detailHead(capital(messageName(message.index)), aboutMessage(message), step(-1), step(1)),
    message.state !== "kept" && fateOf(message),
    message.cuts.length > 0 && el("h3", {}, "Cuts, the first one first"),
    message.cuts.length > 0 && paged(message.cuts, (cut) => cutEntry(cut, `Request ${say(cut.request + 1)}`)),
    el("h3", {}, "All that it says"),
    message.text ? words(message.text) : el("p", { class: "quiet" }, "Nothing."),
  ], keepFocus);
}

function aboutMessage({ role, tool, turn, tokens }) {
  return fragment(role, tool && [" · ", quoted(tool)], ` · turn ${say(turn)} · ${plural(tokens, "token")}`);
}

/** Returns what has become of a message that is not kept. */
function fateOf({ state, tokensAfter, reason, firstRequest }) {
  const what = state === "shortened" ? `Shortened to ${plural(tokensAfter, "token")} in` : "Left out of";
  return el("p", { class: "note" },
    `${what} the last request: ${inWords(reason)}. `,
    plainButton(`First in request ${say(firstRequest + 1)}`, () => page.select(firstRequest, { open: true })));
}
