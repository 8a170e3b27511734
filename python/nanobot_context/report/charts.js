"use strict";

// Stacked bars over requests. One path for each part, however many requests there are: where they are more than there are
// pixels for, a bar stands for several requests and shows the largest of them, or their mean.

const plot = { left: 46, right: 6, top: 14, bottom: 20 };
const widestBar = 44;
const narrowestSlot = 2;
const closestMarks = 13;

/** Returns a chart in `figure`; `look` says what it shows, see `drawCharts`. */
function chart(figure, look) {
  // What is inside of an image is not there for a screen reader: marks are.
  const area = svg("svg", { height: look.height, role: look.marks ? "group" : "img", "aria-label": look.says });
  const caption = el("figcaption", {}, look.title, " ", el("small", {}, look.note));
  figure.replaceChildren(caption, area);
  return { ...look, area, width: 0, at: null };
}

function drawChart(chart) {
  chart.width = Math.max(chart.area.parentNode.clientWidth, 120);
  const { rows, parts, area, height, width } = chart;
  const inner = width - plot.left - plot.right;
  const bottom = height - plot.bottom;
  const limits = chart.limits ?? [];
  const top = largest([1, ...rows.map((row) => sum(chart.stack(row))), ...limits.map((limit) => limit.value)]) * 1.04;
  const y = (tokens) => bottom - (tokens / top) * (bottom - plot.top);
  const perBar = Math.ceil(rows.length / Math.max(Math.floor(inner / narrowestSlot), 1));
  const bars = Math.ceil(rows.length / perBar);
  const slot = inner / Math.max(bars, 1);
  const thick = slot < 4 ? slot : Math.min(slot - Math.min(slot * 0.2, 4), widestBar);
  chart.x = (number) => plot.left + (Math.floor(number / perBar) + 0.5) * slot;
  chart.numberAt = (x) =>
    Math.min(Math.max(Math.floor(((x - plot.left) / slot)) * perBar + Math.floor(perBar / 2), 0), rows.length - 1);

  const paths = parts.map(() => []);
  const failed = [];
  for (let bar = 0; bar < bars; bar += 1) {
    const those = rows.slice(bar * perBar, (bar + 1) * perBar);
    const stack = chart.merge(those.map(chart.stack));
    const left = (plot.left + (bar + 0.5) * slot - thick / 2).toFixed(2);
    let below = 0;
    stack.forEach((tokens, part) => {
      if (tokens) {
        paths[part].push(`M${left} ${y(below).toFixed(2)}h${thick.toFixed(2)}V${y(below + tokens).toFixed(2)}h-${thick.toFixed(2)}z`);
        below += tokens;
      }
    });
    if (those.some((row) => row.error)) {
      failed.push(`M${left} ${bottom}h${thick.toFixed(2)}V${plot.top}h-${thick.toFixed(2)}z`);
    }
  }

  chart.here = svg("rect", { class: "here", y: plot.top, height: bottom - plot.top, width: Math.max(thick, 3), x: -99 });
  area.setAttribute("viewBox", `0 0 ${width} ${height}`);
  area.replaceChildren(
    ...steps(top).map((tokens) => svg("g", {},
      svg("line", { class: "grid", x1: plot.left, x2: width - plot.right, y1: y(tokens), y2: y(tokens) }),
      svg("text", { x: plot.left - 7, y: y(tokens) + 4, "text-anchor": "end" }, compact.format(tokens)))),
    ...labels(chart, inner).map(([number, label]) =>
      svg("text", { x: Math.min(Math.max(chart.x(number), plot.left + 18), width - 24), y: height - 4, "text-anchor": "middle" }, label)),
    svg("path", { class: "failed", d: failed.join("") }),
    ...parts.map((part, index) => svg("path", { class: `part-${part}`, d: paths[index].join("") })),
    ...limits.map((limit) => svg("line", { class: limit.class, x1: plot.left, x2: width - plot.right, y1: y(limit.value), y2: y(limit.value) })),
    ...limits.filter((limit) => limit.name).map((limit) =>
      svg("text", { class: "limit-name", x: width - plot.right - 2, y: y(limit.value) - 4, "text-anchor": "end" }, limit.name)),
    chart.here,
    ...(chart.marks ? marks(chart, perBar, slot, bottom) : []),
  );
  setAt(chart, chart.at);
}

function largestStack(stacks) {
  return stacks.reduce((one, other) => (sum(other) > sum(one) ? other : one));
}

function meanStack(stacks) {
  return stacks[0].map((_, part) => sum(stacks.map((stack) => stack[part])) / stacks.length);
}

/** Shows which request is looked at. */
function setAt(chart, number) {
  chart.at = number;
  if (number !== null && chart.here) {
    const width = Number(chart.here.getAttribute("width"));
    chart.here.setAttribute("x", chart.x(number) - width / 2);
    for (const mark of chart.area.querySelectorAll(".mark")) {
      const isCurrent = Number(mark.dataset.from) <= number && number <= Number(mark.dataset.to);
      mark.classList.toggle("current", isCurrent);
    }
  }
}

/** Returns round numbers up to `top` for the axis: three to six of them. */
function steps(top) {
  const power = 10 ** Math.floor(Math.log10(top));
  const step = [0.2, 0.5, 1, 2].map((factor) => factor * power).find((size) => top / size <= 5) ?? 5 * power;
  const found = [];
  for (let tokens = 0; tokens <= top; tokens += step) {
    found.push(tokens);
  }
  return found;
}

/** Returns `[number, label]` of some requests, each turn named once. */
function labels(chart, inner) {
  const count = Math.max(Math.min(Math.floor(inner / (chart.perLabel ?? 64)), chart.rows.length), 1);
  const found = [];
  let last = null;
  for (let n = 0; n < count; n += 1) {
    const number = Math.floor((n * chart.rows.length) / count);
    const label = chart.label(chart.rows[number], number);
    if (label !== last) {
      found.push([number, label]);
      last = label;
    }
  }
  return found;
}

/** Returns a mark for each bar, or for those within some pixels, whose requests cut something; the larger, the more. */
function marks(chart, perBar, slot, bottom) {
  const perMark = perBar * Math.max(Math.ceil(closestMarks / slot), 1);
  const made = [];
  const freed = (request) => sum(request.cuts.map((cut) => cut.tokensBefore - cut.tokensAfter));
  for (let first = 0; first < chart.rows.length; first += perMark) {
    const those = chart.rows.slice(first, first + perMark).filter((request) => request.cuts.length);
    if (those.length) {
      const most = those.reduce((one, other) => (freed(other) > freed(one) ? other : one));
      const cuts = sum(those.map((request) => request.cuts.length));
      const x = chart.x(most.number);
      const radius = 2.5 + 3.5 * Math.sqrt(Math.min(Math.max(freed(most), 0) / report.window, 1));
      const says = `Request ${most.number + 1}: ${plural(cuts, "cut")}, ${plural(freed(most), "token")} less`;
      made.push(svg("g", {
        class: "mark", role: "button", tabindex: -1, "aria-label": says,
        "data-from": first, "data-to": first + perMark - 1, "data-request": most.number,
      },
      svg("title", {}, says),
      svg("rect", { x: x - 8, y: bottom - 10, width: 16, height: 20 }),
      svg("circle", { cx: x, cy: bottom, r: radius })));
    }
  }
  return made;
}

const turnOf = (request) => `turn ${request.turn}`;

/** Makes the charts, and keeps them as wide as their place. */
function drawCharts(onLook, onOpen) {
  const fromStart = { rows: requests, parts: report.parts, label: turnOf, merge: largestStack };
  const limits = [
    { value: report.window, class: "limit", name: `window ${grouped.format(report.window)}` },
    { value: report.budget, class: "budget" },
  ];
  const most = (name) => grouped.format(largest(requests.map((request) => request[name])));
  const charts = [
    chart(byId("sent"), {
      ...fromStart, limits, marks: true, height: 240, stack: (request) => request.after, title: "As sent",
      note: "circles: where something was cut",
      says: `Tokens by role of ${plural(requests.length, "request")} as sent, at most ${most("tokensAfter")}, in a window of ${grouped.format(report.window)}`,
    }),
    chart(byId("whole"), {
      ...fromStart, limits, height: 240, stack: (request) => request.before, title: "Without compression", note: "",
      says: `The same without compression: at most ${most("tokensBefore")} tokens`,
    }),
    chart(byId("cache"), {
      ...fromStart, height: 110, parts: ["reuse", "fresh"], merge: meanStack, title: "Prompt cache",
      note: "blue: begins as the request before did, so that a provider's cache can hold it",
      stack: (request) => [request.reused, request.tokensAfter - request.reused],
      says: `Of all tokens sent, ${percent(sum(requests.map((request) => request.reused)), sum(requests.map((request) => request.tokensAfter)))} begin as the request before did`,
    }),
  ];
  const cached = sum(report.answers.map(([, , tokens]) => tokens ?? 0));
  const read = sum(report.answers.map(([, prompt]) => prompt));
  const reported = byId("reported");
  reported.hidden = report.answers.length === 0;
  if (report.answers.length) {
    charts.push(chart(reported, {
      rows: report.answers, height: 110, parts: ["reuse", "fresh"], merge: meanStack, perLabel: 110,
      label: ([at], number) => (at ?? "").slice(5, 16).replace("T", " ") || `${number + 1}`,
      title: "Prompt cache, as the provider reports it", note: `${percent(cached, read)} of ${plural(read, "token")} in ${plural(report.answers.length, "answer")} came from its cache`,
      stack: ([, prompt, hit]) => [hit ?? 0, prompt - (hit ?? 0)],
      says: `The provider reports ${percent(cached, read)} of the prompts as cached`,
    }));
  }
  const redraw = () => charts.forEach((one) => one.area.parentNode.clientWidth !== one.width && drawChart(one));
  new ResizeObserver(redraw).observe(byId("requests"));
  redraw();
  for (const one of charts.filter((each) => each.rows === requests)) {
    const numberOf = (event) => one.numberAt(((event.clientX - one.area.getBoundingClientRect().left) * one.width) / one.area.clientWidth);
    const markOf = (event) => event.target.closest(".mark");
    one.area.addEventListener("pointermove", (event) => event.pointerType === "mouse" && onLook(numberOf(event)));
    one.area.addEventListener("pointerleave", () => onLook(null));
    one.area.addEventListener("click", (event) => onOpen(Number(markOf(event)?.dataset.request ?? numberOf(event))));
  }
  return (number) => charts.filter((each) => each.rows === requests).forEach((each) => setAt(each, number));
}
