// An editor: CodeMirror with colours, line numbers, problems at their lines, and completion.

import { EditorView, HighlightStyle, SQLDialect, Transaction, autocompletion, bracketMatching,
  completionKeymap, defaultKeymap, drawSelection, history, historyKeymap, keymap, lineNumbers, lintGutter,
  setDiagnostics, sql, syntaxHighlighting, tags, yaml } from "./codemirror.js";
import { h } from "./elements.js";

const WORD = /[\p{L}\p{N}_$.-]*$/u;
const OWN_WORDS = /(--|#)[^\n]*$|\bas\s+\S*$/i; // a remark, or a new name: nothing is offered unasked
const nonce = document.querySelector("meta[name=style-nonce]").content;
const COLOURS = syntaxHighlighting(HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword], class: "tok-keyword" },
  { tag: [tags.string, tags.special(tags.string)], class: "tok-string" },
  { tag: [tags.number, tags.bool, tags.null], class: "tok-number" },
  { tag: tags.comment, class: "tok-comment" },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], class: "tok-name" },
]));

// The words that lrm knows: a column may be called like any other word of SQL.
const SPOKEN = SQLDialect.define({
  keywords: "select distinct from where group by having order limit offset as and or not in between is null "
    + "like ilike case when then else end with union all join left on using filter over partition rows "
    + "preceding current row rollup cube grouping sets asc desc nulls first last date interval cast within true false",
  builtin: "count sum avg min max median quantile_cont percentile_cont count_if coalesce nullif year month day extract",
});

export class Editor {
  constructor(place, label, { language, suggest, onedit }) {
    const id = place.id;
    const offer = (context) => {
      const before = context.state.sliceDoc(0, context.pos);
      const typed = before.match(WORD)[0];
      if (!context.explicit && (!typed || OWN_WORDS.test(before))) return null;
      const found = suggest(before.slice(0, before.length - typed.length)).filter(({ label: text }) =>
        text.toLowerCase().startsWith(typed.toLowerCase()) && text !== typed);
      return found.length ? { from: context.pos - typed.length, options: found, filter: false } : null;
    };
    this.problems = h("ul", { class: "problems" });
    this.view = new EditorView({ parent: place, extensions: [
      EditorView.cspNonce.of(nonce), EditorView.lineWrapping, lineNumbers(), lintGutter(), history(),
      drawSelection(), bracketMatching(), COLOURS, language === "sql" ? sql({ dialect: SPOKEN }) : yaml(),
      autocompletion({ override: [offer], icons: false, maxRenderedOptions: 50 }),
      keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap]),
      EditorView.contentAttributes.of({ id: `${id}-text`, "aria-label": label, "aria-describedby": `${id}-problems` }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged && !update.transactions.some((one) => one.annotation(Transaction.addToHistory) === false)) onedit();
      }),
    ] });
    place.append(h("div", { id: `${id}-problems`, role: "status" }, this.problems));
  }

  get value() { return this.view.state.doc.toString(); }

  // Put a text in place of what is there; what is the same stays, and with it the caret.
  set(text, edited = false) {
    const old = this.value, most = Math.min(old.length, text.length);
    if (old === text) return;
    let from = 0, end = 0;
    while (from < most && old[from] === text[from]) from += 1;
    while (end < most - from && old[old.length - 1 - end] === text[text.length - 1 - end]) end += 1;
    this.view.dispatch({
      changes: { from, to: old.length - end, insert: text.slice(from, text.length - end) },
      annotations: edited ? [] : [Transaction.addToHistory.of(false)], // what is read from a file is no edit
    });
  }

  // Problems and warnings: {line, message, warning}.
  tell(told) {
    const { doc } = this.view.state;
    this.view.dispatch(setDiagnostics(this.view.state, told.map((one) => {
      const line = doc.line(Math.min(Math.max(1, one.line), doc.lines));
      return { from: line.from, to: line.to, severity: one.warning ? "warning" : "error", message: one.message };
    })));
    const items = told.slice(0, 20).map((one) => h("li", { class: one.warning ? "odd" : "wrong" },
      h("button", { type: "button", class: "line", onclick: () => this.go(one.line) },
        `${one.warning ? "Warning, line" : "Line"} ${one.line}`), ` ${one.message}`));
    if (told.length > 20) items.push(h("li", {}, `and ${told.length - 20} more`));
    this.problems.replaceChildren(...items);
  }

  go(line) {
    const { doc } = this.view.state;
    const { from, to } = doc.line(Math.min(Math.max(1, line), doc.lines));
    this.view.dispatch({ selection: { anchor: from, head: to },
      effects: EditorView.scrollIntoView(from, { y: "center" }) });
    this.view.focus();
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
        (kind === "categories" ? values : []).map((label) => ({ label, detail: name })));
    }
    return [
      ...attributes.map(({ name, kind }) => ({ label: name, detail: kind })),
      ...(table ? [{ label: table, detail: "table" }] : []),
      ...WORDS.map((label) => ({ label, detail: "SQL" })),
    ];
  };
}

const FIELDS = ["lrm-domain: 1", "table: ", "unit: row", "attributes:", "name: ", "kind: ", "values: [",
  "low: ", "high: ", "width: ", "edges: [", "null: drop", "null: cell", "outside: drop",
  "outside: cell", "categories", "integers", "bins", "dates"];

export const suggestYaml = () => FIELDS.map((label) => ({ label, detail: "field" }));

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
