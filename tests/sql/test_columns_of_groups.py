# ruff: noqa: E501 - statements are kept in one piece
"""Columns of groups and lookups beside answers, totals and orders: from the plan to the frame."""

import pytest

import lrm
from analyst_tables import requests
from lrm.domain import Bins, Dates, Domain, Integers, PrivacyUnit
from lrm.errors import SqlError
from lrm.queries.sql import sql
from lrm.queries.workload.display import Display

TABLE = requests(2_000)
STATEMENTS = [
    "SELECT b.name, 1000.0 * COUNT(*) / b.population AS rate FROM requests r JOIN boroughs b USING (borough) GROUP BY b.name, b.population",
    "SELECT r.borough, 1000.0 * COUNT(*) / MAX(b.population) AS rate FROM requests r JOIN boroughs b USING (borough) GROUP BY r.borough",
    "SELECT days, COUNT(*) * days AS total FROM requests GROUP BY days",
    "SELECT status, COUNT(*) AS n FROM requests GROUP BY status ORDER BY CASE status WHEN 'open' THEN 1 ELSE 2 END, status",
    "SELECT borough, GROUPING(borough) AS g, COUNT(*) AS n FROM requests GROUP BY ROLLUP (borough)",
    "SELECT COALESCE(borough, 'Total') AS borough, COUNT(*) AS n FROM requests GROUP BY ROLLUP (borough) ORDER BY GROUPING(borough), borough",
    "SELECT borough, COUNT(*) AS n FROM requests GROUP BY borough UNION ALL SELECT 'Total', COUNT(*) FROM requests",
]


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.filterwarnings("ignore::lrm.errors.PrivacyWarning")
def test_answers_at_a_large_amount_are_those_of_duckdb_after_saving_and_loading(
    tmp_path, statement
):
    plan = lrm.plan(statement, domain=TABLE.domain, effort="quick")
    plan.save(tmp_path / "p.lrm")
    rows = TABLE.connection.sql("SELECT * FROM requests").to_arrow_table()
    release = lrm.release(lrm.load_plan(tmp_path / "p.lrm"), rows, epsilon=10**6, ledger=None)
    release.save(tmp_path / "r.lrm")
    shown = lrm.load_release(tmp_path / "r.lrm").to_pandas()
    theirs = TABLE.connection.execute(statement).df()
    ours, want = (
        sorted(value for value in column.round(2) if value)  # declared groups may be empty
        for column in (shown.answer, theirs[theirs.columns[-1]])
    )
    assert ours == pytest.approx(want, abs=0.02)


def test_an_order_by_an_expression_has_equal_places_and_is_read_back():
    batch = sql(STATEMENTS[3], TABLE.domain)
    (display,) = batch.display
    assert Display.from_facts(display.facts) == display
    assert display.order[0].places == (1, 1, 0)
    groups = [(("status", status),) for status in ("assigned", "closed", "open")]
    answers = {"n": dict.fromkeys(groups, 1.0)}
    assert [dict(group)["status"] for group in display.shown(groups, answers)] == [
        "open",
        "assigned",
        "closed",
    ]


@pytest.mark.parametrize("direction", ["", " DESC"])
def test_totals_without_a_label_are_sorted_by_grouping(direction):
    statement = f"SELECT borough, COUNT(*) AS n FROM requests GROUP BY ROLLUP (borough) ORDER BY GROUPING(borough){direction}, borough"
    (display,) = sql(statement, TABLE.domain).display
    groups = [(("borough", "MN"),), (), (("borough", "BK"),)]
    shown = display.shown(groups, {"n": dict.fromkeys(groups, 1.0)})
    expected = [groups[2], groups[0], ()]
    assert shown == (expected if not direction else [(), groups[2], groups[0]])


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        (
            "SELECT region, MAX(b.population) AS p, COUNT(*) AS n FROM requests JOIN boroughs b USING (borough) GROUP BY region",
            "several values in a group",
        ),
        (
            "SELECT status, COUNT(*) / MAX(days) AS n FROM requests GROUP BY status",
            "a single row decides it",
        ),
        ("SELECT status, MAX(days) AS d FROM requests GROUP BY status", "a single row decides it"),
        ("SELECT MAX(days) FROM requests", "MAX(days) is not supported; a single row decides it"),
        (
            "SELECT status, COUNT(*) / b.population AS r FROM requests JOIN boroughs b USING (borough) GROUP BY status",
            "must appear in GROUP BY",
        ),
        (
            "SELECT borough, COUNT(*) / b.name AS r FROM requests JOIN boroughs b USING (borough) GROUP BY borough, b.name",
            "not a number",
        ),
        (
            "SELECT status, COUNT(*) AS n FROM requests GROUP BY status ORDER BY days",
            "order by answers or by columns",
        ),
        (
            "SELECT n FROM (SELECT status, MAX(days) AS n FROM requests GROUP BY status)",
            "a single row decides it",
        ),
        (
            "SELECT status, COUNT(*) AS n FROM requests GROUP BY status HAVING MAX(days) > 3",
            "is not supported; a single row decides it",
        ),
        (
            "SELECT COUNT(*) FROM requests WHERE days > (SELECT MAX(days) FROM requests)",
            "not supported",
        ),
        (
            "SELECT status, COUNT(*) FILTER (WHERE days = MAX(days)) AS n FROM requests GROUP BY status",
            "not supported",
        ),
        ("SELECT SUM(MAX(days)) FROM requests", "not supported"),
        ("SELECT MAX(COUNT(*)) FROM requests", "not supported"),
        ("SELECT borough FROM requests WHERE MAX(days) > 3", "not supported"),
        (
            "SELECT SUM(days) OVER (ORDER BY MAX(days)) AS s FROM requests GROUP BY days",
            "not supported",
        ),
        (
            "SELECT CASE WHEN MAX(days) > 3 THEN 1 ELSE 0 END AS c, COUNT(*) FROM requests",
            "not supported",
        ),
        ("SELECT COUNT(*) FROM requests GROUP BY MAX(days)", "not supported"),
    ],
)
def test_what_a_single_row_decides_stays_refused(statement, word):
    with pytest.raises(SqlError) as caught:
        sql(statement, TABLE.domain)
    assert word in str(caught.value)


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("SELECT customer, COUNT(*) FROM orders GROUP BY customer", "names the person"),
        (
            "SELECT COUNT(*) FROM orders WHERE amount BETWEEN 50 AND 200",
            "write amount >= 50 AND amount < 200",
        ),
        (
            "SELECT COUNT(*) FROM orders WHERE at BETWEEN '2024-01-01' AND '2024-01-31'",
            "write at >= '2024-01-01' AND at < '2024-02-01'",
        ),
        ("SELECT COUNT(*) FROM {{ ref('orders') }}", "paste the compiled SQL"),
        ("SELECT union, COUNT(*) FROM orders GROUP BY union", 'as "union"'),
        (
            "SELECT a.items, b.items FROM orders a JOIN orders b ON a.items = b.items - 1",
            "LAG(n) OVER",
        ),
    ],
)
def test_messages_say_what_to_write(statement, word):
    attributes = [
        Bins("amount", [0, 50, 200, 500]),
        Integers("items", 1, 12),
        Dates("at", "2024-01-01", "2024-12-31", time=True),
    ]
    domain = Domain(attributes, "orders", unit=PrivacyUnit("customer", 3))
    with pytest.raises(SqlError) as caught:
        sql(statement, domain)
    assert word in str(caught.value)
