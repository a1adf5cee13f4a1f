"""What a batch compiles to: names, groups, weights, and the exactness of cuts."""

from __future__ import annotations

import datetime as dt
import math
import operator
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrm.domain import Bins, Categories, Dates, Domain, Integers
from lrm.errors import SqlError
from lrm.queries.sql import sql
from lrm.queries.sql.atoms import compare

OPERATIONS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
PEOPLE = Domain([Categories("state", ["NY", "NJ"]), Integers("age", 0, 3)], "people")


def weights(text, domain=PEOPLE):
    return sql(text, domain).queries.dense()


def count(condition, domain):
    return weights(f"SELECT COUNT(*) FROM t WHERE {condition}", domain)[0].tolist()


def possible(values, operation, constant):
    """Return the set of truths over all values of a cell, as bits; unknown where it holds none."""
    if not values:  # (invalid)
        return 4
    truths = {bool(OPERATIONS[operation](value, constant)) for value in values}
    return (True in truths) + 2 * (False in truths)


@given(
    st.integers(-6, 6),
    st.integers(0, 12),
    st.integers(1, 5),
    st.sampled_from(sorted(OPERATIONS)),
    st.decimals(-9, 20, places=1),
)
def test_truths_of_integers_are_exact(low, span, width, operation, constant):
    """Neither a cut is missed nor is one reported that is none, (below) and (above) included."""
    width = min(width, span + 1)
    attribute = Integers("k", low, low + span, width, outside="cell")
    cells = {cell: [] for cell in range(attribute.size)}
    for value in range(-60, 80):
        cells[attribute.cell_of(value)].append(value)
    got = compare(attribute, operation, constant)
    assert got.tolist() == [possible(values, operation, constant) for values in cells.values()]


@given(
    st.lists(st.integers(-8, 8), min_size=2, max_size=6, unique=True),
    st.sampled_from(sorted(OPERATIONS)),
    st.integers(-10, 10),
)
def test_truths_of_bins_are_exact(edges, operation, constant):
    """Edges, the numbers just beside them and the middles stand for all values of a cell."""
    attribute = Bins("x", sorted(edges), outside="cell")
    cells = {cell: [] for cell in range(attribute.size)}
    for whole in range(-12, 13):
        for value in (whole, whole + 0.5, math.nextafter(whole, -99), math.nextafter(whole, 99)):
            cells[attribute.cell_of(value)].append(value)
    for value in (-math.inf, math.inf):
        cells[attribute.cell_of(value)].append(value)
    got = compare(attribute, operation, Decimal(constant))
    assert got.tolist() == [possible(values, operation, constant) for values in cells.values()]


@given(st.sampled_from(["day", "month", "year"]), st.sampled_from(sorted(OPERATIONS)), st.data())
def test_truths_of_dates_are_exact(by, operation, data):
    end = {"day": "2024-02-09", "month": "2024-04-30", "year": "2025-12-31"}[by]
    attribute = Dates("d", "2024-01-01", end, by, outside="cell")
    days = [dt.date(2023, 1, 1) + dt.timedelta(days) for days in range(1500)]
    cells = {cell: [] for cell in range(attribute.size)}
    for day in days:
        cells[attribute.cell_of(day)].append(day)
    constant = data.draw(st.sampled_from(days[1:-1]))
    got = compare(attribute, operation, constant)
    assert got.tolist() == [possible(values, operation, constant) for values in cells.values()]


def test_edges_of_every_kind_are_accepted():
    domain = Domain([Bins("x", [0, 0.1, 2], null="cell", nan="cell")])
    assert count("x < 0.1", domain) == [1, 0, 0, 0]
    assert count("x >= 0.1", domain) == [0, 1, 1, 0]  # NaN is greater than every number
    assert count("NOT x >= 0.1", domain) == [1, 0, 0, 0]
    assert count("x <> 5", domain) == [1, 1, 1, 0]
    assert count("x IS NULL OR x < 2", domain) == [1, 1, 0, 1]
    domain = Domain([Dates("d", "2024-01-01", "2024-03-31", "month", null="cell")])
    assert count("d BETWEEN '2024-02-01' AND DATE '2024-02-29'", domain) == [0, 1, 0, 0]


def test_a_cut_that_decides_nothing_is_no_obstacle():
    domain = Domain([Integers("k", 0, 9, width=5), Categories("s", ["a", "b"])])
    assert count("k < 7 AND k < 5", domain) == [1, 1, 0, 0]
    assert count("(k < 7 OR s = 'a') AND k < 5", domain) == [1, 1, 0, 0]
    with pytest.raises(SqlError, match="k < 7 cuts through"):
        count("k < 7 OR s = 'a'", domain)


def test_a_case_takes_its_first_true_branch():
    text = "SELECT SUM(CASE WHEN age < 2 THEN 5 WHEN age < 3 THEN -1.5 END) FROM people"
    assert weights(text)[0].tolist() == [5, 5, -1.5, 0] * 2


def test_a_group_that_the_condition_excludes_is_not_there():
    text = "SELECT state, COUNT(*) AS n FROM people WHERE state = 'NY' GROUP BY state"
    batch = sql(text, PEOPLE)
    assert batch.names == ("n[state=NY]",)
    assert batch.queries.dense().sum(axis=1).tolist() == [4]


def test_names_lines_and_groups():
    text = """
        SELECT COUNT(*), SUM(age) FROM people; -- two answers
        SELECT COUNT(*) AS "all of them" FROM PEOPLE;
        /* groups */ SELECT COUNT(*) FROM people GROUP BY CUBE (state, age)"""
    batch = sql(text, PEOPLE)
    assert batch.names[:4] == ("q1.1", "q1.2", "all of them", "q3[state=NY, age=0]")
    assert batch.names[-1] == "q3"
    assert [label.line for label in batch.labels[:4]] == [2, 2, 3, 4]
    assert len(batch.names) == 3 + 8 + 2 + 4 + 1
    assert batch.queries.sparse().has_canonical_format


def test_group_order_is_that_of_the_domain():
    one = sql("SELECT COUNT(*) FROM people GROUP BY age, state", PEOPLE)
    two = sql("SELECT COUNT(*) FROM people GROUP BY state, age", PEOPLE)
    assert one.names == two.names
    assert np.array_equal(one.queries.dense(), np.eye(8))


def test_a_batch_without_a_declared_table_reads_one_table():
    domain = Domain(PEOPLE.attributes)
    with pytest.raises(SqlError, match="line 2: table 'b' is unknown; the batch's first"):
        sql("SELECT COUNT(*) FROM a;\nSELECT COUNT(*) FROM b", domain)


def test_weights_are_read_only_and_make_a_workload():
    batch = sql("SELECT COUNT(*) FROM people", PEOPLE)
    with pytest.raises(ValueError, match="read-only"):
        batch.queries.sparse().data[0] = 2
    workload = sql("SELECT age, COUNT(*) AS n FROM people GROUP BY age", PEOPLE)
    assert workload.names[0] == "n[age=0]"
    assert workload.domain is PEOPLE


def test_sqlglot_is_imported_only_by_those_who_compile():
    code = "import sys, lrm.queries; assert 'sqlglot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_column_that_is_computed_under_an_old_name_is_computed_once():
    text = "SELECT age AS half, COUNT(*) AS n FROM (SELECT age // 2 AS age FROM people) GROUP BY {}"
    for key in ("1", "half", "ALL", "age"):
        batch = sql(text.format(key), PEOPLE)
        assert batch.names == ("n[half=0]", "n[half=1]")
        assert batch.queries.dense().tolist() == [[1, 1, 0, 0] * 2, [0, 0, 1, 1] * 2]
