# ruff: noqa: E501 - statements are kept in one piece
"""Aggregates of the answers of a sub-select, and both sides of FULL JOIN, beside DuckDB's rows."""

from __future__ import annotations

import pytest

import sql_combinations
from lrm.errors import SqlError
from lrm.queries.sql import sql
from sql_combinations import DOMAIN, difference

INNER = "WITH i AS (SELECT k, n, COUNT(*) AS a, AVG(x) AS m FROM t GROUP BY k, n) "


@pytest.fixture(scope="module")
def table():
    return sql_combinations.table()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT k, MAX(CASE WHEN n = 1 THEN a END) AS one, MAX(CASE WHEN n = 2 THEN a END) AS two FROM i GROUP BY k",
        "SELECT k, MIN(CASE WHEN n = 1 THEN m END) - MAX(CASE WHEN n = 2 THEN m END) AS gap FROM i GROUP BY k ORDER BY gap DESC",
        "SELECT k, MAX(m) FILTER (WHERE n = 1) AS one, AVG(m) FILTER (WHERE n = 2) AS two FROM i GROUP BY k",
        "SELECT k, SUM(CASE WHEN n = 1 THEN m ELSE 0 END) AS one, MAX(CASE WHEN n = 2 THEN a ELSE 0 END) AS two, SUM(a) AS every FROM i GROUP BY k",
        "SELECT MAX(CASE WHEN n = 1 AND k = 'p' THEN a END) * 1.0 / SUM(a) AS share FROM i",
    ],
)
def test_an_answer_that_conditions_choose_is_that_answer(table, statement):
    """A table that is turned by MAX(CASE …) was an error; its answers have intervals."""
    assert difference(table, INNER + statement, ordered="ORDER BY" in statement) == ""
    assert not any(one.computed or one.ranks for one in sql(INNER + statement, DOMAIN).display)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT AVG(m) AS mean, STDDEV(m) AS sd, MAX(m) AS most FROM i",
        "SELECT k, SUM(m) AS s, AVG(a) AS mean, STDDEV_POP(a) AS sd FROM i GROUP BY k",
        "SELECT k, n, m, AVG(m) OVER (PARTITION BY k) AS mean, m - AVG(m) OVER () AS gap FROM i",
        "SELECT k, n, (a - AVG(a) OVER (PARTITION BY k)) / STDDEV(a) OVER (PARTITION BY k) AS z FROM i",
        "SELECT k, n, m, m - (SELECT AVG(m) FROM i) AS gap FROM i",
    ],
)
def test_averages_of_averages_and_deviations_are_of_what_is_displayed(table, statement):
    """Each was an error."""
    assert difference(table, INNER + statement, ordered=False) == ""


def test_full_join_has_the_groups_of_both_sides(table):
    """It was an error."""
    sides = "WITH i AS (SELECT k, COUNT(*) AS a FROM t WHERE n = 1 GROUP BY k), j AS (SELECT k, COUNT(*) AS b FROM t WHERE flag GROUP BY k) "
    text = "SELECT COALESCE(i.k, j.k) AS k, COALESCE(i.a, 0) AS a, COALESCE(j.b, 0) AS b FROM i FULL JOIN j ON i.k = j.k"
    assert difference(table, sides + text, ordered=False) == ""


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "SELECT k, MAX(CASE WHEN n = 1 THEN a END) AS x, MAX(a) AS y FROM i GROUP BY k",
            "select no MAX",
        ),
        ("SELECT k, MAX(CASE WHEN n > 0 THEN a END) AS x FROM i GROUP BY k", "with a constant"),
        (
            "SELECT i.k, i.a, j.a AS b FROM i FULL JOIN i j ON i.k = j.k AND i.n = j.n",
            "may be NULL",
        ),
        ("SELECT k, n, AVG(SUM(a) OVER ()) OVER () AS x FROM i", "OVER within OVER"),
    ],
)
def test_other_aggregates_of_answers_say_what_to_write(statement, said):
    with pytest.raises(SqlError) as caught:
        sql(INNER + statement, DOMAIN)
    assert said in str(caught.value)
