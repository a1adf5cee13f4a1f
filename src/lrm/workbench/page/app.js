// The workbench: the texts of the folder, what the compiler says, the search, and the rest.

import { $, Refused, ask, command, count, h, key, later, many, newest, options, problem, put, sentence, shown }
  from "./elements.js";
import { Editor, suggestSql, suggestYaml, withRemark } from "./editor.js";
import { DomainForm } from "./domain.js";
import { Errors } from "./errors.js";
import { Release } from "./release.js";

const KINDS = ["domain", "batch"];
const TABS = ["plan", "release", "results"];
const OWN = "of these questions";

class Bench {
  constructor() {
    this.compiled = null;
    this.outcome = "";
    this.plans = {};
    this.plan = null;
    this.texts = { domain: { name: "", seal: "" }, batch: { name: "", seal: "" } };
    this.fail = (reason) => this.warn(sentence(reason), reason);
    const edited = (kind) => () => {
      this.texts[kind].dirty = true;
      this.releases.forget();
      this.typed();
    };
    this.editors = {
      batch: new Editor($("batch-editor"), "The questions, in SQL", { language: "sql",
        onedit: edited("batch"), suggest: suggestSql(() => this.compiled?.domain) }),
      domain: new Editor($("domain-editor"), "The domain, in YAML", { language: "yaml",
        onedit: edited("domain"), suggest: suggestYaml }),
    };
    this.errors = new Errors(this);
    this.releases = new Release(this);
    this.form = new DomainForm(this);
    this.check = newest(() => this.compile());
    this.typed = later(200, () => this.check());
    $("use-example").addEventListener("click", () => this.begin("example"));
    $("use-empty").addEventListener("click", () => this.begin("empty"));
    $("search").addEventListener("click", () => (this.job?.state === "running"
      ? ask("stop").then(({ job }) => this.showJob(job), this.fail)
      : this.startPlan({ again: true, effort: "thorough" })));
    $("plan-file").addEventListener("change", () => { this.choosePlan(); this.errors.refresh(); });
    for (const kind of KINDS) {
      $(`${kind}-file`).addEventListener("change", (event) => this.choose(kind, event.target.value));
    }
    for (const name of TABS) $(`${name}-tab`).addEventListener("click", () => this.turn(name));
    $("tabs").addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) this.turn(TABS[(TABS.indexOf(this.tab) + step + TABS.length) % TABS.length], true);
    });
  }

  get names() { return { domain: this.texts.domain.name, batch: this.texts.batch.name }; }
  get editable() { return this.texts.batch.name.endsWith(".sql") && !this.compiled?.batch.problems.length; }
  // Whether the plan on the screen is of the text in the editor.
  get current() { return Boolean(this.compiled?.key) && this.planKey === this.compiled.key; }
  get weighed() { return Boolean(this.compiled?.batch.statements?.some((one) => one.importance !== 1)); }
  get token() { return new URLSearchParams(location.hash.slice(1)).get("token"); }
  get tab() { return TABS.find((name) => $(`${name}-tab`).getAttribute("aria-selected") === "true"); }

  turn(name, focus = false) {
    const before = this.tab;
    for (const one of TABS) {
      $(`${one}-tab`).setAttribute("aria-selected", String(one === name));
      $(`${one}-tab`).tabIndex = one === name ? 0 : -1;
      $(`${one}-panel`).hidden = one !== name || this.empty;
    }
    if (focus) $(`${name}-tab`).focus();
    if (name === "release" && before !== name) this.releases.loadBudgets(); // another tab may have spent
  }

  warn(text, reason = null) {
    const banner = $("banner");
    banner.hidden = !text;
    banner.textContent = text || "";
    if (reason instanceof Refused && reason.status === 401) $("bench").hidden = true;
  }

  // What was typed into the release stays through a reload of this tab.
  remember() {
    const fields = ["table", "ledger", "further-text"];
    for (const id of fields) {
      const kept = sessionStorage.getItem(`lrm-${id}`);
      if (kept !== null) $(id).value = kept;
    }
    const keep = () => {
      for (const id of fields) {
        // The address of a database may hold a password, and a browser may write this to disk.
        if (!/:\/\/|@|=/.test($(id).value) || id === "further-text") sessionStorage.setItem(`lrm-${id}`, $(id).value);
        else sessionStorage.removeItem(`lrm-${id}`);
      }
    };
    for (const kind of ["input", "change"]) document.addEventListener(kind, keep);
  }

  async start() {
    this.remember();
    // A new address that is pasted into this tab changes nothing but what follows #.
    addEventListener("hashchange", () => { if (this.token) this.open(); });
    const chosen = new URLSearchParams(location.search);
    for (const kind of KINDS) this.texts[kind].name = chosen.get(kind) || "";
    await this.open();
  }

  async open() {
    try {
      if (this.token) await this.enter(this.token);
      const state = await ask("state", this.seals());
      this.errors.open(state.settings);
      await this.take(state);
      this.warn(state.settings_problem);
      $("bench").hidden = false;
      this.releases.loadBudgets();
    } catch (reason) { this.fail(reason); }
    this.wait();
  }

  async enter(token) {
    history.replaceState(null, "", location.pathname + location.search);
    const known = key.get() && await ask("state", this.seals()).then(() => true, () => false);
    if (!known) key.set((await ask("enter", { token })).key);
  }

  seals() {
    const { domain, batch } = this.texts;
    return { domain: domain.name, batch: batch.name, domain_seal: domain.seal, batch_seal: batch.seal };
  }

  wait() {
    const busy = this.job?.state === "running" || this.release?.state === "running" || this.compiled?.pending;
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.poll(), busy ? 400 : 2000);
  }

  async poll() {
    try {
      if (!document.hidden && key.get()) {
        await this.take(await ask("state", this.seals()));
        if (!this.conflict) this.warn("");
        $("bench").hidden = false;
      }
    } catch (reason) { this.fail(reason); }
    this.wait();
  }

  async begin(how) {
    $("use-example").disabled = $("use-empty").disabled = true;
    try {
      if (how === "example") await this.take(await ask("example", this.seals()));
      else {
        for (const [name, text] of [["domain.yaml", EMPTY_DOMAIN], ["questions.sql", EMPTY_BATCH]]) {
          await ask("save", { name, text, base: NOTHING });
        }
        await this.poll();
        $("domain-part").open = true;
      }
      problem($("start-problem"), "");
      this.editors.batch.view.focus();
    } catch (reason) { problem($("start-problem"), sentence(reason)); }
    $("use-example").disabled = $("use-empty").disabled = false;
  }

  // Take in what the server says about the folder.
  async take(state) {
    $("folder").textContent = state.folder;
    document.title = `${state.folder} · lrm workbench`;
    this.empty = !state.texts.domain.exists && !state.texts.batch.exists;
    $("start").hidden = !this.empty;
    $("tabs").hidden = this.empty;
    this.turn(this.tab);
    command($("start-command"), state.example);
    let changed = false;
    for (const kind of KINDS) {
      const told = state.texts[kind], own = this.texts[kind];
      own.name = told.name;
      if (told.text !== undefined && !own.dirty) {
        this.editors[kind].set(told.text.replaceAll("\r\n", "\n"));
        own.seal = told.seal;
        own.lineEnd = told.text.includes("\r\n") ? "\r\n" : "\n"; // the editor itself has \n alone
        changed = true;
        this.releases.forget();
      }
      options($(`${kind}-file`), [...new Set([told.name, ...state.files[kind]])].map((x) => [x, x]), told.name);
    }
    this.files = state.files;
    for (const kind of ["table", "ledger"]) options($(`${kind}s`), state.files[kind].map((name) => [name, ""]), "");
    if (!$("ledger").value) $("ledger").value = state.ledger;
    this.release = state.release;
    this.releases.take(state.release, state.files.release);
    const before = this.job;
    const news = before && state.job && (before.plans !== state.job.plans || before.state !== state.job.state);
    this.job = state.job;
    options($("plan-file"), [OWN, ...state.files.plan].map((name) => [name, name]), $("plan-file").value || OWN);
    // A search that has ended is shown as such together with its plan, not before.
    if (changed || news || this.compiled?.pending) await this.check();
    this.showJob(this.job);
  }

  choose(kind, name) {
    const params = new URLSearchParams(location.search);
    params.set(kind, name);
    history.replaceState(null, "", `?${params}`);
    this.texts[kind] = { name, seal: "" };
    this.poll();
  }

  async compile() {
    const texts = Object.fromEntries(KINDS.map((kind) => [kind, this.editors[kind].value]));
    try {
      const found = await ask("compile", { ...this.names, domain_text: texts.domain, batch_text: texts.batch,
        confidence: this.errors.confidence });
      this.compiled = found;
      this.showCompiled();
      if (await this.save(texts)) {
        this.plans = found.plans;
        this.choosePlan();
        await this.startPlan();
        this.errors.refresh();
      }
      if (found.pending) setTimeout(() => this.check(), 0);
    } catch (reason) { this.fail(reason); }
  }

  // Wait until what was typed is in the files.
  async saved() {
    if (KINDS.some((kind) => this.texts[kind].dirty)) await this.check();
  }

  // Write what was compiled, not what was typed since: the files are planned next. False where
  // somebody else has changed one.
  async save(texts) {
    for (const kind of KINDS) {
      const own = this.texts[kind], text = texts[kind];
      if (!own.dirty) continue;
      try {
        const written = text.replaceAll("\n", own.lineEnd || "\n");
        const saved = await ask("save", { name: own.name, text: written, base: own.seal });
        own.seal = saved.seal;
        own.dirty = this.editors[kind].value !== text;
        $("saved").textContent = `${own.name} is saved.`;
      } catch (reason) {
        if (!(reason instanceof Refused) || reason.status !== 409) throw reason;
        this.showConflict(kind, sentence(reason));
        return false;
      }
    }
    return true;
  }

  showConflict(kind, text) {
    this.conflict = true;
    const end = () => { this.conflict = false; this.warn(""); };
    const theirs = async () => {
      this.texts[kind].dirty = false;
      this.texts[kind].seal = "";
      end();
      await this.poll();
    };
    const mine = async () => {
      const state = await ask("state", { ...this.names });
      this.texts[kind].seal = state.texts[kind].seal;
      end();
      await this.check();
    };
    $("banner").hidden = false;
    $("banner").replaceChildren(`${text}. `,
      h("button", { type: "button", onclick: theirs }, "Take the other version"), " ",
      h("button", { type: "button", onclick: mine }, "Keep what is here"));
  }

  showCompiled() {
    const { domain, batch, outcome } = this.compiled;
    this.editors.domain.tell(domain.problems);
    this.form.show(domain);
    this.editors.batch.tell([...batch.problems, ...batch.warnings.map((one) => ({ ...one, warning: true }))]);
    // The table keeps the statements of the last text that could be read.
    if (batch.statement_count && !batch.problems.length) this.outcome = outcome;
    if (domain.problems.length && this.editors.domain.value.trim()) {
      $("domain-part").open = true;
      $("domain-note").textContent = "has an error";
    }
    if (domain.attributes) {
      $("domain-note").textContent = `${many(domain.attributes.length, "attribute", "attributes")}, `
        + `${domain.cells} cells; protects ${domain.protects}`;
      put($("attributes"), domain.html);
    }
    this.releases.offerTable(this.files.table, domain.table);
  }

  // What another plan can stand beside this one: equal importance, the other noise, a saved plan.
  get beside() {
    const { noise } = this.errors, other = noise === "pure" ? "gaussian" : "pure";
    const found = [{ value: "noise", name: other === "pure" ? "noise for pure ε" : "Gaussian noise",
      plan: this.current ? this.plans[other] : null }];
    if (this.weighed) {
      found.push({ value: "equal", name: "equal importance", plan: this.current ? this.plans[`${noise} equal`] : null });
    }
    return [...found, ...(this.files?.plan || []).map((name) => ({ value: `file ${name}`, name, plan: name }))];
  }

  showPlan() {
    options($("beside"), [["", "nothing"], ...this.beside.map(({ value, name }) => [value, name])]);
    const { errors } = this;
    const amount = `${$("amount-name").textContent} = ${$("amount").value}`;
    $("release-plan").textContent = this.plan ? `${this.plan}, ${errors.noise === "pure" ? "" : "Gaussian noise, "}`
      + `${amount}${errors.kind === "gaussian" ? `, δ = ${$("delta").value}` : ""}.` : "Nothing is planned yet.";
  }

  choosePlan() {
    const before = this.plan;
    this.plan = this.chosenPlan();
    if (this.plan !== before) this.releases.forget("A better plan has arrived since this dry run: make another one.");
  }

  chosenPlan() {
    const chosen = $("plan-file").value;
    if (chosen && chosen !== OWN) {
      this.planKey = null;
      return chosen;
    }
    const found = this.plans[this.errors.noise];
    if (!found) return this.plan; // the last plan stays on the screen until the new one is there
    this.planKey = this.compiled.key;
    return found;
  }

  async startPlan(more = {}) {
    if (!this.compiled?.key) { this.showJob(this.job); return; }
    try {
      const { noise, confidence } = this.errors;
      const found = await ask("plan", { ...this.names, noise, confidence, ...more });
      this.plans = found.plans;
      this.choosePlan();
      this.showJob(found.job);
      command($("plan-command"), found.command);
    } catch (reason) { this.fail(reason); }
  }

  showJob(job) {
    this.job = job;
    const running = job?.state === "running";
    $("job").classList.toggle("running", running);
    $("search").textContent = running ? "Stop, keep the best" : "Search longer";
    $("search").classList.toggle("away", !running && !this.current);
    this.tellJob(this.jobWords(job, running), running);
  }

  // A line that changes several times a second can neither be read nor spoken: while a search goes
  // on it is written every two seconds at most, and the end of a search at once.
  tellJob(words, running) {
    const line = $("job-words"), now = Date.now();
    if (line.textContent === words || (running && this.told?.running && now - this.told.at < CALM)) return;
    this.told = { running, at: now };
    line.textContent = words;
  }

  jobWords(job, running) {
    const old = this.plan && !this.current ? " The errors below are of the last plan." : "";
    const pending = this.compiled?.pending;
    if (pending) return `${many(pending, "statement is", "statements are")} still to be compiled.${old}`;
    if (this.compiled && !this.compiled.key) return `The questions or the domain have errors.${old}`;
    if (running) {
      const found = job.found && job.noise === this.errors.noise && this.current ? this.soFar(job.found) : "";
      const first = this.plan ? "Looking for smaller errors." : "Making a first plan.";
      return `${first}${found}${old}`;
    }
    if (job?.state === "failed") return `The search failed: ${job.error}`;
    if (!this.plan) return "Nothing is planned yet.";
    return this.current ? `Planned: ${this.plan}.` : `Plan: ${this.plan}.`;
  }

  // How much smaller the errors of the best strategy so far are than those of the plan below.
  soFar(error) {
    const { amounts, noise, found } = this.errors;
    const amount = Number(noise === "pure" ? amounts.epsilon : amounts.rho);
    if (this.weighed || !(amount > 0) || !found?.queries) return "";
    const total = noise === "pure" ? (2 * error) / amount ** 2 : error / (2 * amount);
    // One part of the search may be behind what another has found.
    const less = Math.round(100 * (1 - Math.sqrt(total / found.queries) / found.typical));
    return less > 0 ? ` Best so far: errors ${less} % smaller.` : "";
  }

  // Write an importance or an expected size as a remark before its statement.
  remark(line, kind, text) {
    const one = this.compiled?.batch.statements.find((each) => each.line === line);
    if (!one || !this.editable) return;
    const value = Number(text.replaceAll(",", ""));
    const none = text === "" || (kind === "importance" && value === 1);
    if (!none && !(value > 0)) {
      problem($("remark-problem"), `The ${kind === "importance" ? "importance" : "expected size"} of '${one.title}' `
        + `must be a number above 0, not '${text}'.`);
      return;
    }
    problem($("remark-problem"), "");
    const batch = this.editors.batch;
    batch.set(withRemark(batch.value, line, kind, none ? null : String(value)), true);
  }
}

const CALM = 2000; // milliseconds between two lines about a search
const NOTHING = "e3b0c44298fc1c14"; // the seal of an empty text
const EMPTY_DOMAIN = `lrm-domain: 1
table: visits
unit: row
attributes:
  - {name: sex, kind: categories, values: [f, m], null: drop, outside: drop}
  - {name: age, kind: integers, low: 0, high: 99, width: 10, null: drop, outside: drop}
`;
const EMPTY_BATCH = "SELECT age, COUNT(*) AS visits FROM visits GROUP BY age;\n";

new Bench().start();
