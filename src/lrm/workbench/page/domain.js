// The form of the domain: what its file declares, field by field, next to its YAML.

import { $, ask, command, h, options, problem, say, sentence } from "./elements.js";

const KINDS = ["categories", "integers", "bins", "numbers", "dates"];
const DRAFTED = ["categories", "boolean", "integers", "bins", "numbers", "dates", "times"];
const RULES = { drop: "rows are not counted", cell: "a cell of its own", never: "never occurs", clip: "the nearest end" };
const NAMES = { values: "Values", low: "From", high: "To", width: "Integers per cell", edges: "Edges", knots: "Knots",
  start: "From", end: "To", by: "By", time: "Times", null: "If missing", outside: "If not declared" };
const EXAMPLES = { values: "NY, NJ, CT", low: "0", high: "99", width: "1", edges: "0, 10, 20", knots: "0, 7, 30, 200",
  start: "2024-01-01", end: "2024-12-31", by: "month", time: "true" };
const LISTS = ["values", "edges", "knots"];

export class DomainForm {
  constructor(bench) {
    this.bench = bench;
    $("draft-form").addEventListener("submit", (event) => this.draft(event));
    $("domain-form").addEventListener("submit", (event) => event.preventDefault());
    $("domain-form").addEventListener("change", (event) => this.changed(event.target));
  }

  // Names and types of the columns of a table, never a value.
  async draft(event) {
    event.preventDefault();
    problem($("form-problem"), "");
    try {
      const found = await ask("draft", { table: $("draft-table").value.trim() });
      command($("draft-command"), found.command);
      this.bench.editors.domain.set(found.text, true);
      say("The domain is drafted from names and types; no value was read. Fill in the empty fields.");
    } catch (reason) { problem($("form-problem"), sentence(reason)); }
  }

  show({ form, problems }) {
    const box = $("domain-form");
    box.hidden = !form;
    if (!form) return;
    const shape = JSON.stringify([form.unit.kind, ...form.attributes.map(({ name, kind }) => [name, kind])]);
    if (this.shape !== shape) {
      this.shape = shape;
      this.build(form);
    }
    for (const input of box.querySelectorAll("[data-field]")) {
      if (input !== document.activeElement) input.value = this.text(form, input.dataset);
    }
    this.mark(form, problems);
  }

  text(form, { entry, field }) {
    if (entry === "table") return form.table;
    const own = entry === "unit" ? form.unit : form.attributes[Number(entry)];
    if (field === "kind" || field === "name") return own[field];
    return own.fields.find(({ name }) => name === field)?.text || "";
  }

  // An error stands with the attribute whose lines it is in.
  mark({ attributes }, problems) {
    attributes.forEach(({ line }, i) => {
      const next = attributes[i + 1]?.line || Infinity;
      const own = problems.filter((one) => one.line >= line && one.line < next);
      problem($(`entry-problem-${i}`), own.map((one) => one.message).join("; "));
    });
  }

  build({ unit, attributes }) {
    const kept = document.activeElement?.closest("#domain-form") && { ...document.activeElement.dataset };
    const field = (entry, name, label, about, more = {}) => h("label", { class: "field" }, label, " ",
      more.choices ? select(entry, name, more.choices, `${label} of ${about}`)
        : h("input", { type: "text", "data-entry": entry, "data-field": name, "aria-label": `${label} of ${about}`,
          placeholder: more.example || "", size: LISTS.includes(name) ? 40 : 12 }));
    const person = unit.kind === "person" ? [
      field("unit", "column", "named by the column", "the person", { example: "patient_id" }),
      field("unit", "max_rows", "with at most this many rows", "the person", { example: "3" })] : [];
    const cards = attributes.map(({ name, kind, fields }, i) => h("fieldset", { class: "card" },
      h("legend", {}, name || "(no name)"),
      field(String(i), "name", "Column", name),
      field(String(i), "kind", "Kind", name, { choices: choices(KINDS.includes(kind) ? KINDS : ["", ...KINDS]) }),
      ...fields.map((one) => field(String(i), one.name, NAMES[one.name], name, { example: EXAMPLES[one.name],
        choices: { null: rules("drop", "cell", "never"), outside: rules(...outside(kind)) }[one.name] })),
      h("button", { type: "button", class: "quiet", "aria-label": `Remove ${name}`,
        onclick: () => this.edit({ entry: String(i), field: "remove", value: "" }) }, "Remove"),
      h("p", { class: "wrong", id: `entry-problem-${i}`, hidden: true })));
    const added = h("input", { type: "text", id: "add-name", size: 12, "aria-label": "Column to add" });
    const kind = h("select", { id: "add-kind", "aria-label": "Kind of the column to add" },
      ...choices(DRAFTED).map(([value, text]) => h("option", { value }, text)));
    $("domain-form").replaceChildren(
      h("p", { class: "row" }, field("table", "table", "Table", "the domain", { example: "visits" }),
        field("unit", "kind", "Protects", "the domain",
          { choices: [["", "not chosen yet"], ["row", "each row"], ["person", "a person"]] }), ...person),
      ...cards,
      h("p", { class: "row" }, h("label", { class: "field" }, "Add the column ", added), kind,
        h("button", { type: "button", onclick: () => this.edit({ entry: added.value.trim(), field: "add",
          value: kind.value }) }, "Add")));
    if (kept?.field) document.querySelector(`[data-entry="${kept.entry}"][data-field="${kept.field}"]`)?.focus();
  }

  changed(input) {
    if (!input.dataset.field) return;
    const { entry, field } = input.dataset;
    this.edit({ entry, field, value: input.value });
  }

  async edit({ entry, field, value }) {
    problem($("form-problem"), "");
    const domain = this.bench.editors.domain;
    try {
      const { text } = await ask("edit-domain", { text: domain.value, entry, field, value });
      domain.set(text, true);
    } catch (reason) { problem($("form-problem"), sentence(reason)); }
  }
}

const choices = (names) => names.map((name) => [name, name || "not chosen yet"]);
const rules = (...names) => [["", "not chosen yet"], ...names.map((name) => [name, `${name}: ${RULES[name]}`])];
const outside = (kind) => (kind === "numbers" ? ["clip", "drop", "cell", "never"] : ["drop", "cell", "never"]);

function select(entry, field, pairs, label) {
  const made = h("select", { "data-entry": entry, "data-field": field, "aria-label": label });
  options(made, pairs);
  return made;
}
