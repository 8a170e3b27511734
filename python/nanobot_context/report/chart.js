"use strict";

// Stacked bars over requests: what was sent is solid, what it would have been is an outline, what was refused is marked.
// One path for each part, however many requests there are: where they are more than there are pixels for, a bar stands
// for several of them and shows the largest.

const plot = { left: 46, right: 6, top: 14, bottom: 20, height: 240 };
const widestBar = 44;
const narrowestSlot = 2;
const closestMarks = 13;

const chart = { area: null, width: 0, at: null };

/** Sets where things are in the chart with the width that it has now. */
function layOut() {
  chart.width = Math.max(chart.area.parentNode.clientWidth, 120);
  chart.inner = chart.width - plot.left - plot.right;
  chart.bottom = plot.height - plot.bottom;
  chart.top = largest([1, ...requests.map((one) => Math.max(one.tokensBefore, one.tokensAfter, one.window))]) * 1.04;
  chart.perBar = Math.ceil(requests.length / Math.max(Math.floor(chart.inner / narrowestSlot), 1)) || 1;
  chart.bars = Math.ceil(requests.length / chart.perBar);
  chart.slot = chart.inner / Math.max(chart.bars, 1);
  chart.thick = chart.slot < 4 ? chart.slot : Math.min(chart.slot - Math.min(chart.slot * 0.2, 4), widestBar);
}

function xOf(number) {
  return plot.left + (Math.floor(number / chart.perBar) + 0.5) * chart.slot;
}

function yOf(tokens) {
  return chart.bottom - (tokens / chart.top) * (chart.bottom - plot.top);
}

function numberAt(x) {
  const bar = Math.floor((x - plot.left) / chart.slot);
  return Math.min(Math.max(bar * chart.perBar + Math.floor(chart.perBar / 2), 0), requests.length - 1);
}

/** Returns the paths of the parts, of the outline, of the window, and of what could not be sent. */
function bars() {
  const paths = report.parts.map(() => []);
  const [ghosts, failed, windows] = [[], [], []];
  const piece = (left, from, to) =>
    `M${left} ${from.toFixed(2)}h${chart.thick.toFixed(2)}V${to.toFixed(2)}h-${chart.thick.toFixed(2)}z`;
  for (let bar = 0; bar < chart.bars; bar += 1) {
    const those = requests.slice(bar * chart.perBar, (bar + 1) * chart.perBar);
    const most = (name) => those.reduce((one, other) => (other[name] > one[name] ? other : one));
    const middle = plot.left + (bar + 0.5) * chart.slot;
    const left = (middle - chart.thick / 2).toFixed(2);
    let below = 0;
    most("tokensAfter").after.forEach((tokens, part) => {
      if (tokens) {
        paths[part].push(piece(left, yOf(below), yOf(below + tokens)));
        below += tokens;
      }
    });
    const { tokensBefore } = most("tokensBefore");
    if (tokensBefore > below) {
      ghosts.push(piece(left, yOf(below), yOf(tokensBefore)));
    }
    if (those.some((row) => row.error || row.outcome === "gave up")) {
      failed.push(piece(left, chart.bottom, plot.top));
    }
    const { window } = those.at(-1);
    if (window !== windows.at(-1)?.[0]) {
      windows.push([window, plot.left + bar * chart.slot]);
    }
  }
  const line = windows.map(([window, x], n) => `${n ? "L" : "M"}${x} ${yOf(window)}H${windows[n + 1]?.[1] ?? chart.width - plot.right}`);
  return [
    svg("path", { class: "failed", d: failed.join("") }),
    ...report.parts.map((part, index) => svg("path", { class: `part-${part}`, d: paths[index].join("") })),
    svg("path", { class: "ghost", d: ghosts.join("") }),
    svg("path", { class: "limit", d: line.join("") }),
  ];
}

function drawChart() {
  layOut();
  const { area, width, thick } = chart;
  const text = (x, y, anchor, words, kind) => svg("text", { class: kind, x, y, "text-anchor": anchor }, words);
  const grid = steps(chart.top).flatMap((tokens) => [
    svg("line", { class: "grid", x1: plot.left, x2: width - plot.right, y1: yOf(tokens), y2: yOf(tokens) }),
    text(plot.left - 7, yOf(tokens) + 4, "end", compact.format(tokens)),
  ]);
  const names = labels().map(([number, name]) =>
    text(Math.min(Math.max(xOf(number), plot.left + 18), width - 24), plot.height - 4, "middle", visible(name)));
  const last = requests.at(-1)?.window ?? report.window;
  const limit = text(width - plot.right - 2, yOf(last) - 4, "end", t("window {0}", say(last)), "limit-name");
  chart.here = svg("rect", { class: "here", x: -99, y: plot.top, width: Math.max(thick, 3), height: chart.bottom - plot.top });
  area.setAttribute("viewBox", `0 0 ${width} ${plot.height}`);
  area.replaceChildren();
  fill(area, [grid, names, bars(), limit, chart.here, marks()]);
  setAt(chart.at);
}

/** Shows which request is looked at. */
function setAt(number) {
  chart.at = number;
  if (number === null || !chart.here) {
    return;
  }
  chart.here.setAttribute("x", xOf(number) - Math.max(chart.thick, 3) / 2);
  for (const mark of chart.area.querySelectorAll(".mark")) {
    const isCurrent = Number(mark.dataset.from) <= number && number <= Number(mark.dataset.to);
    mark.classList.toggle("current", isCurrent);
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
function labels() {
  const count = Math.max(Math.min(Math.floor(chart.inner / 64), requests.length), 1);
  const found = [];
  let last = null;
  for (let n = 0; requests.length && n < count; n += 1) {
    const number = Math.floor((n * requests.length) / count);
    const { turn } = requests[number];
    if (turn !== null && turn !== last) {
      found.push([number, t("turn {0}", say(turn))]);
      last = turn;
    }
  }
  return found;
}

/** Returns a sentence for each attempt that was refused. */
function refusalsOf(request) {
  return request.refusals.map(([size, kind, limit, isReported]) => {
    const tokens = about(size, isReported);
    if (kind === "silent") {
      return t("The server read {0} tokens of it and cut the rest in silence.", say(limit ?? 0));
    }
    if (kind === "reasoning") {
      return t("Refused without the model's reasoning.");
    }
    return limit ? t("Refused at {0} tokens: the server takes {1}.", tokens, say(limit))
      : t("Refused at {0} tokens.", tokens);
  });
}

/** Returns the same, and whether it was sent again. */
function attemptsOf(request) {
  return [...refusalsOf(request), ...(request.isRetried ? [t("Sent again with {0} tokens.", about(request.tokensAfter, request.isReported))] : [])];
}

/** Returns a mark for each bar, or for those close together, with a request that was refused or cut anew. */
function marks() {
  const perMark = chart.perBar * Math.max(Math.ceil(closestMarks / chart.slot), 1);
  const made = [];
  for (let first = 0; first < requests.length; first += perMark) {
    const those = requests.slice(first, first + perMark);
    const one = those.find((request) => request.refusals.length) ?? those.find(isMarked);
    if (!one) {
      continue;
    }
    const isRefused = one.refusals.length > 0;
    const told = isRefused ? refusalsOf(one).join(" ") : t("{0} cut", plural(one.cutMessages, "message"));
    const says = `${t("Request {0}", say(one.number + 1))}: ${told}`;
    const [x, y] = [xOf(one.number), isRefused ? yOf(Math.min(one.refusals[0][0], chart.top)) : chart.bottom];
    made.push(svg("g", {
      class: isRefused ? "mark refused" : "mark", role: "button", tabindex: -1, "aria-label": says,
      "data-from": first, "data-to": first + perMark - 1, "data-request": one.number,
    },
    svg("title", {}, says),
    svg("rect", { x: x - 8, y: y - 10, width: 16, height: 20 }),
    isRefused ? svg("path", { d: `M${x - 5} ${y - 5}l10 10m0 -10l-10 10` }) : svg("circle", { cx: x, cy: y, r: 3 })));
  }
  return made;
}

function isMarked(request) {
  return request.refusals.length > 0 || request.cutMessages > 0;
}

/** Makes the chart and keeps it as wide as its place. */
function startChart(onLook, onOpen) {
  const most = (name) => say(largest(requests.map((request) => request[name])));
  // What is inside of an image is not there for a screen reader: marks are.
  chart.area = svg("svg", {
    height: plot.height, role: "group",
    "aria-label": t("Tokens of {0}: at most {1} sent, {2} without compression",
      plural(requests.length, "request"), most("tokensAfter"), most("tokensBefore")),
  });
  byId("sent").replaceChildren(chart.area);
  const redraw = () => chart.area.parentNode.clientWidth !== chart.width && drawChart();
  new ResizeObserver(redraw).observe(byId("requests"));
  redraw();
  const at = (event) => {
    const box = chart.area.getBoundingClientRect();
    return numberAt(((event.clientX - box.left) * chart.width) / box.width);
  };
  const markOf = (event) => event.target.closest(".mark")?.dataset.request;
  chart.area.addEventListener("pointermove", (event) => event.pointerType === "mouse" && onLook(at(event)));
  chart.area.addEventListener("pointerleave", () => onLook(null));
  chart.area.addEventListener("click", (event) => onOpen(Number(markOf(event) ?? at(event))));
}
