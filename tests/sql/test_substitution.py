"""An expression that stands for a name keeps its meaning: parentheses, operators, NULL."""

from __future__ import annotations

import pytest

from sql_rows import check_rows, table

STATEMENTS = [
    """WITH a AS (SELECT *, month < 2 OR month > 3 AS winter FROM flights)
    SELECT winter AND late AS bad, COUNT(*) AS n FROM a GROUP BY bad""",
    """WITH a AS (SELECT *, month < 2 OR month > 3 AS winter FROM flights)
    SELECT COUNT(*) AS n FROM a WHERE late AND winter""",
    """WITH a AS (SELECT *, month < 2 OR month > 3 AS winter FROM flights WHERE late OR month = 1)
    SELECT COUNT(*) AS n FROM a WHERE winter AND score > 2 OR NOT winter""",
    """WITH a AS (SELECT month = 1 AND late AS w, score FROM flights)
    SELECT COUNT(*) AS n FROM a WHERE NOT w AND score = 3""",
    """WITH a AS (SELECT month = 1 AND late AS w, score FROM flights)
    SELECT w IS NULL AS unknown, COUNT(*) AS n FROM a GROUP BY unknown""",
    """SELECT late OR month = 2 AS a, (late OR month = 2) AND score = 1 AS b, COUNT(*) AS n
    FROM flights GROUP BY a, b""",
    """SELECT late OR month = 2 AS a, COUNT(*) AS n FROM flights GROUP BY a
    HAVING a AND (COUNT(*) > 3 OR COUNT(*) < 2)""",
    """WITH a AS (SELECT day + INTERVAL 1 DAY AS next, late FROM flights)
    SELECT COUNT(*) AS n FROM a WHERE next - INTERVAL 1 DAY = DATE '2024-02-01'""",
    """SELECT COUNT(*) AS n FROM flights WHERE DATE '2024-02-03'
    < (CASE WHEN late THEN day ELSE day + INTERVAL 1 DAY END) + INTERVAL 2 DAY""",
    "WITH a AS (SELECT -month AS m FROM flights) SELECT SUM(-m) AS s, SUM(2 - m) AS t FROM a",
    """WITH a AS (SELECT month - 1 AS m, score + 1 AS s FROM flights)
    SELECT SUM(m * s) AS p, SUM(10 - m) AS q, SUM(m * 2) AS r FROM a""",
    """WITH a AS (SELECT CASE WHEN late THEN 1 ELSE 0 END AS m, month FROM flights)
    SELECT SUM(m * month) AS n, SUM(-m) AS k FROM a""",
    """SELECT n - m AS d, 10 - (n - m) AS e FROM (
    SELECT COUNT(*) AS n, COUNT(late) - COUNT(score) AS m FROM flights)""",
    """WITH a AS (SELECT * FROM flights WHERE late OR score = 1)
    SELECT COUNT(*) AS n FROM a JOIN airlines USING (Carrier) WHERE month = 1 OR month = 2""",
    """SELECT Carrier, COUNT(*) AS n FROM flights WHERE month = 1 OR month = 2
    GROUP BY Carrier HAVING Carrier = 'AA' OR Carrier = 'UA'""",
]


@pytest.fixture(scope="module")
def flights():
    return table()


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_name_means_the_whole_expression(flights, statement):
    check_rows(flights, statement)
