"""Statements that analysts wrote, over true tables: most are answered, and none of them wrongly."""

from __future__ import annotations

import pytest

import analyst_tables
from lrm.errors import SqlError
from lrm.queries.sql import sql

pytestmark = pytest.mark.filterwarnings("ignore::lrm.errors.SqlWarning")

LEAST_ANSWERED = {
    ("flights", "flights_more"): 0.9,
    ("people", "people_more", "stays"): 0.87,
    ("hospital", "hr", "shop", "survey"): 0.88,
    ("requests", "readings"): 0.95,
    ("cards", "exams", "requests_grown", "readings_grown"): 0.92,
}
"""The share of the statements of some files that must be answered."""

ALL = [(name, one) for name in analyst_tables.FILES_OF for one in analyst_tables.statements(name)]


@pytest.fixture(scope="module")
def tables():
    return {
        "flights": analyst_tables.flights(every=16),
        "people": analyst_tables.people(5_000),
        "stays": analyst_tables.stays(2_000),
        "hospital": analyst_tables.hospital(),
        "employees": analyst_tables.employees(),
        "orders": analyst_tables.orders(),
        "responses": analyst_tables.responses(),
        "requests": analyst_tables.requests(3_000),
        "readings": analyst_tables.readings(3_000),
        "cards": analyst_tables.cards(),
        "exams": analyst_tables.exams(),
    }


@pytest.mark.parametrize("names", LEAST_ANSWERED)
def test_most_statements_are_answered(names):
    every = [one for name, one in ALL if name in names]
    answered = sum(one.refused is None for one in every)
    assert len(every) >= 140
    assert answered >= LEAST_ANSWERED[names] * len(every)


def _check(table, one):
    if one.refused is None:
        table.compare(one.text, one.duckdb)
        return
    with pytest.raises(SqlError) as caught:
        sql(one.text, table.domain)
    assert one.refused in str(caught.value)


@pytest.mark.parametrize(("name", "one"), ALL, ids=lambda value: getattr(value, "text", value))
def test_a_statement_is_what_duckdb_answers_on_the_same_rows(tables, name, one):
    _check(tables[analyst_tables.FILES_OF[name]], one)


@pytest.mark.long
@pytest.mark.parametrize("name", analyst_tables.FILES_OF)
def test_every_statement_is_what_duckdb_answers_on_the_whole_table(name):
    table = getattr(analyst_tables, analyst_tables.FILES_OF[name])()
    for one in analyst_tables.statements(name):
        _check(table, one)
