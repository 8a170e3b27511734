"use strict";

// What only some reports have: summaries, what was learned, what happened.

const lessonNames = {
  __proto__: null,
  window_tokens: "window",
  output_tokens: "longest answer",
  ratio: "tokens it counts for one of ours",
};
const firstEvents = 100;

function time(at) {
  return quoted((at ?? "").slice(0, 19).replace("T", " "));
}

function spaced(name) {
  return quoted(name.replaceAll("_", " "));
}

/** Fills a table, and shows the section that it is in, where there are rows. */
function showTable(section, table, heads, rows) {
  byId(section).hidden = rows.length === 0;
  byId(table).append(
    el("thead", {}, el("tr", {}, heads.map(([name, kind]) => el("th", { class: kind }, name)))),
    el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell, n) => el("td", { class: heads[n][1] }, cell))))));
}

function summaryEntry(summary) {
  const share = messages.length ? Math.min((100 * (summary.covers ?? 0)) / messages.length, 100) : 0;
  const says = `covers ${Math.round(share)} % of the messages`;
  const bar = svg("svg", { viewBox: "0 0 100 6", preserveAspectRatio: "none", role: "img", "aria-label": says },
    svg("rect", { width: share, height: 6 }));
  const facts = [
    summary.covers !== null && `covers ${plural(summary.covers, "message")}`,
    summary.made_by && `made by ${summary.made_by === "local" ? "rules" : "a model"}`,
    summary.status && spaced(summary.status),
    summary.at && time(summary.at),
  ].filter(Boolean).flatMap((fact) => [" · ", fact]);
  return el("li", {},
    el("p", {}, el("b", {}, summary.version === null ? "Summary" : `Version ${summary.version}`), facts),
    el("div", { class: "bar" }, bar),
    summary.error && el("p", {}, "Error: ", quoted(summary.error)),
    summary.text && el("details", {}, el("summary", {}, "Text"), words(summary.text)));
}

function lessonCells({ model, what, script, value, at }) {
  const name = fragment(lessonNames[what] ?? quoted(what), script && [" (", spaced(script), ")"]);
  return [quoted(model ?? ""), name, value === null ? "" : say(value), time(at)];
}

function eventCells([at, kind, model, facts]) {
  const numbers = Object.entries(facts).flatMap(([name, value], n) =>
    [n ? ", " : "", spaced(name), " ", typeof value === "number" ? say(value) : quoted(value)]);
  return [time(at), spaced(kind), quoted(model ?? ""), fragment(...numbers)];
}

const recorded = report.recorded.map(
  ([at, before, sent, refused, window, source, cut, gone, prompt, cached, outcome, isSubagent]) =>
    ({ at, before, sent, refused, window, source, cut, gone, prompt, cached, outcome, isSubagent }));

function sentCells(one) {
  const said = [
    ...one.refused.map((tokens) => `refused at ${say(tokens)}`),
    one.outcome !== "answered" && one.outcome,
    one.isSubagent && "subagent",
  ].filter(Boolean).join(", ");
  return [time(one.at), say(one.before), say(one.sent), say(one.window), say(one.cut), say(one.gone),
    el("span", { class: one.refused.length || one.outcome !== "answered" ? "bad" : "" }, said)];
}

function showExtras() {
  const sentHeads = [["When", "when"], ["Before", "number"], ["Sent", "number"], ["Window", "number"],
    ["Messages cut", "number"], ["Names gone", "number"], ["What happened"]];
  showTable("recorded", "sends", sentHeads, recorded.slice(-firstEvents).map(sentCells));
  if (recorded.length > firstEvents) {
    const note = `The last ${firstEvents} of ${plural(recorded.length, "request")}.`;
    byId("sends").after(el("p", { class: "quiet more" }, note));
  }
  byId("summaries").hidden = report.summaries.length === 0;
  byId("timeline").append(...report.summaries.map(summaryEntry));
  const lessonHeads = [["Model"], ["What"], ["Value", "number"], ["When", "when"]];
  showTable("learned", "lessons", lessonHeads, report.learned.map(lessonCells));
  const eventHeads = [["When", "when"], ["What", "when"], ["Model"], ["Numbers", "wide"]];
  const newest = report.events.slice(-firstEvents);
  showTable("happened", "events", eventHeads, newest.map(eventCells));
  if (newest.length < report.events.length) {
    const note = `The last ${firstEvents} of ${plural(report.events.length, "event")}.`;
    byId("events").after(el("p", { class: "quiet more" }, note));
  }
}
