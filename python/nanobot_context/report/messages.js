"use strict";

// The list of messages. Only the rows that are seen are elements, so that 5,000 messages cost what 20 do.

const outside = 6; // rows beyond either edge, so that a quick scroll shows no gap

const list = {
  shown: messages, // those that the filters leave
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

function matches(message, words, role, state) {
  const states = [message.state, message.reason, message.state !== "kept" && "cut"];
  const hasState = state === "" || states.includes(state);
  return hasState && (role === "" || message.role === role) && (words === "" || lowerText(message).includes(words));
}

function filterMessages() {
  clearTimeout(list.waiting);
  const words = byId("search").value.toLowerCase();
  const [role, state] = [byId("role").value, byId("state").value];
  const active = list.shown[list.active];
  list.shown = messages.filter((message) => matches(message, words, role, state));
  list.active = active ? list.shown.indexOf(active) : -1;
  byId("count").textContent = list.shown.length === messages.length
    ? plural(messages.length, "message")
    : `${say(list.shown.length)} of ${plural(messages.length, "message")}`;
  byId("none").hidden = list.shown.length > 0;
  byId("list").hidden = list.shown.length === 0;
  byId("list").scrollTop = 0;
  drawRows(true);
  if (list.active >= 0) {
    activate(list.active);
  }
}

/** Puts the rows that are seen into the list; all of them anew where `isOther`. */
function drawRows(isOther = false) {
  const box = byId("list");
  const rows = byId("rows");
  const first = Math.max(Math.floor(box.scrollTop / list.rowHeight) - outside, 0);
  const last = Math.min(Math.ceil((box.scrollTop + box.clientHeight) / list.rowHeight) + outside, list.shown.length);
  if (!isOther && first === list.first && last === list.last) {
    return;
  }
  [list.first, list.last] = [first, last];
  rows.style.height = `${list.shown.length * list.rowHeight}px`;
  rows.replaceChildren(...list.shown.slice(first, last).map((message, offset) => row(message, first + offset)));
  setActiveRow();
}

function row(message, place) {
  const isCut = message.state !== "kept";
  const node = el("div", {
    class: `row ${message.state.replace(" ", "-")}`, role: "option", id: `row-${place}`,
    "aria-setsize": list.shown.length, "aria-posinset": place + 1, "aria-selected": "false", "data-place": place,
  },
  el("span", { class: "number" }, say(message.index + 1)),
  el("span", { class: `role swatch-${partOfRole[message.role] ?? message.role}` }, message.role),
  el("span", { class: "text" }, quoted((message.tool ? `${message.tool}: ` : "") + beginning(message.text, 300))),
  el("span", { class: "tokens" }, say(message.tokens),
    isCut && el("small", {}, message.tokensAfter ? `→ ${say(message.tokensAfter)}` : "left out")));
  node.style.transform = `translateY(${place * list.rowHeight}px)`;
  return node;
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

/** Makes the message at a place of the list the active one, and brings it into sight. */
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

/** Makes the list work; `onOpen` is given the message that is to be shown. */
function startMessages(onOpen, onMove) {
  const box = byId("list");
  const option = (value, name) => el("option", { value }, name);
  const count = (test) => messages.filter(test).length;
  const roles = [...new Set(messages.map((message) => message.role))];
  byId("role").append(option("", "All roles"), ...roles.map((role) => option(role, role)));
  const states = ["kept", "shortened", "left out"].filter((state) => count((message) => message.state === state));
  const known = [...new Set(messages.map((message) => message.reason).filter(Boolean))];
  byId("state").append(
    option("", "Kept and cut"), option("cut", "All that was cut"),
    ...states.map((state) => option(state, capital(state))),
    ...known.map((reason) => option(reason, `Cut: ${inWords(reason)}`)),
  );
  byId("search").addEventListener("input", () => {
    clearTimeout(list.waiting);
    list.waiting = setTimeout(filterMessages, 80);
  });
  byId("role").addEventListener("change", filterMessages);
  byId("state").addEventListener("change", filterMessages);
  byId("filters").addEventListener("submit", (event) => {
    event.preventDefault();
    filterMessages();
    box.focus();
  });
  box.addEventListener("scroll", () => drawRows(), { passive: true });
  box.addEventListener("click", (event) => {
    const node = event.target.closest(".row");
    if (node) {
      activate(Number(node.dataset.place));
      onOpen(list.shown[list.active]);
    }
  });
  box.addEventListener("keydown", (event) => {
    const page = Math.max(Math.floor(box.clientHeight / list.rowHeight) - 1, 1);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in moves) {
      event.preventDefault();
      event.stopPropagation();
      activate(Math.max(list.active, event.key === "ArrowUp" ? 0 : list.active) + moves[event.key]);
      onMove(list.shown[list.active]);
    } else if (event.key === "Enter" && list.shown[list.active]) {
      event.preventDefault();
      onOpen(list.shown[list.active]);
    }
  });
  new ResizeObserver(() => {
    list.rowHeight = matchMedia("(max-width: 40rem)").matches ? 60 : 52;
    drawRows(true);
  }).observe(box);
  filterMessages();
}
