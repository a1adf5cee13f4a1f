"""AVG over the declared groups of a sub-select: a sum, divided by how many groups there are."""

from __future__ import annotations

import numpy as np
import pytest

from lrm.domain import Categories, Dates, Domain, Integers
from lrm.errors import SqlError
from lrm.queries.sql import sql

DOMAIN = Domain(
    [
        Categories("c", ["x", "y"]),
        Integers("m", 1, 6),
        Dates("day", "2024-01-01", "2024-03-31"),
    ],
    "t",
)


def divisors(text):
    """What each answer divides by, by its group."""
    batch = sql(text, DOMAIN)
    found = {}
    for one in batch.derived:
        leaf, size, step = one.formula.steps
        assert (leaf, step) == (0, "/")
        for label in one.label:
            found["/".join(text for _, text in label.group)] = size
    return found


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("SELECT AVG(n) AS a FROM (SELECT m, COUNT(*) AS n FROM t GROUP BY m)", {"": 6}),
        (
            "SELECT AVG(n) AS a FROM (SELECT m, COUNT(*) AS n FROM t WHERE m > 2 GROUP BY m)",
            {"": 4},
        ),
        (
            "SELECT AVG(n) AS a FROM (SELECT c, m, COUNT(*) n FROM t GROUP BY c, m) WHERE m > 2",
            {"": 8},
        ),
        (
            "SELECT c, AVG(n) AS a FROM (SELECT c, m, COUNT(*) n FROM t GROUP BY c, m) GROUP BY c",
            {"x": 6, "y": 6},
        ),
        (
            (
                "SELECT MONTH(day) AS k, AVG(n) AS a FROM "
                "(SELECT day, COUNT(*) AS n FROM t GROUP BY day) GROUP BY k"
            ),
            {"1": 31, "2": 29, "3": 31},
        ),
        (
            "SELECT AVG(n) AS a FROM (SELECT MONTH(day) AS k, COUNT(*) AS n FROM t GROUP BY k)",
            {"": 3},
        ),
        (
            (
                "SELECT c, AVG(n) AS a FROM (SELECT c, DATE_TRUNC('month', day) AS k, "
                "COUNT(*) AS n FROM t WHERE day < '2024-03-01' GROUP BY 1, 2) GROUP BY c"
            ),
            {"x": 2, "y": 2},
        ),
        (
            (
                "SELECT AVG(n) AS a FROM (SELECT c, m, COUNT(*) AS n FROM t "
                "WHERE (c = 'x' AND m < 3) OR (c = 'y' AND m > 3) GROUP BY c, m)"
            ),
            {"": 5},
        ),
    ],
)
def test_the_number_of_groups_follows_from_the_domain_and_the_text(text, sizes):
    assert divisors(text) == sizes


def test_averages_over_the_groups_of_another_statement_are_refused():
    lag = "LAG(AVG(n)) OVER (ORDER BY c)"
    text = f"SELECT c, {lag} FROM (SELECT c, m, COUNT(*) AS n FROM t GROUP BY c, m) GROUP BY c"
    with pytest.raises(SqlError) as caught:
        sql(text, DOMAIN)
    assert caught.value.code == "nested"


def test_the_sum_is_that_of_all_groups():
    mean = sql("SELECT AVG(n) AS a FROM (SELECT m, COUNT(*) AS n FROM t GROUP BY m)", DOMAIN)
    total = sql("SELECT COUNT(*) AS a FROM t", DOMAIN)
    assert np.array_equal(mean.queries.dense(), total.queries.dense())


@pytest.mark.parametrize(
    "text",
    [
        "SELECT AVG(CASE WHEN c = 'x' THEN n END) FROM (SELECT c, COUNT(*) AS n FROM t GROUP BY c)",
        (
            "SELECT c, AVG(n) FROM (SELECT c, m, COUNT(*) AS n FROM t WHERE (c = 'x' AND m < 3) "
            "OR (c = 'y' AND m > 2) GROUP BY c, m) GROUP BY c"
        ),
    ],
)
def test_averages_over_groups_that_are_not_known_are_refused(text):
    with pytest.raises(SqlError) as caught:
        sql(text, DOMAIN)
    assert caught.value.code == "nested"
