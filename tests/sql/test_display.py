"""ORDER BY, LIMIT and HAVING: kept beside the batch, applied to noisy answers, dropping none."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace

import duckdb
import numpy as np
import pytest

import lrm
from lrm.domain import Bins, Categories, Dates, Domain, Integers
from lrm.errors import FileFormatError, WorkloadError
from lrm.queries.sql import sql
from lrm.queries.workload.display import Bound, Display, OrderKey
from lrm.queries.workload.layout import layout_of
from lrm.views.release_document import EVERYTHING, listed_tables
from lrm.views.releases import summary_facts

DOMAIN = Domain(
    [
        Categories("carrier", ["UA", "AA", "B6"], null="cell"),
        Integers("month", 1, 4),
        Dates("day", "2024-01-01", "2024-01-03"),
        Bins("delay", [-10, 0, 10], outside="cell"),
    ],
    "flights",
)
ROWS = [
    (carrier, month, dt.date(2024, 1, 1 + (place + month) % 3), delay)
    for month in range(1, 5)
    for place, carrier in enumerate(["UA", "AA", "B6", None])
    for delay in [-20.0, -5.0, 5.0, 30.0]
    for _ in range(3 * place + month * (2 + int(delay) % 3) + 1)
]
STATEMENTS = [
    "SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier ORDER BY n DESC",
    "SELECT carrier, COUNT(*) AS n FROM flights GROUP BY 1 ORDER BY 2 LIMIT 2",
    "SELECT carrier, COUNT(*) FROM flights GROUP BY carrier ORDER BY carrier",
    "SELECT carrier, COUNT(*) FROM flights GROUP BY carrier ORDER BY carrier DESC NULLS FIRST",
    "SELECT carrier AS c, COUNT(*) FROM flights GROUP BY c ORDER BY c DESC LIMIT 3 OFFSET 1",
    "SELECT carrier, month, COUNT(*) AS n FROM flights GROUP BY ALL ORDER BY month DESC, n",
    "SELECT carrier, month, COUNT(*) AS n FROM flights GROUP BY ALL ORDER BY ALL LIMIT 7",
    "SELECT month, COUNT(*) FROM flights GROUP BY month ORDER BY SUM(month) DESC",
    "SELECT month, COUNT(*) AS n FROM flights GROUP BY month HAVING n > 160 AND COUNT(*) <= 220",
    "SELECT month, COUNT(*) FROM flights GROUP BY 1 HAVING SUM(month) BETWEEN 300 AND 600",
    "SELECT month, COUNT(*) AS n FROM flights GROUP BY month HAVING 160 < n ORDER BY -n",
    "SELECT month % 2 AS odd, COUNT(*) AS n FROM flights GROUP BY odd ORDER BY odd DESC",
    "SELECT month, COUNT(*) AS n FROM flights GROUP BY month HAVING SUM(month) > 3 * COUNT(*)",
    "SELECT month, month % 2 AS odd, COUNT(*) AS n FROM flights GROUP BY 1, 2 ORDER BY odd, month",
    "SELECT day, COUNT(*) AS n FROM flights GROUP BY day ORDER BY day DESC FETCH FIRST 2 ROWS ONLY",
    "SELECT DAYNAME(day) AS d, COUNT(*) AS n FROM flights GROUP BY d ORDER BY d LIMIT 2",
    """SELECT carrier, n FROM (SELECT carrier, COUNT(*) AS n FROM flights GROUP BY 1) t
    WHERE n > 200 ORDER BY n""",
    """WITH c AS (SELECT month, COUNT(*) AS n FROM flights GROUP BY 1)
    SELECT * FROM c ORDER BY n DESC LIMIT 2""",
    "SELECT * FROM (SELECT month, COUNT(*) n FROM flights GROUP BY 1 ORDER BY n LIMIT 2) OFFSET 1",
    "SELECT * FROM (SELECT month, COUNT(*) n FROM flights GROUP BY 1 ORDER BY n LIMIT 3) LIMIT 2",
    """SELECT * FROM (SELECT month, COUNT(*) AS n FROM flights GROUP BY 1 ORDER BY n
    LIMIT 3 OFFSET 1) LIMIT 5 OFFSET 1""",
    """SELECT * FROM (SELECT month, COUNT(*) AS n FROM flights GROUP BY 1 ORDER BY n OFFSET 1)
    LIMIT 2""",
    "SELECT * FROM (SELECT month, COUNT(*) n FROM flights GROUP BY 1 ORDER BY n LIMIT 1) OFFSET 2",
]


@pytest.fixture(scope="module")
def table():
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE flights (carrier VARCHAR, month BIGINT, day DATE, delay DOUBLE)"
    )
    connection.executemany("INSERT INTO flights VALUES (?, ?, ?, ?)", ROWS)
    names = [attribute.name for attribute in DOMAIN.attributes]
    return connection, DOMAIN.count(dict(zip(names, row, strict=True)) for row in ROWS)


def exactly(batch, counts):
    """The groups that are displayed where there is no noise, by answers of the first query."""
    answers = batch.queries.apply(counts)
    values = {}
    for label, value in zip(batch.labels, answers, strict=True):
        values.setdefault(label.query, {})[label.group] = float(value)
    (display,) = batch.display
    first = values[display.queries[0]]
    return [([text for _, text in group], first[group]) for group in display.shown(first, values)]


@pytest.mark.filterwarnings("ignore:.* is read as DuckDB does")
@pytest.mark.parametrize("statement", STATEMENTS)
def test_without_noise_the_display_is_what_duckdb_answers(table, statement):
    connection, counts = table
    theirs = [
        (["(null)" if value is None else str(value) for value in row[:-1]], float(row[-1]))
        for row in connection.execute(statement).fetchall()
    ]
    batch = sql(statement, DOMAIN)
    got = exactly(batch, counts)
    if "ORDER BY" not in statement:
        got, theirs = sorted(got), sorted(theirs)
    assert [(sorted(labels), value) for labels, value in got] == [
        (sorted(labels), value) for labels, value in theirs
    ]


def test_every_declared_group_stays_in_the_batch():
    plain = "SELECT month, COUNT(*) AS n FROM flights GROUP BY month"
    batch = sql(f"{plain} HAVING n > 1000000 ORDER BY n LIMIT 1", DOMAIN)
    assert batch.names == sql(plain, DOMAIN).names
    assert str(batch.display[0]) == "HAVING n > 1e+06 ORDER BY n LIMIT 1"


def test_an_aggregate_that_is_only_sorted_by_is_asked_for_and_hidden():
    batch = sql("SELECT COUNT(*) AS n FROM flights GROUP BY month ORDER BY SUM(month)", DOMAIN)
    assert batch.shape[0] == 8
    assert batch.display[0].hidden == (batch.labels[4].query,)


@pytest.fixture(scope="module")
def release(table):
    batch = sql(
        "SELECT COUNT(*) AS total FROM flights;"
        "SELECT month, COUNT(*) AS n FROM flights GROUP BY month ORDER BY n DESC LIMIT 2;"
        "SELECT carrier, COUNT(*) AS c FROM flights GROUP BY carrier HAVING c > 1e9",
        DOMAIN,
    )
    return lrm.release(lrm.plan(batch, "noise-on-data"), table[1], epsilon=1)


def test_a_release_file_keeps_the_display_and_all_answers(release, tmp_path):
    release.save(tmp_path / "a.lrm")
    again = lrm.load_release(tmp_path / "a.lrm")
    assert again.plan.workload.display == release.plan.workload.display
    assert len(again.answers) == 9
    _, first, second = listed_tables(again, EVERYTHING)
    assert first.numbers["answer"][:, 0].tolist() == sorted(again.answers[1:5])[:1:-1]
    assert len(second.frame) == 0
    assert (
        "0 of 4 groups are shown, chosen by the noisy answers; the release has all" in second.note
    )
    facts = summary_facts(again)
    shown = [again.answers[place] for place in facts["display"][0]["shown"]["n"]]
    assert shown == first.numbers["answer"][:, 0].tolist()
    assert facts["display"][1]["shown"] == {"c": []}
    assert json.loads(json.dumps(facts["display"]))[0]["limit"] == 2
    assert len(facts["answers"]) == 9


def test_ranks_are_columns_of_what_is_displayed(table, tmp_path):
    text = (
        "SELECT RANK() OVER (ORDER BY COUNT(*) DESC) AS place, month, COUNT(*) AS n FROM flights "
        "GROUP BY month QUALIFY place <= 3 ORDER BY place"
    )
    made = lrm.release(lrm.plan(sql(text, DOMAIN), "noise-on-data"), table[1], epsilon=1)
    made.save(tmp_path / "a.lrm")
    again = lrm.load_release(tmp_path / "a.lrm")
    (shown,) = listed_tables(again, EVERYTHING)
    assert shown.frame.answers == ("place", "n")
    assert shown.numbers["answer"][:, 0].tolist() == [1, 2, 3]
    assert shown.numbers["answer"][:, 1].tolist() == sorted(again.answers)[:0:-1]
    assert np.isnan(shown.half_widths[:, 0]).all()
    assert "3 of 4 groups are shown, chosen by the noisy answers" in shown.note
    assert "place: by the noisy answers, without an interval" in shown.note
    cells = [cell for row in shown.table().rows for cell in row]
    assert not any("nan" in f"{cell.text} {cell.note}" for cell in cells)
    again.report(tmp_path / "page.html")
    facts = json.loads(json.dumps(summary_facts(again)["display"]))
    assert facts[0]["ranks"][0]["name"] == "place"


def test_a_display_is_part_of_what_a_digest_covers(release):
    workload = release.plan.workload
    assert replace(workload, display=(), statements=()).digest != workload.digest


def test_a_report_shows_what_is_displayed_and_everything(release, tmp_path):
    release.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "2 of 4 groups are shown, chosen by the noisy answers" in page
    assert "n by month" in page


@pytest.mark.parametrize(
    "facts",
    [
        {"queries": []},
        {"limit": -1},
        {"limit": 1.5},
        {"having": [["n", "~", 1]]},
        {"having": [["n", ">", float("nan")]]},
        {"having": [["n"]]},
        {"having": [["other", ">", 1]]},
        {"order": [{"column": "n"}]},
        {"order": [{"column": "n", "labels": [1], "descending": True, "nulls_first": False}]},
    ],
)
def test_a_damaged_display_is_refused(facts):
    whole = Display(("n",), (), ((Bound("n", ">", 1.0),),), (OrderKey("n"),), 3)
    assert Display.from_facts(json.loads(json.dumps(whole.facts))) == whole
    with pytest.raises((WorkloadError, FileFormatError)):
        Display.from_facts({**whole.facts, **facts})


def test_stacked_batches_keep_their_displays():
    one = sql("SELECT COUNT(*) AS a FROM flights GROUP BY month ORDER BY a", DOMAIN)
    two = sql("SELECT COUNT(*) AS b FROM flights GROUP BY month LIMIT 1", DOMAIN)
    assert lrm.stack([one, two]).display == one.display + two.display
    assert np.array_equal(two.queries.dense(), one.queries.dense())


def test_answers_that_only_a_display_names_are_known_by_their_text():
    """They were called q1.sort2, which no reader could know."""
    batch = sql(
        """SELECT month, COUNT(*) AS n FROM flights GROUP BY 1 HAVING SUM(month) > 300;
        SELECT month, SUM(month) AS s FROM flights GROUP BY 1 ORDER BY COUNT(*)""",
        DOMAIN,
    )
    assert [str(display) for display in batch.display] == [
        "HAVING q1.SUM(month) > 300",
        "ORDER BY q2.COUNT(*)",
    ]
    assert {label.query for label in batch.shown} == {"n", "q1.SUM(month)", "s", "q2.COUNT(*)"}


def test_rollup_over_a_renamed_column_and_its_expression_has_every_row() -> None:
    statement = (
        "SELECT month AS m, least(month, 2) AS k, COUNT(*) AS n FROM flights GROUP BY CUBE (m, k)"
    )
    table = sql(statement, DOMAIN).tables[0]
    groups = layout_of(sql(statement, DOMAIN), table).groups()
    expected = [(str(m), str(min(m, 2))) for m in range(1, 5)]
    pairs = [(dict(group).get("m"), dict(group).get("k")) for group in groups]
    assert [column.name for column in table.columns] == ["m", "k"]
    assert sorted(pairs, key=str) == sorted(
        [*expected, *((m, None) for m, _ in expected), (None, "1"), (None, "2"), (None, None)],
        key=str,
    )


def test_a_rank_selected_twice_has_a_rank_for_each_column() -> None:
    rank = "RANK() OVER (ORDER BY COUNT(*) DESC)"
    statement = f"SELECT month, COUNT(*) AS n, {rank} AS a, {rank} AS b FROM flights GROUP BY month"
    (display,) = sql(statement, DOMAIN).display
    first, second = display.ranks
    assert (first.name, second.name) == ("a", "b")
    assert replace(second, name="a") == first
