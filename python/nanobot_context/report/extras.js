"use strict";

// What only some reports have: summaries, what was learned, what happened.

const lessonNames = { __proto__: null, window_tokens: "window", output_tokens: "longest answer", ratio: "tokens it counts for one of ours" };
const firstEvents = 100;

function time(at) {
  return at ? at.slice(0, 19).replace("T", " ") : "";
}

function section(id, hasContent) {
  byId(id).hidden = !hasContent;
  return hasContent;
}

function summaryEntry(summary) {
  const covered = summary.covers ?? 0;
  const bar = svg("svg", { viewBox: "0 0 100 6", preserveAspectRatio: "none", role: "img", "aria-label": `covers ${percent(covered, messages.length)} of the messages` },
    svg("rect", { width: messages.length ? Math.min((100 * covered) / messages.length, 100) : 0, height: 6 }));
  const facts = [
    summary.covers !== null && `covers ${plural(covered, "message")}`,
    summary.made_by && `made by ${summary.made_by === "local" ? "rules" : "a model"}`,
    summary.status && quoted(summary.status.replace("_", " ")),
    summary.at && quoted(time(summary.at)),
  ].filter(Boolean).flatMap((fact) => [" · ", fact]);
  return el("li", {},
    el("p", {}, el("b", {}, summary.version === null ? "Summary" : `Version ${summary.version}`), facts),
    el("div", { class: "bar" }, bar),
    summary.error && el("p", {}, "Error: ", quoted(summary.error)),
    summary.text && el("details", {}, el("summary", {}, "Text"), words(summary.text)));
}

function showExtras() {
  if (section("summaries", report.summaries.length)) {
    byId("timeline").append(...report.summaries.map(summaryEntry));
  }
  if (section("learned", report.learned.length)) {
    byId("lessons").append(
      el("thead", {}, el("tr", {}, el("th", {}, "Model"), el("th", {}, "What"), el("th", { class: "number" }, "Value"), el("th", {}, "When"))),
      el("tbody", {}, report.learned.map((lesson) => el("tr", {},
        el("td", {}, quoted(lesson.model ?? "")),
        el("td", {}, lessonNames[lesson.what] ?? quoted(lesson.what), lesson.script ? [" (", quoted(lesson.script.replace("_", " ")), ")"] : ""),
        el("td", { class: "number" }, lesson.value === null ? "" : grouped.format(lesson.value)),
        el("td", { class: "when" }, quoted(time(lesson.at)))))));
  }
  if (section("happened", report.events.length)) {
    const entry = ([at, kind, model, facts]) => el("tr", {},
      el("td", { class: "when" }, quoted(time(at))), el("td", { class: "when" }, quoted(kind.replace("_", " "))), el("td", {}, quoted(model ?? "")),
      el("td", { class: "wide" }, quoted(Object.entries(facts).map(([name, value]) => `${name.replaceAll("_", " ")} ${typeof value === "number" ? grouped.format(value) : value}`).join(", "))));
    byId("events").append(
      el("thead", {}, el("tr", {}, ["When", "What", "Model", "Numbers"].map((name) => el("th", {}, name)))),
      el("tbody", {}, report.events.slice(-firstEvents).map(entry)));
    if (report.events.length > firstEvents) {
      byId("events").after(el("p", { class: "quiet more" }, `The last ${firstEvents} of ${plural(report.events.length, "event")}.`));
    }
  }
}
