"""What an answer is where no row counts: COALESCE and CASE give it a value, as in SQL."""

from __future__ import annotations

import pytest

from lrm.queries.workload import Formula
from sql_rows import check_rows, table

STATEMENTS = [
    "SELECT COALESCE(AVG(score), 0) AS a FROM flights WHERE score > 5",
    "SELECT AVG(score) AS a FROM flights WHERE score > 5",
    "SELECT late, COALESCE(AVG(score) FILTER (WHERE late), 0) AS a FROM flights GROUP BY late",
    "SELECT late, AVG(score) FILTER (WHERE late) AS a FROM flights GROUP BY late",
    """SELECT late, COALESCE(100.0 * SUM(score) FILTER (WHERE late) / NULLIF(COUNT_IF(late), 0), 0)
    AS a FROM flights GROUP BY late""",
    """SELECT late, CASE WHEN COUNT(late) = 0 THEN 0 ELSE 1.0 * SUM(score) / COUNT(late) END AS a
    FROM flights GROUP BY late""",
    """SELECT late, CASE WHEN COUNT(late) > 0 THEN 1.0 * SUM(score) / COUNT(late) END AS a
    FROM flights GROUP BY late""",
    "SELECT late, 1 + COALESCE(AVG(score) FILTER (WHERE late), 0) AS a FROM flights GROUP BY late",
    "SELECT late, ROUND(COALESCE(AVG(month) FILTER (WHERE late), 0), 1) a FROM flights GROUP BY 1",
    "SELECT late, COALESCE(ROUND(AVG(month) FILTER (WHERE late), 1), 0) a FROM flights GROUP BY 1",
    "SELECT late, COALESCE(STDDEV(month) FILTER (WHERE late), 0) AS a FROM flights GROUP BY late",
    "SELECT COALESCE(SUM(score), 0) AS s FROM flights WHERE score > 5",
]


@pytest.fixture(scope="module")
def flights():
    return table()


@pytest.mark.parametrize("statement", STATEMENTS)
def test_an_answer_over_no_rows_is_what_sql_says(flights, statement):
    check_rows(flights, statement)


def test_a_formula_with_else_says_so():
    assert Formula((0, 1, "/", 0.0, "else")).text(["a", "b"]) == "coalesce(a / b, 0)"
