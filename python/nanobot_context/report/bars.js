"use strict";

// Stacked bars over requests. One path for each part, however many requests there are: where they are more than there are
// pixels for, a bar stands for several requests and shows the largest of them, or their mean.

const plot = { left: 46, right: 6, top: 14, bottom: 20 };
const widestBar = 44;
const narrowestSlot = 2;
const closestMarks = 13;

/**
 * Returns a chart in `figure`. `look` says what it shows: `rows`, and of each row `stack` (its numbers, one for each of
 * `parts`) and `label`; how several rows `merge` to one bar; `title`, `note`, `says` (for those who cannot see it),
 * `height`, `limits` (lines across it) and `marks`.
 */
function chart(figure, look) {
  // What is inside of an image is not there for a screen reader: marks are.
  const area = svg("svg", { height: look.height, role: look.marks ? "group" : "img", "aria-label": look.says });
  figure.replaceChildren(el("figcaption", {}, look.title, " ", el("small", {}, look.note)), area);
  return { limits: [], ...look, area, width: 0, at: null };
}

/** Sets where things are in a chart of the width that it has now. */
function layOut(chart) {
  const { rows, limits, height } = chart;
  chart.width = Math.max(chart.area.parentNode.clientWidth, 120);
  chart.inner = chart.width - plot.left - plot.right;
  chart.bottom = height - plot.bottom;
  const highest = [1, ...rows.map((row) => sum(chart.stack(row))), ...limits.map((limit) => limit.value)];
  chart.top = largest(highest) * 1.04;
  chart.perBar = Math.ceil(rows.length / Math.max(Math.floor(chart.inner / narrowestSlot), 1));
  chart.bars = Math.ceil(rows.length / chart.perBar);
  chart.slot = chart.inner / Math.max(chart.bars, 1);
  chart.thick = chart.slot < 4 ? chart.slot : Math.min(chart.slot - Math.min(chart.slot * 0.2, 4), widestBar);
  chart.x = (number) => plot.left + (Math.floor(number / chart.perBar) + 0.5) * chart.slot;
  chart.y = (tokens) => chart.bottom - (tokens / chart.top) * (chart.bottom - plot.top);
  chart.numberAt = (x) => {
    const bar = Math.floor((x - plot.left) / chart.slot);
    return Math.min(Math.max(bar * chart.perBar + Math.floor(chart.perBar / 2), 0), rows.length - 1);
  };
}

/** Returns the paths of the parts, and one behind them over the bars of what could not be sent. */
function bars(chart) {
  const paths = chart.parts.map(() => []);
  const failed = [];
  const piece = (left, from, to) =>
    `M${left} ${from.toFixed(2)}h${chart.thick.toFixed(2)}V${to.toFixed(2)}h-${chart.thick.toFixed(2)}z`;
  for (let bar = 0; bar < chart.bars; bar += 1) {
    const those = chart.rows.slice(bar * chart.perBar, (bar + 1) * chart.perBar);
    const left = (plot.left + (bar + 0.5) * chart.slot - chart.thick / 2).toFixed(2);
    let below = 0;
    chart.merge(those.map(chart.stack)).forEach((tokens, part) => {
      if (tokens) {
        paths[part].push(piece(left, chart.y(below), chart.y(below + tokens)));
        below += tokens;
      }
    });
    if (those.some((row) => row.error)) {
      failed.push(piece(left, chart.bottom, plot.top));
    }
  }
  return [
    svg("path", { class: "failed", d: failed.join("") }),
    ...chart.parts.map((part, index) => svg("path", { class: `part-${part}`, d: paths[index].join("") })),
  ];
}

function drawChart(chart) {
  layOut(chart);
  const { area, height, width, thick } = chart;
  const across = (kind, tokens) =>
    svg("line", { class: kind, x1: plot.left, x2: width - plot.right, y1: chart.y(tokens), y2: chart.y(tokens) });
  const text = (x, y, anchor, words, kind) => svg("text", { class: kind, x, y, "text-anchor": anchor }, words);
  const grid = steps(chart.top).flatMap((tokens) =>
    [across("grid", tokens), text(plot.left - 7, chart.y(tokens) + 4, "end", compact.format(tokens))]);
  const names = labels(chart).map(([number, name]) =>
    text(Math.min(Math.max(chart.x(number), plot.left + 18), width - 24), height - 4, "middle", visible(name)));
  const limits = chart.limits.flatMap(({ value, kind, name }) =>
    [across(kind, value), name && text(width - plot.right - 2, chart.y(value) - 4, "end", name, "limit-name")]);
  const here = { class: "here", x: -99, y: plot.top, width: Math.max(thick, 3), height: chart.bottom - plot.top };
  chart.here = svg("rect", here);
  area.setAttribute("viewBox", `0 0 ${width} ${height}`);
  area.replaceChildren();
  fill(area, [grid, names, bars(chart), limits, chart.here, chart.marks ? marks(chart) : []]);
  setAt(chart, chart.at);
}

/** Shows which request is looked at. */
function setAt(chart, number) {
  chart.at = number;
  if (number !== null && chart.here) {
    chart.here.setAttribute("x", chart.x(number) - Math.max(chart.thick, 3) / 2);
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
function labels(chart) {
  const count = Math.max(Math.min(Math.floor(chart.inner / (chart.perLabel ?? 64)), chart.rows.length), 1);
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

/** Returns a mark for each bar, or for those close together, whose requests cut something; the larger, the more. */
function marks(chart) {
  const perMark = chart.perBar * Math.max(Math.ceil(closestMarks / chart.slot), 1);
  const freedBy = (request) => sum(request.cuts.map(freed));
  const made = [];
  for (let first = 0; first < chart.rows.length; first += perMark) {
    const those = chart.rows.slice(first, first + perMark).filter((request) => request.cuts.length);
    if (those.length) {
      const most = those.reduce((one, other) => (freedBy(other) > freedBy(one) ? other : one));
      const cuts = plural(sum(those.map((request) => request.cuts.length)), "cut");
      const says = `Request ${say(most.number + 1)}: ${cuts}, ${plural(freedBy(most), "token")} less`;
      const share = Math.min(Math.max(freedBy(most), 0) / report.window, 1);
      const x = chart.x(most.number);
      made.push(svg("g", {
        class: "mark", role: "button", tabindex: -1, "aria-label": says,
        "data-from": first, "data-to": first + perMark - 1, "data-request": most.number,
      },
      svg("title", {}, says),
      svg("rect", { x: x - 8, y: chart.bottom - 10, width: 16, height: 20 }),
      svg("circle", { cx: x, cy: chart.bottom, r: 2.5 + 3.5 * Math.sqrt(share) })));
    }
  }
  return made;
}
