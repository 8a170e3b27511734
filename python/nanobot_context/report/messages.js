"use strict";

// The list of messages as the selected request sent it, by turns. Only the rows that are seen are elements, so that
// 5,000 messages cost what 20 do.

const outside = 6; // rows beyond either edge, so that a quick scroll shows no gap

const list = {
  shown: [], // rows: `{ message }`, or `{ turn, members }` for the head of a turn
  fates: fates(requests.length - 1),
  oldest: 0,
  folded: new Set(),
  active: -1, // index into `shown`
  rowHeight: 52,
  first: -1,
  last: -1,
  waiting: 0, // the timer of a search that is still being typed
};

const lowered = [];

function lowerText(message) {
  lowered[message.index] ??= `${message.tool ?? ""}\n${message.text}`.toLowerCase();
  return lowered[message.index];
}

/** Returns what became of a message in the selected request. */
function fateOf(message) {
  const { of, first } = list.fates;
  if (first !== null && message.index < first && !["system", "developer"].includes(message.role)) {
    return { state: "not asked for", cut: null };
  }
  return of.get(message.index) ?? { state: "kept", cut: null };
}

/** Returns the tokens of what the selected request sent of a message. */
function sentTokens(message) {
  const { state, cut } = fateOf(message);
  return state === "kept" ? message.tokens : cut?.tokensAfter ?? 0;
}

function matches(message, words, role, state) {
  const fate = fateOf(message);
  const states = [fate.state, fate.cut?.reason, fate.state !== "kept" && "cut"];
  return (state === "" || states.includes(state)) && (role === "" || message.role === role) &&
    (words === "" || lowerText(message).includes(words));
}

/** Shows the list as the selected request sent it, those rows of it that the filters leave. */
function listMessages({ isMove = false } = {}) {
  clearTimeout(list.waiting);
  list.fates = fates(page.selected);
  const { of, first, stop } = list.fates;
  // Where what was kept begins: what is before it went by its age.
  list.oldest = first ?? 0;
  while (list.oldest < (stop ?? 0) && (of.get(list.oldest)?.state === "left out" || messages[list.oldest].role === "system")) {
    list.oldest += 1;
  }
  const words = byId("search").value.toLowerCase();
  const [role, state] = [byId("role").value, byId("state").value];
  const active = list.shown[list.active];
  const all = stop === null ? [] : messages.slice(0, stop);
  const left = all.filter((message) => matches(message, words, role, state));
  list.shown = [];
  let head = null;
  for (const message of left) {
    if (head?.turn !== message.turn) {
      head = { turn: message.turn, members: [] };
      list.shown.push(head);
    }
    head.members.push(message);
    if (!list.folded.has(message.turn)) {
      list.shown.push({ message });
    }
  }
  const isSame = (row) => active && (active.message ? row.message === active.message : row.turn === active.turn);
  list.active = list.shown.findIndex(isSame);
  byId("count").textContent = left.length === all.length
    ? plural(all.length, "message") : t("{0} of {1}", say(left.length), plural(all.length, "message"));
  byId("none").textContent = t(stop === null ? "What this request had is not in the session." : "No message is like that.");
  byId("none").hidden = left.length > 0;
  byId("list").hidden = left.length === 0;
  if (!isMove) {
    byId("list").scrollTop = 0;
  }
  drawRows(true);
  if (list.active >= 0 && !isMove) {
    activate(list.active);
  }
}

/**
 * Puts the rows that are seen into the list; all of them anew where `isOther`. Those that stay are not touched: an element that
 * is taken away under a pressed button gets no click.
 */
function drawRows(isOther = false) {
  const box = byId("list");
  const rows = byId("rows");
  rows.style.height = `${list.shown.length * list.rowHeight}px`;
  const first = Math.max(Math.floor(box.scrollTop / list.rowHeight) - outside, 0);
  const last = Math.min(Math.ceil((box.scrollTop + box.clientHeight) / list.rowHeight) + outside, list.shown.length);
  const [begin, end] = isOther || first >= list.last || last <= list.first ? [first, first] : [list.first, list.last];
  for (const node of [...rows.children]) {
    const place = Number(node.dataset.place);
    if (isOther || place < first || place >= last) {
      node.remove();
    }
  }
  const made = (from, to) => list.shown.slice(from, to).map((one, offset) => row(one, from + offset));
  rows.prepend(...made(first, begin));
  rows.append(...made(end, last));
  [list.first, list.last] = [first, last];
  setActiveRow();
}

function row(one, place) {
  const attributes = {
    role: "option", id: `row-${place}`, "aria-setsize": list.shown.length, "aria-posinset": place + 1,
    "aria-selected": "false", "data-place": place,
  };
  const node = one.message ? messageRow(one.message, attributes) : turnRow(one, attributes);
  node.style.transform = `translateY(${place * list.rowHeight}px)`;
  return node;
}

function turnRow({ turn, members }, attributes) {
  const cut = members.filter((message) => fateOf(message).state !== "kept").length;
  const isFolded = list.folded.has(turn);
  const facts = [plural(members.length, "message"), cut > 0 && t("{0} cut", say(cut))].filter(Boolean).join(t(", "));
  return el("div", { ...attributes, class: "row turn", "aria-expanded": String(!isFolded) },
    el("span", { class: "number" }, isFolded ? "▸" : "▾"),
    el("b", {}, turn ? t("Turn {0}", say(turn)) : t("Before the first turn")),
    el("span", { class: "text" }, facts),
    el("span", { class: "tokens" }, say(sum(members.map((message) => message.tokens))),
      cut > 0 && el("small", {}, t("→ {0} sent", say(sum(members.map(sentTokens)))))));
}

function messageRow(message, attributes) {
  const { state, cut } = fateOf(message);
  const text = report.isRedacted ? t("{0} characters", say(message.length)) : beginning(message.text, 300);
  return el("div", { ...attributes, class: `row ${state.replaceAll(" ", "-")}` },
    el("span", { class: "number" }, say(message.index + 1)),
    el("span", { class: `role swatch-${partOfRole[message.role] ?? message.role}` }, message.role),
    el("span", { class: "text" }, quoted((message.tool ? `${message.tool}: ` : "") + text)),
    el("span", { class: "tokens" }, say(message.tokens),
      state !== "kept" && el("small", {}, state === "shortened" ? t("→ {0} sent", say(cut.tokensAfter)) : t(state))));
}

function setActiveRow() {
  for (const node of byId("rows").children) {
    const isActive = Number(node.dataset.place) === list.active;
    node.classList.toggle("active", isActive);
    node.setAttribute("aria-selected", String(isActive));
  }
  const box = byId("list");
  if (byId(`row-${list.active}`)) {
    box.setAttribute("aria-activedescendant", `row-${list.active}`);
  } else {
    box.removeAttribute("aria-activedescendant");
  }
}

/** Makes the row at a place of the list the active one, and brings it into sight. */
function activate(place) {
  const box = byId("list");
  list.active = Math.min(Math.max(place, 0), list.shown.length - 1);
  const top = list.active * list.rowHeight;
  if (top < box.scrollTop) {
    box.scrollTop = top;
  } else if (top + list.rowHeight > box.scrollTop + box.clientHeight) {
    box.scrollTop = top + list.rowHeight - box.clientHeight;
  }
  drawRows();
  setActiveRow();
}

function foldTurn(turn) {
  list.folded[list.folded.has(turn) ? "delete" : "add"](turn);
  listMessages({ isMove: true });
}

/** Opens the active row: a message, or what a turn folds. */
function enter(onOpen) {
  const one = list.shown[list.active];
  if (one?.message) {
    onOpen(one.message);
  } else if (one) {
    foldTurn(one.turn);
  }
}

/** Makes the list work; `onOpen` is given the message that is to be shown. */
function startMessages(onOpen, onMove) {
  const box = byId("list");
  const option = (value, name) => el("option", { value }, name);
  const roles = [...new Set(messages.map((message) => message.role))];
  byId("role").append(option("", t("All roles")), ...roles.map((role) => option(role, role)));
  const known = [...new Set(report.cuts.map(([, , reason]) => reason))];
  byId("state").append(
    option("", t("Kept and cut")), option("cut", t("All that was cut")),
    ...["kept", "shortened", "left out"].map((state) => option(state, capital(t(state)))),
    ...known.map((reason) => option(reason, t("Cut: {0}", t(reasons[reason] ?? reason)))),
  );
  byId("search").addEventListener("input", () => {
    clearTimeout(list.waiting);
    list.waiting = setTimeout(listMessages, 80);
  });
  byId("role").addEventListener("change", () => listMessages());
  byId("state").addEventListener("change", () => listMessages());
  byId("fold").addEventListener("click", () => {
    const isFolded = list.folded.size === 0;
    list.folded = new Set(isFolded ? messages.map((message) => message.turn) : []);
    byId("fold").setAttribute("aria-pressed", String(isFolded));
    listMessages();
  });
  byId("filters").addEventListener("submit", (event) => {
    event.preventDefault();
    listMessages();
    box.focus();
  });
  box.addEventListener("scroll", () => drawRows(), { passive: true });
  box.addEventListener("click", (event) => {
    const node = event.target.closest(".row");
    if (node) {
      activate(Number(node.dataset.place));
      enter(onOpen);
    }
  });
  box.addEventListener("keydown", (event) => {
    const rows = Math.max(Math.floor(box.clientHeight / list.rowHeight) - 1, 1);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: rows, PageUp: -rows, Home: -Infinity, End: Infinity };
    if (event.key in moves) {
      event.preventDefault();
      event.stopPropagation();
      activate(Math.max(list.active, event.key === "ArrowUp" ? 0 : list.active) + moves[event.key]);
      onMove(list.shown[list.active]?.message);
    } else if (event.key === "Enter") {
      event.preventDefault();
      enter(onOpen);
    }
  });
  new ResizeObserver(() => {
    const before = list.rowHeight;
    list.rowHeight = matchMedia("(max-width: 40rem)").matches ? 60 : 52;
    drawRows(list.rowHeight !== before);
  }).observe(box);
}
