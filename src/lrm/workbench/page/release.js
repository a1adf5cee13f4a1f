// Budgets, the dry run, the one confirmation, the report, and further questions.

import { $, Refused, ask, command, h, options, problem, put, say, sentence } from "./elements.js";
import { search } from "./search.js";

export class Release {
  constructor(bench) {
    this.bench = bench;
    this.shownRelease = "";
    this.turn = 0; // of what is asked about budgets
    this.opened = 0; // how often a report was asked for
    $("ledger").addEventListener("change", () => this.loadBudgets());
    $("table").addEventListener("change", () => this.loadBudgets());
    $("create-budget").addEventListener("submit", (event) => this.create(event));
    $("dry-run").addEventListener("submit", (event) => this.dryRun(event));
    $("rehearse").addEventListener("click", () => this.rehearse());
    $("rehearsal-close").addEventListener("click", () => {
      $("rehearsal-part").hidden = true;
      $("rehearse").focus();
    });
    $("confirm-yes").addEventListener("click", () => this.release());
    $("confirm-no").addEventListener("click", () => $("confirm").close());
    $("release-file").addEventListener("change", () => this.open($("release-file").value));
    $("consistent").addEventListener("change", () => this.open(this.shownRelease));
    $("further").addEventListener("submit", (event) => this.further(event));
    for (const id of ["table", "ledger"]) $(id).addEventListener("input", () => this.forget());
  }

  // A dry run is of the plan, the amounts and the questions as they were. Its button stays in its
  // place, and can no longer be pressed.
  forget(why = "Something has changed since this dry run: make another one.") {
    if (!this.ticket) return;
    this.ticket = null;
    if (!$("ask-release")) return; // another tab has released meanwhile
    $("ask-release").disabled = true;
    $("dry-note").textContent = why;
    command($("dry-command"), "");
  }

  // What a budget is created for: the declared table, or the file that a release would read.
  get tableName() {
    const file = $("table").value.trim();
    return this.bench.compiled?.domain?.table || (this.bench.files?.table.includes(file) ? file : "");
  }

  // An answer is shown unless a later one was asked for, or a budget was created meanwhile.
  async loadBudgets() {
    const turn = ++this.turn;
    try {
      const found = await ask("budgets", { ledger: $("ledger").value.trim(), table: this.tableName });
      if (turn !== this.turn) return;
      this.showBudgets(found);
      problem($("budget-problem"), "");
    } catch (reason) { if (turn === this.turn) problem($("budget-problem"), sentence(reason)); }
  }

  showBudgets(found) {
    const name = this.tableName;
    put($("budgets"), found.html);
    $("create-budget").hidden = !name || found.tables.includes(name);
    $("create-words").textContent = `Give '${name}' its budget: once, for all releases of this table. `
      + `It protects ${this.bench.compiled?.domain?.protects}. Neither can be changed later.`;
    $("history-part").hidden = !found.history;
    put($("history"), found.history);
    command($("budget-command"), found.command);
  }

  // The file that is called like the declared table, or the only one.
  offerTable(files, name) {
    if ($("table").value || document.activeElement === $("table")) return;
    const named = files.find((file) => name && file.split(".")[0] === name);
    $("table").value = named || (files.length === 1 ? files[0] : "");
    this.loadBudgets();
  }

  async create(event) {
    event.preventDefault();
    const params = { ...this.bench.names, ledger: $("ledger").value.trim(), table: this.tableName,
      limit: $("limit").value.trim(), accounting: $("accounting").value };
    try {
      const found = await ask("create-budget", params);
      this.turn += 1;
      this.showBudgets(found);
      problem($("budget-problem"), "");
      say("The budget was created.");
      $("table").focus(); // what was pressed is gone
    } catch (reason) { problem($("budget-problem"), sentence(reason)); }
  }

  async dryRun(event) {
    event.preventDefault();
    this.ticket = null;
    command($("dry-command"), "");
    problem($("release-problem"), "");
    await this.bench.saved();
    if (!this.bench.plan) { problem($("release-problem"), "Nothing is planned yet."); return; }
    $("dry-result").replaceChildren(h("p", { class: "note" }, "Checking …"));
    const params = { ...this.bench.names, plan: this.bench.plan, table: $("table").value.trim(),
      ledger: $("ledger").value.trim(), ...this.bench.errors.amounts };
    try {
      const found = await ask("dry-run", params);
      this.ticket = found.ticket;
      this.confirmed = found;
      const button = h("button", { type: "button", class: "main", id: "ask-release", onclick: () => this.confirm() },
        `Release, and spend ${found.cost} …`);
      const facts = h("div");
      put(facts, found.html);
      $("dry-result").replaceChildren(
        ...found.warnings.map((text) => h("p", { class: "warning" }, text)), facts,
        h("p", { class: "note", id: "dry-note" }, "A dry run: nothing was spent, and no row was read."),
        h("p", { class: "row" }, button));
      command($("dry-command"), found.command);
    } catch (reason) {
      $("dry-result").replaceChildren();
      problem($("release-problem"), sentence(reason));
      if (!$("create-budget").hidden) this.pointToBudget();
    }
  }

  // The table has no budget yet: the form that creates one stands beside the dry run.
  pointToBudget() {
    const button = h("button", { type: "button", id: "to-budget", onclick: () => $("limit").focus() },
      "Create the budget first");
    $("dry-result").replaceChildren(h("p", { class: "row" }, button));
  }

  // The page that a release would have, on rows that are about nobody.
  async rehearse() {
    problem($("release-problem"), "");
    await this.bench.saved();
    if (!this.bench.plan) { problem($("release-problem"), "Nothing is planned yet."); return; }
    $("rehearse").disabled = true;
    say("Making the page with made-up rows.");
    try {
      const found = await ask("rehearse", { ...this.bench.names, plan: this.bench.plan,
        confidence: this.bench.errors.confidence, ...this.bench.errors.amounts });
      put($("rehearsal"), found.html);
      apart($("rehearsal"), "rehearsal-");
      search($("rehearsal"));
      command($("rehearsal-command"), found.command);
      $("rehearsal-part").hidden = false;
      $("rehearsal-title").focus();
    } catch (reason) { problem($("release-problem"), sentence(reason)); }
    $("rehearse").disabled = false;
  }

  confirm() {
    const found = this.confirmed, facts = h("div");
    if (!this.ticket) return;
    put(facts, found.confirm_html);
    $("confirm-words").replaceChildren(
      h("p", {}, "This spends ", h("b", {}, found.cost), ` from the budget of '${found.budget}' in ${found.ledger}, `
        + `and leaves ${found.left}. It cannot be taken back.`), facts);
    command($("confirm-command"), found.release_command);
    $("confirm-yes").textContent = `Release, and spend ${found.cost}`;
    $("confirm-yes").disabled = false;
    $("confirm").showModal();
    $("confirm-no").focus();
  }

  async release() {
    // The ticket can be used once: whatever sends it again learns how the first one went.
    $("confirm-yes").disabled = true;
    try {
      const latest = await ask("release", { ticket: this.ticket });
      this.ticket = null;
      this.take(latest);
    } catch (reason) { problem($("release-problem"), sentence(reason)); }
    $("confirm").close();
    $("release-title").focus(); // what opened the dialog is gone
    this.bench.poll();
  }

  // What the server says about the latest release, and which releases there are.
  take(latest, files = null) {
    if (files) {
      options($("release-file"), files.map((name) => [name, name]), this.shownRelease);
      $("results").hidden = !files.length;
      $("no-results").hidden = Boolean(files.length);
      if (files.length && !files.includes(this.shownRelease)) this.open(files[0]); // the newest
    }
    if (!latest) return;
    // While a release is made nothing else can be, and the ledger is charged at some moment of it.
    const running = latest.state === "running";
    $("dry-run").querySelector("button").disabled = running;
    if (running) this.loadBudgets();
    const mark = `${latest.ticket} ${latest.state}`;
    if (mark === this.seen) return;
    this.seen = mark;
    if (running) {
      $("dry-result").replaceChildren(h("p", { class: "note" }, "The release is being made …"));
    }
    if (latest.state === "failed") {
      $("dry-result").replaceChildren();
      problem($("release-problem"), `The release failed: ${latest.error}`);
    }
    if (latest.state === "done") {
      const show = h("button", { type: "button", onclick: () => this.bench.turn("results", true) }, "Show the results");
      $("dry-result").replaceChildren(h("p", { class: "promise" }, `Released: ${latest.release}.`),
        ...latest.warnings.map((text) => h("p", { class: "warning" }, text)), h("p", { class: "row" }, show));
      command($("dry-command"), latest.command);
      say(`The release is made: ${latest.release}.`);
      this.open(latest.release);
    }
    if (!running) this.loadBudgets();
  }

  async open(name) {
    if (name !== this.shownRelease) $("further-answers").replaceChildren();
    this.shownRelease = name;
    if ($("release-file").value !== name) $("release-file").value = name;
    $("results-title").textContent = `Release ${name}`;
    $("downloads").replaceChildren(...["lrm", "csv", "json", "html"].map((form) => h("button",
      { type: "button", onclick: () => this.download(name, form) }, `Download ${form.toUpperCase()}`)));
    const turn = ++this.opened, consistent = $("consistent").checked;
    if (consistent) say("Looking for answers that add up.");
    try {
      const found = await ask("results", { release: name, consistent });
      if (turn !== this.opened) return;
      put($("report"), found.html);
      search($("report"));
      command($("report-command"), found.command);
      problem($("release-words"), "");
    } catch (reason) {
      if (turn !== this.opened) return;
      $("consistent").checked = false; // the released answers stay
      problem($("release-words"), sentence(reason));
    }
  }

  async download(name, form) {
    try {
      const { address } = await ask("download",
        { file: name, as: form, consistent: $("consistent").checked });
      const answer = await fetch(address);
      if (!answer.ok) throw new Refused((await answer.json()).error, answer.status);
      const link = h("a", { href: URL.createObjectURL(await answer.blob()), download: name.replace(/lrm$/, form) });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    } catch (reason) { problem($("release-words"), sentence(reason)); }
  }

  async further(event) {
    event.preventDefault();
    try {
      const found = await ask("query", { release: this.shownRelease, sql: $("further-text").value });
      problem($("further-problem"), "");
      put($("further-answers"), found.html);
      command($("further-command"), found.command);
    } catch (reason) {
      put($("further-answers"), "");
      problem($("further-problem"), sentence(reason));
    }
  }
}

// Names of elements that no other part of the page has: a report may stand below another tab.
function apart(root, prefix) {
  for (const one of root.querySelectorAll("[id]")) one.id = prefix + one.id;
  for (const one of root.querySelectorAll("[aria-labelledby]"))
    one.setAttribute("aria-labelledby", prefix + one.getAttribute("aria-labelledby"));
  for (const one of root.querySelectorAll('a[href^="#"]')) one.setAttribute("href", `#${prefix}${one.getAttribute("href").slice(1)}`);
}
