"""The budget is spent before data is read, stays spent, and is spent once."""

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import lrm
from lrm.cli import main
from lrm.domain import Domain, Integers
from lrm.errors import BudgetExceeded, CountsError, LedgerError, TableError, UsageError
from lrm.ledger import Ledger
from lrm.privacy.bodies.sums import Groups
from lrm.privacy.bodies.tables import Tables
from lrm.privacy.budget import ZCDP, PureDP
from lrm.privacy.shaped import calibrate_shaped
from lrm.queries.sql import sql
from lrm.releases import making, preview
from lrm.releases.file import load_release
from lrm.tables import open_table
from lrm.tables.duckdb_table import DuckDbTable
from neighbouring_tables import BASE, write

SECRET = "8213"
RELEASE = ("release", "plan.lrm", "--table", "visits.csv", "--ledger", "l.sqlite", "-o", "out.lrm")


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LRM_DEBUG", raising=False)
    Path("visits.csv").write_text("age\n" + "1\n5\n7\n" * 9)


@pytest.fixture(scope="module")
def plans():
    domain = Domain([Integers("age", 0, 9)], "visits")
    batch = sql("SELECT age, COUNT(*) AS n FROM visits GROUP BY age", domain)
    return {noise: lrm.plan(batch, "noise-on-data", noise=noise) for noise in NOISES}


NOISES = ("laplace", "gaussian")


@pytest.fixture
def ledger():
    book = Ledger.open("l.sqlite")
    book.create("visits", "1", "epsilon")
    book.create("shared", "1", "rho")
    return book


@pytest.fixture
def plan_file(plans):
    plans["laplace"].save("plan.lrm")


def run(*args):
    return CliRunner().invoke(main, [*RELEASE, *args])


def test_a_pure_release_costs_the_epsilon_asked_for(plans, ledger):
    table = open_table("visits.csv")
    release = lrm.release(plans["laplace"], table, epsilon="1/3", ledger=ledger)
    assert ledger.remaining("visits") == Fraction(2, 3)
    assert release.loss <= Fraction(1, 3)
    entry = ledger.history("visits")[-1]
    assert entry.purpose == f"plan {release.plan.digest[:16]}"
    assert release.ledger_head == ledger.head() == f"{entry.sequence}:{entry.digest}"


@pytest.mark.parametrize("amounts", [{"rho": "0.1"}, {"epsilon": 1, "delta": "1e-6"}])
def test_a_gaussian_release_costs_what_the_map_returns(plans, ledger, amounts):
    table = open_table("visits.csv")
    release = lrm.release(plans["gaussian"], table, **amounts, ledger=ledger, budget="shared")
    assert ledger.budget("shared").spent == release.loss
    assert ledger.history("shared")[-1].promise == f"rho={release.loss}"


def test_a_budget_in_rho_takes_pure_releases(plans, ledger):
    table = open_table("visits.csv")
    lrm.release(plans["laplace"], table, epsilon="0.5", ledger=ledger, budget="shared")
    assert ledger.budget("shared").spent == Fraction(1, 8)


def test_a_gaussian_release_is_not_paid_from_a_pure_budget(plans, ledger):
    with pytest.raises(LedgerError, match="pure releases only"):
        lrm.release(plans["gaussian"], open_table("visits.csv"), rho="0.1", ledger=ledger)
    assert ledger.remaining("visits") == 1


def test_the_head_travels_with_the_file(plans, ledger):
    release = lrm.release(plans["laplace"], open_table("visits.csv"), epsilon="0.5", ledger=ledger)
    release.save("out.lrm")
    kept = load_release("out.lrm").ledger_head
    assert kept == release.ledger_head
    ledger.verify(expected_head=kept)
    lrm.release(plans["laplace"], open_table("visits.csv"), epsilon="0.1", ledger=None).save("b")
    assert load_release("b").ledger_head is None


def test_no_row_is_read_where_the_budget_does_not_suffice(plans, ledger, monkeypatch):
    monkeypatch.setattr(DuckDbTable, "counts", _must_not_run)
    with pytest.raises(BudgetExceeded):
        lrm.release(plans["laplace"], open_table("visits.csv"), epsilon="1.5", ledger=ledger)
    assert ledger.remaining("visits") == 1


def _must_not_run(*args, **kwargs):
    raise AssertionError("a row was read")


def test_the_payment_is_on_disk_when_the_first_row_is_read(plans, ledger, monkeypatch):
    seen = []
    really = DuckDbTable.counts

    def counts(self, *args):
        seen.append(Ledger.open("l.sqlite").remaining("visits"))
        return really(self, *args)

    monkeypatch.setattr(DuckDbTable, "counts", counts)
    lrm.release(plans["laplace"], open_table("visits.csv"), epsilon="0.25", ledger=ledger)
    assert seen == [Fraction(3, 4)]


@pytest.mark.parametrize("bad", ["missing column", "wrong type", "no domain", "wrong amount"])
def test_what_is_wrong_is_found_before_anything_is_spent(plans, ledger, bad):
    plan, amounts = plans["laplace"], {"epsilon": "0.5"}
    if bad == "missing column":
        Path("visits.csv").write_text("years\n1\n")
    elif bad == "wrong type":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"age": ["a"]}), "visits.parquet")
    elif bad == "no domain":
        plan = lrm.plan([[1, 0], [1, 1]], "noise-on-data")
    else:
        amounts = {"epsilon": "0.5", "delta": "1e-6"}
    table = open_table("visits.parquet" if bad == "wrong type" else "visits.csv")
    with pytest.raises((TableError, UsageError)):
        lrm.release(plan, table, **amounts, ledger=ledger)
    assert ledger.remaining("visits") == 1


@pytest.mark.parametrize("wrong", ["table", "column", "type"])
@pytest.mark.parametrize("engine", ["postgres", "spark"])
def test_what_is_wrong_on_a_server_is_found_before_anything_is_spent(
    request, ledger, engine, wrong
):
    if engine == "spark":
        request.getfixturevalue("spark")
    source = write(BASE, engine)
    if wrong == "table":
        source = source.replace("visits", "nothing")
    column = {"table": "age", "column": "years", "type": "state"}[wrong]
    domain = Domain([Integers(column, 0, 9)], "visits")
    batch = sql("SELECT COUNT(*) AS n FROM visits", domain)
    lrm.plan(batch, "noise-on-data").save("plan.lrm")
    args = ["release", "plan.lrm", "--table", source, "--ledger", "l.sqlite", "--epsilon", "0.5"]
    for more in (("-o", "out.lrm"), ("--dry-run",)):
        result = CliRunner().invoke(main, [*args, *more])
        assert result.exit_code == 1, result.output
        told = {"table": "nothing", "column": "no column 'years'", "type": "needs a number"}
        assert told[wrong] in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert ledger.remaining("visits") == 1
    assert not Path("out.lrm").exists()


KILLED = """
import os
from lrm.cli import main
from lrm.ledger import Ledger

really = Ledger.spend

def spend(self, *args, **kwargs):
    really(self, *args, **kwargs)
    os._exit(137)

Ledger.spend = spend
main({args!r})
"""


def test_a_process_killed_after_it_paid_leaves_the_payment_and_no_release(plan_file, ledger):
    before = {path.name for path in Path().iterdir()}
    code = KILLED.format(args=[*RELEASE, "--epsilon", "0.25"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (137, b"", b"")
    assert ledger.remaining("visits") == Fraction(3, 4)
    ledger.verify()
    after = {path.name for path in Path().iterdir()}
    assert {name for name in after if "sqlite" not in name} <= before
    assert not Path("out.lrm").exists()
    assert run("--epsilon", "0.25").exit_code == 0
    assert ledger.remaining("visits") == Fraction(1, 2)


@pytest.mark.parametrize("debug", ["", "1"])
@pytest.mark.parametrize(
    "fault", [KeyError(SECRET), TableError("counting failed"), OSError(SECRET)]
)
def test_a_fault_while_counting_costs_the_budget_and_tells_no_data(
    plan_file, ledger, monkeypatch, fault, debug
):
    def broken(*args):
        raise fault

    monkeypatch.setattr(DuckDbTable, "counts", broken)
    if debug:
        monkeypatch.setenv("LRM_DEBUG", debug)
    result = run("--epsilon", "0.25")
    assert result.exit_code == 3
    said = result.stderr.strip().splitlines()[-1]
    assert "the budget of 'visits' was charged 0.25 epsilon" in said
    assert SECRET not in result.output
    assert ledger.remaining("visits") == Fraction(3, 4)
    assert not Path("out.lrm").exists()


@pytest.mark.parametrize(
    ("place", "name"), [(DuckDbTable, "counts"), (making, "from_measurements")]
)
def test_an_interrupt_after_the_charge_tells_what_was_paid(
    plan_file, ledger, monkeypatch, place, name
):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(place, name, interrupted)
    result = run("--epsilon", "0.25")
    assert result.exit_code == 130
    assert "was charged 0.25 epsilon" in result.stderr
    assert ledger.remaining("visits") == Fraction(3, 4)


def test_shaped_noise_is_drawn_before_anything_is_paid(ledger, monkeypatch):
    domain = Domain([Integers("age", 0, 3), Integers("ward", 0, 1)], "visits")
    count = "SELECT {0}, COUNT(*) FROM visits GROUP BY {0};".format
    plan = lrm.plan(sql(count("age") + count("ward"), domain), noise="pure")
    assert plan.noise == "shaped"
    Path("visits.csv").write_text("age,ward\n" + "1,0\n" * 9)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        for body in (Tables, Groups):
            patch.setattr(body, "draw", interrupted)
        plan.save("plan.lrm")
        result = run("--epsilon", "0.5")
    assert result.exit_code == 130
    assert "the budget of 'visits' was not charged" in result.stderr
    assert "may be charged" not in result.stderr
    assert ledger.remaining("visits") == 1
    first, second = (lrm.release(plan, "visits.csv", epsilon="0.5", ledger=ledger) for _ in "ab")
    assert ledger.remaining("visits") == 0
    assert (first.noisy_measurements != second.noisy_measurements).any()


def test_noise_that_was_drawn_ahead_is_used_once():
    body, any_values = Tables((9,), (False,), 1 << 20), np.ones(1, dtype=int)
    noise = calibrate_shaped(body, 1, 1, PureDP(Fraction(1)), any_values)
    ready = noise.drawn()
    zeros = np.zeros(9, dtype=np.int64)
    draws = [ready.add_to(zeros), ready.add_to(zeros), noise.drawn().add_to(zeros)]
    assert len({tuple(draw) for draw in draws}) == 3


def test_a_table_that_vanishes_after_the_payment_costs_it(plan_file, ledger, monkeypatch):
    really = Ledger.spend

    def spend(self, *args, **kwargs):
        entry = really(self, *args, **kwargs)
        Path("visits.csv").unlink()
        return entry

    monkeypatch.setattr(Ledger, "spend", spend)
    result = run("--epsilon", "0.25")
    assert result.exit_code == 3
    assert "was charged 0.25 epsilon" in result.stderr
    assert ledger.remaining("visits") == Fraction(3, 4)


def test_counts_are_paid_for_before_they_are_opened(plans, ledger, monkeypatch):
    """A counts file of the wrong length costs the budget: its length is in the data."""
    Path("counts.csv").write_text(f"{SECRET}\n1\n")
    plans["laplace"].save("plan.lrm")
    args = ["release", "plan.lrm", "--counts", "counts.csv", "--ledger", "l.sqlite"]
    args += ["--budget", "visits", "--epsilon", "0.25", "-o", "out.lrm"]
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 3
    assert "10 cells, but there are 2 counts" in result.stderr
    assert SECRET not in result.output
    assert ledger.remaining("visits") == Fraction(3, 4)
    args[args.index("counts.csv")] = "none.csv"
    assert CliRunner().invoke(main, args).exit_code == 1
    assert ledger.remaining("visits") == Fraction(3, 4)


def test_a_preview_says_the_cost_before_it_is_paid(plans):
    told = preview(plans["gaussian"], [0] * 10, rho="0.3")
    release = lrm.release(plans["gaussian"], [0] * 10, rho="0.3")
    assert told.cost == ZCDP(release.loss)
    assert told.cost.rho <= Fraction(3, 10)
    with pytest.raises(CountsError):
        preview(plans["gaussian"], [1, 2], rho="0.3")
