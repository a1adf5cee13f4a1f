// A text area with line numbers, problems at their lines, and completion of names and values.

import { h } from "./elements.js";

const WORD = /[\p{L}\p{N}_$.-]*$/u;
const OWN_WORDS = /(--|#)[^\n]*$|\bas\s+\S*$/i; // a remark, or a new name: nothing is offered unasked

export class Editor {
  constructor(place, label, { onedit, suggest }) {
    const id = place.id;
    this.suggest = suggest;
    this.gutter = h("div", { class: "gutter", "aria-hidden": "true" });
    this.marks = h("div", { class: "marks", "aria-hidden": "true" });
    this.area = h("textarea", {
      id: `${id}-text`, spellcheck: "false", autocomplete: "off", autocapitalize: "off",
      wrap: "off", "aria-autocomplete": "list", "aria-controls": `${id}-list`,
      "aria-describedby": `${id}-problems`, rows: "9",
    });
    this.list = h("ul", { id: `${id}-list`, class: "completions", role: "listbox", hidden: true });
    this.list.setAttribute("aria-label", `Completions for ${label}`);
    this.problems = h("ul", { class: "problems" });
    place.append(
      h("label", { for: `${id}-text`, class: "unseen" }, label),
      h("div", { class: "editor" }, this.gutter, h("div", { class: "sheet" }, this.marks, this.area,
        this.list)),
      h("div", { id: `${id}-problems`, role: "status" }, this.problems),
    );
    this.chosen = -1;
    this.found = [];
    this.area.addEventListener("input", () => { this.number(); this.complete(false); onedit(); });
    this.area.addEventListener("scroll", () => this.scrolled());
    this.area.addEventListener("keydown", (event) => this.pressed(event));
    this.area.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    this.number();
  }

  get value() { return this.area.value; }

  set value(text) {
    if (this.area.value === text) return;
    const { selectionStart, selectionEnd, scrollTop } = this.area;
    this.area.value = text;
    this.area.setSelectionRange(Math.min(selectionStart, text.length),
      Math.min(selectionEnd, text.length));
    this.area.scrollTop = scrollTop;
    this.number();
  }

  number() {
    const lines = this.area.value.split("\n").length;
    if (this.gutter.children.length !== lines) {
      this.gutter.replaceChildren(...Array.from({ length: lines }, (_, i) =>
        h("div", {}, String(i + 1))));
      this.mark(this.told || []);
    }
    this.scrolled();
  }

  scrolled() {
    this.gutter.style.transform = `translateY(${-this.area.scrollTop}px)`;
    this.marks.style.transform = `translateY(${-this.area.scrollTop}px)`;
  }

  get lineHeight() { return parseFloat(getComputedStyle(this.area).lineHeight); }

  mark(told) {
    this.told = told;
    const height = this.lineHeight;
    for (const line of this.gutter.children) line.className = "";
    const lines = new Map();
    for (const one of told) {
      if (lines.get(one.line) !== "wrong") lines.set(one.line, one.warning ? "odd" : "wrong");
    }
    this.marks.replaceChildren(...[...lines].map(([line, kind]) => {
      const place = this.gutter.children[line - 1];
      if (place) place.className = kind;
      const strip = h("div", { class: kind });
      strip.style.top = `${(line - 1) * height}px`;
      return strip;
    }));
  }

  // Problems and warnings: {line, message, warning}.
  tell(told) {
    this.mark(told);
    this.area.setAttribute("aria-invalid", told.some((one) => !one.warning) ? "true" : "false");
    const items = told.slice(0, 20).map((one) => h("li", { class: one.warning ? "odd" : "wrong" },
      h("button", { type: "button", class: "line", onclick: () => this.go(one.line) },
        `${one.warning ? "Warning, line" : "Line"} ${one.line}`), ` ${one.message}`));
    if (told.length > 20) items.push(h("li", {}, `and ${told.length - 20} more`));
    this.problems.replaceChildren(...items);
  }

  go(line) {
    const lines = this.area.value.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    this.area.focus();
    this.area.setSelectionRange(start, start + (lines[line - 1] || "").length);
    this.area.scrollTop = Math.max(0, (line - 3) * this.lineHeight);
  }

  complete(asked) {
    const caret = this.area.selectionStart;
    if (caret !== this.area.selectionEnd) return this.close();
    const before = this.area.value.slice(0, caret);
    const typed = before.match(WORD)[0];
    this.typed = typed;
    if (!asked && (!typed || OWN_WORDS.test(before))) return this.close();
    const low = typed.toLowerCase();
    const all = this.suggest(before.slice(0, before.length - typed.length), this.area.value);
    this.found = all.filter(({ text }) => text.toLowerCase().startsWith(low) && text !== typed);
    this.found = this.found.slice(0, 12);
    if (!this.found.length) return this.close();
    this.chosen = 0;
    this.show();
  }

  show() {
    const id = this.list.id;
    this.list.replaceChildren(...this.found.map((one, i) => h("li", {
      id: `${id}-${i}`, role: "option", "aria-selected": i === this.chosen ? "true" : "false",
      onmousedown: (event) => { event.preventDefault(); this.chosen = i; this.accept(); },
    }, h("span", {}, one.text), h("small", {}, one.kind))));
    this.list.hidden = false;
    this.area.setAttribute("aria-activedescendant", `${id}-${this.chosen}`);
    this.place();
  }

  place() {
    const before = this.area.value.slice(0, this.area.selectionStart - this.typed.length);
    const row = before.split("\n").length, column = before.length - before.lastIndexOf("\n") - 1;
    this.width ||= this.measure();
    const left = column * this.width - this.area.scrollLeft + 8;
    const top = row * this.lineHeight - this.area.scrollTop + 8;
    const most = this.area.clientWidth - this.list.offsetWidth - 4;
    this.list.style.left = `${Math.max(4, Math.min(left, most))}px`;
    this.list.style.top = `${top}px`;
  }

  measure() {
    const pen = document.createElement("canvas").getContext("2d");
    const style = getComputedStyle(this.area);
    pen.font = `${style.fontSize} ${style.fontFamily}`;
    return pen.measureText("m".repeat(100)).width / 100;
  }

  close() {
    this.list.hidden = true;
    this.found = [];
    this.area.removeAttribute("aria-activedescendant");
  }

  accept() {
    const { text } = this.found[this.chosen];
    const end = this.area.selectionStart, start = end - this.typed.length;
    this.area.setRangeText(text, start, end, "end");
    this.close();
    this.number();
    this.area.dispatchEvent(new Event("input"));
    this.close();
  }

  pressed(event) {
    if (event.ctrlKey && event.key === " ") { event.preventDefault(); this.complete(true); return; }
    if (this.list.hidden) return;
    if (event.key === "Escape") { event.preventDefault(); this.close(); return; }
    if (event.key === "Enter" || event.key === "Tab") {
      if (event.shiftKey) return;
      event.preventDefault();
      this.accept();
      return;
    }
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move) {
      event.preventDefault();
      this.chosen = (this.chosen + move + this.found.length) % this.found.length;
      this.show();
    }
  }
}

const WORDS = ["SELECT", "COUNT(*)", "SUM(", "FROM", "WHERE", "GROUP BY", "AND", "OR", "NOT", "IN (",
  "BETWEEN", "IS NULL", "AS", "ROLLUP (", "CUBE (", "GROUPING SETS ((", "FILTER (WHERE"];

// What may come next in SQL: inside quotes a value, else an attribute, the table or a word.
export function suggestSql(domain) {
  return (before) => {
    if (!domain()?.attributes) return [];
    const { attributes, table } = domain();
    const quotes = (before.slice(before.lastIndexOf(";") + 1).match(/'/g) || []).length;
    if (quotes % 2) {
      const said = attributes.filter(({ name }) =>
        new RegExp(`\\b${name.replace(/[^\p{L}\p{N}_]/gu, "\\$&")}\\b[^;]*$`, "iu").test(before));
      const last = said.sort((a, b) => before.lastIndexOf(b.name) - before.lastIndexOf(a.name))[0];
      return (last ? [last] : attributes).flatMap(({ name, kind, values }) =>
        (kind === "categories" ? values : []).map((text) => ({ text, kind: name })));
    }
    return [
      ...attributes.map(({ name, kind }) => ({ text: name, kind })),
      ...(table ? [{ text: table, kind: "table" }] : []),
      ...WORDS.map((text) => ({ text, kind: "SQL" })),
    ];
  };
}

const FIELDS = ["lrm-domain: 1", "table: ", "unit: row", "attributes:", "name: ", "kind: ", "values: [",
  "low: ", "high: ", "width: ", "edges: [", "null: drop", "null: cell", "outside: drop",
  "outside: cell", "categories", "integers", "bins", "dates"];

export const suggestYaml = () => FIELDS.map((text) => ({ text, kind: "field" }));

// Set a remark such as "-- importance: 4" before the statement that begins on a line.
export function withRemark(text, line, kind, value) {
  const lines = text.split("\n");
  const remark = new RegExp(`^\\s*--\\s*${kind}(?: size)?\\s*:`, "i");
  let at = line - 2;
  while (at >= 0 && /^\s*--/.test(lines[at]) && !remark.test(lines[at])) at -= 1;
  const found = at >= 0 && remark.test(lines[at]);
  if (found && value === null) lines.splice(at, 1);
  else if (found) lines[at] = `-- ${kind}: ${value}`;
  else if (value !== null) lines.splice(line - 1, 0, `-- ${kind}: ${value}`);
  return lines.join("\n");
}
