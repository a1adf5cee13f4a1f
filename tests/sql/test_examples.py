"""Statements of the reference page, and further ones, compared with DuckDB on the same rows."""

from __future__ import annotations

import datetime as dt
import pathlib
import random
import re
import warnings

import duckdb
import pytest

from lrm.domain import Bins, Categories, Dates, Domain, Integers, Lookup
from lrm.errors import SqlError, SqlWarning
from lrm.queries.sql import sql
from sql_answers import Table, in_duckdb

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "reference" / "sql.md"
DOMAIN = Domain(
    [
        Integers("month", 1, 12),
        Integers("hour", 0, 23, null="cell"),
        Categories("carrier", ["AA", "B6", "UA", "ABX"], null="cell"),
        Categories("origin", ["EWR", "JFK", "LGA"]),
        Bins("dep_delay", [-60, -15, 0, 15, 60, 1440], null="cell", outside="cell"),
        Bins("distance", [0, 500, 1000, 3000]),
        Categories("late", [True, False], null="cell"),
        Dates("day", "2013-01-01", "2013-03-31", null="cell"),
    ],
    "flights",
    lookups=[
        Lookup("airlines", "carrier", ["name"], [["AA", "American"], ["UA", "United"]]),
        Lookup("seasons", "month", ["season"], [[12, "winter"], [1, "winter"], [6, "summer"]]),
    ],
)
TYPES = {"dep_delay": "DOUBLE", "distance": "DOUBLE", "late": "BOOLEAN", "day": "DATE"}
FURTHER = pathlib.Path(__file__).with_name("further_statements.sql").read_text("utf-8")
BLOCKS = [
    *re.findall(r"```sql\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL),
    re.sub(r"^--.*\n", "", FURTHER),
]
STATEMENTS = [part.strip() for block in BLOCKS for part in block.split(";") if part.strip()]


def _rows():
    make = random.Random(5)  # noqa: S311 - not a secret
    for _ in range(3000):
        row = [
            make.randint(1, 12),
            make.randint(0, 23),
            make.choice(["AA", "B6", "UA", "ABX"]),
            make.choice(["EWR", "JFK", "LGA"]),
            make.choice([-70.0, -15.0, -1.0, 0.0, 14.9, 15.0, 60.0, 2000.0]),
            make.choice([0.0, 499.5, 500.0, 1000.0, 2999.0]),
            make.random() < 0.5,
            dt.date(2013, 1, 1) + dt.timedelta(days=make.randint(0, 89)),
        ]
        for place, attribute in enumerate(DOMAIN.attributes):
            if attribute.null == "cell" and make.random() < 0.15:
                row[place] = None
        yield row


@pytest.fixture(scope="module")
def table():
    rows = list(_rows())
    connection = duckdb.connect()
    columns = ", ".join(
        f"{a.name} {TYPES.get(a.name, 'VARCHAR' if a.name in {'carrier', 'origin'} else 'BIGINT')}"
        for a in DOMAIN.attributes
    )
    connection.execute(f"CREATE TABLE flights ({columns})")
    connection.executemany("INSERT INTO flights VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
    for lookup, kind in zip(DOMAIN.lookups, ["VARCHAR", "BIGINT"], strict=True):
        columns = f"{lookup.key} {kind}, {lookup.columns[0]} VARCHAR"
        connection.execute(f"CREATE TABLE {lookup.name} ({columns})")
        connection.executemany(f"INSERT INTO {lookup.name} VALUES (?, ?)", lookup.rows)
    cells = [
        [a.cell_of(value) for a, value in zip(DOMAIN.attributes, row, strict=True)] for row in rows
    ]
    return Table(connection, DOMAIN, cells)


@pytest.mark.filterwarnings("ignore:.* is read as DuckDB does")
@pytest.mark.parametrize("statement", STATEMENTS)
def test_an_example_is_what_duckdb_answers(table, statement):
    table.compare(statement, in_duckdb(statement))


def test_the_page_has_many_examples():
    assert len(STATEMENTS) >= 60


@pytest.mark.parametrize(
    ("condition", "sentence"),
    [
        ("origin = 'JKF'", "line 1: 'JKF' is not a declared value of 'origin', so that no row"),
        ("origin IN ('JFK', 'jfk ')", "did you mean 'JFK'?"),
    ],
)
def test_an_undeclared_constant_is_a_warning(table, condition, sentence):
    with pytest.warns(SqlWarning, match=re.escape(sentence)):
        table.compare(f"SELECT COUNT(*) FROM flights WHERE {condition}")


def test_declared_constants_warn_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sql("SELECT COUNT(*) FROM flights WHERE origin IN ('JFK', 'LGA')", DOMAIN)


def test_a_byte_order_mark_is_no_obstacle():
    assert sql("\ufeffSELECT COUNT(*) FROM flights", DOMAIN).names == ("q1",)


def test_an_alias_hides_the_name_of_the_table():
    with pytest.raises(SqlError, match="table 'flights' is not supported; the statement reads 'f'"):
        sql("SELECT COUNT(*) FROM flights f WHERE flights.month = 1", DOMAIN)
