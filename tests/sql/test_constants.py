# ruff: noqa: E501 - statements are kept in one piece
"""Tables that a statement writes out, and those that follow from lookups, beside the declared table."""

from __future__ import annotations

import pytest

import sql_combinations
from lrm.errors import SqlError
from lrm.queries.sql import sql
from sql_combinations import DOMAIN, difference


@pytest.fixture(scope="module")
def table():
    return sql_combinations.table()


STATEMENTS = [
    "WITH p AS (SELECT DATE '2024-01-31' AS first, 2 AS least) SELECT k, COUNT(*) AS a FROM t, p WHERE day >= first AND n >= p.least GROUP BY k",
    "WITH p AS (SELECT 1 AS low, 2 AS high) SELECT k, COUNT(*) AS a FROM p CROSS JOIN t WHERE t.n BETWEEN low AND high GROUP BY k",
    "WITH p AS (SELECT 'x' AS said, 3 AS m) SELECT said, k, p.m, COUNT(*) * MAX(m) AS a FROM t, p GROUP BY said, k, p.m",
    "WITH p AS (SELECT 5000 AS m) SELECT k, COUNT(*) AS a FROM t, p GROUP BY k HAVING COUNT(*) > MAX(m)",
    "WITH p AS (SELECT DATE '2024-01-31' AS first) SELECT k, COUNT(*) AS a FROM t JOIN p ON t.day >= p.first GROUP BY k",
    "WITH p AS (SELECT DATE '2024-01-31' AS first) SELECT k, COUNT(*) AS a FROM t WHERE day >= (SELECT first FROM p) GROUP BY k",
    "SELECT k, COUNT(*) AS a FROM t WHERE n = (SELECT 2) OR g IN (SELECT 'a' UNION ALL SELECT 'c') GROUP BY k",
    "SELECT s.said, COUNT(*) AS a FROM t JOIN (VALUES ('p', 'left'), ('q', 'left'), ('r', 'right')) AS s (k, said) ON s.k = t.k GROUP BY s.said",
    "SELECT s.said, SUM(n) AS a FROM t LEFT JOIN (VALUES ('a', 'one'), ('b', 'two')) AS s (g, said) USING (g) GROUP BY s.said",
    "WITH s (part, said) AS (VALUES (4, 'Thu'), (5, 'Fri')) SELECT said, part, COUNT(*) AS a FROM t JOIN s ON ISODOW(t.day) = s.part GROUP BY said, part",
    "WITH s AS (SELECT 'p' AS code, 'x' AS said UNION ALL SELECT 'q', 'y') SELECT s.said, COUNT(*) AS a FROM t, s WHERE t.k = s.code AND n > 0 GROUP BY s.said",
    "SELECT k, n, COUNT(*) AS a FROM t JOIN (VALUES ('p', 1), ('q', 2)) AS s (k, n) USING (k, n) GROUP BY k, n",
    "WITH s (who, total) AS (SELECT k, COUNT(*) FROM t GROUP BY k) SELECT who, total * 2 AS a FROM s",
    "SELECT c, a FROM (SELECT k, COUNT(*) FROM t GROUP BY k) AS s (c, a)",
    "WITH s (code, called) AS (SELECT k, name FROM places WHERE pop > 20) SELECT called, COUNT(*) AS a FROM t JOIN s ON s.code = t.k GROUP BY called",
    "SELECT p.area, s.pop, COUNT(*) * 1.0 / s.pop AS a FROM t JOIN places p ON p.k = t.k JOIN (SELECT area, SUM(pop) AS pop FROM places GROUP BY area) s ON s.area = p.area GROUP BY p.area, s.pop",
    "SELECT s.big, COUNT(*) AS a FROM t LEFT JOIN (SELECT k, pop > 20 AS big FROM places WHERE area = 'coast') s ON s.k = t.k GROUP BY s.big",
    "SELECT k, COUNT(*) * 1.0 / (SELECT SUM(pop) FROM places) AS a FROM t GROUP BY k",
    "SELECT k, COUNT(*) AS a FROM t WHERE k IN (SELECT k FROM places ORDER BY pop DESC LIMIT 2) GROUP BY k",
    "SELECT (SELECT p.name FROM places p WHERE p.k = s.k) AS name, COUNT(*) AS a FROM t s GROUP BY 1",
    "SELECT k, COUNT(*) * 1.0 / (SELECT pop FROM places p WHERE p.k = t.k) AS a FROM t GROUP BY k",
    "SELECT g, COUNT(*) AS a FROM t WHERE (SELECT kind FROM kinds q WHERE q.g = t.g) = 'old' GROUP BY g",
    "SELECT n, COUNT(*) / CASE WHEN n = 2 THEN 10 ELSE 20 END AS a, COUNT(*) / (n + 1) AS b FROM t WHERE n IS NOT NULL GROUP BY n",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_what_is_written_out_stands_where_its_name_does(table, statement):
    """Each was an error."""
    assert difference(table, statement, ordered=False) == ""


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "SELECT COUNT(*) FROM t JOIN (VALUES ('p'), ('p')) AS s (k) USING (k)",
            "the same k in several rows",
        ),
        (
            "SELECT COUNT(*) FROM t JOIN (VALUES ('p'), ('q')) AS s (k) ON t.k > s.k",
            "compare a column of it by =",
        ),
        ("SELECT COUNT(*) FROM t JOIN (VALUES (n), (2)) AS s (n) USING (n)", "write a constant"),
        (
            "SELECT COUNT(*) FROM t WHERE n = (SELECT 1 UNION ALL SELECT 2)",
            "one row and one column",
        ),
        ("SELECT name FROM places", "a statement over places alone"),
        ("WITH s (a, b) AS (SELECT k FROM t) SELECT a, COUNT(*) FROM s GROUP BY a", "names of 2"),
        (
            "SELECT (SELECT pop FROM places) AS a, COUNT(*) FROM t GROUP BY 1",
            "WHERE places.k = t.k",
        ),
        (
            "SELECT COUNT(*) / (SELECT SUM(pop + n) FROM places) FROM t",
            "lookup 'places' has no column 'n'",
        ),
        ("SELECT COUNT(*) FROM t WHERE n IN (SELECT x)", "a subquery is not supported"),
    ],
)
def test_what_is_no_table_of_constants_says_what_to_write(statement, said):
    with pytest.raises(SqlError) as caught:
        sql(statement, DOMAIN)
    assert said in str(caught.value)
