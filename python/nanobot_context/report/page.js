"use strict";

// The page as a whole: its head, its keys, and which request is looked at.

const page = { selected: 0, drawing: 0 };

/** Makes a request the one that is looked at; opens it where asked to, or where one is open. */
page.select = (number, { open = false } = {}) => {
  if (!requests.length) {
    listMessages();
    return;
  }
  page.selected = Math.min(Math.max(number, 0), requests.length - 1);
  look(page.selected);
  byId("at").value = page.selected;
  byId("at").setAttribute("aria-valuetext", aboutRequest(requests[page.selected]));
  listMessages({ isMove: true });
  if (open || detail.request) {
    openRequest(requests[page.selected], { keepFocus: !open });
  } else if (detail.message) {
    openMessage(detail.message, { keepFocus: true });
  }
};

/** Shows the numbers of a request; of the selected one where there is none. */
function look(number) {
  const request = requests[number ?? page.selected];
  if (!request) {
    return;
  }
  setAt(request.number);
  const fact = (name, value, kind) => el("span", { class: kind ?? "" }, `${t(name)} `, el("b", {}, value));
  byId("readout").replaceChildren(...[
    fact("request", t("{0} of {1}", say(request.number + 1), say(requests.length))),
    request.turn !== null && fact("turn", say(request.turn)),
    fact("before", about(request.tokensBefore, request.isBeforeReported)),
    request.error ? el("span", { class: "bad" }, t("cannot be sent")) : fact("sent", about(request.tokensAfter, request.isReported)),
    request.reused !== null && !request.error &&
      fact(report.isRecord ? "cached" : "cacheable", percent(request.reused, request.tokensAfter)),
    request.cutMessages > 0 && fact(report.isRecord ? "cut" : "newly cut", say(request.cutMessages)),
    ...attemptsOf(request).map((text) => el("span", { class: "bad" }, text)),
  ].filter(Boolean));
}

function aboutRequest(request) {
  const sent = request.error ? t("cannot be sent") : t("{0} sent", plural(request.tokensAfter, "token"));
  const cuts = request.cutMessages ? `${t(", ")}${t("{0} cut", plural(request.cutMessages, "message"))}` : "";
  const name = t("Request {0} of {1}", request.number + 1, requests.length);
  return `${name}: ${t("{0} before", say(request.tokensBefore))}, ${sent}${cuts}. ${attemptsOf(request).join(" ")}`.trim();
}

/** Returns the large numbers below the title: name, number, words, and whether it is a bad one. */
function figures() {
  const sums = totals();
  const smaller = requests.filter((one) => one.tokensBefore > one.tokensAfter && !one.error).length;
  const refused = sum(requests.map((one) => one.refusals.length));
  const retried = requests.filter((one) => one.isRetried).length;
  const sure = requests.filter((one) => one.isReported);
  const most = (name) => compact.format(largest((sure.length ? sure : requests).map((one) => one[name])));
  const unanswered = requests.filter((one) => one.error || ["gave up", "failed", "interrupted"].includes(one.outcome)).length;
  const over = requests.filter((one) => one.outcome === "over").length;
  return [
    [report.isRecord ? "Sent" : "Replayed", plural(requests.length, "request"),
      t("of a conversation of {0}", plural(messages.length, "message"))],
    ["Tokens sent", compact.format(sums.sent), t("the largest request {0}, {1} uncompressed", most("tokensAfter"), most("tokensBefore"))],
    ["Tokens avoided", sums.sent < sums.before ? t("about {0}", compact.format(sums.before - sums.sent)) : "0", t("{0} made smaller", plural(smaller, "request"))],
    [report.isRecord ? "From the cache" : "Cacheable", percent(sums.reused, sums.sent),
      t(report.isRecord ? "of what was sent, as reported" : "of what was sent begins as the request before")],
    ...(report.isRecord ? [["Refused", plural(refused, "attempt"), refused ? t("{0} sent again", plural(retried, "request")) : t("none was too large")]] : []),
    ...(unanswered ? [[report.isRecord ? "Not answered" : "Too large", plural(unanswered, "request"),
      t(report.isRecord ? "an error, stopped before the answer, or too large for any repair" : "cannot be sent"), "bad"]] : []),
    ...(over ? [["Tight", plural(over, "request"), t("in the room for the answer"), "bad"]] : []),
  ];
}

function showHead() {
  const counts = { exact: "exact counts", estimated: "estimated counts", reported: "counts of the provider" }[report.counted];
  const hasPrompt = report.isRecord || messages.some((message) => ["system", "developer"].includes(message.role));
  byId("name").append(report.isRedacted ? t("A conversation, without its texts") : quoted(report.name));
  byId("facts").append(
    report.isRedacted ? "" : fragment(report.model === null ? t("no model named") : quoted(report.model), " · "),
    `${t("window {0}", say(report.window))} · ${t(counts)}`, report.windowSource ? fragment(" · ", quoted(report.windowSource)) : "",
    report.isRecord ? "" : ` · ${t("a replay, not what was sent")}`,
    report.tools.length ? ` · ${t("largest tools: {0}", report.tools.map(([name, tokens]) => `${name} ${say(tokens)}`).join(t(", ")))}` : "",
  );
  byId("figures").append(...figures().map(([name, number, note, kind]) => el("div", { class: kind },
    el("dt", {}, t(name)), el("dd", { class: "big" }, number), el("dd", { class: "small" }, note))));
  byId("requests-title").append(t(report.isRecord ? "What was sent" : "Replay: what each request would hold"));
  const isThere = (_, part) => requests.some((request) => request.before[part]);
  const swatch = (kind, name) => el("li", { class: kind }, t(name));
  byId("legend").append(
    ...report.parts.filter(isThere).map((part) => swatch(`swatch-${part}`, partNames[part])),
    swatch("swatch-ghost", "Not sent"),
    ...(requests.some((one) => one.refusals.length) ? [swatch("swatch-refused", "Refused")] : []));
  byId("footer").append(
    t(report.isRecord ? "What was sent is from the record of requests, in the provider's tokens; what it would have been, and each message, is an estimate. "
      : "A replay: what would be sent now, not what was sent. No model was called. "),
    ...(report.isRedacted ? [] : [quoted(report.source), " · "]), `nanobot-context ${report.version}. `,
    hasPrompt || !messages.length ? "" : t("What stands here has no system prompt: what nanobot adds to a request is not counted."),
  );
}

/** Puts what stands in the page's source into the language of the page. */
function translate() {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node.data.trim();
    if (text && phrases[text] && node.parentNode.localName !== "script") {
      node.data = node.data.replace(text, () => phrases[text]);
    }
  }
  for (const node of document.body.querySelectorAll("[aria-label], [placeholder]")) {
    for (const name of ["aria-label", "placeholder"]) {
      const known = phrases[node.getAttribute(name)];
      if (known) {
        node.setAttribute(name, known);
      }
    }
  }
  document.title = document.title.replace("context report", t("context report"));
}

const themes = { "": "Auto", light: "Light", dark: "Dark" };

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = t(themes[theme]);
  byId("theme").setAttribute("aria-label", t("Colours: {0}", t(themes[theme])));
}

function nextTheme() {
  const names = Object.keys(themes);
  setTheme(names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length]);
}

function onKey(event) {
  const isTyping = event.target.closest("input:not([type=range]), select, textarea, dialog");
  if (event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  if (event.key === "Escape" && !event.target.closest("dialog")) {
    if (event.target === byId("search") && byId("search").value) {
      return; // the browser empties it
    }
    if (!closeDetail() && isTyping) {
      event.target.blur();
    }
    return;
  }
  if (isTyping) {
    return;
  }
  const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const isHandled = () => {
    if (direction && event.shiftKey) {
      page.select(nearestMarked(direction));
    } else if (direction) {
      page.select(page.selected + direction);
    } else if (event.key === "/") {
      byId("search").focus();
      byId("search").select();
    } else if (event.key === "?") {
      byId("keys").showModal();
    } else if (event.key === "Enter" && (event.target === document.body || event.target === byId("at"))) {
      page.select(page.selected, { open: true });
    } else {
      return false;
    }
    return true;
  };
  if (isHandled()) {
    event.preventDefault();
  }
}

/** Returns the nearest request in a direction that was cut or refused; the selected one where there is none. */
function nearestMarked(direction) {
  for (let number = page.selected + direction; requests[number]; number += direction) {
    if (isMarked(requests[number])) {
      return number;
    }
  }
  return page.selected;
}

translate();
showHead();
setTheme("");
showExtras();
byId("requests").hidden = byId("prices").hidden = requests.length === 0;
byId("at").max = Math.max(requests.length - 1, 0);
if (requests.length) {
  startChart(look, (number) => page.select(number, { open: true }));
}
startMessages((message) => openMessage(message),
  (message) => message && detail.message && openMessage(message, { keepFocus: true }));
page.select(requests.length - 1);
byId("at").addEventListener("input", () => page.select(Number(byId("at").value)));
byId("prices").addEventListener("input", showMoney);
byId("prices").addEventListener("submit", (event) => event.preventDefault());
byId("theme").addEventListener("click", nextTheme);
byId("help").addEventListener("click", () => byId("keys").showModal());
document.addEventListener("keydown", onKey);
