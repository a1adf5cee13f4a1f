"""Random rates, averages and quantiles against DuckDB on the same rows, with exact counts."""

from __future__ import annotations

import datetime as dt
import random

import duckdb
import pytest

from long_runs import cases
from lrm.domain import Bins, Categories, Dates, Domain, Integers
from lrm.errors import SqlError
from sql_answers import Table

STATEMENTS_PER_TABLE = 40
CUTS = ("cuts through the cell", "is not constant", "has no number for")


def _domain(make):
    return Domain(
        [
            Integers("hour", 0, 9, null=make.choice(["cell", "drop"])),
            Categories("g", ["a", "b", "c"], null=make.choice(["cell", "drop"])),
            Bins("pay", [0, 10, 20.5, 50], outside=make.choice(["cell", "drop"]), null="cell"),
            Integers("age", 0, 49, width=make.choice([1, 5, 10])),
            Categories("flag", [True, False], null="cell"),
            Dates("day", "2024-01-01", "2024-01-10"),
        ],
        "t",
    )


def _table(make):
    domain = _domain(make)
    kinds = ("BIGINT", "VARCHAR", "DOUBLE", "BIGINT", "BOOLEAN", "DATE")
    columns = ", ".join(
        f"{a.name} {kind}" for a, kind in zip(domain.attributes, kinds, strict=True)
    )
    rows, cells = [], []
    for _ in range(make.choice([3, 60, 400])):
        row = [
            make.choice([None, *range(10)]),
            make.choice([None, "a", "a", "b", "c"]),
            make.choice([None, -3.0, 0.0, 9.5, 10.0, 20.4, 49.0, 70.0]),
            make.randint(0, 49),
            make.choice([None, True, False]),
            dt.date(2024, 1, make.randint(1, 10)),
        ]
        cell = [a.cell_of(value) for a, value in zip(domain.attributes, row, strict=True)]
        if None not in cell:
            rows.append(row)
            cells.append(cell)
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t ({columns})")
    if rows:
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", rows)
    return Table(connection, domain, cells) if rows else None


def _condition(make):
    return make.choice(
        [
            "flag", "NOT flag", "hour < 5", "hour IN (1, 2, 8)", "age >= 20", "pay >= 10",
            "pay < 20.5", "g = 'a'", "day < '2024-01-06'", "flag AND hour > 2", "hour % 2 = 0",
            "pay BETWEEN 0 AND 50 AND pay < 50", "g <> 'b' OR flag",
        ]
    )  # fmt: skip


def _number(make):
    return make.choice(
        [
            "hour", "age", "hour * 2 + 1", "pay", "pay / 2", "hour - age", "flag::INT",
            f"CASE WHEN {_condition(make)} THEN hour END",
            f"CASE WHEN {_condition(make)} THEN 1 ELSE 0 END",
            f"CASE WHEN {_condition(make)} THEN pay ELSE 0 END",
        ]
    )  # fmt: skip


def _answer(make, grouped):
    number, one, two = _number(make), _condition(make), _condition(make)
    spread = make.choice(["VARIANCE", "VAR_POP", "STDDEV", "STDDEV_POP"])
    quantile = make.choice(["MEDIAN({0})", "QUANTILE_CONT({0}, 0.9)", "QUANTILE_DISC({0}, 0.25)"])
    level = "PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY {0})"
    ordered = make.choice(["hour", "age", "pay"])
    if ordered in grouped:
        ordered = "age"
    choices = [
        f"AVG({number})",
        f"AVG({number}) FILTER (WHERE {one})",
        f"100.0 * COUNT(*) FILTER (WHERE {one}) / COUNT(*)",
        f"COUNT(*) FILTER (WHERE {one}) / NULLIF(COUNT(*) FILTER (WHERE {two}), 0)",
        f"SUM(hour) / COUNT({make.choice(['hour', '*'])})",
        f"AVG(hour) FILTER (WHERE {one}) - AVG(hour) FILTER (WHERE {two})",
        f"{spread}({make.choice(['hour', 'hour + 3', 'flag::INT'])})",
        "1 - AVG(flag::INT)",
        "COUNT(*) / SUM(COUNT(*)) OVER ()",
        quantile.format(ordered),
        level.format(ordered),
        quantile.format(ordered) + f" FILTER (WHERE {one})",
    ]
    if grouped:
        by = make.choice(grouped)
        choices += [f"100.0 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY {by})"]
        choices += [f"SUM(COUNT(*)) OVER (ORDER BY {by}{make.choice(['', ' DESC'])})"]
    return make.choice(choices)


def _statement(make):
    grouped = make.sample(["g", "hour", "flag", "day"], make.choice([0, 1, 1, 2]))
    items = [*grouped, f"{_answer(make, grouped)} AS one", f"{_answer(make, grouped)} AS two"]
    where = f" WHERE {_condition(make)}" if make.random() < 0.4 else ""
    by = f" GROUP BY {', '.join(grouped)}" if grouped else ""
    return f"SELECT {', '.join(items)} FROM t{where}{by}"


def agree(seed, statements):
    make = random.Random(seed)  # noqa: S311 - not a secret
    table = _table(make)
    compared = 0
    for _ in range(statements if table else 0):
        statement = _statement(make)
        try:
            table.compare(statement)
            compared += 1
        except SqlError as error:
            if not any(words in str(error) for words in CUTS):
                raise
    return compared


def test_derived_answers_on_exact_counts_are_those_of_duckdb():
    assert sum(agree(seed, STATEMENTS_PER_TABLE) for seed in range(3)) > 60


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 100 + cases(50)))
def test_many_derived_answers_are_those_of_duckdb(seed):
    agree(seed, STATEMENTS_PER_TABLE)
