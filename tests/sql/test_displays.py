# ruff: noqa: E501 - statements as analysts write them
"""Columns that are computed from displayed answers: CASE, windows by answers, choices by them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import lrm
import sql_rows
from lrm.errors import FileFormatError, SqlError, WorkloadError
from lrm.queries.sql import sql
from lrm.queries.workload.display import Bound, Branch, Computed, Display, OrderKey, Rank, Term
from lrm.views.release_document import EVERYTHING, listed_tables

pytestmark = pytest.mark.filterwarnings("ignore::lrm.errors.SqlWarning")

N = "COUNT(*)"
STATEMENTS = [
    f"SELECT month, {N} AS n, CASE WHEN {N} > 60 THEN 'many' ELSE 'few' END AS size FROM flights GROUP BY month",
    f"SELECT month, {N} > 60 AND AVG(score) > 2 AS large, {N} AS n FROM flights GROUP BY month",
    f"SELECT month, CASE WHEN {N} > 60 THEN {N} / 2 END AS half, {N} AS n FROM flights GROUP BY month",
    f"SELECT month, late, {N} AS n, SUM({N}) OVER (PARTITION BY month ORDER BY {N} DESC, late) AS up_to FROM flights GROUP BY month, late",
    f"SELECT month, {N} AS n, 1.0 * {N} / MAX({N}) OVER () AS rel, MIN({N}) OVER (ORDER BY month) AS low FROM flights GROUP BY month",
    f"SELECT month, late, {N} AS n, FIRST_VALUE(late) OVER (PARTITION BY month ORDER BY {N} DESC, late) AS top FROM flights GROUP BY month, late",
    f"SELECT month, {N} AS n, {N} * 1.0 / SUM({N}) OVER () AS share, LAG({N}) OVER (ORDER BY month) AS p FROM flights GROUP BY month HAVING {N} > 55",
    f"SELECT month, {N} AS n, LAG({N}, 2) OVER (ORDER BY {N}) AS p, LEAD({N}) OVER (ORDER BY {N}) AS q FROM flights GROUP BY month",
    f"SELECT month, {N} AS n, AVG({N}) OVER (ORDER BY {N} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS ma FROM flights GROUP BY month",
    f"SELECT month, n FROM (SELECT month, {N} AS n, SUM({N}) OVER (ORDER BY {N} DESC) AS s, SUM({N}) OVER () AS t FROM flights GROUP BY month) WHERE s <= 0.6 * t",
    f"SELECT month, {N} AS n, CASE WHEN RANK() OVER (ORDER BY {N} DESC) <= 2 THEN 'top' ELSE 'rest' END AS tier FROM flights GROUP BY month ORDER BY tier DESC, n",
]
"""Statements whose rows DuckDB has too, on a table without empty groups."""


@pytest.fixture(scope="module")
def table():
    return sql_rows.table()


def _values(row):
    return {name: round(v, 9) if isinstance(v, float) else v for name, v in row.items()}


def _ours(table, text):
    batch = sql(text, table.domain)
    (display,) = batch.display
    plain = {
        name: {group: value for group, (value, _) in own.items()}
        for name, own in table.exact(batch).items()
    }
    groups = list(dict.fromkeys(group for own in plain.values() for group in own))
    every = {**plain, **display.rank_values(groups, plain)}
    shown = [name for name in every if name not in display.hidden]
    return [
        {name: label for name, label in group if name not in display.left_out}
        | {name: every[name].get(group, np.nan) for name in shown}
        for group in display.shown(groups, plain)
    ]


def _theirs(table, text):
    found = table.connection.execute(text)
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _same(one, two):
    if two is None:
        return one == "(null)" or np.isnan(one)
    return (
        str(one) == str(two).lower()
        if isinstance(one, str) and isinstance(two, bool)
        else (str(one) == str(two) if isinstance(one, str) else bool(np.isclose(one, float(two))))
    )


@pytest.mark.parametrize("text", STATEMENTS)
def test_computed_columns_are_those_of_duckdb(table, text):
    ours, theirs = _ours(table, text), _theirs(table, text)
    key = [name for name in ("month", "late") if name in theirs[0]]
    ours.sort(key=lambda row: [str(row[name]).replace("(null)", "None") for name in key])
    theirs.sort(key=lambda row: [str(row[name]).lower().replace("none", "None") for name in key])
    assert len(ours) == len(theirs) > 0
    for one, two in zip(ours, theirs, strict=True):
        for name, value in two.items():
            assert _same(one[name], value), (name, one, two)


TOP = "SELECT month FROM flights GROUP BY month ORDER BY COUNT(*) DESC, month LIMIT 2"
CHOSEN = [
    f"SELECT month, late, {N} AS n FROM flights WHERE month IN ({TOP}) GROUP BY month, late",
    f"SELECT f.month, {N} AS n FROM flights f JOIN ({TOP}) t ON t.month = f.month GROUP BY f.month",
    f"SELECT MAX(n) AS a, MIN(n) AS b, MAX(n) - MIN(n) AS c, SUM(n) AS d FROM (SELECT month, {N} AS n FROM flights GROUP BY month)",
    f"SELECT month, MAX(n) - AVG(n) AS a FROM (SELECT month, late, {N} AS n FROM flights GROUP BY 1, 2) GROUP BY month HAVING MAX(n) > 20",
    f"SELECT COUNT(*) AS k, AVG(n) AS m FROM (SELECT month, late, {N} AS n FROM flights GROUP BY 1, 2 HAVING {N} > 20)",
    "WITH a AS (SELECT month, AVG(score) AS m FROM flights GROUP BY month) SELECT f.month, f.late, AVG(f.score) - a.m AS d FROM flights f JOIN a ON a.month = f.month WHERE f.score > 1 GROUP BY f.month, f.late, a.m",
    f"WITH a AS (SELECT month, late, {N} AS n FROM flights GROUP BY 1, 2), b AS (SELECT month, SUM(n) AS t FROM a GROUP BY month HAVING SUM(n) > 50) SELECT a.month, a.late, 100.0 * a.n / b.t AS pct FROM a JOIN b ON a.month = b.month",
]


@pytest.mark.parametrize("text", CHOSEN)
def test_what_answers_choose_is_what_duckdb_chooses(table, text):
    batch = sql(text, table.domain)
    rows = _ours(table, text) if batch.display else None
    if rows is None:
        table.compare(text)
        return
    theirs = _theirs(table, text)
    names = list(theirs[0])
    ours = sorted([str(_number(row[name])) for name in names] for row in rows)
    assert ours == sorted([str(_number(row[name])) for name in names] for row in theirs)


def _number(value):
    if value is None or isinstance(value, bool):
        return "(null)" if value is None else str(value).lower()
    try:
        return f"{float(value):.6g}"
    except ValueError:
        return value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"SELECT {N} FROM flights WHERE month IN ({TOP})", "GROUP BY month too"),
        (
            f"SELECT month, {N} AS n FROM flights WHERE month IN ({TOP}) AND month > 1 GROUP BY month",
            "in the sub-select that chooses, too",
        ),
        (
            f"SELECT month, SUM({N}) OVER () AS s FROM flights WHERE month IN ({TOP}) GROUP BY month",
            "depends on noise",
        ),
        (
            "SELECT month, MAX(month) OVER (ORDER BY COUNT(*)) AS m FROM flights GROUP BY month",
            "MAX",
        ),
    ],
)
def test_a_choice_that_rows_would_follow_is_refused(table, text, said):
    with pytest.raises(SqlError, match=said):
        sql(text, table.domain)


def test_computed_columns_are_saved_shown_and_written(table, tmp_path):
    frame = (
        table.connection.execute("SELECT * FROM flights")
        .df()
        .assign(day=lambda one: one.day.dt.date)
    )
    text = STATEMENTS[0].replace("> 60", "> 20").replace("ELSE 'few'", "ELSE NULL")
    plan = lrm.plan(text, domain=table.domain, effort="quick")
    plan.save(tmp_path / "p.lrm")
    release = lrm.release(lrm.load_plan(tmp_path / "p.lrm"), frame, epsilon=1, ledger=None)
    release.save(tmp_path / "r.lrm")
    (view,) = listed_tables(lrm.load_release(tmp_path / "r.lrm"), EVERYTHING)
    assert [column.name for column in view.frame.columns] == ["month", "size"]
    assert view.frame.answers == ("n",)
    assert "size: by the noisy answers, without an interval" in view.note
    assert {row[1] for row in view.frame.rows()} <= {"many", "(null)", None}
    release.report(tmp_path / "page.html")
    assert "many" in (tmp_path / "page.html").read_text("utf-8")


def test_a_file_with_a_column_that_follows_from_itself_is_refused():
    ring = (Rank("a", "sum", of="b"), Rank("b", "sum", of="a"))
    with pytest.raises(WorkloadError, match="not follow from it"):
        Display(("n",), ("a", "b"), ranks=ring)
    with pytest.raises(WorkloadError, match="postfix"):
        Computed("c", (), (Term("number", number=1.0), Term("+")))
    facts = json.loads(json.dumps(Display(("n", "a"), ranks=(Rank("a", "sum", of="n"),)).facts))
    assert Display.from_facts(facts).ranks[0].of == "n"
    facts["ranks"][0]["function"] = "system"
    with pytest.raises(FileFormatError):
        Display.from_facts(facts)


def test_displays_without_such_columns_have_the_facts_that_they_had():
    plain = Display(("n",), order=(OrderKey("n"),))
    assert set(plain.facts) == {"queries", "hidden", "having", "order", "limit", "offset"}
    ranked = replace(plain, queries=("n", "r"), ranks=(Rank("r", "rank", (OrderKey("n"),)),))
    assert set(ranked.facts) == {*plain.facts, "ranks", "qualify"}
    assert set(ranked.facts["ranks"][0]) == {"name", "function", "order", "partition", "buckets"}
    branch = Branch(((Bound("n", ">", 1.0),),), (Term("text", "x"),))
    full = replace(plain, queries=("n",), computed=(Computed("c", (branch,), ()),))
    assert Display.from_facts(json.loads(json.dumps(full.facts))) == full
