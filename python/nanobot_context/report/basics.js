"use strict";

// Whatever a conversation holds reaches the page through `textContent` and attributes made here: nothing is parsed as
// markup, and no text becomes an address, a style or a handler.

const report = JSON.parse(document.getElementById("data").textContent);
const phrases = Object.assign(Object.create(null), JSON.parse(document.getElementById("phrases").textContent));
const language = document.documentElement.lang;

const requests = report.requests.map((columns, number) => {
  const [at, turn, first, stop, before, after, window, reused, answer, refusals, outcome, isSubagent, error, lost,
    lostNames, cutMessages, restored, leftOut, isRetried, isReported, isBeforeReported, otherCuts] = columns;
  return {
    number, at, turn, first, stop, before, after, window: window ?? report.window, reused, answer, refusals, outcome,
    isSubagent, error, lost, lostNames, cutMessages, restored, leftOut, isRetried, isReported, isBeforeReported,
    otherCuts, cuts: [], tokensBefore: sum(before), tokensAfter: sum(after),
  };
});

const messages = report.messages.map(([turn, role, tool, tokens, text, length], index) =>
  ({ index, turn, role, tool, tokens, length, text: report.texts[text] }));

for (const [request, index, reason, tokensAfter, kept, keptIn] of report.cuts) {
  requests[request].cuts.push({ request, index, reason, tokensAfter, kept, keptIn });
}
for (const request of requests) {
  request.turn ??= messages[(request.stop ?? 0) - 1]?.turn ?? null;
}

const replaced = new Map(report.replaced.map(([index, why, later]) => [index, { why, later }]));

const partNames = {
  system: "System", schemas: "Schemas, framing", user: "User", assistant: "Assistant", tool: "Tool results",
  fixed: "System and tools", conversation: "Conversation",
};
const partOfRole = { __proto__: null, developer: "system", function: "tool" };

// Without a prototype, where a name that somebody else gave is looked up: "constructor" is no reason.
const reasons = {
  __proto__: null,
  orphan_result: "a result whose call is not there",
  late_result: "a result that came late, moved behind its call",
  missing_result: "a call without its result: a note stands in for it",
  malformed_call: "a call that providers refuse, repaired",
  reasoning: "old reasoning",
  large_result: "one tool result above its share of the window",
  many_results: "tool results together above their share of the window",
  long_message: "a long older message",
  joined: "joined with another",
  budget: "the request was larger than its room",
};

const commas = new Intl.NumberFormat(language);
const compact = new Intl.NumberFormat(language, { notation: "compact", maximumSignificantDigits: 3 });

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}

function largest(numbers) {
  return numbers.reduce((one, other) => Math.max(one, other), 0);
}

/** Returns a phrase in the language of the page, with values in place of `{0}`, `{1}` and so on. */
function t(phrase, ...values) {
  return (phrases[phrase] ?? phrase).replace(/\{(\d)\}/g, (_, place) => values[place]);
}

/** Returns the parts of a phrase around elements that stand in it in place of `{0}` and so on. */
function parts(phrase, ...nodes) {
  return (phrases[phrase] ?? phrase).split(/\{(\d)\}/).map((part, n) => (n % 2 ? nodes[part] : part));
}

/** Returns a number as it is read: 12,345. */
function say(number) {
  return commas.format(number);
}

/** Returns a number of tokens of a request as it is read, marked where it is an estimate. */
function about(number, isReported) {
  return isReported ? say(number) : t("about {0}", say(number));
}

function plural(number, noun) {
  const known = phrases[`{0} ${noun}s`];
  return known ? known.replace("{0}", say(number)) : `${say(number)} ${noun}${number === 1 ? "" : "s"}`;
}

function freed(cut) {
  return messages[cut.index].tokens - cut.tokensAfter;
}

function percent(part, whole) {
  return whole ? `${Math.round((100 * part) / whole)} %` : "–";
}

function byId(id) {
  return document.getElementById(id);
}

/** Returns a text with everything visible that would hide, or turn the text around it. */
function visible(text) {
  return text.replaceAll("\r\n", "\n").replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, (char) => {
    const code = char.charCodeAt(0);
    return code === 0x7f ? "\u2421" : String.fromCharCode(0x2400 + code);
  }).replace(/[\u0080-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]/gu, (char) =>
    `[U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
}

function fill(node, children) {
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) {
      node.append(typeof child === "object" ? child : String(child));
    }
  }
  return node;
}

function setAll(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") {
      node.addEventListener("click", value);
    } else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  return node;
}

/** Returns a new element; strings among `children` become text. */
function el(name, attributes = {}, ...children) {
  return fill(setAll(document.createElement(name), attributes), children);
}

function svg(name, attributes = {}, ...children) {
  return fill(setAll(document.createElementNS("http://www.w3.org/2000/svg", name), attributes), children);
}

/** Returns children for another node. */
function fragment(...children) {
  return fill(document.createDocumentFragment(), children);
}

/** Returns a button that looks like words. */
function plainButton(name, onclick) {
  return el("button", { type: "button", class: "plain", onclick }, name);
}

/** Returns the first characters of a text, none of them halved. */
function beginning(text, length) {
  return text.slice(0, length).replace(/[\ud800-\udbff]$/, "");
}

/** Returns somebody else's words, which turn nothing around them. */
function quoted(text) {
  return el("bdi", {}, visible(text));
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

/** Returns what became of the messages in a request: by index `state`, `cut`; and where it begins and ends. */
function fates(number) {
  const request = requests[number];
  const { first, stop } = request ?? { first: 0, stop: messages.length };
  const of = new Map();
  const take = (cut) => of.set(cut.index, { state: cut.tokensAfter ? "shortened" : "left out", cut });
  if (report.isRecord) {
    for (const [from, to] of request?.leftOut ?? []) {
      for (let index = from; index <= to; index += 1) {
        of.set(index, { state: "left out", cut: null });
      }
    }
    request?.cuts.forEach(take);
  } else {
    for (let n = 0; n <= number && requests[n]; n += 1) {
      requests[n].restored.forEach((index) => of.delete(index));
      requests[n].cuts.forEach(take);
    }
  }
  for (const [index, { cut }] of of) {
    if (["joined", "late_result"].includes(cut?.reason)) {
      of.delete(index);
    }
  }
  return { of, first, stop };
}

/** Returns why a message is not sent whole: what stands for it, or what else decided. */
function why(message, fate, oldest) {
  const later = replaced.get(message.index);
  // What stands in one that was cut itself is nothing to go by.
  const isGone = later?.why === "repeated" && list.fates.of.has(later.later);
  if (later && !isGone && later.later < (requests[page.selected]?.stop ?? Infinity)) {
    const link = plainButton(`#${say(later.later + 1)}`, () => openMessage(messages[later.later]));
    const said = {
      repeated: "the same stands in {0}", again: "the same call was made again: {0}", changed: "the file was written since: {0}",
      rewritten: "a newer version stands in {0}",
    };
    return fragment(...parts(said[later.why], link));
  }
  const reason = fate.cut?.reason ?? "budget";
  if (reason !== "budget") {
    return t(reasons[reason] ?? reason);
  }
  return t(message.index < oldest ? "one of the oldest rounds" : "worth less for its tokens than what stayed");
}
