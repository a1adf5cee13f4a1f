"""The compiler against DuckDB: weights times counts are what DuckDB answers on raw rows."""

from __future__ import annotations

import importlib.util
import pathlib
import sys

import duckdb
import numpy as np
import pytest

from long_runs import cases
from lrm.errors import SqlError
from lrm.queries.sql import sql
from sql_grammar import Grammar

_spec = importlib.util.spec_from_file_location(
    "sql_generator", pathlib.Path(__file__).with_name("generator.py")
)
generator = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = generator
_spec.loader.exec_module(generator)

pytestmark = pytest.mark.filterwarnings("ignore::lrm.errors.SqlWarning")

TABLES_PER_SEED = 4
NO_GROUPS = "leave none of its declared groups"
QUERIES_PER_TABLE = 30


def load(connection, domain, rows, make):
    """Put the raw rows into DuckDB, with the label of each attribute's cell beside them.

    Rows that the domain drops are left out here, as the domain says. The labels come from the
    plain Python reference, and serve to name groups: DuckDB compares the raw values.
    """
    columns = []
    for number, attribute in enumerate(domain.attributes):
        columns += [f'"{attribute.name}" {make.column_type(attribute)}', f"label{number} VARCHAR"]
    connection.execute(f"CREATE OR REPLACE TABLE t ({', '.join(columns)})")
    kept = []
    for row in rows:
        cell = domain.cell_of(row)
        if cell is not None:
            labels = domain.cell_labels(cell)
            kept.append([x for pair in zip(row.values(), labels, strict=True) for x in pair])
    if kept:
        marks = ", ".join("?" for _ in columns)
        connection.executemany(f"INSERT INTO t VALUES ({marks})", kept)


def duckdb_answers(connection, domain, query):
    """Return {(answer, group): number} of the query as DuckDB runs it, grouped by label."""
    grouped = sorted({domain.axis(name) for names in query.sets for name in names})
    labels = [f"label{axis}" for axis in grouped]
    rolled = [f"GROUPING({label})" for label in labels]
    items = ", ".join([*labels, *rolled, *query.theirs])
    answers = {}
    for row in connection.execute(f"SELECT {items} FROM t{query.where}{query.group_by}").fetchall():
        marks = row[len(labels) : 2 * len(labels)]
        key = tuple(
            (domain.names[axis], label)
            for axis, label, mark in zip(grouped, row, marks, strict=False)
            if not mark
        )
        for number, value in enumerate(row[2 * len(labels) :], start=1):
            answers[number, key] = float(value)
    return answers


def check(connection, domain, counts, query):
    """Compare one query; return False where the compiler refuses it for a cut."""
    try:
        batch = sql(query.ours, domain)
    except SqlError as error:
        if NO_GROUPS in str(error):
            assert not duckdb_answers(connection, domain, query)
            return True
        if "cuts through the cell" not in str(error) and "is not constant" not in str(error):
            raise
        return False
    expected = duckdb_answers(connection, domain, query)
    got = batch.queries.apply(counts)
    assert len(batch.names) <= sum(
        len(query.theirs) * np.prod([len(domain.labels(name)) for name in names], dtype=int)
        for names in query.sets
    )
    numbers = {f"a{i}": i for i in (1, 2, 3)} | {f"q1.{i}": i for i in (1, 2, 3)}
    for label, value in zip(batch.labels, got, strict=True):
        # A group that DuckDB does not list is empty: its answer is 0.
        want = expected.pop((numbers[label.query], label.group), 0.0)
        assert value == pytest.approx(want, abs=1e-9), (query.ours, label.group)
    assert not expected, query.ours
    return True


@pytest.mark.parametrize("seed", range(4))
def test_weights_times_counts_is_what_duckdb_answers(seed):
    compare_with_duckdb(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4, 4 + cases(12)))
def test_many_weights_times_counts_are_what_duckdb_answers(seed):
    compare_with_duckdb(seed)


def compare_with_duckdb(seed):
    """Random queries, domains and rows with NULL, NaN, ±inf, edges and undeclared values."""
    agree(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10, 60))
def test_many_more_weights_times_counts_are_what_duckdb_answers(seed):
    agree(seed)


def agree(seed):
    make = generator.Generator(seed)
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    compared = 0
    for _ in range(TABLES_PER_SEED):
        domain = make.domain()
        rows = make.table(domain)
        load(connection, domain, rows, make)
        counts = domain.count(rows)
        queries = [make.query(domain) for _ in range(QUERIES_PER_TABLE)]
        compared += sum(check(connection, domain, counts, query) for query in queries)
    # The generator must not drift into queries that are all refused.
    assert compared > TABLES_PER_SEED * QUERIES_PER_TABLE / 4


STATEMENTS_PER_TABLE = 30
EXPECTED = ("cuts through the cell", "is not constant", "under two names", "select the key of a")
"""Why a statement of the grammar may be refused."""


@pytest.mark.parametrize("seed", range(3))
def test_statements_of_the_whole_grammar_are_what_duckdb_answers(seed):
    compare_grammar(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3, 3 + cases(100)))
def test_many_statements_of_the_whole_grammar_are_what_duckdb_answers(seed):
    compare_grammar(seed)


def compare_grammar(seed):
    """WITH, sub-selects, lookups, expressions in groups, rates, HAVING, ORDER BY and LIMIT."""
    make = Grammar(seed)
    table = make.table()
    compared = 0
    for _ in range(STATEMENTS_PER_TABLE):
        statement = make.statement()
        try:
            table.compare(statement)
            compared += 1
        except SqlError as error:
            if NO_GROUPS in str(error):
                assert not table.connection.execute(statement).fetchall(), statement
            elif not any(part in str(error) for part in EXPECTED):
                raise
    assert compared > STATEMENTS_PER_TABLE / 2
