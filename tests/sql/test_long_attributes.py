"""Long attributes and long lists: memory that follows the values, or an error before any array."""

from __future__ import annotations

import tracemalloc

import pytest

from lrm.domain import Categories, Domain, Integers
from lrm.errors import SqlError
from lrm.queries.sql import sql
from lrm.queries.sql.atoms import MOST_COMPARED, MOST_REMARKS, undeclared

LONG = 50_000
MOST = 200_000_000
"""Bytes: an array of values × values would be 100 times as large."""


@pytest.fixture(autouse=True)
def _little_memory():
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MOST


@pytest.mark.parametrize("null", ["drop", "cell"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT MEDIAN(x) AS m FROM t",
        "SELECT g, QUANTILE_CONT(x, 0.9) AS m FROM t GROUP BY g",
        "SELECT MEDIAN(x) AS m FROM t WHERE x IS NOT NULL",
        "SELECT x, SUM(COUNT(*)) OVER (ORDER BY x) AS up_to FROM t GROUP BY x",
    ],
)
def test_quantiles_and_running_totals_are_structured(text, null):
    domain = Domain([Integers("x", 0, LONG - 1, null=null), Categories("g", ["a", "b"])], "t")
    batch = sql(text, domain)
    assert "prefix" in {factor.kind for factor in batch.queries.batch.factors[0]}


def test_running_totals_that_must_be_written_out_are_refused_before_they_are():
    domain = Domain([Integers("x", 0, LONG - 1), Categories("g", ["a", "b"])], "t")
    for text in (
        "SELECT MEDIAN(x) AS m FROM t WHERE x >= 25000",
        "SELECT x, SUM(COUNT(*)) OVER (ORDER BY x DESC) AS n FROM t GROUP BY x",
    ):
        with pytest.raises(SqlError, match="too many to be written out"):
            sql(text, domain)


@pytest.mark.parametrize("size", [30_000, LONG])
def test_quantiles_of_a_single_long_attribute(size):
    domain = Domain([Integers("x", 0, size - 1)], "t")
    assert sql("SELECT MEDIAN(x) AS m, COUNT(*) AS n FROM t", domain).shape == (size + 1, size)


def test_a_long_list_is_looked_up_at_once():
    domain = Domain([Integers("x", 0, 999_999), Categories("g", ["a", "b"])], "t")
    listed = ", ".join(str(2 * k) for k in range(9_000))
    batch = sql(f"SELECT COUNT(*) AS n FROM t WHERE x IN ({listed})", domain)
    (choice,) = batch.queries.batch.choice
    weights = batch.queries.batch.factors[0][choice[0]].dense()[0]
    assert weights.sum() == 9_000
    assert weights[:4].tolist() == [1, 0, 1, 0]


def test_constants_that_are_not_declared_are_named_up_to_a_few():
    """Not each of them with its nearest value: that is constants times values of work."""
    long = Categories("c", [f"v{number}" for number in range(MOST_COMPARED + 1)])
    listed = [*long.values, "V7", *(f"w{number}" for number in range(5000))]
    remarks = undeclared(long, listed)
    assert len(remarks) == MOST_REMARKS + 1
    assert remarks[0] == ("'V7' is not a declared value of 'c'", "did you mean 'v7'?")
    assert remarks[1][1] == "declare it in the domain"
    assert remarks[-1][0].startswith(f"none of {5001 - MOST_REMARKS:,} more constants")
    assert undeclared(long, long.values) == []
    assert undeclared(Categories("n", [1, 2]), ["1", 2]) == []
