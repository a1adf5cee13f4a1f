"""Equal expressions are asked by the same queries, however they are written."""

from __future__ import annotations

import pytest

from lrm.domain import Domain, Integers
from lrm.queries.sql import sql

DOMAIN = Domain([Integers(f"q{k}", 1, 5, null="cell") for k in range(1, 5)], "t")
ONE = "SELECT AVG(q1 + q2 + q3) / 3.0 AS a FROM t"


@pytest.mark.filterwarnings("ignore:.* is read as DuckDB does")
@pytest.mark.parametrize(
    "text",
    [
        "SELECT AVG((q1 + q2 + q3) / 3.0) AS a FROM t",
        "SELECT AVG((q1 + q2 + q3) * 2 / 6) AS a FROM t",
        "SELECT AVG(-(q1 + q2 + q3) / -3.0) AS a FROM t",
        "SELECT AVG((q1 + (q2 + q3) * 1) / 3.0) AS a FROM t",
        "SELECT AVG((q1 + q2 + q3 + 3) / 3.0) AS a FROM t",
    ],
)
def test_a_constant_inside_or_outside_an_average_asks_the_same(text):
    assert sql(ONE, DOMAIN).shape == sql(text, DOMAIN).shape
    counts = [len(sql(one, DOMAIN).queries.batch.choice) for one in (ONE, text)]
    assert counts[1] <= counts[0] + 2  # no table of all three attributes


def test_variances_of_scaled_sums_are_taken_apart_too():
    one = sql("SELECT VARIANCE(q1 + q2 + q3) AS a FROM t", DOMAIN)
    two = sql("SELECT VARIANCE((q1 + q2 + q3) / 3.0) AS a FROM t", DOMAIN)
    assert len(one.queries.batch.choice) == len(two.queries.batch.choice)
