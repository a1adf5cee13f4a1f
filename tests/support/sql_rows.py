"""A small table in which no declared group is empty: statements have exactly DuckDB's rows."""

from __future__ import annotations

import datetime as dt
import itertools
import math

import duckdb

from lrm.domain import Bins, Categories, Dates, Domain, Integers, Lookup
from lrm.queries.sql import sql
from sql_answers import Table, text_of

DOMAIN = Domain(
    [
        Categories("Carrier", ["AA", "B6", "UA"], null="cell"),
        Integers("month", 1, 4),
        Categories("late", [True, False], null="cell"),
        Integers("score", 0, 5, null="cell"),
        Bins("x", [-200, -100, 0, 100, 200], null="cell"),
        Dates("day", "2024-01-30", "2024-02-03"),
    ],
    "flights",
    lookups=[
        Lookup("airlines", "Carrier", ["name"], [["AA", "American"], ["UA", "United"]]),
        Lookup(
            "ref.seasons",
            "month",
            ["season"],
            [[m, "cold" if m < 3 else "warm"] for m in range(1, 5)],
        ),
    ],
)
COLUMNS = "Carrier VARCHAR, month BIGINT, late BOOLEAN, score BIGINT, x DOUBLE, day DATE"


def rows():
    """Rows of the table: every carrier in every month, early, late and unknown, several times."""
    carriers, truths = ["AA", "B6", "UA", None], [True, False, None]
    scores, numbers = [0, 1, 2, 3, 4, 5, None], [-150.0, -50.0, 0.0, 50.0, 150.0, None]
    groups = itertools.product(carriers, range(1, 5), truths)
    number = 0
    for place, (carrier, month, late) in enumerate(groups):
        for _ in range(3 + place % 5):
            number += 1
            day = dt.date(2024, 1, 30) + dt.timedelta(days=number % 5)
            yield carrier, month, late, scores[number % 7], numbers[number % 6], day


def table():
    """The table in DuckDB, with its lookups, and its cells."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute(f"CREATE TABLE flights ({COLUMNS})")
    every = list(rows())
    connection.executemany("INSERT INTO flights VALUES (?, ?, ?, ?, ?, ?)", every)
    connection.execute("CREATE TABLE airlines (Carrier VARCHAR, name VARCHAR)")
    connection.executemany("INSERT INTO airlines VALUES (?, ?)", DOMAIN.lookups[0].rows)
    connection.execute('CREATE TABLE "ref.seasons" (month BIGINT, season VARCHAR)')
    connection.executemany('INSERT INTO "ref.seasons" VALUES (?, ?)', DOMAIN.lookups[1].rows)
    cells = [
        [one.cell_of(value) for one, value in zip(DOMAIN.attributes, row, strict=True)]
        for row in every
    ]
    return Table(connection, DOMAIN, cells)


def our_rows(table, batch):
    """The rows that are displayed where there is no noise, in order: groups and numbers."""
    answers = {
        name: {group: value for group, (value, _) in own.items()}
        for name, own in table.exact(batch).items()
    }
    hidden = {name for display in batch.display for name in display.hidden}
    names = [name for name in answers if name not in hidden]
    groups = list(dict.fromkeys(group for name in names for group in answers[name]))
    for display in batch.display:
        groups = display.shown(groups, answers)
    return [
        (dict(group), [answers[name].get(group, math.nan) for name in names]) for group in groups
    ]


def their_rows(table, statement, groups):
    """DuckDB's rows: the labels of columns of groups, and the numbers."""
    found = table.connection.execute(statement)
    names = [column[0] for column in found.description]
    apart = [name in groups for name in names]
    for row in found.fetchall():
        labels = {n: text_of(v) for n, v, own in zip(names, row, apart, strict=True) if own}
        yield (
            labels,
            [
                math.nan if v is None else float(v)
                for v, own in zip(row, apart, strict=True)
                if not own
            ],
        )


def check_rows(table, statement, reference=None, *, ordered=True):
    """Assert that a statement displays DuckDB's rows and no others, in DuckDB's order."""
    batch = sql(statement, table.domain)
    ours = our_rows(table, batch)
    groups = {name for labels, _ in ours for name in labels}
    theirs = list(their_rows(table, reference or statement, groups))
    if not (ordered and any(display.order for display in batch.display)):
        ours, theirs = (
            sorted(some, key=lambda row: sorted(row[0].items())) for some in (ours, theirs)
        )
    assert [labels for labels, _ in ours] == [labels for labels, _ in theirs], statement
    for (labels, our), (_, their) in zip(ours, theirs, strict=True):
        # The order of answers is that of the SELECT list, linear ones first.
        pairs = zip(sorted(our, key=_order), sorted(their, key=_order), strict=True)
        for one, two in pairs:
            same = math.isnan(one) and math.isnan(two)
            assert same or math.isclose(one, two, rel_tol=1e-9, abs_tol=1e-9), (
                statement,
                labels,
                our,
                their,
            )


def _order(value):
    return (math.isnan(value), value)
