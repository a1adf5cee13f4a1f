// The guarantee, and the errors of the statements at it: one table that is edited and sorted.

import { $, ask, command, h, later, newest, options, problem, put, say, sentence } from "./elements.js";

const FIELDS = { expected: "Expected size", importance: "Importance" };

export class Errors {
  constructor(bench) {
    this.bench = bench;
    this.refresh = newest(() => this.load());
    const typed = later(150, () => this.refresh());
    $("slider").addEventListener("input", () => {
      $("amount").value = fromSlider(Number($("slider").value));
      this.keep();
      this.refresh();
    });
    for (const id of ["amount", "delta"]) {
      $(id).addEventListener("input", () => { this.toSlider(); this.keep(); typed(); });
    }
    $("confidence").addEventListener("change", () => { this.keep(); this.refresh(); this.bench.check(); });
    for (const radio of document.querySelectorAll("input[name=noise]")) {
      radio.addEventListener("change", () => { this.keep(); this.changeNoise(); });
    }
    $("guarantee").addEventListener("submit", (event) => event.preventDefault());
    $("wanted-form").addEventListener("submit", (event) => this.invert(event));
    $("more").addEventListener("toggle", () => this.showMore());
    $("beside").addEventListener("change", () => this.refresh());
    $("statements").addEventListener("click", (event) => this.clicked(event));
    $("statements").addEventListener("keydown", (event) => this.pressed(event));
    $("statements").addEventListener("focusin", (event) => this.rove(event.target));
    this.sorted = { column: -1, down: false };
    this.save = later(300, () => ask("settings", this.settings).catch(this.bench.fail));
    // For those who do not see the slider move the numbers: once it rests.
    this.tell = later(700, () => say(this.found?.said || ""));
  }

  get kind() { return document.querySelector("input[name=noise]:checked").value; }
  get confidence() { return Number($("confidence").value) || 0.95; }
  get noise() { return this.kind === "pure" ? "pure" : "gaussian"; }

  get settings() {
    return { noise: this.kind, amount: $("amount").value.trim(), delta: $("delta").value.trim(),
      confidence: this.confidence };
  }

  get amounts() {
    const amount = $("amount").value.trim();
    return this.kind === "rho" ? { rho: amount } : { epsilon: amount, delta: $("delta").value.trim() };
  }

  // What is chosen is kept in a file of the folder, and shown by the next page that opens it.
  keep() {
    this.bench.releases.forget();
    this.save();
  }

  open({ noise, amount, delta, confidence }) {
    $("amount").value = amount;
    $("delta").value = delta;
    $("confidence").value = String(confidence);
    document.querySelector(`input[name=noise][value=${noise}]`).checked = true;
    this.nameAmount();
  }

  toSlider() {
    const value = readAmount($("amount").value);
    if (value > 0) $("slider").value = String(Math.round(100 * Math.log10(value)));
  }

  nameAmount() {
    $("delta-part").hidden = this.kind !== "gaussian";
    $("amount-name").textContent = this.kind === "rho" ? "ρ" : "ε";
    this.toSlider();
  }

  changeNoise() {
    this.nameAmount();
    this.bench.choosePlan();
    this.refresh();
    this.bench.startPlan();
  }

  async load() {
    const { plan, outcome, beside } = this.bench;
    $("slider").setAttribute("aria-valuetext", `${$("amount-name").textContent} = ${$("amount").value}`);
    const other = $("beside").value && beside.find(({ value }) => value === $("beside").value);
    try {
      this.found = await ask("errors", { plan: plan || "", outcome, ...this.amounts,
        confidence: this.confidence, beside: other?.plan || "", beside_name: other?.name || "" });
      problem($("amount-problem"), "");
      this.show();
    } catch (reason) { problem($("amount-problem"), sentence(reason)); }
  }

  show() {
    const found = this.found;
    put($("key"), found.key);
    this.patch(found.statements);
    $("beside-words").textContent = found.beside || "";
    $("plan-warnings").replaceChildren(...(found.warnings || []).map((text) => h("p", { class: "warning" }, text)));
    command($("errors-command"), found.command || "");
    if (found.plan) this.tell();
    this.bench.showPlan();
    this.showMore();
  }

  // Put the new numbers into the rows that are there: nothing moves, and what is edited stays.
  patch(html) {
    const fresh = new DOMParser().parseFromString(html, "text/html").querySelector("table");
    const table = $("statements").querySelector("table");
    const shape = (one) => [...one.rows].map((row) => row.dataset.row === undefined
      ? [...row.cells].map((cell) => cell.dataset.field).join() : row.cells[0].firstChild.textContent).join("\n");
    if (!table || this.shape !== shape(fresh)) {
      this.shape = shape(fresh);
      this.build(fresh);
      return;
    }
    for (const row of fresh.tBodies[0].rows) {
      const own = table.querySelector(`tr[data-row="${row.dataset.row}"]`);
      [...row.cells].forEach((cell, i) => {
        const old = own.cells[i], input = old.querySelector("input");
        if (cell.dataset.value !== undefined) old.dataset.value = cell.dataset.value;
        if (!i) old.lastChild.textContent = cell.lastChild.textContent; // where it stands
        else if (input && input !== document.activeElement) input.value = cell.textContent;
        else if (!input && old.innerHTML !== cell.innerHTML) old.innerHTML = cell.innerHTML;
      });
    }
    [...fresh.tHead.rows[0].cells].forEach((cell, i) => { // the confidence, the name of the other plan
      const label = table.tHead.rows[0].cells[i].querySelector("button");
      if (label && label.firstChild.textContent !== cell.textContent) label.firstChild.textContent = cell.textContent;
    });
    this.disable();
  }

  build(table) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, i) => {
      if (!head.dataset.field) return;
      const name = head.textContent;
      head.replaceChildren(h("button", { type: "button", class: "sort", tabindex: "-1",
        onclick: () => this.sort(i) }, name, h("span", { "aria-hidden": "true" })));
    });
    for (const row of table.tBodies[0].rows) {
      const [head] = row.cells, title = head.firstChild.textContent;
      head.firstChild.replaceWith(h("button", { type: "button", class: "go", tabindex: "-1" }, title));
      heads.forEach(({ dataset: { field } }, i) => {
        const cell = row.cells[i];
        if (!FIELDS[field] || !this.place(row).first) return; // once for each statement
        const input = h("input", { type: "text", inputmode: "decimal", size: "6",
          value: cell.textContent, "aria-label": `${FIELDS[field]} of ${title}`, "data-field": field });
        input.addEventListener("change", () => this.bench.remark(this.place(row).line, field, input.value.trim()));
        cell.replaceChildren(input);
      });
    }
    const region = h("div", { class: "scroll", role: "region", "aria-label": "Errors by statement" }, table);
    $("statements").replaceChildren(region);
    this.disable();
    this.order();
    this.rove(this.stops()[0]?.[0]);
  }

  // Statements can be edited while they are those of the text, and the text is SQL.
  disable() {
    for (const input of $("statements").querySelectorAll("input")) input.disabled = !this.bench.editable;
  }

  place(row) { return this.found.rows[Number(row.dataset.row)]; }

  clicked(event) {
    const row = event.target.closest("tbody tr");
    if (row && event.target.tagName !== "INPUT") this.bench.editors.batch.go(this.place(row).line);
  }

  // Tab reaches every field. Headings and titles are one tab stop together; arrow keys reach all.
  stops() {
    return [...$("statements").querySelectorAll("tr")].map((row) => [...row.querySelectorAll("button, input:enabled")])
      .filter((row) => row.length);
  }

  rove(element) {
    if (!element?.matches("button")) return;
    for (const one of $("statements").querySelectorAll("button")) one.tabIndex = one === element ? 0 : -1;
  }

  pressed(event) {
    const rows = this.stops(), from = event.target;
    const y = rows.findIndex((row) => row.includes(from)), x = rows[y]?.indexOf(from);
    if (y < 0) return;
    const inside = from.tagName === "INPUT";
    const start = !inside || from.selectionEnd === 0, end = !inside || from.selectionStart === from.value.length;
    const near = (row) => row && (row.find((one) => one.closest("td, th").cellIndex >= from.closest("td, th").cellIndex)
      || row.at(-1));
    const next = {
      ArrowUp: () => near(rows[y - 1]), ArrowDown: () => near(rows[y + 1]),
      ArrowLeft: () => start && rows[y][x - 1], ArrowRight: () => end && rows[y][x + 1],
    }[event.key]?.();
    if (!next) return;
    event.preventDefault();
    next.focus();
    if (next.tagName === "INPUT") next.select();
  }

  sort(column) {
    const { column: before, down } = this.sorted;
    this.sorted = before === column && down === (column > 0) ? { column, down: !down }
      : before === column ? { column: -1, down: false } : { column, down: column > 0 };
    this.order();
  }

  // Only a click on a heading orders the rows: new errors and edits leave them where they are.
  order() {
    const { column, down } = this.sorted, table = $("statements").querySelector("table");
    const value = (row) => Number(row.cells[column]?.dataset.value ?? -1);
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      const own = Number(a.dataset.row) - Number(b.dataset.row);
      if (column < 0) return own;
      const order = column ? value(a) - value(b) : a.cells[0].textContent.localeCompare(b.cells[0].textContent);
      return (down ? -order : order) || own;
    });
    table.tBodies[0].append(...rows);
    [...table.tHead.rows[0].cells].forEach((head, i) => {
      if (!head.dataset.field) return;
      head.setAttribute("aria-sort", i === column ? (down ? "descending" : "ascending") : "none");
      head.querySelector("span").textContent = i === column ? (down ? " ↓" : " ↑") : "";
    });
  }

  async invert(event) {
    event.preventDefault();
    const { plan, current } = this.bench, statement = Number($("wanted-of").value);
    if (!plan) return;
    try {
      if (statement >= 0 && !current) throw new Error("Wait until the questions are planned.");
      const wanted = Number($("wanted").value), { confidence } = this;
      const found = await ask("inverse", { plan, wanted, statement, confidence });
      const sign = { epsilon: "ε", rho: "ρ" }[found.name];
      const use = h("button", { type: "button", onclick: () => this.use(found) }, "Use it");
      $("wanted-found").replaceChildren(`${sign} = ${found.amount} is the least amount with that error. ${found.because || ""} `, use);
      command($("wanted-command"), found.command);
    } catch (reason) {
      $("wanted-found").replaceChildren(h("span", { class: "wrong" }, reason.message));
    }
  }

  use(found) {
    if (found.name === "rho" && this.kind === "gaussian") {
      document.querySelector("input[name=noise][value=rho]").checked = true;
      this.changeNoise();
    }
    $("amount").value = found.amount;
    this.toSlider();
    this.keep();
    this.refresh();
  }

  // What takes longer is computed where somebody looks at it.
  async showMore() {
    const { plan, names, compiled } = this.bench;
    if (!$("more").open || !plan) return;
    const titles = (compiled?.batch.statements || []).slice(0, 300).map(({ title }, i) => [String(i), title]);
    options($("wanted-of"), [["-1", "a typical count"], ["-2", "all answers with a tolerance (-- within)"], ...titles]);
    try {
      const params = { plan, ...names, ...this.amounts, confidence: this.confidence };
      const worst = await ask("worst", params);
      put($("worst"), worst.html);
      $("bound").textContent = worst.bound;
      const rivals = await ask("rivals", params);
      put($("rivals"), rivals.html);
      command($("rivals-command"), rivals.command);
    } catch (reason) { problem($("amount-problem"), sentence(reason)); }
  }
}

// 0.1 at -100: two digits for each step of the slider.
export const fromSlider = (place) => String(Number((10 ** (place / 100)).toPrecision(2)));

export function readAmount(text) {
  const [top, bottom] = text.split("/").map(Number);
  return bottom === undefined ? top : top / bottom;
}
