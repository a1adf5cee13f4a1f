"""Persons with several tables, period after period: one person in one month moves one edition."""

import numpy as np
import pandas as pd
import pytest

import lrm
from lrm.domain import persons
from lrm.domain.features import Feature, flag
from lrm.domain.file import domain_text, parse_declared
from lrm.errors import BudgetError, DomainError, LedgerError
from lrm.ledger import Ledger
from lrm.privacy.mechanism import shown_to_owner
from lrm.tables.people import open_people
from people.shop import SHOP

TEXT = """\
lrm-domain: 2
people: shop
editions: {by: month}
tables:
  - name: orders
    person: customer
    date: day
    rows: {most: 3}
    attributes:
      - {name: day, kind: dates, start: edition, by: day, null: drop, outside: drop}
      - {name: category, kind: categories, values: [food, books], null: drop, outside: drop}
  - name: visits
    person: customer
    date: at
    rows: {most: 2}
    attributes:
      - {name: page, kind: categories, values: [home, shop], null: cell, outside: drop}
features:
  - {name: n_orders, of: orders, value: count, kind: integers, low: 0, high: 5}
  - {name: first_day, of: orders, value: min, column: day}
"""
MONTHLY = parse_declared(TEXT)
MONTHS = ["2024-12", "2025-01", "2025-02", "2025-03"]
BATCH = """
SELECT category, COUNT(*) AS n FROM orders GROUP BY category;
SELECT COUNT(DISTINCT customer) AS visitors FROM visits;
SELECT COUNT(DISTINCT customer) AS buyers FROM orders
"""
ENDS = ["2025-01-31 23:59:59.999999", "2025-02-01", "2025-02-28 23:59:59", "2024-12-31", None]


@pytest.fixture(autouse=True)
def _same_key(monkeypatch):
    monkeypatch.setattr(persons, "fresh_key", lambda: b"the same for both")


def data_of(seed, rows=60):
    """Few persons with many rows, at the ends of months and without a date or a name."""
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2024-12-20") + pd.to_timedelta(rng.integers(0, 80 * 24, rows), unit="h")
    stamps = pd.Series(days)
    for place, end in enumerate(ENDS * 2):
        stamps[place] = pd.Timestamp(end) if end else pd.NaT
    person = pd.Series(rng.integers(0, 6, rows), dtype="Int64")
    person[rng.integers(0, rows, 3)] = pd.NA
    orders = pd.DataFrame({"customer": person, "day": stamps})
    orders["category"] = rng.choice(["food", "books", "other"], rows)
    visits = orders.sample(frac=0.7, random_state=seed).rename(columns={"day": "at"})
    visits["page"] = rng.choice(["home", "shop", None], len(visits))
    return {"orders": orders, "visits": visits[["customer", "at", "page"]]}


def levels_at(month):
    people = MONTHLY.at(month)
    visitor = Feature(flag("visitor"), "visits", "exists", where="page = 'shop'")
    return {
        "persons": people.persons(["n_orders"], [visitor]),
        "first days": people.persons(["first_day"]),
        "events": people.events("orders", ["category", "day"]),
        "visits": people.events("visits", ["page"]),
    }


def counted(level, data):
    return shown_to_owner(open_people(level, data).counts(level.domain))


def in_month(frame, column, month):
    return frame[column].dt.strftime("%Y-%m") == month


@pytest.mark.parametrize("stored", ["pandas", "parquet", "csv"])
def test_a_person_in_one_month_moves_that_edition_alone(stored, tmp_path):
    """Brute force: each person and month is removed in turn, from all tables."""

    def tables(data):
        if stored == "pandas":
            return data
        for name, frame in data.items():
            writer = getattr(frame, f"to_{stored}")
            writer(tmp_path / f"{name}.{stored}", **({"index": False} if stored == "csv" else {}))
        return {name: str(tmp_path / f"{name}.{stored}") for name in data}

    most = {"persons": 1, "first days": 1, "events": 3, "visits": 2}
    data = data_of(1)
    whole = {
        (month, name): counted(level, tables(data))
        for month in MONTHS
        for name, level in levels_at(month).items()
    }
    moved = dict.fromkeys(most, 0)
    people = range(6 if stored == "pandas" else 3)
    for person in people:
        month = MONTHS[1 + person % 3]
        kept = {
            name: frame[
                ~(
                    (frame["customer"] == person).fillna(value=False)
                    & in_month(frame, column, month)
                )
            ]
            for (name, frame), column in zip(data.items(), ("day", "at"), strict=True)
        }
        for other in MONTHS:
            for name, level in levels_at(other).items():
                if other != month and person:  # that other editions stay, for one person
                    continue
                change = counted(level, tables(kept)) - whole[other, name]
                assert np.abs(change).sum() <= (most[name] if other == month else 0)
                moved[name] += np.abs(change).sum()
    assert min(moved.values()) > 0


def test_several_editions_together_are_moved_by_rows_that_are_replaced():
    """Brute force: rows of one month decide which rows and numbers of the others count."""
    several = levels_at("2025-01..2025-03")
    largest = dict.fromkeys(several, 0)
    for seed in range(6):
        data = data_of(seed)
        whole = {name: counted(level, data) for name, level in several.items()}
        for person in range(6):
            for month in MONTHS[1:]:
                kept = {
                    name: frame[
                        (frame["customer"] != person).fillna(value=True)
                        | ~in_month(frame, column, month)
                    ]
                    for (name, frame), column in zip(data.items(), ("day", "at"), strict=True)
                }
                for name, level in several.items():
                    change = np.abs(counted(level, kept) - whole[name]).sum()
                    assert change <= level.domain.unit.factor
                    largest[name] = max(largest[name], change)
    # More than as many as count of a person, which is all that one month by itself can move.
    assert largest["persons"] == 2
    assert all(largest[name] > level.domain.unit.max_rows for name, level in several.items())


def test_the_noise_of_several_editions_is_twice_that_of_one():
    text = "SELECT category, COUNT(*) AS n FROM orders GROUP BY category"
    one, several = (
        lrm.plan(text, domain=MONTHLY.at(edition), objective="total", noise="gaussian")
        for edition in ("2025-01", "2025-01..2025-03")
    )
    assert several.unit.periods == 3
    assert several.standard_errors(rho=1) == pytest.approx(2 * one.standard_errors(rho=1))
    with pytest.raises(BudgetError, match=r"the plan is for 2025-01; plan the"):
        one.at("2025-01..2025-03")
    assert several.for_batch(one.workload) is None
    assert several.unit.steps_of(MONTHLY.unit) == 1


def test_editions_are_those_of_the_rows_alone():
    """Counts of an edition are those of the rows of its month, given by themselves."""
    data = data_of(2)
    for month in MONTHS:
        own = {
            name: frame[in_month(frame, column, month)]
            for (name, frame), column in zip(data.items(), ("day", "at"), strict=True)
        }
        for name in ("persons", "first days"):  # no row of a person is left out there
            level = levels_at(month)[name]
            np.testing.assert_array_equal(counted(level, data), counted(level, own))
    days = MONTHLY.at("2025-02").events("orders", ["day"])
    assert counted(days, data).sum() > 0


def test_files_keep_editions_and_dates():
    assert MONTHLY.unit.period == "month"
    for each in (MONTHLY, MONTHLY.at("2025-02"), MONTHLY.at("2025-01..2025-03")):
        assert parse_declared(domain_text(each)) == each
    level = levels_at("2025-02")["first days"]
    assert level.domain.shape == (29,)
    assert parse_declared(domain_text(level.domain)) == level.domain
    assert level.domain.digest != level.at("2025-03").domain.digest


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    date: at\n", "", "table 'visits': 'date' is missing"),
        ("editions: {by: month}\n", "", "the file has no editions; declare them"),
        ("by: month}", "by: months}", "expected day, week, month, quarter, year"),
        ("by: month}", "by: month, date: day}", "date"),
        ("by: day, null: drop", "by: day, null: cell", "must be of kind dates with start: edition"),
    ],
)
def test_declarations_that_would_mix_editions(old, new, message):
    assert old in TEXT
    with pytest.raises(DomainError, match=message):
        parse_declared(TEXT.replace(old, new, 1))


def test_a_release_charges_its_month_and_plans_are_used_again(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    ledger.create("shop", 1, unit=MONTHLY.unit)
    plan = lrm.plan(BATCH, domain=MONTHLY.at("2025-01"), effort="quick")
    data = data_of(3)
    assert len(plan.parts) == 2
    release = lrm.release(plan, data, epsilon="0.75", ledger=ledger)
    moved = plan.at("2025-03")
    lrm.release(moved, data, epsilon="0.75", ledger=ledger)
    assert ledger.budget("shop").accounts == {"2025-01": 0.75, "2025-03": 0.75}
    batch = lrm.sql(BATCH, MONTHLY.at("2025-02"))
    again = plan.for_batch(batch)
    assert again.workload.domain.editions.edition == "2025-02"
    assert {part.workload.domain.editions.edition for part in again.parts} == {"2025-02"}
    assert plan.for_batch(lrm.sql(BATCH, SHOP)) is None
    release.save(tmp_path / "january.lrm")
    loaded = lrm.load_release(tmp_path / "january.lrm")
    assert loaded.unit.period == "month"
    assert loaded.plan.workload.domain.editions.names == ("2025-01",)
    ledger.create("for ever", 1, unit=SHOP.unit)
    with pytest.raises(LedgerError, match="nothing bounds in how many one is"):
        lrm.release(plan, data, epsilon="0.1", ledger=ledger, budget="for ever")
