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
  return el("div", { class: "detail-head" },
    el("div", {}, el("h2", { id: "detail-title" }, title), el("p", {}, note)),
    el("div", { class: "buttons" },
      el("button", { type: "button", "aria-label": "The one before", onclick: before, disabled: !before }, "‹"),
      el("button", { type: "button", "aria-label": "The next one", onclick: after, disabled: !after }, "›"),
      el("button", { type: "button", "aria-label": "Close", onclick: closeDetail }, "✕")));
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
  } }, `Show all ${grouped.format(all.length)} characters`);
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

function fateOf(tokensBefore, tokensAfter) {
  return tokensAfter ? `${grouped.format(tokensBefore)} → ${grouped.format(tokensAfter)}` : `${grouped.format(tokensBefore)}, left out`;
}

function origin(index, keptIn) {
  const session = el("p", { class: "quiet" }, `The original is message ${grouped.format(index + 1)} of `, quoted(report.source));
  return keptIn ? [session, el("p", { class: "quiet" }, "and in the file that the request names: ", quoted(keptIn))] : [session];
}

/** Returns a cut as a button that opens what was removed. */
function cutEntry(cut, name) {
  const inside = el("div", { class: "inside", hidden: true });
  const button = el("button", { type: "button", "aria-expanded": "false", onclick: () => {
    inside.hidden = !inside.hidden;
    button.setAttribute("aria-expanded", String(!inside.hidden));
    if (!inside.hidden && !inside.hasChildNodes()) {
      inside.append(
        cut.removed ? words(cut.removed, "removed") : el("p", { class: "quiet" }, "No text was removed."),
        ...origin(cut.index, cut.keptIn),
        detail.message === null && el("button", { type: "button", class: "plain", onclick: () => openMessage(messages[cut.index]) }, `All of message ${grouped.format(cut.index + 1)}`) || "",
      );
    }
  } },
  el("b", {}, name), el("span", {}, fateOf(cut.tokensBefore, cut.tokensAfter)),
  el("span", { class: "why" }, reasons[cut.reason] ?? cut.reason));
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
    more.textContent = `${grouped.format(entries.length - shown)} more`;
  };
  box.append(more);
  more.addEventListener("click", go);
  go();
  return box;
}

function messageName(message) {
  return `Message ${grouped.format(message.index + 1)}`;
}

function openRequest(request, { keepFocus = false } = {}) {
  Object.assign(detail, { request, message: null });
  const step = (by) => requests[request.number + by] && (() => page.select(request.number + by, { open: true }));
  const number = (value) => el("td", { class: "number" }, value);
  const rows = report.parts
    .map((part, n) => [part, request.before[n], request.after[n]])
    .filter(([, before, after]) => before || after)
    .map(([part, before, after]) => el("tr", {},
      el("td", { class: `role swatch-${part}` }, partNames[part]), number(grouped.format(before)), number(request.error ? "–" : grouped.format(after))));
  const total = el("tr", {}, el("td", {}, el("b", {}, "Together")), number(grouped.format(request.tokensBefore)), number(request.error ? "–" : grouped.format(request.tokensAfter)));
  const cuts = request.cuts.toSorted((one, other) => other.tokensBefore - other.tokensAfter - one.tokensBefore + one.tokensAfter);
  openDetail([
    detailHead(`Request ${grouped.format(request.number + 1)}`, `turn ${grouped.format(request.turn)} · ${plural(request.position, "message")} so far`, step(-1), step(1)),
    request.error && el("p", { class: "bad" }, "Cannot be sent: ", quoted(request.error)),
    request.over && !request.error && el("p", { class: "bad" }, "What must stay takes some of the room for the answer."),
    el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "Tokens"), el("th", { class: "number" }, "before"), el("th", { class: "number" }, "sent"))), el("tbody", {}, rows, total)),
    !request.error && el("p", { class: "quiet more" }, `${percent(request.reused, request.tokensAfter)} of it begins as the request before did.`),
    el("h3", {}, cuts.length ? `${plural(cuts.length, "new cut")} in this request` : "Nothing new is cut in this request"),
    cuts.length > 0 && paged(cuts, (cut) => cutEntry(cut, cutName(cut))),
  ], keepFocus);
}

function cutName(cut) {
  const { role, tool } = messages[cut.index];
  return fill(document.createDocumentFragment(), [`${messageName(messages[cut.index])} · `, tool ? quoted(tool) : role]);
}

function openMessage(message, { keepFocus = false } = {}) {
  Object.assign(detail, { message, request: null });
  const place = list.shown.indexOf(message);
  const step = (by) => list.shown[place + by] && place >= 0 && (() => {
    activate(place + by);
    openMessage(list.shown[list.active]);
  });
  const first = message.firstRequest;
  openDetail([
    detailHead(messageName(message), fill(document.createDocumentFragment(), [`${message.role}${message.tool ? " · " : ""}`, message.tool && quoted(message.tool), ` · turn ${grouped.format(message.turn)} · ${plural(message.tokens, "token")}`]), step(-1), step(1)),
    message.state !== "kept" && el("p", { class: "note" },
      `${message.state === "shortened" ? `Shortened to ${plural(message.tokensAfter, "token")} in` : "Left out of"} the last request: ${reasons[message.reason] ?? message.reason}. `,
      first !== null && el("button", { type: "button", class: "plain", onclick: () => page.select(first, { open: true }) }, `First in request ${grouped.format(first + 1)}`)),
    message.cuts.length > 0 && el("h3", {}, "Cuts, the first one first"),
    message.cuts.length > 0 && paged(message.cuts, (cut) => cutEntry(cut, `Request ${grouped.format(cut.request + 1)}`)),
    el("h3", {}, "All that it says"),
    message.text ? words(message.text) : el("p", { class: "quiet" }, "Nothing."),
  ], keepFocus);
}
