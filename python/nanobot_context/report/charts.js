"use strict";

// Which charts there are.

function largestStack(stacks) {
  return stacks.reduce((one, other) => (sum(other) > sum(one) ? other : one));
}

function meanStack(stacks) {
  return stacks[0].map((_, part) => sum(stacks.map((stack) => stack[part])) / stacks.length);
}

/** Returns the charts of the replay, whose rows are the requests. */
function replayCharts() {
  const limits = [
    { value: report.window, kind: "limit", name: `window ${say(report.window)}` },
    { value: report.budget, kind: "budget" },
  ];
  const rows = { rows: requests, label: (request) => `turn ${request.turn}` };
  const byRole = { ...rows, limits, parts: report.parts, merge: largestStack, height: 240 };
  const most = (name) => say(largest(requests.map((request) => request[name])));
  const total = (name) => sum(requests.map((request) => request[name]));
  const share = percent(total("reused"), total("tokensAfter"));
  return [
    chart(byId("sent"), {
      ...byRole, marks: true, stack: (request) => request.after, title: "As sent",
      note: "circles: where something was cut",
      says: `Tokens by role of ${plural(requests.length, "request")} as sent, ` +
        `at most ${most("tokensAfter")}, in a window of ${say(report.window)}`,
    }),
    chart(byId("whole"), {
      ...byRole, stack: (request) => request.before, title: "Without compression", note: "",
      says: `The same without compression: at most ${most("tokensBefore")} tokens`,
    }),
    chart(byId("cache"), {
      ...rows, parts: ["reuse", "fresh"], merge: meanStack, height: 110, title: "Prompt cache",
      note: "blue: begins as the request before did, so that a provider's cache can hold it",
      stack: (request) => [request.reused, request.tokensAfter - request.reused],
      says: `Of all tokens sent, ${share} begin as the request before did`,
    }),
  ];
}

/** Returns the chart of what the provider reported, whose rows are its answers; none without any. */
function reportedCharts() {
  const answers = report.answers.map(([at, prompt, cached], number) =>
    ({ number, at: (at ?? "").slice(5, 16).replace("T", " "), prompt, cached: Math.min(cached ?? 0, prompt) }));
  byId("reported").hidden = answers.length === 0;
  if (!answers.length) {
    return [];
  }
  const total = (name) => sum(answers.map((answer) => answer[name]));
  const share = percent(total("cached"), total("prompt"));
  return [chart(byId("reported"), {
    rows: answers, label: ({ at, number }) => at || `${number + 1}`, perLabel: 110,
    parts: ["reuse", "fresh"], merge: meanStack, height: 110, stack: ({ prompt, cached }) => [cached, prompt - cached],
    title: "Prompt cache, as the provider reports it",
    note: `${share} of ${plural(total("prompt"), "token")} in ${plural(answers.length, "answer")} came from its cache`,
    says: `The provider reports ${share} of the prompts as cached`,
  })];
}

/** Makes the charts and keeps them as wide as their place; returns what shows in them which request is looked at. */
function drawCharts(onLook, onOpen) {
  const replayed = replayCharts();
  const charts = [...replayed, ...reportedCharts()];
  const redraw = () => charts.forEach((one) => one.area.parentNode.clientWidth !== one.width && drawChart(one));
  new ResizeObserver(redraw).observe(byId("requests"));
  redraw();
  for (const one of replayed) {
    const numberOf = (event) => {
      const box = one.area.getBoundingClientRect();
      return one.numberAt(((event.clientX - box.left) * one.width) / box.width);
    };
    const markOf = (event) => event.target.closest(".mark")?.dataset.request;
    one.area.addEventListener("pointermove", (event) => event.pointerType === "mouse" && onLook(numberOf(event)));
    one.area.addEventListener("pointerleave", () => onLook(null));
    one.area.addEventListener("click", (event) => onOpen(Number(markOf(event) ?? numberOf(event))));
  }
  return (number) => replayed.forEach((one) => setAt(one, number));
}
