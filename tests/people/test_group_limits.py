"""At most so many rows of a person in each group, and in so many groups."""

import re

import duckdb
import numpy as np
import pytest

import lrm
from lrm.domain import persons
from lrm.domain.file import domain_text, parse_declared
from lrm.errors import BudgetError, DomainError, LrmError
from lrm.files.archive import read_archive, write_archive
from people.shop import TEXT
from people.test_people_neighbours import counts_of, odd_tables, without

LIMITED = TEXT.replace("rows: {most: 4}", "rows: {most: 4, by: {category: 2}, groups: 2}")
SHOP = parse_declared(LIMITED)
KEY = b"the same for all"


@pytest.fixture
def fixed_key(monkeypatch):
    monkeypatch.setattr(persons, "fresh_key", lambda: KEY)


def test_the_limit_is_written_and_read():
    assert SHOP.table("orders").by == lrm.GroupLimit("category", 2, 2)
    assert parse_declared(domain_text(SHOP)) == SHOP
    month = lrm.Integers("month", 1, 12)
    single = lrm.Domain([month], unit=lrm.PrivacyUnit("who", 6, by=lrm.GroupLimit("month", 1)))
    again = parse_declared(domain_text(single))
    assert again == single
    assert (again.unit.by.size, again.unit.by.axis, again.unit.by.stride) == (12, 0, 1)
    assert again.digest != lrm.Domain([month], unit=lrm.PrivacyUnit("who", 6)).digest


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("{most: 4, by: {zip: 2}}", "'zip' is not an attribute"),
        ("{most: 4, by: {}}", "one attribute and a number"),
        ("{most: 4, by: {day: 1, category: 2}}", "one attribute and a number"),
        ("{most: 4, by: {day: 0}}", "whole number from 1"),
        ("{most: 4, by: {day: 1}, groups: 0}", "whole number from 1"),
        ("{most: 4, groups: 2}", "give by too"),
        ("{by: {day: 1}}", "'most'"),
    ],
)
def test_limits_that_mean_nothing_are_refused(limit, message):
    with pytest.raises(DomainError, match=message):
        parse_declared(TEXT.replace("{most: 4}", limit))


def test_records_check_themselves():
    with pytest.raises(BudgetError, match="column"):
        lrm.PrivacyUnit(by=lrm.GroupLimit("month", 1))
    unit = lrm.PrivacyUnit("who", 2, by=lrm.GroupLimit("amount", 1))
    with pytest.raises(DomainError, match="knots"):
        lrm.Domain([lrm.Numbers("amount", [0, 10, 100])], unit=unit)
    month = lrm.Integers("month", 1, 12)
    with pytest.raises(DomainError, match="one row"):
        lrm.PrivateTable("customers", "id", [month], by=lrm.GroupLimit("month", 1))


def kept_by_definition(level, data):
    """What plain Python counts of the joined rows: the definition of `lrm.domain.persons`."""
    with duckdb.connect() as db:
        for name, frame in data.items():
            db.register(name, frame)
        rows = db.sql("SELECT o.customer AS customer, o.category, o.amount FROM orders o").to_df()
    records = rows.astype(object).where(rows.notna(), None).to_dict("records")
    return level.domain.count(records, KEY)


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_those_of_the_definition(seed, fixed_key, tmp_path):
    level = SHOP.events("orders", ["amount", "category"])
    data = odd_tables(seed)
    counted = counts_of(level, data, "pandas", tmp_path)
    np.testing.assert_array_equal(counted, kept_by_definition(level, data))


def moves(level, data, folder):
    """What each person moves, as counts by the cells of the level."""
    everyone = counts_of(level, data, "pandas", folder)
    for person in data["orders"]["customer"].dropna().unique().tolist():
        difference = everyone - counts_of(level, without(data, person), "pandas", folder)
        yield difference.reshape(level.domain.shape)


@pytest.mark.parametrize("columns", [["day", "region"], ["category", "amount"]])
@pytest.mark.parametrize("seed", range(2))
def test_one_person_moves_what_the_limits_permit(seed, columns, fixed_key, tmp_path):
    level = SHOP.events("orders", columns)
    axis = level.domain.names.index("category")
    largest = 0
    for moved in moves(level, odd_tables(seed), tmp_path):
        others = tuple(i for i in range(moved.ndim) if i != axis)
        by_group = moved.sum(axis=others)
        assert (moved >= 0).all()
        assert by_group.max() <= 2
        assert np.count_nonzero(by_group) <= 2
        largest = max(largest, int(moved.sum()))
    assert largest == level.domain.unit.factor == 4


def test_a_choice_that_looks_at_all_rows_is_caught(fixed_key, monkeypatch, tmp_path):
    """The test above fails where the order of groups depends on other persons."""
    from lrm.tables import row_limit

    own = row_limit._hashes
    monkeypatch.setattr(
        row_limit, "_hashes", lambda names, key: own(names, key + b"%d" % len(names))
    )
    level = SHOP.events("orders", ["category", "amount"])
    assert any((moved < 0).any() for moved in moves(level, odd_tables(0), tmp_path))


@pytest.mark.parametrize("limit", ["{category: 1}", "{amount: 2}"])
def test_a_plan_with_a_forged_limit_is_refused(tmp_path, limit):
    """Less noise would do for fewer rows in each group: the limit is in the digest."""
    text = "SELECT category, COUNT(*) AS n FROM orders GROUP BY category"
    lrm.plan(text, domain=SHOP, noise="gaussian").save(tmp_path / "plan.lrm")
    facts, arrays = read_archive(tmp_path / "plan.lrm", "plan", 5)
    domain = facts["domain"]
    facts["domain"] = re.sub(r"by:\s*\{?\s*category: 2\}?", f"by: {limit}", domain)
    assert facts["domain"] != domain
    write_archive(tmp_path / "plan.lrm", "plan", 5, facts, dict(arrays._arrays))
    with pytest.raises(LrmError):
        lrm.load_plan(tmp_path / "plan.lrm")


def test_releases_state_the_limit(tmp_path):
    plan = lrm.plan("SELECT category, COUNT(*) AS n FROM orders GROUP BY category", domain=SHOP)
    release = lrm.release(plan, {"orders": odd_tables(0)["orders"]}, epsilon=1, ledger=None)
    release.save(tmp_path / "r.lrm")
    again = lrm.load_release(tmp_path / "r.lrm")
    assert again.unit == plan.unit
    assert again.unit.by.size == 3
    assert "at most 2 of them in each cell of category" in again.unit.limit
    np.testing.assert_array_equal(again.answers, release.answers)
