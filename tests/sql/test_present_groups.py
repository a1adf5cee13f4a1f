"""Which declared groups a statement has: those that its conditions, which are public, leave."""

from __future__ import annotations

import pytest

from lrm.errors import SqlError
from lrm.queries.sql import sql
from sql_rows import DOMAIN, check_rows, table

STATEMENTS = [
    "SELECT carrier AS c, COUNT(*) AS n FROM flights WHERE carrier NOT IN ('AA', 'B6') GROUP BY c",
    """SELECT Carrier, COUNT(*) AS n FROM flights WHERE Carrier NOT IN ('AA')
    GROUP BY Carrier ORDER BY n LIMIT 3""",
    "SELECT Carrier, month, COUNT(*) AS n FROM flights WHERE month < 3 GROUP BY ALL",
    "SELECT Carrier, month, COUNT(*) n FROM flights WHERE Carrier = 'AA' OR month > 2 GROUP BY ALL",
    """SELECT Carrier, month, late, COUNT(*) AS n, AVG(score) AS a FROM flights
    WHERE NOT (Carrier = 'AA' AND month = 1) AND (late OR month = 4) GROUP BY ALL""",
    """SELECT late, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM flights
    WHERE late IS NOT NULL GROUP BY late""",
    """SELECT Carrier, SUM(COUNT(*)) OVER (ORDER BY Carrier) AS up_to FROM flights
    WHERE Carrier IS NOT NULL GROUP BY Carrier""",
    """SELECT month, SUM(COUNT(*)) OVER (ORDER BY month DESC) AS up_to FROM flights
    WHERE month <> 2 GROUP BY month""",
    """SELECT month, Carrier, SUM(COUNT(*)) OVER (PARTITION BY Carrier ORDER BY month) AS n
    FROM flights WHERE Carrier = 'AA' OR month < 3 GROUP BY 1, 2""",
    """SELECT month, SUM(COUNT(*)) OVER (ORDER BY month RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)
    AS n FROM flights WHERE month > 1 GROUP BY month""",
    "SELECT day, COUNT(*) AS n FROM flights WHERE day < '2024-02-01' GROUP BY day",
    "SELECT MONTH(day) AS m, COUNT(*) AS n FROM flights WHERE day < '2024-02-01' GROUP BY m",
    "SELECT month % 2 AS odd, COUNT(*) AS n FROM flights WHERE month IN (1, 3) GROUP BY odd",
    """SELECT month % 2 AS odd, late, COUNT(*) AS n FROM flights WHERE month = 1 OR late
    GROUP BY ALL""",
    "SELECT name, COUNT(*) AS n FROM flights JOIN airlines USING (Carrier) GROUP BY name",
    "SELECT name, COUNT(*) AS n FROM flights LEFT JOIN airlines USING (Carrier) GROUP BY name",
    "SELECT month, COUNT(*) AS n FROM flights GROUP BY month HAVING month > 2",
    "SELECT late, COUNT(*) AS n FROM flights WHERE late GROUP BY late",
    "SELECT COUNT(*) AS n FROM flights WHERE month > 4",
    """SELECT month, n FROM (SELECT month, COUNT(*) AS n FROM flights GROUP BY month)
    WHERE month > 2""",
]


@pytest.fixture(scope="module")
def flights():
    return table()


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_has_the_groups_that_its_conditions_leave(flights, statement):
    check_rows(flights, statement)


def test_a_group_may_still_be_empty():
    """What no condition on cells excludes is answered, whatever the table holds."""
    batch = sql("SELECT Carrier, COUNT(*) AS n FROM flights WHERE late GROUP BY Carrier", DOMAIN)
    assert [label.group[0][1] for label in batch.labels] == ["AA", "B6", "UA", "(null)"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT month, COUNT(*) AS n FROM flights WHERE month > 4 GROUP BY month",
        "SELECT month % 2 AS odd, COUNT(*) AS n FROM flights WHERE FALSE GROUP BY odd",
    ],
)
def test_a_statement_without_groups_is_refused(text):
    with pytest.raises(SqlError, match=r"^line 1: .* leave none of its declared groups"):
        sql(text, DOMAIN)


def test_groups_of_a_condition_on_two_columns_are_answered_and_no_others():
    text = "SELECT month, score, COUNT(*) AS n FROM flights WHERE month + score < 5 GROUP BY 1, 2"
    assert len(sql(text, DOMAIN).labels) == 1 + 2 + 3 + 4


def test_every_grouping_set_has_its_own_groups():
    text = "SELECT month, late, COUNT(*) AS n FROM flights WHERE month = 2 GROUP BY ROLLUP (1, 2)"
    assert sql(text, DOMAIN).names == (
        "n[month=2, late=true]",
        "n[month=2, late=false]",
        "n[month=2, late=(null)]",
        "n[month=2]",
        "n",
    )
