// The errors of a plan at a promise: cards, a picture, tables, comparisons, the inverse.

import { $, ask, command, count, h, later, many, newest, problem, say, sentence, shown, scrolling, table, width }
  from "./elements.js";

const SVG = "http://www.w3.org/2000/svg";

export class Errors {
  constructor(bench) {
    this.bench = bench;
    this.facts = null;
    this.refresh = newest(() => this.load());
    const typed = later(150, () => this.refresh());
    $("slider").addEventListener("input", () => {
      $("amount").value = fromSlider(Number($("slider").value));
      this.refresh();
    });
    for (const id of ["amount", "delta"]) {
      $(id).addEventListener("input", () => { this.toSlider(); typed(); });
    }
    $("confidence").addEventListener("change", () => this.refresh());
    for (const radio of document.querySelectorAll("input[name=noise]")) {
      radio.addEventListener("change", () => this.changeNoise());
    }
    $("promise").addEventListener("submit", (event) => event.preventDefault());
    $("wanted-form").addEventListener("submit", (event) => this.invert(event));
    $("rivals-part").addEventListener("toggle", () => this.compare());
    $("beside-part").addEventListener("toggle", () => this.compare());
    this.sorted = { column: "typical", down: true };
    // For those who do not see the slider move the numbers: once it rests.
    this.tell = later(700, () => say(`${this.facts.promise}: typical error ${shown(this.facts.typical)}.`));
    addEventListener("resize", later(100, () => { if (this.facts) this.showPicture(); }));
  }

  get kind() { return document.querySelector("input[name=noise]:checked").value; }
  get noise() { return this.kind === "laplace" ? "laplace" : "gaussian"; }

  get amounts() {
    const amount = $("amount").value.trim();
    if (this.kind === "rho") return { rho: amount };
    return this.kind === "laplace" ? { epsilon: amount } : { epsilon: amount, delta: $("delta").value.trim() };
  }

  toSlider() {
    const value = readAmount($("amount").value);
    if (value > 0) $("slider").value = String(Math.round(100 * Math.log10(value)));
    this.nameSlider();
  }

  nameSlider() {
    $("slider").setAttribute("aria-valuetext", `${$("amount-name").textContent} = ${$("amount").value}`);
  }

  nameAmount() {
    $("delta-part").hidden = this.kind !== "gaussian";
    $("amount-name").textContent = this.kind === "rho" ? "ρ" : "ε";
    this.toSlider();
  }

  changeNoise() {
    this.bench.releases.forget();
    this.nameAmount();
    this.bench.choosePlan();
    this.refresh();
    this.bench.startPlan();
  }

  async load() {
    const plan = this.bench.plan;
    this.nameSlider();
    if (!plan) return;
    try {
      const params = { plan, ...this.amounts, confidence: Number($("confidence").value) };
      const facts = await ask("errors", params);
      const equal = this.bench.equalPlan;
      const plain = equal ? await ask("errors", { ...params, plan: equal }) : null;
      this.equal = plain?.statements;
      // Both plans have the same answers, and the bound of the weighted one is the looser one.
      facts.best_possible = Math.max(facts.best_possible, plain?.best_possible ?? 0);
      problem($("amount-problem"), "");
      this.facts = facts;
      this.show();
      await this.compare();
    } catch (reason) {
      problem($("amount-problem"), sentence(reason));
    }
  }

  show() {
    const facts = this.facts;
    if (!facts) return;
    const answers = facts.statements.reduce((sum, one) => sum + one.count, 0);
    const card = (name, value, note) => h("div", {}, h("dt", {}, name),
      h("dd", {}, value, h("span", { class: "note" }, note)));
    $("key").replaceChildren(
      card("promise", facts.promise, facts.noise === "laplace" ? "Laplace noise" : "Gaussian noise"),
      card("typical error", shown(facts.typical), "root mean square of an answer"),
      card("best possible", shown(facts.best_possible), "no strategy is below it"),
      card("answers", count(answers), `in ${many(facts.statements.length, "statement", "statements")}`),
    );
    $("bound").textContent = facts.bound;
    $("plan-warnings").replaceChildren(...facts.warnings.map((text) => h("p", { class: "warning" }, text)));
    this.showPicture();
    this.showStatements();
    this.showAnswers();
    this.showChoices();
    command($("errors-command"), facts.command);
    this.tell();
  }

  get rows() {
    const written = this.bench.compiled?.batch.statements || [];
    return this.facts.statements.map((one, index) => {
      // The plan may be the last one, and its statements may have moved or gone since.
      const place = written[index]?.title === one.title ? index : written.findIndex(({ title }) => title === one.title);
      const said = written[place] || {};
      const expected = said.expected;
      return {
        ...one, index, place, line: said.first_line, expected, importance: said.importance,
        relative: expected > 0 ? one.typical / expected : NaN,
        against: this.equal?.[index] ? one.typical / this.equal[index].typical : NaN,
      };
    });
  }

  ordered() {
    const { column, down } = this.sorted;
    const value = (row) => (column === "title" ? row.title : Number.isFinite(row[column]) ? row[column] : -1);
    return this.rows.sort((a, b) => {
      const x = value(a), y = value(b);
      const order = typeof x === "string" ? x.localeCompare(y) : x - y;
      return (down ? -order : order) || a.index - b.index;
    });
  }

  showPicture() {
    const rows = this.rows.sort((a, b) => b.typical - a.typical).slice(0, 12);
    const most = Math.max(...rows.map((row) => row.half), 1e-300);
    // Drawn in its own size: a picture that is scaled down cannot be read.
    const height = 30, full = Math.min(760, Math.max(280, $("picture").clientWidth - 24));
    const letter = 6.9, longest = Math.max(...rows.map((row) => row.title.length));
    const left = Math.round(Math.min(200, full * 0.36, 12 + letter * longest));
    const letters = Math.floor((left - 8) / letter);
    const draw = (tag, attributes, text) => {
      const element = document.createElementNS(SVG, tag);
      for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
      if (text) element.textContent = text;
      return element;
    };
    const picture = draw("svg", {
      width: full, height: rows.length * height + 6, role: "img",
      "aria-label": `Typical error and interval of ${rows.length} statements; the table has the numbers`,
    });
    rows.forEach((row, i) => {
      const y = i * height + 4, scale = (value) => ((full - left - 70) * value) / most;
      const name = row.title.length > letters ? `${row.title.slice(0, letters - 1)}…` : row.title;
      picture.append(
        draw("text", { x: left - 8, y: y + 15, "text-anchor": "end", class: "name" }, name),
        draw("rect", { x: left, y: y + 8, width: Math.max(1, scale(row.half)), height: 6, class: "half", rx: 2 }),
        draw("rect", { x: left, y: y + 2, width: Math.max(1, scale(row.typical)), height: 18, class: "bar", rx: 2 }),
        draw("text", { x: left + scale(row.half) + 6, y: y + 15, class: "value" }, row.typical_text),
      );
    });
    const more = this.facts.statements.length - rows.length;
    const percent = `${100 * this.facts.confidence} %`;
    $("picture").replaceChildren(
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Picture of the errors" }, picture),
      h("figcaption", {}, `Typical standard error of each statement (thick) and half of its widest ${percent} `
        + `interval (thin)${more > 0 ? `; the ${rows.length} largest of ${count(rows.length + more)}` : ""}.`));
  }

  showStatements() {
    const held = document.activeElement?.id;
    const percent = `${100 * this.facts.confidence} %`;
    const columns = [["title", "statement"], ["count", "answers"], ["typical", "typical error"],
      ["error", "largest error"], ["half", `${percent} interval`], ["relative", "expected size, relative error"],
      ["importance", "importance"]];
    if (this.equal) columns.push(["against", "against equal importance"]);
    const heads = columns.map(([column, name], i) => {
      const own = this.sorted.column === column;
      const order = own ? (this.sorted.down ? "descending" : "ascending") : "none";
      return h("th", { scope: "col", class: i ? "number" : "", "aria-sort": order },
        h("button", { type: "button", id: `sort-${column}`, class: "sort", onclick: () => {
          this.sorted = { column, down: own ? !this.sorted.down : i > 0 };
          this.showStatements();
        } }, name, h("span", { "aria-hidden": "true" }, own ? (this.sorted.down ? " ↓" : " ↑") : "")));
    });
    const rows = this.ordered().slice(0, 300).map((row) => this.row(row));
    const hidden = this.facts.statements.length - rows.length;
    $("statements").replaceChildren(scrolling("Errors by statement", h("table", {},
      h("caption", {}, `Errors by statement${hidden > 0 ? `; ${count(hidden)} more are not listed` : ""}`),
      h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows))));
    if (held && $("statements").contains($(held))) $(held).focus();
  }

  row(row) {
    const number = (text) => h("td", { class: "number" }, text);
    const field = (kind, value, label, note = null) => {
      const input = h("input", { type: "text", inputmode: "decimal", size: "6", id: `${kind}-${row.index}`,
        value: value ?? "", "aria-label": `${label} of ${row.title}`, disabled: !this.bench.editable || row.place < 0,
        onchange: () => this.bench.remark(row.place, kind, input.value.trim()) });
      return h("td", { class: "number" }, input, note ? h("span", { class: "note" }, note) : null);
    };
    const cells = [
      h("th", { scope: "row", class: width(row.title) }, row.title, row.line ? h("span", { class: "note" }, `line ${row.line}`) : null,
        row.derived ? h("span", { class: "note" }, "derived: errors of what it is computed from") : null),
      number(count(row.count)), number(row.typical_text), number(row.error_text), number(row.half_text),
      field("expected", row.expected, "Expected size",
        Number.isFinite(row.relative) ? `${shown(100 * row.relative)} %` : null),
      field("importance", row.importance, "Importance"),
    ];
    if (this.equal) cells.push(number(Number.isFinite(row.against) ? `${shown(row.against)}×` : "—"));
    return h("tr", {}, ...cells);
  }

  showAnswers() {
    const rows = this.facts.answers.map((one) => [one.name, one.error_text, one.half_text]);
    const percent = `${100 * this.facts.confidence} % interval`;
    $("answers").replaceChildren(rows.length
      ? table(rows.length > 1 ? `The ${rows.length} largest` : "The only one", ["answer", "standard error", percent], rows)
      : h("p", { class: "note" }, "There are too many answers to list them."));
  }

  showChoices() {
    const names = ["a typical answer", ...this.facts.statements.map((one) => one.title)].slice(0, 301);
    const key = names.join("\n");
    if (this.choices === key) return;
    this.choices = key;
    $("wanted-of").replaceChildren(...names.map((name, i) => h("option", { value: String(i - 1) }, name)));
  }

  async invert(event) {
    event.preventDefault();
    if (!this.bench.plan) return;
    try {
      const params = { plan: this.bench.plan, wanted: Number($("wanted").value),
        statement: Number($("wanted-of").value) };
      const found = await ask("inverse", params);
      const sign = { epsilon: "ε", rho: "ρ" }[found.name];
      const use = h("button", { type: "button", onclick: () => this.use(found) }, "Use it");
      $("wanted-found").replaceChildren(`${sign} = ${found.amount} is the least amount with that error. `, use);
      command($("wanted-command"), found.command);
    } catch (reason) {
      $("wanted-found").replaceChildren(h("span", { class: "wrong" }, sentence(reason)));
    }
  }

  use(found) {
    this.bench.releases.forget();
    if (found.name === "rho" && this.kind === "gaussian") {
      document.querySelector("input[name=noise][value=rho]").checked = true;
      this.changeNoise();
    }
    $("amount").value = found.amount;
    this.toSlider();
    this.refresh();
  }

  async compare() {
    const { plan, plans, names } = this.bench;
    if ($("rivals-part").open && plan) {
      try {
        const found = await ask("rivals", { plan, ...names, ...this.amounts });
        $("rivals").replaceChildren(table("Simpler mechanisms on the same batch, at the same promise",
          found.columns, found.rows));
        command($("rivals-command"), found.command);
      } catch (reason) { $("rivals").replaceChildren(h("p", { class: "wrong" }, sentence(reason))); }
    }
    if (!$("beside-part").open) return;
    if (this.kind === "rho" || !plans?.laplace || !plans?.gaussian) {
      const why = this.kind === "rho" ? "Choose ε: both noises are compared at the same ε."
        : "The other noise is planned as soon as this search is done.";
      $("beside").replaceChildren(h("p", { class: "note" }, why));
      return;
    }
    try {
      const given = { epsilon: $("amount").value.trim(), delta: $("delta").value.trim() };
      const found = await ask("beside", { laplace: plans.laplace, gaussian: plans.gaussian, ...names, ...given });
      const rows = [["typical error", ...found.typical, "—"], ...found.rows.map(([, ...rest]) => ["total squared error", ...rest])];
      $("beside").replaceChildren(
        table(`Both noises at ε = ${given.epsilon}, Gaussian with δ = ${given.delta}`, ["measure", ...found.columns.slice(1)], rows),
        h("p", {}, found.advice));
      command($("beside-command"), found.command);
    } catch (reason) { $("beside").replaceChildren(h("p", { class: "wrong" }, sentence(reason))); }
  }
}

// 0.1 at -100: two digits for each step of the slider.
export const fromSlider = (place) => String(Number((10 ** (place / 100)).toPrecision(2)));

export function readAmount(text) {
  const [top, bottom] = text.split("/").map(Number);
  return bottom === undefined ? top : top / bottom;
}
