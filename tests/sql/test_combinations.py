"""What analysts combine in one statement displays DuckDB's rows, in DuckDB's order."""

from __future__ import annotations

import pytest

import sql_combinations
from long_runs import cases
from lrm.errors import SqlError
from sql_combinations import Combinations, difference

pytestmark = pytest.mark.filterwarnings("ignore::lrm.errors.SqlWarning")


@pytest.fixture(scope="module")
def table():
    return sql_combinations.table()


def agree(table, seeds):
    """How many of some statements are answered; each as DuckDB answers it."""
    answered = 0
    for seed in seeds:
        statement, ordered = Combinations(seed).case()
        try:
            different = difference(table, statement, ordered=ordered)
        except SqlError:
            continue
        assert not different, (seed, statement, different)
        answered += 1
    return answered


def test_combinations_display_the_rows_of_duckdb(table):
    assert agree(table, range(60)) >= 55


@pytest.mark.long
@pytest.mark.parametrize("part", range(cases(10)))
def test_many_combinations_display_the_rows_of_duckdb(table, part):
    assert agree(table, range(1000 + 500 * part, 1500 + 500 * part)) >= 470
