"use strict";

// Whatever a conversation holds reaches the page through `textContent` and attributes made here: nothing is parsed as
// markup, and no text becomes an address, a style or a handler.

const report = JSON.parse(document.getElementById("data").textContent);

const requests = report.requests.map(([position, turn, before, after, reused, over, error], number) => ({
  number, position, turn, before, after, reused, over, error, cuts: [],
  tokensBefore: sum(before), tokensAfter: sum(after),
}));

const messages = report.messages.map((columns, index) => {
  const [turn, role, tool, tokens, state, reason, tokensAfter, firstRequest, text] = columns;
  return { index, turn, role, tool, tokens, state, reason, tokensAfter, firstRequest, text: report.texts[text], cuts: [] };
});

for (const [request, index, reason, tokensBefore, tokensAfter, removed, keptIn] of report.cuts) {
  const cut = { request, index, reason, tokensBefore, tokensAfter, removed: report.texts[removed], keptIn };
  requests[request].cuts.push(cut);
  messages[index].cuts.push(cut);
}

const partNames = {
  system: "System", schemas: "Schemas, framing", user: "User", assistant: "Assistant", tool: "Tool results",
};
const partOfRole = { __proto__: null, developer: "system", function: "tool" };

// Without a prototype, where a name that somebody else gave is looked up: "constructor" is no reason.
const reasons = {
  __proto__: null,
  orphan_result: "a result whose call is not there",
  missing_result: "a call without its result: a note stands in for it",
  malformed_call: "a call that providers refuse, repaired",
  reasoning: "old reasoning",
  large_result: "one tool result above its share of the window",
  many_results: "tool results together above their share of the window",
  long_message: "a long older message",
  joined: "joined with another",
  budget: "the request was over its budget",
};

const commas = new Intl.NumberFormat("en-US");
const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 });

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}

function largest(numbers) {
  return numbers.reduce((one, other) => Math.max(one, other), 0);
}

/** Returns a number as it is read: 12,345. */
function say(number) {
  return commas.format(number);
}

function plural(number, noun) {
  return `${say(number)} ${noun}${number === 1 ? "" : "s"}`;
}

function freed(cut) {
  return cut.tokensBefore - cut.tokensAfter;
}

function inWords(reason) {
  return reasons[reason] ?? reason;
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
