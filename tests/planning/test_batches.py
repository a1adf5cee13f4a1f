"""Batches from Python and YAML agree with the same questions in SQL, and errors name the line."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from lrm.domain import Bins, Categories, Dates, Domain, Integers
from lrm.errors import DomainError, FileFormatError, LrmError, SqlError, WorkloadError
from lrm.queries import builders as batches
from lrm.queries.files import parse_batch, read_batch
from lrm.queries.sql import sql
from lrm.queries.workload import families

DOMAIN = Domain(
    [
        Categories("state", ["NY", "NJ"], null="cell"),
        Integers("age", 0, 9, width=2, outside="cell"),
        Bins("x", [0, 1, 2.5, 4], nan="cell"),
        Dates("d", "2024-01-01", "2024-03-31", "month"),
    ],
    "t",
)


def same(batch, *statements):
    """Tell whether a batch has the weights of these SQL statements."""
    text = ";".join(f"SELECT COUNT(*) FROM t {text}" for text in statements)
    wanted = sql(text, DOMAIN)
    return np.array_equal(batch.queries.dense(), wanted.queries.dense())


def test_builders_agree_with_sql():
    assert same(batches.total(DOMAIN), "")
    assert same(batches.marginals(DOMAIN, [["x", "state"], []]), "GROUP BY state, x", "")
    pairs = itertools.combinations(DOMAIN.names, 2)
    assert same(batches.marginals(DOMAIN, 2), *(f"GROUP BY {a}, {b}" for a, b in pairs))
    ages = batches.ranges(DOMAIN, "age", [(2, 5), (0, 9)])
    assert same(ages, "WHERE age BETWEEN 2 AND 5", "WHERE age BETWEEN 0 AND 9")
    assert same(batches.ranges(DOMAIN, "x", [(1, 4)]), "WHERE x >= 1 AND x < 4")
    days = batches.ranges(DOMAIN, "d", [("2024-02-01", "2024-03-31")])
    assert same(days, "WHERE d BETWEEN '2024-02-01' AND '2024-03-31'")
    grouped = batches.ranges(DOMAIN, "age", [(2, 5)], by=["state"])
    assert same(grouped, "WHERE age BETWEEN 2 AND 5 GROUP BY state")
    running = batches.prefix(DOMAIN, "x")
    assert same(running, *(f"WHERE x >= 0 AND x < {edge}" for edge in (1, 2.5, 4)))
    assert same(batches.where(running, "age < 2"), *(
        f"WHERE x >= 0 AND x < {edge} AND age < 2" for edge in (1, 2.5, 4)
    ))  # fmt: skip
    assert batches.ranges(DOMAIN, "age").shape[0] == 15


def test_names_tell_the_group():
    assert batches.prefix(DOMAIN, "x", name="n").names == (
        "n[x=[0, 1)]",
        "n[x=[0, 2.5)]",
        "n[x=[0, 4)]",
    )
    assert batches.ranges(DOMAIN, "d", [("2024-01-01", "2024-02-29")]).names == (
        "count[d=2024-01..2024-02]",
    )
    assert batches.ranges(DOMAIN, "age", [(0, 1)], by=["state"]).labels[2].group == (
        ("state", "(null)"),
        ("age", "0..1"),
    )


FAULTS = [
    (lambda: batches.ranges(DOMAIN, "age", [(1, 4)]), "cuts through the cell 0..1; the nearest"),
    (lambda: batches.ranges(DOMAIN, "age", [(6, 3)]), "contains no declared cell"),
    (lambda: batches.ranges(DOMAIN, "age", [("a", 3)]), "must be a number, not 'a'"),
    (lambda: batches.ranges(DOMAIN, "x", [(0, float("nan"))]), "must be a number, not nan"),
    (lambda: batches.ranges(DOMAIN, "age", []), "at least one"),
    (lambda: batches.ranges(DOMAIN, "state", [("NY", "NJ")]), "declared as categories"),
    (lambda: batches.ranges(DOMAIN, "d", [(1, 2)]), "expected a date"),
    (lambda: batches.ranges(DOMAIN, "age", [(0, 1)], by=["age"]), "given twice"),
    (lambda: batches.prefix(DOMAIN, "town"), "no attribute is called 'town'"),
    (lambda: batches.marginals(DOMAIN, 5), "5-way marginals need 5 attributes"),
    (lambda: batches.marginals(DOMAIN, []), "at least one list"),
    (lambda: batches.where(batches.total(DOMAIN), "age < 3"), "cuts through the cell 2..3"),
    (
        lambda: batches.where(batches.total(DOMAIN), "age < 2 GROUP BY age"),
        "expected one condition",
    ),
    (lambda: families.stack([]), "at least one query"),
    (lambda: families.stack([batches.total(DOMAIN)] * 2), "duplicate query name: 'total'"),
]


@pytest.mark.parametrize(("make", "sentence"), FAULTS)
def test_a_wrong_question_is_an_error_that_names_it(make, sentence):
    with pytest.raises(LrmError) as caught:
        make()
    assert sentence in str(caught.value)


GOOD = """\
lrm-batch: 1
queries:
  - {kind: total, importance: 5}
  - {kind: marginals, ways: 1, name: one}
  - kind: ranges
    attribute: age
    of: [[0, 5], [6, 9]]
    by: [state]
    where: "x < 1"
  - kind: sql
    text: |
      SELECT state, COUNT(*) AS n FROM t GROUP BY state;
      SELECT SUM(CASE WHEN x < 1 THEN 2 END) AS s FROM t;
    importance: {n: 2, "n[state=NJ]": 3}
"""


def test_a_file_says_what_python_says():
    batch = parse_batch(GOOD, DOMAIN)
    adults = batches.ranges(DOMAIN, "age", [(0, 5), (6, 9)], by=["state"])
    text = "SELECT COUNT(*) FROM t GROUP BY state; SELECT 2 * COUNT(*) FROM t WHERE x < 1"
    parts = [
        batches.total(DOMAIN),
        batches.marginals(DOMAIN, 1),
        batches.where(adults, "x < 1"),
        sql(text, DOMAIN),
    ]
    wanted = np.vstack([part.queries.dense() for part in parts])
    assert np.array_equal(batch.queries.dense(), wanted)
    assert batch.importance[0] == 5
    assert batch.importance[-4:].tolist() == [2, 3, 2, 1]
    assert batch.labels[-1].line == 10


CHANGES = [
    ("lrm-batch: 1", "lrm-batch: 9", 1, "'lrm-batch'"),
    ("kind: total", "kind: all", 3, "'kind'"),
    ("importance: 5", "importance: 0", 3, "'importance'"),
    ("importance: 5", "importance: .inf", 3, "'importance'"),
    ("importance: 5", "weight: 5", 3, "'weight'"),
    ("ways: 1", "ways: 9", 4, "query 2"),
    ("ways: 1, ", "", 4, "'kind'"),
    ("attribute: age", "attribute: town", 5, "query 3"),
    ("of: [[0, 5], [6, 9]]", "of: [[0, 5, 6]]", 7, "'of'"),
    ("of: [[0, 5], [6, 9]]", "of: [[0, 4]]", 5, "cuts through"),
    ("by: [state]", "by: state", 8, "'by'"),
    ('where: "x < 1"', 'where: "x < 0.5"', 9, "'where'"),
    ('where: "x < 1"', 'where: "x < 1; DROP TABLE t"', 9, "'where'"),
    ("SUM(CASE", "MAX(CASE", 11, "'text': line 2: MAX(CASE"),
    ("{n: 2,", "{m: 2,", 14, "'m'"),
]


@pytest.mark.parametrize(("old", "new", "line", "field"), CHANGES)
def test_an_error_names_line_and_field(old, new, line, field):
    assert GOOD.count(old) == 1
    with pytest.raises((WorkloadError, DomainError)) as caught:
        parse_batch(GOOD.replace(old, new), DOMAIN)
    assert str(caught.value).startswith(f"batch.yaml line {line}"), str(caught.value)
    assert field in str(caught.value)


def test_names_are_taken_once():
    with pytest.raises(WorkloadError, match="line 4, query 2: duplicate query name: 'a'"):
        parse_batch(
            "lrm-batch: 1\nqueries:\n  - {kind: total, name: a}\n  - {kind: total, name: a}", DOMAIN
        )


def test_sql_files(tmp_path):
    path = tmp_path / "batch.sql"
    path.write_text("SELECT COUNT(*) AS n FROM t;\nSELECT MAX(age) FROM t")
    with pytest.raises(SqlError, match=r"^batch\.sql line 2: MAX\(age\) is not supported"):
        read_batch(path, DOMAIN)
    path.write_text("SELECT COUNT(*) AS n FROM t")
    assert read_batch(path, DOMAIN).names == ("n",)
    path = tmp_path / "batch.yaml"
    path.write_text(GOOD)
    assert read_batch(path, DOMAIN).names[0] == "q1"
    with pytest.raises(FileFormatError, match="no file at"):
        read_batch(tmp_path / "none.sql", DOMAIN)
