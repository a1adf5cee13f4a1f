"""Names of columns, tables and lookups: their case, quotes and schemas change nothing."""

from __future__ import annotations

import pathlib
import re

import pytest

from lrm.domain import Categories, Domain, Integers
from lrm.errors import SqlError
from lrm.queries.sql import build, sql
from sql_rows import check_rows, table

STATEMENTS = [
    "SELECT Carrier, COUNT(*) AS n FROM flights GROUP BY Carrier ORDER BY Carrier",
    "SELECT carrier AS c, COUNT(*) AS n FROM flights GROUP BY CARRIER ORDER BY Carrier DESC",
    'SELECT "Carrier", COUNT(*) AS n FROM flights GROUP BY "Carrier" ORDER BY "Carrier"',
    'SELECT "month", COUNT(*) AS n FROM flights GROUP BY "month" ORDER BY "month" DESC LIMIT 2',
    'SELECT "month", COUNT(*) AS n FROM "flights" GROUP BY month HAVING "month" > 1 ORDER BY MONTH',
    "SELECT LOWER(Carrier) AS c, COUNT(*) AS n FROM flights GROUP BY LOWER(carrier)",
    "SELECT lower(carrier) AS c, COUNT(*) AS n FROM flights GROUP BY LOWER(CARRIER) ORDER BY c",
    "SELECT Month % 2 AS odd, COUNT(*) AS n FROM flights GROUP BY month % 2 ORDER BY MONTH % 2",
    "SELECT COUNT(*) AS n FROM flights WHERE carrier IN (SELECT carrier FROM AIRLINES)",
    "SELECT COUNT(*) AS n FROM flights WHERE CARRIER NOT IN (SELECT Carrier FROM Airlines)",
    "SELECT name, COUNT(*) AS n FROM flights JOIN AIRLINES USING (CARRIER) GROUP BY NAME",
    """SELECT carrier AS c, 1.0 * COUNT(*) / (SELECT COUNT(*) FROM main.flights) AS share
    FROM flights GROUP BY c""",
    """SELECT carrier AS c, 1.0 * COUNT(*) / (SELECT COUNT(*) FROM flights) AS share
    FROM main.flights GROUP BY c""",
    """SELECT Flights.carrier AS c, SUM(COUNT(*)) OVER (PARTITION BY "Carrier") AS n
    FROM FLIGHTS GROUP BY flights.Carrier""",
    "SELECT COUNT(*) AS n, (SELECT COUNT(*) FROM flights WHERE late) AS late FROM flights",
    """SELECT COUNT(*) AS n, 1.0 * COUNT(*) / (SELECT COUNT(*) FROM flights) AS share
    FROM flights WHERE late""",
    "(SELECT COUNT(*) AS n FROM flights)",
    "(SELECT month, COUNT(*) AS n FROM flights GROUP BY month) ORDER BY n DESC LIMIT 2",
    """SELECT season, COUNT(*) AS n FROM flights JOIN "ref.seasons" USING (month)
    GROUP BY season""",
    """SELECT COUNT(*) AS n FROM flights WHERE month IN (SELECT month FROM "ref.seasons"
    WHERE season = 'cold')""",
]


@pytest.fixture(scope="module")
def flights():
    return table()


@pytest.mark.parametrize("statement", STATEMENTS)
def test_spelling_of_names_changes_nothing(flights, statement):
    check_rows(flights, statement)


def test_parts_of_a_union_all_may_stand_in_parentheses(flights):
    flights.compare(
        "WITH a AS (SELECT * FROM flights WHERE late) "
        "(SELECT COUNT(*) AS n FROM a) UNION ALL (SELECT COUNT(*) FROM a WHERE month = 1)"
    )
    flights.compare(
        "WITH a AS (SELECT * FROM flights WHERE late) "
        "(WITH b AS (SELECT * FROM a WHERE month = 2) SELECT COUNT(*) AS n FROM b) "
        "UNION ALL ((SELECT COUNT(*) FROM a WHERE month = 1))"
    )


def test_names_in_backticks_may_hold_a_quote_beside_an_importance():
    domain = Domain([Categories("it's", ["a", "b"]), Integers("k", 0, 1)], "t")
    batch = sql("-- importance: 3\nSELECT COUNT(*) AS n FROM t WHERE `it's` = 'a'", domain)
    assert batch.importance.tolist() == [3.0]


def test_names_that_need_quotes_are_ordered_by():
    domain = Domain([Categories("My Column", ["a", "b"]), Integers("k", 0, 1)], "t")
    batch = sql('SELECT "my column", COUNT(*) FROM t GROUP BY 1 ORDER BY "MY COLUMN" DESC', domain)
    assert batch.display[0].order[0].column == "My Column"


def test_only_three_parts_know_the_nodes_of_sqlglot_and_one_folds_names():
    folder = pathlib.Path(build.__file__).parents[1]
    nodes, folding = set(), set()
    for file in folder.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        part = file.relative_to(folder).parts[0].removesuffix(".py")
        nodes |= {part} if re.search(r"\bfrom sqlglot import .*\bexp\b", text) else set()
        folding |= {file.name} if "casefold(" in text else set()
        if part not in {"source", "bind", "build", "people"}:
            assert "sqlglot import" not in text, file
    assert nodes == {"bind", "build", "people"}
    assert folding == {"scope.py"}


@pytest.mark.parametrize(
    "columns",
    [
        "carrier, carrier AS c",
        "carrier AS c, carrier",
        "carrier AS a, carrier AS b",
        "UPPER(carrier) AS a, UPPER(carrier) AS b",
    ],
)
def test_a_column_of_groups_under_two_names_is_refused(columns):
    """Of a column and the same with a name, the first was not in the table."""
    text = f"SELECT {columns}, COUNT(*) AS n FROM flights GROUP BY carrier, UPPER(carrier)"
    domain = Domain([Categories("carrier", ["aa", "ua"])], "flights")
    with pytest.raises(SqlError, match="under two names is not supported"):
        sql(text, domain)
    sql(text.replace(columns, "carrier, carrier"), domain)
