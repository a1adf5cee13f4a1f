"""MODE as a displayed answer, and labels of the totals that ROLLUP adds."""

import pytest

import lrm
from lrm.errors import SqlError
from lrm.queries.sql import sql

DOMAIN = lrm.Domain(
    [
        lrm.Categories("ward", ["a", "b"]),
        lrm.Categories("diagnosis", ["x", "y", "z"], null="cell"),
        lrm.Integers("age", 0, 9),
        lrm.Bins("cost", [0, 10, 20]),
    ],
    "stays",
)


def shown(text, counts):
    """The groups that are displayed for counts of some groups, and 0 of all others."""
    batch = sql(text, DOMAIN)
    (display,) = batch.display
    values = {label.group: float(counts.get(label.group, 0)) for label in batch.labels}
    every = {"rows": values, **display.rank_values(list(values), {"rows": values})}
    return display.shown(list(values), every)


@pytest.mark.parametrize(
    "mode", ["MODE(diagnosis)", "MODE() WITHIN GROUP (ORDER BY diagnosis)", "mode((diagnosis))"]
)
def test_the_most_frequent_value_of_each_group_is_displayed(mode):
    text = f"SELECT ward, {mode} AS most FROM stays GROUP BY ward ORDER BY ward"
    counts = {
        (("ward", "a"), ("most", "y")): 5,
        (("ward", "a"), ("most", "z")): 4,
        (("ward", "b"), ("most", "z")): 9,
    }
    assert shown(text, counts) == [
        (("ward", "a"), ("most", "y")),
        (("ward", "b"), ("most", "z")),
    ]
    assert "(null)" not in {label for one in sql(text, DOMAIN).labels for _, label in one.group}


def test_a_mode_is_counts_by_value():
    mode = sql("SELECT MODE(age // 5) FILTER (WHERE ward = 'a') AS m FROM stays", DOMAIN)
    plain = sql("SELECT age // 5 AS m, COUNT(*) FROM stays WHERE ward = 'a' GROUP BY m", DOMAIN)
    assert (mode.queries.dense() == plain.queries.dense()).all()
    assert mode.names[0] == "rows[m=0]"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ward, MODE(diagnosis), COUNT(*) FROM stays GROUP BY ward",
        "SELECT ward FROM stays GROUP BY ward HAVING MODE(diagnosis) = 'x'",
        "SELECT MODE(diagnosis) || 'a' FROM stays",
        "SELECT MODE(ward), MODE(diagnosis) FROM stays",
        "SELECT ward, MODE(diagnosis) FROM stays GROUP BY ROLLUP (ward)",
        "SELECT ward, MODE(ward) FROM stays GROUP BY ward",
        "SELECT MODE() FROM stays",
        "SELECT MODE(cost) FROM stays",
        "SELECT MODE(x) FROM (SELECT cost AS x FROM stays)",
        "SELECT GROUPING(ward) + 1 AS g, COUNT(*) FROM stays GROUP BY ROLLUP (ward)",
    ],
)
def test_other_modes_and_groupings_are_refused(text):
    with pytest.raises(SqlError) as error:
        sql(text, DOMAIN)
    assert error.value.code == "aggregate"


@pytest.mark.parametrize(
    "column",
    [
        "CASE WHEN GROUPING(ward) = 1 THEN 'all' ELSE ward END",
        "CASE GROUPING(ward) WHEN 0 THEN ward ELSE 'all' END",
        "IF(GROUPING(ward) = 1, 'all', CAST(ward AS VARCHAR))",
    ],
)
def test_totals_are_labelled(column):
    text = f"SELECT {column} AS w, COUNT(*) AS n, AVG(age) AS m FROM stays GROUP BY ROLLUP (ward)"
    batch = sql(text, DOMAIN)
    assert list(batch.shown.names) == [
        *("n[w=a]", "n[w=b]", "n[w=all]"),
        *("m[w=a]", "m[w=b]", "m[w=all]"),
    ]
    plain = sql("SELECT ward AS w, COUNT(*) AS n FROM stays GROUP BY ROLLUP (ward)", DOMAIN)
    assert (batch.queries.dense()[:3] == plain.queries.dense()).all()


@pytest.mark.parametrize("order", ["w", "ward", "2"])
def test_another_case_is_no_label_of_totals(order):
    case = "CASE WHEN ward = 'a' THEN 'A' WHEN ward = 'b' THEN 'B' END"
    text = f"SELECT {case} AS w, COUNT(*) AS n FROM stays GROUP BY ward ORDER BY {order}"
    assert len(sql(text, DOMAIN).labels) == 2


def test_totals_are_sorted_by_their_labels():
    text = (
        "SELECT CASE WHEN GROUPING(ward) = 1 THEN 'all' ELSE ward END AS w, COUNT(*) AS n "
        "FROM stays GROUP BY ROLLUP (ward) ORDER BY w"
    )
    (key,) = sql(text, DOMAIN).display[0].order
    assert key.labels == ("a", "all", "b")
    (key,) = sql(text.replace("ORDER BY w", "ORDER BY ward"), DOMAIN).display[0].order
    assert key.labels == ("a", "b")  # NULL of the total is last


def test_distinct_on_is_the_first_of_each_group():
    text = (
        "SELECT DISTINCT ON (ward) ward, diagnosis, COUNT(*) AS rows FROM stays "
        "GROUP BY ward, diagnosis ORDER BY ward, rows DESC"
    )
    counts = {(("ward", "a"), ("diagnosis", "z")): 3, (("ward", "b"), ("diagnosis", "x")): 2}
    assert shown(text, counts) == list(counts)
    with pytest.raises(SqlError, match="DISTINCT ON of rows is not supported"):
        sql("SELECT DISTINCT ON (ward) ward FROM stays", DOMAIN)
