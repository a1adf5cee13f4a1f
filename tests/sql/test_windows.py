"""Window functions over answers: linear ones are answers, ranks number what is displayed."""

from __future__ import annotations

import json

import duckdb
import numpy as np
import pytest

import lrm
from lrm.domain import Categories, Dates, Domain, Integers
from lrm.errors import FileFormatError, SqlError
from lrm.queries.sql import sql
from lrm.queries.workload.display import Display
from sql_answers import Table

DOMAIN = Domain(
    [
        Categories("c", ["x", "y", "z"]),
        Integers("m", 1, 6),
        Dates("day", "2024-01-01", "2024-03-31"),
        Integers("v", 0, 9),
    ],
    "t",
)


@pytest.fixture(scope="module")
def table():
    draw = np.random.default_rng(5)
    cells = np.stack([draw.integers(0, size, 3000) for size in DOMAIN.shape], axis=1)
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (c VARCHAR, m INT, day DATE, v INT)")
    rows = [("xyz"[c], int(m) + 1, f"2024-01-01::{d}", int(v)) for c, m, d, v in cells.tolist()]
    connection.executemany(
        "INSERT INTO t VALUES (?, ?, DATE '2024-01-01' + CAST(? AS INT), ?)",
        [(c, m, int(d.split("::")[1]), v) for c, m, d, v in rows],
    )
    return Table(connection, DOMAIN, cells)


LINEAR = [
    "LAG(COUNT(*)) OVER (ORDER BY m)",
    "COUNT(*) - LAG(COUNT(*), 2) OVER (ORDER BY m)",
    "COUNT(*) / LAG(COUNT(*)) OVER (ORDER BY m DESC) - 1",
    "LEAD(SUM(v), 1, 0) OVER (ORDER BY m)",
    "COALESCE(LAG(SUM(v)) OVER (ORDER BY m), 0)",
    "AVG(v) - LAG(AVG(v)) OVER (ORDER BY m)",
    "AVG(COUNT(*)) OVER (ORDER BY m ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
    "AVG(COUNT(*)) OVER (ORDER BY m)",
    "AVG(COUNT(*)) OVER ()",
    "COUNT(*) - AVG(COUNT(*)) OVER ()",
    "SUM(COUNT(*)) OVER (ORDER BY m ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING)",
    "SUM(COUNT(*)) OVER (ORDER BY m RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    "AVG(SUM(v)) OVER (ORDER BY m RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "FIRST_VALUE(COUNT(*)) OVER (ORDER BY m)",
    "COUNT(*) / FIRST_VALUE(COUNT(*)) OVER (ORDER BY m)",
    (
        "LAST_VALUE(COUNT(*)) OVER (ORDER BY m ROWS BETWEEN UNBOUNDED PRECEDING AND "
        "UNBOUNDED FOLLOWING)"
    ),
]


@pytest.mark.parametrize("answer", LINEAR)
@pytest.mark.parametrize("where", ["", "WHERE m > 2 ", "WHERE m <> 3 AND v < 7 "])
def test_a_window_is_what_duckdb_answers_where_every_group_has_rows(table, answer, where):
    table.compare(f"SELECT m, COUNT(*) AS n, {answer} AS w FROM t {where}GROUP BY m")
    split = answer.replace("OVER (ORDER", "OVER (PARTITION BY c ORDER").replace(
        "OVER ()", "OVER (PARTITION BY c)"
    )
    table.compare(f"SELECT m, c, {split} AS w FROM t {where}GROUP BY c, m")


@pytest.mark.parametrize("answer", LINEAR)
def test_windows_order_by_expressions_too(table, answer):
    if "RANGE" in answer:
        with pytest.raises(SqlError):
            sql(f"SELECT m * 2 AS k, {answer} FROM t GROUP BY 1", DOMAIN)
        return
    month = answer.replace("BY m", "BY date_trunc('month', day)")
    table.compare(f"SELECT date_trunc('month', day) AS k, {month} AS w FROM t GROUP BY 1")
    split = month.replace("OVER (ORDER", "OVER (PARTITION BY c ORDER").replace(
        "OVER ()", "OVER (PARTITION BY c)"
    )
    table.compare(f"SELECT date_trunc('month', day) AS k, c, {split} AS w FROM t GROUP BY 1, 2")


def test_windows_order_by_several_expressions(table):
    table.compare(
        "SELECT YEAR(day) AS y, MONTH(day) AS k, COUNT(*) - LAG(COUNT(*)) OVER "
        "(ORDER BY YEAR(day), MONTH(day)) AS d FROM t GROUP BY 1, 2"
    )


def test_differences_to_the_group_before_ask_for_no_more_queries():
    plain = sql("SELECT m, COUNT(*) AS n FROM t GROUP BY m", DOMAIN)
    text = "SELECT m, COUNT(*) AS n, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY m) AS d FROM t"
    both = sql(f"{text} GROUP BY m", DOMAIN)
    assert both.shape == plain.shape
    (one,) = both.derived
    assert [rows.tolist() for rows in one.input_rows()] == [[1, 2, 3, 4, 5], [0, 1, 2, 3, 4]]


def test_differences_have_intervals():
    text = "SELECT m, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY m) AS d FROM t GROUP BY m"
    plan = lrm.plan(sql(text, DOMAIN), effort="quick")
    found = plan.errors(epsilon="1").of("d")
    assert len(found) == 5
    assert np.all(found.numbers["half_width"] > 0)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT m, c, LAG(COUNT(*)) OVER (ORDER BY m) AS w FROM t GROUP BY m, c", "window"),
        ("SELECT m, LAG(COUNT(*), 1, 5) OVER (ORDER BY m) AS w FROM t GROUP BY m", "window"),
        ("SELECT m, LAG(COUNT(*)) OVER () AS w FROM t GROUP BY m", "window"),
        ("SELECT m, SUM(LAG(COUNT(*)) OVER (ORDER BY m)) OVER () AS w FROM t GROUP BY m", "window"),
        (
            (
                "SELECT m, c, LAG(COUNT(*)) OVER (PARTITION BY c ORDER BY m) AS w FROM t "
                "WHERE (c = 'x' AND m < 3) OR (c = 'y' AND m > 4) GROUP BY m, c"
            ),
            "window",
        ),
    ],
)
def test_a_window_whose_groups_are_not_known_is_refused(text, code):
    with pytest.raises(SqlError) as caught:
        sql(text, DOMAIN)
    assert caught.value.code == code


RANKS = [
    "RANK() OVER (ORDER BY COUNT(*) DESC)",
    "DENSE_RANK() OVER (ORDER BY SUM(v) // 40)",
    "ROW_NUMBER() OVER (ORDER BY COUNT(*), m)",
    "RANK() OVER (ORDER BY m DESC)",
    "PERCENT_RANK() OVER (ORDER BY COUNT(*))",
    "CUME_DIST() OVER (ORDER BY COUNT(*))",
    "NTILE(4) OVER (ORDER BY COUNT(*))",
    "RANK() OVER (ORDER BY AVG(v))",
]


@pytest.mark.parametrize("rank", RANKS)
def test_a_rank_is_what_duckdb_answers_of_the_displayed_answers(table, rank):
    if "//" in rank:
        rank = rank.replace(" // 40", "")
    table.compare(f"SELECT m, COUNT(*) AS n, {rank} AS r FROM t GROUP BY m ORDER BY r, m")
    split = rank.replace("OVER (", "OVER (PARTITION BY c ")
    table.compare(f"SELECT m, c, COUNT(*) AS n, {split} AS r FROM t GROUP BY c, m")
    table.compare(
        f"SELECT m, c, COUNT(*) AS n FROM t GROUP BY c, m QUALIFY {split} <= 2 ORDER BY c, m"
    )
    table.compare(
        f"SELECT m, COUNT(*) AS n, {rank} AS r FROM t GROUP BY m HAVING COUNT(*) > 490 ORDER BY m"
    )
    table.compare(
        f"SELECT * FROM (SELECT m, COUNT(*) AS n, {rank} AS rn FROM t GROUP BY m) "
        "WHERE rn < 4 AND n > 480 ORDER BY m"
    )


def test_ranks_are_displayed_without_intervals_and_saved():
    text = "SELECT c, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM t GROUP BY c"
    batch = sql(text, DOMAIN)
    assert batch.shape[0] == 3
    (display,) = batch.display
    again = Display.from_facts(json.loads(json.dumps(display.facts)))
    assert again == display
    forged = json.loads(json.dumps(display.facts))
    forged["ranks"][0]["function"] = "first"
    with pytest.raises(FileFormatError, match="'function' of Rank has the wrong type"):
        Display.from_facts(forged)


def test_a_rank_where_groups_are_not_known_is_refused():
    for text in (
        "SELECT c, COUNT(*) AS n FROM t GROUP BY c HAVING RANK() OVER (ORDER BY COUNT(*)) < 2",
        (
            "SELECT c FROM (SELECT c, RANK() OVER (ORDER BY COUNT(*)) AS r FROM t GROUP BY c) "
            "WHERE c <> 'x'"
        ),
    ):
        with pytest.raises(SqlError):
            sql(text, DOMAIN)


def test_a_named_window_is_the_same_as_one_written_out():
    named = "SELECT m, SUM(COUNT(*)) OVER w AS s FROM t GROUP BY m WINDOW w AS (ORDER BY m)"
    plain = "SELECT m, SUM(COUNT(*)) OVER (ORDER BY m) AS s FROM t GROUP BY m"
    one, two = (sql(text, DOMAIN).queries.dense() for text in (named, plain))
    assert np.array_equal(one, two)
    with pytest.raises(SqlError, match="no window is called 'w'"):
        sql(named.partition(" WINDOW")[0], DOMAIN)
