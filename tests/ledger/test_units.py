"""One budget added up promises for different privacy units.

Two domains over one table, one that protects a person with up to ten rows and one that protects a
row, both paid ε = 1 from the same budget: a person with ten rows had lost 11 where the ledger said
2. A plan edited from five rows, replaced, to one row, added or removed, kept its digest. Now a
budget is created for one privacy unit, each entry names the unit of its release, what follows by
group privacy is charged, and everything else is refused. ``docs/explanation/promise.md`` has the
table that is checked here.
"""

import json
import math
import zipfile
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import lrm
from lrm.domain import Domain, Integers
from lrm.errors import BudgetError, BudgetExceeded, FileFormatError, LedgerError
from lrm.ledger import Ledger
from lrm.ledger.entries import Accounting, Budget, Row
from lrm.privacy.budget import ZCDP, PureDP
from lrm.privacy.noise import calibrate_laplace
from lrm.privacy.unit import PrivacyUnit

ROW = PrivacyUnit()
FIVE = PrivacyUnit(None, 5)
PERSON = PrivacyUnit("pid", 10)
TENTH = PureDP(Fraction(1, 10))
NOTHING = "from which nothing follows for the budget; release with the budget's unit"


@pytest.fixture
def ledger(tmp_path):
    return Ledger.open(tmp_path / "ledger.sqlite")


def planned(unit):
    domain = Domain([Integers("age", 0, 3)], table="people", unit=unit)
    return lrm.plan(lrm.Workload(np.eye(4), domain=domain), "noise-on-data")


def test_a_row_does_not_pay_from_the_budget_of_a_person(ledger):
    """The two domains of the report: the second release is refused before anything is spent."""
    ledger.create("people", 2, unit=PERSON)
    ledger.spend("people", PureDP(Fraction(1)), unit=PERSON, purpose="by person")
    for ask in (
        lambda: ledger.spend("people", PureDP(Fraction(1)), unit=ROW, purpose="by row"),
        lambda: ledger.preview("people", PureDP(Fraction(1)), unit=ROW),
    ):
        with pytest.raises(LedgerError, match=NOTHING):
            ask()
    assert ledger.remaining("people") == 1


def test_releases_are_refused_by_what_their_domains_declare(run_release, ledger):
    ledger.create("people", 2, unit=PERSON)
    assert run_release(planned(PERSON), ledger).unit == PERSON
    assert run_release(planned(replace(PERSON, max_rows=3)), ledger).unit.max_rows == 3
    for unit in (ROW, PrivacyUnit("household", 10), replace(PERSON, neighbours="substitute")):
        with pytest.raises(LedgerError, match=NOTHING):
            run_release(planned(unit), ledger)
    assert ledger.remaining("people") == Fraction(9, 5)
    assert [entry.unit.max_rows for entry in ledger.history()] == [10, 10, 3]


@pytest.fixture
def run_release(tmp_path):
    from lrm.tables import open_table

    table = tmp_path / "people.csv"
    table.write_text("pid,household,age\n1,1,0\n1,1,2\n2,1,3\n")

    def run(plan, ledger):
        return lrm.release(plan, open_table(str(table)), epsilon="0.1", ledger=ledger)

    return run


TABLE = [
    # budget, release, by how much ε grows (None: refused)
    (ROW, ROW, 1),
    (ROW, FIVE, 1),
    (FIVE, ROW, 5),
    (FIVE, PrivacyUnit(None, 2), 3),
    (PERSON, PERSON, 1),
    (PERSON, PrivacyUnit("pid", 1), 1),
    (PERSON, PrivacyUnit("pid", 99), 1),
    (PERSON, PrivacyUnit("household", 10), None),
    (PERSON, ROW, None),
    (PERSON, PrivacyUnit(None, 10), None),
    (ROW, PERSON, None),
    (replace(ROW, neighbours="substitute"), ROW, 2),
    (replace(FIVE, neighbours="substitute"), ROW, 10),
    (replace(PERSON, neighbours="substitute"), PERSON, 2),
    (ROW, replace(ROW, neighbours="substitute"), None),
    (PERSON, replace(PERSON, neighbours="substitute"), None),
    (replace(PERSON, neighbours="substitute"), replace(PERSON, neighbours="substitute"), 1),
]


@pytest.mark.parametrize(("kept", "released", "steps"), TABLE)
def test_the_table_of_conversions(kept, released, steps):
    """ε grows by the number of steps and ρ by its square, exactly."""
    epsilon, rho = Fraction(1, 7), Fraction(1, 11)
    for accounting, privacy, cost in (
        ("epsilon", PureDP(epsilon), lambda n: n * epsilon),
        ("rho", PureDP(epsilon), lambda n: (n * epsilon) ** 2 / 2),
        ("rho", ZCDP(rho), lambda n: n**2 * rho),
    ):
        budget = Budget("t", Accounting(accounting), kept, Fraction(10**4), Fraction(0))
        if steps is None:
            with pytest.raises(LedgerError, match=NOTHING):
                budget.cost(privacy, released)
        else:
            assert budget.cost(privacy, released) == cost(steps)


@pytest.mark.parametrize(("kept", "released", "steps"), TABLE)
def test_what_is_charged_covers_the_noise_that_is_drawn(kept, released, steps):
    """The privacy map of the noise itself, at the distance of the budget's unit.

    Noise for one release is calibrated to the factor of its unit. At the distance that the unit of
    the budget has, its map must not return more than what is charged: for a person it is that of
    the rows that the release keeps.
    """
    if steps is None:
        return
    epsilon = Fraction(1, 3)
    noise = calibrate_laplace(released.factor, PureDP(epsilon))
    rows = kept.max_rows if kept.column is None else released.max_rows
    distance = replace(kept, max_rows=rows).factor
    assert Fraction(noise.sampler.map(distance)) <= steps * epsilon * (1 + Fraction(1, 10**12))


def test_no_conversion_is_cheaper_than_the_worst_neighbours():
    """Two tables of the budget's unit, the noise of the release, and the exact ratio of odds.

    Discrete Laplace noise on one count has odds e^(−|k|/b); for a shift by d the largest ratio is
    e^(d/b), so the loss is d/b with b = factor/ε. It is what the ledger must charge at least.
    """
    units = [
        PrivacyUnit(None, rows, kind)
        for rows, kind in product(range(1, 7), ("add-remove", "substitute"))
    ]
    for kept, released in product(units, units):
        steps = kept.steps_of(released)
        if steps is not None:
            loss = Fraction(kept.factor, released.factor)  # for ε = 1
            assert loss <= steps
            assert steps <= 2 * math.ceil(loss), "and not much more than that"


def test_entries_name_the_unit_and_its_cost(ledger):
    ledger.create("people", 1, unit=FIVE)
    entry = ledger.spend("people", TENTH, unit=ROW, purpose="rows")
    assert (entry.unit, entry.amount, entry.promise) == (ROW, Fraction(1, 2), "epsilon=1/10")
    ledger.spend("people", TENTH, unit=FIVE, purpose="five")
    assert [entry.unit for entry in ledger.history()] == [FIVE, ROW, FIVE]
    assert ledger.remaining("people") == Fraction(2, 5)
    with pytest.raises(BudgetExceeded, match=r"has 0\.4 epsilon left of 1, but this release costs"):
        ledger.spend("people", TENTH, unit=ROW, purpose="rows again")
    ledger.verify()


@pytest.mark.parametrize(
    "change",
    [
        {"unit": FIVE.text},
        {"amount": "1/10"},
        {"promise": "epsilon=1/50"},
        {"promise": "rho=1/10"},
        {"promise": "epsilon=1e-1"},
        {"unit": json.dumps(ROW.facts)},
        {"unit": "[" * 5000},
        {"amount": "1e999999999"},
    ],
)
def test_a_resealed_entry_must_cost_what_its_promise_costs(ledger, change):
    """Right digests do not help an entry whose unit, promise and amount disagree."""
    ledger.create("people", 1, unit=FIVE)
    ledger.spend("people", TENTH, unit=ROW, purpose="rows")
    store = ledger._store
    first, second = store.read().rows
    forged = replace(second, **change).sealed()
    snapshot = replace(store.read(), rows=(first, forged), digest=forged.digest)
    store.read = lambda: snapshot
    assert isinstance(forged, Row)
    with pytest.raises(LedgerError, match="changed from outside: entry 2"):
        ledger.verify()


def test_the_digest_of_a_plan_covers_its_domain():
    """All that a domain declares: whom it protects, the table, and the rules for values."""
    plan = planned(PrivacyUnit("pid", 5, "substitute"))
    domain = plan.workload.domain
    others = [
        planned(ROW),
        planned(PrivacyUnit("pid", 5)),
        planned(PrivacyUnit("pid", 4, "substitute")),
        planned(PrivacyUnit("household", 5, "substitute")),
        replace(plan, workload=replace(plan.workload, domain=None)),
        replace(
            plan,
            workload=replace(
                plan.workload, domain=Domain(domain.attributes, "others", domain.unit)
            ),
        ),
    ]
    assert len({plan.digest, *(other.digest for other in others)}) == 1 + len(others)


def test_a_plan_file_whose_unit_was_edited_is_refused(tmp_path):
    """From five rows, replaced, to one row, added or removed: with all seals made anew."""
    path = tmp_path / "plan.lrm"
    planned(PrivacyUnit("pid", 5, "substitute")).save(path)
    reseal(path, "max_rows: 5", "max_rows: 1")
    with pytest.raises(FileFormatError):
        lrm.load_plan(path)
    planned(PrivacyUnit("pid", 5, "substitute")).save(path)
    reseal(path, "neighbours: substitute", "neighbours: add-remove")
    with pytest.raises(FileFormatError):
        lrm.load_plan(path)


def test_a_release_file_with_another_unit_than_its_domain_is_refused(tmp_path):
    path = tmp_path / "release.lrm"
    lrm.release(planned(PERSON), [1, 2, 3, 4], 1).save(path)
    reseal(path, '"max_rows": 10', '"max_rows": 100')
    with pytest.raises(FileFormatError):
        lrm.load_release(path)


def reseal(path, old, new):
    """Change a text in the facts of a file, and make its seal anew."""
    import hashlib

    with zipfile.ZipFile(path) as bundle:
        members = {name: bundle.read(name) for name in bundle.namelist()}
    facts = members["facts.json"].decode()
    assert old in facts
    members["facts.json"] = facts.replace(old, new).encode()
    header = json.loads(members["header.json"])
    header["sha256"]["facts.json"] = hashlib.sha256(members["facts.json"]).hexdigest()
    members["header.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as bundle:
        for name, data in members.items():
            bundle.writestr(name, data)


@pytest.mark.parametrize("said", [{"max_rows": 1}, {"max_rows": 11}, {"neighbours": "substitute"}])
def test_a_release_cannot_contradict_its_domain(said):
    plan = planned(PERSON)
    with pytest.raises(BudgetError, match=r"the domain protects one person \(column 'pid'\)"):
        lrm.release(plan, [1, 2, 3, 4], 1, **said)
    same = lrm.release(plan, [1, 2, 3, 4], 1, max_rows=10, neighbours="add-remove")
    assert same.unit == PERSON


def test_a_plan_without_a_domain_takes_a_declared_unit(ledger):
    plan = lrm.plan(np.eye(2), "noise-on-data")
    assert lrm.release(plan, [1, 2], 1).unit == ROW
    declared = lrm.release(plan, [1, 2], 1, max_rows=5, neighbours="substitute")
    assert declared.unit == PrivacyUnit(None, 5, "substitute")


def test_the_command_creates_a_budget_for_a_unit(tmp_path, monkeypatch):
    from click.testing import CliRunner

    from lrm.cli import main

    monkeypatch.chdir(tmp_path)
    Path("domain.yaml").write_text(
        "lrm-domain: 1\ntable: people\nunit: {column: pid, max_rows: 10}\nattributes:\n"
        "- {name: age, kind: integers, low: 0, high: 3, null: drop, outside: drop}\n"
    )

    def run(*words, code=0):
        result = CliRunner().invoke(main, ["budget", *words, "--ledger", "l.sqlite"])
        assert result.exit_code == code, result.output
        return result.output

    create = ("create", "people", "--limit", "1")
    for wrong, sentence in (
        (("--person", "pid"), "--person needs --max-rows"),
        (("--domain", "domain.yaml", "--max-rows", "1"), "the domain declares whom"),
        (("--unit", "epsilon"), "No such option"),
    ):
        assert sentence in " ".join(run(*create, *wrong, code=2).split())
    assert "one person (column 'pid') with at most 10 rows" in run(
        *create, "--domain", "domain.yaml"
    )
    run("create", "b", "--limit", "1", "--person", "pid", "--max-rows", "10")
    run("create", "c", "--limit", "1", "--neighbours", "substitute", "--accounting", "rho")
    facts = {budget["table"]: budget for budget in json.loads(run("show", "--json"))["budgets"]}
    assert facts["people"]["unit"] == facts["b"]["unit"] == PERSON.facts
    assert facts["c"]["unit"] == {"column": None, "max_rows": 1, "neighbours": "substitute"}
    assert [facts[name]["accounting"] for name in "bc"] == ["epsilon", "rho"]
    assert "'c' protects one row, replaced by another" in run("show")
