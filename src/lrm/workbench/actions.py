"""What the page can ask for: one method for each, from JSON to JSON."""

from __future__ import annotations

import secrets
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lrm.errors import BudgetError, LrmError, UsageError
from lrm.files.locations import shown
from lrm.ledger import Ledger
from lrm.planning.accuracy import privacy_of
from lrm.planning.plan import Plan
from lrm.planning.plan.file import load_plan
from lrm.privacy.budget import Noise, Privacy
from lrm.releases import Release
from lrm.releases.file import load_release
from lrm.releases.postprocess import Processed, process
from lrm.views.html import render, render_parts
from lrm.views.plans import bound_words
from lrm.views.rehearsal import rehearse
from lrm.views.release_document import Detail, release_document
from lrm.views.release_page import name_beside, release_page
from lrm.views.statement_errors import statement_facts
from lrm.workbench.commands import (
    CONFIDENCE,
    amount_options,
    confidence_options,
    plan_command,
    release_command,
    run,
    typed,
)
from lrm.workbench.compiling import (
    SLICE,
    Asked,
    Compiler,
    Outcome,
    asked_statements,
    compile_whole,
    edited,
    form_facts,
)
from lrm.workbench.folder import Folder, Text
from lrm.workbench.fragments import Beside, key_html, placed, rows_of, table_of
from lrm.workbench.jobs import Planner
from lrm.workbench.params import Params
from lrm.workbench.rating import Rated, advice_between, inverse, tolerated
from lrm.workbench.releasing import Cashier, Wanted, budgets
from lrm.workbench.settings import FILE, Settings, load_settings, save_settings

KEPT = 4
"""Plans and releases that are held in memory."""

KEPT_OUTCOMES = 32
"""Compiled texts whose statements are held in memory, for some tabs."""

SHOWN_ANSWERS = Detail("answers", each=500, drawn=False, facts=False)
"""How much is shown of the answers to further questions."""

WARM_UP = """\
lrm-domain: 1
unit: row
attributes: [{name: a, kind: integers, low: 0, high: 1, null: drop, outside: drop}]
"""
"""A domain to compile a first statement over."""

EXAMPLE = ("demo", "--folder", ".", "--files-only")
"""The command that writes the worked example."""

TOLERANCES = -2
"""The number by which the page asks for the tolerances of all statements."""

AMOUNTS = ("epsilon", "delta", "rho")

_NOISES = {"laplace": "Laplace", "gaussian": "Gaussian", "shaped": "shaped"}

Download = tuple[str, str, bytes]
"""A file for the browser: its name, its type and its contents."""

TYPES = {
    "lrm": "application/octet-stream",
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "html": "text/html; charset=utf-8",
}


@dataclass(frozen=True, eq=False)
class Opened:
    """A release, and its answers that add up once somebody asks for them."""

    release: Release

    @cached_property
    def processed(self) -> Processed:
        """Answers that add up, next to the released ones."""
        return process(self.release, ["consistent"])


class Actions:
    """The workbench of one folder."""

    def __init__(self, root: Path, ledger: str) -> None:
        self.folder = Folder(root)
        self.ledger = ledger
        self.planner = Planner(self.folder)
        self.cashier = Cashier(self.folder)
        self._compiler = Compiler()
        self._lock = threading.Lock()
        self._outcomes: OrderedDict[str, tuple[Asked, ...]] = OrderedDict()
        self._loaded: OrderedDict[tuple[str, int], Any] = OrderedDict()
        self._downloads: OrderedDict[str, tuple[str, str, bool]] = OrderedDict()

    def warm_up(self) -> None:
        """Compile something, so that the first question need not wait for imports."""
        questions = Text("questions.sql", "SELECT COUNT(*) FROM t WHERE a % 2 = 0")
        self._compiler.compile(Text("domain.yaml", WARM_UP), questions)

    def call(self, name: str, params: Params) -> dict[str, Any]:
        """Do what the page asks for."""
        action: Callable[[Params], dict[str, Any]] | None = self._actions.get(name)
        if action is None:
            raise UsageError(f"there is no action called {name[:40]!r}")
        return action(params)

    @property
    def _actions(self) -> dict[str, Callable[[Params], dict[str, Any]]]:
        return {
            "state": self._state,
            "example": self._example,
            "save": self._save,
            "compile": self._compile,
            "draft": self._draft,
            "edit-domain": self._edit_domain,
            "plan": self._plan,
            "stop": self._stop,
            "settings": self._settings,
            "errors": self._errors,
            "worst": self._worst,
            "rivals": self._rivals,
            "inverse": self._inverse,
            "budgets": self._budgets,
            "create-budget": self._create_budget,
            "rehearse": self._rehearse,
            "dry-run": self._dry_run,
            "release": self._release,
            "results": self._results,
            "query": self._query,
            "download": self._download,
        }

    def _state(self, params: Params) -> dict[str, Any]:
        """What is in the folder and what is under way; texts that the page does not have yet."""
        files = self.folder.files()
        texts = {}
        for kind, default in (("domain", "domain.yaml"), ("batch", "questions.sql")):
            usual = default if default in files[kind] else next(iter(files[kind]), default)
            name = params.text(kind, default="") or usual
            read = self.folder.read(name)
            known = params.text(f"{kind}_seal", default="")
            texts[kind] = {"name": name, "seal": read.seal, "exists": name in files[kind]}
            if read.seal != known:
                texts[kind]["text"] = read.text
        settings, problem = load_settings(self.folder.root)
        return {
            "folder": self.folder.root.name or str(self.folder.root),
            "files": files,
            "texts": texts,
            "job": self.planner.shown,
            "release": self.cashier.shown,
            "ledger": shown(self.ledger),
            "example": typed(EXAMPLE),
            "settings": asdict(settings),
            "settings_problem": problem,
        }

    def _settings(self, params: Params) -> dict[str, Any]:
        """Keep the noise, the amounts and the confidence."""
        texts = {name: params.text(name) for name in ("noise", "amount", "delta")}
        settings = Settings(**texts, confidence=params.number("confidence", -1e300))
        save_settings(self.folder.root, settings)
        return {"saved": FILE}

    def _example(self, params: Params) -> dict[str, Any]:
        """Write the worked example into the folder."""
        ran = run(EXAMPLE, self.folder.root)
        if ran.facts is None:
            raise UsageError(ran.error)
        return self._state(params)

    def _save(self, params: Params) -> dict[str, Any]:
        """Write a text where it was not changed by others."""
        saved = self.folder.save(params.text("name"), params.text("text"), params.text("base"))
        return {"name": saved.name, "seal": saved.seal}

    def _texts(self, params: Params) -> tuple[Text, Text]:
        domain = self.folder.read(params.text("domain"))
        return domain, self.folder.read(params.text("batch"))

    def _compile(self, params: Params) -> dict[str, Any]:
        """What the compiler says to the texts as they are typed, saved or not."""
        domain = Text(params.text("domain"), params.text("domain_text"))
        batch = Text(params.text("batch"), params.text("batch_text"))
        outcome = self._compiler.compile(domain, batch, SLICE).at(_confidence(params))
        name = secrets.token_urlsafe(8)
        with self._lock:
            self._outcomes[name] = outcome.statements
            while len(self._outcomes) > KEPT_OUTCOMES:
                self._outcomes.popitem(last=False)
        facts = outcome.facts
        facts["domain"]["form"] = form_facts(domain.text)
        return {**facts, "outcome": name, "plans": self._plans(outcome)}

    def _draft(self, params: Params) -> dict[str, Any]:
        """A draft of the domain from the names and types of a table's columns."""
        command = ["domain", "init", params.text("table")]
        ran = run(command, self.folder.root)
        if ran.facts is None:
            raise UsageError(ran.error)
        return {"text": ran.facts["draft"], "command": typed(command)}

    @staticmethod
    def _edit_domain(params: Params) -> dict[str, Any]:
        """The text of a domain after one change in its form."""
        entry, field, value = (params.text(name) for name in ("entry", "field", "value"))
        return {"text": edited(params.text("text"), entry, field, value)}

    def _plans(self, outcome: Outcome) -> dict[str, str | None]:
        """The plans of the batch that are there already."""
        plan_names: dict[str, str | None] = {"pure": None, "gaussian": None}
        if outcome.key is not None and outcome.equal_key is not None:
            for noise in ("pure", "gaussian"):
                plan_names[noise] = self.folder.find_plan(noise, outcome.key)
                if outcome.key != outcome.equal_key:
                    plan_names[f"{noise} equal"] = self.folder.find_plan(noise, outcome.equal_key)
        return plan_names

    def _plan(self, params: Params) -> dict[str, Any]:
        """Plan the saved texts in the background."""
        noise = params.choice("noise", "pure", "gaussian", default="pure")
        effort = params.choice("effort", "normal", "quick", "thorough", default="normal")
        domain, batch = self._texts(params)
        outcome = self._compiler.compile(domain, batch).at(_confidence(params))
        if outcome.key is None or outcome.equal_key is None:
            raise UsageError("the batch cannot be planned until its errors are corrected")
        self.planner.start(
            domain,
            batch,
            outcome.key,
            outcome.equal_key,
            noise,
            again=params.flag("again", default=False),
            effort=effort,
            meet=outcome.meet,
        )
        file = self.folder.plan_name(noise, outcome.key)
        command = plan_command(batch.name, domain.name, noise, file, outcome.meet)
        return {
            "job": self.planner.shown,
            "plans": self._plans(outcome),
            "command": typed(command + ([] if effort == "normal" else ["--effort", effort])),
        }

    def _stop(self, params: Params) -> dict[str, Any]:
        del params
        self.planner.stop()
        return {"job": self.planner.shown}

    def _load(self, name: str, read: Callable[[Path], Any]) -> Any:
        """Load a file, unless it is the one that was loaded before."""
        path = self.folder.made(name)
        if not path.is_file():
            raise UsageError(f"there is no file {name} any more; choose another, or plan again")
        key = (name, path.stat().st_mtime_ns)
        with self._lock:
            if key not in self._loaded:
                self._loaded[key] = read(path)
                while len(self._loaded) > KEPT:
                    self._loaded.popitem(last=False)
            self._loaded.move_to_end(key)
            return self._loaded[key]

    def _plan_of(self, params: Params, field: str = "plan") -> tuple[str, Rated]:
        """The plan that the page asks for, or the one that takes its place in this moment."""
        name = self.folder.successor(params.text(field))
        try:
            return name, self._rated(name)
        except (LrmError, OSError):
            successor = self.folder.successor(name)
            if successor == name:
                raise
            return successor, self._rated(successor)

    def _rated(self, name: str) -> Rated:
        rated: Rated = self._load(name, lambda path: Rated(load_plan(path)))
        return rated

    def _opened(self, name: str) -> Opened:
        opened: Opened = self._load(name, lambda path: Opened(load_release(path)))
        return opened

    def _errors(self, params: Params) -> dict[str, Any]:
        """The errors of the statements at a guarantee; dots in their place without a plan."""
        confidence = _confidence(params)
        with self._lock:
            statements = self._outcomes.get(params.text("outcome", default=""))
        if not params.text("plan", default=""):
            html = table_of(statements or (), {}, confidence, None)
            key, _ = key_html(statements or (), {}, "", "…")
            return {"statements": html, "rows": rows_of(statements or ()), "key": key}
        name, rated = self._plan_of(params)
        plan = rated.plan
        amounts, privacy = _guarantee(plan, params)
        statements = asked_statements(plan.workload) if statements is None else statements
        errors = rated.at(privacy, confidence)
        placed_errors = placed(statements, errors)
        beside, advice = self._beside(params, plan, privacy, statements, confidence)
        key, words = key_html(statements, placed_errors, privacy.symbols, _NOISES[plan.noise])
        command = ["explain", name, *amount_options(amounts)]
        command += confidence_options(confidence)
        return {
            "plan": name,
            "statements": table_of(statements, placed_errors, confidence, beside),
            "rows": rows_of(statements),
            "key": key,
            "said": words,
            "beside": advice,
            "facts": statement_facts(errors),
            "typical": plan.accuracy(privacy).root_mean_squared_error,
            "queries": plan.workload.shape[0],
            "warnings": list(dict.fromkeys([*self.planner.warnings_of(name), *plan.warnings])),
            "command": typed(command),
        }

    def _beside(
        self,
        params: Params,
        plan: Plan,
        privacy: Privacy,
        statements: Sequence[Asked],
        confidence: float,
    ) -> tuple[Beside | None, str]:
        """Another plan next to the one that is shown, at the same ε; and what follows from it."""
        name = params.text("beside", default="")
        if not name:
            return None, ""
        title = params.text("beside_name", default="") or name
        _, other = self._plan_of(params, "beside")
        stated, advice = privacy, ""
        if (other.plan.noise == "gaussian") != (plan.noise == "gaussian"):
            epsilon, delta = params.text("epsilon", default=""), params.text("delta", default="")
            if not epsilon:
                return None, "Choose ε instead of ρ: both noises are compared at the same ε."
            both = privacy_of("laplace", epsilon), privacy_of("gaussian", epsilon, delta or "1e-9")
            stated = both[other.plan.noise == "gaussian"]
            pair = (other.plan, plan) if plan.noise == "gaussian" else (plan, other.plan)
            advice = advice_between(*pair, *both)
        placed_errors = placed(statements, other.at(stated, confidence))
        return Beside(title, placed_errors), advice

    def _worst(self, params: Params) -> dict[str, Any]:
        """The largest errors answer by answer, and how near the plan is to the best possible."""
        _, rated = self._plan_of(params)
        _, privacy = _guarantee(rated.plan, params)
        table = rated.worst(privacy, _confidence(params))
        return {"html": render(table), "bound": bound_words(rated.plan)}

    def _rivals(self, params: Params) -> dict[str, Any]:
        """Simpler mechanisms compared with the plan."""
        _, rated = self._plan_of(params)
        amounts, privacy = _guarantee(rated.plan, params)
        arguments = ["compare", params.text("batch"), "--domain", params.text("domain")]
        extra = ["--noise", "gaussian"] if rated.plan.noise == "gaussian" else []
        command = typed([*arguments, *extra, *amount_options(amounts)])
        return {"html": render(rated.rivals(privacy)), "command": command}

    def _inverse(self, params: Params) -> dict[str, Any]:
        """The amount for a wanted error."""
        name, rated = self._plan_of(params)
        statement = params.number("statement", -1e300, default=-1)
        if statement == TOLERANCES:
            confidence = _confidence(params)
            least = tolerated(rated, confidence)
            command = ["explain", name, "--meet", *confidence_options(confidence)]
            return {**least, "command": typed(command)}
        target = params.number("wanted", -1e300)
        amount_facts = inverse(rated, target, None if statement < 0 else int(statement))
        if statement < 0:
            return {**amount_facts, "command": typed(["explain", name, "--rmse", f"{target:g}"])}
        exact = ["explain", name, f"--{amount_facts['name']}", amount_facts["amount"]]
        return {**amount_facts, "command": typed(exact)}

    def _ledger(self, params: Params) -> str:
        """The ledger that the page names; its own by what is shown of an address."""
        ledger_text = params.text("ledger")
        return self.ledger if ledger_text in {"", shown(self.ledger)} else ledger_text

    def _budgets(self, params: Params) -> dict[str, Any]:
        ledger = self._ledger(params)
        command = ["budget", "history", "--ledger", ledger]
        return {**budgets(ledger, params.text("table", default="")), "command": typed(command)}

    def _create_budget(self, params: Params) -> dict[str, Any]:
        """Give the table of the domain its budget."""
        ledger, table = self._ledger(params), params.text("table")
        limit, accounting = (
            params.text("limit"),
            params.choice("accounting", "epsilon", "rho", default="epsilon"),
        )
        domain, batch = self._texts(params)
        declared = self._compiler.compile(domain, batch).domain
        if declared is None:
            raise UsageError("the domain says whom a budget protects; correct its errors first")
        Ledger.open(ledger).create(table, limit, accounting, unit=declared.unit)
        arguments = ["budget", "create", table, "--limit", limit, "--domain", domain.name]
        options = ["--accounting", "rho"] if accounting == "rho" else []
        return {
            **self._budgets(params),
            "command": typed([*arguments, *options, "--ledger", ledger]),
        }

    def _rehearse(self, params: Params) -> dict[str, Any]:
        """The page of a release on made-up rows: nothing is spent, and no table is read."""
        name, rated = self._plan_of(params)
        amounts, privacy = _guarantee(rated.plan, params)
        made = rehearse(rated.plan, privacy)
        return {
            "html": render_parts(release_document(made, confidence=_confidence(params))),
            "command": typed(["rehearse", name, *amount_options(amounts)]),
        }

    def _dry_run(self, params: Params) -> dict[str, Any]:
        """Check a release, and issue the ticket for it."""
        table = params.text("table")
        if not table.strip():
            raise UsageError("name the table: a file of the folder, or an address")
        name, rated = self._plan_of(params)
        self._check_current(rated.plan, params)
        amounts, _ = _guarantee(rated.plan, params)
        ledger, budget = self._ledger(params), params.text("budget", default="")
        command = release_command(name, table, amounts, ledger, budget)
        files = (name, params.text("domain"), params.text("batch"))
        request = Wanted(command, files, rated.plan, table, amounts, ledger, budget or None)
        return {**self.cashier.dry_run(request), "ledger": shown(ledger), "plan": name}

    def _check_current(self, plan: Plan, params: Params) -> None:
        """Refuse a plan that is not of the questions that the page shows."""
        domain, batch = self._texts(params)
        outcome = self._compiler.compile(domain, batch)
        if outcome.domain is None or outcome.problems:
            raise UsageError("correct the errors of the domain and the questions first")
        questions = compile_whole(batch, outcome.domain).over_all_rows()
        if (
            plan.workload.domain != questions.domain
            or questions.unweighted_digest != plan.workload.unweighted_digest
        ):
            raise UsageError(
                "the plan is of other questions than those in the editor; choose the plan of these "
                "questions, or release that one with lrm release"
            )

    def _release(self, params: Params) -> dict[str, Any]:
        return self.cashier.release(params.text("ticket"))

    def _query(self, params: Params) -> dict[str, Any]:
        """Answer further questions from a release."""
        name, text = params.text("release"), params.text("sql")
        if not text.strip():
            raise UsageError("write a question, such as SELECT COUNT(*) FROM …")
        answered = self._opened(name).release.query(text)
        document = release_document(answered, SHOWN_ANSWERS, _confidence(params))
        return {
            "html": "".join(render(block) for part in document.parts for block in part.blocks),
            "count": len(answered.plan.workload.shown),
            "command": typed(["query", name, text]),
        }

    def _results(self, params: Params) -> dict[str, Any]:
        """The report of a release, as parts of the page."""
        name, consistent = params.text("release"), params.flag("consistent", default=False)
        opened = self._opened(name)
        document = release_document(
            opened.release,
            processed=opened.processed if consistent else None,
            file=name_beside(opened.release, Path(name).with_suffix(".html")),
        )
        steps = ["--post-process", "consistent"] if consistent else []
        return {"html": render_parts(document), "command": typed(["report", name, *steps])}

    def _download(self, params: Params) -> dict[str, Any]:
        """Issue an address from which one file can be fetched, once."""
        name, form = params.text("file"), params.choice("as", *TYPES, default="lrm")
        self.folder.made(name)
        key = secrets.token_urlsafe(24)
        self._downloads[key] = (name, form, params.flag("consistent", default=False))
        while len(self._downloads) > 100:
            self._downloads.popitem(last=False)
        return {"address": f"/once/{key}"}

    def fetch(self, key: str) -> Download | None:
        """Make the file of an address; None where there is none, or it was fetched before."""
        request = self._downloads.pop(key, None)
        if request is None:
            return None
        name, form, consistent = request
        stem = Path(name).stem
        opened = self._opened(name)  # first: any file may be called so, a table as well
        release, processed = opened.release, opened.processed if consistent else None
        if form == "lrm":
            return f"{stem}.lrm", TYPES[form], self.folder.made(name).read_bytes()
        if form == "html":
            page = f"{stem}.html"
            return (
                page,
                TYPES[form],
                release_page(release, processed=processed, place=page).encode(),
            )
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / f"{stem}.{form}"
            release.write(path, processed=processed)
            return path.name, TYPES[form], path.read_bytes()


def _confidence(params: Params) -> float:
    return params.number("confidence", -1e300, default=CONFIDENCE)


def _guarantee(plan: Plan, params: Params) -> tuple[dict[str, str], Privacy]:
    """The amounts as they were given, and the guarantee that they mean."""
    amounts = {name: text for name in AMOUNTS if (text := params.text(name, default="").strip())}
    if plan.noise != "gaussian":  # the page sends δ along, for a Gaussian plan next to this one
        amounts.pop("delta", None)
    if not amounts:
        raise BudgetError("give an amount, such as 0.1")
    noise: Noise = plan.noise
    return amounts, privacy_of(
        noise, amounts.get("epsilon"), amounts.get("delta"), amounts.get("rho")
    )
