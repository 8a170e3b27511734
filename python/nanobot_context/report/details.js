"use strict";

// The panel with one request or one message.

const firstCharacters = 20_000; // of a text: the rest is shown when asked for
const firstEntries = 40;
const foldedLines = 3; // so many that were not sent are shown; more of them are folded

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
    el("button", { type: "button", "aria-label": t(name), disabled: !onclick, onclick: onclick || null }, sign);
  return el("div", { class: "detail-head" },
    el("div", {}, el("h2", { id: "detail-title" }, title), el("p", {}, note)),
    el("div", { class: "buttons" },
      button("The one before", "‹", before), button("The next one", "›", after), button("Close", "✕", closeDetail)));
}

/** Returns a text as it was written, its beginning first where it is long; what is searched for is marked. */
function words(text) {
  const all = visible(text);
  const box = el("pre", { tabindex: 0, dir: "auto" }, ...marked(beginning(all, firstCharacters)));
  if (all.length <= firstCharacters) {
    return box;
  }
  const more = el("button", { type: "button", class: "more", onclick: () => {
    box.replaceChildren(...marked(all));
    more.remove();
  } }, t("Show all {0} characters", say(all.length)));
  return el("div", {}, box, more);
}

/** Returns a text of which some was sent: that in black, the rest grey, and folded where it is long. */
function keptWords(text, kept) {
  const box = el("pre", { class: "cut-text", tabindex: 0, dir: "auto" });
  const gone = (piece) => {
    if (!piece) {
      return;
    }
    const lines = piece.replace(/^\n|\n$/g, "").split("\n").length;
    const node = el("del", {}, ...marked(visible(piece)));
    if (lines <= foldedLines && piece.length < 400) {
      box.append(node);
      return;
    }
    const button = el("button", { type: "button", class: "gone", "aria-expanded": "false", onclick: () => {
      const isOpen = button.getAttribute("aria-expanded") === "true";
      button.setAttribute("aria-expanded", String(!isOpen));
      isOpen ? node.remove() : button.after(node);
    } }, t("{0} not sent", `${plural(lines, "line")}, ${plural(piece.length, "character")}`));
    box.append(button);
  };
  let from = 0;
  for (let n = 0; n < kept.length; n += 2) {
    gone(text.slice(from, kept[n]));
    box.append(el("span", {}, ...marked(visible(text.slice(kept[n], kept[n + 1])))));
    from = kept[n + 1];
  }
  gone(text.slice(from));
  return box;
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

/** Returns the first entries and a button for as many again. */
function paged(entries, make) {
  const box = el("div");
  const more = el("button", { type: "button", class: "more" });
  let shown = 0;
  const go = () => {
    more.before(...entries.slice(shown, shown + firstEntries).map(make));
    shown += firstEntries;
    more.hidden = shown >= entries.length;
    more.textContent = t("{0} more", say(entries.length - shown));
  };
  box.append(more);
  more.addEventListener("click", go);
  go();
  return box;
}

/** Returns a cut as a button that opens its message. */
function cutEntry(cut) {
  const message = messages[cut.index];
  const tokens = `${say(message.tokens)} ${cut.tokensAfter ? t("→ {0} sent", say(cut.tokensAfter)) : t("left out")}`;
  const name = fragment(`#${say(cut.index + 1)} · `, message.tool ? quoted(message.tool) : message.role);
  return el("div", { class: "cut" },
    el("button", { type: "button", onclick: () => openMessage(message) }, el("b", {}, name), el("span", {}, tokens)),
    el("p", { class: "quiet" }, why(message, { cut }, list.oldest)));
}

/** Returns a cut of a message that the session does not have, as a subagent's. */
function otherCutEntry([position, role, tool, reason, before, after]) {
  const tokens = `${say(before)} ${after ? t("→ {0} sent", say(after)) : t("left out")}`;
  return el("div", { class: "cut" },
    el("p", {}, el("b", {}, t("Message {0} of the request", say(position)), " · ", tool ? quoted(tool) : role), " ", el("span", {}, tokens)),
    el("p", { class: "quiet" }, t(reasons[reason] ?? reason)));
}

/** Returns the table of a request's tokens. */
function tokensTable(request) {
  const cell = (value) => el("td", { class: "number" }, value);
  const line = (name, before, after) => el("tr", {}, name,
    cell(about(before, request.isBeforeReported)), cell(request.error ? "–" : about(after, request.isReported)));
  const heads = [el("th", {}, t("Tokens")), el("th", { class: "number" }, t("before")), el("th", { class: "number" }, t("sent"))];
  const body = report.parts
    .map((part, n) => [part, request.before[n], request.after[n]])
    .filter(([, before, after]) => before || after)
    .map(([part, before, after]) => line(el("td", { class: `role swatch-${part}` }, t(partNames[part])), before, after));
  const total = line(el("td", {}, el("b", {}, t("Together"))), request.tokensBefore, request.tokensAfter);
  return el("table", {}, el("thead", {}, el("tr", {}, heads)), el("tbody", {}, body, total));
}

/** Returns what a request no longer says, each name as a link to the message that it stood in. */
function lostNames({ lost, lostNames: count }) {
  const names = lost.flatMap(([index, name], n) => [
    n ? t(", ") : "",
    index === null || !messages[index] ? quoted(name) : plainButton(quoted(name), () => openMessage(messages[index])),
  ]);
  const more = count > lost.length && t(lost.length ? " and {0} more" : "{0}", say(count - lost.length));
  return [el("h3", {}, t("Names that it no longer says")), el("p", {}, names, more)];
}

function outcomeOf(request) {
  const said = {
    "gave up": "Nothing small enough was left to send: the user was told so.",
    failed: "It failed with an error that says nothing of its size.",
    interrupted: "It was stopped before the answer: nanobot ended, or its task did.",
    over: "What must stay takes some of the room for the answer.",
  }[request.outcome];
  return [
    ...refusalsOf(request),
    request.isRetried && t(request.outcome === "answered" ? "Sent again with {0} tokens, it was answered." : "Sent again with {0} tokens.",
      about(request.tokensAfter, request.isReported)),
    request.refusals.length > 0 && !request.isRetried && request.outcome === "answered" && t("The answer stands all the same."),
    said && t(said),
  ].filter(Boolean).map((text) => el("p", { class: "bad" }, text));
}

function openRequest(request, { keepFocus = false } = {}) {
  Object.assign(detail, { request, message: null });
  const step = (by) => requests[request.number + by] && (() => page.select(request.number + by, { open: true }));
  const note = [
    request.at && time(request.at), request.turn !== null && t("turn {0}", say(request.turn)),
    request.isSubagent && t("of a subagent"),
  ].filter(Boolean).flatMap((fact, n) => (n ? [" · ", fact] : [fact]));
  const cuts = request.cuts.toSorted((one, other) => freed(other) - freed(one));
  const unknown = report.isRecord ? request.cutMessages - cuts.length - request.otherCuts.length : 0;
  const heading = report.isRecord ? "{0} cut" : "{0} newly cut in this request";
  openDetail([
    detailHead(t("Request {0}", say(request.number + 1)), fragment(...note), step(-1), step(1)),
    request.error && el("p", { class: "bad" }, t("Cannot be sent: "), quoted(request.error)),
    outcomeOf(request),
    tokensTable(request),
    request.reused !== null && !request.error && el("p", { class: "quiet more" },
      t(report.isRecord ? "{0} of it came out of the provider's cache." : "{0} of it begins as the request before did.",
        percent(request.reused, request.tokensAfter))),
    request.lostNames > 0 && lostNames(request),
    el("h3", {}, request.cutMessages ? t(heading, plural(request.cutMessages, "message")) : t("Nothing is cut in this request")),
    cuts.length > 0 && paged(cuts, cutEntry),
    request.otherCuts.length > 0 && el("p", { class: "quiet" },
      t("Not in this session: a subagent's, or of before it was cleared or shortened.")),
    request.otherCuts.length > 0 && paged(request.otherCuts, otherCutEntry),
    unknown > 0 && el("p", { class: "quiet" }, t("Of {0} more only the list says what became of them.", say(unknown))),
  ], keepFocus);
}

function openMessage(message, { keepFocus = false } = {}) {
  Object.assign(detail, { message, request: null });
  const place = list.shown.findIndex((row) => row.message === message);
  const beside = (by) => {
    const next = place + by + (list.shown[place + by]?.members ? by : 0);
    return place >= 0 && list.shown[next]?.message && (() => {
      activate(next);
      openMessage(list.shown[next].message);
    });
  };
  const fate = fateOf(message);
  openDetail([
    detailHead(t("Message {0}", say(message.index + 1)), aboutMessage(message, fate), beside(-1), beside(1)),
    fate.state !== "kept" && el("p", { class: "note" }, fateWords(message, fate)),
    fate.cut?.keptIn && el("p", { class: "quiet" }, t("The original is in the file that the request names: "), quoted(fate.cut.keptIn)),
    fate.state === "shortened" && !fate.cut.kept.length && el("p", { class: "quiet" },
      t("Which of its lines were sent is not known: a mark or other words stand for them.")),
    bodyOf(message, fate),
  ], keepFocus);
}

function bodyOf(message, fate) {
  if (report.isRedacted) {
    return el("p", { class: "quiet" }, t("{0} characters, which this page leaves out", say(message.length)));
  }
  if (!message.text) {
    return el("p", { class: "quiet" }, t("Nothing."));
  }
  return fate.state === "shortened" && fate.cut.kept.length ? keptWords(message.text, fate.cut.kept) : words(message.text);
}

function aboutMessage({ role, tool, turn, tokens }, { state }) {
  const size = state === "kept" ? plural(tokens, "token") : t("{0} uncut", plural(tokens, "token"));
  return fragment(role, tool && [" · ", quoted(tool)], ` · ${t("turn {0}", say(turn))} · ${size}`);
}

/** Returns what has become of a message that is not kept, and why. */
function fateWords(message, fate) {
  const request = plainButton(t("request {0}", say(page.selected + 1)), () => page.select(page.selected, { open: true }));
  if (fate.state === "not asked for") {
    return parts("nanobot itself did not put it into {0}: it is older than its history.", request);
  }
  const reason = why(message, fate, list.oldest);
  return fate.state === "shortened"
    ? parts("Shortened to {1} in {0}: {2}.", request, plural(fate.cut.tokensAfter, "token"), reason)
    : parts("Left out of {0}: {1}.", request, reason);
}
