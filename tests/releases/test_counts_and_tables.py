"""The command line had a road of its own to a release.

``lrm release --counts`` with more records than the plan admits printed 4,294,967,295.4 ± 1.4
and said "neither rounded nor clipped", where ``lrm.release`` refused. There is one function now,
and the command calls it.
"""

import ast
import importlib
import inspect
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner

import lrm
from lrm.cli import main
from lrm.domain import Categories, Domain, PrivacyUnit
from lrm.errors import BudgetExceeded, CountsError, LrmError, TableError, UsageError
from lrm.privacy.mechanism import TrueCounts
from lrm.queries.sql import sql
from lrm.releases import preview
from lrm.releases.counts_file import CountsFile
from lrm.views.releases import release_facts

DOMAIN = Domain([Categories("state", ["NY", "NJ"])], "visits")
ROWS = {"state": ["NY"] * 5 + ["NJ"] * 3}
MANY = 2**40


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LRM_LEDGER", raising=False)
    pd.DataFrame(ROWS).to_csv("visits.csv", index=False)
    batch = sql("SELECT state, COUNT(*) AS n FROM visits GROUP BY ROLLUP (state)", DOMAIN)
    lrm.plan(batch, "noise-on-data").save("plan.lrm")
    lrm.plan([[1, 1], [1, 0]], "noise-on-data").save("matrix.lrm")
    return tmp_path


@pytest.fixture
def plan():
    return lrm.load_plan("plan.lrm")


@pytest.fixture
def ledger():
    book = lrm.Ledger.open("budget.sqlite")
    book.create("visits", limit="1")
    return book


def command(*args):
    return CliRunner().invoke(main, ["release", *(str(arg) for arg in args)])


@pytest.mark.parametrize("payer", ["ledger", "nobody"])
def test_too_many_records_are_refused_by_both(plan, ledger, payer):
    Path("counts.csv").write_text(f"{MANY}\n1\n")
    paying = {"ledger": "budget.sqlite"} if payer == "ledger" else {"ledger": None}
    with pytest.raises(CountsError) as refused:
        lrm.release(plan, [MANY, 1], epsilon="0.25", **paying)
    said = ("--ledger", "budget.sqlite") if payer == "ledger" else ("--no-ledger",)
    result = command("plan.lrm", "--counts", "counts.csv", "--epsilon", "0.25", "-o", "out", *said)
    assert result.exit_code == (3 if payer == "ledger" else 2)  # 3: after a charge
    assert str(refused.value) in result.stderr
    assert "admits at most 4,294,967,296 records" in result.stderr
    assert not Path("out").exists()
    # Both look at the counts after the payment, which is the same for both.
    spent = Fraction(1, 2) if payer == "ledger" else 0
    assert ledger.budget("visits").spent == spent


SOURCES = {
    "counts": lambda: [5, 3],
    "an array": lambda: np.array([5, 3]),
    "a series": lambda: pd.Series([5, 3]),
    "hidden counts": lambda: TrueCounts([5, 3]),
    "an address": lambda: "visits.csv",
    "a path": lambda: Path("visits.csv"),
    "a table": lambda: lrm.open_table("visits.csv"),
    "pandas": lambda: pd.DataFrame(ROWS),
    "polars": lambda: pl.DataFrame(ROWS),
    "lazy polars": lambda: pl.LazyFrame(ROWS),
    "arrow": lambda: pa.table(ROWS),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_one_function_takes_all_kinds_of_data(plan, ledger, kind):
    release = lrm.release(plan, SOURCES[kind](), epsilon="0.5", ledger=ledger)
    assert ledger.remaining("visits") == Fraction(1, 2)
    assert release.ledger_head == ledger.head()
    # P(|noise| > 60) < 1e-11 for each of three answers at ε = 0.5.
    np.testing.assert_allclose(release.answers, [5, 3, 8], atol=60)


@pytest.mark.parametrize("place", ["budget.sqlite", Path("budget.sqlite")])
def test_a_ledger_may_be_named_by_its_file(plan, ledger, place):
    lrm.release(plan, "visits.csv", epsilon="0.25", ledger=place)
    assert ledger.remaining("visits") == Fraction(3, 4)
    with pytest.raises(BudgetExceeded):
        lrm.release(plan, "visits.csv", epsilon="1", ledger=place)


def without_noise(facts):
    """The facts of a release, without what fresh noise and time change."""
    facts = json.loads(json.dumps(facts))
    for row in facts["answers"]:
        row.update(answer=None, low=None, high=None)
    facts["measurements"].update(noisy_integers=None, y=None)
    facts["provenance"]["ledger_head"] = None
    facts["warnings"] = None  # that all answers may be zero, once in a few releases of 8 rows
    return facts


@pytest.mark.parametrize("source", ["table", "counts"])
def test_the_command_and_the_function_give_the_same_facts(plan, ledger, source):
    Path("counts.csv").write_text("5\n3\n")
    data = "visits.csv" if source == "table" else [5, 3]
    ours = lrm.release(plan, data, epsilon="0.25", ledger=ledger)
    given = ("--table", "visits.csv") if source == "table" else ("--counts", "counts.csv")
    paid = ("--ledger", "budget.sqlite")
    result = command("plan.lrm", *given, "--epsilon", "0.25", "-o", "out.lrm", *paid)
    assert result.exit_code == 0, result.stderr
    theirs = lrm.load_release("out.lrm")
    assert without_noise(release_facts(theirs)) == without_noise(release_facts(ours))
    first, second = ledger.history()[-2:]
    assert (first.amount, first.purpose, first.unit) == (second.amount, second.purpose, second.unit)


REFUSED = {
    "no ledger said": ({"data": "visits.csv", "epsilon": 1}, "ledger=None"),
    "no such file": ({"data": "none.csv", "epsilon": 1, "ledger": None}, "none.csv"),
    "no budget": ({"data": [1, 2], "epsilon": 1, "plan": "matrix.lrm"}, "name the budget"),
    "wrong amount": ({"data": [1, 2], "rho": 1}, "epsilon alone"),
    "wrong length": ({"data": [1, 2, 3], "epsilon": 1}, "2 cells, but there are 3 counts"),
    "no list": ({"data": 3, "epsilon": 1}, "one number per cell"),
    "words": ({"data": ["a", "b"], "epsilon": 1}, "whole numbers"),
    "contradiction": ({"data": [1, 2], "epsilon": 1, "max_rows": 2}, "the domain protects"),
    "no domain": ({"data": "visits.csv", "epsilon": 1, "plan": "matrix.lrm"}, "no domain"),
    "no such column": ({"data": pd.DataFrame({"town": ["NY"]}), "epsilon": 1}, "'state'"),
    "budget of nobody": (
        {"data": [1, 2], "epsilon": 1, "ledger": None, "budget": "visits"},
        "give the ledger too",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_wrong_with_public_facts_costs_nothing(ledger, kind):
    given, words = REFUSED[kind]
    asked = {"plan": "plan.lrm", **given}
    if kind != "no ledger said":
        asked.setdefault("ledger", ledger)
    asked["plan"] = lrm.load_plan(asked["plan"])
    with pytest.raises(LrmError) as refused:
        lrm.release(**asked)
    assert words in str(refused.value)
    assert ledger.remaining("visits") == 1
    if kind != "no ledger said":
        with pytest.raises(type(refused.value)) as again:
            preview(**asked)
        assert str(again.value) == str(refused.value)


@pytest.mark.parametrize(
    "counts",
    [[5, -1], [5, 1.5], [5, float("nan")], [MANY, 0]],
    ids=["below", "half", "nan", "many"],
)
def test_what_is_wrong_with_counts_is_found_after_the_payment(plan, ledger, counts):
    """The same order as for a table: nothing that looks at values decides for free."""
    with pytest.raises(CountsError) as refused:
        lrm.release(plan, counts, epsilon="0.25", ledger=ledger)
    assert "the budget of 'visits' was charged 0.25 epsilon" in refused.value.__notes__[0]
    assert ledger.remaining("visits") == Fraction(3, 4)
    assert preview(plan, counts, epsilon="0.25", ledger=ledger).cost.epsilon == Fraction(1, 4)


def test_a_table_is_never_refused_for_its_number_of_rows():
    """Unlike counts that someone brings: the measurements are clamped instead."""
    batch = sql("SELECT COUNT(*) AS n FROM visits", DOMAIN)
    small = lrm.plan(batch, "noise-on-data", max_records=1)
    assert len(lrm.release(small, "visits.csv", epsilon=1, ledger=None).answers) == 1
    with pytest.raises(CountsError):
        lrm.release(small, [5 * small.measured.max_records, 3], epsilon=1)


def test_a_preview_states_what_the_release_has(plan, ledger):
    told = preview(plan, "visits.csv", epsilon="0.25", ledger=ledger)
    assert told.budget.remaining == Fraction(3, 4)
    assert ledger.remaining("visits") == 1
    release = lrm.release(plan, "visits.csv", epsilon="0.25", ledger=ledger)
    assert (told.privacy, told.unit) == (release.privacy, release.unit)
    np.testing.assert_allclose(told.accuracy.standard_errors, release.standard_errors, rtol=1e-12)
    with pytest.raises(BudgetExceeded):
        preview(plan, "visits.csv", epsilon="0.8", ledger=ledger)


def test_the_command_has_no_way_of_its_own():
    """It imports neither ledger, nor tables, nor noise: the function it calls has them all."""
    source = inspect.getsource(importlib.import_module("lrm.cli.release"))
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    imported = {node.module or "" for node in nodes}
    wrong = ("lrm.ledger", "lrm.tables", "lrm.privacy.mechanism", "lrm.privacy.noise")
    assert not [module for module in imported if module.startswith(wrong)]


def test_counts_files_are_not_opened_before_the_payment(plan, ledger):
    Path("counts.csv").write_text("5\n3\n1\n")
    with pytest.raises(CountsError, match="2 cells, but there are 3 counts"):
        lrm.release(plan, CountsFile("counts.csv"), epsilon="0.25", ledger=ledger)
    assert ledger.remaining("visits") == Fraction(3, 4)
    with pytest.raises(LrmError, match=r"none\.npy"):
        lrm.release(plan, CountsFile("none.npy"), epsilon="0.25", ledger=ledger)
    assert ledger.remaining("visits") == Fraction(3, 4)


def test_whom_counts_protect_may_be_said_without_a_domain():
    matrix = lrm.load_plan("matrix.lrm")
    release = lrm.release(matrix, [5, 3], epsilon=1, max_rows=2, neighbours="substitute")
    assert release.unit == PrivacyUnit(max_rows=2, neighbours="substitute")
    Path("counts.csv").write_text("5\n3\n")
    unit = ("--max-rows", "2", "--neighbours", "substitute")
    args = ("matrix.lrm", "--counts", "counts.csv", "--epsilon", "1", "--no-ledger", *unit)
    assert command(*args, "-o", "out.lrm").exit_code == 0
    assert lrm.load_release("out.lrm").unit == release.unit


def test_a_plan_is_needed():
    with pytest.raises(UsageError, match="needs a Plan, not list"):
        lrm.release([[1, 1]], [1, 2], epsilon=1)
    with pytest.raises(TableError):
        lrm.release(lrm.load_plan("plan.lrm"), "counts", epsilon=1, ledger=None)
