"use strict";

// What only some reports have: summaries, what was learned. And money, at prices that the reader types.

const lessonNames = {
  __proto__: null,
  window_tokens: "window",
  output_tokens: "longest answer",
  ratio: "tokens it counts for one of ours",
};

function time(at) {
  return quoted((at ?? "").slice(0, 19).replace("T", " "));
}

function spaced(name) {
  return quoted(name.replaceAll("_", " "));
}

function summaryEntry(summary) {
  const share = messages.length ? Math.min((100 * (summary.covers ?? 0)) / messages.length, 100) : 0;
  const says = t("covers {0} % of the messages", Math.round(share));
  const bar = svg("svg", { viewBox: "0 0 100 6", preserveAspectRatio: "none", role: "img", "aria-label": says },
    svg("rect", { width: share, height: 6 }));
  const facts = [
    summary.covers !== null && t("covers {0}", plural(summary.covers, "message")),
    summary.made_by && t(summary.made_by === "local" ? "made by rules" : "made by a model"),
    summary.status && (phrases[summary.status] ?? spaced(summary.status)),
    summary.at && time(summary.at),
  ].filter(Boolean).flatMap((fact) => [" · ", fact]);
  return el("li", {},
    el("p", {}, el("b", {}, summary.version === null ? t("Summary") : t("Version {0}", summary.version)), facts),
    el("div", { class: "bar" }, bar),
    summary.error && el("p", {}, t("Error: "), quoted(summary.error)),
    summary.text && el("details", {}, el("summary", {}, t("Text")), words(summary.text)));
}

function lessonCells({ model, what, script, value, at }) {
  const name = fragment(lessonNames[what] ? t(lessonNames[what]) : quoted(what), script && [" (", spaced(script), ")"]);
  return [quoted(model ?? ""), name, value === null ? "" : say(value), time(at)];
}

function showExtras() {
  byId("summaries").hidden = report.summaries.length === 0;
  byId("timeline").append(...report.summaries.map(summaryEntry));
  const heads = [["Model"], ["What"], ["Value", "number"], ["When", "when"]];
  const lessons = report.learned.map(lessonCells);
  // A column of which nothing is known, as no model on a redacted page, is none.
  const told = heads.map((_, n) => lessons.some((cells) => (cells[n].textContent ?? cells[n]) !== ""));
  const line = (tag, cells) => el("tr", {}, cells.map((cell, n) => told[n] && el(tag, { class: heads[n][1] }, cell)));
  byId("learned").hidden = lessons.length === 0;
  byId("lessons").append(
    el("thead", {}, line("th", heads.map(([name]) => t(name)))),
    el("tbody", {}, lessons.map((cells) => line("td", cells))));
}

/** Returns sums over the requests that were answered or, in a replay, can be sent. */
function totals() {
  const those = requests.filter((request) => (report.isRecord ? request.outcome === "answered" : !request.error));
  const total = (name) => sum(those.map((request) => request[name] ?? 0));
  const [before, sent, reused, answer] = ["tokensBefore", "tokensAfter", "reused", "answer"].map(total);
  return { before: Math.max(before, sent), sent, reused: Math.min(reused, sent), answer };
}

/** Says what was paid, and what would have been without compression with the same share out of a cache. */
function showMoney() {
  const [prompt, cached, answer] = ["prompt", "cached", "answer"].map((name) => byId(`price-${name}`).valueAsNumber);
  if (!(prompt >= 0)) {
    byId("money").textContent = "";
    return;
  }
  const sums = totals();
  const cachedPrice = cached >= 0 ? cached : prompt;
  const cost = (tokens) => {
    const fromCache = sums.sent ? (tokens * sums.reused) / sums.sent : 0;
    return ((tokens - fromCache) * prompt + fromCache * cachedPrice + sums.answer * (answer || 0)) / 1e6;
  };
  const money = new Intl.NumberFormat(language, { minimumFractionDigits: 2, maximumSignificantDigits: 4 });
  byId("money").textContent = t("{0} with the package, {1} without, {2} saved",
    ...[cost(sums.sent), cost(sums.before), cost(sums.before) - cost(sums.sent)].map((one) => money.format(one)));
}
