"""Domains of reports that are published period after period."""

from datetime import date

import numpy as np
import pandas as pd
import pytest

import lrm
from lrm.domain import Categories, Domain, Editions, PrivacyUnit
from lrm.domain.file import domain_text, parse_domain
from lrm.errors import BudgetError, DomainError, LedgerError, PrivacyWarning, UsageError
from lrm.ledger import Ledger
from lrm.releases import preview

TEXT = """
lrm-domain: 1
table: orders
unit: {column: customer, max_rows: 4}
editions: {by: month, date: day}
attributes:
  - {name: day, kind: dates, start: edition, by: day, null: drop, outside: drop}
  - {name: category, kind: categories, values: [books, food], null: drop, outside: drop}
"""
BATCH = """
SELECT day, COUNT(*) AS orders FROM orders GROUP BY day;
SELECT category, COUNT(*) AS n FROM orders GROUP BY category
"""


def test_one_file_serves_every_edition():
    domain = parse_domain(TEXT)
    assert domain.unit == PrivacyUnit("customer", 4, period="month")
    assert [domain.at(f"2025-0{month}").shape[0] for month in (1, 2, 4)] == [31, 28, 30]
    assert domain.at("2024-12..2025-02").shape[0] == 31 + 31 + 28
    for each in (domain, domain.at("2025-02")):
        assert parse_domain(domain_text(each)) == each
    hours = TEXT.replace("by: month", "by: day").replace("by: day, null", "by: hour, null")
    assert parse_domain(hours).at("2025-03-30").shape[0] == 24


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("by: month", "by: months", "expected day, week, month, quarter, year, not 'months'"),
        ("start: edition", "start: edition, end: 2025-01-31", "leave end out"),
        ("editions: {by: month, date: day}\n", "", "the domain has no editions; declare them"),
        ("start: edition", "start: 2025-01-01, end: 2025-12-31", "must be of kind dates with"),
        ("by: day, null: drop", "by: day, null: cell", "must be of kind dates with start: edition"),
        ("date: day}", "date: day, edition: 2025-13}", "'2025-13' is not a month"),
        ("start: edition", "start: 2025-01-01", "field 'end' is missing"),
    ],
)
def test_files_that_would_mix_editions(old, new, message):
    assert old in TEXT
    with pytest.raises(DomainError, match=message):
        parse_domain(TEXT.replace(old, new, 1))


def test_dates_wait_for_the_edition():
    domain = parse_domain(TEXT)
    with pytest.raises(DomainError, match="'day' starts with the edition; name the one to plan"):
        lrm.plan(BATCH, domain=domain)
    with pytest.raises(DomainError, match="the domain has no editions"):
        domain.declared.__class__(domain.attributes[1:]).at("2025-01")


@pytest.fixture(scope="module")
def march():
    return lrm.plan(BATCH, domain=parse_domain(TEXT).at("2025-03"), effort="quick")


def test_a_plan_serves_months_of_the_same_shape(march, tmp_path):
    with pytest.raises(BudgetError, match="the plan is for 2025-03; plan the"):
        march.at("2025-05")
    may = march.for_batch(lrm.sql(BATCH, parse_domain(TEXT).at("2025-05")))
    assert may.measured is march.measured
    assert "2025-05-31" in str(may.workload.names)
    assert march.for_batch(lrm.sql(BATCH, parse_domain(TEXT).at("2025-04"))) is None
    may.save(tmp_path / "may.lrm")
    loaded = lrm.load_plan(tmp_path / "may.lrm")
    assert loaded.digest == may.digest
    assert loaded.workload.domain.editions.edition == "2025-05"
    assert loaded.unit.period == "month"


def test_a_plan_without_such_dates_serves_every_edition():
    domain = Domain(
        [Categories("category", ["books", "food"])],
        "orders",
        editions=Editions("quarter", "day"),
    )
    plan = lrm.plan("SELECT category, COUNT(*) AS n FROM orders GROUP BY 1", domain=domain)
    with pytest.raises(UsageError, match="has an edition for each quarter; name the one"):
        preview(plan, [1, 2], 1)
    assert plan.at("2025-Q1").workload.domain.editions.names == ("2025-Q1",)
    assert plan.at("2025-Q1").at("2025-Q2").measured is plan.measured
    rest = lrm.plan(
        "SELECT category, COUNT(*) AS n FROM orders GROUP BY 1; SELECT COUNT(*) AS c FROM orders",
        domain=domain,
    )
    assert rest.workload.domain.rest_axes == (0,)
    assert rest.at("2025-Q1").workload.domain.rest_axes == (0,)


def test_dates_of_the_edition_have_no_cell_for_other_rows(march):
    """Rows of other editions would take part in the limit of rows per person."""
    names = [march.workload.domain.names[axis] for axis in march.workload.domain.rest_axes]
    assert names == ["category"]


def test_each_edition_is_charged_to_its_account(march, tmp_path):
    frame = pd.DataFrame(
        {
            "customer": ["a", "a", "b", None],
            "day": [date(2025, 3, 1), date(2025, 2, 28), date(2025, 3, 31), None],
            "category": ["books", "food", "food", "books"],
        }
    )
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    ledger.create("orders", 1, unit=march.unit)
    release = lrm.release(march, frame, epsilon="0.75", ledger=ledger)
    assert ledger.remaining("orders", "2025-03") == 0.25
    assert ledger.remaining("orders", "2025-02") == 1
    assert "month" in release.unit.words
    with pytest.warns(PrivacyWarning):
        exact = lrm.release(march, frame, epsilon=10**6, ledger=None)
    assert np.round(np.asarray(exact)[31:]).tolist() == [1, 1]
    months = parse_domain(TEXT).at("2025-02..2025-03")
    both = lrm.plan(BATCH, domain=months, effort="quick")
    with pytest.raises(LedgerError, match=r"0\.25 epsilon left of 1 in 2025-03"):
        lrm.release(both, frame, epsilon="0.5", ledger=ledger)
    lrm.release(both, frame, epsilon="0.25", ledger=ledger)
    assert ledger.history()[-1].editions == ("2025-02", "2025-03")
    assert ledger.budget("orders").accounts == {"2025-02": 0.25, "2025-03": 1}
    ledger.create("persons", 1, unit=PrivacyUnit("customer", 4))
    with pytest.raises(LedgerError, match="nothing bounds in how many one is"):
        lrm.release(march, frame, epsilon="0.1", ledger=ledger, budget="persons")
    ledger.verify()
