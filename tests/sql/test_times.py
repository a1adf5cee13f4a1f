# ruff: noqa: E501 - statements are kept in one piece
"""Columns of times: statements see the intervals that are their cells, and nothing within them."""

import datetime as dt

import duckdb
import numpy as np
import pandas as pd
import pytest

import lrm
from lrm.domain import Categories, Dates, Domain, Lookup
from lrm.errors import DomainError, SqlError
from lrm.queries.sql import sql
from sql_answers import Table

SPAN = "2024-01-01", "2024-02-29"
ROWS = 3000


def _frame():
    rng = np.random.default_rng(5)
    minutes = rng.integers(0, 60 * 24 * 60, ROWS).astype("timedelta64[m]")
    times = np.datetime64("2024-01-01T00:00:00") + minutes + rng.integers(0, 60, ROWS)
    times[:150] = times[:150].astype("datetime64[D]")  # at midnight
    return pd.DataFrame(
        {"ts": times.astype("datetime64[us]"), "kind": rng.choice(["a", "b"], ROWS)}
    )


FRAME = _frame()


def domain(by, **rules):
    return Domain([Dates("ts", *SPAN, by, time=True, **rules), Categories("kind", ["a", "b"])], "t")


def table(by):
    declared = domain(by)
    db = duckdb.connect()
    db.register("frame", FRAME)
    db.execute("CREATE TABLE t AS SELECT * FROM frame")
    cells = [
        [
            attribute.cell_of(value)
            for attribute, value in zip(declared.attributes, row, strict=True)
        ]
        for row in FRAME.itertuples(index=False)
    ]
    return Table(db, declared, np.array(cells))


@pytest.mark.parametrize(
    ("dialect", "expression", "meaning"),
    [
        ("tsql", "DATEADD(hour, DATEDIFF(hour, 0, ts), 0)", "DATE_TRUNC('hour', ts)"),
        ("tsql", "DATETRUNC(hour, ts)", "DATE_TRUNC('hour', ts)"),
        ("tsql", "CONVERT(VARCHAR(7), ts, 121)", "STRFTIME(ts, '%Y-%m')"),
        ("snowflake", "DATE_TRUNC('hour', ts)", "DATE_TRUNC('hour', ts)"),
        ("snowflake", "TIME_SLICE(ts, 6, 'HOUR')", "TIME_BUCKET(INTERVAL '6 hours', ts)"),
        ("bigquery", "TIMESTAMP_TRUNC(ts, HOUR)", "DATE_TRUNC('hour', ts)"),
        ("spark", "date_format(ts, 'E')", "STRFTIME(ts, '%a')"),
    ],
)
def test_a_time_keeps_its_hour_in_every_dialect(tables, dialect, expression, meaning):
    """Of SQL Server, and of a column of a sub-select, the groups were days."""
    rows = "SELECT ts FROM t WHERE ts < '2024-01-20'"
    for source in ("t WHERE ts < '2024-01-20'", f"({rows}) AS s"):
        text = f"-- dialect: {dialect}\nSELECT {expression} AS g, COUNT(*) AS n FROM {source} GROUP BY {expression}"
        same = f"SELECT {meaning} AS g, COUNT(*) AS n FROM ({rows}) GROUP BY 1"
        tables["hour"].compare(text, same)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("CONVERT(VARCHAR(12), ts, 120)", "its sizes are 13, 16, 19"),
        ("DATEADD(month, DATEDIFF(day, 0, ts), 0)", "with one unit"),
        ("TIME_SLICE(ts, 7, 'HOUR')", "that divide a day"),
    ],
)
def test_what_no_hour_can_answer_says_what_to_write(expression, said):
    dialect = "snowflake" if "SLICE" in expression else "tsql"
    text = f"-- dialect: {dialect}\nSELECT {expression} AS g, COUNT(*) AS n FROM t GROUP BY {expression}"
    with pytest.raises(SqlError) as caught:
        sql(text, domain("hour"))
    assert said in str(caught.value)


def test_days_are_written_in_several_ways():
    """20240131, midnight and UTC were errors."""
    plain = sql("SELECT COUNT(*) FROM t WHERE ts >= '2024-01-31'", domain("hour"))
    for text in ("20240131", "2024-01-31 00:00:00", "2024-01-31T00:00:00Z", "2024-01-31 00:00+00"):
        other = sql(f"SELECT COUNT(*) FROM t WHERE ts >= '{text}'", domain("hour"))
        assert other.digest == plain.digest
    with pytest.raises(SqlError, match="AND ts < '2024-02-01 00:00:00'"):
        sql(
            "SELECT COUNT(*) FROM t WHERE ts BETWEEN '2024-01-31' AND '2024-01-31 23:59:59'",
            domain("hour"),
        )


@pytest.fixture(scope="module")
def tables():
    return {by: table(by) for by in ("hour", "15 minutes", "day", "month")}


HOURS = """
SELECT COUNT(*) FROM t WHERE ts >= '2024-01-10' AND ts < '2024-01-31'
SELECT COUNT(*) FROM t WHERE ts >= TIMESTAMP '2024-01-10 07:00:00'
SELECT COUNT(*) FROM t WHERE ts < '2024-01-10 07:00' AND ts IS NOT NULL
SELECT COUNT(*) FROM t WHERE ts::date BETWEEN '2024-01-05' AND '2024-01-31'
SELECT COUNT(*) FROM t WHERE ts >= DATE '2024-02-01' - INTERVAL 6 HOUR
SELECT COUNT(*) FROM t WHERE date_trunc('hour', ts) <= TIMESTAMP '2024-01-31 10:00:00'
SELECT COUNT(ts) AS n, AVG(hour(ts)) AS h FROM t WHERE kind = 'a'
SELECT hour(ts) AS h, COUNT(*) AS n FROM t GROUP BY h
SELECT EXTRACT(HOUR FROM ts) AS h, isodow(ts) AS d, COUNT(*) AS n FROM t GROUP BY h, d
SELECT date_part('hour', ts) AS h, COUNT(*) AS n FROM t GROUP BY 1 ORDER BY n DESC LIMIT 3
SELECT date_trunc('hour', ts) AS h, COUNT(*) AS n FROM t GROUP BY h
SELECT date_trunc('hour', ts) AS h, kind, COUNT(*) AS n FROM t GROUP BY h, kind HAVING COUNT(*) > 3
SELECT date_trunc('hour', ts) AS h, SUM(COUNT(*)) OVER (ORDER BY date_trunc('hour', ts)) AS n FROM t GROUP BY h
SELECT date_trunc('day', ts) AS d, COUNT(*) AS n, LAG(COUNT(*)) OVER (ORDER BY date_trunc('day', ts)) AS p FROM t GROUP BY d
SELECT month(ts) AS m, COUNT(*) FILTER (WHERE hour(ts) BETWEEN 9 AND 16) AS n FROM t GROUP BY m
SELECT strftime(ts, '%a %H:00') AS h, COUNT(*) AS n FROM t WHERE ts < '2024-01-20' GROUP BY 1
SELECT date_trunc('day', ts - INTERVAL 6 HOUR) AS d, COUNT(*) AS n FROM t GROUP BY d
SELECT date_diff('hour', TIMESTAMP '2024-01-01 05:00:00', ts) // 24 AS d, COUNT(*) AS n FROM t GROUP BY d
SELECT time_bucket(INTERVAL '6 hours', ts) AS d, COUNT(*) AS n FROM t GROUP BY d
SELECT CASE WHEN hour(ts) < 6 THEN 'night' WHEN hour(ts) < 12 THEN 'morning' ELSE 'rest' END AS part, COUNT(*) AS n FROM t GROUP BY part
WITH h AS (SELECT date_trunc('hour', ts) AS h, COUNT(*) AS n FROM t GROUP BY 1) SELECT date_trunc('day', h) AS d, SUM(n) AS n FROM h GROUP BY 1
WITH h AS (SELECT date_trunc('hour', ts) AS h, COUNT(*) AS n FROM t GROUP BY 1) SELECT h, SUM(n) AS n FROM h WHERE h >= '2024-02-01' GROUP BY h
SELECT h, COUNT(*) AS n FROM (SELECT date_trunc('hour', ts) AS h, kind FROM t) WHERE kind = 'a' GROUP BY 1 ORDER BY h LIMIT 10
SELECT GROUPING(kind) AS g, date_trunc('month', ts) AS m, COUNT(*) AS n FROM t GROUP BY m, kind
""".strip().splitlines()[:-1]

DAYS = """
SELECT ts::date AS d, COUNT(*) AS n FROM t GROUP BY d
SELECT COUNT(*) FROM t WHERE ts::date = '2024-01-31'
SELECT COUNT(*) FROM t WHERE CAST(ts AS DATE) <= '2024-01-31' AND isodow(ts) IN (6, 7)
SELECT date_trunc('day', ts) AS d, COUNT(*) AS n FROM t GROUP BY d
SELECT date_trunc('week', ts) AS w, COUNT(*) AS n FROM t GROUP BY w
SELECT strftime(ts, '%Y-%m-%d') AS d, COUNT(*) AS n FROM t GROUP BY 1
""".strip().splitlines()

MONTHS = """
SELECT COUNT(*) FROM t WHERE ts < '2024-02-01'
SELECT date_trunc('month', ts) AS m, kind, COUNT(*) AS n FROM t GROUP BY m, kind
SELECT year(ts) AS y, month(ts) AS m, COUNT(*) AS n FROM t GROUP BY ROLLUP (y, m)
""".strip().splitlines()

ANSWERED = [
    *(("hour", statement) for statement in HOURS + DAYS + MONTHS),
    *(("15 minutes", statement) for statement in (*HOURS[:8], DAYS[0])),
    (
        "15 minutes",
        "SELECT time_bucket(INTERVAL '3 hours', ts) AS b, COUNT(*) AS n FROM t GROUP BY b",
    ),
    *(("day", statement) for statement in DAYS + MONTHS),
    *(("month", statement) for statement in MONTHS),
]


@pytest.mark.parametrize(("by", "statement"), ANSWERED)
@pytest.mark.filterwarnings("ignore::lrm.errors.SqlWarning")
def test_answers_are_those_of_duckdb_on_timestamps(tables, by, statement):
    tables[by].compare(statement, statement)


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        (
            "SELECT COUNT(*) FROM t WHERE ts BETWEEN '2024-01-01' AND '2024-01-31'",
            "write ts >= '2024-01-01' AND ts <",
        ),
        ("SELECT COUNT(*) FROM t WHERE ts > '2024-01-31'", "the nearest edges are ts >="),
        ("SELECT COUNT(*) FROM t WHERE ts = '2024-01-31'", "cuts through"),
        ("SELECT COUNT(*) FROM t WHERE ts IN ('2024-01-31', '2024-02-01')", "cuts through"),
        ("SELECT COUNT(*) FROM t WHERE ts::text LIKE '% 14:%'", "depends on the time within"),
        ("SELECT COUNT(*) FROM t WHERE ts = date_trunc('day', ts)", "depends on the time within"),
        ("SELECT ts, COUNT(*) FROM t GROUP BY ts", "GROUP BY ts, a column of times"),
        ("SELECT MODE(ts) FROM t", "cells are intervals"),
        ("SELECT MAX(ts) FROM t", "a single row decides it"),
        ("SELECT second(ts) AS s, COUNT(*) AS n FROM t GROUP BY s", "not constant on any cell"),
        (
            "-- dialect: mysql\nSELECT COUNT(*) FROM t WHERE TIMESTAMPDIFF(DAY, ts, '2024-2-1') > 3",
            "passed",
        ),
    ],
)
@pytest.mark.parametrize("by", ["hour", "15 minutes", "day", "month"])
def test_what_depends_on_the_time_within_a_cell_is_refused(by, statement, word):
    with pytest.raises(SqlError) as caught:
        sql(statement, domain(by))
    assert word in str(caught.value)


def test_hours_of_a_column_of_days_are_refused_with_what_to_declare():
    days = Domain([Dates("ts", *SPAN)], "t")
    for statement in (
        "hour(ts)",
        "EXTRACT(HOUR FROM ts)",
        "strftime(ts, '%H')",
        "date_trunc('hour', ts)",
    ):
        with pytest.raises(SqlError, match="by: hour"):
            sql(f"SELECT {statement} AS h, COUNT(*) AS n FROM t GROUP BY h", days)


def test_a_day_is_compared_with_a_time_as_its_midnight():
    days = Domain([Dates("ts", *SPAN)], "t")
    rows = [{"ts": dt.date(2024, 1, 1) + dt.timedelta(days=day)} for day in range(60)]
    batch = sql("SELECT COUNT(*) FROM t WHERE ts < TIMESTAMP '2024-01-10 12:00:00'", days)
    assert batch.queries.apply(days.count(rows)).tolist() == [10]


def test_times_are_no_keys_of_lookups():
    with pytest.raises(DomainError, match="intervals of time"):
        Domain(
            [Dates("ts", *SPAN, "hour")], lookups=[Lookup("l", "ts", ["x"], [["2024-01-01", 1]])]
        )


@pytest.mark.filterwarnings("ignore::lrm.errors.PrivacyWarning")
def test_hours_from_the_plan_to_the_frame():
    declared = domain("hour", null="cell", outside="cell")
    plan = lrm.plan(
        "SELECT date_trunc('hour', ts) AS h, COUNT(*) AS n FROM t GROUP BY h", domain=declared
    )
    frame = lrm.release(plan, FRAME, epsilon=10**6, ledger=None).to_pandas()
    counts = FRAME.groupby(FRAME.ts.dt.floor("h")).size()
    answers = dict(zip(pd.to_datetime(frame.h, errors="coerce"), frame.answer.round(), strict=True))
    assert {time: n for time, n in answers.items() if n} == counts.to_dict()


def test_ranges_of_builders_are_half_open_as_those_of_bins():
    batch = lrm.ranges(domain("hour"), "ts", [("2024-01-01", "2024-01-31")])
    counts = domain("hour").count({"ts": v.to_pydatetime(), "kind": "a"} for v in FRAME.ts)
    assert batch.queries.apply(counts).tolist() == [int((FRAME.ts < "2024-01-31").sum())]
