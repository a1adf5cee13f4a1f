"""JOIN after GROUP BY: to other answers and to lookups, before and after OVER and LIMIT."""

from __future__ import annotations

import pytest

from lrm.errors import SqlError
from lrm.queries.sql import sql
from sql_rows import DOMAIN, check_rows, table

BY_MONTH = "SELECT month, COUNT(*) AS n FROM flights"
STATEMENTS = [
    f"""SELECT SUM(a.n) AS s FROM ({BY_MONTH} WHERE month < 3 GROUP BY month) a
    JOIN ({BY_MONTH} WHERE month > 1 GROUP BY month) b USING (month)""",
    f"""SELECT a.month, a.n, b.n AS m FROM ({BY_MONTH} WHERE month < 3 GROUP BY month) a
    JOIN ({BY_MONTH} WHERE month > 1 GROUP BY month) b USING (month)""",
    f"""SELECT a.month, a.n, b.n AS m FROM ({BY_MONTH} WHERE month < 3 GROUP BY month) a
    LEFT JOIN (SELECT month, COUNT(*) AS n FROM flights WHERE late GROUP BY month) b
    ON a.month = b.month""",
    f"""SELECT a.month, a.n, b.n AS m, b.n / a.n AS r FROM ({BY_MONTH} WHERE month < 3 GROUP BY 1) a
    JOIN (SELECT month, COUNT(*) AS n FROM flights WHERE late AND month > 1 GROUP BY month) b
    USING (month)""",
    f"""SELECT a.month, a.n / SUM(a.n) OVER () AS share
    FROM ({BY_MONTH} WHERE month < 4 GROUP BY month) a
    JOIN ({BY_MONTH} WHERE month > 1 GROUP BY month) b USING (month)""",
    """SELECT a.month, share, n FROM (SELECT month, COUNT(*) / SUM(COUNT(*)) OVER () AS share
    FROM flights WHERE month < 4 GROUP BY month) a
    JOIN (SELECT month, COUNT(*) AS n FROM flights WHERE month > 1 GROUP BY 1) b USING (month)""",
    """SELECT a.Carrier, share, n FROM (SELECT Carrier, COUNT(*) / SUM(COUNT(*)) OVER () AS share
    FROM flights GROUP BY Carrier) a
    JOIN (SELECT Carrier, COUNT(*) AS n FROM flights GROUP BY Carrier) b USING (Carrier)""",
    # lookups: airlines has no B6, and seasons has every month
    """SELECT t.Carrier, name, share FROM (SELECT Carrier, COUNT(*) / SUM(COUNT(*)) OVER () AS share
    FROM flights GROUP BY Carrier) t JOIN airlines USING (Carrier)""",
    """SELECT t.Carrier, name, up_to FROM (SELECT Carrier, SUM(COUNT(*)) OVER (ORDER BY Carrier)
    AS up_to FROM flights GROUP BY Carrier) t JOIN airlines USING (Carrier)""",
    """SELECT t.Carrier, share FROM (SELECT Carrier, COUNT(*) / SUM(COUNT(*)) OVER () AS share
    FROM flights GROUP BY Carrier) t WHERE Carrier <> 'AA'""",
    """SELECT t.Carrier, name, n FROM (SELECT Carrier, COUNT(*) AS n FROM flights GROUP BY 1) t
    LEFT JOIN airlines USING (Carrier)""",
    """SELECT name, SUM(n) AS s FROM (SELECT Carrier, COUNT(*) AS n FROM flights GROUP BY Carrier) t
    JOIN airlines USING (Carrier) GROUP BY name""",
    """SELECT t.month, season, n FROM (SELECT month, COUNT(*) AS n FROM flights GROUP BY month
    ORDER BY n DESC, month LIMIT 2) t JOIN "ref.seasons" USING (month)""",
    """SELECT t.month, season, share FROM (SELECT month, COUNT(*) / SUM(COUNT(*)) OVER () AS share
    FROM flights GROUP BY month) t JOIN "ref.seasons" USING (month)""",
]


@pytest.fixture(scope="module")
def flights():
    return table()


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_join_has_the_groups_of_both_sides(flights, statement):
    check_rows(flights, statement, ordered=False)


@pytest.mark.parametrize(
    "text",
    [
        f"""SELECT SUM(a.n) AS s FROM ({BY_MONTH} GROUP BY month) a
        JOIN ({BY_MONTH} WHERE late GROUP BY month) b USING (month)""",
        f"""SELECT a.month, a.n / SUM(a.n) OVER () AS s FROM ({BY_MONTH} GROUP BY month) a
        JOIN ({BY_MONTH} WHERE late GROUP BY month) b USING (month)""",
        f"""SELECT SUM(n) AS s FROM (SELECT a.month, a.n FROM ({BY_MONTH} GROUP BY month) a
        JOIN ({BY_MONTH} WHERE late GROUP BY month) b USING (month))""",
    ],
)
def test_sums_over_a_join_of_different_rows_are_refused(text):
    """A month without late flights has no row: which one that is depends on the table."""
    with pytest.raises(SqlError, match="JOIN of answers over different rows"):
        sql(text, DOMAIN)


def test_a_join_that_drops_groups_after_limit_is_refused():
    text = """SELECT t.Carrier, name, n FROM (SELECT Carrier, COUNT(*) AS n FROM flights
    GROUP BY Carrier ORDER BY n LIMIT 2) t JOIN airlines USING (Carrier)"""
    with pytest.raises(SqlError, match="JOIN after LIMIT"):
        sql(text, DOMAIN)
