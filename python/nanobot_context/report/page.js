"use strict";

// The page as a whole: its head, its keys, and which request is looked at.

const page = { selected: 0, setCharts: () => {} };

/** Makes a request the one that is looked at; opens it where asked to, or where one is open. */
page.select = (number, { open = false } = {}) => {
  if (!requests.length) {
    return;
  }
  page.selected = Math.min(Math.max(number, 0), requests.length - 1);
  look(page.selected);
  byId("at").value = page.selected;
  byId("at").setAttribute("aria-valuetext", aboutRequest(requests[page.selected]));
  if (open || detail.request) {
    openRequest(requests[page.selected], { keepFocus: !open });
  }
};

/** Shows the numbers of a request; of the selected one where there is none. */
function look(number) {
  const request = requests[number ?? page.selected];
  if (!request) {
    return;
  }
  page.setCharts(request.number);
  const fact = (name, value, kind) => el("span", { class: kind ?? "" }, `${name} `, el("b", {}, value));
  byId("readout").replaceChildren(...[
    fact("request", `${say(request.number + 1)} of ${say(requests.length)}`),
    fact("turn", say(request.turn)),
    fact("before", say(request.tokensBefore)),
    request.error ? el("span", { class: "bad" }, "cannot be sent") : fact("sent", say(request.tokensAfter)),
    !request.error && fact("reused", percent(request.reused, request.tokensAfter)),
    request.cuts.length > 0 && fact("new cuts", say(request.cuts.length)),
  ].filter(Boolean));
}

function aboutRequest(request) {
  const name = `Request ${request.number + 1} of ${requests.length}, turn ${request.turn}`;
  const sent = request.error ? "cannot be sent" : `${plural(request.tokensAfter, "token")} sent`;
  const cuts = request.cuts.length ? `, ${plural(request.cuts.length, "new cut")}` : "";
  return `${name}: ${say(request.tokensBefore)} before, ${sent}${cuts}`;
}

/** Returns the large numbers below the title: name, number, words, and whether it is a bad one. */
function figures() {
  return report.recorded.length ? recordedFigures() : replayedFigures();
}

function recordedFigures() {
  const refused = sum(recorded.map((one) => one.refused.length));
  const smaller = recorded.filter((one) => one.before > one.sent && one.outcome === "answered");
  const unanswered = recorded.filter((one) => one.outcome !== "answered").length;
  const reported = recorded.filter((one) => one.prompt !== null);
  const last = recorded.at(-1);
  return [
    ["Sent", plural(recorded.length, "request"), `the newest at a window of ${say(last.window)}`],
    ["Largest request", compact.format(largest(recorded.map((one) => one.sent))),
      `${compact.format(largest(recorded.map((one) => one.before)))} uncompressed`],
    ["Made to fit", plural(smaller.length, "request"),
      `${compact.format(sum(smaller.map((one) => one.before - one.sent)))} tokens not sent`],
    ["Refused", plural(refused, "attempt"), refused ? "as too large, then sent again smaller" : "none was too large"],
    ["Cache reuse", percent(sum(reported.map((one) => one.cached ?? 0)), sum(reported.map((one) => one.prompt))),
      "of all prompt tokens, as reported"],
    ...(unanswered ? [["Not answered", plural(unanswered, "request"), "an error, or too large for any repair", "bad"]] : []),
  ];
}

function replayedFigures() {
  const most = (name) => compact.format(largest(requests.map((request) => request[name])));
  const total = (name) => sum(requests.map((request) => request[name]));
  const failed = requests.filter((request) => request.error).length;
  const over = requests.filter((request) => request.over).length - failed;
  const fitted = requests.filter((request) => request.tokensBefore > report.window).length - failed;
  const left = (state) => messages.filter((message) => message.state === state).length;
  const problems = [failed && `${say(failed)} cannot be sent`, over && `${say(over)} in the room for the answer`];
  return [
    ["Conversation", plural(messages.length, "message"),
      `${plural(messages.at(-1)?.turn ?? 0, "turn")}, ${plural(requests.length, "request")}`],
    ["Largest request", most("tokensAfter"),
      `of ${compact.format(report.budget)} allowed; ${most("tokensBefore")} uncompressed`],
    ["Made to fit", plural(fitted, "request"), fitted ? "larger than the window before" : "none was larger than the window"],
    ["Cut by now", plural(left("shortened") + left("left out"), "message"),
      `${say(left("shortened"))} shortened, ${say(left("left out"))} left out`],
    ["Cache reuse", percent(total("reused"), total("tokensAfter")), "of all tokens sent"],
    ...(failed || over ? [["Too large", plural(failed + over, "request"), problems.filter(Boolean).join(", "), "bad"]] : []),
  ];
}

function showHead() {
  const counts = report.counted === "exact" ? "exact" : "estimates";
  const hasPrompt = messages.some((message) => ["system", "developer"].includes(message.role));
  byId("name").append(quoted(report.name));
  byId("facts").append(
    quoted(report.model ?? "no model named"), ` · window ${say(report.window)} tokens · ${report.counted} counts`,
    recorded.length ? fragment(" · ", quoted(recorded.at(-1).source)) : " · replay",
  );
  byId("figures").append(...figures().map(([name, number, note, kind]) => el("div", { class: kind },
    el("dt", {}, name), el("dd", { class: "big" }, number), el("dd", { class: "small" }, note))));
  const isThere = (_, part) => requests.some((request) => request.before[part]);
  const swatch = (part) => el("li", { class: `swatch-${part}` }, partNames[part]);
  byId("legend").append(...report.parts.filter(isThere).map(swatch));
  const note = "What stands here has no system prompt: what nanobot adds to a request is not counted.";
  byId("footer").append(
    recorded.length ? "What was sent is from the record. The rest is a replay, not what was sent: " : "",
    "Replayed from ", quoted(report.source), ` by nanobot-context ${report.version}. `,
    `Token counts are ${counts}; no model was called. `,
    hasPrompt || !messages.length ? "" : note,
  );
}

const themes = { "": "Auto", light: "Light", dark: "Dark" };

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = themes[theme];
  byId("theme").setAttribute("aria-label", `Colours: ${themes[theme]}`);
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
      page.select(withCuts(direction));
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

/** Returns the nearest request in a direction that cuts something; the selected one where there is none. */
function withCuts(direction) {
  for (let number = page.selected + direction; requests[number]; number += direction) {
    if (requests[number].cuts.length) {
      return number;
    }
  }
  return page.selected;
}

showHead();
setTheme("");
showExtras();
byId("requests").hidden = requests.length === 0;
byId("at").max = Math.max(requests.length - 1, 0);
page.setCharts = drawCharts(look, (number) => page.select(number, { open: true }));
startMessages((message) => openMessage(message), (message) => detail.message && openMessage(message, { keepFocus: true }));
page.select(requests.length - 1);
byId("at").addEventListener("input", () => page.select(Number(byId("at").value)));
byId("theme").addEventListener("click", nextTheme);
byId("help").addEventListener("click", () => byId("keys").showModal());
document.addEventListener("keydown", onKey);
