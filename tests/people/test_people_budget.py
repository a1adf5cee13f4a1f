"""One budget of a people: releases of two tables at once, and a process that is killed."""

import subprocess
import sys
from fractions import Fraction

import pytest

import lrm
from people.shop import SHOP, tables

RELEASE = """
import sys
sys.path[:0] = {path!r}
import lrm
from people.shop import tables
plan = lrm.load_plan(sys.argv[1])
names = {{table.name for table in plan.workload.domain.level.tables}}
data = {{name: frame for name, frame in tables().items() if name in names}}
for _ in range(3):
    try:
        lrm.release(plan, data, epsilon="0.15", ledger=sys.argv[2])
    except lrm.LrmError:
        break
"""
BATCHES = {
    "orders": "SELECT category, COUNT(*) AS orders FROM orders GROUP BY category",
    "visits": "SELECT page, COUNT(*) AS visits FROM visits GROUP BY page",
    "both": "SELECT COUNT(*) AS customers FROM customers; SELECT COUNT(*) AS visits FROM visits",
}


@pytest.fixture
def ledger(tmp_path):
    place = tmp_path / "budget.sqlite"
    lrm.Ledger.open(place).create("shop", limit=1, unit=SHOP.unit)
    for name, text in BATCHES.items():
        lrm.plan(text, domain=SHOP, effort="quick").save(tmp_path / f"{name}.lrm")
    return place


def test_releases_of_two_tables_at_once_do_not_overspend(ledger, tmp_path):
    """Three processes ask for 1.35 of a budget of 1: whatever their order, 0.9 is spent."""
    script = RELEASE.format(path=sys.path)
    processes = [
        subprocess.Popen([sys.executable, "-c", script, str(tmp_path / f"{name}.lrm"), str(ledger)])
        for name in BATCHES
    ]
    assert [process.wait(timeout=300) for process in processes] == [0, 0, 0]
    budget = lrm.Ledger.open(ledger).budget("shop")
    assert budget.spent == Fraction(9, 10)


def test_a_charge_stays_when_the_data_cannot_be_read(ledger, tmp_path, monkeypatch):
    """Of a batch over several levels, each reads after the one charge."""
    from lrm.tables.duckdb_table import DuckDbTable

    plan = lrm.load_plan(tmp_path / "both.lrm")
    counts, calls = DuckDbTable.counts, []

    def fail_second(self, *arguments):
        calls.append(lrm.Ledger.open(ledger).budget("shop").spent)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return counts(self, *arguments)

    monkeypatch.setattr(DuckDbTable, "counts", fail_second)
    data = {name: frame for name, frame in tables().items() if name != "orders"}
    with pytest.raises(KeyboardInterrupt) as caught:
        lrm.release(plan, data, epsilon="0.5", ledger=ledger)
    assert calls == [Fraction(1, 2)] * 2
    assert "was charged" in "".join(caught.value.__notes__)
    assert lrm.Ledger.open(ledger).budget("shop").spent == Fraction(1, 2)


def test_nothing_is_charged_where_a_table_of_one_level_is_missing(ledger, tmp_path):
    plan = lrm.load_plan(tmp_path / "both.lrm")
    data = {"customers": tables()["customers"]}
    with pytest.raises(lrm.LrmError, match="--table visits=FILE"):
        lrm.release(plan, data, epsilon="0.5", ledger=ledger)
    assert lrm.Ledger.open(ledger).budget("shop").spent == 0
